-- pl.topi.nn: softmax, by TVM's names.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local reduction = require "perilune.topi.reduction"
local tir = require "perilune.tir"

local nn = {}

-- exp(x - max), which is computed once: two stages read it.
local function exponentials(x, axis, most)
  local shape = dims.of(x)
  return dims.compute(shape, function(index)
    local row = table.move(index, 1, #index, 1, {})
    row[axis + 1] = 0
    return tir.exp(x[index] - most[row])
  end, "T_softmax_exp", "softmax_exp")
end

--- Exponentials, normalised along an axis, -1 by default.
function nn.softmax(x, axis)
  axis = dims.axis(axis or -1, dims.tensor(x, "topi.nn.softmax").ndim, "topi.nn.softmax")
  local most = reduction.max(x, axis, true)
  local e = exponentials(x, axis, most)
  local sum = reduction.sum(e, axis, true)
  return dims.compute(dims.of(x), function(index)
    local row = table.move(index, 1, #index, 1, {})
    row[axis + 1] = 0
    return e[index] / sum[row]
  end, "T_softmax_norm", "softmax_output")
end

--- The logarithm of softmax.
function nn.log_softmax(x, axis)
  axis = dims.axis(axis or -1, dims.tensor(x, "topi.nn.log_softmax").ndim, "topi.nn.log_softmax")
  local most = reduction.max(x, axis, true)
  local sum = reduction.sum(elementwise.exp(broadcast.subtract(x, most)), axis, true)
  return broadcast.subtract(broadcast.subtract(x, most), elementwise.log(sum))
end

return nn
