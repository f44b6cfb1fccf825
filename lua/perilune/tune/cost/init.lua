--- pl.tune.cost_model: what a program will cost, without running it.
--
--     local model = pl.tune.cost_model { kind = "trees", samples = { { mod = m, cost = 0.8 } } }
--     print(model:predict(candidate))
--     local roofline = pl.tune.cost_model "roofline"       -- seconds, needs no samples
--     print(roofline:predict(mod))
--     pl.tune.query_cost_model(candidates, { model = model })   -- sets their perf
--     print(pl.tune.predict(candidate, { base = program, database = db }))
--
-- "roofline" is analytic; "trees" (gradient-boosted) and "ridge" (regression) learn from samples,
-- and so does "xgboost", trees of a library that is opened where it is installed.
-- These fit the logarithm of the cost; of samples with a `base` they see by how much the program's
-- features differ from those of the base, so that what is learned of one program holds for
-- others that are like it.

local argument = require "perilune.argument"
local core = require "perilune.core"
local quality = require "perilune.tune.cost.quality"
core.internal()

local cost = {}

local methods = {}
local class = { __name = "cost model", __index = methods }

local function is_loop_level(mod) return require "perilune.tir.check".is_loop_level(mod) end

local function check_module(x, where, what)
  if argument.kind_of(x) ~= "Module" then
    argument.fail(("%s: %s: a module expected, got %s"):format(where, what, argument.kind_of(x)))
  end
  return x
end

-- -------------------------------------------------------------------- features

--- What learned models see of a module: a list of numbers, of one length for programs of operators
-- and of another one for programs of the loop level.
function cost.features(mod)
  check_module(mod, "pl.tune.features", "mod")
  local of = is_loop_level(mod) and "perilune.tune.cost.program_features"
    or "perilune.tune.cost.model_features"
  return require(of)(mod)
end

-- Those of a program; of one with a base how they differ from the base's.
local function features_of(self, mod, base)
  local list = cost.features(mod)
  if not base then return list end
  local known = self.bases[base] or cost.features(check_module(base, "cost model", "base"))
  self.bases[base] = known
  if #known ~= #list then
    argument.fail "cost model: base: a program of the same level expected"
  end
  for i, x in ipairs(known) do list[i] = list[i] - x end
  return list
end

-- --------------------------------------------------------------------- learning

local fits = {
  trees = function(...) return require "perilune.tune.cost.boosted_trees".fit(...) end,
  ridge = function(...) return require "perilune.tune.cost.ridge".fit(...) end,
  xgboost = function(...) return require "perilune.tune.cost.xgboost".fit(...) end,
}

-- Fewer samples than these tell nothing.
local LEAST_SAMPLES = 4

local function check_sample(sample, where)
  argument.table(sample, where, "a sample")
  check_module(sample.mod, where, "a sample's mod")
  local x = sample.cost
  if type(x) ~= "number" or not (x > 0 and x < math.huge) then
    argument.fail(where .. ": a sample's cost is a positive number")
  end
  return sample
end

--- Learns from more samples: a list of { mod =, cost =, base = }.
function methods.update(self, samples)
  local where = "model:update"
  if self.kind == "roofline" then argument.fail(where .. ": a roofline learns nothing") end
  for _, sample in ipairs(argument.table(samples, where, "samples")) do
    check_sample(sample, where)
    local row = features_of(self, sample.mod, sample.base)
    if self.rows[1] and #self.rows[1] ~= #row then
      argument.fail(where .. ": samples are all of operators or all of the loop level")
    end
    self.rows[#self.rows + 1] = row
    self.targets[#self.targets + 1] = math.log(sample.cost)
  end
  self.fitted = nil
end

local function fitted(self)
  if #self.rows < LEAST_SAMPLES then
    argument.fail(("the cost model has %d samples, and %d are needed"):format(#self.rows,
      LEAST_SAMPLES))
  end
  self.fitted = self.fitted or fits[self.kind](self.rows, self.targets, self.library)
  return self.fitted
end

--- The cost that is expected of a module, in the unit of the samples; of a roofline seconds of the
-- evaluator on one thread. `base`: what the cost is relative to, if the samples had one.
function methods.predict(self, mod, base)
  check_module(mod, "model:predict", "mod")
  if self.kind ~= "roofline" then
    local row = features_of(self, mod, base)
    local model = fitted(self)
    if #row ~= #self.rows[1] then
      argument.fail "model:predict: the samples are programs of the other level"
    end
    return math.exp(model:predict(row))
  end
  if is_loop_level(mod) then
    argument.fail "model:predict: a roofline is of programs of operators"
  end
  local limits = self.machine or require "perilune.tune.cost.machine".limits()
  return require "perilune.tune.cost.roofline".seconds(mod, limits)
end

--- How well the model orders samples that it did not learn from: { rank_correlation =, recall =
-- (of the k best), k =, n = }. `k`: 10.
function methods.evaluate(self, samples, k)
  local predicted, measured = {}, {}
  for i, sample in ipairs(argument.table(samples, "model:evaluate", "samples")) do
    check_sample(sample, "model:evaluate")
    predicted[i], measured[i] = self:predict(sample.mod, sample.base), sample.cost
  end
  k = math.min(k or 10, #measured)
  return { rank_correlation = quality.rank_correlation(predicted, measured), k = k,
    recall = quality.recall(predicted, measured, k), n = #measured }
end

-- ------------------------------------------------------------------ constructor

local kinds = { roofline = true, trees = true, ridge = true, xgboost = true }

local function check_kind(kind, where)
  if not kinds[argument.string(kind, where, "kind")] then
    argument.fail(("%s: there is no kind '%s'%s"):format(where, kind, argument.near(kind, kinds)))
  end
  return kind
end

local function check_machine(machine, where)
  if machine == nil then return nil end
  argument.options(machine, where, { "flops", "bandwidth", "overhead" })
  for _, name in ipairs { "flops", "bandwidth", "overhead" } do
    local x = machine[name]
    if type(x) ~= "number" or x ~= x or x < 0 or (x == 0 and name ~= "overhead") then
      argument.fail(("%s: machine: %s: a positive number expected"):format(where, name))
    end
  end
  return machine
end

--- A model of { kind = "trees", "ridge", "xgboost" or "roofline", samples =, machine = (of a
-- roofline: { flops =, bandwidth =, overhead = }, otherwise measured), library = (the file of
-- XGBoost's) }, or of a kind.
function cost.new(options)
  local where = "pl.tune.cost_model"
  if type(options) == "string" then options = { kind = options } end
  options = argument.options(options, where, { "kind", "samples", "machine", "library" })
  if options.library ~= nil then argument.string(options.library, where, "library") end
  local self = setmetatable({ kind = check_kind(options.kind or "trees", where), rows = {},
    library = options.library,
    targets = {}, bases = setmetatable({}, { __mode = "k" }),
    machine = check_machine(options.machine, where) }, class)
  if options.samples ~= nil then self:update(options.samples) end
  return self
end

--- Whether a value is a cost model.
function cost.is(x) return getmetatable(x) == class end

--- Sets the perf of candidates that have none to what a model predicts of them. Options: model;
-- base.
function cost.query(list, options)
  local where, trace = "pl.tune.query_cost_model", require "perilune.tune.trace"
  options = argument.options(options, where, { "model", "base" })
  if not cost.is(options.model) then
    argument.fail(where .. ": model: what pl.tune.cost_model makes is expected")
  end
  for i, one in ipairs(argument.table(list, where, "candidates")) do
    if not trace.is(one) then
      argument.fail(("%s: candidate %d is a %s, no trace"):format(where, i, argument.kind_of(one)))
    end
    if one.perf == trace.UNMEASURED then
      one:set_perf(options.model:predict(one.out_mod, options.base))
    end
  end
end

-- ---------------------------------------------------------------------- records

local function distance(a, b)
  if #a ~= #b then return math.huge end
  local sum = 0
  for i, x in ipairs(a) do sum = sum + (x - b[i]) ^ 2 end
  return math.sqrt(sum)
end

-- The workload of those in the database whose features are nearest to a program's.
local function nearest(base, list)
  local wanted, best, least = cost.features(base), nil, math.huge
  for _, one in ipairs(list) do
    local ok, features = pcall(cost.features, one.mod)
    local far = ok and distance(wanted, features) or math.huge
    if far < least then best, least = one, far end
  end
  return best, least
end

local function samples_of(workload, kinds_of_space)
  local spaces, list = require "perilune.tune.search.spaces", {}
  for _, trial in ipairs(workload.trials) do
    local ok, mod = pcall(spaces.apply, workload.mod, trial.text, kinds_of_space)
    if ok then list[#list + 1] = { mod = mod, cost = trial.cost, base = workload.mod } end
  end
  return list
end

--- A model that has learned from the records of the workload that is nearest to a program, and
-- { distance =, samples = }. Options: base (the program), database, target, space ("schedule"
-- or "pipeline", by the program), kind ("trees").
function cost.from_records(options)
  local where = "pl.tune.predict"
  options = argument.options(options, where, { "base", "database", "target", "space", "kind" })
  local base = check_module(options.base, where, "base")
  local space = options.space or (is_loop_level(base) and "schedule" or "pipeline")
  local names, seen = require "perilune.tune.search.spaces".names(space, where)
  if seen.knobs then argument.fail(where .. ": space: records of knobs have no functions") end
  local workloads = require "perilune.tune.record.trials".of(options.database, base,
    options.target, space)
  local workload, far = nearest(base, workloads)
  if not workload then argument.fail(where .. ": the database has no such records") end
  local samples = samples_of(workload, names)
  return cost.new { kind = options.kind, samples = samples }, { distance = far,
    samples = #samples }
end

--- The cost of a candidate relative to that of `base`, by the records of the nearest workload; and
-- what from_records tells.
function cost.predict(mod, options)
  check_module(mod, "pl.tune.predict", "mod")
  local model, about = cost.from_records(options)
  return model:predict(mod, options.base), about
end

return cost
