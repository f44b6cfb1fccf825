--- Work shared out among processes of this program, each of which reads its
-- part of a list from a file and answers in turn: lines of text, then a line
-- "\1WORD". A process that dies is replaced: only the item it had at hand is
-- lost.

require "perilune.core".internal() -- errors name the scripts of others

local stop = require "perilune.cli.stop"

local workers = {}

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

--- A command line for the shell.
function workers.command(words)
  local parts = {}
  for i, word in ipairs(words) do parts[i] = quoted(word) end
  return table.concat(parts, " ")
end

--- The last line of an answer.
function workers.finish(word)
  io.stdout:write("\1", word, "\n")
  io.stdout:flush()
end

local function write_list(path, items, from)
  local file, reason = io.open(path, "w")
  if not file then stop.failure("%s", reason) end
  for i = from, #items do file:write(items[i], "\n") end
  file:close()
end

local function start(worker)
  write_list(worker.list, worker.items, worker.done + 1)
  local pipe, reason = io.popen(worker.command .. " " .. quoted(worker.list), "r")
  if not pipe then stop.failure("%s", reason) end
  worker.pipe = pipe
end

-- The word and the lines before it; nil when the process has ended.
local function read_answer(worker)
  local lines = {}
  for line in worker.pipe:lines() do
    local word = line:match "^\1(.*)"
    if word then return word, lines end
    lines[#lines + 1] = line
  end
end

local function next_answer(worker)
  if not worker.pipe then start(worker) end
  local word, lines = read_answer(worker)
  worker.done = worker.done + 1
  if word then return word, lines end
  local _, how, number = worker.pipe:close()
  worker.pipe = nil
  return "failed", { ("the process ended with %s %d"):format(how == "signal" and how or "status",
    number or 0) }
end

local function finish(worker)
  if worker.pipe then worker.pipe:close() end
  os.remove(worker.list)
end

--- Calls answer(i, word, lines) for each item in order. `command` is a command
-- line that is given the name of a file of items, one a line.
function workers.run(n, command, items, answer)
  local all = {}
  for k = 1, math.min(n, #items) do
    all[k] = { command = command, items = {}, done = 0, list = os.tmpname() }
  end
  for i, item in ipairs(items) do
    local part = all[(i - 1) % #all + 1].items
    part[#part + 1] = item
  end
  for _, worker in ipairs(all) do start(worker) end
  for i = 1, #items do answer(i, next_answer(all[(i - 1) % #all + 1])) end
  for _, worker in ipairs(all) do finish(worker) end
end

return workers
