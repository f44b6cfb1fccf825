-- A loop whose sums find no register is written several times, each with a part of its stores.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

local tir = pl.tir

-- Rows of sums of products in a local array. case: rows, lanes; k, inner: extents of the loops;
-- to, value, let: of a row, where it stores, what it adds, and a line before it;
-- alias: memory may overlap; sums: in a parameter in place of a local array.
local function program(case)
  local rows, lanes, lines = case.rows or 8, case.lanes or 16, {}
  local k, inner = case.k or 32, case.inner or 1
  for row = 0, rows - 1 do
    local to = case.to and case.to(row) or ("%d:%d"):format(row * lanes, (row + 1) * lanes)
    local value = case.value and case.value(row) or
      ("T.Broadcast(A[k * %d + %d], %d) * B[x:x + %d]"):format(rows, row, lanes, lanes)
    lines[#lines + 1] = case.let and case.let(row)
    lines[#lines + 1] = ("acc[%s] = acc[%s] + %s"):format(to, to, value)
  end
  local n = rows * lanes + 64
  local sums = case.sums and ("acc = T.Buffer((%d,), data=C.data)"):format(n) or
    ("data = T.allocate([%d], \"float32\", \"global\")\n    acc = T.Buffer((%d,), data=data)")
      :format(n, n)
  return assert(tir.parse(([[
@T.prim_func
def main(A: T.Buffer((%d,), "float32"), B: T.Buffer((%d,), "float32"),
         C: T.Buffer((%d,), "float32"), D: T.Buffer((64,), "float32"), m: T.int32):
    T.func_attr({"tir.noalias": T.bool(%s)})
    %s
    for i in range(%d):
        acc[i] = T.float32(0)
    for k in range(%s):
        for j in range(%d):
            x: T.int32 = k * %d + j
            %s
    for i in range(%d):
        C[i] = acc[i]
]]):format(rows * 32 + 64, 32 * lanes + 64, n, case.alias and "False" or "True", sums, n, k, inner,
    lanes, table.concat(lines, "\n            "), n)))
end

-- How often the C of each case has the loop over j, after comparing with the interpreter.
local function parts(cases, options)
  local functions, counts = {}, {}
  for i, case in ipairs(cases) do functions["f" .. i] = program(case).functions.main end
  options = options or {}
  options.vector_bytes = options.vector_bytes or 32
  options.flags = options.flags or "-O1 -std=c11 -Wno-psabi"
  local built = pl.build(pl.module(functions), options)
  for i in ipairs(cases) do
    local name = "f" .. i
    local fn = functions[name]
    local how = compare.run(fn, built, name, compare.arguments(fn, { m = 30 }, 5), 1e-5)
    assert(not how, how)
    local vectors = built:source():match("\nint32_t " .. name .. "%(.-\n}\n")
    counts[i] = select(2, vectors:gsub("for %(int32_t j", ""))
  end
  return counts
end

describe("a loop with more sums than registers", function()
  it("is written in parts", function()
    assert.same({ 2, 2, 3, 2 }, parts { { sums = true }, { rows = 12 },
      { rows = 14, inner = 2 }, { rows = 4, lanes = 28 } })
    assert.same({ 2 }, parts({ { rows = 20, lanes = 32 } }, { vector_bytes = 64 }))
    assert.same({ 2 }, parts({ { lanes = 8 } }, { vector_bytes = 16 }))
  end)

  it("keeps stores together that are written as one", function()
    local function value(row)
      local from = row % 2 == 0 and "x" or "(x + 14)"
      return ("T.Broadcast(A[k * 4 + %d], 14) * B[%s:%s + 14]"):format(row // 2, from, from)
    end
    assert.same({ 2 }, parts { { lanes = 14, value = value } })
  end)

  it("is one loop where its sums have registers, or share nothing", function()
    assert.same({ 1, 1 }, parts { { rows = 6 }, { rows = 3, lanes = 64, value = function(row)
      return ("B[x + %d:x + %d + 64]"):format(row, row)
    end } })
    assert.same({ 1 }, parts({ {} }, { vector_bytes = 64 }))
  end)

  it("is one loop where a part would read what another one writes", function()
    assert.same({ 1, 1, 1, 1 }, parts {
      { value = function(row)
        return row == 7 and "acc[0:16] * B[x:x + 16]" or "B[x:x + 16]"
      end },
      { value = function(row)
        return row == 2 and "T.Broadcast(acc[100], 16) * B[x:x + 16]" or "B[x:x + 16]"
      end },
      { value = function() return "T.Broadcast(y, 16) * B[x:x + 16]" end,
        let = function(row) return row == 0 and "y: T.float32 = acc[120]" or nil end },
      { alias = true },
    })
  end)

  it("is one loop where stores overlap or move", function()
    local places = {
      function(row) return ("%d:%d"):format(row * 15, row * 15 + 16) end,
      function(row) return ("%d:%d"):format((7 - row) * 16, (8 - row) * 16) end,
      function(row) return ("k + %d:k + %d + 16"):format(row * 16, row * 16) end,
    }
    local cases = {}
    for i, to in ipairs(places) do cases[i] = { to = to } end
    assert.same({ 1, 1, 1 }, parts(cases))
  end)

  it("is one loop where it does something else", function()
    local cases = {}
    for _, line in ipairs { "D[k] = T.float32(1)", "acc[140] = T.float32(2)" } do
      cases[#cases + 1] = { let = function(row) return row == 0 and line or nil end }
    end
    assert.same({ 1, 1 }, parts(cases))
  end)

  it("is one loop where it has few rounds, very many, or an unknown number", function()
    assert.same({ 1, 1, 1 }, parts { { k = 4 }, { k = "m" }, { inner = 200, value = function()
      return "B[k * 16:k * 16 + 16]"
    end } })
  end)

  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("compiles without warnings by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      for _, bytes in ipairs { 16, 32 } do
        parts({ { rows = 4, lanes = 28 } }, { cc = cc, vector_bytes = bytes,
          flags = "-std=c11 -Wall -Wextra -Werror" })
      end
    end)
  end
end)
