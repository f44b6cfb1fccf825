-- Columns of a matrix that stores in a row read: vectors of rows, and shuffles in registers.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

-- Stores of columns of A, a matrix of `lanes` rows, as rows of B. case: lanes, columns, stride,
-- dtype; value(load, column): what is stored; between: a line after the second store.
local function program(case)
  local lines, stride, dtype = {}, case.stride or 40, case.dtype or "float32"
  for column = 0, case.columns - 1 do
    local first = ("x + %d"):format(column)
    local load = ("A[%s:%s + %d:%d]"):format(first, first, stride * case.lanes, stride)
    local value = case.value and case.value(load, column) or load
    local to = ("y + %d"):format(column * case.lanes)
    lines[#lines + 1] = ("        B[%s:%s + %d] = %s\n"):format(to, to, case.lanes, value)
    if column == 1 and case.between then lines[#lines + 1] = "        " .. case.between .. "\n" end
  end
  local size = stride * case.lanes + case.columns + 4
  local text = ([[
@T.prim_func
def main(A: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s")):
    T.func_attr({"tir.noalias": T.bool(%s)})
    for i in range(3):
        x: T.int32 = i * 2
        y: T.int32 = i * %d
%s]]):format(size, dtype, 3 * case.lanes * case.columns, dtype, case.alias and "False" or "True",
    case.lanes * case.columns, table.concat(lines))
  return assert(pl.tir.parse(text))
end

-- How many shuffles there are in the C, after comparing with the interpreter.
local function shuffles(case, options)
  local mod = program(case)
  local fn = mod.functions.main
  local built = pl.build(mod, options)
  local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6)
  assert(not how, how)
  local _, count = built:source():gsub("= PL_SHUFFLE", "")
  return count
end

describe("columns of a matrix in C", function()
  it("are transposed in registers", function()
    assert.equal(64, shuffles({ lanes = 16, columns = 16 }, { vector_bytes = 64 }))
    assert.equal(4 * 24, shuffles({ lanes = 16, columns = 16 }, { vector_bytes = 32 }))
    assert.equal(16 * 8, shuffles({ lanes = 16, columns = 16 }, { vector_bytes = 16 }))
    assert.equal(8, shuffles({ lanes = 4, columns = 4, dtype = "int32" }, { vector_bytes = 16 }))
    assert.equal(24, shuffles({ lanes = 8, columns = 8, dtype = "float64" },
      { vector_bytes = 64 }))
    assert.equal(2 * 2, shuffles({ lanes = 4, columns = 2, dtype = "int64" },
      { vector_bytes = 16 }))
  end)

  it("are as far as they are whole vectors", function()
    assert.equal(24, shuffles({ lanes = 8, columns = 13 }, { vector_bytes = 32 }))
    assert.equal(0, shuffles({ lanes = 8, columns = 7 }, { vector_bytes = 32 }))
    assert.equal(0, shuffles({ lanes = 12, columns = 8 }, { vector_bytes = 32 }))
  end)

  it("are as many as a shorter vector has lanes", function()
    assert.equal(2 * 8, shuffles({ lanes = 4, columns = 8 }, { vector_bytes = 32 }))
    assert.equal(24, shuffles({ lanes = 8, columns = 8 }, { vector_bytes = 64 }))
    assert.equal(8, shuffles({ lanes = 4, columns = 7, dtype = "float64" }, { vector_bytes = 64 }))
    assert.equal(0, shuffles({ lanes = 2, columns = 8 }, { vector_bytes = 32 }))
    assert.equal(0, shuffles({ lanes = 6, columns = 8 }, { vector_bytes = 32 }))
  end)

  it("may be operands of arithmetic, and of several matrices", function()
    local case = { lanes = 8, columns = 8, value = function(load, column)
      return ("%s * T.Broadcast(T.float32(%d), 8) + T.Broadcast(A[x], 8)"):format(load, column)
    end }
    assert.equal(24, shuffles(case, { vector_bytes = 32 }))
    function case.value(load, column)
      local first = ("x + %d"):format(7 - column)
      return ("%s + A[%s:%s + %d:39]"):format(load, first, first, 8 * 39)
    end
    assert.equal(48, shuffles(case, { vector_bytes = 32 }))
  end)

  it("are read one by one where memory may change or conditions choose", function()
    local options = { vector_bytes = 32 }
    assert.equal(0, shuffles({ lanes = 8, columns = 8, alias = true }, options))
    assert.equal(0, shuffles({ lanes = 8, columns = 8, between = "A[x + 3] = B[0]" }, options))
    assert.equal(0, shuffles({ lanes = 8, columns = 8, stride = 4 }, options))
    assert.equal(0, shuffles({ lanes = 8, columns = 8, value = function(load)
      return ("T.Select(i < 2, %s, T.Broadcast(T.float32(0), 8))"):format(load)
    end }, options))
  end)

  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("compile without warnings by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      shuffles({ lanes = 16, columns = 16 }, { cc = cc, vector_bytes = 32,
        flags = "-std=c11 -Wall -Wextra -Werror" })
    end)
  end

  it("in long runs of stores take a time that grows with their number", function()
    local lines = {}
    for i = 0, 3999 do
      lines[i + 1] = ("    B[%d:%d] = A[%d:%d:8]\n"):format(i * 8, i * 8 + 8, i, i + 64)
    end
    local mod = assert(pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((32000,), "float32")):
%s]]):format(table.concat(lines))))
    local begin = os.clock()
    pl.build(mod, { vector_bytes = 32 }):source()
    assert.is_true(os.clock() - begin < 5)
  end)
end)
