--- Processes that specs start beside themselves, end, and wait for.

local processes = {}

--- Starts a shell command in the background: its number.
function processes.start(line)
  local pipe = io.popen(("sh -c '%s' </dev/null & echo $!"):format(line:gsub("'", "'\\''")))
  local id = pipe:read "n"
  pipe:close()
  return id
end

--- The lines of a file, which may not be there.
function processes.lines(path)
  local list, file = {}, io.open(path)
  if not file then return list end
  for line in file:lines() do list[#list + 1] = line end
  file:close()
  return list
end

--- Whether a process is there and has not ended.
function processes.is_running(id)
  local file = io.open(("/proc/%s/stat"):format(id))
  local text = file and file:read "a"
  if file then file:close() end
  local state = text and text:match "%) (%u)"
  return state ~= nil and state ~= "Z" and state ~= "X"
end

function processes.kill(id, signal) os.execute(("kill -%s %s 2>/dev/null"):format(signal, id)) end

function processes.sleep(seconds) os.execute(("sleep %g"):format(seconds)) end

--- Waits until it holds; fails after `seconds` (30).
function processes.wait_for(holds, seconds)
  for _ = 1, (seconds or 30) * 20 do
    if holds() then return end
    processes.sleep(0.05)
  end
  error("it does not come", 2)
end

return processes
