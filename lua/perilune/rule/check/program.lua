--- Programs that the pattern of a rule matches, made from choices.
--
-- A program is generated from the result: a root of the pattern wants a dtype and a
-- shape, a row of operators.lua says what its operands are like, and so on down to the
-- variables, which become parameters, constants, or calls again. Type inference says
-- whether the calls are legal, and applying the rule whether its conditions hold; what is
-- not is rejected and another program is made.

local core = require "perilune.core"
local failure = require "perilune.debug.failure"
local ir = require "perilune.ir"
local operators = require "perilune.rule.check.operators"
local shapes = require "perilune.rule.check.shapes"
local values = require "perilune.rule.check.values"
local vars = require "perilune.ir.vars"
core.internal()

local program = {}
local class = {}
class.__index = class

-- The simplest first; frequent ones stand more than once.
local dtypes = { "float32", "float32", "float32", "int64", "float16", "float64", "int32",
  "float32", "bool", "int8", "uint8", "bfloat16", "uint64", "int16", "float32", "uint16", "uint32" }
local floats = { "float32", "float32", "float16", "float64", "bfloat16" }
local numbers = { "float32", "int64", "float16", "float64", "int32", "float32", "uint8", "int8" }

-- Calls in calls that no pattern asks for.
local MOST_DEPTH = 3

-- What operands of patterns that say nothing of them may be calls of.
local inner = { "nn.relu", "negative", "transpose", "reshape", "expand_dims", "squeeze",
  "strided_slice", "concatenate", "broadcast_to", "take", "flatten", "sum", "max", "nn.pad",
  "cast", "maximum", "add" }
-- Of rules that are checked on tame numbers: none of these makes an infinity.
local tame_inner = { "nn.relu", "negative", "transpose", "reshape", "expand_dims", "squeeze",
  "strided_slice", "concatenate", "broadcast_to", "take", "flatten", "sum", "nn.pad", "cast",
  "maximum", "add" }

-- ------------------------------------------------------------------- patterns


--- Patterns of a variant with their operands; those that define a variable by name.
function program.prepare(variant)
  local defined = {}
  variant.roots = {}
  for _, p in ipairs(variant) do
    p.children = {}
    if not p.parent then variant.roots[#variant.roots + 1] = p end
    if p.var and p.kind ~= "any" then defined[p.var] = p end
  end
  for _, p in ipairs(variant) do
    if p.parent then variant[p.parent].children[p.arg] = p end
  end
  variant.defined = defined
  return variant
end

-- --------------------------------------------------------------------- refusal

local rejected = {}

--- Ends the generation of this program.
function class.reject() error(rejected, 0) end

-- What functions that make examples ask for, beside var, constant, ints and dtypes.
class.op = require "perilune.ir.op"
function class:below(n) return self.choices:below(n) end
function class:extent() return shapes.extent(self.choices) end
function class:size() return 1 + self.choices:below(4) end
function class:shape(rank) return shapes.random(self.choices, rank) end
function class:pick(list) return self.choices:pick(list) end

function class:number_dtype() return self.choices:pick(numbers) end
function class:float_dtype() return self.choices:pick(floats) end

--- Any dtype, often that one.
function class:any_dtype(usual)
  if self.choices:chance(35) then return usual end
  return self.choices:pick(dtypes)
end

-- -------------------------------------------------------------------- operands

--- A new parameter.
function class:var(dtype, shape)
  local dims = {}
  for i, dim in ipairs(shape) do dims[i] = tostring(dim) end
  local type_ = #dims == 0 and ("Tensor[(), %s]"):format(dtype)
    or ("Tensor[(%s), %s]"):format(table.concat(dims, ", "), dtype)
  local var = ir.Var("x" .. #self.params, type_)
  self.params[#self.params + 1] = { var = var, dtype = dtype, shape = shapes.copy(shape) }
  return var
end

--- A constant of numbers as the program's parameters have them.
function class:constant(dtype, shape)
  self.seed = self.seed + 1
  return ir.Constant(values.tensor(dtype, shape, self.kind, self.seed))
end

--- A constant of numbers from 0.5 to 2.
function class:positive(dtype, shape)
  self.seed = self.seed + 1
  return ir.Constant(core.random(shape, dtype, { seed = self.seed, low = 0.5, high = 2 }))
end

--- A constant of one number.
function class:number(value, dtype) return self:splat(dtype, {}, value) end

--- A constant vector of int64.
function class.ints(_, ...)
  return ir.Constant(core.tensor({ ... }, "int64"))
end

-- Numbers that rules ask for, and others.
local splats = { 0, 1, 2, 0.5, -1, 6, 255, -128 }
local tame_splats = { 0, 1, 2, 0.5, -1, 3 }

function class:splat(dtype, shape, value)
  value = value or self.choices:pick(self.is_tame and tame_splats or splats)
  if dtype == "bool" then value = value ~= 0 end
  if math.type(value) == "float" and not dtype:find "float" then value = math.floor(value) end
  local ok, tensor = pcall(core.tensor_splat, value, shape, dtype)
  if not ok then self.reject() end
  return ir.Constant(tensor)
end

local function given(self, want)
  local value = want.value
  local tensor = #want.shape == 0 and type(value) == "table" and value[1] or value
  if #want.shape == 1 and #value == 0 then
    return ir.Constant(core.tensor_bytes("", { 0 }, want.dtype))
  end
  local ok, made = pcall(core.tensor, tensor, want.dtype)
  if not ok then self.reject() end
  return ir.Constant(made)
end

-- Any operand of the wanted type: a parameter, the same one again, a constant, a call.
function class:operand(want, percent)
  local c = self.choices
  if want.node then return want.node end
  if want.value then return given(self, want) end
  if want.positive then return self:positive(want.dtype, want.shape) end
  if want.zeros then return self:splat(want.dtype, want.shape, 0) end
  local how = c:below(100)
  if how >= 100 - (percent or 20) and self.depth < MOST_DEPTH then return self:inner_call(want) end
  if how >= 68 then
    for _, param in ipairs(self.params) do
      if param.dtype == want.dtype and shapes.equal(param.shape, want.shape) then
        return param.var
      end
    end
  elseif how >= 56 then
    return how >= 62 and self:constant(want.dtype, want.shape) or self:splat(want.dtype, want.shape)
  end
  return self:var(want.dtype, want.shape)
end

function class:inner_call(want)
  local c = self.choices
  local all = self.is_tame and tame_inner or inner
  local name = c:pick(self.outer and c:chance(60) and { self.outer } or all)
  local made = #self.params
  self.depth = self.depth + 1
  local ok, node = pcall(self.call, self, name, want)
  self.depth = self.depth - 1
  if ok then return node.type.kind == "tuple" and node:get(0) or node end
  if node ~= rejected then error(node, 0) end
  for i = #self.params, made + 1, -1 do self.params[i] = nil end
  return self:var(want.dtype, want.shape)
end

local function constant_shape(self, p, want)
  local c = self.choices
  if p.constraints.scalar then return c:pick { {}, { 1 }, {}, { 1 }, {}, want.shape } end
  local last = want.shape[#want.shape]
  return c:pick { want.shape, {}, want.shape, last and { last } or {} }
end

-- What a variable stands for, or a wildcard.
local function terminal(self, p, want)
  local constraints, c = p.constraints, self.choices
  if constraints.absent or p.optional and c:chance(50) then return nil end
  if want.value then return given(self, want) end
  if constraints.int and not want.dtype:find "int" or constraints.bool and want.dtype ~= "bool"
    or constraints.float and not want.dtype:find "float" then
    self.reject()
  end
  if constraints.scalar or constraints.splat then
    return self:splat(want.dtype, constant_shape(self, p, want))
  end
  if constraints.const then return self:constant(want.dtype, constant_shape(self, p, want)) end
  if constraints.dynamic then return self:var(want.dtype, want.shape) end
  return self:operand(want)
end

-- ----------------------------------------------------------------------- calls

local function type_of(node)
  local type_ = node and node.type
  if type_ and type_.kind == "tensor" and type_.shape then
    return { dtype = type_.dtype, shape = type_.shape }
  end
end

-- What a pattern says of attributes: by name what is compared or was bound before, and in
-- is_bound which ones variables stand for.
local function fixed_attrs(self, p)
  local fixed = { is_bound = {} }
  for _, attr in ipairs(p and p.attrs or {}) do
    fixed[attr.name] = attr.value
    if attr.var then
      fixed[attr.name], fixed.is_bound[attr.name] = self.bound_values[attr.var], true
    end
    if attr.name == "to" then fixed.dtype = attr.value end
  end
  return fixed
end

-- Attributes that are only bound get values too.
local function bind_attrs(self, op, p, plan, fixed)
  local kinds = operators.kinds(op)
  for _, attr in ipairs(p and p.attrs or {}) do
    local name = attr.name
    local chosen = plan.parameters[name]
    if chosen == nil then chosen = plan.attrs[name] end
    if chosen == nil and fixed[name] ~= nil then
      chosen = fixed[name]
      if self.choices:chance(60) then plan.attrs[name] = chosen end -- it may be the default
    elseif chosen == nil and attr.var and self.choices:chance(60) then
      chosen = operators.value(self, kinds[name])
      plan.attrs[name] = chosen
    end
    if attr.var then self.bound_values[attr.var] = chosen end
  end
end

local function parameter_operand(want, value)
  local number = type(value) ~= "table"
  return { dtype = number and math.type(value) and want.limits or "int64",
    shape = number and {} or { #value }, value = value }
end

-- Parameters become operands or attributes.
local function place_parameters(op, plan, want, children)
  local places = core.rule_parameters(op.name)
  for name, value in pairs(plan.parameters) do
    local place = places[name]
    local as_operand = place and (children[place] or not plan.as_attrs)
    if as_operand then
      plan.operands[place] = parameter_operand({ limits = op.name == "clip" and want.dtype
        or "int64" }, value)
      plan.last = math.max(plan.last or 0, place)
    else
      plan.attrs[name] = value
    end
  end
end

local function count_operands(plan, children)
  local n = plan.last or 0
  for i in pairs(plan.operands) do n = math.max(n, i) end
  for i in pairs(children) do if math.type(i) == "integer" then n = math.max(n, i) end end
  return n
end

-- The operands of a commutative call, one of which is a constant, in either order.
local function in_order(self, children)
  if not children.constant then return children end
  local first = self.choices:below(2) == 1
  return first and { children.constant, children.other } or { children.other, children.constant }
end

local function known_types(self, children)
  local known = {}
  for i, child in pairs(children) do
    known[i] = child.var and type_of(self.bound[child.var]) or nil
  end
  return known
end

local function make(self, op, args, n, attrs)
  local ok, node
  if next(attrs) then
    args[n + 1] = attrs
    ok, node = pcall(op, table.unpack(args, 1, n + 1))
  else
    ok, node = pcall(op, table.unpack(args, 1, n))
  end
  if not ok and failure.stops(node) then error(node, 0) end
  if not ok then self.reject() end
  return node
end

--- A call of the operator with a result of the wanted type; `p`: the pattern of it, if
-- any; `results`: how many it needs.
function class:call(name, want, p, results)
  local op, outer = core.op(name), self.outer
  local children = in_order(self, p and p.children or {})
  local fixed = fixed_attrs(self, p)
  local count = p and not p.any_count and p.count or nil
  local plan = operators.plan(self, op, want, known_types(self, children), fixed, count, results)
  plan.as_attrs = self.choices:chance(20)
  bind_attrs(self, op, p, plan, fixed)
  place_parameters(op, plan, want, children)
  self.outer = name
  local args, n = {}, count_operands(plan, children)
  for i = 1, n do
    local operand = plan.operands[i]
    if children[i] then
      if operand == false then self.reject() end
      args[i] = self:node(children[i], operand or want)
    elseif operand then
      args[i] = self:operand(operand, p and p.any_count and 60)
    end
  end
  self.outer = outer
  return make(self, op, args, n, plan.attrs)
end

-- ----------------------------------------------------------------------- nodes

local kinds = {}

function kinds.any(self, p, want)
  local definition = p.var and self.variant.defined[p.var]
  if definition and not self.making[p.var] then return self:node(definition, want) end
  return terminal(self, p, want)
end

function kinds.value(self, p, want)
  local shape = self.choices:pick { {}, {}, want.shape, { 1 }, false }
  shape = shape or shapes.random(self.choices)
  local number = p.number
  return self:splat(want.dtype, shape, math.tointeger(number) or number)
end

function kinds.call(self, p, want)
  if #p.ops == 0 then self.reject() end
  return self:call(self.choices:pick(p.ops), want, p, want.results)
end

function kinds.tuple(self, p, want)
  local fields = {}
  for i = 1, p.count do fields[i] = self:node(p.children[i], want) end
  return ir.Tuple(fields)
end

function kinds.field(self, p, want)
  local tuple = self:node(p.children[1],
    { dtype = want.dtype, shape = want.shape, results = p.index + 1 })
  local ok, field = pcall(tuple.get, tuple, p.index)
  if not ok then self.reject() end
  return field
end

--- The node that stands for a pattern.
function class:node(p, want)
  if p.var and self.bound[p.var] then return self.bound[p.var] end
  if p.var then self.making[p.var] = true end
  local node = kinds[p.kind](self, p, want)
  if p.var and node then self.bound[p.var] = node end
  return node
end

-- -------------------------------------------------------------------- programs

-- Opens dims of parameters: extents become symbols, one for each extent, or unknown.
local function loosen(self, body)
  local images, c = {}, self.choices
  local symbols = { [0] = "E", "O", "N", "M", "K", "L" }
  for _, param in ipairs(self.params) do
    local dims = {}
    for i, dim in ipairs(param.shape) do
      local how = c:below(3)
      dims[i] = how == 1 and symbols[dim] or how == 2 and "?" or tostring(dim)
    end
    if #dims > 0 then
      images[param.var] = ir.Var(param.var.name,
        ("Tensor[(%s), %s]"):format(table.concat(dims, ", "), param.dtype))
    end
  end
  local ok, other = pcall(vars.bind, body, images)
  if not ok then return body end
  for _, param in ipairs(self.params) do param.var = images[param.var] or param.var end
  return other
end

local function function_of(self, body)
  if self.choices:chance(25) then body = loosen(self, body) end
  local params = {}
  for i, param in ipairs(self.params) do params[i] = param.var end
  return ir.Function(params, body)
end

-- The first of several results alone, or all.
local function some_results(self, p, node)
  if node.type.kind ~= "tuple" or p.kind == "tuple" then return node end
  return self.choices:chance(30) and node or node:get(0)
end

-- Of several roots a tuple, in any order.
local function roots(self, want)
  local list, fields = self.variant.roots, {}
  for i, p in ipairs(list) do fields[i] = some_results(self, p, self:node(p, want)) end
  if #list == 1 then return fields[1] end
  local mixed = {}
  for i, k in ipairs(self.choices:permutation(#list)) do mixed[i] = fields[k] end
  local ok, tuple = pcall(ir.Tuple, mixed)
  return ok and tuple or self.reject()
end

local function from_pattern(self)
  self.variant = self.choices:pick(self.variants)
  local want = { dtype = self.choices:pick(dtypes), shape = shapes.random(self.choices) }
  return function_of(self, roots(self, want))
end

local function sizes_of(self, symbols)
  local sizes = {}
  for _, name in ipairs(symbols) do sizes[name] = shapes.extent(self.choices) end
  return sizes
end

-- What an example in Lua makes; an illegal call is not one.
local function made_by(self, example)
  local ok, body = pcall(example, self)
  if ok then return function_of(self, body) end
  if getmetatable(body) == "perilune.Diag" and not failure.stops(body) then self.reject() end
  error(body, 0)
end

-- An example: a function whose dims may be symbols, or one that makes the body.
local function from_example(self, example)
  if type(example) == "function" then return made_by(self, example) end
  local names = {}
  for _, param in ipairs(example.params) do
    for _, name in ipairs(core.type_symbols(param.type) or {}) do
      if name and not names[name] then names[name], names[#names + 1] = true, name end
    end
  end
  local sizes = sizes_of(self, names)
  for i, param in ipairs(example.params) do
    self.params[i] = { var = param, dtype = param.type.dtype,
      shape = core.type_sizes(param.type, sizes) }
  end
  return example
end

local function generate(self)
  local examples = self.examples
  if #examples > 0 and (#self.variants == 0 or self.choices:chance(15)) then
    return from_example(self, self.choices:pick(examples))
  end
  return from_pattern(self)
end

--- The program of these choices: { fn, inputs }, or nil. `source`: { variants, examples,
-- kinds }: prepared variants, functions, kinds of numbers.
function program.generate(source, choices)
  local self = setmetatable({ choices = choices, variants = source.variants,
    examples = source.examples, params = {}, bound = {}, bound_values = {}, making = {},
    depth = 0 }, class)
  self.kind, self.seed = choices:pick(source.kinds), choices:below(1 << 16)
  self.is_tame = source.kinds == values.tame
  local ok, fn = pcall(generate, self)
  if not ok then
    if fn == rejected then return nil end
    error(fn, 0)
  end
  local inputs = {}
  for i, param in ipairs(self.params) do
    inputs[i] = values.tensor(param.dtype, param.shape, self.kind, self.seed + 1000 * i)
  end
  return { fn = fn, inputs = inputs, kind = self.kind }
end

return program
