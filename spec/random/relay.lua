--- random_relay(seed): a module of Relay's made at random, the same for the same
-- seed: every kind of expression and pattern, data types, generic functions,
-- references, closures, recursion, attributes, constants in the metadata, shared
-- nodes, names of every sort. Well-typed and well-formed always; its loops end, and
-- main takes no arguments, so that it can be run.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local ir, op = pl.ir, pl.op

local PRELUDE = [[
#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
type Tree[A] { Leaf(A), Node(Tree[A], A, Tree[A]) }
type Either[A, B] { Left(A), Right(B) }
type Color { Red, Green, Blue }
extern type Box[A]
def @id[A](%x: A) -> A { %x }
def @length[A](%l: List[A]) -> int32 {
  match (%l) { Cons(_, %t) => { 1 + @length(%t) }, Nil => { 0 } }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @depth[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Leaf(_) => { 1 },
    Node(%l, _, %r) => { maximum(@depth(%l), @depth(%r)) + 1 },
  }
}
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}
]]

local generator = {} -- state: random, scope (nodes that can be used here), functions
generator.__index = generator

function generator:below(n) return self.random(1, n) end
function generator:pick(list) return list[self.random(1, #list)] end
function generator:chance(p) return self.random() < p end

-- ------------------------------------------------------------------- types

-- { kind, text, ... }; equal types have equal texts.
local function tensor(dtype, ...)
  local dims = { ... }
  local text = #dims == 0 and dtype or ("Tensor[(%s), %s]"):format(table.concat(dims, ", "), dtype)
  return { kind = "tensor", text = text, dtype = dtype, shape = dims }
end

local function texts(types)
  local list = {}
  for i, type_ in ipairs(types) do list[i] = type_.text end
  return table.concat(list, ", ")
end

local function tuple(parts)
  return { kind = "tuple", parts = parts, text = ("(%s%s)"):format(texts(parts),
    #parts == 1 and "," or "") }
end

local function ref(part)
  return { kind = "ref", part = part, text = ("ref(%s)"):format(part.text) }
end

local function func(params, result)
  return { kind = "func", params = params, result = result,
    text = ("fn (%s) -> %s"):format(texts(params), result.text) }
end

local function data(name, ...)
  local args = { ... }
  local text = #args == 0 and name or ("%s[%s]"):format(name, texts(args))
  return { kind = "data", name = name, args = args, text = text }
end

local bool, int32, float32 = tensor "bool", tensor "int32", tensor "float32"
local tensors = { bool, int32, float32, tensor "int64", tensor("float32", 2, 3),
  tensor("float32", 3), tensor("int32", 2), tensor("float32", 2, 1, 3), tensor("float64", 1),
  tensor("int8", 0), tensor("uint8", 4), tensor("float16", 2) }

function generator:types(n, depth)
  local list = {}
  for i = 1, n do list[i] = self:type(depth) end
  return list
end

function generator:type(depth)
  local choice = depth > 0 and self:below(10) or 1
  if choice == 6 then return tuple(self:types(self:below(4) - 1, depth - 1)) end
  if choice == 7 then return ref(self:type(depth - 1)) end
  if choice == 8 then
    return func(self:types(self:below(3) - 1, depth - 1), self:type(depth - 1))
  end
  if choice == 9 then return data(self:pick { "List", "Tree" }, self:type(depth - 1)) end
  if choice == 10 then
    if self:chance(0.3) then return data "Color" end
    return data("Either", table.unpack(self:types(2, depth - 1)))
  end
  return self:pick(tensors)
end

-- Fields of each constructor of a data type with these arguments.
local function constructors(type_)
  local a, b = type_.args[1], type_.args[2]
  if type_.name == "List" then return { { "Nil" }, { "Cons", a, type_ } } end
  if type_.name == "Tree" then return { { "Leaf", a }, { "Node", type_, a, type_ } } end
  if type_.name == "Either" then return { { "Left", a }, { "Right", b } } end
  return { { "Red" }, { "Green" }, { "Blue" } }
end

-- ------------------------------------------------------------------- names

local names = { "x", "y", "x", "x1", "a b", "0", "free_var", "let", "meta", "a/b", "", "Cons",
  "\"", "\\", "\n", "%x", "a*/b", "_", "\xc3\xa4", "\xff", "float32", "True" }

function generator:var(type_)
  return ir.Var(self:pick(names), type_.text)
end

-- ------------------------------------------------------------------ leaves

local function filled(shape, element, axis)
  if axis > #shape then return element() end
  local row = {}
  for i = 1, shape[axis] do row[i] = filled(shape, element, axis + 1) end
  return row
end

function generator:number(dtype)
  if dtype == "bool" then return self:chance(0.5) end
  local n = dtype == "uint8" and self:below(9) or self:below(19) - 10
  if dtype:find "^float" and self:chance(0.5) then return n / 4 end
  return dtype:find "^float" and n * 1.0 or n
end

function generator:constant(type_)
  for _, dim in ipairs(type_.shape) do
    if dim == 0 then
      return op.zeros { shape = type_.shape, dtype = type_.dtype }
    end
  end
  local function element() return self:number(type_.dtype) end
  return ir.Constant(pl.tensor(filled(type_.shape, element, 1), type_.dtype))
end

function generator:leaves(types)
  local list = {}
  for i, type_ in ipairs(types) do list[i] = self:leaf(type_) end
  return list
end

-- A closure; its parameters are seen in its body only.
function generator:closure(type_, body)
  local mark, params = #self.scope, {}
  for i, param in ipairs(type_.params) do
    params[i] = self:var(param)
    self:see(params[i], param)
  end
  local result = body(type_.result)
  self:forget(mark)
  local attrs = self:chance(0.1) and self:attrs() or nil
  return ir.Function(params, result, self:chance(0.7) and type_.result.text or nil, attrs)
end

function generator:construct(type_, deep, depth)
  local rows = constructors(type_)
  local row = deep and self:pick(rows) or rows[1]
  local args = {}
  for i = 2, #row do
    args[i - 1] = deep and self:expr(row[i], depth - 1) or self:leaf(row[i])
  end
  return ir.Call(ir.Constructor(row[1], self.constructor_types[row[1]]), args)
end

local leaf = {
  tensor = generator.constant,
  tuple = function(self, type_) return ir.Tuple(self:leaves(type_.parts)) end,
  ref = function(self, type_) return ir.RefCreate(self:leaf(type_.part)) end,
  func = function(self, type_)
    return self:closure(type_, function(result) return self:leaf(result) end)
  end,
  data = function(self, type_) return self:construct(type_, false, 0) end,
}

-- What can be used from here on, until the scope is forgotten.
function generator:see(node, type_)
  self.scope[#self.scope + 1] = { node, type_ }
end

function generator:forget(mark)
  for i = #self.scope, mark + 1, -1 do self.scope[i] = nil end
end

function generator:known(type_)
  local list = {}
  for _, row in ipairs(self.scope) do
    if row[2].text == type_.text then list[#list + 1] = row[1] end
  end
  return #list > 0 and self:pick(list) or nil
end

function generator:leaf(type_)
  return self:chance(0.8) and self:known(type_) or leaf[type_.kind](self, type_)
end

-- -------------------------------------------------------------- attributes

local values = {
  function(g) return g:below(100) - 50 end,
  function(g) return g:pick { 0.5, -1.0, 1e300, 3.25e-7, 1 / 0, -1 / 0 } end,
  function(g) return g:pick { "", "text", "a\"b\\c\n", "\0\1", "*/", "\xc3\xa4" } end,
  function(g) return g:chance(0.5) end,
  function() return { 1, 2, 3 } end,
  function() return { "a", "b c" } end,
  function(g) return { k = g:below(5), l = { 1.5, 2.5 } } end,
  function() return { { 1, 2 }, { 3 } } end,
}

function generator:attrs()
  local attrs = {}
  for _ = 1, self:below(3) do
    attrs[self:pick { "Inline", "k", "odd name", "global_symbol", "z" }] = self:pick(values)(self)
  end
  return attrs
end

-- ------------------------------------------------------------- expressions

-- Each makes an expression of a type out of smaller ones, or nil.
local makers = {}

-- Appends the expression `make` gives, its new nodes seen inside it only.
function generator:inside(make)
  local mark = #self.scope
  local node = make()
  self:forget(mark)
  return node
end

function makers:let(type_, depth)
  local bound = self:type(2)
  local var = self:chance(0.8) and self:var(bound) or ir.Var(self:pick(names))
  local value = self:inside(function() return self:expr(bound, depth - 1) end)
  return self:inside(function()
    if var.type then self:see(var, bound) end
    return ir.Let(var, value, self:expr(type_, depth - 1))
  end)
end

function makers:loop(type_, depth)
  local loop = func({ int32 }, type_)
  local f, n = self:var(loop), self:var(int32)
  local again = ir.Call(f, { op.subtract(n, ir.Constant(pl.tensor(1, "int32"))) })
  local body = self:inside(function()
    self:see(n, int32)
    local zero = ir.Constant(pl.tensor(0, "int32"))
    return ir.If(op.less_equal(n, zero), self:expr(type_, depth - 1), again)
  end)
  local start = ir.Constant(pl.tensor(self:below(3), "int32"))
  return ir.Let(f, ir.Function({ n }, body, type_.text), ir.Call(f, { start }))
end

makers["if"] = function(self, type_, depth)
  local cond = self:expr(bool, depth - 1)
  local yes = self:inside(function() return self:expr(type_, depth - 1) end)
  local no = self:inside(function() return self:expr(type_, depth - 1) end)
  return ir.If(cond, yes, no)
end

function makers:project(type_, depth)
  local parts = self:types(self:below(3), 1)
  local at = self:below(#parts)
  parts[at] = type_
  return ir.TupleGetItem(self:expr(tuple(parts), depth - 1), at - 1)
end

function makers:apply(type_, depth)
  local params = self:types(self:below(3) - 1, 1)
  local f = self:expr(func(params, type_), depth - 1)
  return ir.Call(f, self:exprs(params, depth - 1))
end

function makers:global(type_, depth)
  local fits = {}
  for _, row in ipairs(self.functions) do
    if row.type.result.text == type_.text then fits[#fits + 1] = row end
  end
  if #fits == 0 then return nil end
  local row = self:pick(fits)
  return ir.Call(ir.GlobalVar(row.name, row.type.text), self:exprs(row.type.params, depth - 1))
end

function makers:generic(type_, depth)
  local g = self.generic
  if type_.text == "int32" then
    local name = self:pick { "List", "Tree" }
    return ir.Call(name == "List" and g.length or g.depth,
      { self:expr(data(name, self:type(1)), depth - 1) })
  elseif type_.kind == "data" and type_.name == "List" then
    local from = self:type(1)
    return ir.Call(g.map, self:exprs({ func({ from }, type_.args[1]), data("List", from) },
      depth - 1))
  elseif type_.kind == "func" and #type_.params == 1 then
    local middle = self:type(1)
    return ir.Call(g.compose, self:exprs({ func({ middle }, type_.result),
      func(type_.params, middle) }, depth - 1))
  end
  return ir.Call(g.id, { self:expr(type_, depth - 1) })
end

function makers:read(type_, depth)
  return ir.RefRead(self:expr(ref(type_), depth - 1))
end

function makers:write(type_, depth)
  local part = self:type(1)
  local cell = self:expr(ref(part), depth - 1)
  local write = ir.RefWrite(cell, self:inside(function() return self:expr(part, depth - 1) end))
  return ir.Let(self:var(tuple {}), write, self:expr(type_, depth - 1))
end

function generator:pattern(type_, depth)
  if self:chance(0.2) then return ir.PatternWildcard() end
  if depth == 0 or self:chance(0.5) then
    local var = self:chance(0.5) and self:var(type_) or ir.Var(self:pick(names))
    if var.type then self:see(var, type_) end
    return ir.PatternVar(var)
  end
  local fields, parts = {}, type_.parts or {}
  local row = type_.kind == "data" and self:pick(constructors(type_))
  if row then parts = table.move(row, 2, #row, 1, {}) end
  if not row and type_.kind ~= "tuple" then return ir.PatternWildcard() end
  for i, part in ipairs(parts) do fields[i] = self:pattern(part, depth - 1) end
  if row then return ir.PatternConstructor(row[1], fields) end
  return ir.PatternTuple(fields)
end

-- The last arm fits all.
function makers:match(type_, depth)
  local of = self:pick { tuple(self:types(self:below(3) - 1, 1)), data("List", self:type(1)),
    data("Tree", int32), data("Either", float32, self:type(1)), data "Color" }
  local value, arms = self:expr(of, depth - 1), {}
  for i = 1, self:below(3) do
    local mark = #self.scope
    local pattern = self:pattern(of, 2)
    arms[i] = { pattern, self:expr(type_, depth - 1) }
    self:forget(mark)
  end
  arms[#arms + 1] = { "_", self:inside(function() return self:expr(type_, depth - 1) end) }
  return ir.Match(value, arms, { complete = self:chance(0.5) })
end

local unary = { "tanh", "exp", "negative", "nn.relu", "abs" }
local binary = { "add", "subtract", "multiply", "maximum", "minimum" }

local onnx_numbers = { float32 = 1, uint8 = 2, int8 = 3, int32 = 6, int64 = 7, float16 = 10,
  float64 = 11 }

function makers:call(type_, depth)
  if type_.kind ~= "tensor" then return nil end
  local float = type_.dtype == "float32" or type_.dtype == "float64"
  if type_.dtype == "bool" then
    if #type_.shape > 0 then return nil end
    local side = self:pick { int32, float32 }
    return op[self:pick { "less", "equal", "greater" }](table.unpack(self:exprs({ side, side },
      depth - 1)))
  elseif float and self:chance(0.4) then
    return ir.Call(self:pick(unary), { self:expr(type_, depth - 1) })
  elseif self:chance(0.3) then
    local from = self:pick(tensors)
    if #from.shape ~= #type_.shape then return nil end
    for i, dim in ipairs(type_.shape) do if from.shape[i] ~= dim then return nil end end
    return op.cast(self:expr(from, depth - 1), { to = onnx_numbers[type_.dtype] })
  end
  return ir.Call(self:pick(binary), self:exprs({ type_, type_ }, depth - 1))
end

function makers:leaf(type_) return self:leaf(type_) end

-- What the leaf of a type is made of, but of larger parts.
function makers:make(type_, depth)
  if type_.kind == "tuple" then return ir.Tuple(self:exprs(type_.parts, depth - 1)) end
  if type_.kind == "ref" then return ir.RefCreate(self:expr(type_.part, depth - 1)) end
  if type_.kind == "data" then return self:construct(type_, true, depth) end
  if type_.kind == "tensor" then return self:constant(type_) end
  return self:closure(type_, function(result) return self:expr(result, depth - 1) end)
end

local maker_names = {}
for name in pairs(makers) do maker_names[#maker_names + 1] = name end
table.sort(maker_names)

function generator:exprs(types, depth)
  local list = {}
  for i, type_ in ipairs(types) do list[i] = self:expr(type_, depth) end
  return list
end

-- An expression of a type. It may be used again where it is seen.
function generator:expr(type_, depth)
  self.budget = self.budget - 1
  local node
  if depth > 0 and self.budget > 0 then
    node = makers[self:pick(maker_names)](self, type_, depth)
  end
  node = node or self:leaf(type_)
  if self:chance(0.3) then self:see(node, type_) end
  return node
end

-- ----------------------------------------------------------------- modules

local function new(seed)
  local random = seeded_random(seed)
  return setmetatable({ random = random, scope = {}, functions = {}, budget = 0 }, generator)
end

local prelude

-- The prelude, the types of its constructors, and its functions.
local function begin(self)
  prelude = prelude or assert(pl.infer_type(assert(pl.parse(PRELUDE))))
  self.constructor_types, self.generic = {}, {}
  for _, data_type in ipairs(prelude.types) do
    for _, constructor in ipairs(data_type.constructors or {}) do
      self.constructor_types[constructor.name] = constructor.type
    end
  end
  for name, fn in pairs(prelude) do self.generic[name] = ir.GlobalVar(name, fn.type) end
  return prelude
end

function generator:define(name, type_, size)
  self.scope, self.budget = {}, size
  local fn = self:closure(type_, function(result)
    return self:expr(result, 2 + self:below(5))
  end)
  self.functions[#self.functions + 1] = { name = name, type = type_ }
  return fn
end

local function random_relay(seed)
  local self = new(seed)
  local mod = begin(self)
  local globals = { "f", "odd name", "g1", "main1" }
  for i = 1, self:below(4) - 1 do
    local name = globals[i]
    mod = mod:with { [name] = self:define(name, func(self:types(self:below(3) - 1, 2),
      self:type(2)), 20) }
  end
  return mod:with { main = self:define("main", func({}, self:type(3)), 60) }
end

return random_relay
