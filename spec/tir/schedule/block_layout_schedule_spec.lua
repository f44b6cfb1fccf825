-- tir.Schedule: where elements lie and in which order blocks compute them.
-- luacheck: no max line length
local pl = require "perilune"
local block_schedule = require "spec.tir.schedule.block_schedule"

local parse, becomes, refuses, loops_of = block_schedule.parse, block_schedule.becomes,
  block_schedule.refuses, block_schedule.loops_of
local elementwise, chain, matmul = block_schedule.elementwise, block_schedule.chain,
  block_schedule.matmul
local te, tir = pl.te, pl.tir

local function replays(before, sch)
  assert.is_true(pl.equal(sch.mod, tir.Schedule(parse(before)):apply_json(sch.trace:as_json()).mod))
  assert.is_true(pl.equal(sch.mod, tir.Schedule(parse(before)):apply_trace(sch).mod))
end

local function says(sch, line)
  assert.is_truthy(tostring(sch.trace):find(line, 1, true), tostring(sch.trace))
end

local rows_and_columns = [[
def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, k in T.grid(16, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(B[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
]]

describe("tir.Schedule.transform_block_layout", function()
  it("makes the iterators of a block others", function()
    local sch = becomes(rows_and_columns, function(sch)
      sch:transform_block_layout(sch:get_block "B", function(i, j) return i * 8 + j end)
      sch:transform_block_layout(sch:get_block "C", function(i, k) return k // 2, i, k % 2 end)
    end, [[
def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 8))
    for ax0 in range(128):
        with T.block("B"):
            v0 = T.axis.spatial(128, ax0)
            T.reads(A[v0 // 8, v0 % 8])
            T.writes(B[v0 // 8, v0 % 8])
            B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8] * T.float32(2)
    for ax0, ax1, ax2 in T.grid(4, 16, 2):
        with T.block("C"):
            v0, v1, v2 = T.axis.remap("RSR", [ax0, ax1, ax2])
            T.reads(B[v1, v0 * 2 + v2])
            T.writes(C[v1])
            with T.init():
                C[v1] = T.float32(0)
            C[v1] = C[v1] + B[v1, v0 * 2 + v2]
]])
    says(sch, "sch.transform_block_layout(block=b0, index_map=lambda i0, i1: (i0 * 8 + i1,))")
    replays(rows_and_columns, sch)
    -- The block keeps its variable.
    sch:decompose_reduction(sch:get_block "C", sch:get_loops(sch:get_block "C")[1])
    assert(tir.check(parse(rows_and_columns), sch.mod))
  end)

  it("keeps iterators of one round, and the dtype of the others", function()
    local long = function(n) return tir.const(n, "int64") end
    local A = te.placeholder({ long(1), long(12), long(1) }, "float32", "A")
    local B = te.compute({ long(1), long(12), long(1) }, function(a, b, c)
      return A[{ a, b, c }] + 1
    end, "B")
    local fn = te.create_prim_func { A, B }
    local sch = tir.Schedule(fn)
    sch:transform_block_layout(sch:get_block "B", function(a, b, c) return b // 4, b % 4, a + c end)
    local ok, err = pcall(function() return sch.mod end)
    assert.is_true(ok, tostring(err))
    assert(tir.check(fn, sch.mod))
  end)

  it("says why not", function()
    local function with(map, before)
      return function(sch)
        local block = sch:get_block "C"
        if before then before(sch, block) end
        sch:transform_block_layout(block, map)
      end
    end
    local where = "tir.Schedule.transform_block_layout: "
    local function same(i, k) return i, k end
    refuses(rows_and_columns, with(function(i, k) return i * 8 + k end),
      where .. "index 0 of the map mixes spatial iterators and reductions of block 'C'")
    refuses(rows_and_columns, with(function(i) return i end),
      where .. "the map has 1 variables, block 'C' 2 iterators")
    refuses(rows_and_columns, with(function(i, k) return i // 2, k end),
      "the map is not bijective on the domain of the iterators of block 'C'")
    refuses(rows_and_columns, with(function(i, k) return i + 1, k end),
      "index 0 of the map does not begin with 0")
    refuses(rows_and_columns, with(function(i, k) return i, te.AXIS_SEPARATOR, k end),
      "the map has an axis separator")
    refuses(rows_and_columns, with(3), "a function or an IndexMap expected, got number")
    refuses(rows_and_columns, with(same, function(sch, block)
      sch:split(sch:get_loops(block)[1], { 4, 4 })
    end), "block 'C': iterator 'vi' is not bound to a loop of its own")
    refuses(rows_and_columns, with(same, function(sch, block)
      sch:unroll(sch:get_loops(block)[2])
    end), "loop 'k' is not serial, or has annotations, which would be lost")
    refuses(rows_and_columns, with(same, function(sch, block)
      sch:compute_at(sch:get_block "B", sch:get_loops(block)[1])
    end), "is not the only statement of loop 'i'")
    refuses(rows_and_columns, function(sch)
      sch:transform_block_layout(sch:get_block "root", function() return 0 end)
    end, "block 'root' has no iterators")
  end)
end)

describe("tir.Schedule.set_axis_separator", function()
  it("keeps dimensions apart where they are flattened", function()
    local sch = becomes(chain, function(sch)
      sch:set_axis_separator(sch:get_block "B", { "write", 0 }, { 1 })
    end, [[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), axis_separators=[1])
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1)
]])
    says(sch, 'sch.set_axis_separator(block=b0, buffer=("write", 0), axis_separators=[1])')
    replays(chain, sch)
    local low = pl.lower(sch.mod)
    assert.is_truthy(tostring(low):find("T.allocate([16, 16]", 1, true), tostring(low))
    -- None are there again.
    sch:set_axis_separator(sch:get_block "C", { "read", 0 }, {})
    assert.is_true(pl.equal(parse(chain), sch.mod.functions.main, { map_free_vars = true }))
    -- A parameter has them, too.
    sch:set_axis_separator(sch:get_block "C", { "write", 0 }, { 1 })
    assert.is_truthy(tostring(sch.mod):find('C: T.Buffer((16, 16), axis_separators=[1])', 1, true)
      or tostring(sch.mod):find("axis_separators=[1]", 1, true), tostring(sch.mod))
  end)

  it("is a step of a transform_layout with separators, and both or none are done", function()
    local function map(i, j) return i // 4, te.AXIS_SEPARATOR, i % 4, j end
    local sch = tir.Schedule(parse(chain))
    local block = sch:get_block "B"
    sch:transform_layout(block, { "write", 0 }, map)
    assert.equal(3, sch:n_steps())
    says(sch, 'index_map=lambda i0, i1: (i0 // 4, i0 % 4, i1))\n'
      .. '  sch.set_axis_separator(block=b0, buffer=("write", 0), axis_separators=[1])')
    assert.is_truthy(tostring(sch.mod):find("T.alloc_buffer((4, 4, 16), axis_separators=[1])", 1,
      true), tostring(sch.mod))
    assert(tir.check(parse(chain), sch.mod))
    replays(chain, sch)
    local before = sch.mod
    assert.error_matches(function()
      sch:transform_layout(block, { "write", 0 }, function(i, j, k)
        return te.AXIS_SEPARATOR, i, j, k
      end)
    end, "tir.Schedule.set_axis_separator: axis separators of 'B' are increasing numbers", 1, true)
    assert.equal(3, sch:n_steps())
    assert.equal(before, sch.mod)
  end)

  it("says why not", function()
    local function with(which, separators)
      return function(sch) sch:set_axis_separator(sch:get_block "B", which, separators) end
    end
    local message = "axis separators of 'B' are increasing numbers from 1 to 1, got "
    refuses(chain, with({ "write", 0 }, { 0 }), "tir.Schedule.set_axis_separator: " .. message .. 0)
    refuses(chain, with({ "write", 0 }, { 2 }), message .. 2)
    refuses(chain, with({ "write", 0 }, { 1, 1 }), message .. 1)
    refuses(chain, with({ "write", 1 }, { 1 }), "writes 1 buffers; there is no buffer 1")
    refuses(chain, with({ "write", 0 }, { 1.5 }), "a list of integers expected")
    refuses(chain, with({ "write", 0 }, 1), "axis_separators")
  end)
end)

describe("tir.Schedule.unsafe_set_dtype", function()
  it("stores elements as another dtype", function()
    local sch = becomes(chain, function(sch)
      sch:unsafe_set_dtype(sch:get_block "B", 0, "float64")
    end, [[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float64")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = T.Cast("float64", A[vi, vj] * T.float32(2))
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.Cast("float32", B[vi, vj]) + T.float32(1)
]])
    says(sch, 'sch.unsafe_set_dtype(block=b0, buffer_index=0, dtype="float64")')
    replays(chain, sch)
  end)

  it("rounds as the dtype does, and keeps scope and separators", function()
    local sch = tir.Schedule(parse(chain))
    local block = sch:get_block "B"
    sch:set_scope(block, 0, "shared")
    sch:set_axis_separator(block, { "write", 0 }, { 1 })
    sch:unsafe_set_dtype(block, 0, "float16")
    assert.is_truthy(tostring(sch.mod):find(
      'T.alloc_buffer((16, 16), "float16", scope="shared", axis_separators=[1])', 1, true),
      tostring(sch.mod))
    local x = {}
    for i = 1, 16 do
      x[i] = {}
      for j = 1, 16 do x[i][j] = 1 + 2 ^ -11 end
    end
    assert.equal(3.0, tir.run(sch.mod, { x, x })[2]:to_table()[1][1])
    assert.equal(3.0 + 2 ^ -10, tir.run(parse(chain), { x, x })[2]:to_table()[1][1])
    -- The same dtype is no change.
    local before = sch.mod
    sch:unsafe_set_dtype(block, 0, "float16")
    assert.is_true(pl.equal(before, sch.mod))
  end)

  it("converts what a reduction reads of its own", function()
    local sch = tir.Schedule(parse(matmul))
    local block = sch:get_block "C"
    sch:cache_write(block, 0, "local")
    sch:unsafe_set_dtype(block, 0, "float64")
    assert.is_truthy(tostring(sch.mod):find('C_local[vi, vj] = T.Cast("float64", '
      .. 'T.Cast("float32", C_local[vi, vj]) + A[vi, vk] * B[vj, vk])', 1, true), tostring(sch.mod))
    assert(tir.check(parse(matmul), sch.mod))
  end)

  it("says why not", function()
    local function with(name, index, dtype)
      return function(sch) sch:unsafe_set_dtype(sch:get_block(name), index, dtype) end
    end
    refuses(elementwise, with("B", 0, "float16"),
      "tir.Schedule.unsafe_set_dtype: 'B' is not allocated by a block")
    refuses(chain, with("B", 1, "float16"), "block 'B' writes 1 buffers; there is no buffer 1")
    for _, dtype in ipairs { "half", "float32x4", "handle", "" } do
      refuses(chain, with("B", 0, dtype), ("'%s' is no dtype of elements"):format(dtype))
    end
    refuses(chain, with("B", 0, 16), "dtype: a string expected")
  end)

  it("refuses buffers of which more than the elements is used", function()
    refuses([[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj]
    with T.block("C"):
        T.reads(B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(T.call_extern("int32", "copy", B.data, C.data))
]], function(sch) sch:unsafe_set_dtype(sch:get_block "B", 0, "float16") end,
      "'B' is used otherwise than by its elements")
  end)
end)

describe("tir.Schedule.reindex", function()
  it("copies what is read, and what is written, by the iterators", function()
    local function transposed(sch)
      local block = sch:get_block "B"
      sch:transform_block_layout(block, function(i, j) return j, i end)
      assert.equal("A_reindex", sch:get(sch:reindex(block, { "read", 0 })).attrs.name_hint)
      return block
    end
    local sch = becomes(elementwise, function(sch)
      sch:reindex(transposed(sch), { "write", 0 })
    end, [[
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    A_reindex = T.alloc_buffer((128, 128))
    B_reindex = T.alloc_buffer((128, 128))
    for ax0, ax1 in T.grid(128, 128):
        with T.block("A_reindex"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[v1, v0])
            T.writes(A_reindex[v0, v1])
            A_reindex[v0, v1] = A[v1, v0]
    for ax0, ax1 in T.grid(128, 128):
        with T.block("B"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A_reindex[v0, v1])
            T.writes(B_reindex[v0, v1])
            B_reindex[v0, v1] = A_reindex[v0, v1] * T.float32(2)
    for ax0, ax1 in T.grid(128, 128):
        with T.block("B_reindex"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(B_reindex[v0, v1])
            T.writes(B[v1, v0])
            B[v1, v0] = B_reindex[v0, v1]
]])
    says(sch, 'b2 = sch.reindex(block=b0, buffer=("write", 0))')
    replays(elementwise, sch)
  end)

  it("makes a product of matrices of a convolution", function()
    local X, W = te.placeholder({ 1, 6, 6, 2 }, "float32", "X"),
      te.placeholder({ 3, 3, 2, 4 }, "float32", "W")
    local rc, ry, rx = te.reduce_axis(2, "rc"), te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")
    local Y = te.compute({ 1, 4, 4, 4 }, function(n, y, x, f)
      return te.sum(X[{ n, y + ry.var, x + rx.var, rc.var }] * W[{ ry.var, rx.var, rc.var, f }],
        { ry, rx, rc })
    end, "Y")
    local fn = te.create_prim_func { X, W, Y }
    local sch = tir.Schedule(fn)
    local block = sch:get_block "Y"
    local data, weight = sch:reindex(block, { "read", 0 }), sch:reindex(block, { "read", 1 })
    local out = sch:reindex(block, { "write", 0 })
    assert.is_truthy(tostring(sch.mod):find("X_reindex = T.alloc_buffer((1, 4, 4, 3, 3, 2))", 1,
      true), tostring(sch.mod))
    assert.is_truthy(tostring(sch.mod):find("W_reindex = T.alloc_buffer((4, 3, 3, 2))", 1, true))
    assert.is_truthy(tostring(sch.mod):find(
      "X_reindex[v0, v1, v2, v3, v4, v5] = X[v0, v1 + v3, v2 + v4, v5]", 1, true), tostring(sch.mod))
    local function row(n, y, x) return (n * 4 + y) * 4 + x end
    local function depth(y, x, c) return (y * 3 + x) * 2 + c end
    sch:transform_layout(data, { "write", 0 }, function(n, y, x, ry_, rx_, c)
      return row(n, y, x), depth(ry_, rx_, c)
    end)
    sch:transform_layout(weight, { "write", 0 }, function(f, y, x, c) return depth(y, x, c), f end)
    sch:transform_layout(out, { "read", 0 }, function(n, y, x, f) return row(n, y, x), f end)
    sch:transform_block_layout(block, function(n, y, x, f, ry_, rx_, c)
      return row(n, y, x), f, depth(ry_, rx_, c)
    end)
    assert.is_truthy(tostring(sch.mod):find(
      "Y_reindex[v0, v1] = Y_reindex[v0, v1] + X_reindex[v0, v2] * W_reindex[v2, v1]", 1, true),
      tostring(sch.mod))
    assert(tir.check(fn, sch.mod))
    assert(tir.check(fn, pl.lower(sch.mod)))
  end)

  it("is in a scope, behind what it reads", function()
    local sch = tir.Schedule(parse(chain))
    local block = sch:get_block "C"
    sch:split((sch:get_loops(block)[1]), { nil, 3, n = 2 })
    sch:reindex(block, { "read", 0 })
    sch:reindex(sch:get_block "B", { "write", 0 })
    local names = {}
    for i, one in ipairs(sch:get_child_blocks(sch:get_block "root")) do
      names[i] = sch:get(one).attrs.name_hint
    end
    -- Both are called B_reindex: of what B writes, and of what C reads.
    assert.same({ "B", "B_reindex", "B_reindex", "C" }, names)
    assert(tir.check(parse(chain), sch.mod))
  end)

  it("says why not", function()
    local function at(name, which)
      return function(sch) sch:reindex(sch:get_block(name), which) end
    end
    refuses(chain, at("B", { "read", 1 }), "tir.Schedule.reindex: block 'B' reads 1 buffers")
    refuses(chain, at("B", "read"), 'a buffer is { "read" or "write"')
    refuses(chain, function(sch)
      sch:compute_at(sch:get_block "B", (loops_of(sch, "C")))
      sch:reindex(sch:get_block "C", { "read", 0 })
    end, "block 'B' writes 'B' in the loops around block 'C'")
    refuses(chain, function(sch)
      sch:compute_at(sch:get_block "B", (loops_of(sch, "C")))
      sch:reindex(sch:get_block "B", { "write", 0 })
    end, "block 'C' reads 'B' in the loops around block 'B'")
    refuses(matmul, function(sch)
      local block = sch:get_block "C"
      sch:decompose_reduction(block, (loops_of(sch, "C")))
      sch:reindex(block, { "write", 0 })
    end, "block 'C_update': it is no complete block")
    refuses(matmul, function(sch)
      local block = sch:get_block "C"
      sch:decompose_reduction(block, (loops_of(sch, "C")))
      sch:reindex(block, { "read", 0 })
    end, "block 'C_update' reads and writes 'C'")
    local function of(statement, domain)
      return ([[
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            %s
            T.reads(A[0:16, 0:16])
            T.writes(B[0:16, 0:16])
            %s
]]):format(domain or "T.block_attr({})", statement)
    end
    refuses(of "B[vi, vj] = A[vi, vj] + A[vj, vi]", at("B", { "read", 0 }),
      "block 'B' accesses 'A' by several lists of indices")
    refuses(of "B[vi, vj] = T.if_then_else(vi > 0, A[vi - 1, vj], T.float32(0))",
      at("B", { "read", 0 }), "index 0 of 'A' may be outside of it for some values of the iterators")
    refuses(of "B[vi // 2, vj] = A[vi, vj]", at("B", { "write", 0 }),
      "several values of the iterators may write one element of 'B'")
    refuses(of("B[vi, vj] = A[vi, vj]", "T.where(i < j)"), at("B", { "write", 0 }),
      "its predicate is no bound of an iterator")
    refuses(of [[for k in range(16):
                B[vi, vj] = A[vi, k] ]], at("B", { "read", 0 }),
      "an index of 'A' depends on 'k', which is no iterator")
    refuses([[
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]
]], at("B", { "write", 0 }), "its loops may not run over all of iterator 'vi'")
  end)
end)

describe("tir.Schedule's layouts", function()
  it("are those of generated C, too", function()
    local sch = tir.Schedule(parse(matmul))
    local block = sch:get_block "C"
    local copy = sch:cache_read(block, 0, "global")
    sch:transform_layout(copy, { "write", 0 }, function(i, j) return i // 4, j, i % 4 end)
    sch:transform_block_layout(copy, function(i, j) return i // 4, j, i % 4 end)
    sch:transform_block_layout(block, function(i, j, k) return i // 4, j, k, i % 4 end)
    assert.same({ 4, 16, 4 }, (function()
      local out = {}
      for i, loop in ipairs(sch:get_loops(copy)) do out[i] = sch:get(loop).extent.value end
      return out
    end)())
    sch:vectorize(select(4, loops_of(sch, "C")))
    assert(tir.check(parse(matmul), sch.mod))
    local low = pl.lower(sch.mod)
    assert(tir.check(parse(matmul), low))
  end)
end)
