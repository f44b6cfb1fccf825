-- Layouts by their letters, the ways between them (test_tir_data_layout.py), and
-- maps of indices (test_tir_index_map.py).

local pl = require "perilune"
local tir = pl.tir

describe("a layout", function()
  it("tells where its axes stand and what their parts hold (layout)", function()
    local layout = tir.layout "NCHW16c"
    assert.are.equal(16, layout:factor_of "c")
    assert.are.equal(16, layout:factor_of "C")
    assert.is_nil(layout:factor_of "N")
    for i, axis in ipairs { "N", "C", "H", "W", "c" } do
      assert.are.equal(i, layout:index_of(axis))
      assert.are.equal(axis, layout[i])
    end
    assert.is_nil(layout:index_of "O")
    assert.are.same({ "c", 5, 5, "NCHW16c" }, { layout[-1], #layout, layout.ndim, layout.name })
    assert.are.equal(tir.layout "NCHW16c", layout)
    assert.are.equal("float32", layout.dtype)
    assert.are.equal("float16", tir.layout("NCHW", "float16").dtype)
  end)

  it("is refused when its letters make none", function()
    for name, why in pairs {
      NCHWc = "'c' needs a number before it", N16C = "'C' is a whole axis and has no number",
      NCN = "'N' stands in it twice", NH4c = "'c' is a part of 'C', which is not there",
      ["N-C"] = "letters are expected, and numbers before small ones",
      NC0c = "'c' needs a number before it",
    } do
      assert.has_error(function() tir.layout(name) end, ("the layout '%s': %s"):format(name, why))
    end
    assert.has_error(function() tir.layout "" end, "a layout is a word")
  end)
end)

describe("the way between layouts", function()
  it("leads between those of the same axes (bilayout_convertible)", function()
    for _, pair in ipairs { { "NCHW", "ABCD" }, { "__undef__", "NCHW" }, { "NCHW", "__undef__" },
                            { "__undef__", "__undef__" }, { "NCHW", "NCH" } } do
      assert.has_error(function() tir.bijective_layout(pair[1], pair[2]) end,
        ("cannot convert the layout '%s' to '%s'"):format(pair[1], pair[2]))
    end
    assert.are.equal("BijectiveLayout(NCHW, NCHW16c)",
      tostring(tir.bijective_layout("NCHW", "NCHW16c")))
  end)

  it("takes shapes along (bilayout_shape)", function()
    local way = tir.bijective_layout("NCHW", "NCHW16c")
    assert.are.same({ 1, 2, 7, 7, 16 }, way:forward_shape { 1, 32, 7, 7 })
    assert.are.same({ 1, 32, 7, 7 }, way:backward_shape { 1, 2, 7, 7, 16 })
    local n = tir.SizeVar "n"
    assert.are.equal("(n + 16 - 1) // 16", tostring(way:forward_shape { 1, n, 7, 7 }[2]))
    assert.has_error(function() way:forward_shape { 1, 2 } end,
      "a shape of 'NCHW' has 4 numbers, not 2")
  end)

  it("takes indices along (bilayout_index)", function()
    local way = tir.bijective_layout("NCHW", "NCHW16c")
    assert.are.same({ 0, 1, 6, 6, 2 }, way:forward_index { 0, 18, 6, 6 })
    assert.are.same({ 0, 18, 6, 6 }, way:backward_index { 0, 1, 6, 6, 2 })
    local back = tir.bijective_layout("NCHW4c", "NHWC8c")
    assert.are.same({ 0, 5, 6, 2, 3 }, back:forward_index { 0, 4, 5, 6, 3 })
  end)
end)

describe("a map of indices", function()
  local split = tir.IndexMap.from_func(function(i) return i // 4, i % 4 end, 1)

  it("maps indices, constants to constants (index_mapping)", function()
    for i = 0, 15 do assert.are.same({ i // 4, i % 4 }, split:map_indices { i }) end
    local x = tir.Var "x"
    local mapped = split:map_indices { x * 4 }
    assert.are.equal("x * 4 // 4", tostring(mapped[1]))
    assert.has_error(function() split:map_indices { 1, 2 } end,
      "IndexMap: 1 indices expected, got 2")
  end)

  it("maps shapes (shape_mapping)", function()
    assert.are.same({ 4, 4 }, split:map_shape { 16 })
    assert.are.same({ 4, 4 }, split:map_shape { 14 })
    assert.are.same({ 1, 3 }, split:map_shape { 3 })
    local turned = tir.IndexMap.from_func(function(i, j) return j, i end, 2)
    assert.are.same({ 8, 2 }, turned:map_shape { 2, 8 })
    local fused = tir.IndexMap.from_func(function(i, j) return i * 8 + j end, 2)
    assert.are.same({ 32 }, fused:map_shape { 4, 8 })
    local free = tir.Var "free"
    local odd = tir.IndexMap.from_func(function(i) return i + free end, 1)
    assert.has_error(function() odd:map_shape { 4 } end,
      "IndexMap: the range of free is unknown")
    assert.has_error(function() split:map_shape { 0 } end,
      "IndexMap: extents are positive integers")
  end)

  it("is equivalent to another by what it gives", function()
    local i = tir.Var "n"
    assert.is_true(split:is_equivalent_to(tir.IndexMap({ i }, { i // 4, i % 4 })))
    assert.is_false(split:is_equivalent_to(tir.IndexMap({ i }, { i // 4, i % 5 })))
    assert.is_false(split:is_equivalent_to(tir.IndexMap({ i }, { i })))
  end)

  it("is printed as TVM does", function()
    local i = tir.Var "i"
    assert.are.equal("T.index_map(lambda i: (i // 4, i % 4))",
      tostring(tir.IndexMap({ i }, { i // 4, i % 4 })))
    assert.are.equal("T.index_map(lambda i: (i,))", tostring(tir.IndexMap({ i }, { i })))
    assert.has_error(function() tir.IndexMap({ 1 }, { i }) end, "IndexMap: its variables are Vars")
  end)
end)
