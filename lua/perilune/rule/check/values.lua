--- Tensors as operands of generated programs: ordinary numbers, and such as reveal
-- errors: zeros of both signs, infinities, NaN, subnormals, the limits of a dtype.

local core = require "perilune.core"
core.internal()

local values = {}

-- Bits of: 0, 1, -1, -0, 0.5, 2, -3, the largest, the least, infinities, NaN, the
-- smallest normal and subnormal numbers, the number next to 1.
local corners = {
  float64 = { 0, 0x3FF0000000000000, 0xBFF0000000000000, 0x8000000000000000,
    0x3FE0000000000000, 0x4000000000000000, 0xC008000000000000, 0x7FEFFFFFFFFFFFFF,
    0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
    0x0010000000000000, 1, 0x8000000000000001, 0x3FF0000000000001 },
  float32 = { 0, 0x3F800000, 0xBF800000, 0x80000000, 0x3F000000, 0x40000000, 0xC0400000,
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 1, 0x80000001,
    0x3F800001 },
  float16 = { 0, 0x3C00, 0xBC00, 0x8000, 0x3800, 0x4000, 0xC200, 0x7BFF, 0xFBFF, 0x7C00,
    0xFC00, 0x7E00, 0x0400, 1, 0x8001, 0x3C01 },
  bfloat16 = { 0, 0x3F80, 0xBF80, 0x8000, 0x3F00, 0x4000, 0xC040, 0x7F7F, 0xFF7F, 0x7F80,
    0xFF80, 0x7FC0, 0x0080, 1, 0x8001, 0x3F81 },
}

local sizes = { float64 = 8, float32 = 4, float16 = 2, bfloat16 = 2 }

-- 0, 1, -1, 2, 3, -2, the limits and their neighbours, in two's complement.
for bits = 8, 64, 8 do
  local top = 1 << (bits - 1)
  for _, name in ipairs { "int" .. bits, "uint" .. bits } do
    corners[name] = { 0, 1, -1, 2, 3, -2, top, top - 1, top + 1, 100, -100 }
    sizes[name] = bits // 8
  end
end

local function count_of(shape)
  local count = 1
  for _, dim in ipairs(shape) do count = count * dim end
  return count
end

-- The elements of a list of bit patterns as bytes.
local function corner_bytes(dtype)
  local size, parts = sizes[dtype], {}
  local mask = size == 8 and -1 or (1 << 8 * size) - 1
  for i, bits in ipairs(corners[dtype]) do parts[i] = ("<I" .. size):pack(bits & mask) end
  return parts
end

-- Multiples of 1/8 from -2 to 2: differences of sums and products of them are 0 or not
-- small, so that rounding in float16 is not magnified.
local function grid_bytes(dtype)
  local numbers, parts, size = {}, {}, sizes[dtype]
  for i = -16, 16 do numbers[#numbers + 1] = i / 8 end
  local bytes = core.tensor(numbers, dtype):to_bytes()
  for i = 1, #numbers do parts[i] = bytes:sub((i - 1) * size + 1, i * size) end
  return parts
end

local palettes = { corner = {}, grid = {} } -- kind -> dtype -> elements as bytes

local function palette(kind, dtype, make)
  palettes[kind][dtype] = palettes[kind][dtype] or make(dtype)
  return palettes[kind][dtype]
end

-- A tensor of elements that a multiplicative hash of the seed picks from a list.
local function picked(list, dtype, shape, seed)
  local parts = {}
  for i = 1, count_of(shape) do
    local hash = (seed * 1000003 + i) * 0x9E3779B97F4A7C15
    parts[i] = list[(hash >> 33) % #list + 1]
  end
  return core.tensor_bytes(table.concat(parts), shape, dtype)
end

--- The kinds of numbers, the simplest first. The tame ones are so small that reordering
-- sums and products of a few does not overflow, and of half floats, on a grid.
values.tame = { "grid", "tame", "tame" }
values.all = { "ordinary", "small", "special", "corner", "ordinary" }

local is_half = { float16 = true, bfloat16 = true }
local usual = { tame = "ordinary", grid = "ordinary", corner = "special" }

-- One element shows one number only: more often a corner, unless numbers are tame.
local function kind_of_element(kind, seed)
  local is_any = kind == "ordinary" or kind == "small" or kind == "special"
  return is_any and seed % 2 == 0 and "corner" or kind
end

--- A tensor of numbers of a kind, always the same for a seed.
function values.tensor(dtype, shape, kind, seed)
  if count_of(shape) == 1 then kind = kind_of_element(kind, seed) end
  if kind == "tame" and is_half[dtype] or kind == "grid" and dtype:find "float" then
    return picked(palette("grid", dtype, grid_bytes), dtype, shape, seed)
  end
  if kind == "corner" and corners[dtype] then
    return picked(palette("corner", dtype, corner_bytes), dtype, shape, seed)
  end
  return core.generate_input(dtype, shape, usual[kind] or kind, seed)
end

values.count_of = count_of

--- Differences of rounding that rules of a proof may make, by dtype, relative to the
-- largest magnitude of a result; all other dtypes are compared exactly. Attributes of
-- operators are float32 numbers, whatever the dtype of operands.
values.tolerance = {
  exact = {},
  reassociates = { float64 = 1e-9, float32 = 1e-4, float16 = 2e-2, bfloat16 = 1e-1 },
  approximates = { float64 = 1e-6, float32 = 1e-4, float16 = 2e-2, bfloat16 = 1e-1 },
}

return values
