-- The command: what each subcommand prints, and with which status it ends.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()

local function path(name) return folder .. "/" .. name end

local read, write = command.read, command.write

local function run(arguments) return command.run(folder, arguments) end

-- relu(x + 0) twice, a foldable sum, an Identity.
local function tiny()
  local m = model.new { name = "tiny" }
  local x = m:input("x", "float32", { "N", 4 })
  local zero = m:initializer("zero", "float32", { 4 }, model.fill(4, 0))
  local one = m:initializer("one", "float32", { 4 }, model.fill(4, 1))
  local two = m:node("Add", { one, one })
  local sum = m:node("Add", { x, zero })
  local a, b = m:node("Relu", { sum }), m:node("Relu", { sum })
  local y = m:node("Mul", { m:node("Add", { a, b }), two })
  m:output(m:node("Identity", { y }, nil, "y"), "float32", { "N", 4 })
  return m
end

local input = path "tiny.onnx"
assert(tiny():save(input))

teardown(function() os.execute("rm -rf " .. folder) end)

describe("perilune", function()
  it("tells its version", function()
    local status, out = run "--version"
    assert.equal(0, status)
    assert.matches("^perilune %d+%.%d+%.%d+\n$", out)
  end)

  it("shows help for itself and for every command", function()
    local status, out = run "--help"
    assert.equal(0, status)
    for name in out:gmatch "\n   (%l+) " do
      local s, text = run(name .. " --help")
      assert.equal(0, s)
      assert.matches("Usage: perilune " .. name, text, 1, true)
    end
  end)

  it("ends with 2 without a command, with an unknown one, with an unknown option", function()
    assert.equal(2, (run ""))
    local status, _, err = run "otp"
    assert.equal(2, status)
    assert.matches("unknown command 'otp'; did you mean 'opt'?", err, 1, true)
    assert.equal(2, (run "--no-such"))
    assert.equal(2, (run("opt " .. input .. " -o x --no-such")))
    assert.equal(2, (run("opt " .. input)))
  end)
end)

describe("perilune script.lua", function()
  it("runs a script with the library and its arguments", function()
    local script = write(path "script.lua", [[
      local pl = require "perilune"
      print(arg[0]:match "script", select("#", ...), type(pl.passes), ...)]])
    local status, out = run(script .. " a b")
    assert.equal(0, status)
    assert.equal("script\t2\ttable\ta\tb\n", out)
  end)

  it("ends with 1 and a traceback when the script raises", function()
    local script = write(path "bad.lua", "local function f() error 'no luck' end f()")
    local status, _, err = run(script)
    assert.equal(1, status)
    assert.matches("bad.lua:1: no luck", err, 1, true)
    assert.matches("traceback", err)
  end)

  it("ends with 1 when there is no such script", function()
    local status, _, err = run(path "none.lua")
    assert.equal(1, status)
    assert.matches("none.lua", err, 1, true)
  end)
end)

describe("perilune opt", function()
  local output = path "out.onnx"

  local function stats(arguments)
    local status, out, err = run("opt --stats json " .. arguments)
    assert.equal(0, status, err)
    local line = out:match "([^\n]*)\n$"
    local fields = {}
    for key, value in line:gmatch '"([%w_]+)":([%d.e+-]+)' do
      fields[key] = fields[key] or tonumber(value)
    end
    return fields, line
  end

  it("makes the model smaller and says so", function()
    local status, out = run(("opt %s -o %s"):format(input, output))
    assert.equal(0, status)
    assert.matches("nodes +7 +3\n", out)
    assert.matches("Identity +1 +0\n", out)
  end)

  it("ends with a line of JSON when asked", function()
    local fields, line = stats(("%s -o %s"):format(input, output))
    assert.equal(7, fields.nodes_before)
    assert.equal(3, fields.nodes_after)
    assert.equal(3, fields.compute_nodes_after)
    assert.equal(#read(input), fields.bytes_before)
    assert.equal(#read(output), fields.bytes_after)
    assert.is_true(fields.seconds > 0 and fields.peak_rss_bytes > 1e6)
    assert.matches('"passes":[{"name":"', line, 1, true)
    assert.matches('"changed":true,"seconds":', line, 1, true)
    local keys = {}
    for key in line:gsub("%b[]", "[]"):gmatch '"([%w_]+)":' do keys[#keys + 1] = key end
    assert.same({ "nodes_before", "nodes_after", "compute_nodes_before", "compute_nodes_after",
      "bytes_before", "bytes_after", "seconds", "peak_rss_bytes", "passes", "rules" }, keys)
    keys = {}
    for key in line:match("%[({.-})"):gmatch '"([%w_]+)":' do keys[#keys + 1] = key end
    assert.same({ "name", "changed", "seconds", "nodes", "applications" }, keys)
    keys = {}
    for key in line:match('"rules":%[({.-})'):gmatch '"([%w_]+)":' do keys[#keys + 1] = key end
    assert.same({ "pass", "rule", "tried", "applied", "refused", "seconds" }, keys)
  end)

  it("counts its own memory, not that of the process that starts it", function()
    local ballast = ("x"):rep(300000000)
    local out <close> = assert(io.popen(("exec %s opt %s -o %s --stats json"):format(
      command.program, input, output)))
    local peak = tonumber(out:read("a"):match '"peak_rss_bytes":(%d+)')
    assert.is_true(peak < #ballast, peak)
  end)

  it("tells what rules did when asked", function()
    local status, out = run(("opt %s -o %s --stats text"):format(input, output))
    assert.equal(0, status)
    assert.matches("\nSimplifyExpr: %d+ runs?, 2 changed, [%d.]+ ms", out)
    assert.matches("\n  only_operand: %d+ tried, 1 applied, [%d.]+ ms\n", out)
    assert.not_matches("never applied", out)
    status, out = run(("opt -v %s -o %s --stats text"):format(input, output))
    assert.equal(0, status)
    assert.matches("\n  never applied: [%w_, ]*merge_reshape", out)
  end)

  it("is silent with -q", function()
    local status, out, err = run(("opt -q %s -o %s"):format(input, output))
    assert.same({ 0, "", "" }, { status, out, err })
  end)

  it("runs no pass with -p '', and then writes the file as it was", function()
    local fields = stats(("%s -o %s -p ''"):format(input, output))
    assert.equal(7, fields.nodes_after)
    assert.equal(read(input), read(output))
  end)

  it("runs a pipeline given as text", function()
    assert.equal(6, stats(("%s -o %s -p EliminateCommonSubexpr"):format(input, output)).nodes_after)
    local folded = ("%s -o %s -p 'FoldConstant{fold=\"all\"},DeadCodeElimination'")
    assert.equal(6, stats(folded:format(input, output)).nodes_after)
  end)

  it("runs only some passes, or not those", function()
    local all = "%s -o %s -p EliminateCommonSubexpr,FoldConstant,EliminateCommonSubexpr %s"
    local function nodes(more) return stats(all:format(input, output, more)).nodes_after end
    assert.equal(nodes "", nodes "--disable EliminateCommonSubexpr:2")
    assert.equal(7, nodes "--only DeadCodeElimination")
    assert.equal(7, nodes "--disable EliminateCommonSubexpr,FoldConstant")
    assert.equal(6, nodes "--only EliminateCommonSubexpr")
    local status, _, err = run(("opt %s -o %s --only EliminateCommonSubexp"):format(input, output))
    assert.equal(2, status)
    assert.matches("did you mean 'EliminateCommonSubexpr'?", err, 1, true)
    assert.matches("--only", err, 1, true)
  end)

  it("shows what passes changed, and keeps traces and dumps", function()
    local _, out = run(("opt -q --diff %s -o %s -p EliminateCommonSubexpr"):format(input, output))
    assert.matches("^%-%- EliminateCommonSubexpr\n@main\n", out)
    assert.matches("\n%-  ", out)
    local dumped, trace = path "dumped", path "trace.json"
    local status = run(("opt -q %s -o %s --dump %s --trace %s --oracle"):format(input, output,
      dumped, trace))
    assert.equal(0, status)
    assert.matches('^#%[version = "0.0.5"%]', read(dumped .. "/000_input.relay"))
    assert.matches('^{"traceEvents":%[{"name":"default"', read(trace))
    local err
    status, _, err = run(("opt -q %s -o %s --trace /nowhere/trace.json"):format(input, output))
    assert.equal(1, status)
    assert.matches("/nowhere/trace.json", err, 1, true)
  end)

  it("works in place", function()
    local copy = write(path "copy.onnx", read(input))
    assert.equal(3, stats(("%s -o %s"):format(copy, copy)).nodes_after)
  end)

  it("keeps the line of JSON last, whatever else is said", function()
    for _, more in ipairs { "-q", "-v", "--time" } do
      local fields = stats(("%s -o %s %s"):format(input, output, more))
      assert.equal(3, fields.nodes_after)
    end
    local chatty = write(path "chatty.lua", [[
      print "from the script"
      return require "perilune".module_pass { name = "says", run = function() print "hello" end }]])
    assert.equal(7, stats(("%s -o %s -p %s"):format(input, output, chatty)).nodes_after)
  end)

  it("writes the same bytes from everywhere", function()
    run(("opt %s -o %s"):format(input, output))
    local program = command.program:match "(%S+)$"
    if program:sub(1, 1) ~= "/" then program = os.getenv "PWD" .. "/" .. program end
    assert.is_true(os.execute(("cd %s && env -u LD_PRELOAD -u ASAN_OPTIONS %s opt -q tiny.onnx "
      .. "-o elsewhere.onnx"):format(folder, program)))
    assert.equal(read(output), read(path "elsewhere.onnx"))
  end)

  it("changes nothing the second time", function()
    run(("opt %s -o %s"):format(input, output))
    run(("opt %s -o %s"):format(output, path "twice.onnx"))
    assert.equal(read(output), read(path "twice.onnx"))
  end)

  it("names a pass that is not there, and suggests one", function()
    local status, _, err = run(("opt %s -o %s -p FoldConstnat"):format(input, path "none.onnx"))
    assert.equal(2, status)
    assert.matches("FoldConstnat", err, 1, true)
    assert.matches("did you mean 'FoldConstant'", err, 1, true)
    assert.is_nil(io.open(path "none.onnx"))
  end)

  it("ends with 1 when the input is missing, a directory or no model", function()
    for _, bad in ipairs { path "missing.onnx", folder, write(path "noise.onnx", "\255\1\2") } do
      local status, _, err = run(("opt %s -o %s"):format(bad, path "none.onnx"))
      assert.equal(1, status)
      assert.matches(bad, err, 1, true)
      assert.is_nil(io.open(path "none.onnx"))
    end
  end)

  it("ends with 1 when the output cannot be written, and leaves the old one", function()
    local status, _, err = run(("opt %s -o %s/no/such/out.onnx"):format(input, folder))
    assert.equal(1, status)
    assert.matches("no/such", err, 1, true)
  end)

  it("fixes a symbolic dim", function()
    local status = run(("opt %s -o %s --dim N=3"):format(input, output))
    assert.equal(0, status)
    local _, out = run("info " .. output)
    assert.matches("x: Tensor[(3, 4), float32]", out, 1, true)
    local failed, _, err = run(("opt %s -o %s --dim M=3"):format(input, output))
    assert.equal(1, failed)
    assert.matches("M", err, 1, true)
    for _, text in ipairs { "N", "N=", "=3", "N=x", "N=-1", "N=99999999999999999999" } do
      assert.equal(2, (run(("opt %s -o %s --dim %s"):format(input, output, text))))
    end
  end)
end)

describe("perilune opt --set", function()
  local output = path "set.onnx"
  local script = write(path "pipe.lua", [[
    local pl, arguments = require "perilune", ...
    if arguments.dedup then return pl.sequential { "EliminateCommonSubexpr" } end
    return pl.sequential {}]])

  local function nodes(arguments)
    local status, out, err = run(("opt %s -o %s --stats json %s"):format(input, output, arguments))
    return status == 0 and tonumber(out:match '"nodes_after":(%d+)') or status, err
  end

  it("gives a script its arguments", function()
    assert.equal(7, nodes("-p " .. script))
    assert.equal(6, nodes("-p " .. script .. " --set dedup=true"))
  end)

  it("sets config keys and options of passes", function()
    assert.equal(6, nodes "-p FoldConstant,DeadCodeElimination --set fold=all")
    assert.equal(6, nodes "-p FoldConstant,DeadCodeElimination --set FoldConstant.fold=all")
  end)

  it("takes an option of a pass, then a config key, before an argument", function()
    pcall(os.remove, path "asked")
    local asks = write(path "asks.lua", ([[
      local arguments = ...
      local file = io.open(%q, "w")
      file:write(tostring(arguments.fold), " ", tostring(arguments["FoldConstant.fold"]))
      file:close()
      return "FoldConstant,DeadCodeElimination"]]):format(path "asked"))
    assert.equal(6, nodes("-p " .. asks .. " --set fold=all"))
    assert.equal("nil nil", read(path "asked"))
    assert.equal(6, nodes("-p " .. asks .. " --set FoldConstant.fold=all"))
    assert.equal("nil nil", read(path "asked"))
    -- The option of the pass counts more than the key of all.
    assert.equal(6, nodes("-p " .. asks .. " --set FoldConstant.fold=all --set fold=budget"))
    local status, err = nodes("-p " .. asks .. " --set fold=half")
    assert.equal(2, status)
    assert.matches("half", err, 1, true)
  end)

  it("names what nobody knows, with the nearest names", function()
    for key, near in pairs { flod = "fold", ["FoldConstant.flod"] = "FoldConstant.fold" } do
      local status, err = nodes("--set " .. key .. "=all")
      assert.equal(2, status)
      assert.matches("did you mean '" .. near .. "'", err, 1, true)
    end
    local status, err = nodes("-p " .. script .. " --set deduq=1")
    assert.equal(2, status)
    assert.matches("did you mean 'dedup'", err, 1, true)
    assert.equal(2, (nodes "--set fold"))
    status, err = nodes "--set rules.only=add_zreo"
    assert.equal(2, status)
    assert.matches("--set: rules.only: no rule is called 'add_zreo'; did you mean 'add_zero'?",
      err, 1, true)
  end)

  it("takes the names of rules of a file for rules.only", function()
    local mine = write(path "mine.lua", [[return { "mine: nn.relu(nn.relu(?x)) => nn.relu(?x)" }]])
    assert.equal("number", type(nodes("--rules " .. mine .. " --set rules.only=mine")))
    local status, err = nodes "--set rules.only=mine"
    assert.equal(2, status)
    assert.matches("no rule is called 'mine'", err, 1, true)
  end)

  it("reports what a script raises, and that it returned no pipeline", function()
    local _, err = nodes("-p " .. write(path "raise.lua", "error 'oh'"))
    assert.matches("raise.lua:1: oh", err, 1, true)
    local status
    status, err = nodes("-p " .. write(path "nothing.lua", "return 1.5"))
    assert.equal(1, status)
    assert.matches("nothing.lua", err, 1, true)
  end)
end)

describe("perilune info", function()
  it("shows what a model is made of", function()
    local status, out = run("info " .. input)
    assert.equal(0, status)
    assert.matches("opsets: ai.onnx 17", out, 1, true)
    assert.matches("x: Tensor[(N, 4), float32]", out, 1, true)
    assert.matches("y: Tensor[(N, 4), float32]", out, 1, true)
    assert.matches("parameters: 8 in 2 tensors, 32 B", out, 1, true)
    assert.matches("Relu +2", out)
  end)

  it("prints JSON", function()
    local status, out = run("info --json " .. input)
    assert.equal(0, status)
    assert.matches('"operators":{"Add":3,"Identity":1,"Mul":1,"Relu":2}', out, 1, true)
    assert.matches('"opsets":{"ai.onnx":17}', out, 1, true)
  end)
end)

describe("perilune fmt, passes, ops, zoo", function()
  it("print Relay text", function()
    local status, out = run("fmt " .. input)
    assert.equal(0, status)
    assert.matches('^#%[version = "0.0.5"%]\ndef @main%(%%x: ', out)
    assert.equal(1, (run("fmt " .. path "missing.onnx")))
  end)

  it("tell what a pipeline requires before it runs", function()
    local status, out = run "passes --validate 'PartitionGraph,FuseOps,DefuseOps'"
    assert.equal(1, status)
    assert.matches("PartitionGraph (element 1): nothing before it provides 'annotated'", out, 1,
      true)
    assert.matches("DefuseOps (element 3): it undoes FuseOps (element 2)", out, 1, true)
    status, out = run "passes --validate AnnotateTarget,PartitionGraph"
    assert.equal("", out)
    assert.equal(0, status)
    status, out = run "passes FuseOps"
    assert.equal(0, status)
    assert.matches("provides: fused", out, 1, true)
    status, out = run("passes --validate AnnotateTarget,PartitionGraph --model " .. input)
    assert.equal("", out)
    assert.equal(0, status)
    local open = path "open.relay"
    write(open, [[
#[version = "0.0.5"]
def @main(%x: Tensor[(?, 2), float32]) { let %y = tanh(%x); %y }
]])
    status, out = run("passes --validate FirstOrderGradient --model " .. open)
    assert.equal(1, status)
    assert.matches("does not handle the feature 'let'", out, 1, true)
    assert.matches("features: dynamic shapes, let\n", select(2, run("info " .. open)), 1, true)
    assert.matches('"features":["dynamic shapes","let"]', select(2, run("info --json " .. open)), 1,
      true)
    assert.equal(2, (run("passes --model " .. open)))
  end)

  it("list passes with options, and the default pipeline", function()
    local status, out = run "passes"
    assert.equal(0, status)
    for _, name in ipairs { "SimplifyExpr", "FoldConstant", "fold: string", "default" } do
      assert.matches(name, out, 1, true)
    end
    for name in pairs(require "perilune".passes) do
      assert.matches("\n" .. name .. " (", out:gsub("\n +", "\n"), 1, true)
    end
    assert.equal(0, (run "passes FoldConstant"))
    assert.equal(2, (run "passes FoldConstnat"))
  end)

  it("list operators", function()
    local status, out = run "ops"
    assert.equal(0, status)
    assert.matches("\nnn.relu +max", out)
    for _, name in ipairs(require "perilune.core".ops()) do
      assert.matches("\n" .. name .. " ", "\n" .. out, 1, true)
    end
    assert.equal(2, (run "ops nn.reluu"))
  end)

  it("list and make models", function()
    local status, out = run "zoo"
    assert.equal(0, status)
    assert.matches("resnet50", out, 1, true)
    assert.equal(2, (run "zoo resnet51 -o x"))
    assert.equal(2, (run "zoo resnet50"))
    assert.equal(1, (run("zoo resnet50 -o " .. path "no/such/file")))
  end)
end)
