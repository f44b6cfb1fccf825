-- Profiles of runs, and what calls cost by their definition.

local pl = require "perilune"
local op = pl.op

local function zeros(...) return pl.eval(op.zeros { shape = { ... }, dtype = "float32" }) end

local function var(name, ...)
  return pl.var(name, ("Tensor[(%s), float32]"):format(table.concat({ ... }, ", ")))
end

describe("pl.cost", function()
  local function macs(call) return (pl.cost(call)) end

  it("counts products by the operator's definition", function()
    assert.are.equal(6 * 8 * 7, macs(op.nn.matmul(var("a", 6, 7), var("b", 7, 8))))
    assert.are.equal(2 * 6 * 8 * 7, macs(op.nn.matmul(var("a", 2, 6, 7), var("b", 2, 7, 8))))
    assert.are.equal(6 * 8 * 7, macs(op.nn.gemm(var("a", 7, 6), var("b", 8, 7),
      { transA = 1, transB = 1 })))
    assert.are.equal(5 * 9 * 4, macs(op.nn.dense(var("a", 5, 4), var("w", 9, 4))))
    -- 1 x 8 x 10 x 10 results, each a sum over 3 channels and 3 x 3 taps.
    assert.are.equal(800 * 27, macs(op.nn.conv(var("x", 1, 3, 12, 12), var("w", 8, 3, 3, 3),
      { kernel_shape = { 3, 3 } })))
    assert.are.equal(800 * 9, macs(op.nn.conv(var("x", 1, 8, 12, 12), var("w", 8, 1, 3, 3),
      { kernel_shape = { 3, 3 }, group = 8 })))
    assert.are.equal(800 * 27, macs(op.nn.conv2d(var("x", 1, 12, 12, 3), var("w", 3, 3, 3, 8),
      { channels = 8, kernel_size = { 3, 3 }, data_layout = "NHWC", kernel_layout = "HWIO" })))
    -- Each of 3 x 4 x 4 elements goes into 8 channels and 2 x 2 taps.
    assert.are.equal(48 * 32, macs(op.nn.conv_transpose(var("x", 1, 3, 4, 4),
      var("w", 3, 8, 2, 2), { kernel_shape = { 2, 2 } })))
    assert.are.equal(2 * 3 * 4 * 5, macs(op.einsum(var("a", 2, 3, 4), var("b", 4, 5),
      { equation = "ijk,kl->ijl" })))
  end)

  it("counts operations of loops and reductions by their elements", function()
    local x = var("x", 6, 7)
    assert.are.same({ 0, 42 }, { pl.cost(op.tanh(x)) })
    assert.are.same({ 0, 42 }, { pl.cost(op.sum(x)) })
    assert.are.same({ 0, 0 }, { pl.cost(op.transpose(x)) })
    assert.are.same({ 6 * 7 * 7, 2 * 6 * 7 * 7 }, { pl.cost(op.nn.matmul(x, var("y", 7, 7))) })
  end)

  it("gives expressions of symbolic dims, and nothing where a dim is unknown", function()
    local x = pl.var("x", "Tensor[(n, 4), float32]")
    assert.are.equal("20*n", tostring(macs(op.nn.matmul(x, var("y", 4, 5)))))
    local unknown = pl.var("x", "Tensor[(?, 4), float32]")
    assert.is_nil(macs(op.nn.matmul(unknown, var("y", 4, 5))))
    local fn = pl.func({ x, unknown }, pl.tuple(op.nn.matmul(x, var("y", 4, 5)), op.tanh(unknown)))
    assert.are.same({ 0, 1 }, { pl.get_total_mac_number(fn) })
  end)
end)

describe("a profile", function()
  local x, w = var("x", 4, 8), var("w", 8, 8)
  local fn = pl.func({ x, w }, op.tanh(op.nn.matmul(op.nn.matmul(x, w), w)))

  it("has a row for each call, in their order", function()
    local profile = pl.profile()
    local result = pl.eval { fn, zeros(4, 8), zeros(8, 8), profile = profile }
    assert.are.same({ 4, 8 }, result.shape)
    local names = {}
    for i, row in ipairs(profile.rows) do names[i] = row.node.op.name end
    assert.are.same({ "nn.matmul", "nn.matmul", "tanh" }, names)
    local first, last = profile.rows[1], profile.rows[3]
    assert.are.same({ 256, 512, 4 * (32 + 64 + 32) }, { first.macs, first.flops, first.bytes })
    assert.is_true(first.begin >= 0 and first.seconds > 0)
    assert.is_true(last.begin >= first.begin + first.seconds)
  end)

  it("adds up rows by operator and by node, those of several runs too", function()
    local profile = pl.profile()
    for _ = 1, 3 do pl.eval { fn, zeros(4, 8), zeros(8, 8), profile = profile } end
    local by_name = {}
    for _, group in ipairs(profile:operators()) do by_name[group.name] = group end
    assert.are.equal(6, by_name["nn.matmul"].calls)
    assert.are.equal(6 * 512, by_name["nn.matmul"].flops)
    assert.are.equal(3, #profile:nodes())
    for _, group in ipairs(profile:nodes()) do assert.are.equal(3, group.calls) end
    assert.matches("9 calls, ", tostring(profile), 1, true)
    assert.matches('"ph":"X"', profile:trace(), 1, true)
    assert.matches('"op":"tanh"', profile:json(), 1, true)
  end)

  it("stays as it was when a run fails, and is none of other runs", function()
    local profile = pl.profile()
    local n = pl.var("n", "int64")
    local divide = pl.func({ n }, op.divide(n, n))
    assert.is_false(pcall(pl.eval, { divide, 0, profile = profile }))
    pl.eval(fn, zeros(4, 8), zeros(8, 8))
    assert.are.equal(0, #profile.rows)
    assert.has_error(function() pl.eval { fn, zeros(4, 8), zeros(8, 8), profile = true } end)
  end)

  it("has the rows of nested functions and loops", function()
    local mod = pl.parse [[
#[version = "0.0.5"]
def @f(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { tanh(%x) }
def @main(%x: Tensor[(3), float32]) { add(@f(%x), @f(exp(%x))) }]]
    local profile = pl.profile()
    pl.eval { mod, zeros(3), profile = profile }
    local count = {}
    for _, group in ipairs(profile:operators()) do count[group.name] = group.calls end
    assert.are.same({ tanh = 2, exp = 1, add = 1 }, count)
  end)
end)
