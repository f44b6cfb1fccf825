-- Symbolic sizes of one PrimFunc: which variables its buffers have as extents, what the dims of
-- types are as expressions of them, and what has to hold so that its loops are right.
--
-- LowerTE makes one for a function whose types have symbolic dims. Each dim that is a symbol or a
-- call, as "floordiv(height, 2)", is a variable of its own; sums and products of such are
-- expressions. Two extents that a compute takes for equal are compared at the entry of the model,
-- unless they are the same (`checks`, texts of dims in pairs). Whether they may be equal is asked
-- with some sizes for each symbol.

local core = require "perilune.core"
core.internal()

local arith = require "perilune.arith"
local operand = require "perilune.tir.operand"
local symbolic_dim = require "perilune.topi.symbolic_dim"
local tir = require "perilune.tir"

local Sizes = {}
Sizes.__index = Sizes

-- Sizes of the n-th symbol, in three samples.
local function sample(n, k)
  return k == 1 and 96 + 32 * n or k == 2 and 1009 + 210 * n + n * n or 2003 + 2310 * n
end

local function new()
  return setmetatable({ rows = {}, known = {}, by_values = {}, symbols = {}, n_symbols = 0,
    checks = {}, checked = {}, analyzer = arith.Analyzer() }, Sizes)
end

-- -------------------------------------------------------------------- samples

-- The numbers that a dim is in the samples; nil: it has none.
function Sizes:values_of_dim(dim)
  for name in pairs(symbolic_dim.symbols(dim, {})) do
    if not self.symbols[name] then
      self.n_symbols = self.n_symbols + 1
      self.symbols[name] = self.n_symbols
    end
  end
  local values = {}
  for k = 1, 3 do
    local at = {}
    for name, n in pairs(self.symbols) do at[name] = sample(n, k) end
    values[k] = symbolic_dim.evaluate(dim, at)
    if not values[k] then return nil end
  end
  return values
end

--- The numbers that an extent is in the samples.
function Sizes:values(extent)
  if type(extent) == "number" then return { extent, extent, extent } end
  local values = {}
  for k = 1, 3 do
    local at = {}
    for _, row in ipairs(self.rows) do
      if not row.values then return nil end
      at[row.var] = operand.const(row.values[k], row.var.dtype)
    end
    local result = self.analyzer:simplify(tir.substitute(extent, at))
    if result.kind ~= "IntImm" then return nil end
    values[k] = result.value
  end
  return values
end

local function key_of(values) return table.concat(values, ",") end

-- ------------------------------------------------------------------ variables

local function add_variable(self, dim)
  local name = dim.text:gsub("%W+", "_"):gsub("^_", ""):gsub("_$", "")
  if not name:find "^%a" then name = "n" .. name end
  local row = { dim = dim, text = dim.text, var = tir.SizeVar(name, "int32"),
    values = self:values_of_dim(dim) }
  self.rows[#self.rows + 1] = row
  self.known[dim.text] = row.var
  return row.var
end

--- The extent of a dim: an integer or an expression; a variable is added where it needs one.
function Sizes:extent(dim)
  local parsed = symbolic_dim.parse(dim)
  if not parsed or type(parsed) == "number" then return parsed end
  local result = symbolic_dim.expression(parsed, function(text) return self.known[text] end,
    "int32") or add_variable(self, parsed)
  self.known[dim] = result
  local values = self:values_of_dim(parsed)
  if values then
    local key = key_of(values)
    self.by_values[key] = self.by_values[key] or { extent = result, text = parsed.text }
  end
  return result
end

local function is_sum(dim) return dim.op == "sum" end

local function dims_in(types, into)
  for _, type_ in ipairs(types) do
    if type_.kind == "tuple" then
      dims_in(type_.parts, into)
    elseif type_.kind == "tensor" then
      for _, dim in ipairs(type_.shape or {}) do into[#into + 1] = dim end
    end
  end
  return into
end

--- Makes variables of what stands as a dim in these types: symbols first, then calls, then sums of
-- what has none.
function Sizes:declare(types)
  local parsed = {}
  for _, dim in ipairs(dims_in(types, {})) do
    local one = symbolic_dim.parse(dim)
    if type(one) == "table" then parsed[#parsed + 1] = one end
  end
  for _, dim in ipairs(parsed) do
    if dim.op == "symbol" and not self.known[dim.text] then add_variable(self, dim) end
  end
  for _, dim in ipairs(parsed) do
    if not is_sum(dim) and not self.known[dim.text] then add_variable(self, dim) end
  end
  for _, dim in ipairs(parsed) do self:extent(dim.text) end
end

local type_meta = { __tostring = function(self) return tostring(self.type) end }

--- The type with expressions as dims; itself without symbols.
function Sizes:type(type_)
  if not symbolic_dim.is_symbolic(type_) then return type_ end
  local own = setmetatable({ type = type_, kind = type_.kind }, type_meta)
  if type_.kind == "tuple" then
    own.parts = {}
    for i, part in ipairs(type_.parts) do own.parts[i] = self:type(part) end
    return own
  end
  own.dtype, own.rank, own.shape = type_.dtype, type_.rank, {}
  for i, dim in ipairs(type_.shape) do own.shape[i] = self:extent(dim) end
  return own
end

-- --------------------------------------------------------------------- checks

local names = { Add = "add", Sub = "sub", Mul = "mul", FloorDiv = "floordiv", FloorMod = "floormod",
  Div = "truncdiv", Min = "min", Max = "max" }

-- The text of an extent as a dim; nil: it has none. What shapes are made of is not deep.
function Sizes:text(extent)
  if type(extent) == "number" then return tostring(extent) end
  if extent.kind == "IntImm" then return tostring(extent.value) end
  if extent.kind == "Var" then
    for _, row in ipairs(self.rows) do
      if row.var == extent then return row.text end
    end
    return nil
  end
  local name = names[extent.kind]
  local a = name and self:text(extent.a)
  local b = a and self:text(extent.b)
  return b and ("%s(%s, %s)"):format(name, a, b)
end

local function same(a, b)
  if type(a) == "number" or type(b) == "number" then return a == b end
  return a == b or core.node_equal(a, b, false)
end

--- Says that two extents are taken for equal. false: they never are.
function Sizes:agree(a, b)
  if same(a, b) then return true end
  if type(a) == "number" and type(b) == "number" then return false end
  local x, y = self:text(a), self:text(b)
  if not x or not y then return false end
  local key = x .. "=" .. y
  if not self.checked[key] then
    self.checked[key] = true
    table.insert(self.checks, x)
    table.insert(self.checks, y)
  end
  return true
end

--- Whether two extents are the same in all samples.
function Sizes:may_equal(a, b)
  if same(a, b) then return true end
  local x, y = self:values(a), self:values(b)
  return x ~= nil and y ~= nil and key_of(x) == key_of(y)
end

--- The extent of a dim of the types that this one is, if there is one.
function Sizes:canonical(extent)
  if type(extent) == "number" then return extent end
  if extent.kind == "IntImm" then return extent.value end
  if extent.kind == "Var" then return extent end
  local values = self:values(extent)
  if not values then return extent end
  local found = self.by_values[key_of(values)]
  if found and self:agree(extent, found.extent) then return found.extent end
  return extent
end

--- The texts of the variables, in the order of a list of them.
function Sizes:texts(vars)
  local list = {}
  for i, var in ipairs(vars) do list[i] = self:text(var) end
  return list
end

return new
