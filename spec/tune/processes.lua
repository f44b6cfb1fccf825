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

local function children_of(id)
  local list, file = {}, io.open(("/proc/%d/task/%d/children"):format(id, id))
  for child in (file and file:read "a" or ""):gmatch "%d+" do
    list[#list + 1] = math.tointeger(tonumber(child))
  end
  if file then file:close() end
  return list
end

--- The processes that `id` has started, and those that they have: lists by their distance, from 1
-- on.
function processes.descendants(id)
  local levels, level = {}, children_of(id)
  while #level > 0 do
    levels[#levels + 1] = level
    local below = {}
    for _, one in ipairs(level) do
      for _, child in ipairs(children_of(one)) do below[#below + 1] = child end
    end
    level = below
  end
  return levels
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
