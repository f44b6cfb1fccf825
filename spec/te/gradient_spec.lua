-- te.gradient against finite differences: the interpreter computes both.

local pl = require "perilune"

local te, tir = pl.te, pl.tir

local function sizes(tensor)
  local dims, n = {}, 1
  for i, dim in ipairs(tensor.shape) do
    dims[i] = dim.value
    n = n * dim.value
  end
  return dims, n
end

local function nested(flat, dims)
  local at = 0
  local function level(k)
    if k > #dims then
      at = at + 1
      return flat[at]
    end
    local rows = {}
    for i = 1, dims[k] do rows[i] = level(k + 1) end
    return rows
  end
  return level(1)
end

local function flattened(value, out)
  out = out or {}
  if type(value) ~= "table" then
    out[#out + 1] = value
  else
    for _, each in ipairs(value) do flattened(each, out) end
  end
  return out
end

-- Whether the tensor is computed of the input.
local function is_read(tensor, one)
  local list, seen = { tensor.op }, {}
  for at = 1, 1000 do
    local op = list[at]
    if op == nil then return false end
    if op == one.op then return true end
    for _, each in ipairs(op.inputs) do
      if not seen[each] then list[#list + 1] = each end
      seen[each] = true
    end
  end
  return false
end

-- The values of the tensor for flat values of the inputs.
local function compiled(tensor, inputs)
  local args, places = {}, {}
  for i, one in ipairs(inputs) do
    if is_read(tensor, one) then
      args[#args + 1] = one
      places[#args] = i
    end
  end
  args[#args + 1] = tensor
  local mod = te.create_schedule(tensor.op):to_module(args, "main")
  return function(values)
    local given = {}
    for i, input in ipairs(args) do
      local dims, n = sizes(input)
      local flat = places[i] and values[places[i]] or {}
      for k = #flat + 1, n do flat[k] = 0.0 end
      given[i] = pl.tensor(nested(flat, dims), input.dtype)
    end
    return flattened(tir.run(mod, given, { uninitialized = "error" })[#args]:to_table())
  end
end

local function random_values(inputs, seed)
  local state, values = seed, {}
  for i, input in ipairs(inputs) do
    local _, n = sizes(input)
    values[i] = {}
    for k = 1, n do
      state = (state * 75 + 74) % 65537
      values[i][k] = state % 1000 / 500 - 1 + 0.0005
    end
  end
  return values
end

-- All derivatives of the output, each against a central difference.
local function check(output, inputs, seed)
  local f, values = compiled(output, inputs), random_values(inputs, seed or 17)
  local gradients = te.gradient(output, inputs)
  local _, m = sizes(output)
  for i, input in ipairs(inputs) do
    local jacobian = compiled(gradients[i], inputs)(values)
    local _, n = sizes(input)
    assert.are.equal(m * n, #jacobian)
    for k = 1, n do
      local before, h = values[i][k], 1e-5
      values[i][k] = before + h
      local up = f(values)
      values[i][k] = before - h
      local down = f(values)
      values[i][k] = before
      for j = 1, m do
        local expected = (up[j] - down[j]) / (2 * h)
        local got = jacobian[(j - 1) * n + k]
        assert.is_true(math.abs(got - expected) <= 1e-5 * (1 + math.abs(expected)),
          ("d%s[%d]/d%s[%d] is %.9g, not %.9g"):format(output.name, j, input.name, k, got,
            expected))
      end
    end
  end
  return gradients
end

local function input(shape, name) return te.placeholder(shape, "float64", name) end

-- The loops that an operation's gradient sums over.
local function axes_of(tensor) return #(tensor.op.reduce_axis or {}) end

describe("te.gradient", function()
  it("differentiates elementwise functions", function()
    local A = input({ 3, 2 }, "A")
    for _, f in ipairs {
      function(x) return x * x + x / (x * x + 2.0) - 3.0 * x end, te.exp, te.tanh, te.sigmoid,
      te.sin, te.cos, te.abs, te.tan, function(x) return te.log(x * x + 1.0) end,
      function(x) return te.sqrt(x * x + 1.0) end,
      function(x) return tir.rsqrt(x * x + 1.0) end,
      function(x) return te.power(x * x + 1.0, x) end,
      function(x) return tir.max(x, 0.25) * tir.min(x, x * x) end,
      function(x) return tir.Select(tir.GT(x, 0.1), x * x, x) end,
      function(x) return te.if_then_else(tir.GT(x, 0.1), x * x, -x) end,
      function(x) return te.floor(x * 3.0) * x end,
    } do
      check(te.compute({ 3, 2 }, function(i, j) return f(A[{ i, j }]) end, "B"), { A })
    end
  end)

  it("is 0 where the output does not depend on an input", function()
    local A, B = input({ 3 }, "A"), input({ 2 }, "B")
    check(te.compute({ 3 }, function(i) return A[{ i }] * 2.0 end, "C"), { A, B })
  end)

  it("differentiates products of matrices, whose sums need no more loops", function()
    local A, B = input({ 3, 4 }, "A"), input({ 4, 2 }, "B")
    local k = te.reduce_axis({ 0, 4 }, "k")
    local C = te.compute({ 3, 2 }, function(i, j) return te.sum(A[{ i, k }] * B[{ k, j }], k) end,
      "C")
    check(C, { A, B })
    local H = input({ 3, 2 }, "H")
    local by_a, by_b = table.unpack(te.gradient(C, { A, B }, H))
    assert.are.equal(1, axes_of(by_a))
    assert.are.equal(1, axes_of(by_b))
    assert.are.same({ 3, 4 }, (sizes(by_a)))
  end)

  it("differentiates a chain, a tensor that is read twice, and broadcasts", function()
    local A, b = input({ 3, 3 }, "A"), input({ 3 }, "b")
    local B = te.compute({ 3, 3 }, function(i, j) return te.exp(A[{ i, j }]) + b[{ j }] end, "B")
    local C = te.compute({ 3, 3 }, function(i, j) return B[{ i, j }] * B[{ j, i }] end, "C")
    local D = te.compute({ 3 }, function(i) return C[{ i, 1 }] + B[{ 0, i }] + b[{ i }] end, "D")
    check(D, { A, b })
  end)

  it("differentiates convolutions, strided ones and pooling", function()
    local A, W = input({ 7 }, "A"), input({ 3 }, "W")
    local k = te.reduce_axis({ 0, 3 }, "k")
    local C = te.compute({ 5 }, function(i) return te.sum(A[{ i + k }] * W[{ k }], k) end, "C")
    local by_a = check(C, { A, W })[1]
    assert.is_true(axes_of(by_a) <= 1)
    k = te.reduce_axis({ 0, 3 }, "k")
    check(te.compute({ 3 }, function(i) return te.sum(A[{ i * 2 + k }] * W[{ k }], k) end, "C"),
      { A, W })
    for _, best in ipairs { te.max, te.min } do
      k = te.reduce_axis({ 0, 2 }, "k")
      check(te.compute({ 3 }, function(i) return best(A[{ i * 2 + k }] * A[{ 0 }], k) end, "P"),
        { A })
    end
  end)

  it("differentiates reshapes, padding and flips", function()
    local A = input({ 3, 4 }, "A")
    check(te.compute({ 12 }, function(i) return A[{ i // 4, i % 4 }] end, "R"), { A })
    check(te.compute({ 3, 6 }, function(i, j)
      return te.if_then_else(tir.And(tir.GE(j, 1), tir.LT(j, 5)), A[{ i, j - 1 }] * 2.0, 0.0)
    end, "P"), { A })
    check(te.compute({ 3, 4 }, function(i, j) return A[{ 2 - i, 3 - j }] * A[{ i, j }] end, "F"),
      { A })
  end)

  it("sums over conditions and several axes", function()
    local A = input({ 3, 4 }, "A")
    local i, k = te.reduce_axis({ 0, 3 }, "i"), te.reduce_axis({ 0, 4 }, "k")
    local S = te.compute({ 2 }, function(j)
      return te.sum(A[{ i, k }] * A[{ j, k }], { i, k }, tir.LE(i.var, k.var))
    end, "S")
    check(S, { A })
  end)

  it("gives a maximum's derivative to its first place alone", function()
    local A, H = input({ 4 }, "A"), input({ 1 }, "H")
    local k = te.reduce_axis({ 0, 4 }, "k")
    local M = te.compute({ 1 }, function() return te.max(A[{ k }], k) end, "M")
    local values = compiled(te.gradient(M, { A }, H)[1], { A, H }){ { 1, 2, 2, 0 }, { 5 } }
    assert.are.same({ 0, 5, 0, 0 }, values)
  end)

  it("refuses what has no derivative, by name", function()
    local A, I = input({ 3 }, "A"), te.placeholder({ 3 }, "int32", "I")
    local B = te.compute({ 3 }, function(i) return A[{ i }] end, "B")
    local k = te.reduce_axis({ 0, 3 }, "k")
    local P = te.compute({ 1 }, function() return tir.prod(A[{ k }], k) end, "P")
    for message, f in pairs {
      ["the dtype int32"] = function() te.gradient(B, { I }) end,
      ["an input must be a tensor"] = function() te.gradient(B, { 3 }) end,
      ["the output must be a tensor"] = function() te.gradient(nil, { A }) end,
      ["not those of the output"] = function() te.gradient(B, { A }, input({ 2 }, "H")) end,
      ["'P' reduces by"] = function() te.gradient(P, { A }) end,
      ["derivative of T.atan2 is not known"] = function()
        te.gradient(te.compute({ 3 }, function(i) return tir.atan2(A[{ i }], A[{ i }]) end, "C"),
          { A })
      end,
    } do
      local ok, err = pcall(f)
      assert.is_false(ok)
      assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
    end
  end)
end)
