-- Computes of sort, argsort and topk: indices along an axis are merged, by runs of twice the length
-- each time. Equal elements keep their order; what is no number is greater than all numbers.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"

local compute = {}

local function int(value) return operand.const(value, "int32") end

-- Whether y stands before x, which came first.
local function precedes(y, x, ascending)
  local over, under = ascending and x or y, ascending and y or x
  local result = tir.gt(over, under)
  if not operand.is_float(x.dtype) then return result end
  return tir.logical_or(result, tir.logical_and(tir.ne(over, over), tir.eq(under, under)))
end

-- One merge of the runs [low, middle) and [middle, high) of from into to.
local function merge(lane, from, to, ends)
  local i, j = lane.heads:load(0), lane.heads:load(1)
  local function value(at) return lane.load(from:load(at)) end
  local right = tir.if_then_else(tir.ge(i, ends.middle), operand.const(true, "bool"),
    tir.if_then_else(tir.ge(j, ends.high), operand.const(false, "bool"),
      precedes(value(j), value(i), lane.ascending)))
  local at = tir.Var("at", "int32")
  local function take(head, source)
    return loops.seq(tir.BufferStore(to, from:load(source), { at }),
      tir.BufferStore(lane.heads, source + 1, { head }))
  end
  return loops.seq(tir.BufferStore(lane.heads, ends.low, { 0 }),
    tir.BufferStore(lane.heads, ends.middle, { 1 }),
    tir.For(at, ends.low, ends.high - ends.low, "serial",
      tir.IfThenElse(right, take(1, j), take(0, i))))
end

-- Runs of 1 << level elements become runs of twice as many.
local function merge_level(lane, level)
  local n = lane.n
  local width = tir.shift_left(int(1), level)
  return loops.over(tir.floordiv(int(n - 1), width * 2) + 1, "run", function(run)
    local low, middle, high = tir.Var("low", "int32"), tir.Var("middle", "int32"),
      tir.Var("high", "int32")
    local ends = { low = low, middle = middle, high = high }
    return tir.LetStmt(low, run * width * 2, tir.LetStmt(middle, tir.min(low + width, n),
      tir.LetStmt(high, tir.min(middle + width, n), merge(lane, lane.order, lane.spare, ends))))
  end)
end

-- Sorts the indices of a lane, then stores what is asked for.
local function sort_lane(lane, store)
  local levels = 0
  while 1 << levels < lane.n do levels = levels + 1 end
  local list = { loops.over(lane.n, "k", function(k)
    return tir.BufferStore(lane.order, k, { k })
  end) }
  if levels > 0 then
    list[2] = loops.over(levels, "level", function(level)
      return loops.seq(merge_level(lane, level), loops.over(lane.n, "k", function(k)
        return tir.BufferStore(lane.order, lane.spare:load(k), { k })
      end))
    end)
  end
  list[#list + 1] = loops.over(lane.kept, "k", store)
  return loops.seq(table.unpack(list))
end

local function allocated(lane, body)
  return loops.allocate(lane.n, "int32", "order", function(order)
    lane.order = order
    return loops.allocate(lane.n, "int32", "spare", function(spare)
      lane.spare = spare
      return loops.allocate(2, "int32", "heads", function(heads)
        lane.heads = heads
        return body()
      end)
    end)
  end)
end

-- The statement over all lanes; results are "values" or "indices", for each output.
local function statement(plan, x, outs)
  local others = {}
  for i, dim in ipairs(plan.shape) do
    if i ~= plan.axis then others[#others + 1] = dim end
  end
  return loops.nest(others, "i", function(vars)
    local function at(k)
      local own = table.move(vars, 1, #vars, 1, {})
      table.insert(own, plan.axis, k)
      return own
    end
    local lane = { n = plan.shape[plan.axis], kept = plan.kept, ascending = plan.ascending,
      load = function(k) return tir.BufferLoad(x, at(k)) end }
    return allocated(lane, function()
      return sort_lane(lane, function(k)
        local list = {}
        for i, result in ipairs(plan.results) do
          local index = lane.order:load(k)
          local value = result == "values" and lane.load(index)
            or operand.cast(outs[i].dtype, index)
          list[i] = tir.BufferStore(outs[i], value, at(k))
        end
        return loops.seq(table.unpack(list))
      end)
    end)
  end)
end

-- The call as sorted lanes of which the first are kept.
local function sorted(name, x, axis, ascending, results, out_type)
  local parts = out_type.kind == "tuple" and out_type.parts or { out_type }
  if x.ndim == 0 then return nil, "a scalar" end
  if x.dtype == "bool" then return nil, "of bools" end
  local plan = { shape = dims.of(x), axis = dims.axis(axis, x.ndim, name) + 1,
    ascending = ascending, results = table.move(results, 1, #parts, 1, {}) }
  plan.kept = parts[1].shape[plan.axis]
  local shapes, dtypes = {}, {}
  for i, part in ipairs(parts) do shapes[i], dtypes[i] = part.shape, part.dtype end
  if dims.product(parts[1].shape) == 0 then return nil, "nothing" end
  return { te.extern(shapes, { x }, function(ins, outs)
    return statement(plan, ins[1], outs)
  end, { name = "T_" .. name, dtype = dtypes }) }
end

compute.sort = function(attrs, inputs, out_type)
  return sorted("sort", inputs[1], attrs.axis or -1, attrs.is_ascend ~= 0, { "values" }, out_type)
end

compute.argsort = function(attrs, inputs, out_type)
  return sorted("argsort", inputs[1], attrs.axis or -1, attrs.is_ascend ~= 0, { "indices" },
    out_type)
end

-- ONNX's `largest` or Relay's `is_ascend`.
compute.topk = function(attrs, inputs, out_type)
  local results = { "values", "indices" }
  if attrs.ret_type == "indices" then results = { "indices" } end
  return sorted("topk", inputs[1], attrs.axis or -1,
    attrs.largest == 0 or attrs.is_ascend == 1, results, out_type)
end

return compute
