--- Schedules of the loop level whose decisions a search makes.
--
-- A reduction over spatial axes (products of matrices, convolutions) is tiled on several levels:
-- loops over tiles, over rows of a tile, over steps of the reduction, and a register tile whose
-- innermost axis is a vector and whose other loops are unrolled. The register tile is a buffer of
-- its own (cache_write), which is written back behind the reduction; its accumulators are as many
-- as registers hold. The operand that all rows of tiles read may be packed: a panel of it is
-- copied for each column of tiles. The last axis of other blocks is one of vectors.

local argument = require "perilune.argument"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local walk = require "perilune.tir.walk"
core.internal()

local rules = {}

local REDUCE = 2
-- Lanes of a vector, and the most rows and vectors of a register tile.
local LANES = { 32, 16, 8, 4 }
local MOST_ROWS, MOST_VECTORS = 16, 4
-- A register tile of fewer accumulators waits for the multiply-adds before (two a cycle that take
-- four cycles).
local LEAST_ACCUMULATORS = 8
-- The weight of a register tile is its multiply-adds a load to this power.
local PREFERENCE = 4
-- The most steps of a loop around the register tile.
local MOST_MIDDLE = 64

local function extent_of(sch, loop)
  local extent = sch:get(loop).extent
  return extent.kind == "IntImm" and extent.value or nil
end

-- One of the candidates, with chances in proportion to weight(candidate); nil when there is none.
local function sample_one(sch, list, weight)
  local probs, sum = {}, 0
  for i, candidate in ipairs(list) do
    probs[i] = weight(candidate)
    sum = sum + probs[i]
  end
  for i = 1, #list do probs[i] = probs[i] / sum end
  return #list > 0 and sch:sample_categorical(list, probs) or nil
end

-- How much a vector of so many lanes is preferred: one that is a register to one that is several,
-- and that to a part of one.
local function weight_of_lanes(lanes)
  local native = core.c_native_vector_bytes() // 4
  if lanes == native then return 1 end
  return lanes > native and 0.1 or 0.1 * lanes / native
end

-- One of the lanes that divide an extent; nil when none does.
local function sample_lanes(sch, extent)
  local list = {}
  for _, lanes in ipairs(LANES) do
    if extent and extent % lanes == 0 then list[#list + 1] = lanes end
  end
  return sample_one(sch, list, weight_of_lanes)
end

-- Splits a loop into as many loops as the tile has factors.
local function tile(sch, loop, n, most)
  local factors = sch:sample_perfect_tile(loop, n, most)
  factors.n = n
  return sch:split(loop, factors)
end

local function append(list, more)
  for _, item in ipairs(more) do list[#list + 1] = item end
  return list
end

-- Numbers up to `most` that divide an extent and for which fits() holds.
local function divisors(extent, most, fits)
  local list = {}
  for n = 1, math.min(most, extent or 0) do
    if extent % n == 0 and fits(n) then list[#list + 1] = n end
  end
  return list
end

-- The registers of a vector of so many lanes of four bytes, and how many there are.
local function registers(lanes)
  local bytes = core.c_native_vector_bytes()
  return math.max(1, lanes * 4 // bytes), core.c_vector_registers(bytes)
end

-- How much a register tile is preferred: by its multiply-adds for each load, and by how much of the
-- latency of these its accumulators hide. A vector of columns is loaded from further away than an
-- element of a row: it counts three times.
local function weight_of_tile(rows, columns)
  local accumulators = rows * columns
  local busy = math.min(1, accumulators / LEAST_ACCUMULATORS)
  return (busy * accumulators / (rows + 3 * columns)) ^ PREFERENCE
end

-- Vectors of the last axis and rows of the one before for which the accumulators, a row of vectors
-- and one more operand are in registers; nil where the axes have no such parts. The chance of each
-- pair is in proportion to its weight.
local function sample_register_tile(sch, row, last, lanes)
  local each, most = registers(sch:get(lanes))
  local function rows_for(vectors)
    return divisors(extent_of(sch, row), MOST_ROWS, function(rows)
      return (rows + 1) * vectors * each < most
    end)
  end
  local columns = extent_of(sch, last) // sch:get(lanes)
  local vectors = sample_one(sch, divisors(columns, MOST_VECTORS, function(n)
    return #rows_for(n) > 0
  end), function(n)
    local sum = 0
    for _, rows in ipairs(rows_for(n)) do sum = sum + weight_of_tile(rows, n * each) end
    return sum
  end)
  if not vectors then return nil end
  local n = sch:get(vectors)
  return vectors, sample_one(sch, rows_for(n), function(rows)
    return weight_of_tile(rows, n * each)
  end)
end

-- A loop on three levels, of which the innermost has so many steps.
local function tile_around(sch, loop, steps)
  local rest, inner = table.unpack(sch:split(loop, { -1, steps, n = 2 }))
  local outer, middle = table.unpack(tile(sch, rest, 2, MOST_MIDDLE))
  return { outer, middle, inner }
end

-- The spatial loops on three levels: outer, middle, and the register tile: rows of the last axis
-- but one, vectors of the last axis.
local function tile_spatial(sch, loops)
  local levels, last = { {}, {}, {} }, loops[#loops]
  local lanes = sample_lanes(sch, extent_of(sch, last))
  local vectors, rows
  if lanes and #loops > 1 then
    vectors, rows = sample_register_tile(sch, loops[#loops - 1], last, lanes)
  end
  for i, loop in ipairs(loops) do
    local behind, vector = #loops - i, nil
    if behind == 0 and lanes then
      loop, vector = table.unpack(sch:split(loop, { -1, lanes, n = 2 }))
    end
    local steps = behind == 0 and vectors or behind == 1 and rows or nil
    local parts = steps and tile_around(sch, loop, steps) or behind > 1 and tile(sch, loop, 2, 16)
      or tile(sch, loop, 3, behind == 1 and MOST_ROWS or MOST_VECTORS)
    for level, part in ipairs(parts) do table.insert(levels[level], part) end
    if vector then
      table.insert(levels[3], vector)
      levels.vector, levels.lanes = vector, lanes
    end
  end
  return levels
end

local function tile_reduction_loops(sch, loops)
  local outer, inner = {}, {}
  for i, loop in ipairs(loops) do
    outer[i], inner[i] = table.unpack(tile(sch, loop, 2, 16))
  end
  return append(outer, inner)
end

local function write_back(sch, cached, at, lanes)
  sch:reverse_compute_at(cached, at)
  local loops = sch:get_loops(cached)
  local last = loops[#loops]
  if lanes and (extent_of(sch, last) or 1) % sch:get(lanes) == 0 then
    sch:vectorize(sch:split(last, { -1, lanes, n = 2 })[2])
  end
end

local function parallel_outer(sch, loops, info)
  if info.threads == 1 then return end
  sch:parallel(#loops > 1 and sch:fuse(table.unpack(loops)) or loops[1])
end

-- Whether an index of a region depends on one of the variables.
local function uses(region, vars)
  local found = false
  for i = 2, #region do
    walk.post_order(region[i], function(part)
      for _, var in ipairs(vars) do found = found or part == var end
    end)
  end
  return found
end

-- The number of the operand that is read along the last spatial axis and the reduction, but not
-- along the other spatial axes: each row of tiles reads all of it. nil when there is none.
local function shared_operand(sch, block)
  local node = sch:get(block)
  local last, others = {}, {}
  for i = #node.params, 1, -1 do
    if node.attrs.iter_types[i] ~= REDUCE then
      table.insert(#last > 0 and others or last, node.params[i])
    end
  end
  local reads = node.body[1]
  for i = 1, #others > 0 and reads.kind == "BlockReads" and #reads or 0 do
    if uses(reads[i], last) and not uses(reads[i], others) then return i - 1 end
  end
  return nil
end

-- The panel of an operand that the tiles of a column read is copied to where it lies together.
local function pack(sch, block, operand, column, lanes)
  local panel = sch:cache_read(block, operand, "global")
  sch:compute_at(panel, column)
  local loops = sch:get_loops(panel)
  if lanes and (extent_of(sch, loops[#loops]) or 1) % sch:get(lanes) == 0 then
    sch:vectorize(sch:split(loops[#loops], { -1, lanes, n = 2 })[2])
  end
end

--- The space of a block that reduces: `spatial` and `reduced` are its loops. With a packed operand
-- the column of tiles is the outermost loop.
local function tile_reduction(sch, block, spatial, reduced, info)
  local operand = #spatial > 1 and shared_operand(sch, block)
  local packs = operand and sch:get(sch:sample_categorical({ 0, 1 }, { 0.5, 0.5 })) == 1
  local cached = sch:cache_write(block, 0, "local")
  local levels = tile_spatial(sch, spatial)
  local steps = tile_reduction_loops(sch, reduced)
  local outer = append({}, levels[1])
  if packs then table.insert(outer, 1, table.remove(outer)) end
  local order = append({}, outer)
  append(append(append(order, levels[2]), steps), levels[3])
  sch:reorder(table.unpack(order))
  write_back(sch, cached, levels[2][#levels[2]], levels.lanes)
  if packs then pack(sch, block, operand, outer[1], levels.lanes) end
  for _, loop in ipairs(levels[3]) do
    if loop == levels.vector then sch:vectorize(loop) else sch:unroll(loop) end
  end
  parallel_outer(sch, packs and { outer[1] } or outer, info)
  sch:decompose_reduction(block, steps[1])
end

--- The space of a block without a reduction: vectors along the last axis, some of them unrolled.
local function tile_elementwise(sch, _, spatial, _, info)
  local last = spatial[#spatial]
  local lanes = sample_lanes(sch, extent_of(sch, last))
  if lanes then
    local vector
    last, vector = table.unpack(sch:split(last, { -1, lanes, n = 2 }))
    sch:vectorize(vector)
  end
  local rows, unrolled = table.unpack(tile(sch, last, 2, 8))
  sch:unroll(unrolled)
  parallel_outer(sch, { #spatial > 1 and spatial[1] or rows }, info)
end

-- The loops of a block by the types of the iterators that they stand for; nil where there is not
-- one loop for each iterator.
local function loops_by_type(sch, block)
  local types, loops = sch:get(block).attrs.iter_types, sch:get_loops(block)
  if not types or #types ~= #loops then return nil end
  local spatial, reduced = {}, {}
  for i, loop in ipairs(loops) do
    table.insert(types[i] == REDUCE and reduced or spatial, loop)
  end
  return spatial, reduced
end

local function schedule_block(sch, block, info)
  local spatial, reduced = loops_by_type(sch, block)
  if not spatial or #spatial == 0 then return end
  local rule = #reduced > 0 and tile_reduction or tile_elementwise
  rule(sch, block, spatial, reduced, info)
end

-- Whether an error is a primitive's that does not fit the block.
local function is_refusal(err)
  return not failure.is_interrupt(err) and tostring(err):find("tir.Schedule.", 1, true) ~= nil
end

local function checked(sch, info)
  local where = "pl.tune.default_schedule"
  local class = type(sch) == "table" and getmetatable(sch)
  if type(class) ~= "table" or class.__name ~= "perilune.tir.Schedule" then
    argument.fail(("%s: a schedule expected, got %s"):format(where, argument.kind_of(sch)))
  end
  info = argument.options(info, where, { "func_name", "threads" })
  local threads = info.threads or 1
  if math.type(threads) ~= "integer" or threads < 1 then
    argument.fail(where .. ": threads: an integer from 1 on expected")
  end
  if info.func_name ~= nil then argument.string(info.func_name, where, "func_name") end
  return { func_name = info.func_name, threads = threads }
end

--- Schedules each block of the function by its kind. A block whose loops a primitive refuses
-- stays as it is. `info`: func_name, threads (1).
function rules.default(sch, info)
  info = checked(sch, info)
  local root = sch:get_block("root", info.func_name)
  for _, block in ipairs(sch:get_child_blocks(root)) do
    local steps = sch:n_steps()
    local ok, err = pcall(schedule_block, sch, block, info)
    if not ok then
      if not is_refusal(err) then error(err, 0) end
      while sch:n_steps() > steps do sch:undo() end
    end
  end
end

return rules
