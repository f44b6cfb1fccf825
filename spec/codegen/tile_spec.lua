-- Two loops of which the inner one reads memory by columns run in tiles.

local pl = require "perilune"
local compare = require "spec.codegen.compare"

local tir = pl.tir

-- B[i, j] = value, over `rows` and `columns`; `body` in place of that store.
local function program(rows, columns, body, dtype)
  return assert(tir.parse(([[
@T.prim_func
def main(A: T.Buffer((%d,), "%s"), C: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(%d):
        for j in range(%d):
            %s]]):format(rows * columns, dtype or "float32", rows * columns, dtype or "float32",
    rows * columns, dtype or "float32", rows, columns,
    (body:gsub("ROWS", rows):gsub("COLUMNS", columns)))))
end

-- The step of the tiles, or nil, after comparing with the interpreter.
local function step(mod, options)
  local fn = mod.functions.main
  local built = pl.build(mod, options)
  local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 3))
  assert(not how, how)
  return tonumber(built:source():match "for %(int32_t %w+ = 0; %w+ < %d+; %w+ %+= (%d+)%)")
end

describe("loops that read memory by columns", function()
  local transpose = "B[i * COLUMNS + j] = A[j * ROWS + i]"

  it("run in tiles", function()
    assert.equal(8, step(program(256, 256, transpose)))
    assert.equal(8, step(program(256, 200, transpose, "int32")))
    assert.equal(8, step(program(200, 256, transpose, "float64")))
    assert.equal(8, step(program(256, 256,
      "B[i * COLUMNS + j] = A[j * ROWS + i] * T.float32(2) + C[i * COLUMNS + j]")))
  end)

  it("have a last tile of less rounds", function()
    for rows = 129, 135 do assert.equal(8, step(program(rows, 140, transpose))) end
  end)

  it("stay as they are where a column fits the nearest cache, or rounds depend on each other",
    function()
      assert.is_nil(step(program(512, 512, transpose, "int8")))
      for _, case in ipairs {
        { 64, 64, transpose },
        { 256, 256, "B[i * COLUMNS + j] = A[i * COLUMNS + j]" },
        { 256, 256, "B[i * COLUMNS + j] = B[j * ROWS + i] + A[i]" },
        { 256, 256, "B[j * ROWS + i] = A[i * COLUMNS + j]" },
        { 256, 256, "B[i * 16 + j] = A[j * ROWS + i]" },
        { 256, 256, "B[i * COLUMNS + j] = A[i * j // 256 * 256 + i]" },
        { 256, 256, "B[i * COLUMNS + j] = A[j * ROWS + T.Cast(\"int32\", C[i]) % 256]" },
        { 16, 4096, transpose },
      } do
        assert.is_nil(step(program(table.unpack(case))), case[3])
      end
    end)

  it("stay as they are where accesses are checked", function()
    assert.is_nil(step(program(256, 256, transpose), { asserts = true }))
  end)

  it("may be parts of larger nests", function()
    local mod = assert(tir.parse [[
@T.prim_func
def main(A: T.Buffer((3, 160, 160), "float32"), B: T.Buffer((3, 160, 160), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for n in T.parallel(3):
        for i in range(160):
            for j in range(160):
                B[n, i, j] = A[n, j, i]
        for i, j in T.grid(160, 160):
            B[n, i, j] = B[n, i, j] + A[n, j, i] ]])
    local fn = pl.lower(mod, { name = "main" }).functions.main
    for _, threads in ipairs { 1, 2 } do
      local built = pl.build(pl.lower(mod), { threads = threads })
      assert(not compare.run(fn, built, "main", compare.arguments(fn, {}, 3)))
      local _, n = built:source():gsub("%+= 8%)", "")
      assert.equal(1, n)
    end
  end)

  -- B[j, i] = A[i, j] by blocks of tile x tile; B has rows of `wide` elements. The steps of the
  -- tiles, and whether two rounds of both loops are one.
  local function blocks(rows, columns, tile, wide, change, bytes)
    local lines = {}
    for k = 0, tile - 1 do
      local from = ("j * %d + i * %d + %d"):format(tile * columns, tile, k)
      local to = ("i * %d + j * %d + %d"):format(tile * wide, tile, k * wide)
      lines[#lines + 1] = ("            B[%s:%s + %d] = A[%s:%s + %d:%d]"):format(to, to, tile,
        from, from, tile * columns, columns)
    end
    local text = ([[
@T.prim_func
def main(A: T.Buffer((%d,), "float32"), B: T.Buffer((%d,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i in range(%d):
        for j in range(%d):
%s]]):format(rows * columns, rows * columns + 64, columns // tile, rows // tile,
      table.concat(lines, "\n"))
    local mod = assert(tir.parse(change and change(text) or text))
    local fn = pl.lower(mod, { name = "main" }).functions.main
    local built = pl.build(pl.lower(mod), { vector_bytes = bytes or 32 })
    local how = compare.run(fn, built, "main", compare.arguments(fn, {}, 3))
    assert(not how, how)
    local source = built:source()
    local _, doubled = source:gsub("; [ij] %+= 2%)", "")
    return source:match "\n  for %(int32_t %w+ = 0; %w+ < %d+; %w+ %+= (%d+)%)",
      source:match "\n    for %(int32_t %w+ = 0; %w+ < %d+; %w+ %+= (%d+)%)", doubled == 2
  end

  it("transpose several blocks in a tile", function()
    assert.same({ "4", "2", false }, { blocks(200, 248, 8, 200) })
    assert.same({ "4", "2", false }, { blocks(216, 216, 8, 216) })
  end)

  it("transpose four blocks as one where they are half as wide as a vector", function()
    assert.same({ "2", "32", true }, { blocks(256, 256, 8, 256, nil, 64) })
    assert.same({ "2", "128", true }, { blocks(1024, 144, 8, 1024, nil, 64) })
    assert.same({ "2", "64", true }, { blocks(256, 256, 4, 256, nil, 32) })
    assert.same({ "2", "32", true }, { blocks(256, 256, 8, 256, function(text) -- columns backwards
      return (text:gsub("(j %* 2048 %+ i %* 8 %+ )(%d)", function(x, k) return x .. 7 - k end))
    end, 64) })
  end)

  it("transpose blocks one by one where rounds are odd, blocks no squares or values not loads",
    function()
      assert.same({ "4", "2", false }, { blocks(256, 200, 8, 256, nil, 64) })
      assert.same({ "4", "2", false }, { blocks(200, 256, 8, 200, nil, 64) })
      assert.same({ "4", "2", false }, { blocks(256, 256, 8, 256, nil, 32) })
      assert.same({ "4", "2", false }, { blocks(256, 256, 8, 256, function(text)
        return (text:gsub("= A", "= T.Broadcast(T.float32(2), 8) * A"))
      end, 64) })
      assert.same({ "4", "2", false }, { blocks(256, 256, 8, 256, function(text)
        return (text:gsub("\n            B%[[^\n]*$", ""))
      end, 64) })
      assert.same({ "4", "2", false }, { blocks(256, 256, 8, 256, function(text)
        return (text:gsub("j %* 2048 %+ i %* 8 %+ 7", "j * 2048 + i * 8 + 6"))
      end, 64) })
    end)

  it("leave blocks as they are that are small, as wide as a line, or overlap", function()
    assert.is_nil((blocks(256, 272, 16, 256)))
    assert.is_nil((blocks(256, 256, 16, 256, nil, 64)))
    assert.is_nil((blocks(96, 96, 8, 96)))
    assert.is_nil((blocks(256, 256, 8, 248)))
    assert.is_nil((blocks(256, 256, 8, 256, function(text)
      return (text:gsub("i %* 2048 %+ j %* 8 %+ 0", "i * 2048 + j * 8 + 256"))
    end)))
    assert.is_nil((blocks(256, 256, 8, 256, function(text)
      return (text:gsub("i %* 2048 %+ j %* 8", "i * 2048 + j * 4"))
    end)))
  end)

  -- gcc 12 exchanges these two loops, and other elements are stored last.
  it("keep the order of their rounds where several store one element", function()
    assert.is_nil(step(program(256, 256, "B[i * 16 + j] = A[j * ROWS + i]"), { flags = "-O3" }))
  end)
end)
