-- perilune run --profile, --trace, --threads; perilune info --macs.

local command = require "spec.cli.command"

local pl = require "perilune"

local folder = command.folder()
local model, trace = folder .. "/model.relay", folder .. "/trace.json"

-- The exit status, and both outputs.
local function run(format, ...) return command.run(folder, format:format(...)) end

describe("what a run costs", function()
  setup(function()
    local x = pl.var("x", "Tensor[(n, 8), float32]")
    local w = pl.var("w", "Tensor[(8, 4), float32]")
    local mod = pl.module { main = pl.func({ x, w }, pl.op.tanh(pl.op.nn.matmul(x, w))) }
    command.write(model, mod:text())
  end)

  teardown(function() os.execute("rm -r " .. folder) end)

  local function succeeds(options)
    local status, out, err = run("run %s --input random:1 --dim n=3 %s", model, options or "")
    assert.are.equal(0, status, err)
    return out
  end

  it("is shown by operator and by node", function()
    local text = succeeds "--profile --repeat 2"
    assert.matches("operator +calls +ms +%% +FLOP +GFLOP/s +bytes", text)
    assert.matches("nn.matmul +1 ", text)
    assert.matches("\n2 calls, %d", text)
  end)

  it("is written as a trace", function()
    succeeds("--trace " .. trace)
    assert.matches('^{"traceEvents":%[{"name":"[^"]*","cat":"nn.matmul","ph":"X"',
      command.read(trace))
    local status, _, err = run("run %s --input random:1 --trace /dev/full", model)
    assert.are.equal(1, status)
    assert.matches("--trace: ", err, 1, true)
  end)

  it("computes the same with any number of threads", function()
    assert.are.equal(succeeds(), succeeds "--threads 3")
    assert.are.equal(succeeds(), succeeds "--threads 0")
    local status, _, err = run("run %s --threads 65", model)
    assert.are.equal(2, status)
    assert.matches("'65' is not a number of threads from 0 to 64", err, 1, true)
  end)

  it("is counted from the types alone", function()
    local _, open = run("info %s --macs", model)
    assert.matches("multiply%-accumulates: 0, and those of 1 operators whose dims are open", open)
    local _, fixed = run("info %s --macs --dim n=3", model)
    assert.matches("multiply%-accumulates: 96\n +nn.matmul +96\n", fixed)
    local _, json = run("info %s --macs --json --dim n=3", model)
    assert.matches('"macs":{.*"nn.matmul":96', json)
  end)
end)
