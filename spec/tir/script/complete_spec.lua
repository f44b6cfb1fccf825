-- Regions that the text of a block does not say, after test_tvmscript_complete.py of TVM.

local pl = require "perilune"

local head = [[
@T.prim_func
def main(A: T.Buffer((128, 128)), B: T.Buffer((128, 128)), C: T.Buffer((128, 128))):
]]

-- The lines that say what blocks read and write, without indentation.
local function regions_of(body)
  local found = {}
  for line in assert(pl.tir.parse(head .. body)):text():gmatch "[^\n]+" do
    found[#found + 1] = line:match "^%s*(T%.reads%(.*%))$" or line:match "^%s*(T%.writes%(.*%))$"
  end
  return found
end

describe("blocks without regions", function()
  it("test_complete_matmul: a reduction reads nothing of what it initialises", function()
    assert.are.same({ "T.reads(A[vi, vk], B[vj, vk])", "T.writes(C[vi, vj])" }, regions_of [[
    for i, j, k in T.grid(128, 128, 128):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
]])
  end)

  it("test_complete_matmul_original: loops inside of a block are relaxed", function()
    assert.are.same({
      "T.reads()", "T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])",
      "T.reads(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], A[vi * 4:vi * 4 + 4, vk * 4:vk * 4 + 4], "
        .. "B[vj * 4:vj * 4 + 4, vk * 4:vk * 4 + 4])",
      "T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])",
    }, regions_of [[
    for i, j in T.grid(32, 32):
        with T.block("init"):
            vi, vj = T.axis.remap("SS", [i, j])
            for ii, jj in T.grid(4, 4):
                C[vi * 4 + ii, vj * 4 + jj] = T.float32(0)
        for k in range(0, 32):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                for ii, jj, kk in T.grid(4, 4, 4):
                    C[vi * 4 + ii, vj * 4 + jj] = (
                        C[vi * 4 + ii, vj * 4 + jj]
                        + A[vi * 4 + ii, vk * 4 + kk] * B[vj * 4 + jj, vk * 4 + kk])
]])
  end)

  local elementwise = [[
    with T.block():
        for i, j in T.grid(128, 128):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                %s
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(128, 128):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                %s
                C[vi, vj] = B[vi, vj] + T.float32(1)
]]
  local expected = { "T.reads(A[vi, vj])", "T.writes(B[vi, vj])", "T.reads(B[vi, vj])",
    "T.writes(C[vi, vj])" }

  it("test_complete_with_root: the outermost block says nothing", function()
    local found = regions_of(elementwise:format("", ""))
    assert.are.same(expected, table.move(found, #found - 3, #found, 1, {}))
    for i = 1, #found - 4 do assert.is_truthy(found[i]:find "%(%)$") end
  end)

  it("test_complete_part_region: what the text says is kept", function()
    local found = regions_of(elementwise:format("T.reads(A[vi, vj])", "T.writes(C[vi, vj])"))
    assert.are.same(expected, table.move(found, #found - 3, #found, 1, {}))
    found = regions_of(elementwise:format("T.reads()", "T.writes()"))
    assert.are.same({ "T.reads()", "T.writes(B[vi, vj])", "T.reads(B[vi, vj])", "T.writes()" },
      table.move(found, #found - 3, #found, 1, {}))
  end)

  it("test_complete_buffer_indices: indices are read too", function()
    local text = assert(pl.tir.parse [==[
@T.prim_func
def main(data: T.Buffer((16, 16)), index: T.Buffer((1,), "int32")):
    out = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block():
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = data[vi, index[0]]
]==]):text()
    assert.is_truthy(text:find("T.writes(out[vi, vj])", 1, true))
    local reads = text:match "T%.reads%(([^\n]*index[^\n]*)%)\n"
    assert.is_truthy(reads:find("data[vi, index[0]]", 1, true))
    local rest = reads:gsub("data%[vi, index%[0%]%]", "")
    assert.is_truthy(rest:find("index[0]", 1, true))
  end)

  it("a block around others takes what they access, without what it allocates", function()
    assert.are.same({ "T.reads(A[vi, 0:128])", "T.writes(C[vi, 0:128])", "T.reads(A[vi, vj])",
      "T.writes(D[vi, vj])", "T.reads(D[vi, vj])", "T.writes(C[vi, vj])" }, regions_of [[
    for i in range(128):
        with T.block("row"):
            vi = T.axis.spatial(128, i)
            D = T.alloc_buffer((128, 128))
            for j in range(128):
                with T.block("first"):
                    vj = T.axis.spatial(128, j)
                    D[vi, vj] = A[vi, vj]
            for j in range(128):
                with T.block("second"):
                    vj = T.axis.spatial(128, j)
                    C[vi, vj] = D[vi, vj]
]])
  end)
end)

describe("views and pointers of blocks without regions", function()
  it("test_complete_match_buffer: elements of a view are those of its source", function()
    assert.are.same({ "T.reads(A[vi * 16 + 2:vi * 16 + 2 + 4, vj])",
      "T.writes(C[vi, vj * 4:vj * 4 + 4])" }, regions_of [[
    for i, j in T.grid(8, 16):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            V = T.match_buffer(A[vi * 16:vi * 16 + 16, vj], (16, 1))
            W = T.match_buffer(C[vi, vj * 4:vj * 4 + 4], (4,))
            for k in range(4):
                W[k] = V[k + 2, 0]
]])
  end)

  it("a view that is passed on is read and written whole", function()
    assert.are.same({ "T.reads(A[vi * 16:vi * 16 + 16, 0:128])",
      "T.writes(A[vi * 16:vi * 16 + 16, 0:128])" }, regions_of [[
    for i in range(8):
        with T.block("call"):
            vi = T.axis.spatial(8, i)
            V = T.match_buffer(A[vi * 16:vi * 16 + 16, 0:128], (16, 128))
            T.call_extern("int32", "f", V.data)
]])
  end)

  it("tvm_access_ptr says whether memory is read or written", function()
    assert.are.same({ "T.reads(A[0:128, 0:128])", "T.writes(B[0:128, 0:128])" }, regions_of [[
    for i in range(8):
        with T.block("call"):
            vi = T.axis.spatial(8, i)
            T.call_extern("int32", "f",
                T.tvm_access_ptr(T.type_annotation("float32"), A.data, vi, 16, 1),
                T.tvm_access_ptr(T.type_annotation("float32"), B.data, vi, 16, 2))
]])
  end)

  it("a block around one with a view takes what it accesses", function()
    assert.are.same({ "T.reads(A[vi * 16 + 3, 0:128])", "T.writes(C[vi, 0:128])",
      "T.reads(A[vi * 16 + 3, vj])", "T.writes(C[vi, vj])" }, regions_of [[
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            for j in range(128):
                with T.block("element"):
                    vj = T.axis.spatial(128, j)
                    V = T.match_buffer(A[vi * 16:vi * 16 + 16, vj], (16, 1))
                    C[vi, vj] = V[3, 0]
]])
  end)
end)
