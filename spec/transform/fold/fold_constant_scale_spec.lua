-- FoldConstantScale: constant factors move into the weights of products, and compute the same.

local pl = require "perilune"

local op = pl.op
local fold = pl.passes.FoldConstantScale()

local function weight(shape, from)
  local at = from or 0
  local function fill(axis)
    local list = {}
    for i = 1, shape[axis] do
      at = at + 7
      list[i] = axis < #shape and fill(axis + 1) or (at % 11 - 5) / 4
    end
    return list
  end
  return pl.const(pl.tensor(fill(1), "float32"))
end

local function scalar(value, dtype) return pl.const(pl.tensor(value, dtype or "float32")) end

local function operators(fn)
  local names = {}
  for node in fn:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op.name end
  end
  return table.concat(names, " ")
end

-- Folds the body and compares with the original; gives the operators that are left.
local function folded(vars, body)
  local mod = pl.module { main = pl.func(vars, body) }
  local out = fold(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { rtol = 1e-5, atol = 1e-5, scaled = true, rounds = 4 }))
  assert.equal(out, fold(out))
  return operators(out.main), out
end

describe("FoldConstantScale", function()
  local x = pl.var("x", "Tensor[(2, 3, 4), float32]")
  local image = pl.var("image", "Tensor[(1, 3, 5, 5), float32]")

  it("folds a factor behind a product, and a division", function()
    assert.equal("nn.matmul", folded({ x }, op.nn.matmul(x, weight { 4, 5 }) * scalar(2)))
    assert.equal("nn.matmul", folded({ x }, op.nn.matmul(x, weight { 4, 5 }) / scalar(8)))
    assert.equal("nn.conv", folded({ image },
      op.nn.conv(image, weight { 2, 3, 3, 3 }, weight { 2 }) * scalar(0.5)))
  end)

  it("goes through what moves data, adds constants and is positively homogeneous", function()
    local y = op.nn.matmul(x, weight { 4, 6 }) + weight { 6 }
    y = op.transpose(op.reshape(y, { newshape = { 2, 3, 2, 3 } }), { axes = { 0, 2, 1, 3 } })
    assert.equal("nn.matmul add reshape transpose nn.relu",
      folded({ x }, op.nn.relu(y) * scalar(0.25)))
    assert.matches("multiply$", (folded({ x }, op.nn.relu(y) * scalar(-1))))
  end)

  it("folds a factor before a product", function()
    local y = pl.var("y", "Tensor[(2, 3, 4), float32]")
    assert.equal("multiply nn.matmul", folded({ x, y },
      op.nn.matmul((x * scalar(0.5)) * y, weight { 4, 5 })))
    assert.equal("multiply nn.matmul", folded({ x, y },
      op.nn.matmul(y * (x * scalar(0.5)), weight { 4, 5 })))
    assert.equal("transpose nn.matmul", folded({ x },
      op.nn.matmul(op.transpose(x / scalar(4), { axes = { 1, 0, 2 } }), weight { 4, 5 })))
  end)

  it("keeps what else is used, what is not constant, and what is no number", function()
    local y = op.nn.matmul(x, weight { 4, 5 })
    assert.equal("nn.matmul multiply", folded({ x }, pl.tuple { y * scalar(2), y }))
    local w = pl.var("w", "Tensor[(4, 5), float32]")
    assert.equal("nn.matmul multiply", folded({ x, w }, op.nn.matmul(x, w) * scalar(2)))
    assert.equal("nn.matmul multiply",
      folded({ x }, op.nn.matmul(x, weight { 4, 5 }) * scalar(1 / 0)))
    assert.equal("nn.matmul divide",
      folded({ x }, op.nn.matmul(x, weight { 4, 5 }) / scalar(0)))
    assert.equal("nn.matmul multiply", folded({ x },
      op.nn.matmul(x, weight { 4, 5 }) * weight { 1, 1, 1, 1 }))
  end)

  it("keeps a product outside of the branch that scales it", function()
    local p = pl.var("p", "bool")
    local y = op.nn.matmul(x, weight { 4, 5 })
    local names = folded({ p, x }, pl.if_(p, y * scalar(2), y))
    assert.matches("nn.matmul.*multiply", names)
  end)

  it("leaves weights of 16 bits as they are, unless it is asked", function()
    local h = pl.var("h", "Tensor[(2, 4), float16]")
    local w = pl.const(pl.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }, "float16"))
    local body = op.nn.matmul(h, w) * scalar(0.5, "float16")
    assert.equal("nn.matmul multiply", folded({ h }, body))
    local halves = pl.passes.FoldConstantScale { halves = true }
    assert.equal("nn.matmul", operators(halves(pl.module { main = pl.func({ h }, body) }).main))
  end)

  it("folds factors per channel, through what keeps channels apart", function()
    local y = op.nn.conv(image, weight { 2, 3, 3, 3 }, weight { 2 })
    local positive = pl.const(pl.tensor({ { { 2 } }, { { 0.5 } } }, "float32"))
    assert.equal("nn.conv nn.relu", folded({ image }, op.nn.relu(y) * positive))
    local mixed = pl.const(pl.tensor({ { { 2 } }, { { -0.5 } } }, "float32"))
    assert.equal("nn.conv", folded({ image }, y * mixed))
    assert.equal("nn.conv nn.relu multiply", folded({ image }, op.nn.relu(y) * mixed))
    local heads = op.reshape(op.nn.matmul(x, weight { 4, 6 }), { newshape = { 2, 3, 2, 3 } })
    local by_head = pl.const(pl.tensor({ { 2 }, { 3 } }, "float32"))
    assert.equal("nn.matmul reshape", folded({ x }, heads * by_head))
    assert.equal("nn.matmul reshape divide", folded({ x }, heads / weight({ 3 }, 3)))
  end)

  it("scales one part of what is split, along all paths to it", function()
    local sizes = pl.const(pl.tensor({ 2, 4 }, "int64"))
    local parts = op.split(op.nn.matmul(x, weight { 4, 6 }), sizes, { axis = 2, n_results = 2 })
    local a, b = parts:unpack()
    assert.equal("nn.matmul split", folded({ x }, pl.tuple(a * scalar(0.5), b)))
    local z = pl.var("z", "Tensor[(2, 3, 2), float32]")
    local rotated = a * z - op.negative(a) * op.sin(z)
    local out = folded({ x, z }, pl.tuple(op.nn.matmul(rotated, op.transpose(z,
      { axes = { 0, 2, 1 } })) * scalar(0.5), b))
    assert.not_matches("multiply [%w_ .]*multiply [%w_ .]*multiply", out)
    assert.equal("nn.matmul split multiply multiply", folded({ x }, pl.tuple(
      op.multiply(a * scalar(0.5), a), b)))
  end)

  it("scales the rows of all weights behind a factor per column", function()
    local y = op.tanh(x) * weight({ 4 }, 1)
    assert.equal("tanh nn.matmul nn.matmul", folded({ x },
      pl.tuple(op.nn.matmul(y, weight { 4, 5 }), op.nn.matmul(y, weight { 4, 2 }))))
    assert.matches("multiply", (folded({ x }, pl.tuple(op.nn.matmul(y, weight { 4, 5 }), y))))
    assert.matches("multiply", (folded({ x }, op.nn.matmul(weight { 2, 3, 3 }, y))))
  end)

  it("negates weights behind a product, a shared one once", function()
    local w = weight { 2, 3, 3, 3 }
    local other = pl.var("other", "Tensor[(1, 3, 5, 5), float32]")
    local names, out = folded({ image, other }, pl.tuple(op.negative(op.nn.conv(image, w)),
      op.negative(op.nn.conv(other, w)), op.nn.conv(image, w)))
    assert.equal("nn.conv nn.conv nn.conv", names)
    local constants = 0
    for node in out.main:nodes() do
      constants = constants + (node.kind == "Constant" and 1 or 0)
    end
    assert.equal(2, constants)
  end)

  it("scales what normalisations end with", function()
    local y = op.nn.instance_norm(image, weight { 3 }, weight { 3 })
    local by_channel = pl.const(pl.tensor({ { { 2 } }, { { -0.5 } }, { { 3 } } }, "float32"))
    assert.equal("nn.instance_norm", folded({ image }, y * by_channel))
    local z = op.nn.layer_norm(x, weight { 4 }, weight { 4 }, { axis = -1 })
    assert.equal("nn.layer_norm", folded({ x }, z * weight({ 4 }, 1)))
    local by_row = pl.const(pl.tensor({ { 2 }, { 3 }, { 4 } }, "float32"))
    assert.equal("nn.layer_norm multiply", folded({ x }, z * by_row))
  end)
end)
