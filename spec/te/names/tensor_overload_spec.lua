-- TVM's test_te_tensor_overload.py.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te, tir, topi = pl.te, pl.tir, pl.topi
local F = "float32"

local function is_tensor(x) return type(x) == "table" and x.op ~= nil and x.ndim ~= nil end

local operations = {
  add = { function(a, b) return a + b end, "add" },
  sub = { function(a, b) return a - b end, "subtract" },
  mul = { function(a, b) return a * b end, "multiply" },
  div = { function(a, b) return a / b end, "divide" },
}

describe("test_te_tensor_overload", function()
  it("test_operator_type_and_tags", function()
    local k, n = 1, te.var "n"
    local A, B = te.placeholder({}, F, "A"), te.placeholder({ 10, 5 }, F, "B")
    local element = B[{ 0, 0 }]
    for _, f in pairs(operations) do
      f = f[1]
      for _, tensor in ipairs { f(k, A), f(A, k), f(n, A), f(A, n), f(A, A), f(k, B), f(B, k),
        f(n, B), f(B, n), f(A, B), f(B, A), f(B, B), f(element, A), f(A, element), f(element, B),
        f(B, element) } do
        assert.is_true(is_tensor(tensor))
      end
      assert.equal("userdata", type(f(element, element)))
      assert.equal("userdata", type(f(k, element)))
      assert.same({ 10, 5 }, { f(A, B).shape[1].value, f(A, B).shape[2].value })
    end
    assert.equal("userdata", type(k + n))
    assert.is_true(is_tensor(-B))
    -- Tags: TVM's "elemwise" and "broadcast" are those of the topi functions.
    assert.equal(topi.add(B, k).op.tag, (B + k).op.tag)
    assert.equal(topi.add(A, B).op.tag, (A + B).op.tag)
    keeps.fails("a te.Tensor, an expression or a number", function() return B + {} end)
    keeps.fails("do not broadcast", function() return B + te.placeholder({ 4 }, F, "C") end)
  end)

  it("test_combination", function()
    local x = te.var("x", F)
    local A, B = te.placeholder({ 2, 3 }, F, "A"), te.placeholder({ 2, 3 }, F, "B")
    local C = te.placeholder({ 2, 3 }, F, "C")
    local D = 3 + A - B * C + x
    local mod = pl.lower(te.create_schedule(D.op), { args = { x, A, B, C, D } })
    local a, b = { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }, { { 2.0, 1.0, 0.0 }, { 1.0, 3.0, 2.0 } }
    local out = tir.run(mod, { 2.0, a, b, a, pl.tensor(a) })
    assert.same({ { 4, 5, 8 }, { 5, -5, -1 } }, out[#out]:to_table())
  end)

  it("test_tensor_scalar_bop", function()
    for name, f in pairs(operations) do
      for _, shape in ipairs { { 1 }, { 3, 5 }, { 1, 3, 5 }, { 2, 3, 1, 4 } } do
        local A = te.placeholder(shape, F, "A")
        local B, C = f[1](A, 4.0), topi[f[2]](A, 4.0)
        local expected = keeps.run(te.create_schedule(C.op):to_module({ A, C }, "main"), { A, C })
        assert.same(expected, keeps.same(te.create_schedule(B.op), { A, B }), name)
      end
    end
  end)

  it("test_broadcast_bop", function()
    for name, f in pairs(operations) do
      for _, shapes in ipairs { { { 2, 3 }, {} }, { { 5, 2, 3 }, { 1 } }, { { 1, 4 }, { 3, 4 } },
        { { 2, 3, 1, 4 }, { 3, 4 } }, { { 5, 3, 4 }, { 2, 5, 3, 1 } } } do
        local A, B = te.placeholder(shapes[1], F, "A"), te.placeholder(shapes[2], F, "B")
        -- No division by 0.
        local C = f[1](A, B * B + 1.0)
        assert.equal(math.max(#shapes[1], #shapes[2]), C.ndim, name)
        keeps.same(te.create_schedule(C.op), { A, B, C })
      end
    end
  end)

  it("test_conv2d_scalar_bop", function()
    for name, f in pairs(operations) do
      local A = te.placeholder({ 1, 2, 4, 4 }, F, "A")
      local W = te.placeholder({ 2, 2, 3, 3 }, F, "W")
      local B = topi.nn.conv2d(A, W, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 })
      local C = f[1](B, 8.0)
      local s = te.create_schedule(C.op)
      s[B]:compute_at(s[C], s[C].op.axis[2])
      assert.is_truthy(keeps.same(s, { A, W, C }), name)
    end
  end)
end)
