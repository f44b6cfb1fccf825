-- te.hybrid.script: functions of loops as tensors. The names in brackets are those of TVM's tests.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local function fails(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

-- What the tensors behind the inputs are.
local function run(outs, inputs, values)
  local args = { table.unpack(inputs) }
  for _, out in ipairs(outs) do args[#args + 1] = out end
  local s = te.create_schedule(outs[1].op)
  local all = { table.unpack(values) }
  for i, out in ipairs(outs) do
    local n = 1
    for _, dim in ipairs(out.shape) do n = n * dim.value end
    assert.is_true(n > 0)
    all[#values + i] = pl.tensor(values[1]):to_table()
  end
  local function blank(shape, level)
    local rows = {}
    for i = 1, shape[level].value do
      rows[i] = level < #shape and blank(shape, level + 1) or 0.0
    end
    return rows
  end
  for i, out in ipairs(outs) do all[#values + i] = blank(out.shape, 1) end
  local results, found = tir.run(pl.lower(s, { args = args }), all), {}
  for i = 1, #outs do found[i] = results[#inputs + i]:to_table() end
  return found, s
end

describe("te.hybrid.script", function()
  it("multiplies two vectors [test_outer_product]", function()
    local A, B = te.placeholder({ 3 }, F, "a"), te.placeholder({ 2 }, F, "b")
    local outer = te.hybrid.script(function(h, a, b)
      local c = h.output_tensor({ a.shape[1], b.shape[1] }, a.dtype)
      for i in h.range(a.shape[1]) do
        for j in h.range(b.shape[1]) do c[{ i, j }] = a[{ i }] * b[{ j }] end
      end
      return c
    end, { name = "outer" })
    local C = outer(A, B)
    assert.equal("outer", C.op.name)
    assert.same({ { { 4, 5 }, { 8, 10 }, { 12, 15 } } }, (run({ C }, { A, B },
      { { 1.0, 2.0, 3.0 }, { 4.0, 5.0 } })))
  end)

  it("decides by conditions [test_if]", function()
    local A = te.placeholder({ 6 }, F, "a")
    local f = te.hybrid.script(function(h, a)
      local b = h.output_tensor({ 6 }, F)
      for i in h.range(6, "i") do
        h.if_(tir.EQ(i % 2, 0), function() b[{ i }] = -a[{ i }] end, function()
          h.if_(tir.GT(i, 3), function() b[i] = 0.0 end, function() b[i] = a[i] end)
        end)
      end
      return b
    end)
    assert.same({ { -1, 2, -3, 4, -5, 0 } }, (run({ f(A) }, { A },
      { { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 } })))
  end)

  it("has memory of its own [test_allocate]", function()
    local A = te.placeholder({ 5 }, F, "a")
    local blur = te.hybrid.script(function(h, a)
      local b = h.output_tensor({ 3 }, F)
      for i in h.range(3) do
        local sum = h.allocate({ 1 }, F, "local")
        sum[0] = 0.0
        for j in h.unroll(3) do sum[0] = sum[0] + a[i + j] end
        b[i] = sum[0]
      end
      return b
    end)
    assert.same({ { 6, 9, 12 } }, (run({ blur(A) }, { A }, { { 1.0, 2.0, 3.0, 4.0, 5.0 } })))
  end)

  it("has loops of every kind, from any first round [test_bind, test_looptype]", function()
    local A = te.placeholder({ 8 }, F, "a")
    local f = te.hybrid.script(function(h, a)
      local b, c = h.output_tensor({ 8 }, F), h.output_tensor({ 8 }, F)
      for i in h.parallel(8) do b[i] = a[i] + 1 end
      for i in h.vectorize(8) do c[i] = a[i] * 2 end
      for i in h.range(2, 4) do c[i] = b[i] + c[i - 1] end
      return b, c
    end)
    local B, C = f(A)
    assert.same({ { 2, 2, 2, 2, 2, 2, 2, 2 }, { 2, 2, 4, 6, 2, 2, 2, 2 } }, (run({ B, C }, { A },
      { { 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0 } })))
    local text = tostring(te.create_schedule(B.op):to_module({ A, B, C }, "main"))
    assert.matches("T.parallel%(8%)", text)
    assert.matches("T.vectorized%(8%)", text)
  end)

  it("reads what is computed, lists and values [test_upstream, test_downstream, test_array_inputs]",
    function()
      local A = te.placeholder({ 4 }, F, "a")
      local B = te.compute({ 4 }, function(i) return A[{ i }] + 1 end, "B")
      local f = te.hybrid.script(function(h, list, scale)
        local out = h.output_tensor({ 4 }, F)
        for i in h.range(4) do
          out[i] = 0.0
          for _, x in ipairs(list) do out[i] = out[i] + x[i] * scale end
        end
        return out
      end)
      local C = f({ A, B, A }, 10.0)
      local D = te.compute({ 4 }, function(i) return C[{ i }] - 1 end, "D")
      assert.same({ { 39, 69, 99, 129 } }, (run({ D }, { A }, { { 1.0, 2.0, 3.0, 4.0 } })))
    end)

  it("calls functions [test_math_intrin]", function()
    local A = te.placeholder({ 2 }, F, "a")
    local f = te.hybrid.script(function(h, a)
      local out = h.output_tensor({ 2 }, F)
      for i in h.range(2) do out[i] = tir.sqrt(te.max(a[i], 0.0)) end
      return out
    end)
    assert.same({ { 3, 0 } }, (run({ f(A) }, { A }, { { 9.0, -4.0 } })))
  end)

  it("takes variables as sizes", function()
    local n = te.var "n"
    local A = te.placeholder({ n }, F, "a")
    local f = te.hybrid.script(function(h, a)
      local out = h.output_tensor({ n }, F)
      for i in h.range(n) do out[i] = a[i] + a[n - 1 - i] end
      return out
    end)
    local C = f(A)
    local mod = pl.lower(te.create_schedule(C.op), { args = { A, C } })
    assert.same({ 5, 5, 5, 5 }, tir.run(mod, { { 1.0, 2.0, 3.0, 4.0 },
      { 0.0, 0.0, 0.0, 0.0 } })[2]:to_table())
  end)

  it("refuses what cannot be", function()
    local A = te.placeholder({ 4 }, F, "a")
    local function script(f) return te.hybrid.script(f) end
    fails("'a' is an input: it is never written", script(function(_, a) a[0] = 1.0 end), A)
    fails("returned no output_tensor", script(function() end), A)
    fails("is not returned", script(function(h)
      h.output_tensor({ 1 }, F)
      return h.output_tensor({ 1 }, F)
    end), A)
    fails("must be an output_tensor", script(function(_, a) return a end), A)
    fails("has 1 dimensions, 2 indices are given", script(function(_, a) return a[{ 0, 0 }] end),
      A)
    fails("left by break", script(function(h)
      local out = h.output_tensor({ 4 }, F)
      for i in h.range(4) do
        out[i] = 1.0
        if i then break end
      end
      return out
    end), A)
    fails("outside of the loop or function", script(function(h)
      local out, kept = h.output_tensor({ 4 }, F), nil
      for i in h.range(4) do
        kept = h.allocate({ 1 }, F)
        kept[0] = 1.0
        out[i] = kept[0]
      end
      out[0] = kept[0]
      return out
    end), A)
    fails("no integer", script(function(h) return h.output_tensor({ 1.5 }, F) end), A)
    fails("number of its rounds", script(function(h) h.range() end), A)
    fails("f: a function expected", te.hybrid.script, 1)
    fails("has no field", script(function(_, a) a.b = 1 end), A)
  end)
end)
