--- Metrics: what is minimised, by name or as a function, with a weight among several.
--
--     "nodes"                                   -- pl.tune.measure.nodes
--     function(mod) return #mod.names end
--     { "bytes", weight = 0.1 }, { f, name = "functions" }
--
-- "time" stays a name here: a search compares programs, a tuning pass measures each by itself.

local argument = require "perilune.argument"
local functions = require "perilune.tune.functions"
require "perilune.core".internal() -- errors name the scripts of others

local metric = {}

local known = { time = true, nodes = true, flops = true, bytes = true, peak_memory = true,
  energy = true }

local measures = {}

-- The options of measures that run what a builder makes.
local run_options = { peak_memory = { "builder", "runner" }, energy = { "builder" } }

--- The measure of a name; without tools (builder =, runner =) the same function each time.
function metric.measure(name, tools)
  local measure = require "perilune.tune.measure"
  if tools and run_options[name] then
    local own = {}
    for _, key in ipairs(run_options[name]) do own[key] = tools[key] end
    return measure[name](own)
  end
  measures[name] = measures[name] or (name == "time" and measure.run()
    or name == "peak_memory" and measure.peak_memory()
    or name == "energy" and measure.energy() or measure[name])
  return measures[name]
end

-- The function of a name, but of "time".
local function named(name, where, tools)
  if not known[name] then
    argument.fail(("%s: there is no metric '%s'%s"):format(where, name, argument.near(name, known)))
  end
  return name == "time" and name or metric.measure(name, tools)
end

--- { measure = a function or "time", weight =, name = } of a name, a function or a table
-- { either of them, weight = 1, name = }; `tools`: the builder, and
-- the runner, of programs whose memory or energy is measured (the evaluator).
function metric.new(spec, where, tools)
  if type(spec) ~= "table" or getmetatable(spec) then spec = { spec } end
  local what, weight = spec[1], spec.weight or 1
  local name = spec.name or type(what) == "string" and what or "function"
  if not (type(weight) == "number" and weight > 0 and weight < math.huge) then
    argument.fail(where .. ": a weight is a positive number")
  end
  argument.string(name, where, "the name of a metric")
  if type(what) == "string" then
    what = named(what, where, tools)
  else
    argument.callable(what, where, "a metric")
  end
  return { measure = what, weight = weight, name = name,
    identity = name == "function" and functions.identity(what) or nil }
end

-- Functions, names and { metric, weight = } are one metric.
local function is_one(spec)
  return type(spec) ~= "table" or getmetatable(spec) ~= nil or spec.weight ~= nil
    or spec.name ~= nil
end

--- Metrics of one or of a list; their names differ.
function metric.list(specs, where, tools)
  if is_one(specs) then return { metric.new(specs, where, tools) } end
  local list, seen = {}, {}
  for i, spec in ipairs(specs) do
    local one = metric.new(spec, where, tools)
    if seen[one.name] then
      argument.fail(("%s: two metrics are called '%s'; give them names"):format(where, one.name))
    end
    list[i], seen[one.name] = one, true
  end
  if #list == 0 then argument.fail(where .. ": the list is empty") end
  return list
end

--- The names of metrics and their weights. Functions without a name are told by what they are, so
-- that records of one are not taken for those of another.
function metric.text(list)
  local parts = {}
  for i, one in ipairs(list) do
    local weight = one.weight ~= 1 and (" x %g"):format(one.weight) or ""
    parts[i] = one.name .. (one.identity and " " .. one.identity or "") .. weight
  end
  return table.concat(parts, " + ")
end

-- Those that are the same on every machine.
local counted = { nodes = true, flops = true, bytes = true }

--- What records of costs are kept for: the metrics, what measures them, if it is told, and the
-- processor, where one of them may depend on it.
function metric.target(list, builder)
  local text, timed = metric.text(list), false
  if builder then text = text .. ": " .. builder end
  for _, one in ipairs(list) do timed = timed or not counted[one.name] end
  return timed and ("%s on %s"):format(text, require "perilune.tune.processor".text()) or text
end

--- A value relative to that of the base, which may be 0.
function metric.relative(x, base)
  if base == 0 then return x == 0 and 1 or 1 + x end
  return x / base
end

return metric
