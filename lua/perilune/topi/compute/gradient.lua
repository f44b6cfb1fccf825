-- Computes of gradients of pooling: what a window got goes to its greatest element, the first of
-- equal ones, or equally to all of them.

local core = require "perilune.core"
core.internal()

local conv = require "perilune.topi.nn.conv"
local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"
local window = require "perilune.topi.compute.window"

local compute = {}

local function load(buffer, ...) return tir.BufferLoad(buffer, { ... }) end

-- The first element that a window covers along axis a, and the one behind its last.
local function covered(plan, a, at)
  local first = at * plan.strides[a] - plan.before[a]
  return tir.max(first, 0), tir.min(first + plan.kernel[a], plan.shape[a + 2])
end

-- Runs f(row, column) on the elements of a window.
local function over_window(plan, rows, columns, f)
  return loops.nest({ plan.kernel[1], plan.kernel[2] }, "k", function(k)
    local row, column = rows[1] + k[1], columns[1] + k[2]
    return tir.IfThenElse(tir.logical_and(tir.lt(row, rows[2]), tir.lt(column, columns[2])),
      f(row, column))
  end)
end

local function add(out, n, c, row, column, value)
  return tir.BufferStore(out, load(out, n, c, row, column) + value, { n, c, row, column })
end

-- The place of the greatest element lies in `best`: its row, then its column.
local function to_greatest(plan, ins, out, index)
  local n, c, i, j = table.unpack(index)
  local rows, columns = { covered(plan, 1, i) }, { covered(plan, 2, j) }
  return loops.allocate(2, "int32", "best", function(best)
    local function put(at, value) return tir.BufferStore(best, value, { at }) end
    local search = over_window(plan, rows, columns, function(row, column)
      local now = load(ins[2], n, c, load(best, 0), load(best, 1))
      return tir.IfThenElse(tir.gt(load(ins[2], n, c, row, column), now),
        loops.seq(put(0, row), put(1, column)))
    end)
    return loops.seq(put(0, rows[1]), put(1, columns[1]), search,
      add(out, n, c, load(best, 0), load(best, 1), load(ins[1], n, c, i, j)))
  end)
end

local function to_all(plan, ins, out, index)
  local n, c, i, j = table.unpack(index)
  local rows, columns = { covered(plan, 1, i) }, { covered(plan, 2, j) }
  local count = plan.whole and plan.kernel[1] * plan.kernel[2]
    or (rows[2] - rows[1]) * (columns[2] - columns[1])
  return over_window(plan, rows, columns, function(row, column)
    local gradient = load(ins[1], n, c, i, j)
    return add(out, n, c, row, column, gradient / dims.size(count, gradient.dtype))
  end)
end

local function plan_of(attrs, x)
  local padding = window.relay_padding(attrs.padding, 2)
  if not padding then return nil end
  local plan = { shape = dims.of(x), whole = attrs.count_include_pad == true
    or attrs.count_include_pad == 1,
    kernel = dims.list(window.one_or(attrs.pool_size, 2), 2, "pool2d_grad", "pool_size"),
    strides = dims.list(window.one_or(attrs.strides, 2), 2, "pool2d_grad", "strides") }
  plan.before = conv.split_padding(padding, 2, "pool2d_grad")
  return plan
end

-- (gradient, data)
local function pool_grad(distribute)
  return function(attrs, inputs)
    local own = attrs.layout or "NCHW"
    local gradient = window.relaid(inputs[1], own, "NCHW")
    local x = window.relaid(inputs[2], own, "NCHW")
    local plan = x and plan_of(attrs, x)
    if not gradient or not plan then return nil, "layout or padding" end
    local result = te.extern(plan.shape, { gradient, x }, function(ins, outs)
      local zeros = loops.nest(plan.shape, "i", function(index)
        return tir.BufferStore(outs[1], operand.const(0, x.dtype), index)
      end)
      return loops.seq(zeros, loops.nest(dims.of(gradient), "g", function(index)
        return distribute(plan, ins, outs[1], index)
      end))
    end, { name = "T_pool_grad", dtype = x.dtype })
    return window.relaid(result, "NCHW", own)
  end
end

compute["nn.max_pool2d_grad"] = pool_grad(to_greatest)
compute["nn.avg_pool2d_grad"] = pool_grad(to_all)

return compute
