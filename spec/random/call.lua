--- ONNX models of a few calls that no checker would let pass, made at random from
-- a seed: too few operands, omitted ones, ranks and dtypes that do not fit,
-- attributes that are missing or odd, types that are declared in spite of them.
--
--     random_call(seed) -> bytes of the model, list of its inputs' tensors

local pl = require "perilune"
local zoo = require "perilune.zoo.model"
local seeded_random = require "spec.random.seeded"

-- Operators of the default domain by the rows of onnx/ops.def.
local rows = {}
for line in io.lines "engine/onnx/ops.def" do
  local domain, name, _, since, id =
    line:match '^ONNX%("([^"]*)", "(%w+)",%s*(%d+),%s*(%d+), ([%w_]+),'
  if domain == "" then rows[#rows + 1] = { name = name, since = tonumber(since), id = id } end
end
local names = {}
for line in io.lines "engine/op/ops.def" do
  local id, name = line:match '^OP%(([%w_]+),%s*"([^"]+)"'
  if id then names[id] = name end
end
for _, row in ipairs(rows) do row.op = pl.op[names[row.id]] end

local dtypes = { "float32", "float32", "float32", "int64", "int64", "int32", "bool", "uint8",
  "float16", "float64", "int8" }
local shapes = { {}, { 1 }, { 2 }, { 3 }, { 2, 3 }, { 1, 3 }, { 3, 1 }, { 0 }, { 2, 0 },
  { 1, 2, 3 }, { 1, 3, 4, 4 }, { 2, 3, 1, 1 }, { 1, 1, 1, 1, 2 }, { 4 } }
local formats = { float32 = "<f", float64 = "<d", int64 = "<i8", int32 = "<i4", bool = "B",
  uint8 = "B", int8 = "b", float16 = "<I2" }
local numbers = { 0, 1, 1, 2, 0, 3, 1, -1, 4, 127 }
local halves = { 0, 0x3c00, 0x4000, 0xbc00, 0x7c00, 0x7e00 }

local class = {}
class.__index = class

function class:below(n) return self.random(0, n - 1) end
function class:chance(p) return self.random() < p end
function class:pick(list) return list[self.random(1, #list)] end

local function extent(shape)
  local n = 1
  for _, dim in ipairs(shape) do n = n * dim end
  return n
end

function class:elements(dtype, shape)
  local bytes, ends = {}, self:chance(0.1)
  for i = 1, extent(shape) do
    local x = self:pick(numbers)
    if dtype == "bool" then x = x & 1
    elseif dtype == "uint8" then x = x & 255
    elseif dtype == "float16" then x = self:pick(halves)
    elseif ends and dtype:find "float" then x = self:pick { 0 / 0, 1 / 0, -1 / 0, 1e30, -0.0 }
    elseif ends and dtype == "int64" then
      x = self:pick { math.mininteger, math.maxinteger, 1 << 40 }
    end
    bytes[i] = formats[dtype]:pack(x)
  end
  return table.concat(bytes)
end

-- The dims as a file may declare them: with names and unknown ones.
function class:loosened(shape)
  if self:chance(0.2) then return nil end
  local dims = {}
  for i, dim in ipairs(shape) do
    dims[i] = self:chance(0.7) and dim or self:pick { "?", "N" .. dim }
  end
  return dims
end

-- A new value: an input, or an initializer.
function class:fresh(dtype)
  dtype = dtype or self:pick(dtypes)
  local shape = self:pick(shapes)
  local name = "v" .. #self.values + 1
  local bytes = self:elements(dtype, shape)
  if self:chance(0.5) then
    self.model:initializer(name, dtype, shape, bytes)
  else
    self.model:input(name, dtype, self:loosened(shape))
    self.inputs[#self.inputs + 1] = pl.tensor(bytes, dtype, shape)
  end
  self.values[#self.values + 1] = name
  return name
end

function class:operand(i)
  if self:chance(0.08) then return "" end
  if self.last and (i == 1 and self:chance(0.8) or self:chance(0.1)) then return self.last end
  if #self.values > 0 and self:chance(0.3) then return self:pick(self.values) end
  return self:fresh(i > 1 and self:chance(0.5) and "int64" or nil)
end

function class:attribute(kind)
  if kind == "int" or kind == "any" then return self:pick { 0, 1, 1, -1, 2, 7, -3, 1 << 40 } end
  if kind == "ints" then
    local list = {}
    for i = 1, self:pick { 1, 1, 2, 2, 3, 4 } do list[i] = self:pick { 0, 1, 1, 2, -1, 3 } end
    return list
  end
  if kind == "float" then return self:pick { 0.0, 1.0, -1.0, 1e30 } end
  if kind == "string" then return self:pick { "LEFT", "linear", "SAME_UPPER", "ij,jk->ik", "" } end
end

function class:attributes(op)
  local attrs = {}
  for name, kind in op.attrs:gmatch "([%w_]+):(%a+)" do
    if self:chance(0.3) then attrs[name] = self:attribute(kind) end
  end
  return attrs
end

function class:call(row, last)
  local op = row.op
  local most = op.max_args or op.min_args + 2
  local least = self:chance(0.6) and op.min_args or 0
  local operands, outputs = {}, {}
  for i = 1, least + self:below(math.max(most, least) - least + (self:chance(0.1) and 2 or 1)) do
    operands[i] = self:operand(i)
  end
  for i = 1, self:chance(0.8) and 1 or 1 + self:below(3) do
    outputs[i] = ("%s%d"):format(row.name, #self.values + i)
  end
  local declared = self:chance(0.5) and { self:pick(dtypes), self:pick(shapes) }
  if declared and not last then
    self.model:value(outputs[1], declared[1], self:loosened(declared[2]))
  end
  self.model:node(row.name, operands, self:attributes(op), outputs)
  self.last = outputs[1]
  self.values[#self.values + 1] = outputs[1]
end

local function make(seed)
  local g = setmetatable({ random = seeded_random(seed), inputs = {}, values = {} }, class)
  local opset = g:pick { 7, 9, 11, 13, 13, 17, 18, 21, 22, 23, 24 }
  g.model = zoo.new { name = "calls", opset = opset, seed = seed }
  for i = 1, 1 + g:below(4) do
    local row
    repeat row = g:pick(rows) until row.since <= opset
    g:call(row, i == 4)
  end
  g.model:output(g.last, g:pick(dtypes), g:chance(0.3) and g:pick(shapes) or nil)
  return g.model:tostring(), g.inputs
end

return make
