-- Computes of scatter_elements and scatter_nd: a copy, then each update in its order: the last
-- update of an element stays.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local te = require "perilune.te"
local tir = require "perilune.tir"

local compute = {}

-- What an element becomes of itself and an update.
local combine = {
  none = function(_, update) return update end,
  update = function(_, update) return update end,
  add = function(old, update) return old + update end,
  mul = function(old, update) return old * update end,
  max = function(old, update)
    return tir.Select(dims.keeps_greater(old, update), old, update)
  end,
  min = function(old, update) return tir.Select(dims.keeps_less(old, update), old, update) end,
}

-- target(ins, index of an update) is the index of its element.
local function scatter(name, attrs, inputs, target)
  local f, x, updates = combine[attrs.reduction or "none"], inputs[1], inputs[3]
  if not f then return nil, "reduction " .. attrs.reduction end
  if x.dtype == "bool" and f ~= combine.none and f ~= combine.update then return nil, "of bools" end
  local shape = dims.of(x)
  return te.extern(shape, { x, inputs[2], updates }, function(ins, outs)
    local copy = loops.nest(shape, "i", function(index)
      return tir.BufferStore(outs[1], tir.BufferLoad(ins[1], index), index)
    end)
    return loops.seq(copy, loops.nest(dims.of(updates), "u", function(index)
      local own = target(ins[2], index)
      return tir.BufferStore(outs[1], f(tir.BufferLoad(outs[1], own),
        tir.BufferLoad(ins[3], index)), own)
    end))
  end, { name = "T_" .. name, dtype = x.dtype })
end

compute.scatter_elements = function(attrs, inputs)
  local x = inputs[1]
  if x.ndim == 0 then return nil, "a scalar" end
  local axis = dims.axis(attrs.axis or 0, x.ndim, "scatter_elements") + 1
  if dims.product(dims.of(inputs[3])) == 0 then return nil, "no updates" end
  return scatter("scatter_elements", attrs, inputs, function(indices, index)
    local own = table.move(index, 1, #index, 1, {})
    own[axis] = dims.position(tir.BufferLoad(indices, index), dims.of(x)[axis], "strict")
    return own
  end)
end
compute.scatter = compute.scatter_elements

-- Index vectors are along the last axis of the indices.
compute.scatter_nd = function(attrs, inputs)
  local x, shape = inputs[1], dims.of(inputs[2])
  if attrs.relay == 1 then return nil, "Relay's form" end
  if dims.product(dims.of(inputs[3])) == 0 then return nil, "no updates" end
  return scatter("scatter_nd", attrs, inputs, function(indices, index)
    local own = {}
    for i = 1, shape[#shape] do
      local place = table.move(index, 1, #shape - 1, 1, {})
      place[#shape] = i - 1
      own[i] = dims.position(tir.BufferLoad(indices, place), dims.of(x)[i], "strict")
    end
    return table.move(index, #shape, #index, #own + 1, own)
  end)
end

return compute
