--- pl.tune.queue: commands of perilune as tasks, which run in processes of this machine or on many
-- machines.
--
--     local queue <close> = pl.tune.queue { runner = "local", jobs = 2 }
--     queue:submit { id = "a", arguments = { "opt", { input = "a.onnx" }, "-o",
--       { output = "small.onnx" } }, seconds = 60 }
--     for id, result in queue:results() do print(id, result.state, result.why) end
--
-- An argument is a word, { input = PATH }: a file or folder that the command reads, or
-- { output = PATH }: a file that it writes. A task runs again when its worker was lost, `tries`
-- times at most. Tasks must be such that they may run twice; each is answered once.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

local queue = {}

local where = "pl.tune.queue"

local methods = {}
local class = { __name = "queue", __index = methods }

local function check_argument(word)
  local kind = type(word)
  if kind == "table" and type(word.input or word.output) == "string" then
    word = word.input or word.output
  elseif kind ~= "string" then
    argument.fail "queue:submit: arguments: words, { input = path } or { output = path } expected"
  end
  if word:find "%z" then argument.fail "queue:submit: arguments: a word has no zeros" end
end

local function checked(self, task)
  argument.options(task, "queue:submit", { "id", "arguments", "seconds", "feature" })
  if task.id == nil or self.tasks[task.id] then
    argument.fail "queue:submit: id: a value that no other task has is expected"
  end
  argument.table(task.arguments, "queue:submit", "arguments")
  for _, word in ipairs(task.arguments) do check_argument(word) end
  if #task.arguments == 0 then argument.fail "queue:submit: arguments: a command is expected" end
  local seconds = task.seconds or 3600
  if type(seconds) ~= "number" or not (seconds > 0 and seconds <= 1e6) then
    argument.fail "queue:submit: seconds: a number above 0, at most 1000000, expected"
  end
  if task.feature ~= nil then argument.string(task.feature, "queue:submit", "feature") end
  return { id = task.id, arguments = task.arguments, seconds = seconds, feature = task.feature,
    tries = 0 }
end

local function send(self, task)
  task.tries = task.tries + 1
  self.backend:send(task)
end

--- Adds a task: { id =, arguments =, seconds = (3600), feature = (what its worker must have) }.
function methods.submit(self, task)
  task = checked(self, task)
  self.tasks[task.id] = task
  self.pending = self.pending + 1
  send(self, task)
end

-- Whether the task is sent again. What is `lost` has no result.
local function try_again(self, task, result)
  if not result.lost or task.tries >= self.tries then return false end
  send(self, task)
  return true
end

local function finish(self, task, result)
  self.tasks[task.id] = nil
  self.pending = self.pending - 1
  result.tries = task.tries
  if result.lost then
    result.why = ("%s (%d times)"):format(result.why, task.tries)
  end
  return task.id, result
end

--- The id of a task that has ended and its result: state ("done" or "failed"), why it failed,
-- output (text), seconds, tries, host, lost (its workers died). nil when `seconds` are over or no
-- task is left.
function methods.wait(self, seconds)
  local deadline = core.clock() + (seconds or math.huge)
  while self.pending > 0 do
    local task, result = self.backend:wait(math.max(0, deadline - core.clock()))
    if not task then return nil end
    if not try_again(self, task, result) then return finish(self, task, result) end
  end
end

--- All results as they come: `for id, result in queue:results()`.
function methods.results(self)
  return function() return self:wait() end
end

--- Gives up what has not ended.
function methods.close(self) self.backend:close() end
class.__close = methods.close

local function backend_of(runner)
  if runner == "local" then return require "perilune.tune.queue.local_processes" end
  argument.fail(("%s: runner: '%s' is none of: local"):format(where, runner))
end

local names = { "runner", "jobs", "tries", "program" }

local function check_integer(options, name, default)
  local x = options[name] == nil and default or options[name]
  if math.type(x) ~= "integer" or x < 1 then
    argument.fail(("%s: %s: an integer from 1 on expected"):format(where, name))
  end
  return x
end

--- A queue: { runner = "local", jobs = 1 (processes), tries = 3, program = "perilune" }.
function queue.new(options)
  options = argument.options(options, where, names)
  local made = { jobs = check_integer(options, "jobs", 1), program = options.program or "perilune",
    runner = argument.string(options.runner or "local", where, "runner") }
  argument.string(made.program, where, "program")
  return setmetatable({ tasks = {}, pending = 0, tries = check_integer(options, "tries", 3),
    backend = backend_of(made.runner).new(made) }, class)
end

--- Whether a value is a queue.
function queue.is(x) return getmetatable(x) == class end

return queue
