-- perilune run: what comes out, from which inputs, and what it says of bad ones.

local pl = require "perilune"
local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()
os.execute(("mkdir %s/set"):format(folder))
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end

local read, write = command.read, command.write

local function run(arguments) return command.run(folder, "run " .. arguments) end

local function fails(status, message, arguments)
  local s, _, err = run(arguments)
  assert.equal(status, s, err)
  assert.matches(message, err, 1, true)
end

-- z = x + y + w, w an input with the default 100.
local sum = path "sum.onnx"
do
  local m = model.new { name = "sum" }
  local x, y = m:input("x", "float32", { "N", 2 }), m:input("y", "float32", { "N", 2 })
  m:input("w", "float32", { 2 })
  m:initializer("w", "float32", { 2 }, model.fill(2, 100))
  m:output(m:node("Add", { m:node("Add", { x, y }), "w" }, nil, "z"), "float32", { "N", 2 })
  assert(m:save(sum))
end

local two = pl.tensor({ { 1, 2 }, { 3, 4 } }, "float32")
assert(two:save_npy(path "two.npy"))
assert(pl.onnx.save_value(two, path "two.pb"))
assert(pl.onnx.save_value(two, path "set/input_0.pb"))
assert(pl.onnx.save_value(two, path "set/input_1.pb"))

describe("perilune run", function()
  it("runs a model on files, and shows what comes out", function()
    local status, out, err = run(("%s --input x=%s --input y=%s"):format(sum, path "two.npy",
      path "two.pb"))
    assert.equal(0, status, err)
    assert.equal("z: Tensor[(2, 2), float32] [102, 104, 106, 108]\n", out)
  end)

  it("has the defaults of its inputs for scripts, too", function()
    local mod = assert(pl.onnx.load(sum))
    local defaults = assert(pl.onnx.defaults(mod))
    local name, value = next(defaults)
    assert.equal("w", name)
    assert.is_nil(next(defaults, "w"))
    assert.is_true(pl.equal(pl.const(value), pl.const(assert(pl.onnx.default(mod, "w")))))
    assert.is_nil((pl.onnx.default(mod, "x")))
    assert.same({}, pl.onnx.defaults(assert(pl.parse(mod:text()))))
  end)

  it("takes defaults, or what is given instead", function()
    pl.onnx.save_value(pl.tensor({ 0, 0 }, "float32"), path "w.pb")
    local _, out = run(("%s --input x=%s --input y=%s --input w=%s"):format(sum, path "two.npy",
      path "two.pb", path "w.pb"))
    assert.equal("z: Tensor[(2, 2), float32] [2, 4, 6, 8]\n", out)
  end)

  it("takes a folder of inputs", function()
    local status, out = run(("%s --data %s"):format(sum, path "set"))
    assert.equal(0, status)
    assert.matches("[102, 104, 106, 108]", out, 1, true)
    fails(2, "cannot be used together", ("%s --data %s --input random"):format(sum, path "set"))
    fails(1, "no_set", ("%s --data %s"):format(sum, path "no_set"))
  end)

  it("makes random inputs, of one seed the same, that fit those given", function()
    local _, first = run(sum .. " --input random:7")
    local _, again = run(sum .. " --input random:7")
    local _, other = run(sum .. " --input random:8")
    assert.matches("^z: Tensor%[%(1, 2%), float32%]", first)
    assert.equal(first, again)
    assert.are_not.equal(first, other)
    local _, sized = run(sum .. " --input random --dim N=3")
    assert.matches("Tensor[(3, 2), float32]", sized, 1, true)
    local _, fitting = run(("%s --input x=random --input y=%s"):format(sum, path "two.npy"))
    assert.matches("Tensor[(2, 2), float32]", fitting, 1, true)
  end)

  it("writes what comes out, with its name", function()
    local arguments = ("%s --data %s -o %s "):format(sum, path "set", path "out")
    assert.equal(0, (run(arguments)))
    local value, _, name = pl.onnx.load_value(path "out/output_0.pb")
    assert.same({ { 102, 104 }, { 106, 108 } }, value:to_table())
    assert.equal("z", name)
    assert.equal(0, (run(arguments .. "--npy")))
    assert.same(value:to_table(), pl.tensor.load_npy(path "out/output_0.npy"):to_table())
    fails(2, "--npy requires -o", sum .. " --npy")
    fails(1, "two.pb", ("%s --data %s -o %s"):format(sum, path "set", path "two.pb"))
  end)

  it("shows times", function()
    local _, out = run(("%s --data %s --time --repeat 3"):format(sum, path "set"))
    assert.matches("\nload [%d.]+ %a+, run [%d.]+ %a+, total [%d.]+ %a+\n$", out)
    fails(2, "'0' is not a count", sum .. " --repeat 0")
  end)

  it("writes and reads sequences", function()
    local m = model.new { name = "sequence", opset = 17 }
    local x = m:input("x", "float32", { 2, 2 })
    m:output(m:node("SplitToSequence", { x }, { axis = 0 }, "s"), "float32", { 1, 2 })
    assert(m:save(path "sequence.onnx"))
    local status, out, err = run(("%s --input x=%s -o %s"):format(path "sequence.onnx",
      path "two.npy", path "out"))
    assert.equal(0, status, err)
    assert.equal("s: a sequence of 2\n  Tensor[(1, 2), float32] [1, 2]\n"
      .. "  Tensor[(1, 2), float32] [3, 4]\n", out)
    local value = pl.onnx.load_value(path "out/output_0.pb", "seq(Tensor[*, float32])")
    assert.equal(2, #value)
    assert.same({ { 3, 4 } }, value[2]:to_table())
    fails(1, "is not a tensor", ("%s --input x=%s -o %s --npy"):format(path "sequence.onnx",
      path "two.npy", path "out"))
  end)

  it("takes elements of other shapes than a sequence's type says, as every runtime does", function()
    local items = pl.var("items", "seq(Tensor[(2), float32])")
    local mod = pl.module { main = pl.func({ items },
      pl.op.sequence_at(items, pl.const(pl.tensor(1)))) }
    local name = path "items.onnx"
    assert(pl.onnx.save(mod, name))
    local read_back = assert(pl.onnx.load(name))
    assert.equal("seq(Tensor[*, float32])", tostring(read_back.main.params[1].type))
    assert(pl.onnx.save_value({ pl.tensor({ 1 }, "float32"), pl.tensor({ 1, 2, 3 }, "float32") },
      path "items.pb"))
    local status, out, err = run(("%s --input items=%s"):format(name, path "items.pb"))
    assert.equal(0, status, err)
    assert.matches("Tensor[(3), float32] [1, 2, 3]", out, 1, true)
    assert.equal(read(name), pl.onnx.tostring(read_back))
  end)

  it("names inputs that are missing, unknown or given twice", function()
    fails(2, "\n  x: Tensor[(N, 2), float32]\n  y: Tensor[(N, 2), float32]", sum)
    fails(2, "--input q: the model has no input of this name; there is: x, y, w",
      sum .. " --input q=random")
    fails(2, "--input x: is given twice", sum .. " --input x=random --input x=random")
    fails(2, "expected NAME=FILE.npy", sum .. " --input x")
    fails(2, "expected a file .npy or .pb", sum .. " --input x=two.txt --input y=random")
    fails(2, "--dim N: expected NAME=SIZE", sum .. " --input random --dim N")
    fails(1, "--dim M=3", sum .. " --input random --dim M=3")
  end)

  it("tells what does not fit", function()
    pl.onnx.save_value(pl.tensor({ { 1, 2 } }, "int64"), path "ints.pb")
    fails(1, "argument 1 'x': expected Tensor[(N, 2), float32], got Tensor[(1, 2), int64]",
      ("%s --input x=%s --input y=random"):format(sum, path "ints.pb"))
    for name, bytes in pairs {
      ["junk.pb"] = "\255\255\255", ["empty.pb"] = "", ["empty.npy"] = "",
      ["short.npy"] = read(path "two.npy"):sub(1, -2), ["cut.npy"] = "\147NUMPY\1\0\255\255{",
    } do
      write(path(name), bytes)
      fails(1, path(name), ("%s --input x=%s --input y=random"):format(sum, path(name)))
    end
    fails(1, "none.npy", ("%s --input x=%s --input y=random"):format(sum, path "none.npy"))
    fails(1, "none.onnx", path "none.onnx")
  end)
end)
