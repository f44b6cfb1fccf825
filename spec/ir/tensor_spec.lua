-- Tensors from and to Lua values: pl.tensor.

local pl = require "perilune"

describe("a tensor", function()
  it("takes dims and dtype from a nested table", function()
    local t = pl.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
    assert.equal("int64", t.dtype)
    assert.same({ 2, 3 }, t.shape)
    assert.equal(6, t.size)
    assert.equal(48, t.bytes)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, t:to_table())
    assert.equal("Tensor[(2, 3), int64]", tostring(t))
  end)

  it("is float32 when one of its numbers is a float, bool and string of such values", function()
    assert.equal("float32", pl.tensor({ 1, 2.5 }).dtype)
    assert.equal("bool", pl.tensor({ true, false }).dtype)
    assert.equal("string", pl.tensor({ "a", "" }).dtype)
    assert.same({ "a", "" }, pl.tensor({ "a", "" }):to_table())
  end)

  it("is a scalar when made of one value", function()
    local t = pl.tensor(7, "int32")
    assert.equal(0, t.rank)
    assert.equal(7, t:to_table())
  end)

  it("has empty axes", function()
    assert.same({ 0 }, pl.tensor({}).shape)
    assert.same({ 2, 0 }, pl.tensor({ {}, {} }).shape)
    assert.same({ {}, {} }, pl.tensor({ {}, {} }):to_table())
  end)

  it("reads its elements by index, from 1", function()
    local t = pl.tensor { { 1, 2 }, { 3, 4 } }
    assert.equal(3, t:get(2, 1))
    assert.has_error(function() t:get(3, 1) end)
    assert.has_error(function() t:get(1) end)
  end)

  it("keeps every dtype's extremes", function()
    local extremes = {
      int8 = { -128, 127 }, uint8 = { 0, 255 }, int16 = { -32768, 32767 }, uint16 = { 0, 65535 },
      int32 = { -2147483648, 2147483647 }, uint32 = { 0, 4294967295 },
      int64 = { math.mininteger, math.maxinteger }, uint64 = { 0, -1 },
      int4 = { -8, 7 }, uint4 = { 0, 15 }, int2 = { -2, 1 }, uint2 = { 0, 3 },
      float16 = { -65504.0, 0.5 }, bfloat16 = { -1.5, 2.0 },
      float32 = { 1.5, -math.huge }, float64 = { 0.1, 1e300 },
    }
    for dtype, values in pairs(extremes) do
      assert.same(values, pl.tensor(values, dtype):to_table(), dtype)
    end
  end)

  it("packs four-bit elements, low bits first", function()
    assert.equal("\33\3", pl.tensor({ 1, 2, 3 }, "uint4"):to_bytes())
  end)

  it("refuses what does not fit", function()
    assert.has_error(function() pl.tensor({ 300 }, "uint8") end, "300 is out of range for uint8")
    assert.has_error(function() pl.tensor({ 1.5 }, "int32") end)
    assert.has_error(function() pl.tensor({ 1 }, "bool") end)
    assert.has_error(function() pl.tensor({ 1 }, "float99") end)
    assert.has_error(function() pl.tensor { { 1, 2 }, { 3 } } end)
    assert.has_error(function() pl.tensor { { 1, 2 }, 3 } end)
  end)

  it("refuses a table that contains itself", function()
    local t = {}
    t[1] = t
    assert.has_error(function() pl.tensor(t) end)
  end)

  it("goes to bytes and back", function()
    local t = pl.tensor({ 1, 2, 3, 4 }, "float32")
    local bytes = t:to_bytes()
    assert.equal(string.pack("<ffff", 1, 2, 3, 4), bytes)
    local u = pl.tensor.from_bytes(bytes, { 4 }, "float32")
    assert.is_true(t:equal(u))
    assert.is_false(t == u)
    assert.has_error(function() pl.tensor.from_bytes(bytes, { 5 }, "float32") end)
    assert.has_error(function() pl.tensor.from_bytes(bytes, { -4 }, "float32") end)
  end)

  it("stores one element when all are equal", function()
    local t = pl.tensor.full(1.5, { 2, 2 }, "float32")
    assert.is_true(t:equal(pl.tensor.full(1.5, "float32", { 2, 2 })))
    assert.is_true(pl.tensor.random({ 3 }, "float32")
      :equal(pl.tensor.random("float32", { 3 })))
    assert.is_true(t:equal(pl.tensor(t:to_bytes(), { 2, 2 }, "float32")))
    assert.is_true(t:equal(pl.tensor(t:to_bytes(), "float32", { 2, 2 })))
    assert.is_true(t.splat)
    assert.same({ { 1.5, 1.5 }, { 1.5, 1.5 } }, t:to_table())
    assert.equal(1.5, t:get(2, 2))
    assert.equal(16, #t:to_bytes())
  end)

  it("is of no use once closed", function()
    local t = pl.tensor { 1 }
    t:close()
    t:close()
    assert.has_error(function() return t.dtype end)
    assert.equal("Tensor (closed)", tostring(t))
  end)
end)

describe("an .npy file", function()
  local path = os.tmpname()
  teardown(function() os.remove(path) end)

  it("gives back what was saved", function()
    for _, dtype in ipairs { "float32", "float64", "int8", "int64", "uint16", "bool" } do
      local values = dtype == "bool" and { { true, false } } or { { 1, 2 }, { 3, 4 }, { 5, 6 } }
      local t = pl.tensor(values, dtype)
      assert(t:save_npy(path))
      local u = assert(pl.tensor.load_npy(path))
      assert.equal(dtype, u.dtype)
      assert.is_true(t:equal(u))
    end
  end)

  it("begins its data at a multiple of 64 bytes", function()
    local bytes = assert(pl.tensor({ 1, 2 }):to_npy())
    assert.equal(0, (#bytes - 16) % 64)
    assert.equal("\147NUMPY\1\0", bytes:sub(1, 8))
  end)

  it("may be column-major and big-endian", function()
    local header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n"
    local bytes = "\147NUMPY\1\0" .. string.pack("<s2", header)
      .. string.pack(">i2i2i2i2i2i2", 1, 4, 2, 5, 3, 6)
    local t = assert(pl.tensor.parse_npy(bytes))
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, t:to_table())
  end)

  -- A file of two bytes an element with the header's text as given.
  local function with_header(header, elements, version)
    local size = version == 1 and "<s2" or "<s4"
    return "\147NUMPY" .. string.char(version, 0) .. string.pack(size, header) .. elements
  end

  it("may have any version, order of entries, quotes, and no dims", function()
    for version = 1, 3 do
      local bytes = with_header('{"shape": (2L,), "fortran_order": False, "descr": "<i2"}',
        string.pack("<i2i2", 7, -1), version)
      assert.same({ 7, -1 }, assert(pl.tensor.parse_npy(bytes)):to_table())
    end
    local scalar = with_header("{'descr': '<i2', 'fortran_order': True, 'shape': ()}\n",
      string.pack("<i2", 5), 1)
    assert.equal(5, assert(pl.tensor.parse_npy(scalar)):to_table())
  end)

  it("may have complex numbers of the other byte order, and no elements", function()
    local bytes = with_header("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }",
      string.pack(">ff", 1.5, -2), 1)
    assert.equal(string.pack("<ff", 1.5, -2), assert(pl.tensor.parse_npy(bytes)):to_bytes())
    local none = with_header("{'descr': '>i2', 'fortran_order': True, 'shape': (0, 3), }", "", 1)
    assert.same({ 0, 3 }, assert(pl.tensor.parse_npy(none)).shape)
  end)

  it("with a header that lies gives a diagnostic", function()
    local good = "'descr': '<i2', 'fortran_order': False, 'shape': (1,)"
    local headers = {
      "", "{", "{}", "{" .. good, "{" .. good .. ", 'more': 1}", "{" .. good .. ", " .. good .. "}",
      "{'descr': '<i2', 'fortran_order': False}", "{'descr: '<i2'}",
    }
    for _, shape in ipairs { "(1", "1", "(-1,)", "(,)", "(1 1)", "(99999999999999999999,)",
      "(999999999999999999, 999999999999999999, 999999999999999999)", "(3,)",
      "(" .. ("1, "):rep(100) .. ")", "(4294967296, 4294967296, 4294967296, 4294967296)" } do
      headers[#headers + 1] = "{'descr': '<i2', 'fortran_order': False, 'shape': " .. shape .. "}"
    end
    for _, header in ipairs(headers) do
      local t, diag = pl.tensor.parse_npy(with_header(header, "\1\0", 1), "lie.npy")
      assert.is_nil(t, header)
      assert.equal("format", diag.code)
      assert.matches("^lie.npy: ", diag.message)
    end
    for _, kind in ipairs { "|O", "<U3", "|S2", "<V2", "<f16", "<M8[ns]" } do
      local header = ("{'descr': '%s', 'fortran_order': False, 'shape': (1,)}"):format(kind)
      local t, diag = pl.tensor.parse_npy(with_header(header, "\1\0", 1))
      assert.is_nil(t)
      assert.equal("unsupported", diag.code)
    end
    local _, diag = pl.tensor({ "a" }):to_npy()
    assert.equal("unsupported", diag.code)
  end)

  it("that is broken gives a diagnostic", function()
    local good = pl.tensor({ 1, 2, 3 }):to_npy()
    local bad = { "", "no numpy at all", good:sub(1, 40), good:sub(1, -2), good .. "x" }
    for _, bytes in ipairs(bad) do
      local t, diag = pl.tensor.parse_npy(bytes)
      assert.is_nil(t)
      assert.equal("format", diag.code)
    end
    local t, diag = pl.tensor.load_npy "/nowhere/x.npy"
    assert.is_nil(t)
    assert.equal("io", diag.code)
  end)
end)
