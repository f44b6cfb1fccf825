-- Stores of neighbouring vectors that are of one form are written as one.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

local tir = pl.tir

-- Sums of products in `parts` vectors: C[p] = C[p] + A[x + p] * B[k]. case: parts, lanes, dtype;
-- op: in place of +; let: each index is a variable; lines: other stores, of 14 lanes.
local function program(case)
  local dtype, lanes, parts = case.dtype or "float32", case.lanes or 14, case.parts or 2
  local lets, stores = {}, {}
  for p = 0, parts - 1 do
    local at = p == 0 and "x" or ("(x + %d)"):format(p * lanes)
    if case.let then
      lets[#lets + 1] = ("        y%d: T.int32 = %s\n"):format(p, at)
      at = "y" .. p
    end
    stores[#stores + 1] = ("        C[%d:%d] = C[%d:%d] %s A[%s:%s + %d] * T.Broadcast(B[k], %d)\n")
      :format(p * lanes, (p + 1) * lanes, p * lanes, (p + 1) * lanes, case.op or "+", at, at, lanes,
      lanes)
  end
  local lines = case.lines and "        " .. table.concat(case.lines, "\n        ") .. "\n"
  return assert(tir.parse(([[
@T.prim_func
def main(A: T.Buffer((512,), "%s"), B: T.Buffer((8,), "%s"), C: T.Buffer((256,), "%s")):
    T.func_attr({"tir.noalias": T.bool(%s)})
    for k in range(8):
        x: T.int32 = k * 3
        y: T.int32 = x + 14
        z: T.int32 = x + 15
%s]]):format(dtype, dtype, dtype, case.alias and "False" or "True",
    lines or table.concat(lets) .. table.concat(stores))))
end

-- How many vectors the C of each case stores, after comparing with the interpreter.
local function stored(cases, options)
  local functions, counts = {}, {}
  for i, case in ipairs(cases) do functions["f" .. i] = program(case).functions.main end
  local built = pl.build(pl.module(functions), options or { vector_bytes = 32 })
  for i = 1, #cases do
    local name = "f" .. i
    local fn = functions[name]
    local how = compare.run(fn, built, name, compare.arguments(fn, {}, 5), 1e-6)
    assert(not how, how)
    local vectors = built:source():match("\nint32_t " .. name .. "%(.-\n}\n")
    counts[i] = select(2, vectors:gsub("%(%*%(pl_%w+_u %*%)", ""))
  end
  return counts
end

describe("stores of neighbouring vectors", function()
  it("are one of their lanes together", function()
    assert.same({ 4, 4, 8, 3, 2, 5, 4 }, stored {
      { parts = 2 }, -- 8 + 8 + 8 + 4
      { parts = 2, let = true }, { parts = 4 }, { parts = 2, lanes = 12 },
      { parts = 4, lanes = 4 }, { parts = 2, lanes = 20 },
      { parts = 2, dtype = "int32", op = "-" },
    })
    assert.same({ 3 }, stored({ { parts = 2, lanes = 6, dtype = "float64" } }))
    assert.same({ 3 }, stored({ { parts = 2 } }, { vector_bytes = 64 })) -- 16 + 8 + 4
  end)

  it("stay several where that makes no fewer vectors", function()
    assert.same({ 4, 2, 3 }, stored { { parts = 2, lanes = 16 }, { parts = 2, lanes = 8 },
      { parts = 1 } })
  end)

  it("are apart where values differ, or a later one reads what an earlier one writes", function()
    local pairs_of_lines = {
      { "C[0:14] = C[0:14] + A[x:x + 14]", "C[14:28] = C[14:28] - A[y:y + 14]" },
      { "C[0:14] = A[x:x + 14]", "C[14:28] = A[z:z + 14]" },
      { "C[0:14] = A[x:x + 14]", "C[14:28] = A[x:x + 14]" },
      { "C[0:14] = T.Broadcast(B[k], 14)", "C[14:28] = T.Broadcast(B[7 - k], 14)" },
      { "C[0:14] = T.Broadcast(T.float32(1), 14)", "C[14:28] = T.Broadcast(T.float32(2), 14)" },
      { "C[0:14] = A[x:x + 14]", "C[15:29] = A[y:y + 14]" },
      { "C[14:28] = A[y:y + 14]", "C[0:14] = A[x:x + 14]" },
      { "C[14:28] = C[0:14] + A[x:x + 14]", "C[28:42] = C[14:28] + A[y:y + 14]" },
      { "C[0:14] = A[x:x + 14] * T.Broadcast(C[3], 14)",
        "C[14:28] = A[y:y + 14] * T.Broadcast(C[3], 14)" },
      { "C[0:14] = A[x:x + 14]", "C[14:28] = A[y:y + 14]", alias = true },
    }
    local cases, expected = {}, {}
    for i, lines in ipairs(pairs_of_lines) do
      cases[i], expected[i] = { lines = lines, alias = lines.alias }, 6 -- 8 + 4 + 2 twice
    end
    assert.same(expected, stored(cases))
  end)

  it("are merged where each reads its own lanes, though memory may overlap", function()
    assert.same({ 4 }, stored { { alias = true, lines = {
      "C[0:14] = C[0:14] * T.Broadcast(T.float32(2), 14)",
      "C[14:28] = C[14:28] * T.Broadcast(T.float32(2), 14)",
    } } })
  end)

  it("are followed by those that are not merged", function()
    assert.same({ 4 + 3 }, stored { { lines = {
      "C[0:14] = A[x:x + 14]", "C[14:28] = A[y:y + 14]", "C[28:42] = A[x:x + 14]",
    } } })
  end)

  -- The vectors are one node in all stores.
  it("leave values that others share as they are", function()
    local A, C = tir.decl_buffer({ 64 }, "float32", "A"), tir.decl_buffer({ 64 }, "float32", "C")
    local value = tir.Broadcast(tir.BufferLoad(A, { 3 }), 14)
    local body = {}
    for i, at in ipairs { 0, 14, 40 } do
      body[i] = tir.BufferStore(C, value, { tir.Ramp(at, 1, 14) })
    end
    local fn = tir.PrimFunc({ A, C }, tir.SeqStmt(body)):with { attrs = { ["tir.noalias"] = true } }
    local built = pl.build(pl.module { main = fn }, { vector_bytes = 32 })
    local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 0)
    assert(not how, how)
  end)

  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("compile without warnings by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      local flags = "-std=c11 -Wall -Wextra -Werror"
      stored({ { parts = 4 } }, { cc = cc, vector_bytes = 32, flags = flags })
    end)
  end
end)
