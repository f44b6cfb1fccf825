--- Types: a constructor for each kind, visits and changed copies.
--
-- perilune.ir takes these names over: pl.ir.FuncType and so on. Types are equal
-- numbers inside the engine: == compares them, and they serve as table keys.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local types = {}

--- A tensor of a shape ({ 2, "N+1", "?" }; nil: of unknown rank) and a dtype.
function types.TensorType(shape, dtype)
  local dims = "*"
  if shape then
    local texts = {}
    argument.table(shape, "ir.TensorType", "shape")
    for i, dim in ipairs(shape) do texts[i] = tostring(dim) end
    dims = ("(%s)"):format(table.concat(texts, ", "))
  end
  return core.type(("Tensor[%s, %s]"):format(dims, dtype or "?"))
end

--- A tuple of fields.
function types.TupleType(fields) return core.type_make("tuple", nil, fields) end

--- fn [type_params](params) -> ret, on condition of constraints (relations).
types.FuncType = core.type_func

--- A reference to a cell.
function types.RefType(element) return core.type_make("ref", nil, { element }) end

--- A new type variable, equal to no other; `kind` is "Type" unless said.
types.TypeVar = core.type_var

--- The name of a data type, without arguments; `kind` is "AdtHandle" unless said.
types.GlobalTypeVar = core.type_global_var

--- A data type (its name, or a GlobalTypeVar) with its arguments.
function types.TypeCall(name, args)
  if type(name) ~= "string" then
    if argument.kind_of(name) ~= "Type" then argument.string(name, "ir.TypeCall", "name") end
    if name.var_kind ~= "AdtHandle" then
      argument.fail(("a type that takes arguments must be of kind AdtHandle, but %s is of kind %s")
        :format(tostring(name), name.var_kind or "Type"))
    end
    name = name.name
  end
  return core.type_make("call", name, args)
end

--- A constraint: the relation `name` holds among `args`, of which the first
-- `n_inputs` (all, unless said) are given and the rest follow. Solved when a
-- function of such a type is called: "Broadcast" by the inference of add, with
-- `attrs` as Relay's text has them.
types.TypeRelation = core.type_relation

--- A new type that is not known yet, equal to no other.
types.IncompleteType = core.type_hole

--- Loop level: a scalar, a vector of `lanes`, or without dtype a handle.
types.PrimType = core.type_prim

--- Loop level: a pointer to elements in a storage scope, such as "global".
function types.PointerType(element, scope)
  return core.type_make("pointer", scope or "global", { element })
end

-- ONNX's kinds
function types.SequenceType(element) return core.type_make("sequence", nil, { element }) end
function types.OptionalType(element) return core.type_make("optional", nil, { element }) end
function types.MapType(key, value) return core.type_make("map", nil, { key, value }) end
function types.SparseType(element) return core.type_make("sparse", nil, { element }) end
function types.OpaqueType(name) return core.type_make("opaque", name) end

-- ------------------------------------------------------------------- walking

local methods = {}

-- Calls leave(type, parts) for each distinct part once, parts before the whole.
local function walk(root, leave)
  local stack, parts_of, done = { root }, {}, {}
  while #stack > 0 do
    local top = stack[#stack]
    if done[top] then
      stack[#stack] = nil
    elseif parts_of[top] then
      stack[#stack] = nil
      done[top] = true
      leave(top, parts_of[top])
    else
      local parts = core.type_parts(top)
      parts_of[top] = parts
      for i = #parts, 1, -1 do
        if not done[parts[i]] then stack[#stack + 1] = parts[i] end
      end
    end
  end
end

--- Calls f with each distinct part and then with the type itself, a function's
-- type parameters and constraints among them.
function methods.visit(self, f)
  argument.callable(f, "type:visit", "f")
  walk(self, function(part) f(part) end)
end

--- The type with f(part) in place of each part, parts first; f may give nil to
-- leave one as it is. The same type when nothing changes.
function methods.map(self, f)
  local image = {}
  argument.callable(f, "type:map", "f")
  walk(self, function(part, parts)
    local changed = false
    for i, inner in ipairs(parts) do
      changed = changed or image[inner] ~= inner
      parts[i] = image[inner]
    end
    local new = changed and core.type_rebuild(part, parts) or part
    local answer = f(new)
    image[part] = answer == nil and new or core.type(answer)
  end)
  return image[self]
end

--- The type with others in place of type variables: { [var] = type }.
function methods.substitute(self, map)
  local vars, images = {}, {}
  for var, image in pairs(argument.table(map, "type:substitute", "map")) do
    vars[#vars + 1] = var
    images[#images + 1] = image
  end
  return core.type_substitute(self, vars, images)
end

--- The type that both must be, or nil when they contradict each other: what one
-- leaves open is taken from the other, `?` matches any dim.
function methods.unify(self, other) return core.type_unify(self, other) end

core.extend("perilune.Type", methods)

return types
