-- topi.generic: default schedules for processors, by TVM's names and patterns.
--
-- A stage that only moves or maps elements is computed where it is used. A reduction is computed
-- before its user: a convolution or matrix product by tiles of the result, whose sums stay in
-- registers; the reductions of a softmax or a norm row by row. Outer loops are fused and marked
-- parallel, inner ones vectors.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operation = require "perilune.te.operation"
local schedule = require "perilune.te.schedule"
local tile = require "perilune.topi.tile"

local divisor = tile.divisor

local generic = {}

-- Lanes of a vector loop.
local LANES = 16

local function list_of(outs, where)
  if operation.is_tensor(outs) then outs = { outs } end
  for i, out in ipairs(argument.table(outs, where, "outs")) do
    dims.tensor(out, where, "tensor " .. i)
  end
  if #outs == 0 then argument.fail(where .. ": a tensor is needed") end
  return outs
end

local function has_tag(op, tag) return op.tag and op.tag:find(tag, 1, true) ~= nil end

local function is_compute(op) return op.kind == "ComputeOp" end

local function reduces(op) return is_compute(op) and #op.reduce_axis > 0 end

-- Operations before those that read them, and who reads each.
local function walk(outs)
  local order, readers, state, stack = {}, {}, {}, {}
  for i = #outs, 1, -1 do stack[#stack + 1] = outs[i].op end
  while #stack > 0 do
    local op = stack[#stack]
    if state[op] == nil then
      state[op] = "open"
      for _, input in ipairs(op.inputs) do
        local before = input.op or input
        readers[before] = readers[before] or {}
        table.insert(readers[before], op)
        if state[before] == nil then stack[#stack + 1] = before end
      end
    else
      stack[#stack] = nil
      if state[op] == "open" then
        state[op] = "done"
        order[#order + 1] = op
      end
    end
  end
  return order, readers
end

local function extent_of(axis) return dims.value(axis.dom[1].extent) end

local function is_open(axis) return type(extent_of(axis)) ~= "number" end

-- ---------------------------------------------------------------- loop nests

local function fuse_outer(stage, axes)
  if #axes == 0 then return nil end
  local fused = #axes > 1 and stage:fuse(table.unpack(axes)) or axes[1]
  stage:parallel(fused)
  return fused
end

-- Schedules of what reads or computes halves: C has no vectors in such a function.
local scalar = setmetatable({}, { __mode = "k" })

-- Functions that decide for a schedule: decide(name, candidates) gives one of the texts.
local decide_of = setmetatable({}, { __mode = "k" })

local function first_candidate(_, candidates) return candidates[1] end

-- The tile that is decided for, of those in the list.
local function decided_tile(s, first, second, list)
  return tile.parse(decide_of[s]("tile", tile.candidates(first, second, list)))
end

local function has_halves(order)
  for _, op in ipairs(order) do
    for _, output in ipairs(op.outputs) do
      if not tile.is_vector(output.dtype) then return true end
    end
  end
  return false
end

-- An innermost loop of a schedule that vectors can be made of: its length, or 1.
local function vector_factor(extent, s)
  if scalar[s] then return 1 end
  if type(extent) ~= "number" then return LANES end
  local factor = divisor(extent, LANES)
  if factor >= 4 or factor == extent then return factor end
  return 1
end

-- Loops of a stage that maps elements: outer ones parallel, the inner one vectors. nil without
-- loops, else the outer loop.
local function map_loops(stage)
  local axes = stage.op.axis
  local n = #axes
  if n == 0 then return nil end
  if is_open(axes[n]) and not scalar[stage.schedule] then
    local _, inner = stage:split(axes[n], LANES)
    stage:vectorize(inner)
    return fuse_outer(stage, table.move(axes, 1, n - 1, 1, {}))
  end
  local factor = vector_factor(extent_of(axes[n]), stage.schedule)
  if factor > 1 then
    local outer, inner = stage:split(axes[n], factor)
    stage:vectorize(inner)
    axes = table.move(axes, 1, n - 1, 1, {})
    axes[n] = outer
  end
  return fuse_outer(stage, axes)
end

-- The loops of a border: whole rows, whose conditions the C compiler makes masks of.
local function row_loops(stage)
  local axes = stage.op.axis
  fuse_outer(stage, table.move(axes, 1, #axes - 1, 1, {}))
end

-- ------------------------------------------------------------------- products

-- What a reduction is, by its tag; nil: none of these.
local function names_tile(op)
  for _, kind in ipairs { "packed_conv", "blocked_window", "group_conv", "conv", "matmul",
    "dense" } do
    if op.tag == kind then return kind end
  end
  return nil
end

-- Whether results are written in the order of the product's.
local function same_shape(a, b)
  if #a.axis ~= #b.axis then return false end
  for i, axis in ipairs(a.axis) do
    if not dims.equal(extent_of(axis), extent_of(b.axis[i])) then return false end
  end
  return true
end

-- The columns of a panel of packed weights; nil: they are not packed.
local function panel_of(op) return op.attrs and op.attrs.panel end

-- Loops over symbolic extents that are split stay loops of their own: LoopPartition cuts them in
-- whole tiles, without conditions, and the rest.
--
-- Loops of the result by tiles: rows of axis `row`, columns of the last axis. All tiles of some
-- columns are made in a row, so that their operand stays in the cache. The columns of a tile are
-- those of one panel of packed weights. The loop in which tiles are made.
local function tile_result(stage, row, panel)
  local axes = stage.op.axis
  local n = #axes
  local open_rows, open_columns = is_open(axes[row]), is_open(axes[n])
  local columns_of_all = extent_of(axes[n])
  if panel and not open_columns and columns_of_all % panel == 0 then columns_of_all = panel end
  local rows, columns = tile.of(extent_of(axes[row]), columns_of_all, scalar[stage.schedule])
  if not scalar[stage.schedule] then
    rows, columns = decided_tile(stage.schedule, rows, columns,
      tile.all(extent_of(axes[row]), columns_of_all))
  end
  local row_outer, row_inner = stage:split(axes[row], rows)
  local column_outer, column_inner = stage:split(axes[n], columns)
  local order = {}
  for i = 1, n - 1 do
    if i ~= row then order[#order + 1] = axes[i] end
  end
  local outer = table.move(order, 1, #order, 1, {})
  if not open_columns then outer[#outer + 1] = column_outer end
  if not open_rows and not open_columns then outer[#outer + 1] = row_outer end
  order[#order + 1] = column_outer
  order[#order + 1] = row_outer
  order[#order + 1] = row_inner
  order[#order + 1] = column_inner
  stage:reorder(table.unpack(order))
  if columns > 1 and not scalar[stage.schedule] then stage:vectorize(column_inner) end
  local parallel = fuse_outer(stage, outer)
  return (open_rows or open_columns) and row_outer or parallel
end

-- Sums of a tile: rows unrolled, columns as vectors, reductions around.
local function tile_sums(stage, row)
  local axes, reduced = stage.op.axis, stage.op.reduce_axis
  local order = table.move(reduced, 1, #reduced, 1, {})
  order[#order + 1] = axes[row]
  order[#order + 1] = axes[#axes]
  local first = {}
  for i = 1, #axes - 1 do
    if i ~= row then first[#first + 1] = axes[i] end
  end
  table.move(order, 1, #order, #first + 1, first)
  stage:reorder(table.unpack(first))
  if scalar[stage.schedule] then return end
  stage:unroll(axes[row])
  stage:vectorize(axes[#axes])
end

local function row_of(op, kind)
  if kind == "conv" then return 2 end
  if kind == "group_conv" then return math.max(2, #op.axis - 1) end
  return #op.axis - 1
end

-- ------------------------------------------------------------------- rows

-- The rows of a softmax or norm: loops but the last, in which its reductions are computed.
local function row_loop(s, out)
  local axes = s[out].op.axis
  if #axes < 2 then return nil end
  local factor = vector_factor(extent_of(axes[#axes]), s)
  if factor > 1 then
    local _, inner = s[out]:split(axes[#axes], factor)
    s[out]:vectorize(inner)
  end
  return fuse_outer(s[out], table.move(axes, 1, #axes - 1, 1, {}))
end

-- Whether a reduction is over the last axis alone, and keeps it.
local function reduces_rows(op, out)
  if #op.axis == 0 or #op.axis ~= #out.axis or #op.reduce_axis ~= 1 then return false end
  for i = 1, #op.axis - 1 do
    if not dims.equal(extent_of(op.axis[i]), extent_of(out.axis[i])) then return false end
  end
  return extent_of(op.axis[#op.axis]) == 1
    and dims.equal(extent_of(op.reduce_axis[1]), extent_of(out.axis[#out.axis]))
end

-- ---------------------------------------------------------------- schedules

-- Whether a reduction reads a stage, or a view of it.
local function is_reduced(op, readers)
  for _, reader in ipairs(readers[op] or {}) do
    if reduces(reader) then return true end
    if has_tag(reader, "blocked_view") and is_reduced(reader, readers) then return true end
  end
  return false
end

-- Statements read memory, so what they read is computed ahead.
local function is_root(op, readers)
  if has_tag(op, "softmax_exp") then return true end
  for _, reader in ipairs(readers[op] or {}) do
    if reader.kind == "ExternOp" then return true end
  end
  local is_moved = has_tag(op, "pad") or has_tag(op, "strided")
  return has_tag(op, "dilate") or is_moved and is_reduced(op, readers)
end

-- Stages between the operands and the results that are not computed where they are used.
local function inline_maps(s, order, readers, is_output)
  local kept = {}
  for _, op in ipairs(order) do
    if is_compute(op) and not is_output[op] then
      if reduces(op) or is_root(op, readers) or #op.outputs > 1 then
        kept[#kept + 1] = op
      else
        s[op.outputs[1]]:compute_inline()
      end
    end
  end
  return kept
end

-- A reduction by lanes: its only axis is the last one of what it reads.
local function schedule_lanes(s, op)
  local tensor = op.outputs[1]
  local k = s[tensor].op.reduce_axis[1]
  local extent = extent_of(k)
  if #op.outputs > 1 or #op.reduce_axis > 1 or scalar[s] then return false end
  if type(extent) ~= "number" or extent % LANES ~= 0 or extent == LANES then return false end
  local _, lane = s[tensor]:split(k, LANES)
  local parts = s:rfactor(tensor, lane, #op.axis)
  local stage = s[parts]
  local axes, outer = stage.op.axis, stage.op.reduce_axis[1]
  stage:reorder(outer, axes[#axes])
  stage:vectorize(axes[#axes])
  local own = s[tensor].op.axis
  if #own > 0 then s[parts]:compute_at(s[tensor], own[#own]) end
  return true
end

-- The stages of a row, if all that is kept belongs to rows of the result.
local function schedule_rows(s, kept, out)
  if #kept == 0 then return false end
  for _, op in ipairs(kept) do
    local own = reduces(op) and reduces_rows(op, out)
      or has_tag(op, "softmax_exp") and same_shape(op, out)
    if not own then return false end
  end
  local loop = row_loop(s, out.outputs[1])
  if not loop then return false end
  for _, op in ipairs(kept) do
    s[op.outputs[1]]:compute_at(s[out.outputs[1]], loop)
    if reduces(op) then
      schedule_lanes(s, op)
    else
      local axes = s[op.outputs[1]].op.axis
      local last = axes[#axes]
      local factor = vector_factor(extent_of(last), s)
      if factor > 1 then
        local _, inner = s[op.outputs[1]]:split(last, factor)
        s[op.outputs[1]]:vectorize(inner)
      end
    end
  end
  return true
end

local function reduce_loops(stage)
  local axes = stage.op.axis
  fuse_outer(stage, table.move(axes, 1, #axes, 1, {}))
end

local function is_blocked(kind) return kind == "packed_conv" or kind == "blocked_window" end

-- Whether the result of blocked sums, (N, C / b, H, W, b), has their shape, or (N, C, H, W).
local function has_pixels_of(op, out)
  if same_shape(op, out) then return true end
  if #out.axis ~= 4 then return false end
  for i, axis in ipairs { 1, false, 3, 4 } do
    if axis and not dims.equal(extent_of(op.axis[axis]), extent_of(out.axis[i])) then
      return false
    end
  end
  return dims.equal(extent_of(op.axis[2]) * extent_of(op.axis[5]), extent_of(out.axis[2]))
end

-- Whether tiles of the product are of use: it has rows, and its last axis is as the result's.
local function can_tile(op, out, kind)
  if is_blocked(kind) then return has_pixels_of(op, out) end
  if kind == "dense" or #op.axis < 2 or not same_shape(op, out) then return false end
  local _, columns = tile.of(extent_of(op.axis[row_of(op, kind)]),
    extent_of(op.axis[#op.axis]))
  return columns > 1
end

-- Divisors of the pixels of a row, the longest first.
local MOST_OF_WINDOW = 28

local function window_tiles(pixels)
  local list = {}
  for p = math.min(pixels, MOST_OF_WINDOW), 2, -1 do
    if pixels % p == 0 then list[#list + 1] = { p, 1, score = p } end
  end
  return list
end

-- How many terms a sum has; nil: it is not known.
local function terms_of(op)
  local terms = 1
  for _, axis in ipairs(op.reduce_axis) do
    local extent = extent_of(axis)
    if type(extent) ~= "number" then return nil end
    terms = terms * extent
  end
  return terms
end

-- The pixels and the blocks of channels of a tile.
local function blocked_tile(s, op, kind)
  local pixels, blocks = extent_of(op.axis[4]), extent_of(op.axis[2])
  if kind == "packed_conv" then
    local block = extent_of(op.axis[5])
    local first, second = tile.of_pixels(pixels, blocks, block, terms_of(op))
    return decided_tile(s, first, second, tile.all_of_pixels(pixels, blocks, block))
  end
  return decided_tile(s, tile.of_window(pixels), 1, window_tiles(pixels))
end

-- Whether rows of the result are made for all channels before the next row, or channels first.
local function rows_first(s)
  return decide_of[s]("order", { "channels", "rows" }) == "rows"
end

-- Whether the sums of a window are unrolled: those of few elements, or as is decided.
local function unrolls_window(s, kind, reduced)
  if kind ~= "packed_conv" then return true end
  local elements = 1
  for i = 2, 3 do elements = elements * extent_of(reduced[i]) end
  return elements > 1 and decide_of[s]("window", { "loop", "unrolled" }) == "unrolled"
end

-- The sums of a tile: reductions around pixels around blocks, so that an element of the operand is
-- loaded once for all blocks. Short windows are unrolled.
local function sum_blocks(sums, kind)
  local axes, reduced = sums.op.axis, sums.op.reduce_axis
  local is_product = kind == "packed_conv"
  local order = is_product and { axes[1], axes[3] } or { axes[1], axes[2], axes[3] }
  table.move(reduced, 1, #reduced, #order + 1, order)
  order[#order + 1] = axes[4]
  if is_product then order[#order + 1] = axes[2] end
  order[#order + 1] = axes[5]
  sums:reorder(table.unpack(order))
  local unrolled = unrolls_window(sums.schedule, kind, reduced)
  for i, axis in ipairs(reduced) do
    local is_window, extent = not is_product or i == 2 or i == 3, extent_of(axis)
    if unrolled and is_window and type(extent) == "number" and extent <= 3 then
      sums:unroll(axis)
    end
  end
  sums:unroll(axes[4])
  if is_product then sums:unroll(axes[2]) end
  sums:vectorize(axes[5])
end

-- Cuts loops that are not divided in whole tiles, without conditions, and the rest.
local function cut_rest(stage, axes)
  for _, axis in ipairs(axes) do stage:pragma(axis, "loop_partition_hint") end
end

-- Tiles of pixels and blocks of channels, whose sums are vectors of channels. A border of what a
-- window reads is made for the channels of a tile.
local function schedule_blocked(stage, sums, kind, borders)
  local pixels, blocks = blocked_tile(stage.schedule, sums.op, kind)
  local n, channel, row, column, lane = table.unpack(stage.op.axis)
  local block = extent_of(sums.op.axis[5])
  local channel_outer, channel_inner = stage:split(channel, lane and blocks or blocks * block)
  local column_outer, column_inner = stage:split(column, pixels)
  local is_product = kind == "packed_conv"
  local order = { n, channel_outer, row, column_outer, channel_inner, column_inner }
  if is_product and rows_first(stage.schedule) then order[2], order[3] = row, channel_outer end
  local outer_axes = { n, order[2], order[3] }
  order[#order + 1] = lane
  stage:reorder(table.unpack(order))
  if lane then
    stage:unroll(channel_inner)
    stage:unroll(column_inner)
    stage:vectorize(lane)
  end
  if is_product then
    fuse_outer(stage, outer_axes)
  else
    local outer = fuse_outer(stage, { n, channel_outer })
    for _, border in ipairs(borders) do border:compute_at(stage, outer) end
  end
  sums:compute_at(stage, column_outer)
  sum_blocks(sums, kind)
  if extent_of(sums.op.axis[4]) % pixels ~= 0 then
    cut_rest(stage, { column_outer, column_inner })
    cut_rest(sums, { sums.op.axis[4] })
  end
end

-- Rows whose sums are made together have so many pixels at the most; blocks of channels that are
-- added to all of them before the next ones; and how many channels make a product deep: its weights
-- are not in the nearest cache from one tile to the next.
local MOST_JOINED, DEPTH, DEEP = 256, 8, 512

-- Rows, pixels and blocks of channels of tiles that go on from one row of pixels to the next, if
-- that is decided for a product; it is expected to gain where weights are many, or where rows
-- cannot be cut in good tiles. nil: tiles of one row.
local function joined_tile(s, out, op)
  if not (op.attrs and op.attrs.joins_rows) or #out.axis ~= 5 then return nil end
  local row, column = extent_of(op.axis[3]), extent_of(op.axis[4])
  local depth = terms_of(op)
  if not depth or type(row) ~= "number" or type(column) ~= "number" then return nil end
  local blocks, block = extent_of(op.axis[2]), extent_of(op.axis[5])
  local rows = divisor(row, math.max(1, MOST_JOINED // column))
  local pixels, own, score = tile.of_pixels(rows * column, blocks, block)
  local _, _, alone = tile.of_pixels(column, blocks, block)
  local gains = rows > 1 and score > 0 and (depth >= DEEP or score > 1.1 * alone)
  local chosen = decide_of[s]("rows", gains and { "joined", "single" } or { "single", "joined" })
  if chosen == "single" then return nil end
  pixels, own = decided_tile(s, pixels, own, tile.all_of_pixels(rows * column, blocks, block))
  return { rows = rows, all = rows * column, pixels = pixels, blocks = own }
end

-- The sums of joined rows: some channels for all of them, then the next ones.
local function sum_joined(sums, plan)
  local n, block, row, column, lane = table.unpack(sums.op.axis)
  local rc, ry, rx, rb = table.unpack(sums.op.reduce_axis)
  local outer, inner = sums:split(sums:fuse(row, column), plan.pixels)
  local depth = divisor(extent_of(rc), DEPTH)
  local some, own = sums:split(rc, depth * 2 > DEPTH and depth or extent_of(rc))
  sums:reorder(n, some, ry, rx, outer, own, rb, inner, block, lane)
  sums:unroll(inner)
  sums:unroll(block)
  sums:vectorize(lane)
  if plan.all % plan.pixels ~= 0 then cut_rest(sums, { outer, inner }) end
end

local function schedule_joined(stage, sums, plan)
  local n, channel, row, column, lane = table.unpack(stage.op.axis)
  local channel_outer, channel_inner = stage:split(channel, plan.blocks)
  local row_outer, row_inner = stage:split(row, plan.rows)
  stage:reorder(n, row_outer, channel_outer, channel_inner, row_inner, column, lane)
  stage:vectorize(lane)
  sums:compute_at(stage, fuse_outer(stage, { n, row_outer, channel_outer }))
  sum_joined(sums, plan)
end

-- A border around a blocked tensor: its rows are loops of their own, of which the C writer cuts the
-- border. The loops around rows.
local function pad_loops(stage)
  local axes = stage.op.axis
  stage:vectorize(axes[#axes])
  return table.move(axes, 1, #axes - 2, 1, {})
end

local function is_blocked_pad(op) return has_tag(op, "pad") and #op.axis == 5 end

-- Whether a border is that of a window alone, whose tiles make it.
local function is_border_of(op, product, readers)
  return product and product.kind == "blocked_window" and is_blocked_pad(op) and #readers[op] == 1
end

local function schedule_product(s, product, out, borders)
  local op, kind = product.op, product.kind
  if is_blocked(kind) then
    local stage, sums = s[out.outputs[1]], s[op.outputs[1]]
    local joined = joined_tile(s, out, op)
    if joined then return schedule_joined(stage, sums, joined) end
    return schedule_blocked(stage, sums, kind, borders)
  end
  local row = row_of(op, kind)
  local loop = tile_result(s[out.outputs[1]], row, panel_of(op))
  s[op.outputs[1]]:compute_at(s[out.outputs[1]], loop)
  tile_sums(s[op.outputs[1]], row)
end

-- A product that is a result itself has its sums in a copy of the tile.
local function schedule_product_output(s, op, kind)
  local tensor = op.outputs[1]
  local sums = s:cache_write(tensor, "global")
  if is_blocked(kind) then return schedule_blocked(s[tensor], s[sums], kind, {}) end
  local row = row_of(op, kind)
  local loop = tile_result(s[tensor], row, panel_of(op))
  s[sums]:compute_at(s[tensor], loop)
  tile_sums(s[sums], row)
end

-- A reduction by itself: a product by tiles or by lanes, another one as it is.
local function schedule_reduction(s, op)
  local kind = names_tile(op)
  if kind and can_tile(op, op, kind) then
    return schedule_product_output(s, op, kind)
  end
  if kind == "dense" and schedule_lanes(s, op) then return end
  reduce_loops(s[op.outputs[1]])
end

local function schedule_kept(s, op)
  local tensor = op.outputs[1]
  if is_blocked_pad(op) then return fuse_outer(s[tensor], pad_loops(s[tensor])) end
  if has_tag(op, "pad") then return row_loops(s[tensor]) end
  if not reduces(op) then return map_loops(s[tensor]) end
  schedule_reduction(s, op)
end

local function schedule_output(s, op)
  if reduces(op) then return schedule_reduction(s, op) end
  map_loops(s[op.outputs[1]])
end

-- Whether no kept stage but the result reads a product, through stages that are computed where they
-- are used.
local function is_read_by_result_alone(op, kept, out, readers)
  local is_kept, seen, stack = {}, {}, { op }
  for _, other in ipairs(kept) do is_kept[other] = true end
  while #stack > 0 do
    for _, reader in ipairs(readers[table.remove(stack)] or {}) do
      if is_kept[reader] and reader ~= out then return false end
      if reader ~= out and not seen[reader] then
        seen[reader] = true
        stack[#stack + 1] = reader
      end
    end
  end
  return true
end

-- The product whose tiles are made in tiles of the result: the only one that the result, through
-- stages that are computed where they are used, is a map of.
local function fused_product(kept, out, readers)
  if reduces(out) then return nil end
  local found
  for _, op in ipairs(kept) do
    local kind = reduces(op) and names_tile(op)
    if kind and can_tile(op, out, kind) and is_read_by_result_alone(op, kept, out, readers) then
      if found then return nil end
      found = { op = op, kind = kind }
    end
  end
  return found
end

--- A schedule of any tensors by the pattern of each stage; what LowerTE uses. decide(name,
-- candidates), where it is given, chooses one of several texts, of which the first one is the
-- default.
function generic.schedule(outs, decide)
  outs = list_of(outs, "topi.generic.schedule")
  local ops, is_output = {}, {}
  for i, out in ipairs(outs) do
    ops[i] = out.op
    is_output[out.op] = true
  end
  local s = schedule.create_schedule(ops)
  local order, readers = walk(outs)
  scalar[s] = has_halves(order)
  decide_of[s] = type(decide) == "function" and decide or first_candidate
  local kept = inline_maps(s, order, readers, is_output)
  local out = ops[1]
  if #ops > 1 or not is_compute(out) then
    for _, op in ipairs(kept) do schedule_kept(s, op) end
    for _, op in ipairs(ops) do
      if is_compute(op) then schedule_output(s, op) end
    end
    return s
  end
  if not reduces(out) and schedule_rows(s, kept, out) then return s end
  local product = fused_product(kept, out, readers)
  local borders = {}
  for _, op in ipairs(kept) do
    if is_border_of(op, product, readers) then
      borders[#borders + 1] = s[op.outputs[1]]
      pad_loops(s[op.outputs[1]])
    elseif not (product and product.op == op) then
      schedule_kept(s, op)
    end
  end
  if product then
    schedule_product(s, product, out, borders)
  else
    schedule_output(s, out)
  end
  return s
end

-- TVM has one a pattern; which a stage has is seen here.
for _, name in ipairs {
  "schedule_injective", "schedule_reduce", "schedule_dense", "schedule_batch_matmul",
  "schedule_matmul", "schedule_conv2d_nchw", "schedule_depthwise_conv2d_nchw", "schedule_pool",
  "schedule_softmax", "schedule_extern",
} do
  generic[name] = generic.schedule
end

--- Without any primitive: every stage by itself, loops in the order of axes.
function generic.default_schedule(outs)
  local ops = {}
  for i, out in ipairs(list_of(outs, "topi.generic.default_schedule")) do ops[i] = out.op end
  return schedule.create_schedule(ops)
end

return generic
