-- perilune rules, and the rules that `perilune passes NAME` shows.

local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end

describe("perilune rules", function()
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("lists the sets: a line a pass and file", function()
    local status, out = run "rules"
    assert.equal(0, status)
    assert.matches("\nSimplifyExpr +arithmetic +%d+\n", out)
    assert.matches("\nFuseOnnxOps +fusion +%d+\n", out)
  end)

  it("shows the rules of a file, of a pass, and one rule", function()
    local status, out = run "rules arithmetic"
    assert.equal(0, status)
    assert.matches("add_zero\n  add(?x, 0) => ?x\n  reason: x + 0 = x\n  source: ONNX "
      .. "eliminate_nop_with_unit\n  proof: exact\n", out, 1, true)
    local _, all = run "rules SimplifyExpr"
    assert.is_true(#all > #out)
    local _, one = run "rules SimplifyExpr merge_reshape"
    assert.matches("merge_reshape\n  reshape(...)\n", one, 1, true)
    assert.matches("replacement: in C, merge_reshape\n", one, 1, true)
  end)

  it("suggests a name for one that is not there", function()
    local status, _, err = run "rules arithmetics"
    assert.equal(2, status)
    assert.matches("no rules are called 'arithmetics'; did you mean 'arithmetic'?", err, 1, true)
    status, _, err = run "rules arithmetic ad_zero"
    assert.equal(2, status)
    assert.matches("no rule of 'arithmetic' is called 'ad_zero'; did you mean 'add_zero'?", err, 1,
      true)
  end)

  it("are shown with their pass", function()
    local status, out = run "passes SimplifyExpr"
    assert.equal(0, status)
    assert.matches("\n  Rules %(%d+%):\n", out)
    assert.matches("\n    add_zero\n      add(?x, 0) => ?x\n", out, 1, true)
  end)
end)
