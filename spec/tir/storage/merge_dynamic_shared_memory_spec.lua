local pl = require "perilune"
local module_of = require "spec.tir.module_of"

local merge = pl.passes["tir.MergeDynamicSharedMemoryAllocations"]

local function merges(before, after)
  local out = merge()(module_of(before))
  assert.is_true(pl.equal(out, module_of(after), { map_free_vars = true }), pl.tir.script(out))
  assert.is_true(rawequal(out, merge()(out)))
end

local function refuses(message, body)
  assert.error_matches(function() merge()(module_of(body)) end, message, 1, true)
end

-- Allocations of the sizes and dtypes, in a kernel.
local function allocations(rows)
  local lines = { 'tx = T.launch_thread("threadIdx.x", 64)' }
  for _, row in ipairs(rows) do
    lines[#lines + 1] = ('%s = T.allocate([%s], "%s", "shared.dyn")'):format(row[1], row[2], row[3])
    lines[#lines + 1] = ('%s_1 = T.Buffer((%s,), "%s", data=%s, scope="shared.dyn")'):format(row[1],
      row[2], row[3], row[1])
  end
  return table.concat(lines, "\n") .. "\n"
end

local function merged(size, rows)
  local lines = { 'tx = T.launch_thread("threadIdx.x", 64)',
    ('M = T.allocate([%s], "uint8", "shared.dyn")'):format(size) }
  for _, row in ipairs(rows) do
    lines[#lines + 1] = ('%s_1 = T.Buffer((%s,), "%s", data=M, scope="shared.dyn")'):format(row[1],
      row[2], row[3])
  end
  return table.concat(lines, "\n") .. "\n"
end

describe("tir.MergeDynamicSharedMemoryAllocations", function()
  local three = { { "C", 64, "float32" }, { "D", 64, "float32" }, { "E", 128, "float32" } }
  local uses = [[
C_1[tx%s] = A[tx]
D_1[tx%s] = A[tx + 1]
B[tx] = C_1[tx%s] + D_1[tx%s]
E_1[tx%s] = B[tx]
A[tx] = E_1[tx%s] ]]

  it("puts what lives at the same time side by side, and a large one over small ones", function()
    merges(allocations(three) .. uses:format("", "", "", "", "", ""),
      merged(512, three) .. uses:format(" + 64", "", " + 64", "", "", ""))
  end)

  it("aligns each piece to the largest element in it", function()
    local rows = { { "C", 3, "uint8" }, { "D", 64, "float32" }, { "E", 5, "float64" } }
    local body = [[
C_1[0] = T.uint8(1)
D_1[tx%s] = A[tx]
E_1[0%s] = T.float64(2)
A[tx] = D_1[tx%s] + T.Cast("float32", C_1[%s]) + T.Cast("float32", E_1[%s])]]
    merges(allocations(rows) .. body:format("", "", "", "0", "0"),
      merged(304, rows) .. body:gsub("C_1%[0%]", "C_1[296]"):gsub("%[0%%s%]", "[0]")
        :format(" + 10", " + 10", "296", "0"))
  end)

  it("counts memory of symbolic sizes, and moves vectors and pointers", function()
    local rows = { { "C", "n", "float32" }, { "D", "n + 1", "float32" } }
    local body = [[
C_1[tx] = A[tx]
D_1[%s] = T.Broadcast(T.float32(1), 4)
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), %s, %s, 4, 1))
A[tx] = C_1[tx] + D_1[%s] ]]
    local out = pl.tir.script(merge()(module_of(allocations(rows)
      .. body:format("tx:tx + 4", "D", "tx", "tx"))))
    local size = "T.max(0, n * 4 + (4 - n * 4 % 4) % 4)"
    for _, line in ipairs {
      ('T.allocate([%s + T.max(0, (n + 1) * 4 + (4 - (n + 1) * 4 %% 4) %% 4)], "uint8", ')
        :format(size),
      ("D_1[T.Ramp(tx, 1, 4) + T.Broadcast(%s // 4, 4)] = T.Broadcast(T.float32(1), 4)")
        :format(size),
      ('T.tvm_access_ptr(T.type_annotation("float32"), buf_dyn_shmem, %s // 4 + tx, 4, 1)')
        :format(size),
      ("A[tx] = C_1[tx] + D_1[tx + %s // 4]"):format(size) } do
      assert.is_truthy(out:find(line, 1, true), out .. line)
    end
  end)

  it("leaves a single allocation alone", function()
    local mod = module_of(allocations { three[1] } .. "C_1[tx] = A[tx]\nB[tx] = C_1[tx]")
    assert.is_true(rawequal(mod, merge()(mod)))
  end)

  it("refuses what it cannot merge", function()
    local two = { three[1], three[2] }
    refuses("a call has dynamic shared memory as an argument",
      allocations(two) .. 'C_1[0] = A[0]\nD_1[0] = A[0]\nT.call_extern("int32", "f", D)')
    refuses("dynamic shared memory and no threads", (allocations(two)
      :gsub('tx = T.launch_thread%("threadIdx.x", 64%)', "tx: T.int32 = 0")) .. "C_1[tx] = A[tx]")
    refuses("is used outside of the first kernel", ([[
C = T.allocate([64], "float32", "shared.dyn")
D = T.allocate([64], "float32", "shared.dyn")
C_1 = T.Buffer((64,), data=C, scope="shared.dyn")
D_1 = T.Buffer((64,), data=D, scope="shared.dyn")
with T.launch_thread("threadIdx.x", 64) as tx:
    C_1[tx] = A[tx]
    D_1[tx] = A[tx]
B[0] = C_1[0] + D_1[0] ]]))
  end)
end)
