-- SimplifyExpr on axes that go and come back, and on positions taken from one.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op

local var, ints = simplified.var, simplified.ints
local module, calls, keeps = simplified.module, simplified.calls, simplified.keeps

-- The result is valid, computes the same, and is final.
local function simplify(vars, body)
  local mod, pass = module(vars, body), pl.passes.SimplifyExpr()
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 } }))
  assert.equal(out, pass(out))
  return out
end

local x = var("x", { "N", 4, 5 })
local v = var("v", { 3 }, "int64")

local function take(y, i, axis) return op.take(y, pl.const(i), { axis = axis }) end

describe("An axis that is taken away and put back", function()
  it("was never taken away", function()
    for _, axis in ipairs { 1, -2 } do
      local out = simplify({ x }, op.expand_dims(take(x, 2, axis), ints(1)))
      assert.equal("take", calls(out))
      assert.same({ 2 }, out.main.body.args[2].data:to_table())
      assert.same({ "N", 1, 5 }, out.main.body.type.shape)
    end
  end)

  it("stays so when it is put elsewhere, or the rest is used too", function()
    keeps({ x }, op.expand_dims(take(x, 2, 1), ints(0)))
    local y = take(x, 2, 1)
    keeps({ x }, pl.tuple(op.expand_dims(y, ints(1)), y))
    local i = pl.var("i", "int64")
    keeps({ x, i }, op.expand_dims(op.take(x, i, { axis = 1 }), ints(1)))
  end)

  it("of a reduction is kept by it", function()
    local out = simplify({ x }, op.expand_dims(op.sum(x, ints(1), { keepdims = 0 }), ints(1)))
    assert.equal("sum", calls(out))
    assert.equal(1, out.main.body.attrs.keepdims)
    local largest = op.max(x, { keepdims = 0, axes = { -1, 1 } })
    assert.equal("max", calls(simplify({ x }, op.reshape(largest, ints(0, 1, 1)))))
    assert.equal("min", calls(simplify({ v }, op.reshape(op.min(v, { keepdims = 0 }), ints(1)))))
    assert.equal("argmax", calls(simplify({ x },
      op.expand_dims(op.argmax(x, { axis = 2, keepdims = 0 }), ints(2)))))
  end)

  it("of a reduction stays away when another comes", function()
    keeps({ x }, op.expand_dims(op.sum(x, ints(1), { keepdims = 0 }), ints(0)))
    local sum = op.sum(x, ints(1), { keepdims = 0 })
    keeps({ x }, pl.tuple(op.expand_dims(sum, ints(1)), sum))
    local u = var("u", { "?", 4 })
    keeps({ u }, op.expand_dims(op.sum(u, ints(1), { keepdims = 0 }), ints(1)))
    local axes = pl.var("axes", pl.type { shape = { 1 }, dtype = "int64" })
    keeps({ x, axes }, op.expand_dims(op.sum(x, axes, { keepdims = 0 }), ints(1)))
  end)
end)

describe("A reduction of single elements", function()
  local one = var("one", { "N", 1, 5, 1 })

  it("is its operand", function()
    for _, name in ipairs { "sum", "mean", "prod", "max", "min" } do
      assert.equal("", calls(simplify({ one }, op[name](one, ints(1, -1)))))
    end
  end)

  it("stays when it takes the axes away, makes another number, or has more to reduce", function()
    keeps({ one }, op.sum(one, ints(1), { keepdims = 0 }))
    keeps({ one }, op.reduce_l2(one, ints(1)))
    keeps({ one }, op.sum(one, ints(1, 2)))
    keeps({ one }, op.sum(one))
    local u = var("u", { "?", 4 })
    keeps({ u }, op.sum(u, ints(0)))
  end)
end)

describe("Positions of an axis", function()
  it("are taken by a take when there is one", function()
    local out = simplify({ x }, op.squeeze(op.strided_slice(x, ints(2), ints(3), ints(1)), ints(1)))
    assert.equal("take", calls(out))
    assert.equal(2, out.main.body.args[2].data:to_table())
    out = simplify({ x }, op.squeeze(op.strided_slice(x, ints(-1), ints(9223372036854775807),
      ints(-1)), ints(2)))
    assert.equal("take", calls(out))
  end)

  it("stay a slice when it takes more, another axis goes, or it is used too", function()
    local function slice(...) return op.strided_slice(x, ...) end
    local u = var("u", { "?", "?" })
    keeps({ u }, op.squeeze(op.strided_slice(u, ints(2), ints(4), ints(1)), ints(1)))
    keeps({ u }, op.squeeze(op.strided_slice(u, ints(-1), ints(0), ints(1)), ints(1)))
    local y = slice(ints(2), ints(3), ints(1))
    keeps({ x }, pl.tuple(op.squeeze(y, ints(1)), y))
    local one = var("one", { 1, 4 })
    keeps({ one }, op.squeeze(op.strided_slice(one, ints(2), ints(3), ints(1)), ints(0)))
  end)

  it("are taken before the other axes move, when these stay in order", function()
    local out = simplify({ x }, take(op.transpose(x, { axes = { 2, 0, 1 } }), 3, 0))
    assert.equal("take", calls(out))
    assert.equal(2, out.main.body.attrs.axis)
    keeps({ x }, take(op.transpose(x, { axes = { 2, 1, 0 } }), 3, 0))
    keeps({ x }, op.take(op.transpose(x, { axes = { 2, 0, 1 } }), ints(3)))
  end)

  it("are the whole when all are taken in order", function()
    local out = simplify({ v }, op.take(v, ints(0, 1, -1)))
    assert.equal("", calls(out))
    keeps({ v }, op.take(v, ints(0, 2, 1)))
    keeps({ v }, op.take(v, ints(0, 1)))
    keeps({ x }, op.take(x, ints(0)))
    assert.equal("", calls(simplify({ x }, op.split(x, { axis = 1, num_outputs = 1 }))))
  end)
end)

describe("A reshape behind a transpose whose first extent is not known to divide", function()
  local y = var("y", { "S", "B", 48 })
  local function split(shape, target)
    return op.reshape(op.transpose(op.reshape(y, ints(table.unpack(shape))),
      { axes = { 1, 0, 2 } }), ints(table.unpack(target)))
  end

  it("splits the axis before it, as the other axes have known extents", function()
    local mod = module({ y }, split({ 6, -1, 12 }, { -1, 4, 6, 12 }))
    local out = pl.passes.SimplifyExpr()(mod)
    assert.equal("reshape transpose", calls(out))
    assert.same(mod.main.body.type, out.main.body.type)
    for b = 1, 3 do assert(pl.check(mod, out, { dims = { S = 6, B = b } })) end
    assert.equal(out, pl.passes.SimplifyExpr()(out))
  end)

  it("stays where other axes have other extents", function()
    for _, target in ipairs { { -1, 4, 12, 6 }, { -1, 4, 3, 24 }, { 4, -1, 3, 2, 12 } } do
      local mod = module({ y }, split({ 6, -1, 12 }, target))
      local out = pl.passes.SimplifyExpr()(mod)
      assert(pl.check(mod, out, { dims = { S = 6, B = 2 } }))
      assert.equal("reshape transpose reshape", calls(out))
    end
  end)
end)

describe("The parts of a Split, of one position each", function()
  local function parts(sizes, axis)
    local split = op.split(x, ints(table.unpack(sizes)), { axis = axis, n_results = #sizes })
    local list = {}
    for i = 1, #sizes do list[i] = pl.ir.TupleGetItem(split, i - 1) end
    return list
  end

  local function simplify_model(vars, body)
    local mod = assert(pl.onnx.parse(pl.onnx.tostring(module(vars, body))))
    local out = pl.passes.SimplifyExpr()(mod)
    assert(pl.verify(out))
    assert(pl.check(mod, out, { dims = { N = 3 } }))
    return calls(out), out
  end

  it("are takes without that axis", function()
    for _, axis in ipairs { 1, -2 } do
      local p = parts({ 1, 1, 1, 1 }, axis)
      local names, out = simplify_model({ x }, op.subtract(op.squeeze(p[2], ints(1)),
        op.squeeze(p[4], ints(-2))))
      assert.equal("take take subtract", names)
      assert.same({ "N", 5 }, out.main.body.type.shape)
    end
    local p = parts({ 2, 1, 1 }, 1)
    local names, out = simplify_model({ x }, pl.tuple(op.tanh(p[1]), op.squeeze(p[3], ints(1))))
    assert.equal("split tanh take", names)
    assert.equal(3, out.main.body.fields[2].args[2].data:to_table())
  end)

  it("stay where another axis is removed, or in other programs", function()
    local z = var("z", { 1, 4, 5 })
    local split = op.split(z, ints(1, 3), { axis = 1, n_results = 2 })
    assert.equal("split squeeze",
      (simplify_model({ z }, op.squeeze(pl.ir.TupleGetItem(split, 0), ints(0)))))
    assert.equal("split squeeze",
      (simplify_model({ x }, op.squeeze(parts({ 1, 4 }, 2)[1], ints(2)))))
    keeps({ x }, op.squeeze(parts({ 1, 3 }, 1)[1], ints(1)))
  end)
end)

describe("Positions of one axis that reshapes around a transpose permute", function()
  local y = var("y", { "N", 6, "H", 2 })
  local function permuted(split, axes, merged)
    return op.reshape(op.transpose(op.reshape(y, ints(table.unpack(split))), { axes = axes }),
      ints(table.unpack(merged)))
  end

  it("are taken in that order", function()
    local out = simplify({ y }, permuted({ 0, 2, 3, -1, 2 }, { 0, 2, 1, 3, 4 }, { 0, 6, -1, 2 }))
    assert.equal("take", calls(out))
    assert.same({ 0, 3, 1, 4, 2, 5 }, out.main.body.args[2].data:to_table())
    assert.equal(1, out.main.body.attrs.axis)
    assert.same({ "N", 6, "H", 2 }, out.main.body.type.shape)
  end)

  it("stay where another axis moves, or the result has another shape", function()
    local z = var("z", { "N", 6, 3 })
    local split = op.reshape(z, ints(0, 2, 3, 3))
    keeps({ z }, op.reshape(op.transpose(split, { axes = { 0, 3, 2, 1 } }), ints(0, 6, 3)))
    keeps({ z }, op.reshape(op.transpose(split, { axes = { 0, 2, 1, 3 } }), ints(0, 3, 6)))
  end)

  it("stay where what is between has other users", function()
    local split = op.reshape(y, ints(0, 2, 3, -1, 2))
    local merged = op.reshape(op.transpose(split, { axes = { 0, 2, 1, 3, 4 } }), ints(0, 6, -1, 2))
    keeps({ y }, pl.tuple(merged, split))
  end)
end)

describe("Axes that a reduction keeps", function()
  local y = var("y", { "N", 6, "H", 2 })

  it("are not kept where they are removed behind it", function()
    for _, removed in ipairs { op.squeeze(op.mean(y, { axes = { 2, 3 } }), ints(2, 3)),
      op.reshape(op.max(y, { axes = { -1, 2 } }), ints(0, 6)),
      op.flatten(op.sum(y, { axes = { 2, 3 } })) } do
      local out = simplify({ y }, removed)
      assert.equal(0, out.main.body.attrs.keepdims)
      assert.same({ "N", 6 }, out.main.body.type.shape)
    end
  end)

  it("stay where others are removed, or something else uses them", function()
    local kept = op.mean(y, { axes = { 2, 3 } })
    keeps({ y }, pl.tuple(kept, op.squeeze(kept, ints(2, 3))))
    keeps({ y }, op.squeeze(op.mean(y, { axes = { 2, 3 } }), ints(3)))
  end)

  it("include those of a global pooling", function()
    local mod = module({ y }, op.flatten(op.nn.global_avg_pool(y)))
    local out = pl.passes.SimplifyExpr()(mod)
    assert.equal("mean", calls(out))
    assert(pl.check(mod, out, { dims = { N = 3, H = 2 }, rtol = 1e-6 }))
  end)
end)

describe("A reshape", function()
  local image = var("image", { "N", 1, 12, 6 })
  local function reshape(shape) return op.reshape(image, ints(table.unpack(shape))) end

  it("gives the shape of what follows it", function()
    assert.equal("reshape", calls(simplify({ image },
      op.expand_dims(reshape { -1, 12, 6 }, ints(-1)))))
    assert.equal("reshape", calls(simplify({ image }, op.squeeze(reshape { -1, 8, 1, 9 },
      ints(2)))))
    assert.equal("reshape", calls(simplify({ image }, op.flatten(reshape { -1, 8, 3, 3 }))))
  end)

  it("stays beside an axis in front, an axis that it cannot express, and other uses", function()
    keeps({ image }, op.expand_dims(reshape { -1, 8, 9 }, ints(0)))
    local v_and_w = var("v_and_w", { "?", "?", 6 })
    keeps({ v_and_w }, op.expand_dims(op.reshape(v_and_w, ints(0, 0, 2, 3)), ints(-1)))
    local shared = reshape { -1, 8, 9 }
    keeps({ image }, pl.tuple(shared, op.expand_dims(shared, ints(-1))))
  end)

  it("that only adds or removes axes comes before a pad", function()
    local x3 = var("x3", { "N", 4, 8 })
    local pad = op.nn.pad(x3, ints(0, 1, 2, 0, 0, 3))
    local out = simplify({ x3 }, op.expand_dims(pad, ints(2)))
    assert.equal("reshape nn.pad", calls(out))
    assert.same({ 0, 1, 0, 2, 0, 0, 0, 3 }, out.main.body.args[2].data:to_table())
    local y = var("y", { "N", 1, 8 })
    local reflected = op.nn.pad(y, ints(0, 0, 2, 0, 0, 3), { pad_mode = "reflect" })
    assert.equal("reshape nn.pad", calls(simplify({ y }, op.squeeze(reflected, ints(1)))))
  end)

  it("stays behind a pad of the axis that it removes", function()
    local y = var("y", { "N", 0, 8 })
    keeps({ y }, op.squeeze(op.nn.pad(y, ints(0, 1, 2, 0, 0, 3)), ints(1)))
  end)
end)

describe("A concatenation", function()
  local a, b, c = var("a", { "N", 4 }), var("b", { "N", 3 }), var("c", { "N", 4 })

  it("takes in one along the same axis", function()
    local inner = op.concatenate({ b, c }, { axis = -1 })
    local out = simplify({ a, b, c }, op.concatenate({ a, inner, b }, { axis = 1 }))
    assert.equal("concatenate", calls(out))
    assert.equal(4, #out.main.body.args)
  end)

  it("leaves one along another axis, or with other uses, alone", function()
    keeps({ a, c }, op.concatenate({ op.concatenate({ a, c }, { axis = 0 }),
      op.concatenate({ c, a }, { axis = 0 }) }, { axis = 1 }))
    local inner = op.concatenate({ b, c }, { axis = 1 })
    keeps({ a, b, c }, pl.tuple(inner, op.concatenate({ a, inner }, { axis = 1 })))
  end)
end)

describe("A new axis", function()
  local t = var("t", { "N", 5 }, "int64")
  local w = pl.const(pl.tensor({ 1, 2, 3 }, "float32"))

  it("comes before elementwise operators, where it joins another one", function()
    local angle = op.multiply(op.cast(op.expand_dims(t, ints(2)), { to = 1 }), w)
    local out = simplify({ t }, op.expand_dims(op.cos(angle), ints(1)))
    assert.equal("expand_dims cast multiply cos", calls(out))
    assert.same({ "N", 1, 5, 3 }, out.main.body.type.shape)
  end)

  it("stays behind a product whose last axis it moves, and behind shared operators", function()
    local y = var("y", { "N", 3 })
    keeps({ y }, op.expand_dims(op.multiply(y, w), ints(2)))
    local z = op.cos(y)
    keeps({ y }, pl.tuple(z, op.expand_dims(z, ints(1))))
  end)

  it("stays behind elementwise operators of halves, where it decides how they round", function()
    for _, dtype in ipairs { "float16", "bfloat16" } do
      local y = var("y", { "N", 3 }, dtype)
      keeps({ y }, op.expand_dims(op.cos(y), ints(1)))
      keeps({ t }, op.expand_dims(op.cast(t, { to = dtype == "float16" and 10 or 16 }), ints(1)))
    end
  end)

  it("cancels one that is removed behind a cast", function()
    local wide = op.cast(op.expand_dims(t, ints(1)), { to = 1 })
    assert.equal("cast", calls(simplify({ t }, op.squeeze(wide, ints(1)))))
  end)
end)

describe("A transpose that only moves axes of extent 1", function()
  local y = var("y", { 6, 1, "N", 4 })
  local moved = op.transpose(y, { axes = { 0, 2, 1, 3 } })

  it("is left to the reshape behind it", function()
    local out = simplify({ y }, op.reshape(moved, ints(6, -1, 4)))
    assert.equal("reshape", calls(out))
    assert.same({ 6, "N", 4 }, out.main.body.type.shape)
    assert.equal("reshape", calls(simplify({ y }, op.squeeze(moved, ints(2)))))
  end)

  it("is left to the reshape before it", function()
    local out = simplify({ x }, op.transpose(op.expand_dims(x, ints(0)), { axes = { 1, 2, 0, 3 } }))
    assert.equal("reshape", calls(out))
    assert.same({ "N", 4, 1, 5 }, out.main.body.type.shape)
  end)

  it("stays where others use it, and where other axes change places", function()
    keeps({ y }, pl.tuple(op.reshape(moved, ints(6, -1, 4)), moved))
    keeps({ y }, op.reshape(op.transpose(y, { axes = { 2, 1, 0, 3 } }), ints(4, -1, 6)))
    local square = var("square", { 3, 3 })
    keeps({ square }, op.reshape(op.transpose(square, { axes = { 1, 0 } }), ints(9)))
  end)
end)
