-- tir.Schedule: padding that becomes blocks of its own.
-- luacheck: no max line length
local pl = require "perilune"
local block_schedule = require "spec.tir.schedule.block_schedule"

local parse, becomes, refuses, loops_of = block_schedule.parse, block_schedule.becomes,
  block_schedule.refuses, block_schedule.loops_of
local tir = pl.tir

local function replays(before, sch)
  assert.is_true(pl.equal(sch.mod, tir.Schedule(parse(before)):apply_json(sch.trace:as_json()).mod))
  assert.is_true(pl.equal(sch.mod, tir.Schedule(parse(before)):apply_trace(sch).mod))
end

local function padded(value)
  return ([[
def main(A: T.Buffer((10, 12), "float32"), B: T.Buffer((14, 18), "float32"), n: T.int32):
    for i, j in T.grid(14, 18):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi - 2, vj - 3])
            T.writes(B[vi, vj])
            B[vi, vj] = %s
]]):format(value)
end

local inside = "vi >= 2 and vi < 12 and vj >= 3 and vj < 15"
local usual = padded("T.if_then_else(" .. inside .. ", A[vi - 2, vj - 3], T.float32(1))")

describe("tir.Schedule.decompose_padding", function()
  it("fills, and computes inside", function()
    local sch = becomes(usual, function(sch)
      local block, i = sch:get_block "B", loops_of(sch, "B")
      assert.is_true(sch:can_decompose_padding(block, i))
      assert.equal("B_pad_const", sch:get(sch:decompose_padding(block, i)).attrs.name_hint)
      assert.is_false(sch:can_decompose_padding(block, sch:get_loops(block)[1]))
    end, [[
def main(A: T.Buffer((10, 12), "float32"), B: T.Buffer((14, 18), "float32"), n: T.int32):
    for i, j in T.grid(14, 18):
        with T.block("B_pad_const"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(B[vi, vj])
            B[vi, vj] = T.float32(1)
    for i, j in T.grid(10, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi + 2, vj + 3])
            B[vi + 2, vj + 3] = A[vi, vj]
]])
    assert.is_truthy(tostring(sch.trace):find("b3 = sch.decompose_padding(block=b0, loop=l1)", 1,
      true) or tostring(sch.trace):find("sch.decompose_padding(block=", 1, true))
    replays(usual, sch)
  end)

  it("keeps loops outside, with a condition", function()
    local sch = becomes(usual, function(sch)
      sch:decompose_padding(sch:get_block "B", (select(2, loops_of(sch, "B"))))
    end, [[
def main(A: T.Buffer((10, 12), "float32"), B: T.Buffer((14, 18), "float32"), n: T.int32):
    for i in range(14):
        for j in range(18):
            with T.block("B_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(B[vi, vj])
                B[vi, vj] = T.float32(1)
        for j in range(12):
            with T.block("B"):
                vi = T.axis.spatial(10, i - 2)
                vj = T.axis.spatial(12, j)
                T.where(2 <= i and i < 12)
                T.reads(A[vi, vj])
                T.writes(B[vi + 2, vj + 3])
                B[vi + 2, vj + 3] = A[vi, vj]
]])
    assert(tir.check(parse(usual), pl.lower(sch.mod)))
  end)

  it("works in split, fused and vectorized loops, and of parts of the dimensions", function()
    for _, condition in ipairs { inside, "vi >= 2 and vi < 12 and 3 <= vj and vj <= 14",
      "vi - 2 >= 0 and vi - 2 < 10 and vj - 3 >= 0 and vj - 3 < 12" } do
      for _, form in ipairs { "T.if_then_else(%s, A[vi - 2, vj - 3], T.float32(1))",
        "T.Select(%s, T.float32(3), T.float32(1))" } do
        local text = padded(form:format(condition))
        for kind = 1, 4 do
          local sch = tir.Schedule(parse(text))
          local block = sch:get_block "B"
          local i, j = loops_of(sch, "B")
          if kind == 1 then
            sch:vectorize(sch:split(j, { nil, 4, n = 2 })[2])
          elseif kind == 2 then
            i = sch:fuse(i, j)
          elseif kind == 3 then
            sch:parallel(i)
          else
            sch:reorder(j, i)
            i = j
          end
          sch:decompose_padding(block, i)
          assert(tir.check(parse(text), sch.mod))
          assert(tir.check(parse(text), pl.lower(sch.mod)))
          replays(text, sch)
        end
      end
    end
    -- Of one dimension only, and of sizes that are not known.
    local text = [[
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n + 2, 8))
    for i, j in T.grid(n + 2, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi - 1, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = T.if_then_else(vi >= 1 and vi < n + 1, A[vi - 1, vj], T.float32(0))
]]
    local sch = tir.Schedule(parse(text))
    sch:decompose_padding(sch:get_block "B", (loops_of(sch, "B")))
    assert.is_truthy(tostring(sch.mod):find("B[vi + 1, vj] = A[vi, vj]", 1, true), tostring(sch.mod))
    assert.is_truthy(tostring(sch.mod):find("for i, j in T.grid(n, 8)", 1, true), tostring(sch.mod))
  end)

  it("says why not", function()
    local function at(number)
      return function(sch)
        local loop = (select(number or 1, loops_of(sch, "B")))
        sch:decompose_padding(sch:get_block "B", loop)
      end
    end
    local where = "tir.Schedule.decompose_padding: block 'B': "
    refuses(padded "A[vi - 2, vj - 3]", at(), where .. "it does not store an if_then_else or a Select")
    refuses(padded "T.if_then_else(vi > 2, A[vi - 2, vj - 3], A[0, 0])", at(),
      where .. "what it stores outside of its condition is no constant")
    local bound = where .. "its condition does not bound each iterator by itself"
    for _, condition in ipairs { "vi + vj < 9", "vi % 2 < 1", "vi < 3 or vj < 3", "vi < vj",
      "A[vi, vj] < T.float32(1)", "vi != 3" } do
      refuses(padded("T.if_then_else(" .. condition .. ", A[0, 0], T.float32(0))"), at(), bound)
    end
    for _, condition in ipairs { "vi > 20", "vi >= 5 and vi < 5" } do
      refuses(padded("T.if_then_else(" .. condition .. ", A[0, 0], T.float32(0))"), at(),
        where .. "its condition holds nowhere")
    end
    refuses([[
def main(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            T.reads(A[vi])
            T.writes(B[vi // 2])
            B[vi // 2] = T.if_then_else(vi < 4, A[vi], T.float32(0))
]], at(), where .. "several values of the iterators may write one element")
    refuses(block_schedule.chain, function(sch)
      sch:decompose_padding(sch:get_block "B", (loops_of(sch, "C")))
    end, "it does not store an if_then_else")
    refuses(usual, function(sch)
      local other = tir.Schedule(parse(usual))
      sch:can_decompose_padding(sch:get_block "B", (loops_of(other, "B")))
    end, "can_decompose_padding: a loop of this schedule expected, got that of another one")
    refuses(usual, function(sch)
      local block = sch:get_block "B"
      sch:decompose_padding(block, block)
    end, "a loop expected, got a block of a schedule")
  end)
end)

local product = [[
def main(A: T.Buffer((13, 11), "float32"), B: T.Buffer((11, 7), "float32"), C: T.Buffer((13, 7), "float32")):
    for i, j, k in T.grid(13, 7, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
]]

describe("tir.Schedule.reverse_compute_inline", function()
  it("is refused for a block that fills what its producer does not store", function()
    refuses([[
def main(A: T.Buffer((10, 12), "float32"), B: T.Buffer((14, 12), "float32")):
    C = T.alloc_buffer((10, 12))
    for i, j in T.grid(10, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(14, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = T.if_then_else(vi < 10, C[vi, vj], T.float32(0))
]], function(s) s:reverse_compute_inline(s:get_block "B") end,
      "tir.Schedule.reverse_compute_inline: block 'B': iterator 'vi' runs over more than block 'C' stores")
  end)
end)

describe("tir.Schedule.pad_einsum", function()
  it("pads what a product reads and writes", function()
    local sch = becomes(product, function(sch)
      sch:pad_einsum(sch:get_block "C", { 8, 7, 4 })
    end, [[
def main(A: T.Buffer((13, 11), "float32"), B: T.Buffer((11, 7), "float32"), C: T.Buffer((13, 7), "float32")):
    A_pad = T.alloc_buffer((16, 12))
    B_pad = T.alloc_buffer((12, 7))
    C_pad = T.alloc_buffer((16, 7))
    for ax0, ax1 in T.grid(16, 12):
        with T.block("A_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[v0, v1])
            T.writes(A_pad[v0, v1])
            A_pad[v0, v1] = T.if_then_else(v0 < 13 and v1 < 11, A[v0, v1], T.float32(0))
    for ax0, ax1 in T.grid(12, 7):
        with T.block("B_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(B[v0, v1])
            T.writes(B_pad[v0, v1])
            B_pad[v0, v1] = T.if_then_else(v0 < 11, B[v0, v1], T.float32(0))
    for i, j, k in T.grid(16, 7, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A_pad[vi, vk], B_pad[vk, vj])
            T.writes(C_pad[vi, vj])
            with T.init():
                C_pad[vi, vj] = T.float32(0)
            C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
    for ax0, ax1 in T.grid(13, 7):
        with T.block("C_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(C_pad[v0, v1])
            T.writes(C[v0, v1])
            C[v0, v1] = C_pad[v0, v1]
]])
    assert.is_truthy(tostring(sch.trace):find("sch.pad_einsum(block=b0, padding=[8, 7, 4])", 1, true))
    replays(product, sch)
    -- It is tiled without conditions.
    local i = loops_of(sch, "C")
    sch:split(i, { nil, 8, n = 2 })
    assert.is_nil(tostring(sch.mod):find("T.where", 1, true))
    assert(tir.check(parse(product), pl.lower(sch.mod)))
  end)

  it("takes any iterators, and several places of one buffer", function()
    for _, padding in ipairs { { 1, 1, 1 }, { 1, 1, 8 }, { 8, 1, 1 }, { 3, 16, 5 } } do
      local sch = tir.Schedule(parse(product))
      sch:pad_einsum(sch:get_block "C", padding)
      assert(tir.check(parse(product), sch.mod))
      assert(tir.check(parse(product), pl.lower(sch.mod)))
    end
    for _, value in ipairs { "A[vi, 0] * A[vj, 0] + A[0, vj]", "T.Select(A[vi, vj] < A[vj, vi], A[vi, vj], T.float32(2))" } do
      local text = ([[
def main(A: T.Buffer((9, 9), "float32"), B: T.Buffer((9, 5, 9), "float32")):
    for i, j in T.grid(9, 9):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[0:9, 0:9])
            T.writes(B[vj, 2, vi])
            B[vj, 2, vi] = %s
]]):format(value)
      local sch = tir.Schedule(parse(text))
      sch:pad_einsum(sch:get_block "B", { 4, 2 })
      assert(tir.check(parse(text), sch.mod))
      replays(text, sch)
    end
  end)

  it("says why not", function()
    local function by(padding, before)
      return function(sch)
        local block = sch:get_block "C"
        if before then before(sch, block) end
        sch:pad_einsum(block, padding)
      end
    end
    local where = "tir.Schedule.pad_einsum: "
    refuses(product, by { 8, 8 }, where .. "block 'C' has 3 iterators, 2 numbers are given")
    refuses(product, by { 8, 0, 8 }, where .. "padding 0 is not positive")
    refuses(product, by { 8, 1.5, 8 }, "a list of integers expected")
    refuses(product, by({ 8, 8, 8 }, function(sch, block)
      sch:split(sch:get_loops(block)[1], { nil, 4, n = 2 })
    end), "block 'C': iterator 'vi' is not bound to a loop of its own")
    refuses(product, by({ 8, 8, 8 }, function(sch, block)
      sch:decompose_reduction(block, sch:get_loops(block)[1])
    end), "block 'C_update'")
    local function of(value, init)
      return (product:gsub("C%[vi, vj%] %+ A%[vi, vk%] %* B%[vk, vj%]", value)
        :gsub("= T.float32%(0%)", "= T.float32(" .. (init or 0) .. ")"))
    end
    local no_product = "block 'C': what it adds is no product of elements that iterator 'vk' indexes"
    refuses(of "C[vi, vj] + A[vi, vk] * B[0, vj]", by { 8, 8, 8 }, no_product)
    refuses(of "C[vi, vj] + (A[vi, vk] + B[vk, vj])", by { 8, 8, 8 }, no_product)
    refuses(of "C[vi, vj] + T.float32(1)", by { 8, 8, 8 }, no_product)
    local no_sum = "block 'C': its reduction is no sum that begins with 0"
    refuses(of "T.max(C[vi, vj], A[vi, vk])", by { 8, 8, 8 }, no_sum)
    refuses(of("C[vi, vj] + A[vi, vk] * B[vk, vj]", 1), by { 8, 8, 8 }, no_sum)
    refuses(of "C[vi, vj] + T.exp(A[vi, vk])", by { 8, 8, 8 }, "a PrimCall is no part of a product")
    refuses(of "C[vi, vj] + A[vi, vk] * B[vk, vj // 2]", by { 8, 8, 8 },
      "an index of 'B' is no constant, and no iterator that no other index is")
    -- Where only other iterators are padded, any reduction will do.
    local sch = tir.Schedule(parse(of "T.max(C[vi, vj], A[vi, vk])"))
    sch:pad_einsum(sch:get_block "C", { 8, 8, 1 })
    assert(tir.check(parse(of "T.max(C[vi, vj], A[vi, vk])"), sch.mod))
    refuses([[
def main(A: T.Buffer((9, 9), "float32"), C: T.Buffer((9,), "float32")):
    for i, j in T.grid(9, 9):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(C[vi])
            C[vi] = A[vi, vj]
]], by { 1, 4 }, "block 'C': iterator 'vj' indexes nothing that it writes")
  end)
end)
