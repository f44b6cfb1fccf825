-- Whatever is exported can be read again: random modules, and what passes between
-- forms make of them, are refused or written as a model that is read.
-- PERILUNE_PROGRAMS, PERILUNE_SEED.

local pl = require "perilune"
local random_graph = require "spec.random.graph"
local random_relay = require "spec.random.relay"

local count = tonumber(os.getenv "PERILUNE_PROGRAMS" or 60)
local first = tonumber(os.getenv "PERILUNE_SEED" or 1)

local FORMS = { "ToANormalForm", "ToGraphNormalForm", "FuseOps", "LambdaLift" }

-- The module and what passes make of it; some refuse some modules.
local function forms_of(module)
  local list = { module }
  for _, name in ipairs(FORMS) do
    local done, other = pcall(pl.passes[name](), module)
    if done then list[#list + 1] = other end
  end
  return list
end

-- How many of the forms are written; each of these is read.
local function count_read(module)
  local n = 0
  for _, form in ipairs(forms_of(module)) do
    local bytes, reason = pl.onnx.tostring(form)
    if bytes then
      assert(pl.onnx.parse(bytes))
      n = n + 1
    else
      assert.equal("unsupported", reason.code)
    end
  end
  return n
end

describe("what is exported", function()
  it("is read again: random graphs", function()
    for seed = first, first + count - 1 do assert.is_true(count_read(random_graph(seed)) > 0) end
  end)

  it("is read again, or refused: random programs of Relay", function()
    for seed = first, first + count - 1 do count_read(random_relay(seed)) end
  end)

  it("has no free variables", function()
    local x, z = pl.var("x", "Tensor[(2), float32]"), pl.var("z", "Tensor[(2), float32]")
    local made, module = pcall(pl.module, { main = pl.func({ x }, x + z) })
    assert.is_nil(made and pl.onnx.tostring(module) or nil)
  end)

  -- Seconds of writing a model of n equal constants that became one.
  local function seconds_of_merged(n)
    local x = pl.var("x", "Tensor[(4), float32]")
    local body = x
    for i = 1, n do body = i % 2 == 0 and pl.op.tanh(body) or pl.op.add(body, 1) end
    local mod = assert(pl.onnx.parse(pl.onnx.tostring(pl.module { main = pl.func({ x }, body) })))
    mod = pl.passes.EliminateCommonSubexpr()(mod)
    local best = math.huge
    for _ = 1, 3 do
      local start = os.clock()
      assert(pl.onnx.tostring(mod))
      best = math.min(best, os.clock() - start)
    end
    return best
  end

  it("takes time that is linear in the constants that were merged", function()
    assert.is_true(seconds_of_merged(32000) < 20 * seconds_of_merged(4000) + 0.02)
  end)
end)
