-- Blocked layouts: a tensor (N, C, H, W) in memory as (N, C / b, H, W, b), so that the b channels
-- of a pixel are a vector. Convolutions and pools of a model then read and write vectors, and no
-- data is rearranged between them.
--
-- LowerTE decides which results of calls are blocked (`assign`). A compute sees a blocked operand
-- as a view of shape (N, C, H, W), which is computed where it is used; one that gains from blocks
-- asks for what is behind the view (`of`), and gives a view itself.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local tir = require "perilune.tir"

local layout = {}

-- Lanes of blocks, the best one first.
local BLOCKS = { 16, 8 }

-- ----------------------------------------------------------------------- views

local behind = setmetatable({}, { __mode = "k" })

--- The block for that many channels; nil: they are no multiple of one.
function layout.block(channels)
  for _, block in ipairs(BLOCKS) do
    if math.type(channels) == "integer" and channels > 0 and channels % block == 0 then
      return block
    end
  end
end

--- The shape (N, C / b, H, W, b) of a tensor of shape (N, C, H, W).
function layout.shape(shape, block)
  return { shape[1], shape[2] // block, shape[3], shape[4], block }
end

--- The view of shape (N, C, H, W) of a blocked tensor.
function layout.view(tensor)
  local shape = dims.of(tensor)
  local block = shape[5]
  local view = dims.compute({ shape[1], shape[2] * block, shape[3], shape[4] }, function(index)
    return tensor[{ index[1], tir.indexdiv(index[2], block), index[3], index[4],
      tir.indexmod(index[2], block) }]
  end, "T_view", "injective,blocked_view")
  behind[view] = tensor
  return view
end

--- The blocked tensor behind a view, and its block; nil of other tensors.
function layout.of(tensor)
  local blocked = behind[tensor]
  if blocked then return blocked, dims.of(blocked)[5] end
end

--- A tensor (N, C, H, W) as a blocked one.
function layout.blocked(tensor, block)
  return dims.compute(layout.shape(dims.of(tensor), block), function(index)
    return tensor[{ index[1], index[2] * block + index[5], index[3], index[4] }]
  end, "T_blocked", "injective")
end

-- ------------------------------------------------------------------ assignment

local products = { ["nn.conv"] = true, ["nn.conv2d"] = true }

local windows = { ["nn.max_pool"] = true, ["nn.avg_pool"] = true, ["nn.max_pool2d"] = true,
  ["nn.avg_pool2d"] = true, ["nn.global_avg_pool"] = true, ["nn.global_max_pool"] = true,
  ["nn.global_avg_pool2d"] = true, ["nn.global_max_pool2d"] = true }

local function channels_first(attrs)
  local from, to = attrs.data_layout or attrs.layout or "NCHW", attrs.out_layout or ""
  return from == "NCHW" and (to == "" or to == "NCHW")
end

-- "product", "window" or "map", by what a primitive function computes; nil: something else.
local function kind_of(fn)
  local kind = "map"
  for node in fn:nodes() do
    if node.kind == "Call" then
      local name = node.op and node.op.name
      if not name then return nil end
      local known = products[name] and "product" or windows[name] and "window"
      if known and (kind ~= "map" or not channels_first(node.attrs or {})) then return nil end
      if not known and (core.op_attr_get(name, "TOpPattern") or 8) > 1 then return nil end
      kind = known or kind
    end
  end
  return kind
end

local function is_image(type_)
  local shape = type_.kind == "tensor" and type_.dtype == "float32" and type_.shape
  return shape and #shape == 4 and math.type(shape[3]) == "integer"
    and math.type(shape[4]) == "integer"
end

-- The values that something else than a primitive function uses; nil where control flow is.
local function plain_values(fn, is_primitive)
  local plain = { [fn.body] = true }
  for node in fn:nodes() do
    if node.kind == "Call" and not is_primitive(node.callee) then
      for _, arg in ipairs(node.args) do plain[arg] = true end
    elseif node.kind == "Tuple" then
      for _, field in ipairs(node.fields) do plain[field] = true end
    elseif node.kind == "Let" or node.kind == "If" or node.kind == "Match" then
      return nil
    end
  end
  return plain
end

--- Under this key decisions (perilune.topi.decision) have what the results of convolutions are in
-- memory, by their number among those that may be blocked: conv0=plain conv1=8 conv2=NHWC. The
-- last one is a block of all channels.
layout.KEY = "layout"

-- The block of the result of a convolution, as it was decided; nil: it stays plain.
local function decided_block(decide, n, channels)
  local candidates = {}
  for _, block in ipairs(BLOCKS) do
    if channels % block == 0 then candidates[#candidates + 1] = tostring(block) end
  end
  candidates[#candidates + 1] = "plain"
  if tostring(channels) ~= candidates[1] then candidates[#candidates + 1] = "NHWC" end
  local chosen = decide("conv" .. n, candidates)
  return chosen == "NHWC" and channels or math.tointeger(tonumber(chosen))
end

-- The block of a result that is computed element by element, or in windows, of these operands: all
-- channels where one of them is (N, H, W, C) in memory.
local function following_block(blocks, args, channels)
  for _, arg in ipairs(args) do
    local block = blocks[arg]
    if block and block == arg.type.shape[2] and block == channels then return channels end
  end
  return layout.block(channels)
end

--- The blocks of results of calls of primitive functions, by the call. A result is blocked if it is
-- that of a convolution, or of a pool or map of a blocked one, and only primitive functions use it.
-- decide(name, candidates): the candidate for a convolution, as decision.decider makes it.
function layout.assign(fn, is_primitive, decide)
  local blocks, kinds, n = {}, {}, 0
  local plain = plain_values(fn, is_primitive)
  if not plain then return blocks end
  for node in fn:nodes() do
    if node.kind == "Call" and is_primitive(node.callee) and is_image(node.type)
      and not plain[node] then
      local callee = node.callee
      if kinds[callee] == nil then kinds[callee] = kind_of(callee) or false end
      local gains = kinds[callee] == "product"
      for _, arg in ipairs(node.args) do gains = gains or blocks[arg] ~= nil end
      local channels = node.type.shape[2]
      local block = kinds[callee] and gains and layout.block(channels) or nil
      if block and kinds[callee] == "product" and decide then
        block = decided_block(decide, n, channels)
        n = n + 1
      elseif block then
        block = following_block(blocks, node.args, channels)
      end
      blocks[node] = block
    end
  end
  return blocks
end

return layout
