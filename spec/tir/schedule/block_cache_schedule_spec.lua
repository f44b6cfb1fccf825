-- luacheck: no max line length
local pl = require "perilune"
local tir = pl.tir

local block_schedule = require "spec.tir.schedule.block_schedule"

local parse, becomes, refuses, loops_of = block_schedule.parse, block_schedule.becomes,
  block_schedule.refuses, block_schedule.loops_of
local chain, matmul = block_schedule.chain, block_schedule.matmul

-- A schedule and its trace as JSON, on the same program again.
local function replays(before, sch)
  local fn = type(before) == "string" and parse(before) or before
  local again = tir.Schedule(fn):apply_json(sch.trace:as_json())
  assert.is_true(pl.equal(sch.mod, again.mod))
  assert.equal(tostring(sch.trace), tostring(again.trace))
end

describe("tir.Schedule.merge", function()
  it("makes one nest of loops of two", function()
    local sch = becomes(chain, function(sch)
      local inner = sch:merge((select(2, loops_of(sch, "B"))), (select(2, loops_of(sch, "C"))))
      sch:unroll(inner)
    end, [[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i_m in range(16):
        for j_m in T.unroll(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i_m, j_m])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * T.float32(2)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i_m, j_m])
                T.reads(B[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi, vj] + T.float32(1)
]])
    replays(chain, sch)
    assert.is_truthy(tostring(sch.trace):find("sch.merge(l", 1, true))
  end)

  it("keeps what is inside of the loops", function()
    becomes(chain, function(sch)
      sch:merge((loops_of(sch, "B")), (loops_of(sch, "C")))
    end, [[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i_m in range(16):
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i_m, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i_m, j])
                T.reads(B[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi, vj] + T.float32(1)
]])
  end)

  it("is refused where rounds depend on later ones", function()
    -- C reads the row below: a later round writes it.
    refuses(chain:gsub("C%[vi, vj%] = B%[vi, vj%]", "C[vi, vj] = B[T.min(vi + 1, 15), vj]")
      :gsub("reads%(B%[vi, vj%]%)", "reads(B[T.min(vi + 1, 15), vj])"), function(sch)
      sch:merge((loops_of(sch, "B")), (loops_of(sch, "C")))
    end, "tir.Schedule.merge: a round of loop 'i' may access elements of 'B' that a later round of loop 'i'")
    -- The row above is there.
    local above = parse(chain:gsub("C%[vi, vj%] = B%[vi, vj%]", "C[vi, vj] = B[T.max(vi - 1, 0), vj]")
      :gsub("reads%(B%[vi, vj%]%)", "reads(B[T.max(vi - 1, 0), vj])"))
    local sch = tir.Schedule(above)
    sch:merge((loops_of(sch, "B")), (loops_of(sch, "C")))
    assert(tir.check(above, sch.mod))
    -- The consumer in front of its producer.
    refuses(chain, function(s) s:merge((loops_of(s, "C")), (loops_of(s, "B"))) end,
      "may access elements of 'B'")
    refuses(chain, function(s)
      local i, j = loops_of(s, "B")
      s:merge(i, j)
    end, "loop 'j' is inside of loop 'i'")
    refuses(chain, function(s) s:merge((loops_of(s, "B"))) end, "at least two loops are expected, got 1")
    refuses(chain, function(s)
      s:merge((loops_of(s, "B")), (select(2, loops_of(s, "C"))))
    end, "loop 'i' and loop 'j' are not equally deep")
    refuses(chain, function(s)
      s:split((loops_of(s, "B")), { 4, 4 })
      s:merge((loops_of(s, "B")), (loops_of(s, "C")))
    end, "loop 'i_0' and loop 'i' have different extents")
    refuses(chain, function(s)
      s:annotate((loops_of(s, "B")), "key", 1)
      s:merge((loops_of(s, "B")), (loops_of(s, "C")))
    end, "loop 'i' has annotations")
  end)

  it("moves loops past what does not depend on them", function()
    local three = chain:gsub("    for i, j in T.grid%(16, 16%):\n        with T.block%(\"C\"", [[
    for x, y in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [x, y])
            T.reads(A[vi, vj])
            T.writes(D[vi, vj])
            D[vi, vj] = A[vi, vj] * T.float32(3)
%0]]):gsub('C: T.Buffer', 'D: T.Buffer((16, 16), "float32"), C: T.Buffer')
    local fn = parse(three)
    local sch = tir.Schedule(fn)
    sch:merge((loops_of(sch, "B")), (loops_of(sch, "C")))
    assert(tir.check(fn, sch.mod))
    sch = tir.Schedule(fn)
    sch:merge((loops_of(sch, "D")), (loops_of(sch, "B")), (loops_of(sch, "C")))
    assert(tir.check(fn, sch.mod))
    refuses(three:gsub("A%[vi, vj%] %* T.float32%(3%)", "B[vi, vj]")
      :gsub("reads%(A%[vi, vj%]%)(%s+T.writes%(D)", "reads(B[vi, vj])%1"), function(s)
      s:merge((loops_of(s, "B")), (loops_of(s, "C")))
    end, "a statement between the loops depends on loop 'i'")
  end)
end)

describe("tir.Schedule.cache_inplace", function()
  local inplace = [[
def main(A: T.Buffer((64,), "int32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 16:vi * 16 + 16])
            T.writes(A[vi * 16:vi * 16 + 16])
            for k in range(16):
                A[vi * 16 + k] = A[vi * 16 + k] + 1
]]

  it("copies to a cache and back", function()
    local sch = becomes(inplace, function(sch)
      local blocks = sch:cache_inplace(sch:get_block "A", 0, "local")
      assert.equal(2, #blocks)
    end, [[
def main(A: T.Buffer((64,), "int32")):
    A_local = T.alloc_buffer((64,), "int32", scope="local")
    for i in range(4):
        for ax0 in range(16):
            with T.block("A_local"):
                v0 = T.axis.spatial(64, i * 16 + ax0)
                T.reads(A[v0])
                T.writes(A_local[v0])
                A_local[v0] = A[v0]
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            T.reads(A_local[vi * 16:vi * 16 + 16])
            T.writes(A_local[vi * 16:vi * 16 + 16])
            for k in range(16):
                A_local[vi * 16 + k] = A_local[vi * 16 + k] + 1
        for ax0 in range(16):
            with T.block("A_local"):
                v0 = T.axis.spatial(64, i * 16 + ax0)
                T.reads(A_local[v0])
                T.writes(A[v0])
                A[v0] = A_local[v0]
]])
    replays(inplace, sch)
    refuses(chain, function(s) s:cache_inplace(s:get_block "B", 0, "local") end,
      "tir.Schedule.cache_inplace: block 'B' does not write 'A'")
    refuses(inplace, function(s) s:cache_inplace(s:get_block "A", 1, "local") end,
      "block 'A' reads 1 buffers; there is no buffer 1")
    refuses(inplace, function(s) s:cache_inplace(s:get_block "A", 0, "no scope") end,
      "'no scope' is no storage scope")
  end)

  it("copies what is read beside what is written", function()
    local fn = parse(inplace:gsub("T.reads%b()", "T.reads(A[vi * 16:vi * 16 + 16])")
      :gsub("A%[vi %* 16 %+ k%] %+ 1", "A[vi * 16] + 1"):gsub("T.writes%b()", "T.writes(A[vi * 16 + 8:vi * 16 + 16])")
      :gsub("for k in range%(16%)", "for k in range(8, 16)"))
    local sch = tir.Schedule(fn)
    sch:cache_inplace(sch:get_block "A", 0, "local")
    assert(tir.check(fn, sch.mod))
  end)
end)

describe("tir.Schedule.reindex_cache_read and reindex_cache_write", function()
  it("access a cache by a map of the iterators", function()
    local sch = becomes(matmul, function(sch)
      local block = sch:get_block "C"
      sch:reindex_cache_read(block, 0, "shared", function(i, _, k) return k // 4, i, k % 4 end)
      sch:reindex_cache_write(block, 0, "local", function(i, j, _) return j, i end)
    end, [[
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    A_shared = T.alloc_buffer((4, 16, 4), scope="shared")
    C_local = T.alloc_buffer((16, 16), scope="local")
    for ax0, ax1 in T.grid(16, 16):
        with T.block("A_shared"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[v0, v1])
            T.writes(A_shared[v1 // 4, v0, v1 % 4])
            A_shared[v1 // 4, v0, v1 % 4] = A[v0, v1]
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A_shared[vk // 4, vi, vk % 4], B[vj, vk])
            T.writes(C_local[vj, vi])
            with T.init():
                C_local[vj, vi] = T.float32(0)
            C_local[vj, vi] = C_local[vj, vi] + A_shared[vk // 4, vi, vk % 4] * B[vj, vk]
    for ax0, ax1 in T.grid(16, 16):
        with T.block("C_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(C_local[v1, v0])
            T.writes(C[v0, v1])
            C[v0, v1] = C_local[v1, v0]
]])
    replays(matmul, sch)
  end)

  it("refuse maps by which elements would meet", function()
    local function read(map)
      return function(s) s:reindex_cache_read(s:get_block "C", 0, "local", map) end
    end
    refuses(matmul, read(function(i, _, k) return i + k end),
      "tir.Schedule.reindex_cache_read: several values of the iterators of block 'C' may have the same indices")
    refuses(matmul, read(function(i, j, k) return i, j, k end),
      "index 1 of the map uses iterator 'vj', by which block 'C' does not access 'A'")
    refuses(matmul, read(function(i, k) return i, k end),
      "the map has 2 variables, block 'C' 3 iterators")
    refuses(matmul, read(function(i, _, k) return i - 1, k end),
      "index 0 of the map has no constant range from 0 on")
    refuses(matmul, function(s)
      s:reindex_cache_write(s:get_block "C", 1, "local", function(i, j, _) return i, j end)
    end, "block 'C' writes 1 buffers; there is no buffer 1")
  end)
end)

describe("tir.Schedule.sample_compute_location", function()
  local function sampled(decision, name)
    local sch = tir.Schedule(parse(chain))
    local block = sch:get_block(name or "B")
    local place = sch:sample_compute_location(block, decision)
    sch:compute_at(block, place)
    assert(tir.check(parse(chain), sch.mod))
    replays(chain, sch)
    return sch, tostring(sch.trace):match "sample_compute_location%(block=b0, decision=(%-?%d+)%)", place
  end

  it("gives a loop, the root or inline", function()
    for decision, expected in pairs { [-3] = "-2", [-2] = "-2", [-1] = "-1", [0] = "0", [1] = "1", [7] = "1" } do
      assert.equal(expected, select(2, sampled(decision)))
    end
    assert.equal("root", select(1, (function()
      local sch, _, place = sampled(-1)
      return sch:get(place)
    end)()))
    assert.is_falsy(tostring(sampled(-2).mod):find('T.block("B")', 1, true))
    assert.is_truthy(pl.equal(tir.Schedule(parse(chain)).mod, sampled(-1).mod))
    -- An output stays where it is.
    assert.equal("-1", select(2, sampled(1, "C")))
    assert.equal("-1", select(2, sampled(-2, "C")))
  end)

  it("decides by the seed", function()
    local seen = {}
    for seed = 1, 60 do
      local sch = tir.Schedule(parse(chain), { seed = seed })
      sch:sample_compute_location(sch:get_block "B")
      seen[tostring(sch.trace):match "decision=(%-?%d)"] = true
    end
    for _, decision in ipairs { "-2", "-1", "0", "1" } do assert.is_true(seen[decision], decision) end
    local counts = {}
    local sch = tir.Schedule(parse(chain), { decisions = function(_, n)
      counts[#counts + 1] = n
      return n
    end })
    assert.equal("For", sch:get(sch:sample_compute_location(sch:get_block "B")).kind)
    assert.same({ 4 }, counts)
  end)

  it("is no loop for other primitives", function()
    refuses(chain, function(s) s:unroll(s:sample_compute_location(s:get_block "B", -1)) end,
      "tir.Schedule.unroll: a loop expected, got the place 'root' that was sampled")
    refuses(chain, function(s) s:sample_compute_location(s:get_block "B", "here") end,
      "a decision is the number of a loop, -1 or -2, got here")
  end)
end)

describe("tir.Schedule.read_at and write_at", function()
  local function tiled(sch)
    local block = sch:get_block "C"
    local i, j, k = table.unpack(sch:get_loops(block))
    local io, ii = table.unpack(sch:split(i, { 4, 4 }))
    local jo, ji = table.unpack(sch:split(j, { 4, 4 }))
    local ko, ki = table.unpack(sch:split(k, { 4, 4 }))
    sch:reorder(io, jo, ko, ii, ji, ki)
    return block, jo, ko
  end

  it("copy what a round of a loop accesses", function()
    local sch = becomes(matmul, function(sch)
      local block, jo, ko = tiled(sch)
      sch:read_at(ko, block, 0, "shared")
      sch:write_at(jo, block, 0, "local")
    end, [[
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    A_shared = T.alloc_buffer((16, 16), scope="shared")
    C_local = T.alloc_buffer((16, 16), scope="local")
    for i_0, j_0 in T.grid(4, 4):
        for k_0 in range(4):
            with T.block("A_shared"):
                v0, v1 = T.axis.remap("SS", [i_0, k_0])
                T.reads(A[v0 * 4:v0 * 4 + 4, v1 * 4:v1 * 4 + 4])
                T.writes(A_shared[v0 * 4:v0 * 4 + 4, v1 * 4:v1 * 4 + 4])
                T.block_attr({"auto_copy": T.bool(True)})
                for ax0, ax1 in T.grid(4, 4):
                    A_shared[v0 * 4 + ax0, v1 * 4 + ax1] = A[v0 * 4 + ax0, v1 * 4 + ax1]
            for i_1, j_1, k_1 in T.grid(4, 4, 4):
                with T.block("C"):
                    vi = T.axis.spatial(16, i_0 * 4 + i_1)
                    vj = T.axis.spatial(16, j_0 * 4 + j_1)
                    vk = T.axis.reduce(16, k_0 * 4 + k_1)
                    T.reads(A_shared[vi, vk], B[vj, vk])
                    T.writes(C_local[vi, vj])
                    with T.init():
                        C_local[vi, vj] = T.float32(0)
                    C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vj, vk]
        with T.block("C_local"):
            v0, v1 = T.axis.remap("SS", [i_0, j_0])
            T.reads(C_local[v0 * 4:v0 * 4 + 4, v1 * 4:v1 * 4 + 4])
            T.writes(C[v0 * 4:v0 * 4 + 4, v1 * 4:v1 * 4 + 4])
            T.block_attr({"auto_copy": T.bool(True)})
            for ax0, ax1 in T.grid(4, 4):
                C[v0 * 4 + ax0, v1 * 4 + ax1] = C_local[v0 * 4 + ax0, v1 * 4 + ax1]
]])
    replays(matmul, sch)
  end)

  it("are refused where more is accessed than is copied", function()
    refuses(chain, function(s)
      s:read_at((loops_of(s, "C")), s:get_block "B", 0, "local")
    end, "tir.Schedule.read_at: block 'B' is not inside of loop 'i'")
    refuses(chain, function(s)
      local i = loops_of(s, "C")
      s:compute_at(s:get_block "B", i)
      s:read_at(i, s:get_block "C", 0, "local")
    end, "block 'B' writes 'B' in loop 'i'")
    refuses(matmul, function(s)
      local i = loops_of(s, "C")
      s:write_at(s:split(i, { nil, 5, n = 2 })[1], s:get_block "C", 0, "local")
    end, "a round of loop 'i_0' may access 'C' outside of it")
  end)
end)

describe("tir.Schedule.compute_at", function()
  it("is refused where a round would copy what is not computed yet", function()
    refuses(matmul, function(s)
      local block = s:get_block "C"
      local copy = s:cache_write(block, 0, "shared")
      s:compute_at(block, s:split(s:get_loops(copy)[1], { nil, 2, n = 2 })[1])
      local local_copy = s:write_at(s:get_loops(block)[2], block, 0, "local")
      s:compute_at(local_copy, s:get_loops(copy)[3])
    end, "a round of loop 'ax1' would compute it for all values of iterator 'v0'")
  end)
end)

describe("tir.Schedule.set_scope", function()
  it("names the buffer by its scope, once", function()
    local sch = tir.Schedule(parse(chain))
    sch:set_scope(sch:get_block "B", 0, "shared")
    sch:set_scope(sch:get_block "B", 0, "shared")
    local text = tostring(sch.mod)
    assert.is_truthy(text:find('B_shared = T.alloc_buffer((16, 16), scope="shared")', 1, true))
    assert.is_nil(text:find("B_shared_shared", 1, true))
  end)
end)

describe("loops of one round", function()
  it("stay in the bindings of blocks, unless they are not to be preserved", function()
    local function bindings(preserve)
      local sch = tir.Schedule(parse(chain))
      sch:split((loops_of(sch, "B")), { 1, nil, n = 2 }, preserve)
      return tostring(sch.mod):match "vi = (T.axis[^\n]*)"
        or tostring(sch.mod):match "vi, vj = (T.axis[^\n]*)"
    end
    assert.equal("T.axis.spatial(16, i_0 * 16 + i_1)", bindings(true))
    assert.equal('T.axis.remap("SS", [i_1, j])', bindings(false))
    local sch = tir.Schedule(parse(chain:gsub("16, 16", "1, 16")))
    sch:cache_read(sch:get_block "B", 0, "local")
    local text = tostring(sch.mod)
    assert.is_truthy(text:find("for ax0, ax1 in T.grid(1, 16)", 1, true))
    -- The inner block of blockize has no iterator for what is outside.
    sch:blockize((select(2, loops_of(sch, "C"))))
    assert.is_truthy(tostring(sch.mod):find("C[vi_o, vj_i] = B[vi_o, vj_i]", 1, true))
    assert(tir.check(parse(chain:gsub("16, 16", "1, 16")), sch.mod))
  end)
end)

describe("tir.Schedule.sample_compute_location", function()
  it("takes no loop behind the last data-parallel one", function()
    local sums = chain:gsub('for i, j in T.grid%(16, 16%):\n        with T.block%("C"%):\n            vi, vj = T.axis.remap%("SS", %[i, j%]%)\n            T.reads%(B%[vi, vj%]%)\n            T.writes%(C%[vi, vj%]%)\n            C%[vi, vj%] = B%[vi, vj%] %+ T.float32%(1%)', [[
for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(B[vi, vk])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi, vk] ]])
    local sch = tir.Schedule(parse(sums))
    sch:sample_compute_location(sch:get_block "B", 2)
    assert.is_truthy(tostring(sch.trace):find("decision=1)", 1, true))
  end)
end)
