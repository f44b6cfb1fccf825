--- pl.ops: the registry of operators, bound to the engine.
--
--     pl.ops["my.scale"] = {
--       args = { "x", "by", "bias?" },              -- "xs...": any number of operands
--       attrs = { axis = -1, mode = "linear", shape = { kind = "ints" } },
--       infer = function(types, attrs) return types.x end,
--       eval = function(inputs, attrs) return ... end,
--       traits = { "elementwise" },
--       doc = "x times by.",
--       onnx = { domain = "com.example", op_type = "Scale" } }
--     pl.op.my.scale(x, 2, { axis = 0 })
--     for name, op in pairs(pl.ops) do print(name, op.doc) end
--
-- infer: "same", { same_as = "x" }, "broadcast", or a function of the operands' types and the
-- attributes, with their defaults, which gives a type or the text of one (several for several
-- results), nil when it is unknown, or nil and the reason why the call is wrong. eval: a
-- function of the operands' tensors and the attributes. An operator is never replaced or
-- removed, because graphs may have calls of it.

local core = require "perilune.core"
local argument = require "perilune.argument"
local sorted_keys = require "perilune.sorted_keys"
core.internal()

local operators = {}

local fields = {
  args = true, attrs = true, infer = true, eval = true, traits = true, doc = true, onnx = true,
  results = true,
}
local attr_fields = { kind = true, default = true, required = true }
local onnx_fields = {
  domain = true, op_type = true, since_version = true, inputs = true, attributes = true,
}
local kinds = {
  int = true, bool = true, float = true, string = true, tensor = true, type = true,
  ints = true, floats = true, strings = true,
}
local traits = {
  pure = true, stateful = true, random = true, commutative = true, associative = true,
  idempotent = true, elementwise = true, broadcast = true, injective = true, reduce = true,
  opaque = true, values = true,
}

local function fail(name, text, ...)
  argument.fail(("operator '%s': %s"):format(name, text:format(...)))
end

local function check_fields(name, what, value, known)
  if type(value) ~= "table" then
    fail(name, "%s is a table, got a %s", what, argument.kind_of(value))
  end
  for field in pairs(value) do
    if not known[field] then
      fail(name, "%s has no field '%s'%s", what, tostring(field), argument.near(field, known))
    end
  end
end

-- ------------------------------------------------------------------ operands

-- "x", "x?", "xs...", "xs...?", or { name = "x", optional = true, variadic = true }.
local function operand(name, arg, i)
  if type(arg) == "table" then
    check_fields(name, ("operand %d"):format(i), arg,
      { name = true, optional = true, variadic = true })
    return { name = arg.name, optional = arg.optional, variadic = arg.variadic }
  end
  if type(arg) ~= "string" then
    fail(name, "operand %d is a name or a table, got a %s", i, argument.kind_of(arg))
  end
  local word, variadic, optional = arg:match "^(.-)(%.?%.?%.?)(%??)$"
  if #variadic % 3 ~= 0 then word = word .. variadic end
  return { name = word, optional = optional == "?", variadic = variadic == "..." }
end

local function operands(name, args)
  if type(args) ~= "table" then
    fail(name, "args is a list of the names of its operands, got a %s", argument.kind_of(args))
  end
  local list = {}
  for i, arg in ipairs(args) do list[i] = operand(name, arg, i) end
  return list
end

local function index_of(name, args, wanted)
  for i, arg in ipairs(args) do
    if arg.name == wanted or i == wanted then return i - 1 end
  end
  fail(name, "infer: it has no operand %s", tostring(wanted))
end

-- ---------------------------------------------------------------- attributes

-- A default of the attribute's kind: numbers of a float attribute are floats.
local function default_of(kind, value)
  if kind == "float" and math.type(value) == "integer" then return value + 0.0 end
  if kind ~= "floats" or type(value) ~= "table" then return value end
  local floats = {}
  for i, number in ipairs(value) do
    floats[i] = math.type(number) == "integer" and number + 0.0 or number
  end
  return floats
end

-- A default, or { kind = ..., default = ..., required = true }.
local function is_described(value)
  return type(value) == "table" and #value == 0 and next(value) ~= nil
end

local function attribute(name, attr, value)
  if not is_described(value) then
    if type(value) == "table" and #value == 0 then
      fail(name, "attribute '%s': the kind of an empty list must be said", attr)
    end
    return { name = attr, default = value }
  end
  check_fields(name, ("attribute '%s'"):format(attr), value, attr_fields)
  if value.kind ~= nil and not kinds[value.kind] then
    fail(name, "attribute '%s': there is no kind '%s'%s", attr, tostring(value.kind),
      argument.near(value.kind, kinds))
  end
  if value.kind == nil and value.default == nil then
    fail(name, "attribute '%s' has neither a kind nor a default", attr)
  end
  return { name = attr, kind = value.kind, required = value.required,
    default = default_of(value.kind, value.default) }
end

local function attributes(name, attrs)
  if type(attrs) ~= "table" then
    fail(name, "attrs is a table, got a %s", argument.kind_of(attrs))
  end
  local list, defaults = {}, {}
  for attr in pairs(attrs) do
    if type(attr) ~= "string" then
      fail(name, "the names of attributes are strings, got a %s", argument.kind_of(attr))
    end
  end
  for _, attr in ipairs(sorted_keys(attrs)) do
    local row = attribute(name, attr, attrs[attr])
    list[#list + 1] = row
    defaults[attr], row.default = row.default, nil
  end
  return list, defaults
end

-- -------------------------------------------------------------------- traits

-- A list of names, or a table name -> true, as op.traits is.
local function trait_set(name, given)
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" then
    fail(name, "traits is a list of names, got a %s", argument.kind_of(given))
  end
  local set = {}
  for key, value in pairs(given) do
    local trait = type(key) == "number" and value or key
    if not traits[trait] then
      fail(name, "there is no trait '%s'%s", tostring(trait), argument.near(trait, traits))
    end
    set[trait] = value and true or nil
  end
  if set.pure and (set.stateful or set.random) then
    fail(name, "a pure operator is neither stateful nor random")
  end
  if set.opaque and (set.elementwise or set.broadcast or set.injective or set.reduce) then
    fail(name, "an opaque operator has no pattern for FuseOps")
  end
  return set
end

-- ------------------------------------------------------------ infer and eval

local function callable(value)
  local meta = getmetatable(value)
  return type(value) == "function" or type(meta) == "table" and meta.__call ~= nil
end

-- What the engine is told: the rule, and the operand or the function.
local function infer_rule(name, spec, args, set)
  local infer = spec.infer
  if infer == nil then
    if set.elementwise and #args > 0 then return "like", 0 end
    return set.broadcast and "broadcast" or "untyped"
  end
  if callable(infer) then return "infer", nil, infer end
  if infer == "broadcast" then return "broadcast" end
  if infer == "same" then return "like", index_of(name, args, 1) end
  if type(infer) == "table" and infer.same_as ~= nil then
    check_fields(name, "infer", infer, { same_as = true })
    return "like", index_of(name, args, infer.same_as)
  end
  fail(name, "infer is a function, \"same\", { same_as = OPERAND } or \"broadcast\", got %s",
    type(infer) == "string" and ("'%s'"):format(infer) or "a " .. argument.kind_of(infer))
end

-- ---------------------------------------------------------------------- ONNX

local function check_text(name, what, value)
  if type(value) ~= "string" then
    fail(name, "%s is a string, got a %s", what, argument.kind_of(value))
  end
end

local function onnx_node(name, onnx)
  check_fields(name, "onnx", onnx, onnx_fields)
  check_text(name, "onnx.domain", onnx.domain)
  check_text(name, "onnx.op_type", onnx.op_type)
  local since = onnx.since_version
  if since ~= nil and math.type(since) ~= "integer" then
    fail(name, "onnx.since_version is an integer, got %s", tostring(since))
  end
  local renamed = {}
  if onnx.attributes ~= nil and type(onnx.attributes) ~= "table"
    or onnx.inputs ~= nil and type(onnx.inputs) ~= "table" then
    fail(name, "onnx.inputs is a list of operands and onnx.attributes a table from attributes "
      .. "to their names in ONNX")
  end
  for _, attr in ipairs(sorted_keys(onnx.attributes or {})) do
    check_text(name, "the name in ONNX of an attribute", onnx.attributes[attr])
    renamed[#renamed + 1] = { name = tostring(attr), onnx = onnx.attributes[attr] }
  end
  return { domain = onnx.domain, op_type = onnx.op_type, since_version = since,
    inputs = onnx.inputs, attributes = renamed }
end

-- ------------------------------------------------------------------ registry

local function result_count(name, results)
  if results == nil then return 1 end
  if type(results) == "table" then results = #results end
  if math.type(results) ~= "integer" or results < 1 then
    fail(name, "results is a number from 1 on, or a list of names, got %s", tostring(results))
  end
  return results
end

local function register(name, spec)
  check_fields(name, "an operator", spec, fields)
  local args = operands(name, spec.args or {})
  local attrs, defaults = attributes(name, spec.attrs or {})
  local set = trait_set(name, spec.traits or {})
  local rule, like, infer = infer_rule(name, spec, args, set)
  if spec.eval ~= nil and not callable(spec.eval) then
    fail(name, "eval is a function, got a %s", argument.kind_of(spec.eval))
  end
  if spec.doc ~= nil then check_text(name, "doc", spec.doc) end
  core.op_register {
    name = name, doc = spec.doc, args = args, attrs = attrs, defaults = defaults, traits = set,
    rule = rule, like = like, infer = infer, eval = spec.eval,
    results = result_count(name, spec.results),
    onnx = spec.onnx ~= nil and onnx_node(name, spec.onnx) or nil,
  }
end

local function assign(_, name, spec)
  if type(name) ~= "string" then argument.fail("operators are registered under names") end
  if spec ~= nil then return register(name, spec) end
  if not core.op(name) then return end
  argument.fail(("operator '%s' cannot be removed, because graphs may have calls of it")
    :format(name))
end

local function iterate()
  local names, i = core.ops(), 0
  return function()
    i = i + 1
    if names[i] then return names[i], core.op(names[i]) end
  end
end

return setmetatable(operators, {
  __name = "perilune.ops",
  __index = function(_, name) return type(name) == "string" and core.op(name) or nil end,
  __newindex = assign,
  __pairs = iterate,
})
