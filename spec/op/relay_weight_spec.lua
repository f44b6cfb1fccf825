-- Relay's operators on weights in the form of an algorithm: Winograd's, tiles,
-- packed bits. Their convolutions are compared with nn.conv2d of the plain
-- weights.

local pl = require "perilune"
local computes, refuses = require "spec.op.computed" (it)

-- The same numbers in each run.
local state = 17
local function draw(low, high)
  state = state * 1103515245 + 12345 & 0x7fffffff
  if math.type(low) == "integer" then return low + (state >> 8) % (high - low + 1) end
  return low + (high - low) * state / 0x7fffffff
end

local function random_tensor(dtype, low, high, ...)
  local function fill(n, ...)
    if not n then return draw(low, high) end
    local list = {}
    for i = 1, n do list[i] = fill(...) end
    return list
  end
  return pl.tensor(fill(...), dtype)
end

local function evaluate(body, ...)
  local params = {}
  for i, tensor in ipairs { ... } do
    params[i] = ("%%%s: %s"):format(string.char(96 + i), tostring(pl.const(tensor).type))
  end
  return pl.eval(assert(pl.parse(('#[version = "0.0.5"]\ndef @main(%s) { %s }'):format(
    table.concat(params, ", "), body))), ...)
end

local function assert_near(want, got, tolerance)
  assert.same(want.shape, got.shape)
  assert.equal(want.dtype, got.dtype)
  local function compare(a, b)
    if type(a) == "number" then return assert.near(a, b, tolerance) end
    for i = 1, #a do compare(a[i], b[i]) end
  end
  compare(want:to_table(), got:to_table())
end

describe("Winograd's transform", function()
  computes("has the matrices of Cook and Toom",
    "nn.contrib_conv2d_winograd_weight_transform(%a, tile_size=2)",
    { { "float32", { { { { 1, 0, 0 }, { 0, 0, 0 }, { 0, 0, 4 } } } } } },
    { { { { 1 } }, { { 0.5 } }, { { 0.5 } }, { { 0 } } },
      { { { 0.5 } }, { { 1.25 } }, { { 1.25 } }, { { 2 } } },
      { { { 0.5 } }, { { 1.25 } }, { { 1.25 } }, { { 2 } } },
      { { { 0 } }, { { 2 } }, { { 2 } }, { { 4 } } } })

  it("convolves as nn.conv2d does, for all tiles and windows", function()
    for tile = 2, 8 do
      for window = 3, 7 do
        local x = random_tensor("float32", -1., 1., 2, 3, 11, 9)
        local w = random_tensor("float32", -1., 1., 4, 3, window, window)
        local attrs = ("padding=[1, 2, 3, 0], channels=4, kernel_size=[%d, %d]")
          :format(window, window)
        local plain = evaluate(("nn.conv2d(%%a, %%b, %s)"):format(attrs), x, w)
        local fast = evaluate(([[
          %%0 = nn.contrib_conv2d_winograd_weight_transform(%%b, tile_size=%d);
          nn.contrib_conv2d_winograd_without_weight_transform(%%a, %%0, tile_size=%d, %s)]])
          :format(tile, tile, attrs), x, w)
        -- Points further apart cost accuracy.
        assert_near(plain, fast, tile + window < 10 and 1e-3 or tile + window < 13 and 2e-2 or 1)
      end
    end
  end)

  it("of three axes transforms the depth too if that is a window", function()
    local w = random_tensor("float32", -1., 1., 2, 3, 3, 3, 3)
    local out = evaluate("nn.contrib_conv3d_winograd_weight_transform(%a, tile_size=2)", w)
    assert.same({ 4, 4, 4, 2, 3 }, out.shape)
    local g = { { 1, 0, 0 }, { 0.5, -0.5, 0.5 }, { 0.5, 0.5, 0.5 }, { 0, 0, 1 } }
    local values, got = w:to_table(), out:to_table()
    for i = 1, 4 do for j = 1, 4 do for k = 1, 4 do
      local sum = 0
      for z = 1, 3 do for y = 1, 3 do for x = 1, 3 do
        sum = sum + values[2][3][z][y][x] * g[i][z] * g[j][y] * g[k][x]
      end end end
      assert.near(sum, got[i][j][k][2][3], 1e-5)
    end end end
  end)

  it("of three axes keeps another depth", function()
    local w = random_tensor("float32", -1., 1., 2, 1, 2, 3, 3)
    local out = evaluate("nn.contrib_conv3d_winograd_weight_transform(%a, tile_size=2)", w)
    local plane = evaluate([[
      %0 = take(%a, 1, axis=2);
      nn.contrib_conv2d_winograd_weight_transform(%0, tile_size=2)]], w)
    assert.same({ 4, 4, 2, 2, 1 }, out.shape)
    local got = out:to_table()
    for i, row in ipairs(plane:to_table()) do
      for j, channels in ipairs(row) do assert.same(channels, got[i][j][2]) end
    end
  end)

  it("convolves over three axes as nn.conv3d does", function()
    -- Depths of 1, 2 and 9 are not transformed.
    for _, form in ipairs { { 3, 3, 2 }, { 3, 3, 4 }, { 5, 5, 2 }, { 1, 3, 2 }, { 2, 3, 4 },
      { 9, 3, 3 } } do
      local depth, window, tile = table.unpack(form)
      local x = random_tensor("float32", -1., 1., 2, 3, 9, 8, 7)
      local w = random_tensor("float32", -1., 1., 4, 3, depth, window, window)
      local attrs = ("padding=[1, 2, 0, 3, 0, 1], channels=4, kernel_size=[%d, %d, %d]")
        :format(depth, window, window)
      local plain = evaluate(("nn.conv3d(%%a, %%b, %s)"):format(attrs), x, w)
      local fast = evaluate(([[
        %%0 = nn.contrib_conv3d_winograd_weight_transform(%%b, tile_size=%d);
        nn.contrib_conv3d_winograd_without_weight_transform(%%a, %%0, tile_size=%d, %s)]])
        :format(tile, tile, attrs), x, w)
      assert_near(plain, fast, 1e-2)
    end
  end)

  refuses("of three axes has unit strides", [[
    %0 = nn.contrib_conv3d_winograd_weight_transform(%b, tile_size=2);
    nn.contrib_conv3d_winograd_without_weight_transform(%a, %0, tile_size=2, strides=[2, 1, 1],
      channels=1, kernel_size=[1, 3, 3])]],
    { { "float32", { { { { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } } } } } },
      { "float32", { { { { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } } } } } } },
    "strides, dilation or tile_size do not match the operands")

  refuses("has points for tiles of up to 8",
    "nn.contrib_conv2d_winograd_weight_transform(%a, tile_size=9)",
    { { "float32", { { { { 1, 0, 0 }, { 0, 0, 0 }, { 0, 0, 4 } } } } } }, "no matrices")
end)

describe("Weights as tiles", function()
  local w = { { { { 1, 2, 3 }, { 4, 5, 6 } } } }
  computes("are rows of tiles, filled with zeros",
    "nn.contrib_conv2d_gemm_weight_transform(%a, tile_N=2, tile_K=1)", { { "float32", w } },
    { { { { 1, 2 } }, { { 4, 5 } }, { { 0, 0 } }, { { 0, 0 } } },
      { { { 3, 0 } }, { { 6, 0 } }, { { 0, 0 } }, { { 0, 0 } } } })
  computes("of bytes are transposed",
    "nn.contrib_conv2d_gemm_weight_transform(%a, tile_N=3, tile_K=2)", { { "int8", w } },
    { { { { 1, 4 }, { 2, 5 }, { 3, 6 } }, { { 0, 0 }, { 0, 0 }, { 0, 0 } },
      { { 0, 0 }, { 0, 0 }, { 0, 0 } }, { { 0, 0 }, { 0, 0 }, { 0, 0 } } } })

  it("convolve as the plain ones", function()
    for _, dtype in ipairs { "float32", "int8" } do
      local x = random_tensor(dtype, -5, 5, 1, 6, 5, 3)
      local plain = random_tensor(dtype, -5, 5, 3, 2, 3, 5)
      local attrs = [[strides=[2, 1], padding=[1, 0, 1, 1], channels=5, kernel_size=[3, 2],
        data_layout="NHWC", kernel_layout="HWIO"]]
        .. (dtype == "int8" and ', out_dtype="int32"' or "")
      assert_near(evaluate(("nn.conv2d(%%a, %%b, %s)"):format(attrs), x, plain), evaluate(([[
        %%0 = nn.contrib_conv2d_gemm_weight_transform(%%b, tile_N=4, tile_K=2);
        nn.contrib_conv2d_gemm_without_weight_transform(%%a, %%0, %s)]])
        :format(attrs), x, plain), 1e-5)
    end
  end)

  refuses("are enough for the channels",
    [[nn.contrib_conv2d_gemm_without_weight_transform(%a, %b, channels=9, kernel_size=[1, 1],
      data_layout="NHWC", kernel_layout="HWIO")]],
    { { "float32", { { { { 1 } } } } }, { "float32", { { { { 1 } } } } } }, "too few tiles")
end)

describe("Bit-serial products", function()
  -- Of each pair of bits, the sum of their products, shifted.
  local function product(a, w, a_bits, w_bits, unipolar)
    local sum = 0
    for i = 0, a_bits - 1 do
      for k = 0, w_bits - 1 do
        local bit = w >> k & 1
        if unipolar then bit = 2 * bit - 1 end
        sum = sum + ((a >> i & 1) * bit << (i + k))
      end
    end
    return sum
  end

  local function dense(a, w, a_bits, w_bits, unipolar)
    local out = {}
    for i, row in ipairs(a:to_table()) do
      out[i] = {}
      for j, column in ipairs(w:to_table()) do
        local sum = 0
        for k = 1, #row do
          sum = sum + product(row[k], column[k], a_bits, w_bits, unipolar)
        end
        out[i][j] = sum
      end
    end
    return out
  end

  for _, unipolar in ipairs { true, false } do
    it("are sums of shifted bits, of a " .. (unipolar and "unipolar" or "bipolar") .. " weight",
      function()
        local a = random_tensor("int16", 0, 3, 3, 16)
        local w = random_tensor("int16", 0, 7, 4, 16)
        local attrs = ([[units=4, data_bits=2, weight_bits=3, pack_dtype="uint8", out_dtype="int16",
          unipolar=%s]]):format(unipolar and "True" or "False")
        local plain = evaluate(("nn.bitserial_dense(%%a, %%b, %s)"):format(attrs), a, w)
        assert.equal("int16", plain.dtype)
        assert.same(dense(a, w, 2, 3, unipolar), plain:to_table())
        local packed = evaluate(([[
          %%0 = nn.bitpack(%%b, bits=3, pack_axis=1, bit_axis=1, pack_type="uint8");
          nn.bitserial_dense(%%a, %%0, %s)]]):format(attrs), a, w)
        assert.same(plain:to_table(), packed:to_table())
      end)
  end

  it("convolve as integers do", function()
    local x = random_tensor("int16", 0, 3, 1, 8, 5, 4)
    local w = random_tensor("int16", 0, 1, 3, 8, 3, 3)
    local attrs = "strides=[1, 1], padding=[1, 1], kernel_size=[3, 3], channels=3"
    local bits = [[, activation_bits=2, weight_bits=1, pack_dtype="uint8", out_dtype="int16"]]
    local plain = evaluate(("nn.conv2d(%%a, %%b, %s, out_dtype=\"int16\")"):format(attrs), x, w)
    local name = "nn.bitserial_conv2d(%%a, %%b, %s%s, unipolar=%s)"
    assert.same(plain:to_table(), evaluate(name:format(attrs, bits, "False"), x, w):to_table())
    -- A bit counts 2 w - 1.
    local signed = evaluate(([[
      %%0 = subtract(multiply(%%b, 2i16), 1i16); nn.conv2d(%%a, %%0, %s, out_dtype="int16")]])
      :format(attrs), x, w)
    assert.same(signed:to_table(), evaluate(name:format(attrs, bits, "True"), x, w):to_table())
    local packed = evaluate(([[
      %%0 = nn.bitpack(%%b, bits=1, pack_axis=1, bit_axis=4, pack_type="uint8");
      nn.bitserial_conv2d(%%a, %%0, %s%s, unipolar=True)]]):format(attrs, bits), x, w)
    assert.same(signed:to_table(), packed:to_table())
    local last = evaluate(([[
      %%0 = transpose(%%a, axes=[0, 2, 3, 1]); %%1 = transpose(%%b, axes=[2, 3, 1, 0]);
      %%2 = nn.bitserial_conv2d(%%0, %%1, %s%s, data_layout="NHWC", kernel_layout="HWIO");
      transpose(%%2, axes=[0, 3, 1, 2])]]):format(attrs, bits), x, w)
    assert.same(signed:to_table(), last:to_table())
  end)

  refuses("are of integers", "nn.bitserial_dense(%a, %b, units=1)",
    { { "float32", { { 1 } } }, { "float32", { { 1 } } } }, "operands are integers")
end)
