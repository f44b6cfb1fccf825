-- A model of more than 2 GB: read whole, written with its weights beside it.
-- The file is a hole but for its ends.

local command = require "spec.cli.command"
local protobuf = require "spec.onnx.protobuf"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local ELEMENTS = 3 << 28 -- float32: 3 GiB

local varint, header, field = protobuf.varint, protobuf.header, protobuf.field

local function node(inputs, output, op)
  local text = ""
  for name in inputs:gmatch "%S+" do text = text .. field(1, name) end
  return field(1, text .. field(2, output) .. field(4, op))
end

local function value(number, name)
  local shape = field(2, field(1, "\8" .. varint(ELEMENTS)))
  return field(number, field(1, name) .. field(2, field(1, "\8\1" .. shape)))
end

-- y = Identity(x + w), with w inline.
local function write(path)
  local size = 4 * ELEMENTS
  local nodes = node("x w", "s", "Add") .. node("s", "y", "Identity")
  local tensor = "\8" .. varint(ELEMENTS) .. "\16\1" .. field(8, "w") .. header(9, size)
  local weight = header(5, #tensor + size) .. tensor
  local values = value(11, "x") .. value(12, "y")
  local file = assert(io.open(path, "wb"))
  assert(file:write("\8\8", header(7, #nodes + #weight + size + #values), nodes, weight))
  assert(file:seek("cur", size))
  assert(file:write(values, field(8, "\16\17")))
  assert(file:close())
end

local function size_of(name)
  local file = assert(io.open(folder .. "/" .. name, "rb"))
  local size = file:seek "end"
  file:close()
  return size
end

local function bytes_of(name)
  local file = assert(io.open(folder .. "/" .. name, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

local function opt(from, to)
  local pipe = io.popen(("%s opt %s/%s -o %s/%s --stats json 2>&1"):format(command.program, folder,
    from, folder, to))
  local text = pipe:read "a"
  assert(pipe:close(), text)
  local stats = {}
  for key, number in text:gmatch '"([%w_]+)":(%d+)' do
    stats[key] = stats[key] or tonumber(number)
  end
  return stats
end

describe("a model of more than 2 GB", function()
  setup(function() write(folder .. "/in.onnx") end)

  it("is written with external data, and weights stay where they are", function()
    local stats = opt("in.onnx", "out.onnx")
    assert.equal(2, stats.nodes_before)
    assert.equal(1, stats.nodes_after)
    assert.is_true(stats.peak_rss_bytes < 512e6)
    assert.equal(4 * ELEMENTS, size_of "out.onnx.data")
    assert.is_true(size_of "out.onnx" < 1000)
    assert.is_true(stats.bytes_before > 3e9 and stats.bytes_after > 3e9)
  end)

  it("does not change the second time, nor in place", function()
    local once = bytes_of "out.onnx"
    opt("out.onnx", "twice.onnx")
    assert.equal(once, bytes_of "twice.onnx")
    opt("out.onnx", "out.onnx")
    assert.equal(once, bytes_of "out.onnx")
    assert.equal(4 * ELEMENTS, size_of "out.onnx.data")
  end)
end)
