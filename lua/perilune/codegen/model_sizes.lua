-- Symbolic sizes of a compiled model: its symbols are bound by the shapes of the inputs; every
-- other size is an expression of them. Called by model.lua.
--
-- The entry computes each dim once, checks the sizes, and passes them on. What it checks is also
-- checked by `bind` before a call from Lua, whose messages name inputs and dimensions.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local symbolic_dim = require "perilune.topi.symbolic_dim"
local tir = require "perilune.tir"

local MOST = 0x7fffffff -- elements of a tensor, and of an axis

local Sizes = {}
Sizes.__index = Sizes

local function refuse(format, ...) argument.fail("build: " .. format:format(...)) end

-- --------------------------------------------------------------------- symbols

-- Where each symbol stands first among the inputs: { input =, axis = }, both from 1.
local function find_symbols(inputs)
  local found, order = {}, {}
  for i, input in ipairs(inputs) do
    for axis, dim in ipairs(input.type.shape) do
      local parsed = symbolic_dim.parse(dim)
      if type(parsed) == "table" and parsed.op == "symbol" and not found[parsed.name] then
        found[parsed.name] = { name = parsed.name, text = parsed.text, input = i, axis = axis,
          var = tir.SizeVar(parsed.name:gsub("%W", "_"), "int64") }
        order[#order + 1] = found[parsed.name]
      end
    end
  end
  return found, order
end

-- Symbols of values that the model declares and no input has, from pairs of dims that are equal;
-- in `by_text` what a whole dim of such symbols stands for.
local function add_aliases(symbols, equal, by_text)
  local changed = true
  local function is_known(dim)
    for name in pairs(type(dim) == "table" and symbolic_dim.symbols(dim, {}) or {}) do
      if not symbols[name] then return false end
    end
    return true
  end
  local function add(dim, other)
    if type(dim) ~= "table" or is_known(dim) or not is_known(other) then return end
    if dim.op == "symbol" then
      symbols[dim.name] = { name = dim.name, text = dim.text, dim = other }
      changed = true
    elseif not by_text[dim.text] then
      by_text[dim.text] = other
    end
  end
  while changed do
    changed = false
    for _, pair in ipairs(equal) do
      add(pair[1], pair[2])
      add(pair[2], pair[1])
    end
  end
end

local function texts_of(order)
  local by_text = {}
  for _, symbol in ipairs(order) do by_text[symbol.text] = symbol.var end
  return by_text
end

local function of_inputs(inputs, equal)
  local symbols, order = find_symbols(inputs)
  local aliases = {}
  add_aliases(symbols, equal, aliases)
  return setmetatable({ inputs = inputs, symbols = symbols, order = order, dims = {}, parsed = {},
    aliases = aliases,
    by_text = texts_of(order), shapes = {}, shape_list = {}, equal = {}, equal_seen = {} }, Sizes)
end

-- ---------------------------------------------------------------------- dims

-- The dim with what symbols of values stand for.
function Sizes:without_aliases(dim)
  if type(dim) == "number" then return dim end
  if dim.op == "symbol" then
    local symbol = self.symbols[dim.name]
    return symbol.dim and self:without_aliases(symbol.dim) or dim
  end
  local own = { op = dim.op, text = dim.text, constant = dim.constant }
  if dim.op ~= "sum" then
    own.a, own.b = self:without_aliases(dim.a), self:without_aliases(dim.b)
    return own
  end
  own.terms = {}
  for i, term in ipairs(dim.terms) do
    own.terms[i] = { coefficient = term.coefficient, factors = {} }
    for k, factor in ipairs(term.factors) do
      own.terms[i].factors[k] = self:without_aliases(factor)
    end
  end
  return own
end

-- A dim is { parsed =, text =, value = its int64 expression, var = of a let, or nil }.
function Sizes:dim(text)
  local known = self.dims[text]
  if known then return known end
  local parsed = symbolic_dim.parse(text)
  if not parsed then refuse "a shape is not known" end
  if type(parsed) == "table" then parsed = self.aliases[parsed.text] or parsed end
  known = { parsed = parsed, text = text }
  if type(parsed) == "number" then
    known.value = operand.const(parsed, "int64")
  else
    for name in pairs(symbolic_dim.symbols(parsed, {})) do
      if not self.symbols[name] then
        refuse("the size '%s' is no dimension of an input: give it by --dim or --shape", name)
      end
    end
    known.parsed = self:without_aliases(parsed)
    if type(known.parsed) == "number" then
      known.value = operand.const(known.parsed, "int64")
      known.full = known.value
      self.dims[text] = known
      return known
    end
    known.full = symbolic_dim.expression(known.parsed, function(part)
      return self.by_text[part]
    end, "int64")
    known.value = known.full
    if known.parsed.op ~= "symbol" then
      known.var = tir.Var("size" .. #self.parsed, "int64")
      known.value = known.var
    end
    self.parsed[#self.parsed + 1] = known
  end
  self.dims[text] = known
  return known
end

local function is_constant(shape)
  for _, dim in ipairs(shape) do
    if math.type(dim) ~= "integer" then return false end
  end
  return true
end

--- Notes a shape of what is computed, whose sizes are checked. `what` says it in a message.
function Sizes:add_shape(shape, what)
  if is_constant(shape) then return end
  local key = table.concat(shape, ",")
  if self.shapes[key] then return end
  local row = { what = what, key = key, dims = {} }
  for i, dim in ipairs(shape) do row.dims[i] = self:dim(math.tointeger(dim) or dim) end
  self.shapes[key] = row
  self.shape_list[#self.shape_list + 1] = row
end

--- The shape as int64 expressions of symbols.
function Sizes:shape(shape)
  local list = {}
  for i, dim in ipairs(shape) do
    list[i] = math.type(dim) == "integer" and dim or self:dim(dim).full
  end
  return list
end

--- Two dims that are equal where the loops are right.
function Sizes:add_equal(a, b)
  local key = a .. "=" .. b
  if self.equal_seen[key] then return end
  self.equal_seen[key] = true
  table.insert(self.equal, { self:dim(math.tointeger(a) or a), self:dim(math.tointeger(b) or b) })
end

-- --------------------------------------------------------------------- memory

--- The bytes of a tensor, a multiple of 64: a number, or { key =, factor =, value = } of which two
-- with the same key are in the order of their factors.
function Sizes:bytes(type_, alignment)
  local factor, names, product = math.max(8, operand.bits(type_.dtype)) // 8, {}, nil
  for _, dim in ipairs(type_.shape) do
    if math.type(dim) == "integer" then
      factor = factor * dim
    else
      names[#names + 1] = dim
      product = product and product * self:dim(dim).value or self:dim(dim).value
    end
  end
  if not product then return (factor + alignment - 1) // alignment * alignment end
  table.sort(names)
  local bytes = product * operand.const(factor, "int64")
  if factor % alignment ~= 0 then
    local unit = operand.const(alignment, "int64")
    bytes = tir.floordiv(bytes + (alignment - 1), unit) * unit
  end
  return { key = table.concat(names, ","), factor = factor, value = bytes }
end

--- The number of elements of a tensor, as an expression.
function Sizes:count(type_)
  local count = operand.const(1, "int64")
  for _, dim in ipairs(type_.shape) do count = count * self:dim(dim).value end
  return count
end

-- ---------------------------------------------------------------------- entry

local function as_float(value) return tir.Cast("float64", value) end

-- Products within a dim, which may overflow: lists of factors.
local function products_in(dim, into)
  if type(dim) == "number" or dim.op == "symbol" then return into end
  if dim.op ~= "sum" then return products_in(dim.b, products_in(dim.a, into)) end
  for _, term in ipairs(dim.terms) do
    for _, factor in ipairs(term.factors) do products_in(factor, into) end
    if #term.factors > 1 then into[#into + 1] = term.factors end
  end
  return into
end

local function product_fits(factors)
  local product = as_float(factors[1])
  for i = 2, #factors do product = product * as_float(factors[i]) end
  return tir.le(product, operand.const(MOST + 0.0, "float64"))
end

local function in_range(value)
  return tir.logical_and(tir.ge(value, operand.const(0, "int64")),
    tir.le(value, operand.const(MOST, "int64")))
end

-- Conditions with their messages, in the order in which they are checked.
function Sizes:conditions()
  local list = {}
  local function add(condition, format, ...) list[#list + 1] = { condition, format:format(...) } end
  for _, symbol in ipairs(self.order) do
    add(in_range(symbol.var), "the size %s is above %d", symbol.text, MOST)
  end
  for _, dim in ipairs(self.parsed) do
    for _, factors in ipairs(products_in(dim.parsed, {})) do
      local values = {}
      for i, factor in ipairs(factors) do values[i] = self:dim(factor.text).value end
      add(product_fits(values), "the size %s is above %d", dim.text, MOST)
    end
    if dim.var then
      add(in_range(dim.value), "the size %s is negative, or above %d", dim.text, MOST)
    end
  end
  for _, row in ipairs(self.shape_list) do
    local values = {}
    for i, dim in ipairs(row.dims) do values[i] = dim.value end
    add(product_fits(values), "%s of shape (%s) has more than %d elements", row.what, row.key, MOST)
  end
  for _, pair in ipairs(self.equal) do
    add(tir.eq(pair[1].value, pair[2].value), "the sizes %s and %s are to be equal",
      pair[1].text, pair[2].text)
  end
  return list
end

--- The body with the values of all dims around it, and behind the checks.
function Sizes:around(body)
  local conditions = self:conditions()
  for i = #conditions, 1, -1 do
    body = tir.AssertStmt(conditions[i][1], tir.StringImm(conditions[i][2]), body)
  end
  for i = #self.parsed, 1, -1 do
    local dim = self.parsed[i]
    if dim.var then body = tir.LetStmt(dim.var, dim.full, body) end
  end
  return body
end

-- ----------------------------------------------------------------------- calls

local function name_of(input, i) return input.name or ("input" .. i) end

local function wrong(format, ...) argument.fail("main: " .. format:format(...)) end

local function check_count(row, values)
  local count, empty = 1.0, false
  for _, dim in ipairs(row.dims) do
    local value, reason = symbolic_dim.evaluate(dim.parsed, values)
    if not value then wrong("%s", reason) end
    if value < 0 or value > MOST then
      wrong("the size %s is %d: %s", dim.text, value, value < 0 and "it is negative"
        or ("at most %d is possible"):format(MOST))
    end
    count, empty = count * value, empty or value == 0
  end
  if not empty and count > MOST then
    wrong("%s of shape (%s) has more than %d elements", row.what, row.key, MOST)
  end
end

-- The sizes of symbols that the shapes of inputs have.
function Sizes:read(shapes)
  local values = {}
  for _, symbol in ipairs(self.order) do
    local shape = shapes[symbol.input]
    values[symbol.name] = shape[symbol.axis]
  end
  return values
end

function Sizes:check_input(i, shape, values)
  local input = self.inputs[i]
  for axis, dim in ipairs(input.type.shape) do
    local parsed = symbolic_dim.parse(dim)
    local expected, reason = symbolic_dim.evaluate(parsed, values)
    if not expected then wrong("input '%s': %s", name_of(input, i), reason) end
    if shape[axis] ~= expected then
      local first = type(parsed) == "table" and self.symbols[parsed.name]
      wrong("input '%s': dimension %d%s is %d, but %s", name_of(input, i), axis - 1,
        type(dim) == "string" and (" (%s)"):format(dim) or "", shape[axis],
        first and ("dimension %d of input '%s' is %d"):format(first.axis - 1,
          name_of(self.inputs[first.input], first.input), expected)
        or ("%d is expected"):format(expected))
    end
  end
end

--- The sizes of symbols for inputs of these shapes, or an error that names the input, the dimension
-- and both values.
function Sizes:bind(shapes)
  for i, input in ipairs(self.inputs) do
    if #shapes[i] ~= #input.type.shape then
      wrong("input '%s': a tensor of rank %d expected, got rank %d", name_of(input, i),
        #input.type.shape, #shapes[i])
    end
  end
  local values = self:read(shapes)
  for i, shape in ipairs(shapes) do self:check_input(i, shape, values) end
  for _, row in ipairs(self.shape_list) do check_count(row, values) end
  for _, pair in ipairs(self.equal) do
    local a, b = symbolic_dim.evaluate(pair[1].parsed, values),
      symbolic_dim.evaluate(pair[2].parsed, values)
    if a ~= b then
      wrong("the sizes %s and %s are to be equal, but are %s and %s", pair[1].text, pair[2].text,
        tostring(a), tostring(b))
    end
  end
  return values
end

--- The shape for these sizes.
function Sizes:evaluated(shape, values)
  local list = {}
  for i, dim in ipairs(shape) do list[i] = symbolic_dim.evaluate(self:dim(dim).parsed, values) end
  return list
end

return of_inputs
