--- Computes float16 operators in float32, and rounds only where elements are
-- moved or leave the function. So does ONNX Runtime on CPUs, with optimisations
-- off too, and so were made the expected outputs of most float16 models; a
-- difference of rounding grows through the layers of a network. The evaluator
-- itself rounds after each operator, as the operators' definitions say.
--
--     nn.relu(nn.conv2d(%x, %w))
--     =>  cast(nn.relu(nn.conv2d(cast(%x), cast(%w))), to=10)

local pl = require "perilune"

-- As TensorProto numbers them.
local FLOAT, FLOAT16 = 1, 10

local is_cast = { [pl.op.cast] = true, [pl.op.cast_like] = true, [pl.op.bit_cast] = true }

local function is_half(type)
  return type.kind == "tensor" and type.dtype == "float16"
end

-- What only moves elements or converts, or computes with functions (If, Loop, Scan), whose bodies
-- are rewritten by themselves.
local function stays(call)
  local op = call.op
  if not op or is_cast[op] or op.traits.injective or call.effect ~= "none" then return true end
  for _, arg in ipairs(call.args) do
    if arg.type.kind == "func" then return true end
  end
  return false
end

-- The call on float32; nil when it has no halves, or cannot be.
local function widen(call, wide)
  local args, any = call.args, false
  for i, arg in ipairs(args) do
    if is_half(arg.type) then
      args[i], any = wide[arg] or pl.op.cast(arg, { to = FLOAT }), true
    end
  end
  local ok, new = pcall(call.with, call, { args = args })
  return any and ok and new or nil
end

local function pass(fn)
  local wide = {} -- by the float16 node that stands for it

  -- What stands for a value of type `old`; nil when `new` cannot.
  local function narrow(old, new)
    if not is_half(old) then return new.type == old and new or nil end
    if new.type.dtype ~= "float32" then return nil end
    local half = pl.op.cast(new, { to = FLOAT16 })
    wide[half] = new
    return half
  end

  local function narrow_fields(old, new)
    local list = {}
    for i, type in ipairs(old.parts) do
      list[i] = narrow(type, new:get(i - 1))
      if not list[i] then return nil end
    end
    return pl.tuple(list)
  end

  -- A float16 between two float32s is passed over.
  local function rewrite_cast(call)
    local from, to = call.args[1], call.attrs.to
    if to == FLOAT16 and from.type.dtype == "float32" then wide[call] = from end
    return to == FLOAT and wide[from] or call
  end

  return pl.mutator {
    Call = function(_, rebuild)
      local call = rebuild()
      if call.op == pl.op.cast then return rewrite_cast(call) end
      local new = not stays(call) and widen(call, wide)
      if not new then return call end
      local put = call.n_results > 0 and narrow_fields or narrow
      return put(call.type, new) or call
    end,
    TupleGetItem = function(_, rebuild)
      local get = rebuild()
      local tuple = get.tuple
      return tuple.kind == "Tuple" and tuple.fields[get.index + 1] or get
    end,
  }(fn)
end

return pl.function_pass { name = "emulate_float16", run = pass,
  doc = "Compute float16 operators in float32, rounding where elements are moved or leave." }
