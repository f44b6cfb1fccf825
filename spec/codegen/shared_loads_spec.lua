-- A vector that several stores in a row read is loaded once, and kept in a register.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

local tir = pl.tir

-- Rows of sums of products: C[r] += A[r, k] * B[k]. case: rows, lanes, dtype; between: a line after
-- the first row; alias: memory may overlap.
local function program(case)
  local lines, dtype, lanes = {}, case.dtype or "float32", case.lanes
  for row = 0, case.rows - 1 do
    local to = ("C[%d:%d]"):format(row * lanes, (row + 1) * lanes)
    lines[#lines + 1] = ("        %s = %s + T.Broadcast(A[k + %d], %d) * B[x:x + %d]\n"):format(to,
      to, row * 8, lanes, lanes)
    if row == 0 and case.between then lines[#lines + 1] = "        " .. case.between .. "\n" end
  end
  return assert(tir.parse(([[
@T.prim_func
def main(A: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s"), C: T.Buffer((%d,), "%s")):
    T.func_attr({"tir.noalias": T.bool(%s)})
    for k in range(8):
        x: T.int32 = k * %d
%s]]):format(case.rows * 8, dtype, 8 * lanes, dtype, case.rows * lanes, dtype,
    case.alias and "False" or "True", lanes, table.concat(lines))))
end

-- How many loads the C keeps, after comparing with the interpreter, whether the sums are in memory
-- before their loop, how many scalars it keeps in all lanes of a vector, and how many parts of
-- those it takes.
local function kept(case, options)
  local mod = program(case)
  local fn = mod.functions.main
  local built = pl.build(mod, options or { vector_bytes = 32 })
  local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6)
  assert(not how, how)
  local source = built:source()
  local _, count = source:gsub("  PL_KEEP%(", "")
  local _, splats = source:gsub("  pl_%w+ t%d+ = pl_splat_", "")
  local _, parts = source:gsub("PL_LOW%(t%d", "")
  return count - splats, source:find("  PL_IN_MEMORY(", 1, true) ~= nil, splats, parts
end

describe("vectors that stores in a row read", function()
  it("are loaded once", function()
    assert.equal(1, kept { rows = 4, lanes = 8 })
    assert.equal(2, kept { rows = 4, lanes = 16 })
    assert.equal(3, kept { rows = 4, lanes = 24 })
    assert.equal(1, kept({ rows = 4, lanes = 16 }, { vector_bytes = 64 }))
    assert.equal(2, kept({ rows = 3, lanes = 8, dtype = "float64" }, { vector_bytes = 32 }))
    assert.equal(1, kept { rows = 3, lanes = 8, dtype = "int32" })
    assert.equal(2, kept { rows = 4, lanes = 12 })
    assert.equal(2, kept { rows = 3, lanes = 14 }) -- 2 lanes are too few for a register
  end)

  it("are loaded once where a part of them is one element", function()
    for lanes = 3, 33, 2 do kept { rows = 3, lanes = lanes } end
  end)

  it("are not kept where a register would be missing", function()
    assert.equal(0, kept { rows = 5, lanes = 24 })
    assert.equal(2, kept({ rows = 14, lanes = 32 }, { vector_bytes = 64 }))
    assert.equal(1, kept({ rows = 15, lanes = 32 }, { vector_bytes = 64 }))
  end)

  it("are kept in part where sums are in memory before their loop", function()
    assert.same({ 1, true, 0, 0 }, { kept { rows = 7, lanes = 16 } })
    assert.same({ 2, false, 0, 0 }, { kept { rows = 6, lanes = 16 } })
    assert.same({ 0, false, 0, 0 }, { kept { rows = 8, lanes = 16 } })
  end)

  it("are multiplied by scalars that are kept in all lanes of a vector of 64 bytes", function()
    local function splats(case, bytes)
      return table.pack(select(3, kept(case, { vector_bytes = bytes or 64 })))
    end
    assert.same({ 3, 0, n = 2 }, splats { rows = 3, lanes = 32 })
    assert.same({ 4, 8, n = 2 }, splats { rows = 4, lanes = 28 })
    assert.same({ 2, 2, n = 2 }, splats { rows = 2, lanes = 25 })
    assert.same({ 3, 3, n = 2 }, splats { rows = 3, lanes = 12, dtype = "float64" })
    assert.same({ 14, 0, n = 2 }, splats { rows = 14, lanes = 32 })
    assert.same({ 0, 0, n = 2 }, splats { rows = 15, lanes = 32 }) -- no register is left
    assert.same({ 0, 0, n = 2 }, splats { rows = 4, lanes = 16 })
    assert.same({ 0, 0, n = 2 }, splats { rows = 1, lanes = 32 })
    assert.same({ 0, 0, n = 2 }, splats { rows = 4, lanes = 32, dtype = "int32" })
    assert.same({ 0, 0, n = 2 }, splats({ rows = 3, lanes = 32 }, 32))
  end)

  it("are added to elements whose places are computed in 64 bits, as their index is", function()
    local mod = assert(tir.parse [[
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((64,), "float32"),
         C: T.Buffer((8,), "float32x8")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for t, k in T.grid(4, 8):
        x: T.int32 = t * 2
        C[x] = C[x] + T.Broadcast(A[k], 8) * B[k * 8:k * 8 + 8]
        C[x + 1] = C[x + 1] + T.Broadcast(A[k + 8], 8) * B[k * 8:k * 8 + 8]
]])
    local fn = mod.functions.main
    local built = pl.build(mod, { vector_bytes = 32 })
    local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6)
    assert(not how, how)
    local source = built:source()
    assert.truthy(source:find("const int64_t x = t * 2;", 1, true), source)
    assert.truthy(source:find("const int64_t t%d+ = %(x %* 8%) %+ 8;"), source)
    assert.falsy(source:find("const int32_t t%d+ = [^;]*x"), source)
  end)

  -- gcc keeps C in registers over the loop then.
  it("are added to elements of which each place is a variable and a constant", function()
    local mod = assert(tir.parse [[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"),
         C: T.Buffer((512,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(4):
        first: T.int32 = i * 64
        for k in range(8):
            second: T.int32 = first + 16
            C[first:first + 16] = C[first:first + 16] + T.Broadcast(A[k], 16) * B[0:16]
            C[second:second + 16] = C[second:second + 16] + T.Broadcast(A[k + 8], 16) * B[0:16] ]])
    local fn = mod.functions.main
    local built = pl.build(mod, { vector_bytes = 32 })
    assert(not compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6))
    assert.truthy(built:source():find("(C + ((first + 16) + 8))", 1, true))
    assert.falsy(built:source():find("second", 1, true))
  end)

  -- gcc does not see that (first + 1) * 16 and first * 16 are apart.
  it("are added to vectors of which each place is a product and a constant", function()
    local mod = assert(tir.parse [[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((32,), "float32x16")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(4):
        first: T.int32 = i * 6
        for k in range(8):
            second: T.int32 = first + 1
            third: T.int32 = second + 2
            C[first] = C[first] + T.Broadcast(A[k], 16)
            C[second] = C[second] + T.Broadcast(A[k + 8], 16)
            C[third] = C[third] + T.Broadcast(A[k + 16], 16)
            C[first - 0 + 7] = C[first + 7] + T.Broadcast(A[k + 24], 16) ]])
    local fn = mod.functions.main
    local built = pl.build(mod, { vector_bytes = 64 })
    assert(not compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6))
    local source = built:source()
    for _, constant in ipairs { 16, 48, 112 } do
      assert.truthy(source:find(("(first * 16) + %d"):format(constant), 1, true), source)
    end
    assert.falsy(source:find("first + ", 1, true), source)
  end)

  it("are loaded again where one store reads them, or memory may change", function()
    assert.equal(0, kept { rows = 1, lanes = 8 })
    assert.equal(0, kept { rows = 4, lanes = 8, alias = true })
    assert.equal(0, kept { rows = 4, lanes = 8, between = "B[x] = T.float32(1)" })
  end)

  -- Two rows, each of two vectors of `lanes` that are stored as one; the last store has a load of
  -- the first one alone if `again`.
  local function merged_rows(lanes, again)
    local function buffer(name)
      return tir.decl_buffer({ 256 }, "float32", name)
    end
    local A, B, C, D = buffer "A", buffer "B", buffer "C", buffer "D"
    local i, first = tir.Var("i", "int32"), nil
    local body = {}
    for row = 0, 1 do
      for part = 0, 1 do
        local load = tir.BufferLoad(B, { tir.Ramp(i + part * lanes, 1, lanes) })
        first = first or load
        local to = { tir.Ramp((row * 2 + part) * lanes, 1, lanes) }
        body[#body + 1] = tir.BufferStore(C, tir.BufferLoad(C, to) + load *
          tir.Broadcast(tir.BufferLoad(A, { i + row }), lanes), to)
      end
    end
    if again then
      body[#body + 1] = tir.BufferStore(D, first, { tir.Ramp(0, 1, lanes) })
    end
    local fn = tir.PrimFunc({ A, B, C, D }, tir.For(i, 0, 9, "serial", tir.SeqStmt(body)))
    return fn:with { attrs = { ["tir.noalias"] = true } }
  end

  for _, case in ipairs { { 14, false }, { 14, true }, { 4, true }, { 20, false } } do
    it(("may be those of several stores: %d, %s"):format(case[1], case[2]), function()
      local fn = merged_rows(case[1], case[2])
      local built = pl.build(pl.module { main = fn }, { vector_bytes = 32 })
      local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 1e-6)
      assert(not how, how)
    end)
  end

  -- The loads are one node in all stores.
  local function after_a_loop(stride, n)
    local lanes = 8
    local function buffer(name, size)
      return tir.decl_buffer({ size }, "float32", name)
    end
    local A, B, C = buffer("A", lanes * n), buffer("B", lanes * n), buffer("C", lanes)
    local loads, body = {}, {}
    for i = 1, n do
      loads[i] = tir.BufferLoad(A, { tir.Ramp(stride == 1 and 0 or i - 1, stride, lanes) })
      body[i] = tir.BufferStore(B, loads[i], { tir.Ramp((i - 1) * lanes, 1, lanes) })
    end
    local i = tir.Var("i", "int32")
    body[#body + 1] = tir.For(i, 0, lanes * n, "serial",
      tir.BufferStore(A, tir.BufferLoad(A, { i }) + 1.0, { i }))
    body[#body + 1] = tir.BufferStore(C, loads[1], { tir.Ramp(0, 1, lanes) })
    local fn = tir.PrimFunc({ A, B, C }, tir.SeqStmt(body))
    return fn:with { attrs = { ["tir.noalias"] = true } }
  end

  for what, make in pairs {
    ["rows"] = function() return after_a_loop(1, 3) end,
    ["columns"] = function() return after_a_loop(8, 8) end,
  } do
    it("are read again behind a statement that writes them: " .. what, function()
      local fn = make()
      local built = pl.build(pl.module { main = fn }, { vector_bytes = 32 })
      local mark = what == "rows" and "  PL_KEEP(" or "= PL_SHUFFLE("
      assert.truthy(built:source():find(mark, 1, true))
      local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 5), 0)
      assert(not how, how)
    end)
  end

  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("compile without warnings by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      for _, bytes in ipairs { 16, 32, 64 } do
        local options = { cc = cc, vector_bytes = bytes, flags = "-std=c11 -Wall -Wextra -Werror" }
        kept({ rows = 7, lanes = 16 }, options)
        kept({ rows = 4, lanes = 28 }, options)
      end
    end)
  end
end)
