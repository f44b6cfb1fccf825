-- tir.LowerAutoCopy: copies between global and shared memory, spread over threads.

local pl = require "perilune"
local module_of = require "spec.tir.module_of"

local lower = pl.passes["tir.LowerAutoCopy"]

-- A copy of A (rows x columns) by way of shared memory: `attrs` of the first block, the store of
-- the second one.
local function program(row)
  return pl.tir.parse((([[
@T.prim_func
def main(A: T.Buffer((64, 32), "DTYPE"), B: T.Buffer(OUT, "DTYPE")):
    with T.block("root"):
        T.reads()
        T.writes()
        T.block_attr({"warp_execution": T.bool(True)})
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            with T.block("copies"):
                T.reads(A[0:64, 0:32])
                T.writes(B[0:ROWS, 0:COLUMNS])
                S = T.alloc_buffer(OUT, "DTYPE", scope="shared")
                with T.block("load"):
                    T.reads(A[0:64, 0:32])
                    T.writes(S[0:ROWS, 0:COLUMNS])
                    T.block_attr({"auto_copy": 1, "vector_bytes": BYTES})
                    for i, j in T.grid(64, 32):
                        S[TO] = A[i, j]
                with T.block("store"):
                    T.reads(S[0:ROWS, 0:COLUMNS])
                    T.writes(B[0:ROWS, 0:COLUMNS])
                    T.block_attr({"auto_copy": 1, "vector_bytes": BYTES})
                    for i, j in T.grid(64, 32):
                        B[TO] = S[TO]
]]):gsub("%u%u+", {
    DTYPE = row.dtype or "float32", BYTES = row.bytes or "4", TO = row.to or "i, j",
    OUT = ("(%d, %d)"):format(row.rows or 64, row.columns or 32),
    ROWS = tostring(row.rows or 64), COLUMNS = tostring(row.columns or 32),
  })))
end

-- The same without threads that the loop interpreter would have to run together.
local function serial(mod)
  return assert(pl.tir.parse((pl.tir.script(mod)
    :gsub('T%.thread_binding%((%d+), thread="threadIdx%.[xy]"%)', "range(%1)"))))
end

local function text_of(row) return pl.tir.script(lower()(assert(program(row)))) end

local function refuses(message, mod)
  assert.error_matches(function() lower()(mod) end, message, 1, true)
end

describe("tir.LowerAutoCopy", function()
  it("spreads elements over rounds, threads and lanes", function()
    local text = text_of { bytes = "16" }
    for _, line in ipairs { "for i_j_fused_0 in range(4):",
      'for i_j_fused_1 in T.thread_binding(4, thread="threadIdx.y"):',
      'for i_j_fused_2 in T.thread_binding(32, thread="threadIdx.x"):',
      "for i_j_fused_3 in T.vectorized(4):" } do
      assert.is_truthy(text:find(line, 1, true), text)
    end
  end)

  it("gives shared memory strides without conflicts of banks", function()
    assert.is_truthy(text_of({}):find("strides=(32, 1)", 1, true))
    local transposed = text_of { to = "j, i", rows = 32, columns = 64 }
    assert.is_truthy(transposed:find("strides=(65, 1)", 1, true), transposed)
  end)

  it("copies what was copied", function()
    for _, row in ipairs { {}, { bytes = "16" }, { to = "j, i", rows = 32, columns = 64 },
      { dtype = "float16", bytes = "8" }, { dtype = "int8", bytes = "16" } } do
      local before = program(row)
      local once = pl.tir.check(serial(before), serial(lower()(before)))
      assert.is_true(once)
    end
  end)

  it("leaves other blocks alone", function()
    local mod = module_of "with T.block('b'):\n    T.reads()\n    T.writes()\n    B[0] = A[0]"
    assert.is_true(rawequal(mod, lower()(mod)))
  end)

  it("refuses what it does not copy", function()
    local function with(body)
      return module_of(([[
with T.block("outer"):
    T.reads()
    T.writes()
    S = T.alloc_buffer((64,), scope="%s")
    with T.block("copy"):
%s]]):format("shared", (body:gsub("[^\n]+", "        %0"))))
    end
    local head = "T.reads(A[0:64])\nT.writes(S[0:64])\nT.block_attr({'auto_copy': 1})\n"
    refuses("is not one store in loops", with(head
      .. "for i in range(64):\n    S[i] = A[i]\n    S[i] = A[i]"))
    refuses("is not one store in serial loops of constant extents", with(head
      .. "for i in range(n):\n    S[i] = A[i]"))
    refuses("does not read one region and write one", with(
      "T.reads()\nT.writes(S[0:64])\nT.block_attr({'auto_copy': 1})\nfor i in range(64):\n"
      .. "    S[i] = A[i]"))
    refuses("copies neither from global to shared memory nor back", with(
      "T.reads(A[0:64])\nT.writes(B[0:64])\nT.block_attr({'auto_copy': 1})\n"
      .. "for i in range(64):\n    B[i] = A[i]"))
    refuses("copies through local memory", with(
      "T.reads(A[0:64])\nT.writes(S[0:64])\nT.block_attr({'auto_copy': 1, 'local_stage': 1})\n"
      .. "for i in range(64):\n    S[i] = A[i]"))
    refuses("stores to indices that are not its loop variables", with(
      "T.reads(S[0:64])\nT.writes(B[0:64])\nT.block_attr({'auto_copy': 1})\n"
      .. "for i in range(32):\n    B[i * 2] = S[i]"))
    refuses("does not copy a multiple of the elements", with(
      "T.reads(A[0:64])\nT.writes(S[0:64])\nT.block_attr({'auto_copy': 1, 'vector_bytes': 64})\n"
      .. "for i in range(63):\n    S[i] = A[i]"))
  end)
end)
