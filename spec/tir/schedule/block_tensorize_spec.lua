-- luacheck: no max line length
-- sch:tensorize of PrimFuncs with blocks. The names in brackets are those of TVM's tests.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local function parse(text)
  return assert(tir.parse("from tvm.script import tir as T\n\n@T.prim_func\n" .. text)).functions.main
end

local description = [[
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 8), offset_factor=1)
    B = T.match_buffer(b, (4, 8), offset_factor=1)
    C = T.match_buffer(c, (16, 4), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:4], A[0:16, 0:8], B[0:4, 0:8])
        T.writes(C[0:16, 0:4])
        for i, j, k in T.grid(16, 4, 8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vj, vk])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
]]

local loops = [[
def main(a: T.handle, b: T.handle, c: T.handle):
    s0, s1, s2 = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (16, 8), strides=(s0, 1), offset_factor=1)
    B = T.match_buffer(b, (4, 8), strides=(s1, 1), offset_factor=1)
    C = T.match_buffer(c, (16, 4), strides=(s2, 1), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:4], A[0:16, 0:8], B[0:4, 0:8])
        T.writes(C[0:16, 0:4])
        for j, i, k in T.grid(4, 16, 8):
            C[i, j] = C[i, j] + B[j, k] * A[i, k]
]]

local calls = [[
def main(a: T.handle, b: T.handle, c: T.handle):
    s0, s1, s2 = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (16, 8), strides=(s0, 1), offset_factor=1)
    B = T.match_buffer(b, (4, 8), strides=(s1, 1), offset_factor=1)
    C = T.match_buffer(c, (16, 4), strides=(s2, 1), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:4], A[0:16, 0:8], B[0:4, 0:8])
        T.writes(C[0:16, 0:4])
        T.evaluate(T.call_extern("int32", "multiply_add", T.tvm_access_ptr(T.type_annotation("float32"), A.data, A.elem_offset, s0 * 16, 1), s0, T.tvm_access_ptr(T.type_annotation("float32"), B.data, B.elem_offset, s1 * 4, 1), s1, T.tvm_access_ptr(T.type_annotation("float32"), C.data, C.elem_offset, s2 * 16, 3), s2))
]]

local function matmul()
  local A, B = te.placeholder({ 32, 24 }, F, "A"), te.placeholder({ 8, 24 }, F, "B")
  local k = te.reduce_axis({ 0, 24 }, "k")
  local C = te.compute({ 32, 8 }, function(i, j)
    return te.sum(A[{ i, k }] * B[{ j, k }], k)
  end, "C")
  return te.create_prim_func { A, B, C }
end

-- The block's loops in tiles of 16, 4, 8, and the outermost loop of a tile.
local function tiled(fn, decompose)
  local sch = tir.Schedule(fn)
  local block = sch:get_block "C"
  local found = sch:get_loops(block)
  local at = #found - 3
  local io, ii = table.unpack(sch:split(found[at + 1], { nil, 16, n = 2 }))
  local jo, ji = table.unpack(sch:split(found[at + 2], { nil, 4, n = 2 }))
  local ko, ki = table.unpack(sch:split(found[at + 3], { nil, 8, n = 2 }))
  sch:reorder(io, jo, ko, ii, ji, ki)
  if decompose ~= false then sch:decompose_reduction(block, ko) end
  return sch, ii
end

describe("tir.Schedule.tensorize", function()
  local register = tir.TensorIntrin.register
  register("spec.multiply_add", parse(description), parse(loops), true)
  register("spec.multiply_add_c", parse(description), parse(calls), true)

  it("puts an implementation in the place of loops [test_tensorize_matmul]", function()
    local fn = matmul()
    local sch, loop = tiled(fn)
    sch:tensorize(loop, "spec.multiply_add")
    local text = tostring(sch.mod)
    assert.matches("T.match_buffer%(A%[v_i_o %* 16:v_i_o %* 16 %+ 16, v_k_o %* 8:v_k_o %* 8 %+ 8%]",
      text)
    assert.is_true(tir.verify_well_formed(sch.mod.functions.main))
    assert(tir.check(fn, sch.mod.functions.main))
    assert.matches('sch.tensorize%(block_or_loop=l%d+, tensor_intrin="spec.multiply_add"',
      tostring(sch.trace))
    local again = tir.Schedule(fn)
    again:apply_json(sch.trace:as_json())
    assert.is_true(pl.equal(sch.mod, again.mod, { map_free_vars = true }))
  end)

  it("takes a block, as blockize made it [test_tensorize_matmul]", function()
    local fn = matmul()
    local sch, loop = tiled(fn)
    sch:tensorize(sch:blockize(loop), "spec.multiply_add")
    assert(tir.check(fn, sch.mod.functions.main))
  end)

  it("is lowered, and computes the same", function()
    local fn = matmul()
    local sch, loop = tiled(fn)
    sch:tensorize(loop, "spec.multiply_add")
    assert(tir.check(fn, pl.lower(sch.mod).functions.main))
  end)

  it("calls a C function in generated code", function()
    local path = os.tmpname() .. ".h"
    local file = assert(io.open(path, "w"))
    file:write [[
#include <stdint.h>
static int32_t multiply_add(void *a, int32_t lda, void *b, int32_t ldb, void *c, int32_t ldc) {
  for (int32_t i = 0; i < 16; i++)
    for (int32_t j = 0; j < 4; j++)
      for (int32_t k = 0; k < 8; k++)
        ((float *)c)[i * ldc + j] += ((float *)a)[i * lda + k] * ((float *)b)[j * ldb + k];
  return 0;
}
]]
    file:close()
    local fn = matmul()
    local sch, loop = tiled(fn)
    sch:tensorize(loop, "spec.multiply_add_c")
    local built = pl.build(pl.lower(sch.mod), { target = "c", flags = { "-include", path } })
    local args = {}
    for n, shape in ipairs { { 32, 24 }, { 8, 24 }, { 32, 8 } } do
      args[n] = {}
      for i = 1, shape[1] do
        args[n][i] = {}
        for j = 1, shape[2] do args[n][i][j] = (i * 5 + j * 3 + n) % 7 - 3.0 end
      end
    end
    local results = { built.main(pl.tensor(args[1]), pl.tensor(args[2]), pl.tensor(args[3])) }
    if type(results[1]) == "table" then results = results[1] end
    os.remove(path)
    assert.same(tir.run(fn, args)[3]:to_table(), results[3]:to_table())
  end)

  it("keeps dimensions of one round apart [test_tensorize_batch_matmul]", function()
    local A, B = te.placeholder({ 3, 16, 8 }, F, "A"), te.placeholder({ 3, 4, 8 }, F, "B")
    local k = te.reduce_axis({ 0, 8 }, "k")
    local C = te.compute({ 3, 16, 4 }, function(b, i, j)
      return te.sum(A[{ b, i, k }] * B[{ b, j, k }], k)
    end, "C")
    local fn = te.create_prim_func { A, B, C }
    local sch, loop = tiled(fn)
    sch:tensorize(loop, "spec.multiply_add")
    assert.matches("T.match_buffer%(A%[", tostring(sch.mod))
    assert(tir.check(fn, sch.mod.functions.main))
  end)

  local function refuses(message, f)
    local ok, err = pcall(f)
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
  end

  it("refuses what the description does not say, and changes nothing", function()
    local sch, loop = tiled(matmul())
    local before = sch.mod
    refuses("TensorIntrin 'spec.none' is not registered",
      function() sch:tensorize(loop, "spec.none") end)
    register("spec.other", parse((description:gsub("A%[vi, vk%] %*", "A[vi, vk] -"))),
      parse(loops), true)
    refuses("TensorIntrin 'spec.other' does not match: the expression is",
      function() sch:tensorize(loop, "spec.other") end)
    register("spec.smaller", parse((description:gsub("T.grid%(16, 4, 8%)", "T.grid(16, 4, 4)"))),
      parse(loops), true)
    refuses("has the extent 8, not 4",
      function() sch:tensorize(loop, "spec.smaller") end)
    register("spec.fewer", parse(loops), parse(loops), true)
    refuses("has the extent 16, not 4",
      function() sch:tensorize(loop, "spec.fewer") end)
    register("spec.spatial", parse((description:gsub('"SSR"', '"SSS"'))), parse(loops), true)
    refuses("is of another type", function() sch:tensorize(loop, "spec.spatial") end)
    register("spec.transposed", parse((description:gsub("B%[vj, vk%]\n", "B[vj, 7 - vk]\n"))),
      parse(loops), true)
    refuses("an index of 'B' is", function() sch:tensorize(loop, "spec.transposed") end)
    assert.is_true(pl.equal(before, sch.mod))
  end)

  it("refuses programs and registrations that cannot be", function()
    refuses("tensor_intrin: a string expected", function()
      local sch, loop = tiled(matmul())
      sch:tensorize(loop, 1)
    end)
    refuses("must be PrimFuncs", function() register("spec.none", 1, 2) end)
    refuses("has already been registered",
      function() register("spec.multiply_add", parse(description), parse(loops)) end)
    refuses("number of parameters of the description and the implementation", function()
      register("spec.none", parse(description), parse(
        "def main(a: T.handle):\n    A = T.match_buffer(a, (4,))\n    with T.block(\"root\"):\n"
        .. "        T.reads()\n        T.writes(A[0:4])\n        A[0] = 1.0\n"))
    end)
    refuses("should be handle only", function()
      register("spec.none", parse("def main(n: T.int32):\n    with T.block(\"root\"):\n"
        .. "        T.reads()\n        T.writes()\n        T.evaluate(n)\n"), parse(loops))
    end)
    refuses("must be one block", function()
      register("spec.none", parse("def main(A: T.Buffer((4,))):\n    A[0] = 1.0\n"), parse(loops))
    end)
    assert.is_nil(tir.TensorIntrin.get("spec.none", true))
    assert.equal("spec.multiply_add", tir.TensorIntrin.get("spec.multiply_add").name)
    refuses("is not registered", function() tir.TensorIntrin.get "spec.none" end)
  end)
end)
