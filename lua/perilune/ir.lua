--- Nodes and types: constructors by kind, operators on handles, changed copies.

local core = require "perilune.core"
core.internal()

local ir = {}

--- "Module", "Node", "Tensor", "Type", "Op", "Pass", ... for objects of the
-- library, else what type() says.
function ir.kind_of(value)
  local class = getmetatable(value)
  if type(class) ~= "string" then return type(value) end
  return class:match "^perilune%.(%w+)$" or type(value)
end

local kind_of = ir.kind_of

-- ------------------------------------------------------------- constructors

-- TensorType, FuncType, TypeVar, ...
for name, make in pairs(require "perilune.types") do ir[name] = make end

--- A type from its text ("Tensor[(N, 64), float32]"), from a table
-- { shape = { "N", 64 }, dtype = "float32" }, or itself.
function ir.type(spec)
  if type(spec) ~= "table" then return core.type(spec) end
  local shape = "*"
  if spec.shape then
    local dims = {}
    for i, dim in ipairs(spec.shape) do dims[i] = tostring(dim) end
    shape = ("(%s)"):format(table.concat(dims, ", "))
  end
  return core.type(("Tensor[%s, %s]"):format(shape, spec.dtype or "?"))
end

local function as_type(spec)
  if spec == nil then return nil end
  return ir.type(spec)
end

--- A variable of a new identity.
function ir.Var(name, type_)
  return core.var(name, as_type(type_))
end

ir.Constant = core.constant
ir.Absent = core.absent

--- A function of the module, by name; its type is looked up there.
function ir.GlobalVar(name, type_)
  return core.global_var(name, as_type(type_))
end

ir.Op = core.op_value

--- A tuple of values: ir.Tuple { a, b } or ir.Tuple(a, b).
function ir.Tuple(first, ...)
  if type(first) == "table" and select("#", ...) == 0 then return core.tuple(first) end
  return core.tuple { first, ... }
end

--- Field `index` of a tuple, counted from 0 as in Relay's text.
ir.TupleGetItem = core.get

--- A call of an operator (an Op or its name) or of any other expression.
-- `attrs` may have n_results: a call that gives a tuple of so many.
function ir.Call(callee, args, attrs)
  args = args or {}
  if type(callee) == "string" or kind_of(callee) == "Op" then
    local op = type(callee) == "string" and ir.find_op(callee) or callee
    local n = args.n or #args
    if attrs == nil then attrs = {} end
    local list = table.move(args, 1, n, 1, {})
    list[n + 1] = attrs
    return core.call(op, table.unpack(list, 1, n + 1))
  end
  return core.apply(callee, args, attrs)
end

--- A function of parameters and a body; `ret_type` may be left out.
function ir.Function(params, body, ret_type, attrs)
  if attrs == nil and type(ret_type) == "table" and not ret_type.dtype then
    ret_type, attrs = nil, ret_type
  end
  return core.func(params, body, as_type(ret_type), attrs)
end

ir.Let = core.let
ir.If = core.if_
ir.RefCreate = core.ref_create
ir.RefRead = core.ref_read
ir.RefWrite = core.ref_write
--- The sum of two loop-level integers (TIR's Add).
ir.Add = core.prim_add

--- Gives the kinds of nodes: a list of { name, class, fields, doc }.
ir.kinds = core.kinds

--- The operator of that name; raises with the nearest ones when there is none.
function ir.find_op(name)
  local op = core.op(name)
  if op then return op end
  error(("no operator is called '%s'%s"):format(name, core.suggest(name, core.ops())), 0)
end

-- ------------------------------------------------------------- changed copies

local function merged(old, changes)
  if changes == nil then return old end
  local attrs = {}
  for name, value in pairs(old) do attrs[name] = value end
  for name, value in pairs(changes) do attrs[name] = value end
  return attrs
end

-- nil when the caller did not name it: then the node's own.
local function pick(changes, node, field)
  local value = changes[field]
  if value == nil then return node[field] end
  return value
end

local function with_call(node, changes)
  local attrs = merged(node.attrs, changes.attrs)
  if node.n_results > 0 then
    attrs = merged(attrs, { n_results = node.n_results })
  end
  local args = pick(changes, node, "args")
  if changes.op or node.op then
    return ir.Call(changes.op or node.op, args, attrs)
  end
  return core.apply(pick(changes, node, "callee"), args, attrs, node.n_results)
end

local copiers = {
  Call = with_call,
  Var = function(node, changes)
    return ir.Var(pick(changes, node, "name"), pick(changes, node, "type"))
  end,
  Constant = function(node, changes) return ir.Constant(pick(changes, node, "data")) end,
  GlobalVar = function(node, changes)
    return ir.GlobalVar(pick(changes, node, "name"), changes.type)
  end,
  Tuple = function(node, changes) return core.tuple(pick(changes, node, "fields")) end,
  TupleGetItem = function(node, changes)
    return core.get(pick(changes, node, "tuple"), pick(changes, node, "index"))
  end,
  Function = function(node, changes)
    return core.func(pick(changes, node, "params"), pick(changes, node, "body"),
      as_type(changes.ret_type), merged(node.attrs, changes.attrs))
  end,
  If = function(node, changes)
    return core.if_(pick(changes, node, "cond"), pick(changes, node, "then_branch"),
      pick(changes, node, "else_branch"))
  end,
  Let = function(node, changes)
    return core.let(pick(changes, node, "var"), pick(changes, node, "value"),
      pick(changes, node, "body"))
  end,
  RefCreate = function(node, changes) return core.ref_create(pick(changes, node, "value")) end,
  RefRead = function(node, changes) return core.ref_read(pick(changes, node, "ref")) end,
  RefWrite = function(node, changes)
    return core.ref_write(pick(changes, node, "ref"), pick(changes, node, "value"))
  end,
}

local methods = {}

--- A copy with other fields: call:with { args = { x } }, fn:with { body = y }.
-- Attributes are merged into the old ones.
function methods.with(node, changes)
  local copier = copiers[node.kind]
  if not copier then error(("a %s has no changed copies"):format(node.kind), 2) end
  for field in pairs(changes) do
    if field ~= "op" and field ~= "attrs" and field ~= "ret_type" and node[field] == nil then
      error(("a %s has no field '%s'"):format(node.kind, tostring(field)), 2)
    end
  end
  return copier(node, changes)
end

--- Field `index` of a tuple-valued node, counted from 0.
function methods.get(node, index) return core.get(node, index) end

--- All results of a tuple-valued node, in order.
function methods.unpack(node)
  local fields = {}
  for i = 1, #node.type.parts do fields[i] = core.get(node, i - 1) end
  return table.unpack(fields)
end

--- Whether every rule of the IR holds: true, or nil and a diagnostic.
methods.verify = core.verify_node

-- Comparisons are methods: Lua turns the result of < into a boolean.
for method, name in pairs {
  less = "less", less_equal = "less_equal", greater = "greater",
  greater_equal = "greater_equal", equal = "equal", not_equal = "not_equal",
  logical_and = "logical_and", logical_or = "logical_or", logical_not = "logical_not",
} do
  methods[method] = function(...) return core.call(ir.find_op(name), ...) end
end

-- ----------------------------------------------------------------- operators

local function operator(name)
  return function(a, b) return core.call(ir.find_op(name), a, b) end
end

core.extend("perilune.Node", methods, {
  __add = operator "add",
  __sub = operator "subtract",
  __mul = operator "multiply",
  __div = operator "divide",
  __mod = operator "mod",
  __pow = operator "power",
  __idiv = function(a, b)
    return core.call(ir.find_op "floor", core.call(ir.find_op "divide", a, b))
  end,
  __unm = function(a) return core.call(ir.find_op "negative", a) end,
  --- fn(args...) calls a function-valued expression
  __call = function(callee, ...) return core.apply(callee, { ... }) end,
})

core.extend("perilune.Op", {}, { __call = core.call })

return ir
