-- Winograd convolutions of blocked tensors by 3 x 3 weights: F(4, 3) or F(2, 3) along each axis, so
-- that 16 results of a channel need 36 products instead of 144, and the like.
--
--     V = B^T d B     of each patch of elements; those of neighbouring tiles overlap
--     M = U V         a matrix product over channels for each of the places of a patch
--     y = A^T M A     a tile of results
--
-- U = G g G^T is made of the weights ahead of time. The matrices are those of Lavin and Gray, Fast
-- Algorithms for Convolutional Neural Networks (2015), for the points 0, 1, -1 and 2, -2. Sums are
-- rounded otherwise than those of the definition: errors are some 1e-5 of the largest result.
--
-- With strides of 2, elements at even places of an axis meet the outer two weights, F(4, 2) or
-- F(2, 2), and those at odd places the middle one: 4 results need 9 products instead of 12.
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
local MOST_TILES = { "32", "16", "8", "64" }

-- Algorithms of one axis: `tile` results of a `patch` of elements; `weights`: rows of G. The last
-- of these serves all places from there on.
local function algorithm(stride, B, A, G)
  return { stride = stride, tile = #A, patch = #B[1], places = #B, weights = #G, B = B, A = A,
    G = G }
end

-- What a short convolution of two weights gives for three with strides of 2.
local function of_stride_two(B, A, G)
  local n, m = #B, #A
  local rows, results, weights = {}, {}, {}
  for place = 1, n + m do
    rows[place] = {}
    for element = 1, 2 * m + 1 do
      local odd = element % 2 == 0
      local own = place <= n and not odd and B[place][(element + 1) // 2]
      local single = place > n and odd and element // 2 == place - n
      rows[place][element] = own or (single and 1 or 0)
    end
  end
  for result = 1, m do
    results[result] = table.move(A[result], 1, n, 1, {})
    for place = 1, m do results[result][n + place] = place == result and 1 or 0 end
  end
  for place = 1, n do weights[place] = { G[place][1], 0, G[place][2] } end
  weights[n + 1] = { 0, 1, 0 }
  return algorithm(2, rows, results, weights)
end

-- By the stride.
local algorithms = {
  { algorithm(1, { { 4, 0, -5, 0, 1, 0 }, { 0, -4, -4, 1, 1, 0 }, { 0, 4, -4, -1, 1, 0 },
      { 0, -2, -1, 2, 1, 0 }, { 0, 2, -1, -2, 1, 0 }, { 0, 4, 0, -5, 0, 1 } },
    { { 1, 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, -2, 0 }, { 0, 1, 1, 4, 4, 0 },
      { 0, 1, -1, 8, -8, 1 } },
    { { 1 / 4, 0, 0 }, { -1 / 6, -1 / 6, -1 / 6 }, { -1 / 6, 1 / 6, -1 / 6 },
      { 1 / 24, 1 / 12, 1 / 6 }, { 1 / 24, -1 / 12, 1 / 6 }, { 0, 0, 1 } }),
    algorithm(1, { { 1, 0, -1, 0 }, { 0, 1, 1, 0 }, { 0, -1, 1, 0 }, { 0, 1, 0, -1 } },
      { { 1, 1, 1, 0 }, { 0, 1, -1, -1 } },
      { { 1, 0, 0 }, { 1 / 2, 1 / 2, 1 / 2 }, { 1 / 2, -1 / 2, 1 / 2 }, { 0, 0, 1 } }) },
  { of_stride_two({ { 2, -1, -2, 1, 0 }, { 0, -2, -1, 1, 0 }, { 0, 2, -3, 1, 0 },
      { 0, -1, 0, 1, 0 }, { 0, 2, -1, -2, 1 } },
    { { 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, 0 }, { 0, 1, 1, 4, 0 }, { 0, 1, -1, 8, 1 } },
    { { 1 / 2, 0 }, { -1 / 2, -1 / 2 }, { -1 / 6, 1 / 6 }, { 1 / 6, 1 / 3 }, { 0, 1 } }),
    of_stride_two({ { 1, -1, 0 }, { 0, 1, 0 }, { 0, 1, -1 } }, { { 1, 1, 0 }, { 0, 1, -1 } },
      { { 1, 0 }, { 1, 1 }, { 0, 1 } }) },
}

-- -------------------------------------------------------------------- weights

-- G (x) G: a row for each pair of rows, a column for each of the 9 weights.
local function kronecker(down, across)
  local rows = {}
  for _, a in ipairs(down.G) do
    for _, b in ipairs(across.G) do
      local row = {}
      for k = 1, 9 do row[k] = a[(k - 1) // 3 + 1] * b[(k - 1) % 3 + 1] end
      rows[#rows + 1] = row
    end
  end
  return ir.Constant(tensor(rows, "float32"))
end

-- U as an expression of the weights (O, I, 3, 3): (places * O / b, I, b).
local function transformed(variant, weight, outputs, inputs, block)
  local flat = ir.Call("reshape", { ir.Call("transpose", { weight }, { axes = { 2, 3, 1, 0 } }) },
    { newshape = { 9, inputs * outputs } })
  local product = ir.Call("reshape", { ir.Call("nn.matmul", { kronecker(variant.down,
    variant.across), flat }) }, { newshape = { variant.weights, inputs, outputs // block, block } })
  return ir.Call("reshape", { ir.Call("transpose", { product }, { axes = { 0, 2, 1, 3 } }) },
    { newshape = { variant.weights * (outputs // block), inputs, block } })
end

-- Clocks for each weight: those of vector products, of which a weight is one lane, and those in
-- which it is read from beyond the cache. Prefetches hide the lesser ones in part. Transforms of a
-- channel take as long as some products of it.
local LANES, BYTES_PER_CLOCK, TRANSFORMS, HIDDEN = 16, 8, 12, 4

local function clocks(products, weights) return products / LANES, 4 * weights / BYTES_PER_CLOCK end

local function cost(products, weights)
  local compute, memory = clocks(products, weights)
  return math.max(compute, memory) + math.min(compute, memory) / HIDDEN
end

local function cost_of_definition(height, width)
  local compute, memory = clocks(9 * height * width, 9)
  return compute + memory
end

local function tiles_of(extent, own) return (extent + own.tile - 1) // own.tile end

-- All pairs of algorithms for rows and columns.
local function pairs_of(geometry)
  local list = {}
  for _, down in ipairs(algorithms[geometry.strides[1]]) do
    for _, across in ipairs(algorithms[geometry.strides[2]]) do
      list[#list + 1] = { down = down, across = across, places = down.places * across.places,
        weights = down.weights * across.weights }
    end
  end
  return list
end

-- The algorithms for rows and columns that compute results of that extent fastest; nil: their
-- definition does. One pixel of a result needs 9 products for each weight, a tile needs one for
-- each place.
local function variant_of(geometry)
  local best, least = nil, cost_of_definition(geometry.height, geometry.width)
  local overhead = 1 + TRANSFORMS * (1 / geometry.inputs + 1 / geometry.outputs)
  for _, variant in ipairs(pairs_of(geometry)) do
    local tiles = tiles_of(geometry.height, variant.down) * tiles_of(geometry.width, variant.across)
    local own = cost(overhead * variant.places * tiles, variant.places)
    if own < least then best, least = variant, own end
  end
  return best
end

-- The strides, if there are algorithms for them, else nil.
local function strides_of(options)
  local strides = options.strides or 1
  if type(strides) ~= "table" then strides = { strides, strides } end
  return algorithms[strides[1]] and algorithms[strides[2]] and strides
end

-- Channels, strides, and the extents of the result.
local function geometry_of(x, kernel, options, before, after)
  local shape, strides = dims.of(x), strides_of(options)
  return { inputs = kernel[2], outputs = kernel[1], strides = strides,
    height = (shape[3] + before[1] + after[1] - 3) // strides[1] + 1,
    width = (shape[4] + before[2] + after[2] - 3) // strides[2] + 1 }
end

local function is_dense(dilation)
  return dilation == nil or dilation == 1
    or type(dilation) == "table" and dilation[1] == 1 and dilation[2] == 1
end

-- The text of a pair of algorithms: their tiles.
local function name_of(variant)
  if not variant then return "off" end
  local down, across = variant.down.tile, variant.across.tile
  return down == across and ("%d"):format(down) or ("%dx%d"):format(down, across)
end

local function by_name(geometry, name)
  for _, variant in ipairs(pairs_of(geometry)) do
    if name_of(variant) == name then return variant end
  end
end

--- How a convolution of a blocked float32 tensor by 3 x 3 weights, of each pixel or of every second
-- one, may be computed: texts of pairs of algorithms and "off", the one that is expected to be the
-- best first. None of other convolutions. before, after: widths of its border.
function winograd.variants(x, kernel, options, before, after)
  local _, block = layout.of(x)
  local shape = dims.of(x)
  local is_sized = type(shape[3]) == "number" and type(shape[4]) == "number"
  if not (block and is_sized and x.dtype == "float32" and kernel[3] == 3 and kernel[4] == 3
    and strides_of(options) and is_dense(options.dilation)
    and layout.block(kernel[1]) == block and kernel[2] >= block) then
    return {}
  end
  local geometry = geometry_of(x, kernel, options, before, after)
  local large = kernel[1] >= 32 and kernel[2] >= 32
  local list = { name_of(large and variant_of(geometry) or nil) }
  for _, variant in ipairs(pairs_of(geometry)) do
    if name_of(variant) ~= list[1] then list[#list + 1] = name_of(variant) end
  end
  if list[1] ~= "off" then list[#list + 1] = "off" end
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

-- store(i, j, of the matrix `down` times load(i, j) times the transposed matrix `across`), for the
-- lanes of a block; `part` holds what is computed in between.
local function transform(down, across, block, part, load, store)
  local width = #across[1]
  local function apply(matrix, extent, name, read, write)
    return loops.over(extent, name, function(at)
      return loops.vectors(block, "v", function(v)
        return with_values(#matrix[1], function(i) return read(at, i, v) end, function(values)
          local list = {}
          for r, row in ipairs(matrix) do
            list[r] = write(at, r - 1, v, combination(row, values))
          end
          return loops.seq(table.unpack(list))
        end)
      end)
    end)
  end
  local function place(i, j, v) return (i * width + j) * block + v end
  return loops.seq(apply(down, width, "j", function(j, i, v) return load(i, j, v) end,
    function(j, i, v, value) return tir.BufferStore(part, value, { place(i, j, v) }) end),
    apply(across, #down, "i", function(i, j, v) return part:load(place(i, j, v)) end, store))
end

-- ------------------------------------------------------------------ statement

-- V[place][channels / b][tile][b] of the tiles of a group of rows.
local function transform_input(plan, x, v, part, image, group)
  local down, across = plan.down, plan.across
  return loops.nest({ plan.inputs, plan.rows, plan.columns }, "c", function(at)
    local channel, row, column = at[1], at[2], at[3]
    local y, at_tile = group * plan.rows + row, row * plan.columns + column
    return transform(down.B, across.B, plan.block, part, function(i, j, lane)
      return tir.BufferLoad(x, { image, channel, y * (down.tile * down.stride) + i,
        column * (across.tile * across.stride) + j, lane })
    end, function(i, j, lane, value)
      local place = (i * across.places + j) * plan.inputs + channel
      return tir.BufferStore(v, value, { (place * plan.tiles + at_tile) * plan.block + lane })
    end)
  end)
end

-- How many places of an axis have the weights of that number: all that are left have the last one.
local function places_of(own, weights)
  local last = own.weights - 1
  if own.places == own.weights then return 1 end
  return tir.max((weights - last + 1) * (own.places - last), 1)
end

-- Prefetches what the tiles of the next channels read of U, while those of these are computed: each
-- step of each of the passes over tiles its share.
local function prefetches(plan, u, row, passes, pass, element)
  local blocks = plan.tile_blocks
  local share, list = (blocks + passes - 1) // passes, {}
  local last = plan.weights * plan.outputs - 1
  for i = 0, share - 1 do
    local own = share * pass + i
    if share * passes > blocks then own = tir.min(own, blocks - 1) end
    local address = tir.address_of(tir.BufferLoad(u, { tir.min(row + blocks + own, last), element,
      0 }))
    list[#list + 1] = tir.Evaluate(tir.prefetch(address, 0, 2, 1))
  end
  return list
end

-- M[place][channels][first] and on: sums of so many tiles and of some blocks of channels, in
-- registers. at: { place =, channels =, row = that of U }; ahead(k): statements for each step.
local function multiply_tile(plan, buffers, at, first, pixels, ahead)
  local block, blocks, sums = plan.block, plan.tile_blocks, buffers.sums
  local function each(body)
    local pixel, own = tir.Var("pixel", "int32"), tir.Var("own", "int32")
    return tir.For(pixel, 0, pixels, "unrolled", tir.For(own, 0, blocks, "unrolled",
      loops.vectors(block, "v", function(lane)
        return body(pixel, own, (pixel * blocks + own) * block + lane, lane)
      end)))
  end
  local begin = each(function(_, _, sum)
    return tir.BufferStore(sums, operand.const(0, "float32"), { sum })
  end)
  local add = loops.nest({ plan.inputs, block }, "k", function(k)
    local list = ahead(k[1] * block + k[2])
    list[#list + 1] = each(function(pixel, own, sum, lane)
      local from = (at.place * plan.inputs + k[1]) * plan.tiles + first + pixel
      local element = buffers.v:load(from * block + k[2])
      local weight = tir.BufferLoad(buffers.u, { at.row + own, k[1] * block + k[2], lane })
      return tir.BufferStore(sums, sums:load(sum) + element * weight, { sum })
    end)
    return loops.seq(table.unpack(list))
  end)
  return loops.seq(begin, add, each(function(pixel, own, sum, lane)
    local to = (at.place * plan.outputs + at.channels + own) * plan.tiles + first + pixel
    return tir.BufferStore(buffers.m, sums:load(sum), { to * block + lane })
  end))
end

-- M[place][channels / b][tile][b]: passes over tiles, the last one of less if they are not divided.
-- All places that have the same weights follow each other.
local function multiply(plan, u, v, m, sums)
  local pixels, blocks = plan.tile_pixels, plan.tile_blocks
  local whole, rest = plan.tiles // pixels, plan.tiles % pixels
  local passes = rest > 0 and whole + 1 or whole
  local buffers = { u = u, v = v, m = m, sums = sums }
  return loops.nest({ plan.down.weights, plan.across.weights, plan.outputs // blocks,
    function(at) return places_of(plan.down, at[1]) end,
    function(at) return places_of(plan.across, at[2]) end }, "m",
    function(at)
      local own = { place = (at[1] + at[4]) * plan.across.places + at[2] + at[5],
        channels = at[3] * blocks }
      own.row = (at[1] * plan.across.weights + at[2]) * plan.outputs + own.channels
      local function ahead_of(pass)
        return function(k) return prefetches(plan, u, own.row, passes, pass, k) end
      end
      local all = loops.over(whole, "pass", function(pass)
        return multiply_tile(plan, buffers, own, pass * pixels, pixels, ahead_of(pass))
      end)
      return rest == 0 and all or loops.seq(all, multiply_tile(plan, buffers, own,
        whole * pixels, rest, ahead_of(whole)))
    end)
end

-- The results of the tiles, but those behind the end of a row or column.
local function transform_output(plan, m, out, part, image, group)
  local down, across = plan.down, plan.across
  local function guarded(extent, own, position, stmt)
    return extent % own.tile == 0 and stmt or tir.IfThenElse(tir.lt(position, extent), stmt)
  end
  return loops.nest({ plan.outputs, plan.rows, plan.columns }, "o", function(at)
    local channel, at_tile = at[1], at[2] * plan.columns + at[3]
    local y, x = (group * plan.rows + at[2]) * down.tile, at[3] * across.tile
    return transform(down.A, across.A, plan.block, part, function(i, j, lane)
      local place = (i * across.places + j) * plan.outputs + channel
      return m:load((place * plan.tiles + at_tile) * plan.block + lane)
    end, function(i, j, lane, value)
      local store = tir.BufferStore(out, value, { image, channel, y + i, x + j, lane })
      return guarded(plan.height, down, y + i, guarded(plan.width, across, x + j, store))
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
      return loops.allocate(plan.part * block, "float32", "part", function(part)
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

-- Tiles of pixels and blocks of the products, as is decided: in place of a tile that leaves a rest
-- all at once, where registers are enough for their sums, so that U is read once from where it is.
local function decide_tile(plan, arg)
  local pixels, blocks = tile.of_pixels(plan.tiles, plan.outputs, plan.block)
  local all = tile.all_of_pixels(plan.tiles, plan.outputs, plan.block)
  for _, one in ipairs(all) do
    local is_all = one[1] == plan.tiles and one[2] == 1
    if plan.tiles % pixels ~= 0 and is_all then pixels, blocks = one[1], 1 end
  end
  plan.tile_pixels, plan.tile_blocks = tile.parse(arg.decide("tile", tile.candidates(pixels, blocks,
    all)))
end

-- The elements behind the end of an axis that its last tile reads.
local function behind(tiles, own, extent, before)
  return math.max(0, (tiles - 1) * own.tile * own.stride + own.patch - extent - before)
end

local function plan_of(data, kernel, arg, options, before, after, name)
  local shape, _, block = dims.of(data), layout.of(data)
  local geometry = geometry_of(data, kernel, options, before, after)
  local plan = by_name(geometry, name)
  plan.batch, plan.block = shape[1], block
  plan.inputs, plan.outputs = shape[2] // block, kernel[1] // block
  plan.height, plan.width = geometry.height, geometry.width
  local down = tiles_of(plan.height, plan.down)
  plan.columns = tiles_of(plan.width, plan.across)
  local most = math.tointeger(arg.decide("tiles", MOST_TILES))
  plan.rows = tile.divisor(down, math.max(1, most // plan.columns))
  plan.groups, plan.tiles = down // plan.rows, plan.rows * plan.columns
  plan.part = plan.down.places * math.max(plan.across.patch, plan.across.places)
  plan.after = { behind(down, plan.down, shape[3], before[1]),
    behind(plan.columns, plan.across, shape[4], before[2]) }
  decide_tile(plan, arg)
  return plan
end

--- The convolution of a blocked tensor by one of winograd.variants, by weights that arg.computed
-- makes ahead of time.
function winograd.conv2d(data, kernel, arg, options, before, after, name)
  local plan = plan_of(data, kernel, arg, options, before, after, name)
  local block = plan.block
  local x = layout.of(pad.pad(data, { 0, 0, before[1], before[2] },
    { 0, 0, plan.after[1], plan.after[2] }, 0, "pad_temp"))
  local u = arg.computed({ plan.weights * plan.outputs, kernel[2], block }, function(weight)
    return transformed(plan, weight, kernel[1], kernel[2], block)
  end)
  return layout.view(te.extern(layout.shape({ plan.batch, kernel[1], plan.height, plan.width },
    block), { x, u }, function(ins, outs)
      return statement(plan, ins[1], ins[2], outs[1])
    end, { name = "T_winograd", dtype = "float32" }))
end

return winograd
