-- luacheck: no max line length
-- tir.Schedule: cache_index, rolling_buffer, sample_partitioned_tile, reorder_block_iter_var and
-- unsafe_hide_buffer_access.
local pl = require "perilune"
local tir = pl.tir

local block_schedule = require "spec.tir.schedule.block_schedule"

local parse, becomes, refuses, loops_of = block_schedule.parse, block_schedule.becomes,
  block_schedule.refuses, block_schedule.loops_of
local chain, matmul = block_schedule.chain, block_schedule.matmul

-- A schedule and its trace as JSON, on the same program again.
local function replays(before, sch)
  local again = tir.Schedule(parse(before)):apply_json(sch.trace:as_json())
  assert.is_true(pl.equal(sch.mod, again.mod))
  assert.equal(tostring(sch.trace), tostring(again.trace))
end

describe("tir.Schedule.cache_index", function()
  local resize = [[
def main(A: T.Buffer((1, 2, 10, 10), "float32"), B: T.Buffer((1, 2, 20, 20), "float32")):
    for i0, i1, i2, i3 in T.grid(1, 2, 20, 20):
        with T.block("A"):
            n, c, vi, vj = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(A[n, c, vi // 4 + vj // 4, vj // 2])
            T.writes(B[n, c, vi, vj])
            B[n, c, vi, vj] = A[n, c, vi // 4 + vj // 4, vj // 2]
]]

  it("computes indices in front of the loops", function()
    local sch = becomes(resize, function(sch)
      assert.equal(2, #sch:cache_index(sch:get_block "A", "global", 1))
    end, [=[
def main(A: T.Buffer((1, 2, 10, 10), "float32"), B: T.Buffer((1, 2, 20, 20), "float32")):
    index_var_0 = T.alloc_buffer((20, 20), "int32")
    index_var_1 = T.alloc_buffer((20,), "int32", strides=(1,))
    for ax0, ax1 in T.grid(20, 20):
        with T.block("index_0"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads()
            T.writes(index_var_0[v0, v1])
            index_var_0[v0, v1] = v0 // 4 + v1 // 4
    for ax0 in range(20):
        with T.block("index_1"):
            v0 = T.axis.spatial(20, ax0)
            T.reads()
            T.writes(index_var_1[v0])
            index_var_1[v0] = v0 // 2
    for i0, i1, i2, i3 in T.grid(1, 2, 20, 20):
        with T.block("A"):
            n, c, vi, vj = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(A[n, c, vi // 4 + vj // 4, vj // 2], index_var_0[vi, vj], index_var_1[vj])
            T.writes(B[n, c, vi, vj])
            B[n, c, vi, vj] = A[n, c, index_var_0[vi, vj], index_var_1[vj]]
]=])
    replays(resize, sch)
    assert.is_truthy(tostring(sch.trace):find(
      "b1, b2 = sch.cache_index(block=b0, storage_scope=\"global\", cse_thresh=1)", 1, true))
  end)

  it("takes what is computed often enough, and parts of what is not", function()
    local text = resize:gsub("A%[n, c, vi // 4 %+ vj // 4, vj // 2%]\n$",
      "A[n, c, vi // 4 + vj // 4, vj // 2] + A[n, c, (vi // 4 + 3) // 3, vj // 4]\n")
    for most, expected in pairs { [1] = 4, [2] = 2, [3] = 0 } do
      local fn = parse(text)
      local sch = tir.Schedule(fn)
      assert.equal(expected, #sch:cache_index(sch:get_block "A", "global", most))
      assert(tir.check(fn, sch.mod))
    end
  end)

  it("works behind splits, in tiles and under a condition", function()
    local fn = parse(resize)
    local sch = tir.Schedule(fn)
    local _, _, i = loops_of(sch, "A")
    sch:split(i, { nil, 7, n = 2 })
    local made = sch:cache_index(sch:get_block "A", "global", 0)
    sch:reorder(table.unpack(sch:get_loops(made[1])))
    assert(tir.check(fn, sch.mod))
  end)

  it("leaves values alone that may not be computed before", function()
    local sch = tir.Schedule(parse(chain))
    assert.equal(0, #sch:cache_index(sch:get_block "B", "global", 0))
    -- A divisor that may be 0.
    sch = tir.Schedule(parse(resize:gsub("vj // 2%]\n$", "T.if_then_else(vj > 0, 40 // vj, 0) %% 10]\n")))
    for _, block in ipairs(sch:cache_index(sch:get_block "A", "global", 1)) do
      assert.is_nil(tostring(sch:get(block)):find("40 // ", 1, true))
    end
    refuses(resize, function(s) s:cache_index(s:get_block "A", "global", -1) end,
      "tir.Schedule.cache_index: cse_thresh -1 is negative")
    refuses(resize, function(s) s:cache_index(s:get_block "A", "no scope", 1) end,
      "'no scope' is no storage scope")
    refuses(resize:gsub("in T.grid%(1, 2, 20, 20%)", "in T.grid(1, 2, 20, 20)")
      :gsub("c, vi, vj = T.axis.remap%(\"SSSS\", %[i0, i1, i2, i3%]%)",
        "c, vi = T.axis.remap(\"SSS\", [i0, i1, i2])\n            vj = T.axis.spatial((-1, 20), i3 - 1)"),
      function(s) s:cache_index(s:get_block "A", "global", 1) end, "not known to be from 0 on")
  end)
end)

describe("tir.Schedule.rolling_buffer", function()
  local pool = [[
def main(A: T.Buffer((12, 12), "int8"), C: T.Buffer((8, 8), "int8")):
    B = T.alloc_buffer((10, 10), "int8")
    for i, j, x, y in T.grid(10, 10, 3, 3):
        with T.block("B"):
            vi, vj, rx, ry = T.axis.remap("SSRR", [i, j, x, y])
            T.reads(A[vi + rx, vj + ry])
            T.writes(B[vi, vj])
            with T.init():
                B[vi, vj] = T.int8(-128)
            B[vi, vj] = T.max(B[vi, vj], A[vi + rx, vj + ry])
    for i, j, x, y in T.grid(8, 8, 3, 3):
        with T.block("C"):
            vi, vj, rx, ry = T.axis.remap("SSRR", [i, j, x, y])
            T.reads(B[vi + rx, vj + ry])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.int8(-128)
            C[vi, vj] = T.max(C[vi, vj], B[vi + rx, vj + ry])
]]

  -- C in tiles, B computed in them.
  local function tiled(sch, height, width, at, kind)
    local i, j, x, y = loops_of(sch, "C")
    local i0, i1 = table.unpack(sch:split(i, { nil, height, n = 2 }))
    local j0, j1 = table.unpack(sch:split(j, { nil, width, n = 2 }))
    sch:reorder(i0, j0, i1, j1, x, y)
    if kind then sch[kind](sch, i0) end
    sch:compute_at(sch:get_block "B", at == 1 and i0 or j0)
  end

  it("keeps a window in the dimension that the outermost loop moves", function()
    local sch = becomes(pool, function(sch)
      tiled(sch, 4, 4)
      sch:rolling_buffer(sch:get_block "B", 0)
    end, [[
def main(A: T.Buffer((12, 12), "int8"), C: T.Buffer((8, 8), "int8")):
    B = T.alloc_buffer((6, 10), "int8")
    for i_0, j_0 in T.grid(2, 2):
        for ax0, ax1, ax2, ax3 in T.grid(6, 6, 3, 3):
            with T.block("B"):
                vi = T.axis.opaque(10, i_0 * 4 + ax0)
                vj = T.axis.spatial(10, j_0 * 4 + ax1)
                rx, ry = T.axis.remap("RR", [ax2, ax3])
                T.where((i_0 < 1 or 2 <= ax0) and (j_0 < 1 or 2 <= ax1))
                T.reads(A[vi + rx, vj + ry])
                T.writes(B[vi % 6, vj])
                with T.init():
                    B[vi % 6, vj] = T.int8(-128)
                B[vi % 6, vj] = T.max(B[vi % 6, vj], A[vi + rx, vj + ry])
        for i_1, j_1, x, y in T.grid(4, 4, 3, 3):
            with T.block("C"):
                vi = T.axis.opaque(8, i_0 * 4 + i_1)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                rx, ry = T.axis.remap("RR", [x, y])
                T.reads(B[(vi + rx) % 6, vj + ry])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.int8(-128)
                C[vi, vj] = T.max(C[vi, vj], B[(vi + rx) % 6, vj + ry])
]])
    replays(pool, sch)
  end)

  it("computes the same for any tiles, and after the blocks are lowered", function()
    local fn = parse(pool)
    for _, tile in ipairs { { 1, 1 }, { 2, 8 }, { 8, 2 }, { 4, 1 }, { 1, 8, 1 } } do
      local sch = tir.Schedule(fn)
      tiled(sch, tile[1], tile[2], tile[3])
      sch:rolling_buffer(sch:get_block "B", 0)
      assert(tir.check(fn, sch.mod, { rounds = 1 }), tostring(sch.mod))
      assert(tir.check(fn, pl.lower(sch.mod), { rounds = 1 }), tostring(sch.mod))
    end
  end)

  it("is refused where a round does not use what the one before computed", function()
    refuses(pool, function(s) s:rolling_buffer(s:get_block "C", 0) end,
      "tir.Schedule.rolling_buffer: block 'C' is an output of block 'root'")
    refuses(pool, function(s) s:rolling_buffer(s:get_block "B", 1) end,
      "block 'B' writes 1 buffers; there is no buffer 1")
    refuses(pool, function(s) s:rolling_buffer(s:get_block "B", 0) end,
      "block 'B': no loop is around it and around what reads 'B'")
    refuses(chain, function(s)
      s:compute_at(s:get_block "B", (loops_of(s, "C")))
      s:rolling_buffer(s:get_block "B", 0)
    end, "the windows of 'B' that rounds compute do not overlap")
    refuses(pool, function(s)
      tiled(s, 4, 4, 2, "parallel")
      s:rolling_buffer(s:get_block "B", 0)
    end, "loop 'i_0' does not run its rounds one after the other")
  end)
end)

describe("tir.Schedule.sample_partitioned_tile", function()
  it("gives factors whose last ones have a factor", function()
    local seen, n = {}, 0
    for seed = 1, 200 do
      local sch = tir.Schedule(parse(matmul), { seed = seed })
      local i = loops_of(sch, "C")
      local tile = {}
      for k, factor in ipairs(sch:sample_partitioned_tile(i, 3, 1, 4)) do tile[k] = sch:get(factor) end
      assert.equal(16, tile[1] * tile[2] * tile[3])
      assert.equal(0, tile[2] * tile[3] % 4)
      local key = table.concat(tile, " ")
      if not seen[key] then seen[key], n = true, n + 1 end
    end
    -- 3 + 4 + 5 of the products 4, 8 and 16.
    assert.equal(12, n)
  end)

  it("takes decisions, and replays them", function()
    local sch = tir.Schedule(parse(matmul))
    local i = loops_of(sch, "C")
    sch:split(i, sch:sample_partitioned_tile(i, 2, 1, 4, { 2, 8 }))
    assert.is_truthy(tostring(sch.trace):find("sch.sample_partitioned_tile(loop=l1, n=2, partition_pos=1, innerpart_factor=4, decision=[2, 8])", 1, true))
    replays(matmul, sch)
    local all = {}
    for k = 1, 3 do
      local one = tir.Schedule(parse(matmul), { decisions = function(_, n)
        assert.equal(3, n)
        return k
      end })
      all[k] = one:get(one:sample_partitioned_tile((loops_of(one, "C")), 2, 1, 4)[2])
    end
    assert.same({ 4, 8, 16 }, all)
    -- A loop that is no multiple is not divided.
    assert.equal(-1, sch:get(sch:sample_partitioned_tile((select(3, loops_of(sch, "C"))), 2, 1, 3)[1]))
  end)

  it("refuses partitions that are none", function()
    local function refused(message, ...)
      local args = table.pack(...)
      refuses(matmul, function(s)
        s:sample_partitioned_tile((loops_of(s, "C")), table.unpack(args, 1, args.n))
      end, message)
    end
    refused("partition_pos is from 0 to 1, got 2", 2, 2, 4)
    refused("innerpart_factor 0 is not positive", 2, 1, 0)
    refused("1 to 32 factors expected, got 0", 0)
    refused("a loop is not divided into 1 part of two", 1, 0, 4)
    refused("the factors of a decision are none whose product from number 1 on is a multiple of 4", 2, 1, 4, { 8, 2 })
  end)
end)

describe("tir.Schedule.reorder_block_iter_var", function()
  it("changes the order of a block's iterators", function()
    local sch = becomes(matmul, function(sch)
      sch:reorder_block_iter_var(sch:get_block "C", { 2, 1, 0 })
    end, (matmul:gsub("vi, vj, vk = T.axis.remap%(\"SSR\", %[i, j, k%]%)",
      "vk, vj, vi = T.axis.remap(\"RSS\", [k, j, i])")))
    replays(matmul, sch)
    refuses(matmul, function(s) s:reorder_block_iter_var(s:get_block "C", { 0, 1 }) end,
      "tir.Schedule.reorder_block_iter_var: block 'C' has 3 iterators, the new order 2")
    refuses(matmul, function(s) s:reorder_block_iter_var(s:get_block "C", { 0, 1, 1 }) end,
      "the new order is no permutation of 0 to 2")
  end)
end)

describe("tir.Schedule.unsafe_hide_buffer_access", function()
  it("leaves out regions", function()
    local sch = becomes(matmul, function(sch)
      sch:unsafe_hide_buffer_access(sch:get_block "C", "read", { 0 })
    end, (matmul:gsub("T.reads%(A%[vi, vk%], ", "T.reads(")))
    replays(matmul, sch)
    refuses(matmul, function(s) s:unsafe_hide_buffer_access(s:get_block "C", "write", { 1 }) end,
      "tir.Schedule.unsafe_hide_buffer_access: block 'C' writes 1 buffers; there is no buffer 1")
    refuses(matmul, function(s) s:unsafe_hide_buffer_access(s:get_block "C", "both", { 0 }) end,
      "buf_type is \"read\" or \"write\", got \"both\"")
  end)
end)
