-- TVM's test_te_autodiff.py; derivatives of sums with the head 1, against central differences.

local pl = require "perilune"
local shaped = require "spec.te.shaped"
local keeps = require "spec.te.keeps"

local te, tir, topi = pl.te, pl.tir, pl.topi
local D = "float64"

local function flat(value, out)
  if type(value) ~= "table" then out[#out + 1] = value end
  for _, part in ipairs(type(value) == "table" and value or {}) do flat(part, out) end
  return out
end

local function shape_of(tensor)
  local shape = {}
  for i, dim in ipairs(tensor.shape) do shape[i] = dim.value end
  return shape
end

local function tensor_of(list, like)
  return pl.tensor(shaped(list, shape_of(like)), like.dtype)
end

local function random_list(like, seed, low, high)
  local list, n = {}, 1
  for _, extent in ipairs(shape_of(like)) do n = n * extent end
  for i = 1, n do
    seed = (seed * 75 + 74) % 65537
    list[i] = low + (high - low) * (seed % 1009) / 1009
  end
  return list
end

-- The operations that a tensor is computed of.
local function read_by(tensor)
  local found, stack = {}, { tensor.op }
  while #stack > 0 do
    for _, op in ipairs(table.remove(stack).inputs) do
      if not found[op] then
        found[op] = true
        stack[#stack + 1] = op
      end
    end
  end
  return found
end

-- The values of a tensor; inputs that it does not read are left out.
local function compute(tensor, inputs, lists)
  local args, values, found = {}, {}, read_by(tensor)
  for i, one in ipairs(inputs) do
    if found[one.op] then
      args[#args + 1], values[#values + 1] = one, tensor_of(lists[i], one)
    end
  end
  args[#args + 1], values[#values + 1] = tensor, pl.tensor.full(0, shape_of(tensor), tensor.dtype)
  local mod = te.create_schedule(tensor.op):to_module(args, "main")
  return flat(tir.run(mod, values)[#args]:to_table(), {})
end

-- The derivatives of the sum of `out`.
local function check_grad(out, inputs, low, high, expected)
  local ones = topi.full_like(out, 1.0)
  local gradients, lists = te.gradient(out, inputs, ones), {}
  for i, input in ipairs(inputs) do lists[i] = random_list(input, 17 * i, low or -2, high or 2) end
  local function sum()
    local total = 0
    for _, value in ipairs(compute(out, inputs, lists)) do total = total + value end
    return total
  end
  for i in ipairs(inputs) do
    local got = compute(gradients[i], inputs, lists)
    for k = 1, #got, math.max(1, #got // 6) do
      local before, h = lists[i][k], 1e-5
      lists[i][k] = before + h
      local up = sum()
      lists[i][k] = before - h
      local down = sum()
      lists[i][k] = before
      local want = expected or (up - down) / (2 * h)
      assert.is_true(math.abs(got[k] - want) <= 1e-4 * (1 + math.abs(want)),
        ("element %d: %.9g, not %.9g"):format(k, got[k], want))
    end
  end
end

local function input(shape, name) return te.placeholder(shape, D, name) end

local function convolve(x, w, stride, pad, dilation)
  return topi.nn.conv2d(x, w, { stride, stride }, { pad, pad, pad, pad }, { dilation, dilation })
end

describe("test_te_autodiff", function()
  it("test_basic_operation", function()
    local A0, A1 = input({ 4, 4 }, "A0"), input({ 4, 4 }, "A1")
    local k = te.reduce_axis({ 0, 4 }, "k")
    local function each(f) return te.compute({ 4, 4 }, f, "B") end
    check_grad(each(function(i, j) return A0[{ i, j }] end), { A0 })
    check_grad(each(function(i, j) return A0[{ i, j }] + A1[{ i, j }] end), { A0, A1 })
    check_grad(each(function(i, j) return A0[{ i, j }] + A0[{ j, i }] end), { A0 })
    for _, f in ipairs { te.floor, te.ceil, te.trunc, te.round } do
      check_grad(each(function(i, j) return f(A0[{ i, j }]) end), { A0 }, -2, 2, 0)
    end
    check_grad(each(function(i, j)
      return te.log(te.abs(A0[{ i, j }] + te.exp(A0[{ j, i }])) + 0.1)
    end), { A0 })
    for _, f in ipairs { te.sigmoid, te.tanh } do
      check_grad(each(function(i, j)
        return f(A0[{ i, j }] * A0[{ i, j }] * A0[{ j, i }])
      end), { A0 })
    end
    check_grad(each(function(i, j)
      return te.sqrt(A0[{ i, j }] * A0[{ i, j }] * A0[{ j, i }])
    end), { A0 }, 0.1, 3)
    check_grad(each(function(i, j) return te.power(te.abs(A0[{ i, j }]), A0[{ j, i }]) end),
      { A0 }, 0.2, 2)
    check_grad(te.compute({ 4 }, function(i)
      return te.sum(A0[{ i, k }] * A0[{ k, i }], k)
    end, "B"), { A0 })
    check_grad(each(function(i, j) return te.max(A0[{ i, k }] * A0[{ k, j }] + 5, k) end), { A0 })
    check_grad(each(function(i, j) return A0[{ i, j }] * (A1[{ j, i }] + A0[{ j, i }]) end),
      { A0, A1 })
    check_grad(each(function(i, j)
      return te.sum(A0[{ k, k }] - A0[{ te.min(j + k, 3), j }] * A0[{ i, k }], k)
    end), { A0 })
    -- TVM differentiates a product reduction; here only sums, maxima and minima have derivatives.
    local product = te.comm_reducer(function(x, y) return x * y end, function(t)
      return te.const(1, t)
    end)
    local B = each(function(i, j) return product(A0[{ i, k }] + A0[{ k, j }], k) end)
    keeps.fails("sums, maxima and minima", te.gradient, B, { A0 })
  end)

  it("test_topi", function()
    local X, W = input({ 1, 2, 4, 4 }, "X"), input({ 2, 2, 3, 3 }, "W")
    check_grad(convolve(X, W, 1, 1, 1), { X, W })
    local W2 = input({ 1 }, "W2")
    check_grad(topi.broadcast_to(W2, { 2, 2, 3, 3 }), { W2 })
    check_grad(topi.reshape(X, { 1, 32 }), { X })
    local rows = topi.reshape(X, { 2, 16 })
    check_grad(topi.sigmoid(rows), { X })
    check_grad(topi.tanh(rows), { X })
    local Y = input({ 1, 2, 3, 4 }, "Y")
    check_grad(topi.concatenate({ X, Y }, 2), { X, Y })
    local P, Q = input({ 3, 4 }, "P"), input({ 2, 4 }, "Q")
    check_grad(topi.exp(topi.nn.dense(P, Q)), { P, Q }, -1, 1)
  end)

  it("test_stride_dilation", function()
    local X = input({ 1, 1, 6, 6 }, "X")
    for _, size in ipairs { 1, 2 } do
      local W = input({ 1, 1, size, size }, "W")
      for stride = 1, 3, 2 do
        for dilation = 1, 2 do
          check_grad(convolve(X, W, stride, 0, dilation), { X, W })
        end
      end
    end
  end)

  it("test_reduction_init", function()
    local A, k = input({ 4, 4 }, "A"), te.reduce_axis({ 0, 4 }, "k")
    local B = te.compute({ 4 }, function(i)
      return te.sum(A[{ i, k }] * A[{ k, i }], k, nil, te.const(0.0, D))
    end, "B")
    keeps.fails("init", te.gradient, B, { A })
  end)

  it("test_stable", function()
    local X, W = input({ 1, 2, 6, 6 }, "X"), input({ 2, 2, 1, 1 }, "W")
    local R = convolve(X, W, 2, 0, 1)
    local first
    for _ = 1, 5 do
      local gradient = te.gradient(R, { X }, topi.full_like(R, 1.0))[1]
      local text = tostring(te.create_schedule(gradient.op):to_module({ W, gradient }, "main"))
      first = first or text
      assert.equal(first, text)
    end
  end)
end)
