-- lua/types/perilune.lua, which editors read, says what there is: no name is
-- missing from it, and it promises none that is not there.

local pl = require "perilune"

local path = "lua/types/perilune.lua"
local file = assert(io.open(path))
local text = file:read "a"
file:close()
local declared = dofile(path)

-- The fields that a class lists in its comment.
local function fields(class)
  local names = {}
  local block = text:match("%-%-%-@class " .. class:gsub("%.", "%%.") .. "\n(.-)\nlocal ")
  for name in block:gmatch "%-%-%-@field ([%w_]+)" do names[name] = true end
  return names
end

local function compare(what, actual, documented, listed)
  for name in pairs(actual) do
    assert(documented[name] ~= nil or listed[name], what .. "." .. name .. " is not described")
  end
  for name in pairs(documented) do
    assert(actual[name] ~= nil, what .. "." .. name .. " is described, and is not there")
  end
  for name in pairs(listed) do
    assert(actual[name] ~= nil, what .. "." .. name .. " is described, and is not there")
  end
end

-- What the example of a rule is given.
local function generator()
  local given
  local function example(g)
    given = g
    return g.op.abs(g:var("float32", { 1 }))
  end
  pl.rules { { "abs(?x) => ?x", example = example } }:check()
  return given
end

-- A tensor, its operation, a schedule of it and its stage.
local function tensor_expression()
  local tensor = pl.te.compute({ 4 }, function(i) return i end, "T")
  local schedule = pl.te.create_schedule(tensor.op)
  return tensor, tensor.op, schedule, schedule[tensor]
end

describe("the types for editors", function()
  it("have every name of the library", function()
    compare("pl", pl, declared, fields "perilune")
    for name, part in pairs(declared) do
      if type(part) == "table" then compare("pl." .. name, pl[name], part, {}) end
    end
  end)

  it("have parts for every table of functions", function()
    local tables = fields "perilune" -- tables of names that users make or look up
    for name, part in pairs(pl) do
      if type(part) == "table" and not tables[name] then
        assert(type(declared[name]) == "table", "pl." .. name .. " has no part of its own")
      end
    end
  end)

  it("promise no method that is not there", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local objects = {
      Node = x, Module = pl.module {}, Tensor = pl.tensor { 1 }, Context = pl.context {},
      Builder = pl.builder(), Type = pl.type "float32",
      Timing = pl.instruments.timing(), Statistics = pl.instruments.statistics(),
      Predicate = pl.predicate "verify", InstrumentConstructor = pl.instruments.timing,
      Rules = pl.rules { "add(?x, 0) => ?x" }, ProgramGenerator = generator(),
      Profile = pl.profile(), Analyzer = pl.arith.Analyzer(),
      DFPattern = pl.dataflow_pattern.wildcard(),
      DFPatternCallback = pl.dataflow_pattern.DFPatternCallback {
        pattern = pl.dataflow_pattern.wildcard(), callback = print },
      Choice = pl.tune.choice {}, Knob = pl.tune.knob("k", { pl.tune.choice {} }),
      Trace = pl.tune.trace(pl.module {}), Tracing = pl.tune.tracing(),
      Database = pl.tune.database(), RecordFile = pl.tune.database { path = ":memory:" },
      TuneBuilder = pl.tune.builder(), TuneRunner = pl.tune.runner(), Queue = pl.tune.queue(),
      CostModel = pl.tune.cost_model(), CallCosts = pl.tune.call_costs(),
      Built = pl.build(assert(pl.tir.parse(
        "@T.prim_func\ndef f(A: T.Buffer((1,), \"int32\")):\n    A[0] = 1"))),
    }
    objects.BlockSchedule = pl.tir.Schedule(assert(pl.tir.parse(
      "@T.prim_func\ndef f(A: T.Buffer((1,), \"int32\")):\n    A[0] = 1")))
    objects.BlockTrace = objects.BlockSchedule.trace
    objects.TeTensor, objects.TeOperation, objects.Schedule, objects.Stage = tensor_expression()
    for class, name in text:gmatch "\nfunction (%u%w*):([%w_]+)" do
      assert(objects[class], class .. " is not among the objects of this spec")
      assert(objects[class][name], class .. ":" .. name .. " is not there")
    end
  end)
end)
