-- EliminateBroadcast: a broadcast that a later elementwise operator does itself is left
-- out.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls = simplified.module, simplified.calls

local pass = pl.passes.EliminateBroadcast()

-- The result is valid, has the same type, computes the same, is not larger, and is final.
local function eliminate(vars, body, dims)
  local mod = module(vars, body)
  local out = pass(mod)
  assert(pl.verify(out))
  assert.equal(mod.main.body.type, out.main.body.type)
  assert(pl.check(mod, out, { dims = dims or { N = 3, S = 2 } }))
  assert.is_true(select(2, calls(out):gsub("%S+", "")) <= select(2, calls(mod):gsub("%S+", "")))
  assert.equal(out, pass(out))
  return out, mod
end

local function keeps(vars, body, dims)
  local out, mod = eliminate(vars, body, dims)
  assert.equal(mod, out)
end

local scores = var("scores", { "N", 4, "S", "S" })
local mask = var("mask", { "S", "S" }, "bool")
local flags = var("flags", { "N", 1, 1, "S" }, "bool")
local x, x4 = var("x", { "S" }), var("x4", { 4 })

local function shape_of_scores(first)
  local extents = op.shape_of(scores, { dtype = "int64" })
  if not first then return extents end
  return op.concatenate { ints(first), op.strided_slice(extents, ints(1), ints(4)) }
end

local function masked(condition)
  return op.add(scores, op.where(condition, pl.const(0.0), pl.const(-1e9)))
end

describe("EliminateBroadcast", function()
  it("looks through elementwise operators", function()
    local out = eliminate({ scores, flags },
      masked(op.logical_not(op.broadcast_to(flags, shape_of_scores()))))
    assert.equal("logical_not where add", calls(out))
  end)

  it("leaves out axes in front", function()
    local wide = op.expand_dims(mask, ints(0, 1))
    assert.equal("where add", calls(eliminate({ scores, mask }, masked(wide))))
    local shape = op.concatenate { ints(1, 1), op.shape_of(mask, { dtype = "int64" }) }
    assert.equal("where add", calls(eliminate({ scores, mask }, masked(op.reshape(mask, shape)))))
  end)

  it("keeps the axes that are not in front", function()
    local column = op.expand_dims(x, ints(0, 1, 3))
    local out = eliminate({ scores, x }, op.add(scores, op.negative(column)))
    assert.equal("expand_dims negative add", calls(out))
    for node in out.main:nodes() do
      if node.kind == "Call" and node.op == op.expand_dims then
        assert.same({ "S", 1 }, node.type.shape)
      end
    end
  end)

  it("keeps axes of extent 1 that the operand has itself", function()
    local row, wide = var("row", { 1, 4 }), var("wide", { 1, 1, 4, 4 })
    local column = op.expand_dims(row, ints(2))
    local product = op.multiply(column, x4)
    local out = eliminate({ row, wide, x4 }, op.multiply(wide, op.expand_dims(product, ints(1))))
    assert.equal("expand_dims multiply multiply", calls(out))
    keeps({ row, wide, x4 }, op.multiply(wide, product))
    keeps({ row, wide }, op.multiply(wide, op.negative(op.expand_dims(row, ints(-1)))))
  end)

  it("leaves out one broadcast of another", function()
    local scalar, row = var("scalar", {}), var("row", { 1, 4 })
    local twice = op.expand_dims(op.expand_dims(scalar, ints(0)), ints(1))
    assert.equal("add", calls(eliminate({ scalar, row }, op.add(row, twice))))
  end)

  it("leaves out a tensor of one value", function()
    local fill = op.constant_of_shape(shape_of_scores(1),
      { value = pl.tensor({ 2 }, "float32") })
    local out = eliminate({ scores, flags },
      op.add(scores, op.where(flags, fill, pl.const(-1e9))))
    assert.equal("where add", calls(out))
  end)

  it("is not stopped by users in branches that follow the same rule", function()
    local wide = op.broadcast_to(x, op.shape_of(scores, { dtype = "int64" }))
    local c = var("c", {}, "bool")
    local body = pl.if_(c, op.add(scores, wide), op.multiply(op.negative(wide), scores))
    local out = eliminate({ scores, x, c }, body)
    assert.equal(nil, calls(out):find "broadcast_to")
  end)

  it("leaves one operand of two as it is where the shape needs it", function()
    local a, b = var("a", { 1, 4 }), var("b", { 1, 1 })
    local wide_a, wide_b = op.broadcast_to(a, ints(3, 4)), op.broadcast_to(b, ints(3, 4))
    local out = eliminate({ a, b }, op.tanh(op.add(op.exp(wide_a), op.exp(wide_b))))
    assert.equal("exp broadcast_to exp add tanh", calls(out))
  end)

  it("keeps what another user needs", function()
    local wide = op.broadcast_to(flags, shape_of_scores())
    keeps({ scores, flags }, pl.tuple { masked(wide), wide })
    keeps({ scores, flags }, pl.tuple { masked(wide), op.transpose(wide) })
    local y = var("y", { "N", "S" })
    keeps({ y, x }, op.nn.softmax(op.exp(op.broadcast_to(x, op.shape_of(y, { dtype = "int64" })))))
  end)

  it("keeps a broadcast whose need is not known", function()
    local y, z = var("y", { "N", 1 }), var("z", { "M", 4 })
    local wide = op.broadcast_to(y, ints(1, 4))
    keeps({ y, z }, op.multiply(op.exp(wide), z), { N = 3, M = 3 })
    local unknown = pl.var("u", "Tensor[(?, 4), float32]")
    keeps({ y, unknown }, op.multiply(op.exp(wide), unknown), { N = 1 })
  end)

  it("keeps what stands between a cast to a half float and its users", function()
    local h = var("h", { "N", 4 }, "float16")
    local function sum(dtype)
      return op.add(h, op.cast(op.expand_dims(op.cast(x4, { dtype = dtype }), ints(0)),
        { dtype = "float16" }))
    end
    keeps({ h, x4 }, op.add(h, op.expand_dims(op.cast(x4, { dtype = "float16" }), ints(0))))
    assert.equal("cast cast add", calls(eliminate({ h, x4 }, sum "float64")))
  end)

  it("keeps a broadcast of a slope, which has a shape of its own", function()
    local slope = op.broadcast_to(var("slope", { 1, 4 }), ints(3, 4))
    local y = var("y", { 3, 4 })
    keeps({ y, slope.args[1] }, op.nn.prelu(y, slope))
  end)

  it("is right for random programs", function()
    for seed = 1, 400 do
      local random = seed * 7919
      local function below(n)
        random = (random * 1103515245 + 12345) & 0x7fffffff
        return (random >> 8) % n
      end
      local full = { 2, 3, 2 }
      local vars, values = {}, {}
      for i = 1, 3 do
        local shape, first = {}, 1 + below(3)
        for axis = first, 3 do shape[#shape + 1] = below(2) == 0 and 1 or full[axis] end
        vars[i] = var("v" .. i, shape)
        values[i] = vars[i]
      end
      vars[4], vars[5] = var("v4", full), var("v5", { 3 })
      values[4] = vars[4]
      for _ = 1, 4 + below(8) do
        local a, b = values[1 + below(#values)], values[1 + below(#values)]
        local how = below(6)
        local rank = #a.type.shape
        local y
        if how == 0 then y = op.broadcast_to(a, ints(table.unpack(full)))
        elseif how == 1 then y = op.negative(a)
        elseif how == 2 and rank < 3 then y = op.expand_dims(a, ints(0))
        elseif how == 3 then y = op.expand_dims(vars[5], ints(0, 2))
        elseif how == 4 then
          y = op.where(op.less(a, b), b, op.constant_of_shape(ints(table.unpack(full))))
        else y = op.subtract(a, b) end
        values[#values + 1] = y
      end
      local results = { values[#values], op.add(values[#values - 1], vars[4]) }
      local ok, reason = pcall(eliminate, vars, pl.tuple(results))
      assert.is_true(ok, ("seed %d: %s"):format(seed, reason))
    end
  end)
end)
