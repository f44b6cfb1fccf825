-- perilune bisect, as it is typed.

local command = require "spec.cli.command"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end
local function bisect(arguments) return command.run(folder, "bisect " .. arguments) end

local model = command.write(path "model.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { add(tanh(exp(%x)), abs(%x)) }
]])

local script = command.write(path "wrong.lua", [[
local pl = require "perilune"
local function turn(name, from, to)
  return pl.function_pass { name = name, run = pl.mutator { Call = function(call)
    if call.op.name == from then return pl.op[to](table.unpack(call.args)) end
  end } }
end
return pl.sequential { name = "deploy", "SimplifyExpr", turn("Fine", "sqrt", "exp"),
  turn("Wrong", "abs", "negative"), "DeadCodeElimination" }
]])

local failing = command.write(path "failing.lua", [[
return require "perilune".sequential { "SimplifyExpr", function() error("cannot go on", 0) end }
]])

describe("perilune bisect", function()
  it("names the pass that changes what is computed", function()
    local status, out = bisect(("%s -p %s --oracle"):format(model, script))
    assert.equal(0, status)
    assert.matches("^pass 'Wrong' breaks it, in its 1st run: run 3 of 4\n"
      .. "in pipeline 'deploy', element 3 of 4: Wrong\n", out)
    assert.matches("\nround %d .*: result 1 differs at ", out)
    assert.matches("\n%-  %%2 = abs%(%%x%)[^\n]*;\n%+  %%2 = negative%(%%x%)", out)
  end)

  it("asks a script, or a command", function()
    command.write(path "no_negative.lua",
      "return function(mod) return not tostring(mod):find 'negative' end")
    for _, question in ipairs { "--predicate " .. path "no_negative.lua",
      "--shell '! grep negative {}'" } do
      local status, out, err = bisect(("%s -p %s %s"):format(model, script, question))
      assert.same({ 0, "" }, { status, (err:gsub("[^\n]*negative[^\n]*\n", "")) })
      assert.matches("^pass 'Wrong'", out)
    end
  end)

  it("names the pass that fails", function()
    local status, out = bisect(("%s -p %s --verify"):format(model, failing))
    assert.equal(0, status)
    assert.matches("breaks it, in its 1st run: run 2 of 2\n"
      .. "in pipeline, element 2 of 2: [^\n]*\n"
      .. "[^\n]*\n +%^~+\n[^\n]*cannot go on\n", out)
    local head = out:match "^.-cannot go on\n"
    assert.equal(head, select(2, bisect(("%s -p %s"):format(model, failing))):sub(1, #head))
  end)

  it("prints JSON, and writes both models", function()
    local status, out = bisect(("%s -p %s --oracle --json -o %s"):format(model, script,
      path "found"))
    assert.equal(0, status)
    assert.matches('^{"pass":"Wrong","nth":1,'
      .. '"place":"in pipeline \'deploy\', element 3 of 4: Wrong",'
      .. '"run":3,"runs":4,"message":"round ', out)
    assert.matches('"rule":"Call","application":1,"applications":1,"node_before":"abs%(%%x%) ', out)
    assert.matches('"failed":false,"functions":%["main"%],"mended":null,"asked":%d+,'
      .. '"pipelines":%d+,"diff":"@main', out)
    assert.matches("abs", command.read(path "found.before.relay"))
    assert.matches("negative", command.read(path "found.after.relay"))
  end)

  it("takes a reproducer, with its pipeline and context", function()
    local bug = path "bug.relay"
    assert.equal(1, (command.run(folder, ("opt %s -p %s -q -o %s --reproducer %s "
      .. "--set reproducer.from=input"):format(model, failing, path "none.relay", bug))))
    local before = command.read(bug)
    local status, out, err = bisect(bug)
    assert.same({ 0, "" }, { status, err })
    assert.matches("breaks it, in its 1st run: run 2 of 2\nin pipeline, element 2 of 2", out)
    local small = path "small.relay"
    status, out, err = command.run(folder, ("reduce %s -o %s"):format(bug, small))
    assert.same({ 0, "" }, { status, err })
    assert.matches("^%d of %d+ nodes, 1 of 2 passes, .*cannot go on\npipeline: [^\n]*failing", out)
    assert.equal(before, command.read(bug))
    status, out, err = bisect(bug .. " --only SimplifyExpr")
    assert.same({ 2, "", "perilune: --disable and --only cannot be used with a reproducer, which "
      .. "has its own context\n" }, { status, out, err })
    command.write(path "no.relay", before:gsub("// pipeline:", "// pipe:", 1))
    status, out, err = bisect(path "no.relay")
    assert.same({ 1, "" }, { status, out })
    assert.matches("a reproducer has no key 'pipe'", err)
  end)

  it("says why there is nothing to find", function()
    local status, out, err = bisect(model .. " --oracle")
    assert.same({ 1, "" }, { status, out })
    assert.matches("^perilune: [^\n]*/model.relay: the predicate holds after all of %d+ runs of "
      .. "passes\n$", err)
    status, out, err = bisect(model .. " --shell '! grep -q abs {}'")
    assert.same({ 1, "" }, { status, out })
    assert.matches("the predicate fails before any pass runs: the command ends with status 1\n$",
      err)
  end)

  it("tells a predicate that cannot answer from one that does not hold", function()
    local status, _, err = bisect(("%s -p %s --shell 'exit 125; {}'"):format(model, script))
    assert.same({ 1, "error: predicate 'shell' failed: the command says so (status 125)\n" },
      { status, err })
    status, _, err = bisect(("%s --predicate %s"):format(model, path "none.lua"))
    assert.equal(1, status)
    assert.matches("^perilune: %-%-predicate: cannot open ", err)
  end)

  it("refuses arguments that make no sense", function()
    local status, _, err = bisect(model .. " --oracle --verify")
    assert.equal(2, status)
    assert.matches("option '%-%-verify' can not be used together with option '%-%-oracle'", err)
    status, _, err = bisect(model .. " --shell true")
    assert.same({ 2, "perilune: --shell: the command must contain {} for the model's file\n" },
      { status, err })
    status, _, err = bisect(model .. " -p Nothing --oracle")
    assert.equal(2, status)
    assert.matches("pass 'Nothing' is not registered", err)
    assert.equal(1, (bisect(path "none.relay" .. " --oracle")))
    assert.equal(2, (bisect ""))
  end)
end)
