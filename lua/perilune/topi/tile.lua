-- The tile of a matrix product whose sums stay in registers: rows times columns, chosen by what a
-- step of the sum loads for each product. Vectors are those of 16 lanes, of which there are 32; on
-- machines with shorter ones a compiler spills some.
--
-- Used by computes, which pack weights in panels of as many columns, and by schedules.

require "perilune.core".internal()

local LANES, REGISTERS = 16, 32
-- Of extents that are not known. The rest behind whole tiles is written element by element: tiles
-- of an unknown number of columns are small.
local OPEN_ROWS, OPEN_COLUMNS = 48, 16
local MOST_ROWS, MOST_COLUMNS, MOST_COLUMNS_OF_ROW = 16, 64, 128

local tile = {}

--- The largest divisor of an extent up to `most`; 1 when the extent is not known.
function tile.divisor(extent, most)
  if type(extent) ~= "number" or extent < 1 then return 1 end
  for factor = math.min(extent, most), 2, -1 do
    if extent % factor == 0 then return factor end
  end
  return 1
end

local MOST_PIXELS, MOST_BLOCKS = 28, 4

-- Products for each load of a step, less for lanes that are empty and sums too few to overlap. A
-- vector of columns is loaded from further away than an element of a row: it counts three times.
local function score(rows, vectors, filled)
  if (rows + 1) * vectors + 1 > REGISTERS then return -1 end
  return rows * vectors / (rows + 3 * vectors) * filled * math.min(1, rows * vectors / 8)
end

-- The share of the lanes of its vectors that a row of columns fills.
local function fill_of(columns)
  local vectors = (columns + LANES - 1) // LANES
  return vectors, columns / (vectors * LANES)
end

--- Whether sums of the dtype are vectors. Those of halves are computed one by one, and rounded.
function tile.is_vector(dtype) return dtype ~= "float16" and dtype ~= "bfloat16" end

--- Divisors of both extents, where these are known: rows, columns. `scalar`: sums are no vectors.
function tile.of(rows, columns, scalar)
  local best, best_rows, best_columns = -1, 1, 1
  if scalar then return tile.divisor(rows, 2), tile.divisor(columns, 8) end
  if type(rows) ~= "number" then rows = OPEN_ROWS end
  if type(columns) ~= "number" then return tile.divisor(rows, 4), OPEN_COLUMNS end
  local most = rows == 1 and MOST_COLUMNS_OF_ROW or MOST_COLUMNS
  for c = 1, math.min(columns, most) do
    if columns % c == 0 then
      local vectors, filled = fill_of(c)
      for r = 1, math.min(rows, MOST_ROWS) do
        local now = rows % r == 0 and score(r, vectors, filled) or -1
        if now > best then best, best_rows, best_columns = now, r, c end
      end
    end
  end
  return best_rows, best_columns
end

--- The columns of a panel of weights: those of a tile, or 32 where the extent has no divisor that
-- fills vectors, so that the last panel is filled up.
function tile.panel(rows, columns, scalar)
  local _, own = tile.of(rows, columns, scalar)
  local _, filled = fill_of(own)
  local fills = filled > 2 / 3 and own % 4 == 0
  return (scalar or fills or columns < 32) and own or 32
end

--- The tile of a convolution: how many neighbouring pixels, and how many blocks of channels, each
-- of one vector. Both divide their extents.
function tile.of_pixels(pixels, blocks)
  local best, best_pixels, best_blocks = -1, 1, 1
  if type(pixels) ~= "number" then return 1, tile.divisor(blocks, MOST_BLOCKS) end
  for b = 1, math.min(blocks, MOST_BLOCKS) do
    for p = 1, math.min(pixels, MOST_PIXELS) do
      local divides = pixels % p == 0 and blocks % b == 0
      local now = divides and score(p, b, 1) or -1
      if now > best then best, best_pixels, best_blocks = now, p, b end
    end
  end
  return best_pixels, best_blocks
end

return tile
