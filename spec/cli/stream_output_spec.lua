-- Results written to standard output, pipes and devices instead of files.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()
local input, output = folder .. "/in.onnx", folder .. "/out.onnx"

-- Weights of a mebibyte, most of them zero: files keep holes, streams do not.
local function holed()
  local m = model.new { name = "holed" }
  local x = m:input("x", "float32", { 1 << 18 })
  local weights = model.fill(1 << 18, 0)
  local sum = m:node("Add", { x, m:initializer("w", "float32", { 1 << 18 }, weights) })
  m:output(m:node("Relu", { sum }, nil, "y"), "float32", { 1 << 18 })
  return m
end

setup(function()
  assert(holed():save(input))
  assert.equal(0, (command.run(folder, ("opt -q -p '' %s -o %s"):format(input, output))))
end)

teardown(function() os.execute("rm -rf " .. folder) end)

describe("perilune opt", function()
  it("writes the model and nothing else to standard output for '-'", function()
    local status, out, err = command.run(folder, ("opt -p '' %s -o -"):format(input))
    assert.equal(0, status)
    assert.is_true(out == command.read(output))
    assert.matches("nodes +2 +2\n", err)
  end)

  it("puts the line of statistics on standard error then", function()
    local status, out, err = command.run(folder, ("opt -p '' --stats json %s -o -"):format(input))
    assert.equal(0, status)
    assert.is_true(out == command.read(output))
    assert.matches('"nodes_after":2,', err, 1, true)
  end)

  it("writes a pipe from the first byte to the last", function()
    local pipe, read = folder .. "/pipe", folder .. "/read.onnx"
    assert(os.execute("mkfifo " .. pipe))
    assert(os.execute(("(cat %s >%s) & %s opt -q -p '' %s -o %s && wait"):format(
      pipe, read, command.program, input, pipe)))
    assert.is_true(command.read(read) == command.read(output))
    assert(os.execute("test -p " .. pipe))
  end)

  it("fails when a device takes no more, and leaves it there", function()
    if not os.execute "test -c /dev/full" then return pending "no /dev/full" end
    local status, _, err = command.run(folder, ("opt -p '' %s -o /dev/full"):format(input))
    assert.equal(1, status)
    assert.matches("cannot write '/dev/full': No space left on device", err, 1, true)
    assert(os.execute "test -c /dev/full")
  end)
end)

describe("another command", function()
  local small = "zoo resnet18 --set width=8 --set image=32 "

  it("writes its result and nothing else to standard output for '-'", function()
    assert.equal(0, (command.run(folder, small .. "-o " .. output)))
    local status, out = command.run(folder, small .. "-o -")
    assert.equal(0, status)
    assert.is_true(out == command.read(output))
    local relay = command.write(folder .. "/in.relay",
      '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(nn.relu(%x)) }\n')
    local predicate = command.write(folder .. "/relu.lua",
      'return function(mod) return mod:text():find "nn.relu" == nil end')
    status, out = command.run(folder, ("reduce %s --predicate %s -o -"):format(relay, predicate))
    assert.equal(0, status)
    local pl = require "perilune"
    assert.equal(1, pl.tune.measure.nodes(assert(pl.onnx.parse(out))))
    assert.is_nil(io.open "-")
  end)

  it("fails when a device takes no more, and leaves it there", function()
    if not os.execute "test -c /dev/full" then return pending "no /dev/full" end
    local status, _, err = command.run(folder, small .. "-o /dev/full")
    assert.equal(1, status)
    assert.matches("No space left on device", err, 1, true)
    assert(os.execute "test -c /dev/full")
    local _, _, piped = os.execute(("%s %s -o - >/dev/full 2>%s/err"):format(command.program, small,
      folder))
    assert.equal(1, piped)
    assert.matches("No space left on device", command.read(folder .. "/err"), 1, true)
  end)
end)

describe("reading", function()
  it("ends where a device does not", function()
    local read_file = require "perilune.read_file"
    local mebibyte, n = ("\0"):rep(1 << 20), 0
    local device = { seek = function() return 0 end }
    function device.read()
      n = n + 1
      return mebibyte
    end
    local bytes, reason = read_file.all(device)
    assert.is_nil(bytes)
    assert.equal("it does not end within 2 GiB", reason)
    assert.equal(2049, n)
    assert.equal("a name", read_file(command.write(folder .. "/text", "a name")))
  end)
end)
