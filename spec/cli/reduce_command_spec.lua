-- perilune reduce, as it is typed.

local command = require "spec.cli.command"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end
local function reduce(arguments) return command.run(folder, "reduce " .. arguments) end

local model = command.write(path "model.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = tanh(exp(%x)); (add(%0, abs(sqrt(%y))), nn.relu(%0))
}
]])

local script = command.write(path "wrong.lua", [[
local pl = require "perilune"
return pl.sequential { "SimplifyExpr", pl.function_pass { name = "Wrong", run = pl.mutator {
  Call = function(call)
    if call.op.name == "abs" then return pl.op.negative(call.args[1]) end
  end } }, "DeadCodeElimination" }
]])

describe("perilune reduce", function()
  it("writes what is left of the model, and prints what is left of the pipeline", function()
    local out_path = path "small.relay"
    local status, out, err = reduce(("%s -p %s --oracle -o %s"):format(model, script, out_path))
    assert.same({ 0, "" }, { status, err })
    assert.matches("^3 of %d+ nodes, 1 of 3 passes, in %d+ tries and [%d.]+ s\n"
      .. "round %d .*: result 1 differs at [^\n]*\npipeline: Wrong\n$", out)
    assert.matches("{\n  abs%(%%%w+%)[^\n]*\n}\n", command.read(out_path))
    assert.equal(0, (command.run(folder, ("bisect %s -p %s --oracle"):format(out_path, script))))
  end)

  it("asks a command, of models as MODEL is", function()
    command.run(folder, ("zoo lstm -o %s --set hidden=4"):format(path "in.onnx"))
    local status, out = reduce(("%s -p '' --shell '! grep -q LSTM {}' -q -o %s"):format(
      path "in.onnx", path "small.onnx"))
    assert.same({ 0, "" }, { status, out })
    assert.matches("LSTM", command.read(path "small.onnx"))
    assert.is_true(#command.read(path "small.onnx") < #command.read(path "in.onnx") // 100)
  end)

  it("gives the best so far at an interruption", function()
    command.write(path "slow.lua", [[
      local clock, calls = require "perilune.core".clock, 0
      return function(mod)
        local begin = clock()
        calls = calls + 1
        if calls == 3 then os.execute "(sleep 0.02; kill -INT $PPID) &" end
        while clock() - begin < 0.1 do end
        return not tostring(mod):find "relu"
      end]])
    local _, how, code = os.execute(("exec %s reduce %s -p '' --predicate %s -o %s >%s 2>&1")
      :format(command.program, model, path "slow.lua", path "best.relay", path "printed"))
    assert.same({ "signal", 2 }, { how, code })
    assert.matches("^%d+ of %d+ nodes, .*; not as small as can be: interrupted\n",
      command.read(path "printed"))
    assert.matches("relu", command.read(path "best.relay"))
  end)

  it("says when nothing is wrong", function()
    local status, out, err = reduce(("%s --oracle -o %s"):format(model, path "none.relay"))
    assert.same({ 1, "" }, { status, out })
    assert.matches("^perilune: [^\n]*/model.relay: the predicate does not fail for the module "
      .. "to reduce\n$", err)
    assert.is_nil(io.open(path "none.relay"))
  end)

  it("refuses arguments that make no sense", function()
    local status, _, err = reduce(("%s --oracle -o %s --seconds 0"):format(model, path "a.relay"))
    assert.equal(2, status)
    assert.matches("'0' is not a number of seconds", err)
    assert.equal(2, (reduce(model .. " --oracle")))
    assert.equal(2, (reduce(("%s --oracle --verify -o %s"):format(model, path "a.relay"))))
  end)
end)
