--- Nodes and types: constructors by kind, operators on handles, changed copies.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local kinds = require "perilune.tir.kinds"
local lazy = require "perilune.lazy"
local operator_name = require "perilune.ir.operator_name"

local changed_copy = lazy "perilune.tir.changed_copy"
local loop_level = lazy "perilune.tir.operators"
local tir = lazy "perilune.tir"

local ir = {}

--- "Module", "Node", "Tensor", "Type", "Op", "Pass", ... for objects of the
-- library, else what type() says.
ir.kind_of = argument.kind_of

local kind_of = ir.kind_of

-- ------------------------------------------------------------- constructors

-- TensorType, FuncType, TypeVar, ...
for name, make in pairs(require "perilune.ir.types") do ir[name] = make end

--- A type from its text ("Tensor[(N, 64), float32]"), from a table
-- { shape = { "N", 64 }, dtype = "float32" }, or itself.
function ir.type(spec)
  if type(spec) ~= "table" then return core.type(spec) end
  local shape = "*"
  if spec.shape then
    local dims = {}
    argument.table(spec.shape, "pl.type", "shape")
    for i, dim in ipairs(spec.shape) do dims[i] = tostring(dim) end
    shape = ("(%s)"):format(table.concat(dims, ", "))
  end
  return core.type(("Tensor[%s, %s]"):format(shape, spec.dtype or "?"))
end

local function as_type(spec)
  if spec == nil then return nil end
  return ir.type(spec)
end

local function as_types(list)
  if list == nil then return nil end
  argument.table(list, "ir.Call", "type arguments")
  local types_ = {}
  for i, spec in ipairs(list) do types_[i] = ir.type(spec) end
  return types_
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

local MOST_ARGUMENTS = 900000 -- they go over on the stack

--- A call of an operator (an Op or its name) or of any other expression.
-- `attrs` may have n_results: a call that gives a tuple of so many. `type_args`,
-- a list of types for the type parameters of what is called, may be left out, or
-- be short, as arguments tell them as a rule; operators have none.
function ir.Call(callee, args, attrs, type_args)
  args = args and argument.table(args, "ir.Call", "arguments") or {}
  if type_args ~= nil then argument.table(type_args, "ir.Call", "type_args") end
  if type(callee) == "string" or kind_of(callee) == "Op" then
    if type_args and #type_args > 0 then argument.fail "operators have no type arguments" end
    local op = type(callee) == "string" and ir.find_op(callee) or callee
    local n = args.n or #args
    if math.type(n) ~= "integer" or n < 0 or n > MOST_ARGUMENTS then
      argument.fail(("ir.Call: n is an integer from 0 to %d"):format(MOST_ARGUMENTS))
    end
    if attrs == nil then attrs = {} end
    local list = table.move(args, 1, n, 1, {})
    list[n + 1] = attrs
    return core.call(op, table.unpack(list, 1, n + 1))
  end
  return core.apply(callee, args, attrs, 0, as_types(type_args))
end

local function_options = { "ret_type", "attrs", "type_params" }
-- Attributes that TVM's and this library's passes read.
local function_attrs = { "Primitive", "Compiler", "Composite", "Inline", "Extern", "Closure",
  "SkipOptimization", "PartitionedFromPattern", "__params__", "global_symbol", "target",
  "calling_conv" }
local function_names = table.move(function_options, 1, #function_options, #function_attrs + 1,
  { table.unpack(function_attrs) })

local function is_one_of(name, names)
  for _, known in ipairs(names) do if known == name then return true end end
  return false
end

-- Beside those, attributes are called as TVM's are: CamelCase, or qualified
-- (relay.reshape_only), which no option is.
local function is_attribute_name(name)
  if is_one_of(name, function_attrs) then return true end
  return type(name) == "string" and name:find "^%u" ~= nil or tostring(name):find("%.") ~= nil
end

local function check_function_name(name)
  local near = core.suggest(tostring(name), function_names)
  if is_one_of(name, function_names) or is_attribute_name(name) and near == "" then return end
  argument.fail(("pl.func: there is no option '%s'%s Attributes of any name are given as "
    .. "{ attrs = { ... } }"):format(tostring(name), near == "" and "." or near))
end

-- ret_type, attrs, type_params of a table in the third place. It has options,
-- attributes, or both.
local function read_function_options(options)
  local attrs
  for name, value in pairs(options) do
    check_function_name(name)
    if not is_one_of(name, function_options) then
      attrs = attrs or {}
      attrs[name] = value
    end
  end
  if attrs and options.attrs then
    argument.fail(("pl.func: the attribute '%s' belongs into attrs, which are given too")
      :format(next(attrs)))
  end
  return options.ret_type, options.attrs or attrs, options.type_params
end

--- A function of parameters and a body; `ret_type` may be left out. A generic
-- function has type variables, a list of types, as `type_params`. The last three may
-- come as one table, { ret_type =, attrs =, type_params = }, in which attributes that
-- are called as TVM's are (Primitive, Compiler, relay.reshape_only) may stand beside
-- the options.
function ir.Function(params, body, ret_type, attrs, type_params)
  argument.table(params, "pl.func", "params")
  if body == nil then argument.fail "pl.func: a body expected, got nil" end
  if attrs == nil and type(ret_type) == "table" and not ret_type.dtype then
    ret_type, attrs, type_params = read_function_options(ret_type)
  end
  return core.func(params, body, as_type(ret_type), attrs, type_params)
end

ir.Let = core.let
ir.If = core.if_

--- A constructor of an algebraic data type; its type may be left out.
function ir.Constructor(name, type_)
  return core.constructor(name, as_type(type_))
end

ir.PatternWildcard = core.pattern_wildcard
--- Fits every value and binds it to a Var.
ir.PatternVar = core.pattern_var
ir.PatternTuple = core.pattern_tuple

--- Fits what a constructor (itself or its name) made of fields that fit.
function ir.PatternConstructor(constructor, patterns)
  local name = kind_of(constructor) == "Node" and constructor.name or constructor
  return core.pattern_constructor(name, patterns or {})
end

local function simple_pattern(spec)
  if spec == "_" then return core.pattern_wildcard() end
  return kind_of(spec) == "Node" and spec.kind == "Var" and core.pattern_var(spec) or spec
end

-- What patterns may be written as: a Var binds, "_" fits all, a list is a tuple.
local function as_pattern(spec)
  if type(spec) ~= "table" then return simple_pattern(spec) end
  local open, frames = { [spec] = true }, { { list = spec, fields = {} } }
  while true do
    local frame = frames[#frames]
    local field = frame.list[#frame.fields + 1]
    if type(field) == "table" then
      if open[field] then argument.fail "ir.Match: a pattern has itself as a field" end
      open[field] = true
      frames[#frames + 1] = { list = field, fields = {} }
    elseif field ~= nil then
      frame.fields[#frame.fields + 1] = simple_pattern(field)
    else
      local made = core.pattern_tuple(frame.fields)
      frames[#frames], open[frame.list] = nil, nil
      if #frames == 0 then return made end
      table.insert(frames[#frames].fields, made)
    end
  end
end

--- The first arm whose pattern fits: ir.Match(data, { { pattern, body }, ... }).
-- Clauses of another Match are arms too. { complete = false } says that other
-- values come without a match.
function ir.Match(data, arms, options)
  local patterns, bodies = {}, {}
  argument.options(options, "ir.Match", { "complete" })
  for i, arm in ipairs(argument.table(arms, "ir.Match", "arms")) do
    local clause = kind_of(arm) == "Node"
    if not clause then argument.table(arm, "ir.Match", "an arm") end
    patterns[i] = clause and arm.lhs or as_pattern(arm[1])
    bodies[i] = clause and arm.rhs or arm[2]
  end
  return core.match(data, patterns, bodies, not options or options.complete ~= false)
end

--- An arm that ir.Match takes: a pattern and what is evaluated when it fits.
function ir.Clause(lhs, rhs)
  return ir.Match(ir.Var "data", { { lhs, rhs } }, { complete = false }).clauses[1]
end

--- A let where it is no body: as it is, for that is what it stands in.
function ir.LetBlock(let)
  if kind_of(let) ~= "Node" or let.kind ~= "Let" and let.kind ~= "LetBlock" then
    argument.fail("a LetBlock is made of a Let")
  end
  return let
end

ir.RefCreate = core.ref_create
ir.RefRead = core.ref_read
ir.RefWrite = core.ref_write

--- Gives the kinds of nodes: a list of { name, class, fields, doc }.
ir.kinds = core.kinds

--- The operator of that name; raises with the nearest ones when there is none.
function ir.find_op(name)
  argument.string(name, "ir.find_op", "name")
  return operator_name.find(name) or argument.fail(operator_name.unknown(name))
end

-- ------------------------------------------------------------- changed copies

local function merged(old, changes)
  if changes == nil then return old end
  local attrs = {}
  for name, value in pairs(old) do attrs[name] = value end
  for name, value in pairs(changes) do attrs[name] = value end
  return attrs
end

local function with_call(node, now, changes)
  if changes.callee then now.op = nil end
  local attrs = merged(node.attrs, now.attrs)
  if changes.type_args and not now.op then
    attrs = merged(attrs, {})
    attrs.type_args = nil
  end
  if node.n_results > 0 then
    attrs = merged(attrs, { n_results = node.n_results })
  end
  if now.op then return ir.Call(now.op, now.args, attrs) end
  return core.apply(now.callee, now.args, attrs, node.n_results, as_types(changes.type_args))
end

-- A kind's fields that may be changed, and how it is built of them: `now` has
-- those that were changed and the node's own.
local copiers = {
  Call = { "op callee args attrs type_args", with_call },
  Var = { "name type", function(_, now) return ir.Var(now.name, now.type) end },
  Constant = { "data", function(_, now) return ir.Constant(now.data) end },
  GlobalVar = { "name type", function(_, now) return ir.GlobalVar(now.name, now.type) end },
  Constructor = { "name type", function(_, now) return ir.Constructor(now.name, now.type) end },
  Tuple = { "fields", function(_, now) return core.tuple(now.fields) end },
  TupleGetItem = { "tuple index", function(_, now) return core.get(now.tuple, now.index) end },
  Function = { "params body ret_type attrs type_params", function(node, now, changes)
    return core.func(now.params, now.body, as_type(changes.ret_type),
      merged(node.attrs, now.attrs), now.type_params)
  end },
  If = { "cond true_branch false_branch", function(_, now)
    return core.if_(now.cond, now.true_branch, now.false_branch)
  end },
  Let = { "var value body", function(_, now)
    -- While its block is rewritten a let's body is what follows.
    if now.body == nil then return core.let_here(now.var, now.value) end
    return core.let(now.var, now.value, now.body)
  end },
  LetBlock = { "body", function(_, now) return now.body end },
  Match = { "data clauses complete", function(_, now)
    return ir.Match(now.data, now.clauses, { complete = now.complete })
  end },
  RefCreate = { "value", function(_, now) return core.ref_create(now.value) end },
  RefRead = { "ref", function(_, now) return core.ref_read(now.ref) end },
  RefWrite = { "ref value", function(_, now) return core.ref_write(now.ref, now.value) end },
  PatternVar = { "var", function(_, now) return core.pattern_var(now.var) end },
  PatternConstructor = { "constructor patterns", function(_, now)
    return ir.PatternConstructor(now.constructor, now.patterns)
  end },
  PatternTuple = { "patterns", function(_, now) return core.pattern_tuple(now.patterns) end },
  Clause = { "lhs rhs", function(_, now) return ir.Clause(now.lhs, now.rhs) end },
}

local function has_field(copier, field)
  return type(field) == "string" and (" " .. copier[1] .. " "):find(" " .. field .. " ", 1, true)
end

local function same_list(old, new)
  if type(new) ~= "table" or #old ~= #new then return false end
  for i, item in ipairs(old) do
    if item ~= new[i] then return false end
  end
  return true
end

-- Whether a field would stay what it is.
local function same(node, field, value)
  local old = node[field]
  if field == "type" or field == "ret_type" then return old == as_type(value) end
  if field == "op" and type(value) == "string" then return old == ir.find_op(value) end
  if field == "attrs" then
    for name, attr in pairs(value) do
      if old[name] ~= attr and not (type(old[name]) == "table" and same_list(old[name], attr)) then
        return false
      end
    end
    return true
  end
  return old == value or type(old) == "table" and same_list(old, value)
end

local function unchanged(node, changes)
  for field, value in pairs(changes) do
    if not same(node, field, value) then return false end
  end
  return true
end

--- The names of the fields that node:with{...} takes for a kind, in order.
function ir.fields(kind)
  if not kinds.number[kind] then
    argument.fail(("no kind is called '%s'%s"):format(tostring(kind),
      core.suggest(tostring(kind), kinds.names)))
  end
  if kinds.is_loop_level(kind) then
    local fields = changed_copy.fields(kind)
    return table.move(fields, 1, #fields, 1, {})
  end
  local names = {}
  local fields = copiers[kind] and copiers[kind][1] or ""
  for name in fields:gmatch "%S+" do names[#names + 1] = name end
  return names
end

local methods = {}

--- A copy with other fields: call:with { args = { x } }, fn:with { body = y };
-- the node itself when nothing changes. Attributes are merged into the old ones.
function methods.with(node, changes)
  if kinds.is_loop_level(node.kind) then return changed_copy.with(node, changes) end
  argument.table(changes, "node:with", "changes")
  local copier = copiers[node.kind]
  if not copier then argument.fail(("a %s has no changed copies"):format(node.kind)) end
  for field in pairs(changes) do
    if not has_field(copier, field) then
      argument.fail(("a %s has no field '%s'; it has: %s"):format(node.kind, tostring(field),
        (copier[1]:gsub(" ", ", "))))
    end
  end
  if unchanged(node, changes) then return node end
  local image, now = core.image(node), {}
  if image.kind ~= node.kind then image = node end
  for field in copier[1]:gmatch "%S+" do
    now[field] = changes[field]
    if now[field] == nil then now[field] = image[field] end
  end
  return copier[2](node, now, changes)
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

-- What Lua's operators do to nodes of Relay.
local relay_operators = {
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
}

local function is_prim_expr(value)
  return kind_of(value) == "Node" and value.dtype ~= nil
end

-- Operators of one operand are given it twice by Lua.
local function operator_of_both_levels(event)
  local of_relay = relay_operators[event]
  return function(a, b)
    if is_prim_expr(a) or is_prim_expr(b) then return loop_level[event](a, b) end
    if of_relay then return of_relay(a, b) end
    argument.fail(("a %s has no such operator"):format(kind_of(a)))
  end
end

local metamethods = { __call = relay_operators.__call }
for event in ("add sub mul div idiv mod pow unm band bor bxor shl shr bnot"):gmatch "%a+" do
  metamethods["__" .. event] = operator_of_both_levels("__" .. event)
end

--- buffer:load(i, j): an element of a buffer
function methods.load(buffer, ...) return tir.BufferLoad(buffer, { ... }) end

--- buffer:store(value, i, j): the statement that stores one
function methods.store(buffer, value, ...) return tir.BufferStore(buffer, value, { ... }) end

--- buffer:access_ptr("rw"): the address of its first element, for a function that reads ("r") or
-- writes ("w") it. Options: offset and extent, in elements.
function methods.access_ptr(buffer, mask, options)
  return require "perilune.tir.access_ptr"(buffer, mask, options)
end

core.extend("perilune.Node", methods, metamethods)

core.extend("perilune.Op", {}, { __call = core.call })

--- Constructors of TIR's kinds are those of pl.tir, by the same names.
return setmetatable(ir, { __index = function(self, name)
  if not kinds.number[name] then return nil end
  local make = require "perilune.tir"[name]
  rawset(self, name, make)
  return make
end })
