-- One state that works on model after model holds no more in the end than in the beginning.
-- PERILUNE_SOAK says how many models.

local pl = require "perilune"
local model = require "perilune.zoo.model"
local default = require "perilune.pipelines.default"

local COUNT = tonumber(os.getenv "PERILUNE_SOAK") or 2000

-- Models of several shapes: what folds, what is merged, what stays.
local function write(path, k)
  local m = model.new { name = "soak" }
  m:initializer("w", "float32", { 4, 4 }, model.random(16, k))
  m:initializer("b", "float32", { 4 }, model.random(4, k))
  local x = m:input("x", "float32", { k % 2 == 0 and "N" or k, 4 })
  local y = x
  for i = 1, k do
    y = m:node("Add", { m:node("MatMul", { y, "w" }), "b" })
    y = i % 2 == 0 and m:node("Relu", { y }) or m:node("Identity", { y })
  end
  y = m:node("Add", { y, m:node("Add", { "b", "b" }) })
  m:output(y, "float32", { k % 2 == 0 and "N" or k, 4 })
  assert(m:save(path))
end

local function memory()
  collectgarbage()
  collectgarbage()
  return pl.memory() + collectgarbage "count" * 1024
end

describe("one state that works on many models", function()
  it("holds no more after all of them than after some", function()
    local stem, paths = os.tmpname(), {}
    os.remove(stem)
    for k = 1, 5 do
      paths[k] = ("%s.%d.onnx"):format(stem, k)
      write(paths[k], k)
    end
    local out, early = stem .. ".out.onnx", nil
    for i = 1, COUNT do
      local loaded = assert(pl.onnx.load(paths[i % #paths + 1]))
      local optimised = pl.with(pl.context { opt_level = 3 }, default, loaded)
      assert(pl.onnx.save(optimised, out))
      if i == COUNT // 10 then early = memory() end
    end
    local late = memory()
    for _, path in ipairs(paths) do os.remove(path) end
    os.remove(out)
    assert.is_true(late <= 1.05 * early, ("%d bytes, then %d"):format(early, late))
  end)

  it("holds no more of what scripts build, run and print", function()
    local kept = pl.op.tanh(pl.var("kept", "float32"))
    local function work(i)
      local x = pl.var("x", "Tensor[(4), float32]")
      local mod = pl.module { main = pl.func({ x }, pl.op.add(x * 1, i + 0.5)) }
      local pass = pl.function_pass { name = "Soak", run = pl.mutator {
        Call = function(_, rebuild) return rebuild() end } }
      local done = pl.sequential { pass, "SimplifyExpr", "FoldConstant" } (mod)
      assert(pl.parse(tostring(done)))
      assert(pl.eval(done, pl.tensor { 1.5, 2, 3, 4 }))
    end
    -- What floats is swept now and then: the most that is held counts, once tables have grown.
    local early, late = 0, 0
    for i = 1, COUNT do
      work(i)
      if i % (COUNT // 80) == 0 then
        if i > COUNT // 3 and i <= COUNT * 2 // 3 then early = math.max(early, memory()) end
        if i > COUNT - COUNT // 3 then late = math.max(late, memory()) end
      end
    end
    assert.equal("tanh", kept.op.name)
    assert.is_true(late <= 1.05 * early, ("%d bytes, then %d"):format(early, late))
  end)
end)
