-- perilune why-not.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end

describe("perilune why-not", function()
  local file = folder .. "/in.onnx"
  setup(function()
    local m = model.new { name = "gates", opset = 17 }
    local x = m:input("x", "float32", { 2, 3 })
    local gate = m:node("Tanh", { x })
    m:output(m:node("Mul", { x, gate }), "float32", { 2, 3 })
    m:save(file)
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("says which part of the rule fails, and at which node", function()
    local status, out = run("why-not 'multiply(?x, sigmoid(?x)) => nn.silu(?x)' " .. file)
    assert.equal(0, status)
    assert.matches("rule 'multiply(?x, sigmoid(?x))' at multiply of type", out, 1, true)
    assert.matches("\n    multiply(?x, sigmoid(?x)) => nn.silu(?x)\n" .. (" "):rep(17)
      .. "^^^^^^^^^^^\n", out, 1, true)
    assert.matches("operand 1 is a call of another operator: tanh", out, 1, true)
  end)

  it("runs passes before, takes shipped rules by name, and a number of explanations", function()
    local status, out = run("why-not add_zero " .. file .. " -p SimplifyExpr")
    assert.equal(0, status)
    assert.equal("no node begins to match\n", out)
    local _, two = run("why-not arithmetic " .. file .. " -n 2")
    assert.equal(2, select(2, two:gsub("rule '", "")))
  end)

  it("matches through lets, as opt does, unless that is off", function()
    local path = command.write(folder .. "/lets.relay", [[#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) { let %a = negative(%x); let %b = negative(%a); tanh(%b) }]])
    local rule = "'negative(negative(?x)) => ?x' "
    local _, out = run("why-not " .. rule .. path)
    assert.matches("the rule applies", out, 1, true)
    _, out = run("why-not --no-lets " .. rule .. path)
    assert.not_matches("the rule applies", out, 1, true)
    assert.matches("operand 0 is no call of an operator: %a", out, 1, true)
    local made = folder .. "/out.relay"
    for lets, times in pairs { ["false"] = 2, ["true"] = 0 } do
      assert.equal(0, (run(("opt %s -o %s -q -p SimplifyExpr,DeadCodeElimination --set "
        .. "rules.lets=%s"):format(path, made, lets))))
      local file_ <close> = assert(io.open(made))
      assert.equal(times, select(2, file_:read "a":gsub("negative", "")))
    end
  end)

  it("takes a file of rules, with functions", function()
    local path = command.write(folder .. "/mine.lua", [[
      return { "multiply(?x, sigmoid(?x)) => nn.silu(?x)",
        { "tanh(?x)", "?x", name = "no_tanh", where = function() return false end } }]])
    local status, out = run(("why-not %s %s"):format(path, file))
    assert.equal(0, status)
    assert.matches("rule 'no_tanh' at tanh", out, 1, true)
    assert.matches("its condition does not hold", out, 1, true)
    command.write(path, "return 1")
    assert.equal(1, (run(("why-not %s %s"):format(path, file))))
  end)

  it("fails with a message", function()
    local status, _, err = run("why-not 'multiply(?x => ?x' " .. file)
    assert.equal(2, status)
    assert.matches("')' expected", err, 1, true)
    status, _, err = run("why-not addd_zero " .. file)
    assert.equal(2, status)
    assert.matches("did you mean 'add_zero'", err)
    status, _, err = run("why-not add_zero " .. file .. " nothing")
    assert.equal(1, status)
    assert.matches("no node is called 'nothing'", err)
    assert.equal(1, (run("why-not add_zero " .. folder .. "/none.onnx")))
  end)
end)
