--- pl.tune.database: workloads and what was measured of them.
--
--     local db = pl.tune.database()
--     local workload = db:commit_workload(mod)
--     db:commit_measurement_record(workload, "llvm", { 0.0012, 0.0011 })
--     print(db:get_measurement_record(workload, "llvm")[1])
--     local file <close> = pl.tune.database { path = "tune.db" } -- kept by SQLite
--
-- A workload is a module; modules that are structurally equal are one workload. Measurements
-- are kept per workload and target (a text), the first one stays. Tuning records are traces
-- with what was measured of them, ordered by the mean of their seconds.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

local database = {}

local methods = {}
local class = { __name = "tuning database", __index = methods }

-- What a record without measurements counts as, in seconds.
local UNKNOWN = 1e10

local function check_module(mod, where)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail(("%s: a module expected, got %s"):format(where, argument.kind_of(mod)))
  end
end

local function find(self, mod)
  for _, one in ipairs(self.by_hash[core.module_hash(mod)] or {}) do
    if core.module_equal(one.mod, mod) then return one end
  end
end

--- Whether the module was committed.
function methods.has_workload(self, mod)
  check_module(mod, "has_workload")
  return find(self, mod) ~= nil
end

--- The workload of the module: that which an equal module was committed as, else a new one.
function methods.commit_workload(self, mod)
  check_module(mod, "commit_workload")
  local found = find(self, mod)
  if found then return found end
  local hash = core.module_hash(mod)
  local one = { mod = mod, hash = hash, index = #self.workloads + 1 }
  self.workloads[one.index] = one
  self.by_hash[hash] = self.by_hash[hash] or {}
  table.insert(self.by_hash[hash], one)
  return one
end

local function key(self, workload, target, where)
  if type(workload) ~= "table" or self.workloads[workload.index] ~= workload then
    argument.fail(where .. ": the workload is none of this database; commit it first")
  end
  return workload.index .. "/" .. argument.string(target, where, "target")
end

--- Whether the workload was measured for the target.
function methods.has_measurement_record(self, workload, target)
  return self.measurements[key(self, workload, target, "has_measurement_record")] ~= nil
end

local function check_seconds(seconds, where)
  argument.table(seconds, where, "run_secs")
  for _, x in ipairs(seconds) do
    if type(x) ~= "number" or x ~= x or x < 0 then
      argument.fail(where .. ": seconds are numbers that are not negative")
    end
  end
end

--- Keeps the seconds of runs, a list. false when there is a measurement already, which stays.
function methods.commit_measurement_record(self, workload, target, seconds)
  local name = key(self, workload, target, "commit_measurement_record")
  check_seconds(seconds, "commit_measurement_record")
  if self.measurements[name] then return false end
  self.measurements[name] = table.move(seconds, 1, #seconds, 1, {})
  return true
end

--- The seconds of the runs; an empty list when the workload was not measured for the target.
function methods.get_measurement_record(self, workload, target)
  local kept = self.measurements[key(self, workload, target, "get_measurement_record")] or {}
  return table.move(kept, 1, #kept, 1, {})
end

local function mean(seconds)
  if #seconds == 0 then return UNKNOWN end
  local sum = 0
  for _, x in ipairs(seconds) do sum = sum + x end
  return sum / #seconds
end

--- Keeps a trace for the workload, with the seconds of its runs.
function methods.commit_tuning_record(self, workload, target, trace, seconds)
  local name = key(self, workload, target, "commit_tuning_record")
  seconds = seconds or {}
  check_seconds(seconds, "commit_tuning_record")
  local list = self.records[name] or {}
  self.records[name] = list
  list[#list + 1] = { trace = trace:copy(), run_secs = table.move(seconds, 1, #seconds, 1, {}),
    mean = mean(seconds), index = #list + 1 }
end

--- Whether there is a tuning record of the workload for the target.
function methods.has_tuning_record(self, workload, target)
  return self.records[key(self, workload, target, "has_tuning_record")] ~= nil
end

--- The k best tuning records, the fastest first: a list of { trace =, run_secs = }.
function methods.get_top_k(self, workload, target, k)
  local name = key(self, workload, target, "get_top_k")
  if math.type(k) ~= "integer" or k < 0 then
    argument.fail("get_top_k: top_k must be non-negative")
  end
  local list = table.move(self.records[name] or {}, 1, #(self.records[name] or {}), 1, {})
  table.sort(list, function(a, b)
    if a.mean ~= b.mean then return a.mean < b.mean end
    return a.index < b.index
  end)
  return table.move(list, 1, math.min(k, #list), 1, {})
end

-- ----------------------------------------------------------- trials of searches

--- Keeps what became of a candidate: { kind = "pipeline" or "trace", text =, cost = (none: it
-- failed), checked = (its results are right), verdict =, confidence =, seconds =, failure =,
-- note = }.
function methods.commit_trial(self, workload, target, trial)
  local name = key(self, workload, target, "commit_trial")
  argument.table(trial, "commit_trial", "trial")
  argument.string(trial.kind, "commit_trial", "kind")
  argument.string(trial.text, "commit_trial", "text")
  local copy = { at = os.time() }
  for field, value in pairs(trial) do copy[field] = value end
  local list = self.trials[name] or {}
  self.trials[name] = list
  list[#list + 1] = copy
  list[trial.kind .. "/" .. trial.text] = copy
end

--- The last trial of that candidate, or nil.
function methods.get_trial(self, workload, target, kind, text)
  local list = self.trials[key(self, workload, target, "get_trial")] or {}
  return list[argument.string(kind, "get_trial", "kind") .. "/"
    .. argument.string(text, "get_trial", "text")]
end

--- The trial of the least cost whose results are right, or nil.
function methods.best(self, workload, target, kind)
  local best
  kind = argument.string(kind or "pipeline", "best", "kind")
  for _, trial in ipairs(self.trials[key(self, workload, target, "best")] or {}) do
    if trial.kind == kind and trial.checked and trial.cost
      and not (best and best.cost <= trial.cost) then best = trial end
  end
  return best
end

--- How far a search of these settings (a text) got: { trials =, state = }, or nil.
function methods.get_search(self, workload, target, settings)
  local name = key(self, workload, target, "get_search")
  return self.searches[name .. "/" .. argument.string(settings, "get_search", "settings")]
end

--- Says how far a search got.
function methods.commit_search(self, workload, target, settings, row)
  local name = key(self, workload, target, "commit_search")
  self.searches[name .. "/" .. argument.string(settings, "commit_search", "settings")] =
    { trials = row.trials, state = row.state }
end

--- Does nothing: what is in memory goes with the database.
function methods.close() end
class.__close = methods.close

-- ---------------------------------------------------------------- constructor

local function open_file(options)
  local where = "pl.tune.database"
  argument.string(options.path, where, "path")
  if options.wait ~= nil and type(options.wait) ~= "number" then
    argument.fail(where .. ": wait: a number of seconds expected")
  end
  return require "perilune.tune.record.sqlite".open(options.path, options)
end

--- An empty database in memory; with `path` the one in that file, which SQLite keeps: it is
-- made if it is not there, unless it is `readonly`. `wait`: the seconds (10) that locks of other
-- processes are waited for. It has list, list_best, prune, export, import and merge as well.
function database.new(options)
  options = argument.options(options, "pl.tune.database", { "path", "readonly", "wait" })
  if options.path ~= nil then return open_file(options) end
  return setmetatable({ workloads = {}, by_hash = {}, measurements = {}, records = {}, trials = {},
    searches = {} }, class)
end

--- Whether a value is a database.
function database.is(x)
  return getmetatable(x) == class
    or package.loaded["perilune.tune.record.sqlite"] ~= nil
      and require "perilune.tune.record.sqlite".is(x)
end

return database
