--- Inputs that are made for what is run: random by a seed, of the sizes that types declare.

local argument = require "perilune.argument"
local core = require "perilune.core"
local generator = require "perilune.check.input_generator"
core.internal()

local inputs = {}

--- The function that is run: @main, or the only one.
function inputs.entry(mod, where)
  local names = mod.names
  local name = mod.functions.main and "main" or #names == 1 and names[1]
  if not name then argument.fail(where .. ": the module has no function @main") end
  return mod.functions[name], name
end

local function for_function(fn, seed)
  local args = { n = #fn.params }
  for i, param in ipairs(fn.params) do
    local value, diag = generator.value(param.type, param.type.shape or false,
      { kind = "ordinary", indices = true }, seed + i)
    if not value then core.raise(diag) end
    args[i] = value
  end
  return args
end

local function shape_of(buffer, name)
  local shape = {}
  for axis, dim in ipairs(buffer.shape) do
    if dim.kind ~= "IntImm" then
      argument.fail(("the buffer '%s' has a dimension that is no number: %s"):format(name,
        tostring(dim)))
    end
    shape[axis] = dim.value
  end
  return shape
end

local function for_param(param, buffer, seed)
  local dtype = (buffer or param).dtype
  local base, lanes = dtype:match "^(.-%d)x(%d+)$"
  local shape = buffer and shape_of(buffer, param.name) or {}
  if lanes then shape[#shape + 1] = tonumber(lanes) end
  return core.generate_input(base or dtype, shape, dtype:find "int" and "small" or "ordinary", seed)
end

-- A buffer or a scalar for each parameter of a PrimFunc.
local function for_prim_func(fn, seed)
  local buffers, args = {}, { n = #fn.params }
  for _, stmt in ipairs(fn.stmts) do
    if stmt.kind == "BufferBind" then buffers[stmt.param] = stmt.buffer end
  end
  for i, param in ipairs(fn.params) do args[i] = for_param(param, buffers[param], seed + i) end
  return args
end

--- Arguments for a function, a list with `n`. Raises when a size is open.
function inputs.make(fn, seed)
  return (fn.kind == "PrimFunc" and for_prim_func or for_function)(fn, seed)
end

--- The same, from those in the table `shared` if a function of the same parameters got them.
function inputs.shared(fn, seed, shared)
  if fn.kind == "PrimFunc" then return inputs.make(fn, seed) end
  local types = {}
  for i, param in ipairs(fn.params) do types[i] = tostring(param.type) end
  local key = table.concat(types, ";")
  shared[key] = shared[key] or inputs.make(fn, seed)
  return shared[key]
end

return inputs
