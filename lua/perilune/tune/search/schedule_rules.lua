--- Schedules of the loop level whose decisions a search makes.
--
-- A reduction over spatial axes (products of matrices, convolutions) is tiled on several levels:
-- loops over tiles, over rows of a tile, over steps of the reduction, and a register tile whose
-- innermost axis is a vector and whose other loops are unrolled. The register tile is a buffer of
-- its own (cache_write), which is written back behind the reduction. The last axis of other
-- blocks is one of vectors.

local argument = require "perilune.argument"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
core.internal()

local rules = {}

local REDUCE = 2
-- Lanes of a vector, and the most rows and vectors of a register tile.
local LANES = { 32, 16, 8, 4 }
local MOST_ROWS, MOST_VECTORS = 16, 4

local function extent_of(sch, loop)
  local extent = sch:get(loop).extent
  return extent.kind == "IntImm" and extent.value or nil
end

-- One of the lanes that divide an extent; nil when none does.
local function sample_lanes(sch, extent)
  local list, probs = {}, {}
  for _, lanes in ipairs(LANES) do
    if extent and extent % lanes == 0 then list[#list + 1] = lanes end
  end
  if #list == 0 then return nil end
  for i = 1, #list do probs[i] = 1 / #list end
  return sch:sample_categorical(list, probs)
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

-- The spatial loops on three levels: outer, middle, and the register tile: rows of the last axis
-- but one, vectors of the last axis.
local function tile_spatial(sch, loops)
  local levels = { {}, {}, {} }
  for i, loop in ipairs(loops) do
    local last = #loops - i
    local lanes = last == 0 and sample_lanes(sch, extent_of(sch, loop)) or nil
    local vector
    if lanes then loop, vector = table.unpack(sch:split(loop, { -1, lanes, n = 2 })) end
    local parts = last > 1 and tile(sch, loop, 2, 16)
      or tile(sch, loop, 3, last == 1 and MOST_ROWS or MOST_VECTORS)
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

--- The space of a block that reduces: `spatial` and `reduced` are its loops.
local function tile_reduction(sch, block, spatial, reduced, info)
  local cached = sch:cache_write(block, 0, "local")
  local levels = tile_spatial(sch, spatial)
  local steps = tile_reduction_loops(sch, reduced)
  local order = append({}, levels[1])
  append(append(append(order, levels[2]), steps), levels[3])
  sch:reorder(table.unpack(order))
  write_back(sch, cached, levels[2][#levels[2]], levels.lanes)
  for _, loop in ipairs(levels[3]) do
    if loop == levels.vector then sch:vectorize(loop) else sch:unroll(loop) end
  end
  parallel_outer(sch, levels[1], info)
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
