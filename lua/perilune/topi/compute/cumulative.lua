-- Computes of running sums and products along an axis.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

-- The axis, from 1: an attribute or an operand.
local function axis_of(attrs, inputs, args)
  local axis = attrs.axis
  if inputs[2] then
    if not args[2].constant then return nil, "an axis that is not constant" end
    axis = args[2].constant:to_table()
    if type(axis) == "table" then axis = axis[1] end
  end
  return dims.axis(axis or 0, inputs[1].ndim, "cumsum") + 1
end

local function joined(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end

-- The statement: the first row along the axis, then each from the one before it.
local function running(x, out, shape, axis, rule)
  local n = shape[axis]
  local outer = table.move(shape, 1, axis - 1, 1, {})
  local inner = table.move(shape, axis + 1, #shape, 1, {})
  return loops.nest(outer, "i", function(before)
    local function row(k, value)
      return loops.nest(inner, "j", function(behind)
        local function at(i)
          return joined(joined(before, { rule.reverse and n - 1 - i or i }), behind)
        end
        return tir.BufferStore(out, value(at, k), at(k))
      end)
    end
    local first = row(operand.const(0, "int32"), function(at, k)
      return rule.exclusive and operand.const(rule.neutral, out.dtype) or tir.BufferLoad(x, at(k))
    end)
    if n == 1 then return first end
    local k = tir.Var("k", "int32")
    return loops.seq(first, tir.For(k, 1, n - 1, "serial", row(k, function(at)
      local own = tir.BufferLoad(x, at(rule.exclusive and k - 1 or k))
      return rule.combine(tir.BufferLoad(out, at(k - 1)), own)
    end)))
  end)
end

local function define(name, combine, neutral)
  compute[name] = function(attrs, inputs, out_type, args)
    local x, dtype = inputs[1], out_type.dtype
    if x.dtype == "bool" or dtype == "bool" then return nil, "of bools" end
    if not inputs[2] and attrs.axis == nil then x = transform.reshape(x, { -1 }) end
    local axis, reason = axis_of(attrs, { x, inputs[2] }, args)
    if not axis then return nil, reason end
    if x.dtype ~= dtype then x = elementwise.cast(x, dtype) end
    local shape = dims.of(x)
    if dims.product(shape) == 0 then return elementwise.identity(x) end
    local rule = { combine = combine, neutral = neutral, reverse = attrs.reverse == 1,
      exclusive = attrs.exclusive == 1 }
    return te.extern(shape, { x }, function(ins, outs)
      return running(ins[1], outs[1], shape, axis, rule)
    end, { name = "T_" .. name, dtype = dtype })
  end
end

define("cumsum", tir.add, 0)
define("cumprod", tir.multiply, 1)

return compute
