-- The command on files of Relay text.

local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end
local function path(name) return folder .. "/" .. name end

local TEXT = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  let %y = nn.relu(%x);
  let %unused = nn.relu(%y);
  add(%y, 1f) + 2f
}
]]

local input = command.write(path "in.relay", TEXT)

describe("perilune", function()
  teardown(function() os.execute("rm -r " .. folder) end)

  it("fmt prints text in its one form", function()
    local status, out = run("fmt " .. input)
    assert.equal(0, status)
    assert.equal([[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32] /* ty=Tensor[(2), float32] */) -> Tensor[(2), float32] {
  let %y: Tensor[(2), float32] /* ty=Tensor[(2), float32] */ = nn.relu(%x) ]]
      .. [[/* ty=Tensor[(2), float32] */;
  let %unused: Tensor[(2), float32] /* ty=Tensor[(2), float32] */ = ]]
      .. [[nn.relu(%y) /* ty=Tensor[(2), float32] */;
  %0 = add(%y, 1f /* ty=float32 */) /* ty=Tensor[(2), float32] */;
  add(%0, 2f /* ty=float32 */) /* ty=Tensor[(2), float32] */
}
]], out)
    local again = command.write(path "again.relay", out)
    assert.equal(out, (select(2, run("fmt " .. again))))
  end)

  it("fmt shows all that is wrong, and where", function()
    local bad = command.write(path "bad.relay", TEXT:gsub("nn.relu", "nn.rele"))
    local status, _, err = run("fmt " .. bad)
    assert.equal(1, status)
    assert.matches("bad.relay:3:12: error: no operator is called 'nn.rele'; "
      .. "did you mean 'nn.relu'?\n      let %y = nn.rele(%x);\n               ^~~~~~~\n",
      err, 1, true)
    assert.matches("bad.relay:4:17: error: ", err, 1, true)
  end)

  it("opt reads text and writes text", function()
    local output = path "out.relay"
    assert.equal(0, (run(("opt -q %s -o %s"):format(input, output))))
    local text = command.read(output)
    assert.matches('^#%[version = "0.0.5"%]\ndef @main', text)
    assert.falsy(text:find("unused", 1, true))
    assert.equal(0, (run(("check %s %s"):format(input, output))))
  end)

  it("info draws text", function()
    local status, out = run("info --dot " .. input)
    assert.equal(0, status)
    assert.matches("^digraph perilune {", out)
  end)

  it("opt shows what became of the operators", function()
    local output = path "dead.relay"
    local status, out = run(("opt %s -o %s -p DeadCodeElimination"):format(input, output))
    assert.equal(0, status)
    assert.matches("nn.relu +2 +1\n", out)
  end)

  it("info tells what a module is made of", function()
    local status, out = run("info " .. input)
    assert.equal(0, status)
    assert.matches("x: Tensor[(2), float32]", out, 1, true)
    assert.matches("output 1: Tensor[(2), float32]", out, 1, true)
    assert.matches("add +2\n", out)
    assert.equal(0, (run("info --json " .. input)))
  end)

  it("run computes it", function()
    local status, out = run(("run %s --input x=random:1"):format(input))
    assert.equal(0, status)
    assert.matches("output 1: Tensor[(2), float32] [", out, 1, true)
  end)
end)
