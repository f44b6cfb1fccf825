--- pl.tune.queue: commands of perilune as tasks, which run in processes of this machine or on many
-- machines.
--
--     local queue <close> = pl.tune.queue { runner = "local", jobs = 2 }
--     queue:submit { id = "a", arguments = { "opt", { input = "a.onnx" }, "-o",
--       { output = "small.onnx" } }, seconds = 60 }
--     for id, result in queue:results() do print(id, result.state, result.why) end
--
-- An argument is a word, { input = PATH }: a file or folder that the command reads (with
-- `cached = true` workers keep it for other tasks), or { output = PATH }: a file that it writes. A
-- task runs again when its worker was lost, `tries` times at most. Tasks must be such that they may
-- run twice; each has one result.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

local queue = {}

local where = "pl.tune.queue"

local methods = {}
local class = { __name = "queue", __index = methods }

local function check_argument(word)
  if type(word) == "table" then word = word.input or word.output end
  if type(word) ~= "string" then
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

-- Workers are on other machines: what they say is checked.
local function is_sound(result)
  local function is(value, kind) return value == nil or type(value) == kind end
  return (result.state == "done" or result.state == "failed") and is(result.why, "string")
    and is(result.output, "string") and is(result.seconds, "number") and is(result.host, "string")
end

-- Whether the task is sent again. What is `lost` has no result.
local function try_again(self, task, result)
  if result.tries then task.tries = task.tries - 1 + result.tries end
  if not result.lost or task.tries >= self.tries then return false end
  send(self, task)
  return true
end

local function finish(self, task, result)
  self.tasks[task.id] = nil
  self.pending = self.pending - 1
  if not is_sound(result) then
    result = { state = "failed", why = "its worker gave a result that makes no sense" }
  end
  result.tries = task.tries
  if result.lost then result.why = ("%s (%d times)"):format(result.why, task.tries) end
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

--- What the text of a runner says: { } of "local", { port = } of farm:PORT,
-- { port = 0, partition =, pilots = } of slurm:PARTITION,N; nil: it is none of these.
function queue.runner_of(text)
  if text == "local" then return {} end
  local port = math.tointeger(tonumber(text:match "^farm:(%d+)$"))
  if port and port <= 65535 then return { port = port } end
  local partition, n = text:match "^slurm:([%w_.,-]+),(%d+)$"
  n = math.tointeger(tonumber(n))
  if n and n >= 1 then return { port = 0, partition = partition, pilots = n } end
end

-- The module of the runner; what its text says is put into the options.
local function backend_of(options)
  local runner = queue.runner_of(options.runner)
  if not runner then
    argument.fail(("%s: runner: local, farm:PORT or slurm:PARTITION,N expected, got '%s'"):format(
      where, options.runner))
  end
  for name, value in pairs(runner) do options[name] = value end
  return require("perilune.tune.queue." .. (runner.port and "work_queue" or "local_processes"))
end

local names = { "runner", "jobs", "tries", "program", "address", "password", "silence", "folder" }

local defaults = { runner = "local", jobs = 1, tries = 3, program = "perilune",
  address = "127.0.0.1", silence = 60 }

local function check_option(name, value)
  if name == "jobs" or name == "tries" then
    if math.type(value) ~= "integer" or value < 1 then
      argument.fail(("%s: %s: an integer from 1 on expected"):format(where, name))
    end
  elseif name == "silence" then
    if type(value) ~= "number" or not (value >= 2 and value <= 1e6) then
      argument.fail(where .. ": silence: a number of seconds from 2 on expected")
    end
  else
    argument.string(value, where, name)
  end
end

--- A queue. runner: "local": `jobs` (1) processes of this machine; "farm:PORT": workers of Work
-- Queue that connect to the port (0: one that is free, in queue.port); "slurm:PARTITION,N": N
-- workers that Slurm starts. tries (3); program ("perilune"): the command. For workers: address
-- ("127.0.0.1") to listen on; password: a file; silence (60): the seconds after which a
-- worker that says nothing is given up; folder: for files that come back, on the file system of
-- outputs.
function queue.new(options)
  local made = {}
  for name, value in pairs(defaults) do made[name] = value end
  for name, value in pairs(argument.options(options, where, names)) do
    check_option(name, value)
    made[name] = value
  end
  local backend = backend_of(made).new(made)
  return setmetatable({ tasks = {}, pending = 0, tries = made.tries, backend = backend,
    port = backend.port }, class)
end

--- Whether a value is a queue.
function queue.is(x) return getmetatable(x) == class end

return queue
