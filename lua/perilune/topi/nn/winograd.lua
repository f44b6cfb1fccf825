-- The Winograd convolutions F(4x4, 3x3) and F(2x2, 3x3) of blocked tensors: 16 results of a channel
-- from 36 products instead of 144, or 4 from 16 instead of 36.
--
--     V = B^T d B     of each patch of 6 x 6 (4 x 4) elements, which overlap by 2
--     M = U V         a matrix product over channels for each of the 36 (16) places
--     y = A^T M A     a tile of 4 x 4 (2 x 2) results
--
-- U = G g G^T is made of the weights ahead of time. The matrices are those of Lavin and Gray, Fast
-- Algorithms for Convolutional Neural Networks (2015), for the points 0, 1, -1 and 2, -2. Sums are
-- rounded otherwise than those of the definition: errors are some 1e-5 of the largest result.
--
-- The convolution is one statement. Some rows of tiles at a time are transformed, multiplied and
-- transformed back, so that V and M stay in the cache while U is read once.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local ir = require "perilune.ir"
local layout = require "perilune.topi.layout"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local te = require "perilune.te"
local tensor = require "perilune.ir.tensor"
local tile = require "perilune.topi.tile"
local tir = require "perilune.tir"

local winograd = {}

-- Tiles that are transformed together at the most, if nothing else is decided.
local MOST_TILES = { "16", "8", "32" }

local variants = {
  { tile = 4, patch = 6,
    B = { { 4, 0, -5, 0, 1, 0 }, { 0, -4, -4, 1, 1, 0 }, { 0, 4, -4, -1, 1, 0 },
      { 0, -2, -1, 2, 1, 0 }, { 0, 2, -1, -2, 1, 0 }, { 0, 4, 0, -5, 0, 1 } },
    A = { { 1, 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, -2, 0 }, { 0, 1, 1, 4, 4, 0 },
      { 0, 1, -1, 8, -8, 1 } },
    G = { { 1 / 4, 0, 0 }, { -1 / 6, -1 / 6, -1 / 6 }, { -1 / 6, 1 / 6, -1 / 6 },
      { 1 / 24, 1 / 12, 1 / 6 }, { 1 / 24, -1 / 12, 1 / 6 }, { 0, 0, 1 } } },
  { tile = 2, patch = 4,
    B = { { 1, 0, -1, 0 }, { 0, 1, 1, 0 }, { 0, -1, 1, 0 }, { 0, 1, 0, -1 } },
    A = { { 1, 1, 1, 0 }, { 0, 1, -1, -1 } },
    G = { { 1, 0, 0 }, { 1 / 2, 1 / 2, 1 / 2 }, { 1 / 2, -1 / 2, 1 / 2 }, { 0, 0, 1 } } },
}

-- -------------------------------------------------------------------- weights

-- G (x) G: a row for each place, a column for each of the 9 weights.
local function kronecker(matrix)
  local rows = {}
  for _, a in ipairs(matrix) do
    for _, b in ipairs(matrix) do
      local row = {}
      for k = 1, 9 do row[k] = a[(k - 1) // 3 + 1] * b[(k - 1) % 3 + 1] end
      rows[#rows + 1] = row
    end
  end
  return ir.Constant(tensor(rows, "float32"))
end

-- U as an expression of the weights (O, I, 3, 3): (places, O / b, I, b).
local function transformed(variant, weight, outputs, inputs, block)
  local flat = ir.Call("reshape", { ir.Call("transpose", { weight }, { axes = { 2, 3, 1, 0 } }) },
    { newshape = { 9, inputs * outputs } })
  local product = ir.Call("reshape", { ir.Call("nn.matmul", { kronecker(variant.G), flat }) },
    { newshape = { variant.patch * variant.patch, inputs, outputs // block, block } })
  return ir.Call("transpose", { product }, { axes = { 0, 2, 1, 3 } })
end

-- Cycles for each weight: those of vector products, of which a weight is one lane, and those that
-- read it from beyond the cache.
local LANES, BYTES_PER_CLOCK, TRANSFORMS = 16, 10, 1.2

local function cost(products, weights) return products / LANES + 4 * weights / BYTES_PER_CLOCK end

local function tiles_of(extent, variant) return (extent + variant.tile - 1) // variant.tile end

-- The variant that computes results of that extent fastest; nil: their definition does. One pixel
-- of a result needs 9 products for each weight, a tile needs one for each place.
local function variant_of(height, width)
  local best, least = nil, cost(9 * height * width, 9)
  for _, variant in ipairs(variants) do
    local places = variant.patch * variant.patch
    local tiles = tiles_of(height, variant) * tiles_of(width, variant)
    local own = cost(TRANSFORMS * places * tiles, places)
    if own < least then best, least = variant, own end
  end
  return best
end

local function extents_of(x, before, after)
  local shape = dims.of(x)
  return shape[3] + before[1] + after[1] - 2, shape[4] + before[2] + after[2] - 2
end

-- The text of a variant.
local function name_of(variant) return variant and ("%d"):format(variant.tile) or "off" end

local function by_name(name)
  for _, variant in ipairs(variants) do
    if name_of(variant) == name then return variant end
  end
end

--- How a convolution of a blocked float32 tensor by 3 x 3 weights, each pixel, may be computed:
-- texts of variants and "off", the one that is expected to be the best first. None of other
-- convolutions. before, after: widths of its border.
function winograd.variants(x, kernel, options, before, after)
  local _, block = layout.of(x)
  local function is_one(value)
    return value == nil or value == 1 or type(value) == "table" and value[1] == 1 and value[2] == 1
  end
  if not (block and x.dtype == "float32" and kernel[3] == 3 and kernel[4] == 3
    and is_one(options.strides) and is_one(options.dilation)
    and layout.block(kernel[1]) == block and kernel[2] >= block) then
    return {}
  end
  local large = kernel[1] >= 32 and kernel[2] >= 32
  local list = { name_of(large and variant_of(extents_of(x, before, after)) or nil) }
  for _, name in ipairs { "4", "2", "off" } do
    if name ~= list[1] then list[#list + 1] = name end
  end
  return list
end

-- ----------------------------------------------------------------- transforms

-- The sum of the values times the coefficients of a row.
local function combination(row, values)
  local sum
  for i, coefficient in ipairs(row) do
    local size = math.abs(coefficient)
    local term = size == 1 and values[i] or size > 0 and values[i] * operand.const(size, "float32")
    if term and not sum then
      sum = coefficient > 0 and term or operand.const(0, "float32") - term
    elseif term then
      sum = coefficient > 0 and sum + term or sum - term
    end
  end
  return sum
end

-- Statements of n variables that have the values of load(0), load(1) ...
local function with_values(n, load, body)
  local vars = {}
  for i = 1, n do vars[i] = tir.Var("d" .. i, "float32") end
  local stmt = body(vars)
  for i = n, 1, -1 do stmt = tir.LetStmt(vars[i], load(i - 1), stmt) end
  return stmt
end

-- store(i, j, of the matrix times load(i, j) times the transposed matrix), for the lanes of a
-- block; `part` holds what is computed in between.
local function transform(matrix, block, part, load, store)
  local patch = #matrix[1]
  local function apply(extent, name, read, write)
    return loops.over(extent, name, function(at)
      return loops.vectors(block, "v", function(v)
        return with_values(patch, function(i) return read(at, i, v) end, function(values)
          local list = {}
          for r, row in ipairs(matrix) do
            list[r] = write(at, r - 1, v, combination(row, values))
          end
          return loops.seq(table.unpack(list))
        end)
      end)
    end)
  end
  local function place(i, j, v) return (i * patch + j) * block + v end
  local down = apply(patch, "j", function(j, i, v) return load(i, j, v) end,
    function(j, i, v, value) return tir.BufferStore(part, value, { place(i, j, v) }) end)
  local across = apply(#matrix, "i", function(i, j, v) return part:load(place(i, j, v)) end, store)
  return loops.seq(down, across)
end

-- ------------------------------------------------------------------ statement

-- V[place][channels / b][tile][b] of the tiles of a group of rows.
local function transform_input(plan, x, v, part, image, group)
  return loops.nest({ plan.inputs, plan.rows, plan.across }, "c", function(at)
    local channel, row, column = at[1], at[2], at[3]
    local y, at_tile = (group * plan.rows + row) * plan.tile, row * plan.across + column
    return transform(plan.B, plan.block, part, function(i, j, lane)
      return tir.BufferLoad(x, { image, channel, y + i, column * plan.tile + j, lane })
    end, function(i, j, lane, value)
      local place = (i * plan.patch + j) * plan.inputs + channel
      return tir.BufferStore(v, value, { (place * plan.tiles + at_tile) * plan.block + lane })
    end)
  end)
end

-- M[place][channels / b][tile][b]: sums of some tiles and blocks of channels in registers.
local function multiply(plan, u, v, m, sums)
  local block, pixels, blocks = plan.block, plan.tile_pixels, plan.tile_blocks
  local function each(kind, body)
    local pixel, own = tir.Var("pixel", "int32"), tir.Var("own", "int32")
    return tir.For(pixel, 0, pixels, kind, tir.For(own, 0, blocks, kind,
      loops.vectors(block, "v", function(lane)
        return body(pixel, own, (pixel * blocks + own) * block + lane, lane)
      end)))
  end
  return loops.nest({ plan.places, plan.outputs // blocks, plan.tiles // pixels }, "m",
    function(at)
      local place, channels, first = at[1], at[2] * blocks, at[3] * pixels
      local begin = each("unrolled", function(_, _, sum)
        return tir.BufferStore(sums, operand.const(0, "float32"), { sum })
      end)
      local add = loops.nest({ plan.inputs, block }, "k", function(k)
        return each("unrolled", function(pixel, own, sum, lane)
          local element = v:load(((place * plan.inputs + k[1]) * plan.tiles + first + pixel) * block
            + k[2])
          local weight = tir.BufferLoad(u, { place, channels + own, k[1] * block + k[2], lane })
          return tir.BufferStore(sums, sums:load(sum) + element * weight, { sum })
        end)
      end)
      return loops.seq(begin, add, each("unrolled", function(pixel, own, sum, lane)
        local to = (place * plan.outputs + channels + own) * plan.tiles + first + pixel
        return tir.BufferStore(m, sums:load(sum), { to * block + lane })
      end))
    end)
end

-- The results of the tiles, but those behind the end of a row or column.
local function transform_output(plan, m, out, part, image, group)
  local function guarded(extent, position, stmt)
    return extent % plan.tile == 0 and stmt or tir.IfThenElse(tir.lt(position, extent), stmt)
  end
  return loops.nest({ plan.outputs, plan.rows, plan.across }, "o", function(at)
    local channel, at_tile = at[1], at[2] * plan.across + at[3]
    local y, x = (group * plan.rows + at[2]) * plan.tile, at[3] * plan.tile
    return transform(plan.A, plan.block, part, function(i, j, lane)
      local place = (i * plan.patch + j) * plan.outputs + channel
      return m:load((place * plan.tiles + at_tile) * plan.block + lane)
    end, function(i, j, lane, value)
      local store = tir.BufferStore(out, value, { image, channel, y + i, x + j, lane })
      return guarded(plan.height, y + i, guarded(plan.width, x + j, store))
    end)
  end)
end

local function statement(plan, x, u, out)
  local block = plan.block
  local tiles = plan.places * plan.tiles * block
  local job = tir.Var("job", "int32")
  local image, group = tir.floordiv(job, plan.groups), tir.floormod(job, plan.groups)
  local sums = plan.tile_pixels * plan.tile_blocks * block
  local body = loops.allocate(tiles * plan.inputs, "float32", "V", function(v)
    return loops.allocate(tiles * plan.outputs, "float32", "M", function(m)
      return loops.allocate(plan.places * block, "float32", "part", function(part)
        return loops.allocate(sums, "float32", "sums", function(tile_sums)
          return loops.seq(transform_input(plan, x, v, part, image, group),
            multiply(plan, u, v, m, tile_sums),
            transform_output(plan, m, out, part, image, group))
        end)
      end)
    end)
  end)
  return tir.For(job, 0, plan.batch * plan.groups, "parallel", body)
end

-- Tiles of pixels and blocks of the products, as is decided.
local function decide_tile(plan, arg)
  local pixels, blocks = tile.of_pixels(plan.tiles, plan.outputs)
  plan.tile_pixels, plan.tile_blocks = tile.parse(arg.decide("tile", tile.candidates(pixels, blocks,
    tile.all_of_pixels(plan.tiles, plan.outputs))))
end

--- The convolution of a blocked tensor by one of winograd.variants, by weights that arg.computed
-- makes ahead of time.
function winograd.conv2d(data, kernel, arg, before, after, name)
  local shape = dims.of(data)
  local _, block = layout.of(data)
  local height, width = extents_of(data, before, after)
  local variant = by_name(name)
  local size, places = variant.tile, variant.patch * variant.patch
  local plan = { A = variant.A, B = variant.B, tile = size, patch = variant.patch,
    places = places, block = block, batch = shape[1], inputs = shape[2] // block,
    outputs = kernel[1] // block, height = height, width = width,
    across = tiles_of(width, variant) }
  local down = tiles_of(height, variant)
  local most = math.tointeger(arg.decide("tiles", MOST_TILES))
  plan.rows = tile.divisor(down, math.max(1, most // plan.across))
  plan.groups, plan.tiles = down // plan.rows, plan.rows * plan.across
  decide_tile(plan, arg)
  local x = layout.of(pad.pad(data, { 0, 0, before[1], before[2] }, { 0, 0,
    down * size + 2 - shape[3] - before[1], plan.across * size + 2 - shape[4] - before[2] }, 0,
    "pad_temp"))
  local u = arg.computed({ places, plan.outputs, shape[2], block }, function(weight)
    return transformed(variant, weight, kernel[1], kernel[2], block)
  end)
  return layout.view(te.extern(layout.shape({ plan.batch, kernel[1], plan.height, plan.width },
    block), { x, u }, function(ins, outs)
      return statement(plan, ins[1], ins[2], outs[1])
    end, { name = "T_winograd", dtype = "float32" }))
end

return winograd
