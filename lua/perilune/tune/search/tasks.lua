--- Trials of a search as tasks of a queue (tune/queue): a task is `perilune tune MODEL --trial
-- TEXT` somewhere, which measures one candidate against one incumbent and prints the trial.

local core = require "perilune.core"
local json = require "perilune.json"
local objective = require "perilune.tune.search.objective"
local spaces = require "perilune.tune.search.spaces"
core.internal()

local tasks = {}

local methods = {}
local class = { __index = methods }

-- A word of a command is at most 128 KiB.
local MOST_BYTES = 120000

-- ------------------------------------------------------------------ the search

local function is_number_or_nil(x) return x == nil or type(x) == "number" and x == x end

-- What a worker printed is checked: it is another machine.
local function is_sound(trial)
  return type(trial) == "table" and type(trial.checked) == "boolean"
    and (trial.failure == nil or type(trial.failure) == "string")
    and (trial.failure or type(trial.cost) == "number" and trial.cost >= 0
      and ({ faster = 1, slower = 1, undecided = 1 })[trial.verdict] ~= nil)
    and is_number_or_nil(trial.confidence) and (trial.costs == nil or type(trial.costs) == "table")
    and (trial.seconds == nil or type(trial.seconds) == "table"
      and is_number_or_nil(trial.seconds.min) and is_number_or_nil(trial.seconds.median)
      and is_number_or_nil(trial.seconds.n))
end

local function failed(why) return { checked = false, failure = why } end

local function trial_of(result)
  if result.state ~= "done" then
    local said = result.output and result.output:match "([^\n]*)%s*$" or ""
    return failed("task: " .. result.why .. (said ~= "" and ": " .. said or ""))
  end
  local ok, trial = pcall(json.decode, (result.output or ""):match "([^\n]*)%s*$")
  if not ok or not is_sound(trial) then return failed "task: it printed no trial" end
  return trial
end

-- Sends { text =, effort =, incumbent = { text =, cost =, time = }, on_trial = }.
local function submit(self, item)
  local text = json.encode { kind = self.kind, base = self.base, text = item.text,
    effort = item.effort, incumbent = item.incumbent }
  if #text > MOST_BYTES then
    return item.on_trial(failed "task: the candidate's text is too long for a command")
  end
  local arguments = table.move(self.command, 1, #self.command, 1, {})
  arguments[#arguments + 1], arguments[#arguments + 2] = "--trial", text
  self.last = self.last + 1
  self.items[self.last] = item
  self.queue:submit { id = self.last, arguments = arguments, seconds = self.seconds }
  return 1
end

--- Measures items { text =, effort =, incumbent = { text =, cost =, time = }, on_trial =
-- function(trial) }; false when time was over before the last one.
function methods.measure(self, items, seconds)
  local deadline, n = core.clock() + seconds, 0
  local left = {}
  for _, item in ipairs(items) do
    left[item] = submit(self, item)
    n = n + (left[item] or 0)
  end
  while n > 0 do
    local id, result = self.queue:wait(math.max(0, deadline - core.clock()))
    if not id then return false end
    local item = self.items[id]
    self.items[id] = nil
    item.on_trial(trial_of(result)) -- of an earlier call, too: a measurement is one
    n = n - (left[item] or 0)
  end
  return true
end

--- What sends trials: { queue =, command = (arguments of `perilune tune` that describe the
-- search), seconds = (the time limit of a trial), kind = (of the space), base = (its text) }.
function tasks.new(options)
  return setmetatable({ queue = options.queue, command = options.command, kind = options.kind,
    base = options.base, seconds = options.seconds, items = {}, last = 0 }, class)
end

-- -------------------------------------------------------------------- the task

local function fail(message) core.raise(core.diag("invalid", message)) end

-- The spec, and what makes the module of a candidate's text.
local function parse(text)
  local ok, spec = pcall(json.decode, text)
  local incumbent = ok and type(spec) == "table" and spec.incumbent
  if type(incumbent) ~= "table" or type(spec.kind) ~= "string" or type(spec.base) ~= "string"
    or type(spec.text) ~= "string" or type(spec.effort) ~= "number"
    or type(incumbent.text) ~= "string" or type(incumbent.cost) ~= "number"
    or type(incumbent.time) ~= "number" then
    fail "--trial: it describes no trial"
  end
  local kinds, seen = spaces.names(spec.kind, "--trial")
  if seen.knobs then fail "--trial: knobs are decided in the process of the search" end
  return spec, function(mod, candidate) return spaces.apply(mod, candidate, kinds) end
end

local function measured(one, mod, made, effort)
  local result, why = made:measure(one, effort)
  if not result then return failed(tostring(why)) end
  local trial = { cost = result.cost, costs = result.costs, verdict = result.verdict,
    confidence = result.confidence, seconds = result.seconds, checked = false }
  if trial.verdict ~= "faster" then return trial end
  local ok, wrong = made:check(mod, one)
  if not ok then return failed(tostring(wrong)) end
  trial.checked = true
  return trial
end

--- What a task does: the trial that `text` describes, of a module, as a line of JSON. tools:
-- builder, runner, metrics.
function tasks.run(mod, text, tools)
  local spec, apply = parse(text)
  local made = objective.new(tools, "pl.tune.search")
  local base = apply(mod, spec.base)
  made:start(base, true)
  local incumbent = spec.incumbent
  local mod_of_incumbent = incumbent.text == spec.base and base or apply(mod, incumbent.text)
  made.incumbent = { mod = mod_of_incumbent, cost = incumbent.cost, time = incumbent.time }
  local ok, candidate = pcall(apply, mod, spec.text)
  local trial = ok and measured({ mod = candidate }, mod, made, spec.effort)
    or failed("error: " .. tostring(candidate))
  return json.encode(trial)
end

return tasks
