--- Workers of Work Queue as specs start them, with the folder that they work in.

local command = require "spec.cli.command"
local processes = require "spec.tune.processes"

local workers = {}

-- What a sanitized build preloads is not for these programs.
local clean = "env -u LD_PRELOAD -u ASAN_OPTIONS "

workers.is_possible = os.getenv "PERILUNE_FARM" == "yes"

--- A place for a batch: path(name), the password file, a script that counts its runs and sleeps.
function workers.place()
  local folder = command.folder()
  local place = { folder = folder, all = {} }
  function place.path(name) return folder .. "/" .. name end
  place.password = command.write(place.path "password", "a secret\n")
  return setmetatable(place, { __index = workers })
end

--- Starts a worker that connects to the port; its process.
function workers.start(place, port, options)
  local n = #place.all + 1
  local work = place.path("worker" .. n)
  os.execute("mkdir " .. work)
  place.all[n] = processes.start(("exec %swork_queue_worker -P %s --cores 1 --memory 500 "
    .. "--disk 1000 -t 120 -i 1 -b 1 -s %s %s 127.0.0.1 %d >%s.log 2>&1"):format(clean,
    place.password, work, options or "", port, work))
  return place.all[n]
end

--- Models that differ by a constant.
function workers.models(place, n)
  local list = {}
  for i = 1, n do
    list[i] = command.write(place.path(("m%d.relay"):format(i)),
      ('#[version = "0.0.5"]\ndef @main(%%x: int32) { add(%%x, %d) }\n'):format(i))
  end
  return list
end

--- A script that notes its process, sleeps and notes its end.
function workers.slow_script(place, seconds)
  return command.write(place.path "slow.lua", ([[
    local function note(name, text)
      local file = io.open("%s/" .. name, "a")
      file:write(text, "\n")
      file:close()
    end
    local id = io.open "/proc/self/stat":read "n"
    note("begun", id)
    os.execute "sleep %g"
    note("ended", id)
  ]]):format(place.folder, seconds))
end

--- A script that kills the worker that runs it, if the command has this word, and notes that.
function workers.killing_script(place, word)
  return command.write(place.path "kill.lua", ([[
    local command = io.open "/proc/self/cmdline":read "a"
    if not command:find("%s", 1, true) then return end
    local id, name = io.open "/proc/self/stat":read "n", nil
    repeat
      id = tonumber(io.open(("/proc/%%d/stat"):format(id)):read "a":match "%%) %%u (%%d+)")
      name = io.open(("/proc/%%d/comm"):format(id)):read "l"
    until name:find "^work_queue" or id <= 1
    io.open("%s", "a"):write(id, "\n"):close()
    os.execute("kill -KILL " .. id)
    os.execute "sleep 20"
  ]]):format(word, place.path "killed"))
end

--- The worker among `ids` that runs the process `id`; nil: none does.
function workers.of_task(id, ids)
  local is = {}
  for _, worker in ipairs(ids) do is[worker] = true end
  while id and id > 1 do
    if is[id] then return id end
    local file = io.open(("/proc/%d/stat"):format(id))
    local text = file and file:read "a" or ""
    if file then file:close() end
    id = math.tointeger(tonumber(text:match "^%d+ %b() %u (%d+)"))
  end
end

--- Starts `perilune batch` in the background, with what place.environment sets: its process.
function workers.batch(place, arguments, log)
  return processes.start(("%s exec %s batch %s -o %s --farm-password %s >%s 2>&1"):format(
    place.environment or "", command.program, arguments, place.path "out", place.password,
    place.path(log or "log")))
end

--- The lines of `perilune db tasks`: { name = { state =, rest = } }, and their number.
function workers.rows(place)
  local status, text = command.run(place.folder, "db tasks " .. place.path "out/batch.db")
  local list, n = {}, 0
  if status ~= 0 then return list, n end
  for state, name, rest in text:gmatch "(%l+) +(%l+ [^\n,]+)([^\n]*)\n" do
    assert(not list[name], name .. " is there twice")
    list[name], n = { state = state, rest = rest }, n + 1
  end
  return list, n
end

--- How many tasks are in that state.
function workers.count(place, state)
  local n = 0
  for _, row in pairs((place:rows())) do
    if row.state == state then n = n + 1 end
  end
  return n
end

--- Waits for the end of a batch, whose last line it gives.
function workers.finish(place, batch, log)
  processes.wait_for(function() return not processes.is_running(batch) end, 120)
  local lines = processes.lines(place.path(log or "log"))
  return lines[#lines], table.concat(lines, "\n")
end

--- Ends all workers.
function workers.stop(place)
  for _, id in ipairs(place.all) do
    processes.kill(id, "CONT")
    processes.kill(id, "KILL")
  end
  os.execute("rm -rf " .. place.folder)
end

return workers
