-- TVM's test_te_hybrid_script.py: the tests that ../hybrid_spec.lua does not have.

local keeps = require "spec.te.keeps"
local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F, I = "float32", "int32"

-- What the outputs are for these values of the inputs.
local function run(outs, inputs, values)
  local args, all = { table.unpack(inputs) }, { table.unpack(values) }
  for _, out in ipairs(outs) do
    local shape = {}
    for i, dim in ipairs(out.shape) do shape[i] = dim.value end
    args[#args + 1], all[#all + 1] = out, pl.tensor.full(0, shape, out.dtype)
  end
  local results = tir.run(pl.lower(te.create_schedule(outs[1].op), { args = args }), all)
  local found = {}
  for i = 1, #outs do found[i] = results[#inputs + i]:to_table() end
  return table.unpack(found)
end

describe("test_te_hybrid_script", function()
  it("test_schedule", function()
    local a, b = te.placeholder({ 64 }, F, "a"), te.placeholder({ 64 }, F, "b")
    local c = te.hybrid.script(function(h, x, y)
      local out = h.output_tensor({ 64, 64 }, x.dtype)
      for i in h.range(64, "i") do
        for j in h.range(64, "j") do out[{ i, j }] = x[i] * y[j] end
      end
      return out
    end)(a, b)
    local i, j = table.unpack(c.op.axis)
    local args = { a, b, c }
    local expected = keeps.run(pl.lower(te.create_schedule(c.op), { args = args }), args)
    local function loops(s)
      local found, mod = {}, pl.lower(s, { args = args })
      assert.same(expected, keeps.run(mod, args))
      tir.pre_order(mod.functions.main.body, function(node)
        if node.kind == "For" then found[#found + 1] = node.loop_var.name end
      end)
      return table.concat(found, " ")
    end
    local s = te.create_schedule(c.op)
    local io, ii = s[c]:split(i, 4)
    s[c]:parallel(ii)
    local jo, ji = s[c]:split(j, 4)
    local joo, joi = s[c]:split(jo, 4)
    s[c]:vectorize(ji)
    s[c]:reorder(ii, io, joo, joi, ji)
    assert.equal("i.inner i.outer j.outer.outer j.outer.inner", loops(s))
    s = te.create_schedule(c.op)
    s[c]:fuse(i, j)
    assert.equal("i.j.fused", loops(s))
    s = te.create_schedule(c.op)
    s[c]:split(i, 3)
    assert.equal("i.outer i.inner j", loops(s))
    s = te.create_schedule(c.op)
    s[c]:bind(i, te.thread_axis "blockIdx.x")
    s[c]:bind(j, te.thread_axis "threadIdx.x")
    local text = tostring(s:to_module(args, "main"))
    assert.matches('T.launch_thread%("blockIdx.x", 64%)', text)
    assert.matches('T.launch_thread%("threadIdx.x", 64%)', text)
  end)

  it("test_fanout", function()
    local a = te.placeholder({ 6 }, F, "a")
    local fanout = te.hybrid.script(function(h, x)
      local b = h.output_tensor({ 3 }, F)
      for i in h.range(3, "i") do
        local sigma = h.allocate({ 1 }, F, "local", "sigma")
        sigma[0] = 0.0
        for j in h.range(3, "j") do sigma[0] = sigma[0] + x[i + j] end
        sigma[0] = sigma[0] / 3.0
        b[i] = sigma[0]
      end
      return b
    end)
    local b = fanout(a)
    assert.matches("sigma", tostring(te.create_schedule(b.op):to_module({ a, b }, "main")))
    assert.same({ 2, 3, 4 }, run({ b }, { a }, { { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 } }))
  end)

  it("test_non_zero", function()
    local a = te.placeholder({ 4, 4 }, F, "a")
    local blur = te.hybrid.script(function(h, x)
      local b = h.output_tensor({ 2, 2 }, F)
      for i in h.range(2, 4) do
        for j in h.range(2, 4) do
          local s = h.allocate({ 1 }, F, "local")
          s[0] = 0.0
          for di in h.range(3) do
            for dj in h.range(3) do s[0] = s[0] + x[{ i - di, j - dj }] end
          end
          b[{ i - 2, j - 2 }] = s[0] / 9.0
        end
      end
      return b
    end)
    assert.same({ { 6, 7 }, { 10, 11 } }, run({ blur(a) }, { a },
      { { { 1.0, 2.0, 3.0, 4.0 }, { 5.0, 6.0, 7.0, 8.0 }, { 9.0, 10.0, 11.0, 12.0 },
        { 13.0, 14.0, 15.0, 16.0 } } }))
    local p, q = te.placeholder({ 3 }, F, "p"), te.placeholder({ 3 }, F, "q")
    local triangle = te.hybrid.script(function(h, x, y)
      local c = h.output_tensor({ 3, 3 }, F)
      for i in h.range(3) do
        for j in h.range(3) do c[{ i, j }] = 0.0 end
        for j in h.range(i, 3) do c[{ i, j }] = x[i] * y[j] end
      end
      return c
    end)
    assert.same({ { 4, 5, 6 }, { 0, 10, 12 }, { 0, 0, 18 } },
      run({ triangle(p, q) }, { p, q }, { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }))
  end)

  it("test_const_param", function()
    local a = te.placeholder({ 4 }, I, "a")
    local add = te.hybrid.script(function(h, x, b)
      local c = h.output_tensor({ 4 }, I)
      for i in h.range(4) do c[i] = x[i] + b end
      return c
    end)
    local c = add(a, te.const(11, I))
    assert.same({ 12, 13, 14, 15 }, run({ c }, { a }, { pl.tensor({ 1, 2, 3, 4 }, I) }))
  end)

  it("test_value_index", function()
    local a = te.placeholder({ 4 }, I, "a")
    local kernel_a = te.hybrid.script(function(h, x)
      local b, c = h.output_tensor({ 4 }, I), h.output_tensor({ 2, 2 }, I)
      for i in h.range(4) do
        b[i] = x[i] + 2
        c[{ i // 2, i % 2 }] = x[i] + 1
      end
      return b, c
    end)
    local kernel_b = te.hybrid.script(function(h, b, x)
      local c = h.output_tensor({ 2, 2 }, I)
      for i in h.range(2) do
        for j in h.range(2) do c[{ i, j }] = x[i * 2 + j] * b[{ i, j }] end
      end
      return c
    end)
    local b, c = kernel_a(a)
    assert.equal(0, b.value_index)
    assert.equal(1, c.value_index)
    local d = kernel_b(c, b)
    assert.same({ { 2, 6 }, { 12, 20 } }, run({ d }, { a }, { pl.tensor({ 0, 1, 2, 3 }, I) }))
  end)

  it("test_func_call", function()
    -- A function of Lua is called with what is being written.
    local a, b = te.placeholder({ 3 }, F, "a"), te.placeholder({ 2 }, F, "b")
    local function outer(h, c, x, y)
      for i in h.range(3) do
        for j in h.range(2) do c[{ i, j }] = x[i] * y[j] end
      end
    end
    local foo = te.hybrid.script(function(h, x, y)
      local c, d = h.allocate({ 3, 2 }, F), h.output_tensor({ 3, 2 }, F)
      outer(h, c, x, y)
      for i in h.range(3) do
        for j in h.range(2) do d[{ i, j }] = c[{ i, j }] + tir.Cast(F, i * j) end
      end
      return d
    end)
    assert.same({ { 3, 4 }, { 6, 9 }, { 9, 14 } },
      run({ foo(a, b) }, { a, b }, { { 1.0, 2.0, 3.0 }, { 3.0, 4.0 } }))
  end)

  it("test_bool", function()
    local a = te.placeholder({ 6 }, F, "a")
    local foo = te.hybrid.script(function(h, x)
      local b = h.output_tensor({ 6 }, F)
      b[0] = 1.5
      b[5] = 0.0
      for i in h.range(1, 5) do
        local product = x[i] * x[i - 1]
        h.if_(te.any(tir.LT(product, x[i]), tir.LT(product, x[i - 1])), function() b[i] = x[i] end,
          function() b[i] = 0.0 end)
      end
      return b
    end)
    assert.same({ 1.5, -2, 3, 0, 0, 0 },
      run({ foo(a) }, { a }, { { 2.0, -2.0, 3.0, 4.0, 1.0, 9.0 } }))
  end)

  it("test_const_range", function()
    -- A loop of Lua is written out; lists are Lua's.
    local a = te.placeholder({ 2, 3 }, F, "a")
    local list = { { 1, 2, 3 }, { 5, 4, 3 } }
    local foo = te.hybrid.script(function(h, x, b)
      local c, d = h.output_tensor({ 2, 3 }, F), h.output_tensor({ 2, 3 }, I)
      for i = 0, 1 do
        for j = 0, 2 do
          c[{ i, j }] = x[{ i, j }] + b[i + 1][j + 1]
          d[{ i, j }] = tir.Cast(I, x[{ i, j }] + b[i + 1][j + 1])
        end
      end
      return c, d
    end)
    local c, d = foo(a, list)
    local x, y = run({ c, d }, { a }, { { { 1.5, 2.5, 3.5 }, { 1.0, 2.0, 3.0 } } })
    assert.same({ { 2.5, 4.5, 6.5 }, { 6, 6, 6 } }, x)
    assert.same({ { 2, 4, 6 }, { 6, 6, 6 } }, y)
    local text = tostring(te.create_schedule(c.op):to_module({ a, c, d }, "main"))
    assert.is_nil(text:find("for ", 1, true))
  end)

  it("test_capture", function()
    local n, constants = 4, { { 1, 2 }, { 3, 8 } }
    local a = te.placeholder({ n }, I, "a")
    local add = te.hybrid.script(function(h, x)
      local c = h.output_tensor({ n }, I)
      for i in h.range(n) do c[i] = x[i] + constants[2][2] end
      return c
    end)
    assert.same({ 9, 10, 11, 12 }, run({ add(a) }, { a }, { pl.tensor({ 1, 2, 3, 4 }, I) }))
  end)
end)
