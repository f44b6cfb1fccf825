-- --script FILE.lua: what a script registers is there for the command and its models.

local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end
local function path(name) return folder .. "/" .. name end

local SCRIPT = command.write(path "operator.lua", [[
local pl = require "perilune"
pl.ops["cli.twice"] = {
  doc = "Twice its operand.", args = { "x", "by?" }, attrs = { axis = -1 }, infer = "same",
  eval = function(inputs) return pl.eval(pl.func({}, pl.const(inputs.x) * 2.0)) end,
  onnx = { domain = "com.example.cli", op_type = "Twice", since_version = 2 },
}
pl.ops["cli.never"] = { args = { "x" } }
]])

local MODEL = command.write(path "model.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(), float32]) { add(cli.twice(%x), cli.twice(3f)) }
]])

describe("the option --script", function()
  it("shows operators that a script registers", function()
    local status, out = run("ops cli.twice --script " .. SCRIPT)
    assert.equal(0, status)
    assert.equal([[
cli.twice
  Twice its operand.
  operands: 1 to 2 (x, by?)
  attributes: axis:int=-1
  traits: pure
  ONNX: Twice from com.example.cli 2
  results: 1
  evaluated: yes
]], out)
    status, out = run("ops cli --script " .. SCRIPT)
    assert.equal(0, status)
    assert.matches("cli.twice +Twice its operand.", out)
    status, out = run("ops cli.never --script " .. SCRIPT)
    assert.equal(0, status)
    assert.matches("evaluated: no: it was registered without eval", out)
    assert.equal(0, (run("ops com.example.cli::Twice --script " .. SCRIPT)))
    assert.equal(2, (run "ops cli.twice"))
  end)

  it("lets run evaluate them", function()
    command.write(path "x.npy", (require "perilune".tensor(5.0):to_npy()))
    local status, out = run(("run %s --script %s --input x=%s"):format(MODEL, SCRIPT, path "x.npy"))
    assert.equal(0, status)
    assert.matches("%[16%.?0?%]", out)
    local without, _, why = run("run " .. MODEL)
    assert.equal(1, without)
    assert.matches("cli.twice", why)
  end)

  it("lets opt write them to ONNX, where other commands find them", function()
    -- what was written is read again by this process, which does not know them
    local onnx = path "model.onnx"
    local status = run(("opt %s -o %s --script %s"):format(MODEL, onnx, SCRIPT))
    assert.equal(0, status)
    local out
    status, out = run(("fmt %s --script %s"):format(MODEL, SCRIPT))
    assert.equal(0, status)
    assert.matches("cli.twice%(%%x%)", out)
    status, out = run(("info %s --script %s"):format(onnx, SCRIPT))
    assert.equal(0, status)
    assert.matches("com.example.cli", out)
    status, out = run(("run %s --script %s --input random"):format(onnx, SCRIPT))
    assert.equal(0, status)
    assert.matches("Tensor%[%(%), float32%]", out)
  end)

  it("fails when there is no such script, or when it fails", function()
    local status, _, why = run("ops --script " .. path "none.lua")
    assert.equal(1, status)
    assert.matches("%-%-script: cannot open", why)
    local bad = command.write(path "bad.lua", 'require "perilune".ops["add"] = {}\n')
    status, _, why = run("ops --script " .. bad)
    assert.equal(1, status)
    assert.matches("operator 'add': the library has one of that name", why)
    assert.matches("bad.lua:1", why)
  end)
end)
