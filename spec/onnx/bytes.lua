--- onnx_bytes: ONNX models as specs write them, by hand: each function gives
-- the bytes of one message of onnx.proto.
--
--     onnx.model { graph = onnx.graph { name = "g", inputs = { onnx.value("x", 1, { 2 }) },
--       nodes = { onnx.node("Relu", "x", "y") }, outputs = { onnx.value("y", 1, { 2 }) } } }

local protobuf = require "spec.onnx.protobuf"

local field, varint = protobuf.field, protobuf.varint
local onnx = {}

local function int(number, value) return varint(number << 3) .. varint(value) end

-- One field for each of the messages.
local function all(number, list)
  local out = {}
  for i, bytes in ipairs(list or {}) do out[i] = field(number, bytes) end
  return table.concat(out)
end

-- One field for each word; "_" is the empty name.
local function words(number, text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word == "_" and "" or word end
  return all(number, list)
end

onnx.kinds = { float = 1, int = 2, string = 3, tensor = 4, graph = 5, floats = 6, ints = 7,
  strings = 8, tensors = 9, graphs = 10 }

--- Attributes: by value, or a reference to one of the enclosing function.
function onnx.int(name, value) return field(1, name) .. int(3, value) .. int(20, 2) end
function onnx.ints(name, list)
  local out = { field(1, name) }
  for _, value in ipairs(list) do out[#out + 1] = int(8, value) end
  return table.concat(out) .. int(20, 7)
end
function onnx.subgraph(name, graph) return field(1, name) .. field(6, graph) .. int(20, 5) end
function onnx.reference(name, of, kind)
  return field(1, name) .. int(20, onnx.kinds[kind]) .. field(21, of)
end
function onnx.tensor_attr(name, tensor) return field(1, name) .. field(5, tensor) .. int(20, 4) end

--- node(type, "inputs", "outputs" [, attributes [, { name =, domain = }]])
function onnx.node(op, inputs, outputs, attributes, more)
  more = more or {}
  return words(1, inputs) .. words(2, outputs) .. (more.name and field(3, more.name) or "")
    .. field(4, op) .. all(5, attributes) .. (more.domain and field(7, more.domain) or "")
end

local function shape(dims)
  local out = {}
  for i, dim in ipairs(dims) do
    out[i] = field(1, type(dim) == "string" and field(2, dim) or int(1, dim))
  end
  return field(2, table.concat(out))
end

--- A ValueInfoProto; without dims of any rank, without dtype of any type.
function onnx.value(name, dtype, dims)
  if not dtype then return field(1, name) end
  return field(1, name) .. field(2, field(1, int(1, dtype) .. (dims and shape(dims) or "")))
end

local packing = { [1] = "<f", [7] = "<i8", [9] = "<B" }

--- A TensorProto of numbers: dtype 1 float32, 7 int64, 9 bool.
function onnx.tensor(name, dtype, dims, numbers)
  local out, data = {}, {}
  for i, dim in ipairs(dims) do out[i] = int(1, dim) end
  for i, number in ipairs(numbers) do data[i] = packing[dtype]:pack(number) end
  return table.concat(out) .. int(2, dtype) .. field(8, name) .. field(9, table.concat(data))
end

--- A GraphProto: { name =, nodes =, initializers =, inputs =, outputs =, value_info = }
function onnx.graph(g)
  return all(1, g.nodes) .. field(2, g.name or "g") .. all(5, g.initializers) .. all(11, g.inputs)
    .. all(12, g.outputs) .. all(13, g.value_info)
end

local function opset(domain, version)
  return (domain ~= "" and field(1, domain) or "") .. int(2, version)
end

--- A FunctionProto: { name =, domain =, inputs = "x", outputs = "y", attributes = "a b",
-- defaults = { attribute }, nodes =, opset =, value_info = }
function onnx.func(f)
  return field(1, f.name) .. words(4, f.inputs) .. words(5, f.outputs)
    .. words(6, f.attributes or "") .. all(7, f.nodes) .. field(9, opset("", f.opset or 18))
    .. field(10, f.domain) .. all(11, f.defaults) .. all(12, f.value_info)
end

--- A ModelProto: { graph =, opset =, ir =, functions =, domains = { name = version } }
function onnx.model(m)
  local domains = opset("", m.opset or 18)
  local opsets = { domains }
  for name, version in pairs(m.domains or {}) do opsets[#opsets + 1] = opset(name, version) end
  return int(1, m.ir or 8) .. field(7, m.graph) .. all(8, opsets) .. all(25, m.functions)
end

return onnx
