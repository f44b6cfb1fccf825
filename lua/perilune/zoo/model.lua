--- A writer of ONNX models, node by node, as exporters write them.
--
--     local model = require "perilune.zoo.model"
--     local m = model.new { name = "tiny", opset = 17, seed = 1 }
--     local x = m:input("x", "float32", { "N", 64 })
--     local w = m:weight("w", { 64, 10 }, 0.1)
--     m:output(m:node("MatMul", { x, w }), "float32", { "N", 10 })
--     assert(m:save "tiny.onnx")
--
-- It knows the wire format and nothing of operators: names are handed on as
-- they are given, so that a model may be as odd as a test wants it. Elements
-- are strings of raw little-endian bytes, never copied together, or random elements
-- (model.random), made chunk by chunk when the model is written: a model of any
-- size takes a few megabytes.

local argument = require "perilune.argument"
require "perilune.core".internal() -- errors name the scripts of others

local replace_file = require "perilune.replace_file"
local sorted_keys = require "perilune.sorted_keys"

local pack, char = string.pack, string.char

local model = {}

--- Numbers of TensorProto.DataType.
model.dtypes = {
  float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, int64 = 7,
  string = 8, bool = 9, float16 = 10, float64 = 11, uint32 = 12, uint64 = 13,
  bfloat16 = 16,
}

-- ---------------------------------------------------------------- wire format

local function varint(n)
  if n >= 0 and n < 128 then return char(n) end
  local bytes = {}
  repeat
    local low = n & 127
    n = n >> 7
    bytes[#bytes + 1] = char(n ~= 0 and low | 128 or low)
  until n == 0
  return table.concat(bytes)
end

local function int_field(field, n)
  return varint(field << 3) .. varint(n)
end

local function float_field(field, x)
  return varint(field << 3 | 5) .. pack("<f", x)
end

-- A message is a list of strings and noises with the size of them all, so that
-- weights are referred to and not copied.
local function message()
  return { size = 0 }
end

local function add(m, bytes)
  m[#m + 1] = bytes
  m.size = m.size + #bytes
end

local function add_bytes(m, field, bytes)
  add(m, varint(field << 3 | 2) .. varint(#bytes))
  add(m, bytes)
end

-- Calls write(string) with what a part of a message stands for, until it gives
-- nil and a reason.
local function write_part(part, write)
  if type(part) == "string" then return write(part) end
  for bytes in part:chunks() do
    local ok, reason = write(bytes)
    if not ok then return nil, reason end
  end
  return true
end

local function add_message(m, field, inner)
  add(m, varint(field << 3 | 2) .. varint(inner.size))
  table.move(inner, 1, #inner, #m + 1, m)
  m.size = m.size + inner.size
end

-- ------------------------------------------------------------------- the parts

local function dtype_number(name)
  return model.dtypes[name] or argument.fail(("unknown dtype '%s'"):format(name))
end

local function tensor_message(dtype, dims, bytes, name)
  local m = message()
  for _, d in ipairs(dims) do add(m, int_field(1, d)) end
  add(m, int_field(2, dtype_number(dtype)))
  if name then add_bytes(m, 8, name) end
  add_bytes(m, 9, bytes)
  return m
end

local function value_info(name, dtype, dims)
  local tensor = message()
  add(tensor, int_field(1, dtype_number(dtype)))
  if dims then
    local shape = message()
    for _, d in ipairs(dims) do
      local dim = message()
      if type(d) == "number" then add(dim, int_field(1, d))
      elseif d ~= "?" then add_bytes(dim, 2, d) end
      add_message(shape, 1, dim)
    end
    add_message(tensor, 2, shape)
  end
  local kind, m = message(), message()
  add_message(kind, 1, tensor)
  add_bytes(m, 1, name)
  add_message(m, 2, kind)
  return m
end

local function add_list(m, value)
  local first = value[1]
  if type(first) == "string" then
    for _, s in ipairs(value) do add_bytes(m, 9, s) end
    return 8
  elseif math.type(first) == "float" then
    for _, x in ipairs(value) do add(m, float_field(7, x)) end
    return 6
  end
  for _, i in ipairs(value) do add(m, int_field(8, i)) end
  return 7
end

-- The kind of an attribute follows from its value: integer, float, string,
-- list, { dtype =, dims =, bytes = } (a tensor) or a model (a subgraph).
local function attribute(name, value)
  local m = message()
  local kind
  add_bytes(m, 1, name)
  if math.type(value) == "integer" then
    kind = 2
    add(m, int_field(3, value))
  elseif type(value) == "number" then
    kind = 1
    add(m, float_field(2, value))
  elseif type(value) == "string" then
    kind = 3
    add_bytes(m, 4, value)
  elseif value.dtype then
    kind = 4
    add_message(m, 5, tensor_message(value.dtype, value.dims, value.bytes))
  elseif value.graph then
    kind = 5
    add_message(m, 6, value:graph())
  else
    kind = add_list(m, value)
  end
  add(m, int_field(20, kind))
  return m
end

-- ------------------------------------------------------------------- the model

local class = {}
class.__index = class

--- An empty model, or a subgraph: only its name is then used.
function model.new(options)
  return setmetatable({
    name = options.name, opset = options.opset or 17, ir_version = options.ir_version or 8,
    producer = options.producer or "perilune.zoo", nodes = message(),
    initializers = message(), inputs = message(), outputs = message(), values = message(),
    count = 0,
    seed = options.seed or 0, weights = 0, scope = "", counts = {},
  }, class)
end

function class:input(name, dtype, dims)
  add_message(self.inputs, 11, value_info(name, dtype, dims))
  return name
end

function class:output(name, dtype, dims)
  add_message(self.outputs, 12, value_info(name, dtype, dims))
  return name
end

--- Declares the type of a value between inputs and outputs.
function class:value(name, dtype, dims)
  add_message(self.values, 13, value_info(name, dtype, dims))
  return name
end

function class:initializer(name, dtype, dims, bytes)
  add_message(self.initializers, 5, tensor_message(dtype, dims, bytes, name))
  return name
end

local function entry(m, field, key, value)
  local pair = message()
  add_bytes(pair, 1, key)
  add_bytes(pair, 2, tostring(value))
  add_message(m, field, pair)
end

--- An initializer whose elements lie in the file `location` beside the model.
function class:external(name, dtype, dims, location, offset, length)
  local m = message()
  for _, d in ipairs(dims) do add(m, int_field(1, d)) end
  add(m, int_field(2, dtype_number(dtype)))
  add_bytes(m, 8, name)
  entry(m, 13, "location", location)
  entry(m, 13, "offset", offset)
  entry(m, 13, "length", length)
  add(m, int_field(14, 1))
  add_message(self.initializers, 5, m)
  return name
end

--- Nodes that `body` makes are named as part of `name`, as torch names those of
-- a module ("/layer1/conv1/Conv"); gives what body gives.
function class:within(name, body)
  local outer = self.scope
  self.scope = ("%s/%s"):format(outer, name)
  local result = table.pack(body())
  self.scope = outer
  return table.unpack(result, 1, result.n)
end

-- In a scope as torch counts: "/layer1/Conv", then "/layer1/Conv_1".
local function make_name(self, op)
  if self.scope == "" then return ("/%s_%d"):format(op, self.count) end
  local name = ("%s/%s"):format(self.scope, op)
  local count = self.counts[name] or 0
  self.counts[name] = count + 1
  return count == 0 and name or ("%s_%d"):format(name, count)
end

--- One node; gives the name of its first output. `outputs` is a list of names,
-- a name, or nil: then one is made as torch does ("/Conv_12_output_0").
function class:node(op, inputs, attributes, outputs, name)
  name = name or make_name(self, op)
  self.count = self.count + 1
  if type(outputs) ~= "table" then outputs = { outputs or name .. "_output_0" } end
  local m = message()
  for _, input in ipairs(inputs) do add_bytes(m, 1, input) end
  for _, output in ipairs(outputs) do add_bytes(m, 2, output) end
  add_bytes(m, 3, name)
  add_bytes(m, 4, op)
  for _, key in ipairs(sorted_keys(attributes or {})) do
    add_message(m, 5, attribute(key, attributes[key]))
  end
  add_message(self.nodes, 1, m)
  return outputs[1]
end

--- A Constant node of int64 values: a number is a scalar, a list a vector.
function class:constant(value, name)
  local values = type(value) == "table" and value or { value }
  local bytes = {}
  for i, v in ipairs(values) do bytes[i] = pack("<i8", v) end
  return self:node("Constant", {}, { value = {
    dtype = "int64", dims = type(value) == "table" and { #values } or {},
    bytes = table.concat(bytes) } }, nil, name)
end

--- A Constant node of one float32.
function class:scalar(value, name)
  return self:node("Constant", {}, { value = { dtype = "float32", dims = {},
    bytes = pack("<f", value) } }, nil, name)
end

--- The GraphProto as a message.
function class:graph()
  local m = message()
  local function append(part)
    table.move(part, 1, #part, #m + 1, m)
    m.size = m.size + part.size
  end
  append(self.nodes)
  add_bytes(m, 2, self.name)
  append(self.initializers)
  append(self.inputs)
  append(self.outputs)
  append(self.values)
  return m
end

local function encode(self)
  local m, opset = message(), message()
  add_bytes(opset, 1, "")
  add(opset, int_field(2, self.opset))
  add(m, int_field(1, self.ir_version))
  add_bytes(m, 2, self.producer)
  add_message(m, 7, self:graph())
  add_message(m, 8, opset)
  return m
end

--- How many bytes the model takes.
function class:size()
  return encode(self).size
end

--- The ModelProto's bytes.
function class:tostring()
  local chunks = {}
  local function write(bytes)
    chunks[#chunks + 1] = bytes
    return true
  end
  for _, part in ipairs(encode(self)) do write_part(part, write) end
  return table.concat(chunks)
end

-- Protocol buffers end at 2 GB.
local function write_all(write, parts)
  if parts.size >= 1 << 31 then
    return nil, ("the model would have %.1f GB, an ONNX file has at most 2")
      :format(parts.size / 1e9)
  end
  for _, part in ipairs(parts) do
    local ok, reason = write_part(part, write)
    if not ok then return nil, reason end
  end
  return true
end

--- Writes beside `path` and renames: true, or nil and the reason.
function class:save(path)
  local parts = encode(self)
  return replace_file(path, function(write) return write_all(write, parts) end)
end

-- ------------------------------------------------------------------- weights

local random_class = {}
random_class.__index = random_class

local CHUNK = 1 << 18 -- elements

function random_class:__len() return self.count * 4 end

--- An iterator over strings that make up the elements.
function random_class:chunks()
  local random_bytes = require "perilune.core".random_bytes
  local first = 0
  return function()
    local count = math.min(CHUNK, self.count - first)
    if count == 0 then return nil end
    first = first + count
    return random_bytes(first - count, count, self)
  end
end

--- `count` random float32 of that mean (0) and standard deviation, uniform; of
-- one seed (0) the same on every machine. Stands where a string of elements does.
function model.random(count, deviation, mean, seed)
  -- Uniform in [-sqrt 3, sqrt 3) has standard deviation 1.
  local half, middle = 3 ^ 0.5 * deviation, mean or 0
  return setmetatable({ count = count, seed = seed or 0, low = middle - half,
    high = middle + half }, random_class)
end

--- A float32 initializer of random elements, which no other weight of the model has.
function class:weight(name, dims, deviation, mean)
  local count = 1
  for _, d in ipairs(dims) do count = count * d end
  self.weights = self.weights + 1
  return self:initializer(name, "float32", dims,
    model.random(count, deviation, mean, self.seed << 20 ~ self.weights))
end

--- `count` float32 of one value.
function model.fill(count, value)
  return pack("<f", value):rep(count)
end

return model
