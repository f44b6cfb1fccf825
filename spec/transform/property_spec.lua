-- What holds of every program: on graphs made at random, each pass, each pair
-- of passes and the default pipeline compute the same as before, changing
-- nothing when run again; a model written and read again is the same; what is
-- folded is what a run computes, bit for bit.
--
-- PERILUNE_GRAPHS says how many graphs, PERILUNE_SEED which come first. A seed
-- that fails is named, and its graph is kept as a file.

local pl = require "perilune"
local amount = require "spec.random.amount"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local graphs = amount("PERILUNE_GRAPHS", 10000)

-- What these make of a program is defined to be another one: other dtypes, approximations,
-- derivatives, functions with a continuation. PartialEvaluate takes programs whose shared values
-- are bound by lets. LowerTE takes operators that have a compute (spec/topi/random_spec.lua).
local other_results = { ToMixedPrecision = true, FastMath = true, FakeQuantizationToInteger = true,
  Gradient = true, FirstOrderGradient = true, LazyGradientInit = true, ToCPS = true, UnCPS = true,
  PartialEvaluate = true, LowerTE = true }

local passes = {}
for name in pairs(pl.passes) do
  if name ~= "PrintIR" and not other_results[name] then passes[#passes + 1] = name end
end

local pipelines = { "default" }
for _, a in ipairs(passes) do
  pipelines[#pipelines + 1] = a
  for _, b in ipairs(passes) do pipelines[#pipelines + 1] = a .. "," .. b end
end
local default = require "perilune.pipelines.default"
local fold_all = pl.passes.FoldConstant { fold = "all" }

-- The failing graph, to be looked at and run again.
local function report(seed, mod, what, diag)
  local path = os.tmpname() .. ".onnx"
  local _, err = pl.onnx.save(mod, path)
  error(("seed %d, %s: %s\nthe graph is in %s%s"):format(seed, what, tostring(diag), path,
    err and "; it could not be written: " .. tostring(err) or ""), 0)
end

-- Graphs that refuse every input.
local refused = 0

-- Weights that were folded sum up in another order. Each tenth graph meets NaN,
-- infinities and extremes as well.
local function same(seed, mod, after, what, rough)
  local ok, diag = pl.verify(after)
  if ok then
    local error, all = rough and 1e-4 or 0, seed % 10 == 0
    local none
    ok, diag, none = compare(mod, after, { seed = seed, rounds = all and 6 or 1,
      dims = not all and { N = 1 + seed % 3 } or nil, rtol = error, atol = error, scaled = rough })
    refused = refused + (none and 1 or 0)
  end
  if not ok then report(seed, mod, what, diag) end
end

local function try_pipelines(seed, mod, rough)
  local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
  for i = 0, 3 do
    local text = pipelines[(seed * 4 + i) % #pipelines + 1]
    local pipeline = text == "default" and default or pl.pipeline(text)
    local ok, after = pcall(pipeline, mod)
    if not ok then report(seed, mod, text, after) end
    same(seed, mod, after, text, rough)
  end
  local final = default(mod)
  same(seed, mod, final, "default", rough)
  if default(final) ~= final then report(seed, mod, "default, twice", "changed again") end
end

-- Of a function without parameters each result, computed by a run, and how many
-- of them folding made constants.
local function try_folding(seed, mod)
  local ran = table.pack(pl.eval(mod))
  local folded = fold_all(mod).main.body
  local constants = 0
  for i, field in ipairs(folded.fields) do
    if field.kind == "Constant" then
      constants = constants + 1
      if not ran[i]:equal(field.data) then
        report(seed, mod, "folded", ("result %d differs from the run's"):format(i))
      end
    end
  end
  return constants, #folded.fields
end

-- Calls f(seed) for every `step`th.
local function for_seeds(step, f)
  for seed = first, first + graphs - 1, step do f(seed) end
end

describe("on graphs made at random", function()
  it("passes keep what is computed, and the default pipeline ends", function()
    for_seeds(1, function(seed) try_pipelines(seed, random_graph(seed)) end)
    assert.is_true(refused <= 1 + graphs / 100, refused)
  end)

  -- At an opset that has all operators: what an older one makes of others rounds otherwise.
  it("a model written and read again computes the same", function()
    for_seeds(4, function(seed)
      local newest = { ["ai.onnx"] = pl.onnx.opsets.newest }
      local mod = random_graph(seed):with_attrs { opset_import = newest }
      local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(mod))))
      same(seed, mod, again, "written and read")
    end)
  end)

  it("what is folded is what a run computes, bit for bit", function()
    local constants, results = 0, 0
    for_seeds(4, function(seed)
      local c, n = try_folding(seed, (random_graph(seed, true)))
      constants, results = constants + c, results + n
    end)
    assert.is_true(constants > results * 0.5) -- loops stay as they are
  end)

  it("a pass that computes something else is found", function()
    local wrong = pl.function_pass { name = "wrong", run = pl.mutator { Call = function(call)
      if call.op.name == "tanh" then return pl.op.sigmoid(call.args[1]) end
    end } }
    local found = 0
    for seed = 1, 100 do
      local mod = random_graph(seed)
      if not pl.check(mod, wrong(mod), { rounds = 1 }) then found = found + 1 end
    end
    assert.is_true(found > 5)
  end)

  it("the same seed makes the same graph", function()
    assert.equal(tostring(random_graph(first)), tostring(random_graph(first)))
  end)
end)
