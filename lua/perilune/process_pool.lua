--- Processes of a program that share items of work. Each of them reads an item, a line of text,
-- from its standard input, and answers with lines of text, then a line "\1WORD"; then it gets the
-- next item. A process that dies is replaced: only the item that it had is lost.

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

local process_pool = {}

local methods = {}
local class = { __index = methods }

--- In such a process: the last line of an answer.
function process_pool.answer(word)
  io.stdout:write("\1", word, "\n")
  io.stdout:flush()
end

--- Adds an item, a text without line ends; its number.
function methods.submit(self, item)
  self.last = self.last + 1
  self.items[self.last] = item
  return self.last
end

local function why_ended(process)
  local ended = core.subprocess_finish(process, 5)
  if ended.signal ~= 0 then
    return ("the process ended with signal %d (%s)"):format(ended.signal, ended.signal_name)
  end
  return ("the process ended with status %d"):format(ended.code)
end

-- Gives the next item to a worker without one.
local function dispatch(self, worker)
  if worker.item or self.next > self.last then return end
  worker.process = worker.process or core.subprocess_start(self.words)
  worker.item, worker.lines = self.next, {}
  core.subprocess_send(worker.process, self.items[self.next] .. "\n") -- wait hears of its end
  self.items[self.next] = nil
  self.next = self.next + 1
end

-- The workers that have an item, and their processes.
local function busy_workers(self)
  local busy, processes = {}, {}
  for _, worker in ipairs(self.workers) do
    dispatch(self, worker)
    if worker.item then
      busy[#busy + 1], processes[#processes + 1] = worker, worker.process
    end
  end
  return busy, processes
end

-- What a worker has to say: true and its word; true, nil and why it died; nil: not yet.
local function read_answer(worker)
  for line in core.subprocess_line, worker.process do
    local word = line:match "^\1(.*)"
    if word then return true, word end
    table.insert(worker.lines, line)
  end
  if not core.subprocess_at_end(worker.process) then return nil end
  local why = why_ended(worker.process)
  worker.process = nil
  return true, nil, why
end

--- The number of an item, the word of its answer and the lines before it; when its process has
-- died, nil for the word, and why it ended. Nothing when there is no item or `seconds` are over.
function methods.wait(self, seconds)
  local deadline = core.clock() + (seconds or math.huge)
  while true do
    local busy, processes = busy_workers(self)
    local left = math.min(deadline - core.clock(), 3600)
    local ready = #busy > 0 and core.subprocess_wait(processes, math.max(left, 0))
    if not ready and (#busy == 0 or core.clock() >= deadline) then return nil end
    local worker = busy[ready]
    local answered, word, why = false, nil, nil
    if worker then answered, word, why = read_answer(worker) end
    if answered then
      local item = worker.item
      worker.item = nil
      return item, word, worker.lines, why
    end
  end
end

--- Ends the processes; items that have no answer are given up.
function methods.close(self)
  for _, worker in ipairs(self.workers) do
    if worker.process and worker.item then
      core.subprocess_finish(worker.process, 0)
    elseif worker.process then
      core.subprocess_end_input(worker.process)
      core.subprocess_finish(worker.process, 5)
    end
    worker.process, worker.item = nil, nil
  end
end
class.__close = methods.close

--- `n` processes of the command `words`, which start when there is an item for them.
function process_pool.new(n, words)
  local self = setmetatable({ words = words, workers = {}, items = {}, next = 1, last = 0 }, class)
  for i = 1, n do self.workers[i] = {} end
  return self
end

return process_pool
