--- Tasks in processes of this machine: each is a `perilune worker`, which runs one task at a time.

local json = require "perilune.json"
local process_pool = require "perilune.process_pool"
require "perilune.core".internal() -- errors name the scripts of others

local local_processes = {}

local methods = {}
local class = { __index = methods }

-- Files are where they are.
local function words_of(arguments)
  local words = {}
  for i, word in ipairs(arguments) do
    words[i] = type(word) == "table" and (word.input or word.output) or word
  end
  return json.list(words)
end

function methods.send(self, task)
  local item = self.pool:submit(json.encode { arguments = words_of(task.arguments),
    seconds = task.seconds })
  self.tasks[item] = task
end

local function result_of(word, lines, why)
  if not word then return { state = "failed", why = why, lost = true } end
  local ok, result = pcall(json.decode, lines[#lines] or "")
  if ok and type(result) == "table" then return result end
  return { state = "failed", why = "its worker gave no result", lost = true }
end

function methods.wait(self, seconds)
  local item, word, lines, why = self.pool:wait(seconds)
  if not item then return nil end
  local task = self.tasks[item]
  self.tasks[item] = nil
  return task, result_of(word, lines, why)
end

function methods.close(self) self.pool:close() end

function local_processes.new(options)
  return setmetatable({ tasks = {},
    pool = process_pool.new(options.jobs, { options.program, "worker", "--lines" }) }, class)
end

return local_processes
