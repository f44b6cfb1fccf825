-- TVM's test_te_create_primfunc.py. Texts of whole functions are in ../create_prim_func_spec.lua.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te, tir, topi = pl.te, pl.tir, pl.topi
local F, I = "float32", "int32"

-- The function that reads as TVM's and computes what the default schedule does.
local function check_with(options, args, ...)
  local fn = te.create_prim_func(args, options)
  assert.is_true(tir.verify_well_formed(fn))
  local text = tostring(fn)
  for _, line in ipairs { ... } do
    assert.is_truthy(text:find(line, 1, true), line .. "\n" .. text)
  end
  assert.is_true(pl.equal(fn, assert(tir.parse(text)).functions.main))
  assert.is_truthy(tir.Schedule(fn))
  return fn
end

local function check(args, ...) return check_with(nil, args, ...) end

local function computes(args)
  local fn = check(args)
  local loops = te.create_schedule(args[#args].op):to_module(args, "main").functions.main
  assert(tir.check(loops, fn))
end

local function matmul()
  local A, B = te.placeholder({ 16, 16 }, F, "A"), te.placeholder({ 16, 16 }, F, "B")
  local k = te.reduce_axis({ 0, 16 }, "k")
  return A, B, te.compute({ 16, 16 }, function(x, y)
    return te.sum(A[{ x, k }] * B[{ y, k }], k)
  end, "C")
end

describe("test_te_create_primfunc", function()
  it("test_unique_name_complete_block", function()
    local A = te.placeholder({ 4, 4 }, F, "A")
    local B = te.compute({ 4, 4 }, function(x, y) return A[{ x, y }] * 2 end, "main")
    local C = te.compute({ 4, 4 }, function(x, y) return B[{ x, y }] + 1 end, "main")
    local s = tir.Schedule(te.create_prim_func { A, C })
    assert.is_truthy(s:get_block("main", "main"))
    assert.is_truthy(s:get_block("main_1", "main"))
  end)

  it("test_unique_name_reduction_block", function()
    local k1, k2 = te.reduce_axis({ 0, 4 }, "k1"), te.reduce_axis({ 0, 4 }, "k2")
    local A = te.placeholder({ 4, 4 }, F, "A")
    local B = te.compute({ 4 }, function(i) return te.sum(A[{ i, k1 }], k1) end, "sum")
    local C = te.compute({}, function() return te.sum(B[{ k2 }], k2) end, "sum")
    local s = tir.Schedule(te.create_prim_func { A, C })
    assert.is_truthy(s:get_block("sum", "main"))
    assert.is_truthy(s:get_block("sum_1", "main"))
  end)

  it("test_matmul", function()
    local A, B, C = matmul()
    check({ A, B, C }, 'v_x, v_y, v_k = T.axis.remap("SSR", [x, y, k])', "with T.init():",
      "C[v_x, v_y] = C[v_x, v_y] + A[v_x, v_k] * B[v_y, v_k]")
    computes { A, B, C }
  end)

  it("test_element_wise", function()
    local A = te.placeholder({ 8, 8 }, F, "A")
    local B = te.compute({ 8, 8 }, function(x, y) return A[{ x, y }] * 2 end, "B")
    local C = te.compute({ 8, 8 }, function(x, y) return B[{ x, y }] + 1 end, "C")
    check({ A, C }, "B = T.alloc_buffer((8, 8))", "B[v_x, v_y] = A[v_x, v_y] * T.float32(2)")
    computes { A, C }
  end)

  it("test_conv2d", function()
    local A, W = te.placeholder({ 1, 2, 5, 5 }, F, "A"), te.placeholder({ 2, 3, 3, 2 }, F, "W")
    local padded = te.compute({ 1, 2, 7, 7 }, function(n, c, y, x)
      return te.if_then_else(te.all(tir.GE(y, 1), tir.LT(y - 1, 5), tir.GE(x, 1),
        tir.LT(x - 1, 5)), A[{ n, c, y - 1, x - 1 }], 0.0)
    end, "Apad")
    local rc, ry = te.reduce_axis({ 0, 2 }, "rc"), te.reduce_axis({ 0, 3 }, "ry")
    local rx = te.reduce_axis({ 0, 3 }, "rx")
    local B = te.compute({ 1, 2, 5, 5 }, function(n, f, y, x)
      return te.sum(padded[{ n, rc, y + ry, x + rx }] * W[{ rc, ry, rx, f }], { rc, ry, rx })
    end, "B")
    check({ A, W, B }, 'T.block("Apad")', '"SSSSRRR"')
    computes { A, W, B }
  end)

  it("test_multi_output", function()
    local m, n = te.var "m", te.var "n"
    local A0, A1 = te.placeholder({ m, n }, F, "A0"), te.placeholder({ m, n }, F, "A1")
    local B0, B1 = te.compute({ m, n }, function(i, j)
      return A0[{ i, j }] + 2, A1[{ i, j }] * 3
    end, "B")
    check({ A0, A1, B0, B1 }, 'T.block("B.v0")', 'T.block("B.v1")', "m, n = T.int32(), T.int32()")
  end)

  it("test_extern, test_extern_with_explicit_buffer_access", function()
    local A, B = te.placeholder({ 8, 8 }, F, "A"), te.placeholder({ 8, 8 }, F, "B")
    local P = te.placeholder({ 1 }, F, "P")
    local C = te.extern({ 8, 8 }, { A, B, P }, function(ins, outs)
      return tir.call_extern(I, "myfunc", ins[1].data, ins[2].data, outs[1].data, ins[3]:load(0))
    end, { name = "C" })
    check({ A, B, P, C }, 'T.block("C")', 'T.call_extern("int32", "myfunc", A.data, B.data, C.data')
  end)

  it("test_arg_order", function()
    local A, B, C = matmul()
    local head = tostring(te.create_prim_func { C, A, B }):match("def main(%b())")
    assert.matches("^%(C: .*A: .*B: ", head)
  end)

  it("test_tensor_layout_attr", function()
    local A, B = te.placeholder({ 16, 16 }, F, "A"), te.placeholder({ 16, 16 }, F, "B")
    local k = te.reduce_axis({ 0, 16 }, "k")
    local C = te.compute({ 16, 16 }, function(x, y) return te.sum(A[{ x, k }] * B[{ y, k }], k) end,
      "C", { attrs = { layout_free_placeholders = { B } } })
    local D = te.compute({ 16, 16 }, function(x, y) return C[{ x, y }] + 1 end, "D")
    check({ A, B, D }, '"layout_free_buffers": [1]')
    computes { A, B, D }
    keeps.fails("a list of placeholders is expected", te.compute, { 4 }, function(i)
      return A[{ i, i }]
    end, "E", { attrs = { layout_free_placeholders = { C } } })
  end)

  it("test_error_reporting", function()
    local X, state = te.placeholder({ 4, 3 }, F, "X"), te.placeholder({ 4, 3 }, F, "state")
    local init = te.compute({ 1, 3 }, function(_, i) return X[{ 0, i }] end, "init")
    local update = te.compute({ 4, 3 }, function(t, i)
      return state[{ t - 1, i }] + X[{ t, i }]
    end, "update")
    local scan = te.scan(init, update, state, { inputs = { X } })
    keeps.fails("is a ScanOp", te.create_prim_func, { X, state, scan })
  end)

  it("test_constant", function()
    local A = te.placeholder({ 5 }, F, "A")
    local B = te.compute({}, function() return te.const(2, F) end, "B")
    local C = te.compute({ 5 }, function(x) return A[{ x }] + B() end, "C",
      { tag = "broadcast" })
    local fn = check { C, A }
    local out = tir.run(fn, { { 0.0, 0, 0, 0, 0 }, { 1.0, 2.0, 3.0, 4.0, 5.0 } })
    assert.same({ 3, 4, 5, 6, 7 }, out[1]:to_table())
  end)

  it("test_data_dependent_access", function()
    local A, B = te.placeholder({ 4 }, F, "A"), te.placeholder({ 4 }, I, "B")
    local C = te.compute({ 4 }, function(i) return A[{ B[{ i }] }] end, "C")
    local out = tir.run(check { C, A, B },
      { { 0.0, 0, 0, 0 }, { 1.0, 2.0, 3.0, 4.0 }, pl.tensor({ 3, 1, 0, 2 }, I) })
    assert.same({ 4, 2, 1, 3 }, out[1]:to_table())
  end)

  it("test_select_simplify", function()
    -- A condition that is decided leaves no Select.
    local x = te.placeholder({ 1, 4, 2, 2 }, F, "x")
    local y = te.compute({ 1, 4 }, function(n, c)
      local h = te.reduce_axis({ 0, tir.Select(tir.EQ(te.indexmod(te.const(2, I), 1), 0),
        te.const(2, I), te.const(3, I)) }, "h")
      return te.sum(x[{ n, c, h, 0 }], h)
    end, "y")
    local text = tostring(check { x, y })
    assert.is_nil(text:find("Select", 1, true), text)
  end)

  it("test_tensor_attr", function()
    local A, B = te.placeholder({ 4, 4 }, F, "A"), te.placeholder({ 4, 4 }, F, "B")
    local k = te.reduce_axis({ 0, 4 }, "k")
    local C = te.compute({ 4, 4 }, function(x, y) return te.sum(A[{ x, k }] * B[{ y, k }], k) end,
      "C", { attrs = { hello = 1 } })
    check({ A, B, C }, 'T.block_attr({"hello": 1})')
  end)

  it("test_argmax_idx_val, test_argmax_val_idx", function()
    for _, index_first in ipairs { true, false } do
      local i, v = index_first and 1 or 2, index_first and 2 or 1
      local function ordered(index, value)
        return index_first and { index, value } or { value, index }
      end
      local argmax = te.comm_reducer(function(x, y)
        local first = tir.GE(x[v], y[v])
        return ordered(tir.Select(first, x[i], y[i]), tir.Select(first, x[v], y[v]))
      end, function()
        return ordered(te.const(-1, I), te.min_value(F))
      end)
      local idx, val = te.placeholder({ 2, 4 }, I, "idx"), te.placeholder({ 2, 4 }, F, "val")
      local k = te.reduce_axis({ 0, 4 }, "k")
      local a, b = te.compute({ 2 }, function(n)
        return argmax(ordered(idx[{ n, k }], val[{ n, k }]), k)
      end, "argmax")
      local fn = check({ idx, val, a, b }, "T.writes(argmax_v0[v_n], argmax_v1[v_n])")
      local ints, floats = pl.tensor({ 0, 0 }, I), pl.tensor { 0.0, 0.0 }
      local given = ordered(ints, floats)
      local out = tir.run(fn, { pl.tensor({ { 0, 1, 2, 3 }, { 0, 1, 2, 3 } }, I),
        { { 1.0, 4.0, 2.0, 3.0 }, { 1.0, -4.0, 2.0, 3.0 } }, given[1], given[2] })
      assert.same({ 1, 3 }, out[2 + i]:to_table())
      assert.same({ 4, 3 }, out[2 + v]:to_table())
    end
  end)

  it("test_int64_indices", function()
    local n = te.var("n", "int64")
    local A = te.placeholder({ n }, F, "A")
    local B = te.compute({ n }, function(i) return A[{ i }] + 1 end, "B")
    assert.equal("int64", B.op.axis[1].var.dtype)
    check({ A, B }, "n = T.int64()", "for i in range(n):", "T.axis.spatial(n, i)")
  end)

  it("test_matmul_int64", function()
    local fn = check_with({ index_dtype_override = "int64" }, { matmul() },
      "def main(A: T.Buffer((T.int64(16), T.int64(16)), \"float32\"), ",
      "in T.grid(T.int64(16), T.int64(16), T.int64(16)):", 'T.axis.remap("SSR", [')
    assert(tir.check(te.create_prim_func({ matmul() }), fn))
    assert.is_true(pl.equal(te.create_prim_func({ matmul() }),
      te.create_prim_func({ matmul() }, { index_dtype_override = "int32" })))
  end)

  it("test_resize2d_symbolic", function()
    local oh, ow = te.var("oh", "int64"), te.var("ow", "int64")
    local A = te.placeholder({ 2, 3, 128, 128 }, F, "A")
    local B = topi.image.resize2d(A, { oh, ow }, "nearest_neighbor", "half_pixel", "round")
    check_with({ index_dtype_override = "int64" }, { A, B }, "oh, ow = T.int64(), T.int64()",
      "(T.int64(2), T.int64(3), oh, ow)", "in T.grid(T.int64(2), T.int64(3), oh, ow):")
  end)

  it("test_zero_dim_add", function()
    local a, b = te.placeholder({}, I, "a"), te.placeholder({}, I, "b")
    local c = te.compute({}, function() return a() + b() end, "c")
    local fn = check({ a, b, c }, "c[()] = a[()] + b[()]", "T.axis.spatial(1, 0)")
    local out = tir.run(fn, { pl.tensor(3, I), pl.tensor(4, I), pl.tensor(0, I) })
    assert.equal(7, out[3]:to_table())
  end)

  it("test_reshape", function()
    local A = te.placeholder({ 2, 4 }, F, "A")
    local B = topi.reshape(A, { 4, 2 })
    computes { A, B }
  end)

  it("test_with_var_input", function()
    local idx, m, n = te.var("idx", "int64"), te.var("m", "int64"), te.var("n", "int64")
    local tensor = te.placeholder({ m, n }, F, "tensor")
    local slice = te.compute({ idx, n }, function(i, j) return tensor[{ i, j }] end, "slice")
    check({ tensor, idx, slice }, "idx: T.int64", 'v_i, v_j = T.axis.remap("SS", [i, j])')
  end)
end)
