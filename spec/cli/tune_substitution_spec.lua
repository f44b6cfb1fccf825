-- perilune tune --space substitution and --placement.

local command = require "spec.cli.command"
local pl = require "perilune"

describe("perilune tune", function()
  local folder, model, rules

  setup(function()
    folder = command.folder()
    model, rules = folder .. "/in.relay", folder .. "/rules.txt"
    command.write(model, [[#[version = "0.0.5"]
def @main(%a: Tensor[(80, 60), float32], %b: Tensor[(60, 70), float32],
          %c: Tensor[(70, 2), float32]) {
  nn.relu(nn.matmul(nn.matmul(%a, %b), %c))
}
]])
    command.write(rules, "# Products of matrices are associative.\n\n"
      .. "assoc: nn.matmul(nn.matmul(?a, ?b), ?c) <=> nn.matmul(?a, nn.matmul(?b, ?c))\n")
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function ok(arguments)
    local status, out, err = command.run(folder, arguments)
    assert.equal(0, status, out .. err)
    return out
  end

  local function fails(status, arguments, pattern)
    local got, _, err = command.run(folder, arguments)
    assert.equal(status, got, err)
    assert(err:find(pattern, 1, true), err)
  end

  it("searches graph substitutions with rules of a file", function()
    local out = ok(("tune %s -o %s/a.relay --space substitution --substitution-rules %s "
      .. "--search exhaustive --metric flops"):format(model, folder, rules))
    assert(out:find("EqualitySaturation", 1, true), out)
    local tuned = assert(pl.load(folder .. "/a.relay"))
    assert.equal(2 * (60 * 70 * 2 + 80 * 60 * 2) + 160, pl.tune.measure.flops(tuned))
  end)

  it("runs the pass in a pipeline", function()
    ok(("opt %s -o %s/b.relay -p 'EqualitySaturation{rules=[\"nn.relu(?x) => ?x\"],"
      .. "cost=\"nodes\"}'"):format(model, folder))
    assert.is_nil(pl.list_op_freqs(assert(pl.load(folder .. "/b.relay")))["nn.relu"])
  end)

  it("chooses backends", function()
    local out = ok(("tune %s -o %s/c.relay --placement evaluator,com.microsoft"):format(model,
      folder))
    assert(out:find("by the host alone", 1, true), out)
    assert(pl.check(assert(pl.load(model)), assert(pl.load(folder .. "/c.relay"))))
  end)

  it("says what is wrong", function()
    local script = command.write(folder .. "/backend.lua", [[
      local pl = require "perilune"
      return { name = "none", patterns = {}, builder = pl.tune.builder { kind = "function",
        source = "none.c", symbol = "f" } }]])
    local out = ok(("tune %s -o %s/d.relay --placement evaluator,%s"):format(model, folder, script))
    assert(out:find("evaluator: %d+ parts"), out)
    command.write(folder .. "/three.lua", "return 3")
    fails(1, ("tune %s --placement evaluator,%s/three.lua"):format(model, folder),
      "it returns a number")
    fails(1, ("tune %s --placement evaluator,%s/none.lua"):format(model, folder), "none.lua")
    fails(2, ("tune %s --placement evaluator,cc"):format(model), "there is no backend 'cc'")
    fails(2, ("tune %s --placement evaluator --replay"):format(model), "makes no records")
    fails(2, ("tune %s --substitution-rules %s"):format(model, rules), "has no rules")
    fails(1, ("tune %s --space substitution --substitution-rules %s/none"):format(model, folder),
      "none")
    command.write(folder .. "/wrong.txt", "add(?x\n")
    fails(1, ("tune %s --space substitution --substitution-rules %s/wrong.txt"):format(model,
      folder), "expected")
  end)
end)
