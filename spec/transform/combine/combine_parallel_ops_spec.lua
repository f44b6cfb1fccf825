-- CombineParallelOps: parallel computations become one, whose result is split.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls = simplified.module, simplified.calls

local function filled(shape, dtype, seed)
  local random = pl.tensor.random(shape, dtype or "float32", { seed = seed or 1 })
  return pl.const(random)
end

-- The result is valid, computes the same up to rounding, and is final.
local function combine(vars, body, pass)
  pass = pass or pl.passes.CombineParallelOps()
  local mod = module(vars, body)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 1, rtol = 1e-5, atol = 1e-6,
    scaled = true }))
  assert.equal(out, pass(out))
  return out, mod
end

local function keeps(vars, body, pass)
  local out, mod = combine(vars, body, pass)
  assert.equal(mod, out)
end

local x = var("x", { "N", 5, 8 })

local function project(y, columns, seed)
  return op.add(op.nn.matmul(y, filled({ 8, columns }, nil, seed)), filled({ columns }, nil, seed))
end

local function heads(y, n, axes)
  return op.transpose(op.reshape(y, ints(0, 0, n, 4)), { axes = axes or { 0, 2, 1, 3 } })
end

describe("CombineParallelOps", function()
  it("makes one product of those of one operand", function()
    local out = combine({ x }, pl.tuple(op.nn.matmul(x, filled({ 8, 2 })),
      op.nn.matmul(x, filled({ 8, 3 })), op.nn.matmul(x, filled({ 8, 4 }))))
    assert.equal("nn.matmul split", calls(out))
    assert.same({ "N", 5, 3 }, out.main.body.fields[2].type.shape)
  end)

  it("follows what is behind the products", function()
    local out = combine({ x }, pl.tuple(heads(project(x, 8, 1), 2), heads(project(x, 4, 2), 1),
      heads(project(x, 4, 3), 1)))
    assert.equal("nn.matmul add reshape transpose split", calls(out))
    assert.same({ "N", 2, 5, 4 }, out.main.body.fields[1].type.shape)
  end)

  it("transposes a member once more that has another permutation", function()
    local out = combine({ x }, pl.tuple(heads(project(x, 8, 1), 2),
      heads(project(x, 8, 2), 2, { 0, 2, 3, 1 })))
    assert.equal("nn.matmul add reshape transpose split transpose", calls(out))
    assert.same({ "N", 2, 4, 5 }, out.main.body.fields[2].type.shape)
  end)

  it("keeps apart reshapes that put the axes of extent 1 elsewhere", function()
    local out = combine({ x }, pl.tuple(op.reshape(project(x, 4, 1), ints(-1, 5, 1, 4)),
      op.reshape(project(x, 4, 2), ints(-1, 1, 5, 4)),
      op.reshape(project(x, 4, 3), ints(-1, 1, 5, 4))))
    assert.equal("nn.matmul add split reshape reshape reshape", calls(out))
    assert.same({ "N", 5, 1, 4 }, out.main.body.fields[1].type.shape)
    assert.same({ "N", 1, 5, 4 }, out.main.body.fields[2].type.shape)
  end)

  it("combines gemms and convolutions with their biases", function()
    local y = var("y", { 3, 8 })
    local function gemm(n, seed)
      return op.nn.relu(op.nn.gemm(y, filled({ n, 8 }, nil, seed), filled({ n }, nil, seed),
        { transB = 1 }))
    end
    local out = combine({ y }, pl.tuple(gemm(2, 1), gemm(5, 2)))
    assert.equal("nn.gemm nn.relu split", calls(out))
    local z = var("z", { "N", 3, 6, 6 })
    local function conv(n, size, seed)
      return op.nn.relu(op.nn.conv(z, filled({ n, 3, size, size }, nil, seed),
        filled({ n }, nil, seed), { kernel_shape = { size, size } }))
    end
    out = combine({ z }, pl.tuple(conv(2, 1, 1), conv(4, 1, 2), conv(3, 3, 3)))
    assert.equal("nn.conv nn.relu split nn.conv nn.relu", calls(out))
  end)

  it("combines quantised products with their scales", function()
    local function number(v, dtype) return pl.const(pl.tensor(v, dtype or "float32")) end
    local quantised = op.dynamic_quantize_linear(x, { n_results = 3 })
    local data, scale, zero = quantised:unpack()
    local function product(columns, factor, point)
      local w = op.matmul_integer(data, filled({ 8, columns }, "int8", columns), zero,
        number(point, "int8"))
      return op.add(op.multiply(op.cast(w, { to = 1 }), op.multiply(number(factor), scale)),
        filled { columns })
    end
    local out = combine({ x }, pl.tuple(product(2, 0.5, 1), product(3, 0.25, 1)))
    assert.equal("dynamic_quantize_linear matmul_integer multiply cast multiply add split",
      (calls(out):gsub("matmul_integer cast multiply multiply",
        "matmul_integer multiply cast multiply")))
    keeps({ x }, pl.tuple(product(2, 0.5, 1), product(3, 0.25, 2)))
  end)

  it("makes a vector of numbers that differ", function()
    local function scaled(columns, factor)
      return op.tanh(op.multiply(op.nn.matmul(x, filled { 8, columns }), pl.const(factor)))
    end
    local out = combine({ x }, pl.tuple(scaled(2, 0.5), scaled(3, 2.0)))
    assert.equal("nn.matmul multiply tanh split", calls(out))
    local image = var("image", { "N", 3, 4, 4 })
    local function filtered(channels, factor)
      return op.tanh(op.add(pl.const(factor), op.nn.conv(image, filled { channels, 3, 1, 1 })))
    end
    out = combine({ image }, pl.tuple(filtered(2, 0.5), filtered(1, 2.0)))
    assert.equal("nn.conv add tanh split", calls(out))
    local s = pl.var("s", "float32")
    local function by(columns, factor) return op.multiply(op.nn.matmul(x, filled { 8, columns }),
      op.multiply(s, pl.const(factor))) end
    out = combine({ x, s }, pl.tuple(op.tanh(by(2, 0.5)), op.tanh(by(2, 3.0)), op.tanh(by(1, 1.5))))
    assert.matches("tanh split$", calls(out))
  end)

  it("moves a Split behind what is done to all parts, or to some", function()
    local parts = table.pack(op.split(x, ints(2, 3, 3), { axis = 2, n_results = 3 }):unpack())
    local sum = op.add(op.tanh(parts[2]), op.tanh(parts[3]))
    local out = combine({ x }, pl.tuple(op.tanh(parts[1]), sum))
    assert.equal("tanh split add", calls(out))
    local function both(y) return op.sigmoid(op.multiply(op.tanh(y), op.abs(y))) end
    out = combine({ x }, pl.tuple(parts[1], both(parts[2]), both(parts[3])))
    assert.equal("split tanh abs multiply sigmoid split", calls(out))
  end)

  it("leaves alone what would not become less", function()
    keeps({ x }, pl.tuple(op.nn.matmul(x, filled({ 8, 2 })), op.nn.matmul(x, filled({ 8, 3 }))))
    local parts = table.pack(op.split(x, ints(4, 4), { axis = 2, n_results = 2 }):unpack())
    keeps({ x }, pl.tuple(op.tanh(parts[1]), op.sigmoid(parts[2])))
    keeps({ x }, pl.tuple(op.nn.softmax(parts[1]), op.nn.softmax(parts[2])))
  end)

  it("does not copy large weights that others use", function()
    local w = filled({ 8, 4096 })
    local function product(seed) return op.nn.matmul(x, filled({ 8, 4096 }, nil, seed)) end
    local out = combine({ x }, pl.tuple(product(1), product(2), product(3)))
    assert.equal("nn.matmul split", calls(out))
    keeps({ x }, pl.tuple(op.nn.matmul(x, w), product(2), product(3), w))
  end)

  it("counts no shapes of reshapes that others use among them", function()
    local shape = ints(0, 0, 128, 32)
    local function product(seed)
      return op.reshape(op.nn.matmul(x, filled({ 8, 4096 }, nil, seed)), shape)
    end
    local other = op.reshape(op.concatenate({ x, x, x, x }, { axis = 2 }), ints(0, 0, 1, 32))
    local out = combine({ x }, pl.tuple(product(1), product(2), other,
      op.reshape(op.tile(other, ints(1, 1, 128, 1)), shape)))
    assert.matches("^nn.matmul reshape split", calls(out))
  end)

  it("does not round 16-bit floats where nothing was moved", function()
    local y = var("y", { 3, 8 }, "float16")
    local function relu(seed)
      return op.nn.relu(op.nn.matmul(y, filled({ 8, 4 }, "float16", seed)))
    end
    keeps({ y }, pl.tuple(relu(1), relu(2), relu(3)))
    local function moved(seed) return op.transpose(relu(seed), { axes = { 1, 0 } }) end
    assert.equal("nn.matmul nn.relu transpose split",
      calls((combine({ y }, pl.tuple(moved(1), moved(2), moved(3))))))
  end)

  it("combines nothing across scopes", function()
    local c = pl.var("c", "bool")
    local function product(seed) return op.nn.matmul(x, filled({ 8, 2 }, nil, seed)) end
    keeps({ x, c }, pl.tuple(product(1), product(2), pl.if_(c, product(3), product(4))))
  end)
end)

describe("SlicesToSplit", function()
  local function split(vars, body) return (combine(vars, body, pl.passes.SlicesToSplit())) end
  local function slice(from, to, axis)
    return op.strided_slice(x, ints(from), ints(to), ints(axis), ints(1))
  end
  local function take(y, i, axis) return op.take(y, pl.const(i), { axis = axis }) end

  it("makes one Split of slices that do not overlap", function()
    local out = split({ x }, pl.tuple(slice(3, math.maxinteger, -1), slice(0, 3, 2)))
    assert.equal("split", calls(out))
    out = split({ x }, pl.tuple(slice(1, 2, 1), slice(-2, 5, 1)))
    assert.equal("split", calls(out))
    assert.same({ "N", 2, 8 }, out.main.body.fields[2].type.shape)
    simplified.keeps({ x }, pl.tuple(slice(0, 3, 2), slice(2, 8, 2)))
  end)

  it("makes one Split of takes of all positions", function()
    local y = op.reshape(x, ints(0, 5, 2, 4))
    local out = split({ x }, pl.tuple(take(y, 1, 2), take(y, 0, 2)))
    assert.equal("reshape split", calls(out))
    assert.same({ "N", 5, 4 }, out.main.body.fields[1].type.shape)
    local z = var("z", { "N", 3, 2 })
    assert.equal("reshape split",
      calls(split({ z }, pl.tuple(take(z, 0, 1), take(z, 1, 1), take(z, -1, 1)))))
  end)

  it("merges the axes before a transpose that only the takes use", function()
    local y = op.reshape(x, ints(-1, 5, 2, 2, 2))
    local moved = op.transpose(y, { axes = { 2, 0, 3, 1, 4 } })
    local out = split({ x }, pl.tuple(take(moved, 0, 0), take(moved, 1, 0)))
    assert.equal("reshape transpose split", calls(out))
    assert.same({ "N", 2, 5, 2 }, out.main.body.fields[1].type.shape)
    moved = op.transpose(op.reshape(x, ints(0, 5, 4, 2)), { axes = { 0, 2, 3, 1 } })
    out = split({ x }, pl.tuple(take(moved, 3, 1), take(moved, 1, 1), take(moved, 0, 1),
      take(moved, 2, 1)))
    assert.equal("reshape transpose split", calls(out))
    moved = op.transpose(op.reshape(x, ints(0, 5, 2, 4)), { axes = { 2, 0, 1, 3 } })
    assert.equal("reshape split", calls(split({ x }, pl.tuple(take(moved, 0, 0),
      take(moved, 1, 0)))))
  end)

  it("merges axes of a reshape with allowzero, if it has no 0", function()
    local y = op.reshape(x, ints(-1, 5, 2, 4), { allowzero = 1 })
    assert.equal("reshape split", calls(split({ x }, pl.tuple(take(y, 0, 2), take(y, 1, 2)))))
    local empty = var("e", { 0, 5, 8 })
    y = op.reshape(empty, ints(0, 5, 2, 4), { allowzero = 1 })
    local out = split({ empty }, pl.tuple(take(y, 0, 2), take(y, 1, 2)))
    assert.equal("reshape take take", calls(out))
  end)

  it("keeps a transpose that is used otherwise, or whose axis has no next one", function()
    local pass = pl.passes.SlicesToSplit()
    local y = op.reshape(x, ints(0, 5, 2, 4))
    local moved = op.transpose(y, { axes = { 2, 0, 1, 3 } })
    keeps({ x }, pl.tuple(take(moved, 0, 0), take(moved, 1, 0), moved), pass)
    local last = op.transpose(op.reshape(x, ints(0, 5, 4, 2)), { axes = { 3, 0, 1, 2 } })
    keeps({ x }, pl.tuple(take(last, 0, 0), take(last, 1, 0)), pass)
    local z = op.transpose(var("z", { 2, "M", 5 }), { axes = { 1, 0, 2 } })
    local out = split({ z.args[1] }, pl.tuple(take(z, 0, 1), take(z, 1, 1)))
    assert.equal(nil, calls(out):find "split")
  end)

  it("leaves alone takes of some positions, or of the last axis", function()
    local pass = pl.passes.SlicesToSplit()
    local y = op.reshape(x, ints(0, 5, 2, 4))
    keeps({ x }, pl.tuple(take(y, 1, 2), y), pass)
    keeps({ x }, pl.tuple(take(x, 1, 1), take(x, 0, 1)), pass)
    local z = var("z", { "N", 2 })
    keeps({ z }, pl.tuple(take(z, 1, 1), take(z, 0, 1)), pass)
  end)
end)

describe("SequenceToSplit", function()
  local pass = pl.passes.SequenceToSplit()
  local function at(sequence, i) return op.sequence_at(sequence, pl.const(i)) end

  it("makes a Split of a sequence whose elements are taken", function()
    local parts = op.split_to_sequence(x, pl.const(3), { axis = 2, keepdims = 1 })
    local out = combine({ x }, pl.tuple(at(parts, 0), at(parts, -1)), pass)
    assert.equal("split", calls(out))
    assert.same({ "N", 5, 2 }, out.main.body.fields[2].type.shape)
    parts = op.split_to_sequence(x, ints(2, 3), { axis = 1, keepdims = 1 })
    assert.equal("split", calls((combine({ x }, at(parts, 1), pass))))
  end)

  it("keeps a sequence that is used as such", function()
    local parts = op.split_to_sequence(x, pl.const(3), { axis = 2, keepdims = 1 })
    keeps({ x }, pl.tuple(at(parts, 0), op.sequence_length(parts)), pass)
    local i = pl.var("i", "int64")
    local mod = module({ x, i }, op.sequence_at(parts, i))
    assert.equal(mod, pass(mod))
  end)
end)
