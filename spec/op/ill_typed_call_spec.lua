-- Calls of every operator as no checker would let them pass: with too few
-- operands, of ranks and dtypes that do not fit, declared to be of types that
-- they cannot have. Passes and evaluation refuse, or compute what the model does;
-- none reads what is not there. PERILUNE_CALLS, PERILUNE_SEED.

local pl = require "perilune"
local random_call = require "spec.random.call"

local count = tonumber(os.getenv "PERILUNE_CALLS") or 1500
local first = tonumber(os.getenv "PERILUNE_SEED") or 1

local pipelines = { pl.pipeline "SimplifyExpr", pl.pipeline "FoldConstant{fold=\"all\"}",
  pl.pipeline("SimplifyExpr,FoldConstant,EliminateCommonSubexpr,FoldBatchNorm,FoldConvBias,"
    .. "FoldExplicitPadding,MatMulAddToGemm,DeadCodeElimination") }

local difference = require "perilune.check.tensor_difference"

local function report(seed, what, bytes)
  local path = os.tmpname() .. ".onnx"
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  error(("seed %d: %s\nthe model is in %s"):format(seed, what, path), 0)
end

local function run(mod, inputs)
  local results = table.pack(pcall(pl.eval, mod, table.unpack(inputs)))
  if not results[1] then return nil, results[2] end
  return results
end

-- Sums may be made in another order where weights are folded.
local tolerance = { rtol = 1e-4, atol = 1e-4, scaled = true }

local function compare(seed, bytes, mod, inputs, want, pipeline)
  local ok, after = pcall(pipeline, mod)
  if not ok then report(seed, tostring(after), bytes) end
  local got, why = run(after, inputs)
  if not want then return end
  if not got then report(seed, "only the optimised model refuses: " .. tostring(why), bytes) end
  for i = 2, want.n do
    local how = difference(got[i], want[i], tolerance)
    if how then report(seed, "the optimised model differs" .. how, bytes) end
  end
end

-- Compares what passes make of one model; true if the model computes.
local function try(seed)
  local bytes, inputs = random_call(seed)
  local mod = pl.onnx.parse(bytes)
  local want = mod and run(mod, inputs)
  for _, pipeline in ipairs(mod and pipelines or {}) do
    compare(seed, bytes, mod, inputs, want, pipeline)
  end
  return want ~= nil
end

describe("a call that may be ill-typed", function()
  it("keeps its type where a rule or another operand contradicts it", function()
    for _, seed in ipairs { 55503, 135077, 319316, 543009 } do try(seed) end
  end)

  it("is refused, or computes what it did", function()
    local computed = 0
    for seed = first, first + count - 1 do
      computed = computed + (try(seed) and 1 or 0)
    end
    assert.is_true(computed > count // 20, ("only %d of %d models compute"):format(computed, count))
  end)
end)
