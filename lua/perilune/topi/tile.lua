-- The tile of a matrix product whose sums stay in registers: rows times columns, chosen by what a
-- step of the sum loads for each product.
--
-- Used by computes, which pack weights in panels of as many columns, and by schedules.

local core = require "perilune.core"
core.internal()

-- Lanes of a vector of 4-byte elements, and how many vectors there are: those of AVX-512;
-- tile.with_vectors sets others.
local lanes, registers = 16, core.c_vector_registers(64)
-- Channels of a block of a convolution, as a rule, and what columns of a panel are multiples of.
local BLOCK = 16
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

-- What is left of a score where the vectors of columns are read from memory for each row, because
-- the sums leave no registers for them.
local UNKEPT = 0.85

-- Products for each load of a step, less for lanes that are empty and sums too few to overlap. A
-- vector of columns is loaded from further away than an element of a row: it counts three times.
-- One register is the element's.
local function score(rows, vectors, filled)
  local sums = rows * vectors
  if sums + 2 > registers then return -1 end
  local is_kept = rows == 1 or sums + vectors + 1 <= registers
  return sums / (rows + 3 * vectors) * filled * math.min(1, sums / 8) * (is_kept and 1 or UNKEPT)
end

--- Calls f with the vectors of a processor, of 16, 32 or 64 bytes.
function tile.with_vectors(bytes, f, ...)
  local outer_lanes, outer_registers = lanes, registers
  lanes, registers = bytes // 4, core.c_vector_registers(bytes)
  local results = table.pack(pcall(f, ...))
  lanes, registers = outer_lanes, outer_registers
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The share of the lanes of its vectors that a row of columns fills.
local function fill_of(columns)
  local vectors = (columns + lanes - 1) // lanes
  return vectors, columns / (vectors * lanes)
end

--- Whether sums of the dtype are vectors. Those of halves are computed one by one, and rounded.
function tile.is_vector(dtype) return dtype ~= "float16" and dtype ~= "bfloat16" end

-- Tiles { first, second, score } with the best score first; of equal ones that which was found
-- first.
local function sorted(list)
  for i, one in ipairs(list) do one.index = i end
  table.sort(list, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    return a.index < b.index
  end)
end

-- So many tiles are worth a try, and those whose score is a share of the best one's.
local MOST_CANDIDATES, LEAST_SCORE = 6, 0.45

--- Texts of tiles that may be tried for what has the tile `first` x `second`, which comes first.
function tile.candidates(first, second, list)
  local out = { ("%dx%d"):format(first, second) }
  sorted(list)
  for _, one in ipairs(list) do
    local text = ("%dx%d"):format(one[1], one[2])
    local is_good = #out < MOST_CANDIDATES and one.score >= LEAST_SCORE * list[1].score
    if is_good and text ~= out[1] then out[#out + 1] = text end
  end
  return out
end

--- The two numbers of the text of a tile.
function tile.parse(text)
  local first, second = text:match "^(%d+)x(%d+)$"
  return math.tointeger(first), math.tointeger(second)
end

-- Calls visit(rows, columns, score) for tiles of divisors of both extents.
local function each_tile(rows, columns, visit)
  local most = rows == 1 and MOST_COLUMNS_OF_ROW or MOST_COLUMNS
  for c = 1, math.min(columns, most) do
    if columns % c == 0 then
      local vectors, filled = fill_of(c)
      for r = 1, math.min(rows, MOST_ROWS) do
        local now = rows % r == 0 and score(r, vectors, filled) or -1
        if now > 0 then visit(r, c, now) end
      end
    end
  end
end

--- All tiles of divisors of both extents, where these are known, with scores.
function tile.all(rows, columns)
  local list = {}
  if type(rows) ~= "number" then rows = OPEN_ROWS end
  if type(columns) ~= "number" then return list end
  each_tile(rows, columns, function(r, c, now) list[#list + 1] = { r, c, score = now } end)
  return list
end

--- Divisors of both extents, where these are known: rows, columns. `scalar`: sums are no vectors.
function tile.of(rows, columns, scalar)
  local best, best_rows, best_columns = -1, 1, 1
  if scalar then return tile.divisor(rows, 2), tile.divisor(columns, 8) end
  if type(rows) ~= "number" then rows = OPEN_ROWS end
  if type(columns) ~= "number" then return tile.divisor(rows, 4), OPEN_COLUMNS end
  each_tile(rows, columns, function(r, c, now)
    if now > best then best, best_rows, best_columns = now, r, c end
  end)
  return best_rows, best_columns
end

-- Columns of panels that fill vectors, for a product of one row: the widest of those that leave the
-- fewest columns empty.
local function panel_of_row(columns)
  local best, least = 32, math.huge
  for own = MOST_COLUMNS_OF_ROW, 32, -BLOCK do
    local filled = (columns + own - 1) // own * own
    if filled < least then best, least = own, filled end
  end
  return best
end

--- The columns of a panel of weights: those of a tile, or as many as fill vectors where the extent
-- has no such divisor, so that the last panel is filled up.
function tile.panel(rows, columns, scalar)
  local _, own = tile.of(rows, columns, scalar)
  local _, filled = fill_of(own)
  local fills = filled > 2 / 3 and own % 4 == 0
  if scalar or fills or columns < 32 then return own end
  return rows == 1 and panel_of_row(columns) or 32
end

--- Texts of numbers of columns of a panel that may be tried in place of `own`, which comes first.
function tile.panels(own, columns)
  local list = { ("%d"):format(own) }
  for most = BLOCK, MOST_COLUMNS_OF_ROW, BLOCK do
    local filled = (columns + most - 1) // most * most
    if most ~= own and most <= filled and filled <= columns * 9 // 8 then
      list[#list + 1] = ("%d"):format(most)
    end
  end
  return list
end

-- The share of the most products in a cycle that a tile of pixels reaches whose operands are in the
-- nearest cache: a sum is added to again after four cycles of two products, and what is loaded for
-- each product, of a vector or an element, binds where registers do not keep the weights. Further
-- away, weights count more than elements. Measured: 4 to 6 pixels of 2 vectors, or 3 of 4, reach
-- 0.95 with 16 registers; 7 of 2, which leave one register for weights, 0.8; 3 of 2 0.72.
local LATENCY, LOADED, FAR = 8, 0.85, 0.1

local function rate(pixels, vectors)
  local sums = pixels * vectors
  if sums + 2 > registers then return nil end
  local kept = math.min(vectors, registers - sums - 1)
  local loads = pixels + kept + (vectors - kept) * pixels
  return math.min(1, sums / LATENCY, LOADED * sums / loads)
    * sums / (sums + FAR * (loads + 2 * vectors))
end

-- A rest is code of its own: it has to gain that much.
local REST = 0.99

-- The rate of a row of pixels in tiles of that many, the last of which is less where they do not
-- divide it.
local function rate_of_row(pixels, own, vectors)
  local whole, rest = rate(own, vectors), pixels % own
  if not whole or rest == 0 then return whole end
  return REST * pixels / ((pixels - rest) / whole + rest / rate(rest, vectors))
end

--- All tiles of a convolution, with scores: blocks are divided, pixels may leave a rest. block: the
-- channels of one.
function tile.all_of_pixels(pixels, blocks, block)
  local list, vectors = {}, fill_of(block)
  if type(pixels) ~= "number" then pixels = 1 end
  for b = 1, math.min(blocks, MOST_BLOCKS) do
    for p = 1, math.min(pixels, MOST_PIXELS) do
      local now = blocks % b == 0 and rate_of_row(pixels, p, b * vectors)
      if now then list[#list + 1] = { p, b, score = now } end
    end
  end
  return list
end

-- Sums of fewer terms are short.
local SHORT = 32

--- The tile of a convolution: how many neighbouring pixels, and how many blocks of channels, which
-- divide theirs, and its score. depth: the terms of a sum, where that is known. What surrounds
-- short sums has registers too: gcc spills a sum of 12 otherwise, which takes half as long again.
function tile.of_pixels(pixels, blocks, block, depth)
  local best, best_pixels, best_blocks = -1, 1, 1
  local most = depth and depth < SHORT and registers // 2 or registers
  if type(pixels) ~= "number" then return 1, tile.divisor(blocks, MOST_BLOCKS) end
  for _, one in ipairs(tile.all_of_pixels(pixels, blocks, block)) do
    local sums = one[1] * one[2] * fill_of(block)
    if one.score > best and sums <= most then
      best, best_pixels, best_blocks = one.score, one[1], one[2]
    end
  end
  return best_pixels, best_blocks, best
end

local MOST_OF_WINDOW = 14

--- The pixels of a tile of sums or other reductions of windows by channel: half of the registers
-- are theirs, and the others for what is loaded, which no two of them share.
function tile.of_window(pixels)
  return tile.divisor(pixels, math.min(MOST_OF_WINDOW, registers // 2 // (BLOCK // lanes)))
end

return tile
