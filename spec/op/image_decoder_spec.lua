-- image_decoder: images written by hand in each format that is simple enough,
-- and what is cut off, too large or of another form.

local pl = require "perilune"

local function decode(bytes, format)
  local values = { bytes:byte(1, -1) }
  local x = pl.tensor(values, "uint8")
  local param = pl.var("x", pl.const(x).type)
  return pl.eval(pl.func({ param }, pl.op.image_decoder(param, { pixel_format = format })), x)
end

local function refuses(message, bytes, format)
  local ok, why = pcall(decode, bytes, format)
  assert.is_false(ok)
  assert.matches(message, tostring(why), 1, true)
end

-- A bitmap of 2 x 2 pixels: red, green above blue, white.
local function bitmap(bits, rows, palette, height)
  palette = palette or ""
  local info = ("<I4i4i4I2I2I4I4i4i4I4I4"):pack(40, 2, height or 2, 1, bits, 0, 0, 0, 0,
    #palette // 4, 0)
  local header = "BM" .. ("<I4I4I4"):pack(54 + #palette + #rows, 0, 54 + #palette)
  return header .. info .. palette .. rows
end

local pixels = { { { 255, 0, 0 }, { 0, 255, 0 } }, { { 0, 0, 255 }, { 255, 255, 255 } } }
local red, green, blue, white = "\0\0\255", "\0\255\0", "\255\0\0", "\255\255\255"
local bmp = bitmap(24, blue .. white .. "\0\0" .. red .. green .. "\0\0")

-- A TIFF of one strip: pixels, three numbers of bits, the directory.
local function tiff(order, width)
  local strip = "\255\0\0\0\255\0\0\0\255\255\255\255"
  local entries = { { 256, 4, 1, width or 2 }, { 257, 4, 1, 2 }, { 258, 3, 3, 20 },
    { 259, 3, 1, 1 }, { 262, 3, 1, 2 }, { 273, 4, 1, 8 }, { 277, 3, 1, 3 }, { 278, 4, 1, 2 },
    { 279, 4, 1, #strip } }
  local parts = { order == "<" and "II*\0" or "MM\0*", (order .. "I4"):pack(28), strip,
    (order .. "I2I2I2I2"):pack(8, 8, 8, 0), (order .. "I2"):pack(#entries) }
  for _, e in ipairs(entries) do
    local short = e[2] == 3 and e[3] == 1
    parts[#parts + 1] = (order .. "I2I2I4"):pack(e[1], e[2], e[3])
      .. (order .. (short and "I2I2" or "I4")):pack(e[4], short and 0 or nil)
  end
  return table.concat(parts) .. "\0\0\0\0"
end

local function crc32(text)
  local crc = 0xffffffff
  for i = 1, #text do
    crc = crc ~ text:byte(i)
    for _ = 1, 8 do crc = crc & 1 == 1 and crc >> 1 ~ 0xedb88320 or crc >> 1 end
  end
  return ~crc & 0xffffffff
end

local function chunk(kind, data)
  return (">s4"):pack(data):sub(1, 4) .. kind .. data .. (">I4"):pack(crc32(kind .. data))
end

local function adler32(text)
  local a, b = 1, 0
  for i = 1, #text do
    a = (a + text:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b << 16 | a
end

-- A PNG of 2 x 2 pixels with alpha, stored without compression.
local function png()
  local rows = "\0\255\0\0\255\0\255\0\10\0\0\0\255\0\255\255\255\0"
  local data = "\x78\1\1" .. ("<I2I2"):pack(#rows, ~#rows & 0xffff) .. rows
    .. (">I4"):pack(adler32(rows))
  return "\x89PNG\r\n\x1a\n" .. chunk("IHDR", (">I4I4I1I1I1I1I1"):pack(2, 2, 8, 6, 0, 0, 0))
    .. chunk("IDAT", data) .. chunk("IEND", "")
end

local function has_libpng()
  local ok, why = pcall(decode, png())
  return ok or not tostring(why):find("cannot be opened", 1, true)
end

describe("image_decoder", function()
  it("reads bitmaps of 24 and 32 bits, from either end", function()
    assert.same(pixels, decode(bmp):to_table())
    local rows = red .. "\0" .. green .. "\0" .. blue .. "\0" .. white .. "\0"
    assert.same(pixels, decode(bitmap(32, rows, nil, -2)):to_table())
  end)

  it("reads bitmaps with a palette", function()
    local palette = red .. "\0" .. green .. "\0" .. blue .. "\0" .. white .. "\0"
    assert.same(pixels, decode(bitmap(8, "\2\3\0\0\0\1\0\0", palette)):to_table())
    refuses("the BMP image is cut off", bitmap(8, "\2\4\0\0\0\1\0\0", palette))
  end)

  it("reads portable maps of colours and of greys, with comments", function()
    assert.same(pixels, decode("P6\n# by hand\n2 2 255\n\255\0\0\0\255\0\0\0\255\255\255\255")
      :to_table())
    assert.same({ { { 0, 0, 0 }, { 255, 255, 255 } } }, decode("P5 2 1 5\n\0\5"):to_table())
    refuses("the PNM image is cut off", "P5 2 1 5\n\0\6")
    refuses("the PNM image is cut off", "P5 2 1 256\n\0\0\0\0")
  end)

  it("gives the channels backwards, or the luma", function()
    local backwards = decode(bmp, "BGR"):to_table()
    assert.same({ { 0, 0, 255 }, { 0, 255, 0 } }, backwards[1])
    assert.same({ { { 76 }, { 150 } }, { { 29 }, { 255 } } }, decode(bmp, "Grayscale"):to_table())
    refuses("pixel_format is not RGB, BGR or Grayscale", bmp, "CMYK")
  end)

  it("reads PNG images through libpng, without alpha", function()
    if not has_libpng() then return pending "libpng16 is not there" end
    assert.same(pixels, decode(png()):to_table())
    refuses("PNG: ", png():sub(1, 60))
    refuses("PNG: ", (png():gsub("IDAT", "XDAT")))
  end)

  it("refuses each beginning of a file", function()
    for _, file in ipairs { bmp, "P6 2 2 255\n\255\0\0\0\255\0\0\0\255\255\255\255", png() } do
      -- The last chunk of a PNG has no pixels.
      for n = 1, #file - 13 do assert.is_false((pcall(decode, file:sub(1, n)))) end
    end
    for _, start in ipairs { "\xff\xd8\xff\xe0\0\x10JFIF", "RIFF\0\0\0\0WEBPVP8 " } do
      assert.is_false((pcall(decode, start)))
    end
  end)

  it("refuses extents that no image has", function()
    refuses("not 1 to 65536 each", bitmap(24, "", nil, 0))
    refuses("an image has 99999999 x 99999999 pixels", "P6 99999999 99999999 255\n\0")
    refuses("the BMP image is cut off", bitmap(24, "\0", nil, 60000))
  end)

  it("reads TIFF in both orders of bytes through libtiff, or says that it is missing", function()
    for _, order in ipairs { "<", ">" } do
      local file = tiff(order)
      local ok, got = pcall(decode, file, "RGB")
      if not ok then
        assert.matches("libtiff cannot be opened", tostring(got), 1, true)
        return
      end
      assert.same(pixels, got:to_table())
      -- Not the last entries of the directory, which have defaults.
      for n = 1, #file - 40 do assert.is_false((pcall(decode, file:sub(1, n)))) end
      refuses("an image has 70000 x 2 pixels", tiff(order, 70000))
    end
    refuses("the TIFF image has no", "II*\0\0\0\0\0")
  end)

  it("refuses what is no JPEG 2000 image", function()
    for _, start in ipairs { "\0\0\0\x0cjP  \r\n\x87\n", "\xffO\xffQ\0\0" } do
      local ok, why = pcall(decode, start)
      assert.is_false(ok)
      why = tostring(why)
      assert.is_true(why:find("libopenjp2 cannot be opened", 1, true) ~= nil
        or why:find("the JPEG 2000 image has no valid header", 1, true) ~= nil, why)
    end
  end)

  it("says which formats it does not read", function()
    refuses("the format of the image is not known", "GIF89a")
    local x = pl.tensor({ 1. }, "float32")
    assert.has_error(function()
      pl.eval(pl.func({}, pl.op.image_decoder(pl.const(x))))
    end)
  end)
end)
