local pl = require "perilune"

-- A function of two buffers whose layouts have these maps.
local function text_of(maps, body)
  return ([[
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True)%s})
%s]]):format(maps and (', "layout_transform_map": {%s}'):format(maps) or "", body or [[
    for i in range(16):
        B[i] = A[i] + 1]])
end

local function parse(text) return assert(pl.tir.parse(text)) end

local function apply(maps, body)
  return pl.passes["tir.ApplyLayoutTransforms"]()(parse(text_of(maps, body)))
end

local split = "B: [T.index_map(lambda i: (i // 4, i % 4))]"

describe("T.index_map", function()
  it("is read and printed among the attributes of the function", function()
    local mod = parse(text_of(split))
    assert.is_truthy(mod:text():find('"layout_transform_map": {' .. split .. "}", 1, true))
    assert.is_true(pl.equal(mod, parse(mod:text())))
    assert.is_false(pl.equal(mod, parse(text_of())))
  end)

  it("may stand in several lines, with comments", function()
    local mod = parse(text_of(
      "B: [T.index_map(lambda i: (  # the map\n        i // 4,\n        i % 4))]"))
    assert.is_truthy(mod:text():find("{B: [T.index_map(lambda i: ( i // 4, i % 4))]}", 1, true),
      mod:text())
    assert.is_true(pl.equal(mod, parse(mod:text())))
  end)

  it("is printed behind a buffer that is declared in the body", function()
    local mod = parse(text_of(nil, [[
    C = T.Buffer((16,), "int32")
    T.func_attr({"layout_transform_map": {C: [T.index_map(lambda i: (i // 4, i % 4))]}})
    T.realize(C[0:16])
    for i in range(16):
        C[i] = A[i]
    for i in range(16):
        B[i] = C[i] ]]))
    assert.is_true(pl.equal(mod, parse(mod:text())))
    assert.is_truthy(mod:text():find("{C: [T.index_map", 1, true))
  end)

  it("is refused where it is no list of maps of a buffer", function()
    for maps, message in pairs {
      ["B: [3]"] = "a T.index_map is expected", ["B: 3"] = "a list of T.index_map is expected",
      ["B: [T.index_map(3)]"] = "a lambda is expected", ["3: []"] = "a buffer is expected",
      ["B: [T.index_map(lambda i: T.index_map(lambda j: j))]"] = "a lambda inside a lambda",
    } do
      local mod, diag = pl.tir.parse(text_of(maps))
      assert.is_nil(mod)
      assert.is_truthy(tostring(diag):find(message, 1, true), tostring(diag))
    end
  end)
end)

describe("tir.ApplyLayoutTransforms", function()
  it("gives buffers their layouts, one map after the other", function()
    local out = apply(split .. ", A: [T.index_map(lambda i: (i // 8, i % 8)), "
      .. "T.index_map(lambda i, j: (j, i))]")
    assert.is_true(pl.equal(parse [[
@T.prim_func
def main(A: T.Buffer((8, 2), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True)})
    for i in range(16):
        B[i // 4, i % 4] = A[i % 8, i // 8] + 1]], out), tostring(out))
  end)

  it("is a step of tir.StorageFlatten", function()
    local out = pl.passes["tir.StorageFlatten"]()(parse(text_of(
      "B: [T.index_map(lambda i: (i % 4, i // 4))]")))
    assert.is_truthy(tostring(out):find("B_1[i % 4 * 4 + i // 4]", 1, true), tostring(out))
  end)

  it("changes nothing without maps", function()
    local mod = parse(text_of())
    assert.is_true(rawequal(mod, pl.passes["tir.ApplyLayoutTransforms"]()(mod)))
  end)

  it("keeps indices of 64 bits", function()
    local out = pl.passes["tir.ApplyLayoutTransforms"]()(parse [[
@T.prim_func
def main(B: T.Buffer((T.int64(16),), "int32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True),
                 "layout_transform_map": {B: [T.index_map(lambda i: (i // 4, i % 4))]}})
    for i in range(T.int64(16)):
        B[i] = 1]])
    assert.is_truthy(tostring(out):find("B[i // T.int64(4), i % T.int64(4)] = 1", 1, true),
      tostring(out))
  end)

  it("names a map that does not fit", function()
    for map, message in pairs {
      ["lambda i, j: i"] = "a map of 2 indices is applied to a buffer of 1 dimensions",
      ["lambda i: i < 2"] = "a map of indices has a LT",
      ["lambda i: C[i]"] = "no variable or function is called 'C'",
    } do
      local ok, diag = pcall(apply, ("B: [T.index_map(%s)]"):format(map))
      assert.is_false(ok)
      assert.is_truthy(tostring(diag):find(message, 1, true), tostring(diag))
    end
  end)
end)
