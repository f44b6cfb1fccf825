-- Statistics per pass and per rule; the golden file is spec/golden/statistics.txt.

local command = require "spec.cli.command"
local pl = require "perilune"

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %0 = add(%x, multiply(0f, 2f));
  %1 = reshape(%0, newshape=[2, 3]);
  %2 = reshape(%1, newshape=[6]);
  %3 = reshape(%2, newshape=[2, 3]);
  %4 = tanh(%3);
  %5 = tanh(%3);
  add(%4, %5)
}
]]

local pipeline = "fixpoint(4){FoldConstant,SimplifyExpr,FoldConvBias,EliminateCommonSubexpr,"
  .. "DeadCodeElimination},NoTanh"

local function run(statistics, config)
  pl.passes.NoTanh = { kind = "function", run = pl.mutator { name = "no_tanh",
    Call = function(call) if call.op.name == "tanh" then return call.args[1] end end } }
  local context = pl.context { opt_level = 3, instruments = { statistics }, config = config }
  pl.with(context, pl.pipeline(pipeline), assert(pl.parse(text)))
  pl.passes.NoTanh = nil
  return statistics
end

local function rule_of(statistics, pass, rule)
  for _, row in ipairs(statistics.rules) do
    if row.pass == pass and row.rule == rule then return row end
  end
end

describe("pl.instruments.statistics", function()
  it("shows passes and rules", function()
    local shown = tostring(run(pl.instruments.statistics { unused = true }))
    -- Long lists of rules, which change with each new rule, end behind their first name.
    shown = shown:gsub("[%d.]+ ms", "T ms"):gsub("(never applied: [%w_]+, )[^\n]*,[^\n]*", "%1...")
      .. "\n"
    local path = "spec/golden/statistics.txt"
    if os.getenv "PERILUNE_GOLDEN" == "write" then command.write(path, shown) end
    assert.equal(command.read(path), shown)
  end)

  it("counts and times what rules did", function()
    local statistics = run(pl.instruments.statistics())
    local row = rule_of(statistics, "NoTanh", "no_tanh")
    assert.same({ 2, 1, 0 }, { row.tried, row.applied, row.refused })
    assert.is_true(row.seconds > 0)
    assert.not_matches("never applied", tostring(statistics))
  end)

  it("sums up over calls, each counted once", function()
    local statistics = pl.instruments.statistics()
    run(statistics)
    run(statistics)
    assert.equal(2, rule_of(statistics, "NoTanh", "no_tanh").applied)
    assert.equal(2, rule_of(statistics, "SimplifyExpr", "add_zero").applied)
  end)

  it("counts once what runs inside of a body", function()
    local statistics = pl.instruments.statistics()
    local context = pl.context { opt_level = 3, instruments = { statistics } }
    local outer = pl.module_pass { name = "Outer", run = function(mod)
      mod = pl.pipeline "SimplifyExpr"(mod)
      return pl.with(context, pl.pipeline "EliminateCommonSubexpr", mod)
    end }
    pl.with(context, outer, assert(pl.parse(text)))
    assert.equal(1, rule_of(statistics, "EliminateCommonSubexpr", "merge").applied)
  end)

  it("tells of refusals", function()
    local statistics = run(pl.instruments.statistics(), { ["bisect.applications"] = 1 })
    assert.equal(1, rule_of(statistics, "FoldConstant", "fold").applied)
    assert.equal(2, rule_of(statistics, "NoTanh", "no_tanh").refused)
    assert.matches("fold: %d+ tried, 1 applied, [%d.]+ ms", tostring(statistics))
  end)

  it("lists rules that were never applied", function()
    local names = {}
    for _, row in ipairs(run(pl.instruments.statistics()):unused()) do
      names[row.pass .. "." .. row.rule] = row.tried
    end
    assert.equal(0, names["SimplifyExpr.merge_transpose"])
    assert.equal(0, names["FoldConvBias.subtract"])
    assert.is_true(names["FoldConvBias.add"] > 0)
    assert.is_nil(names["SimplifyExpr.add_zero"])
  end)

  it("takes a table of options", function()
    assert.has_error(function() pl.instruments.statistics(1) end,
      "instruments.statistics: options: a table expected, got number")
  end)

  it("costs nothing when nobody asks", function()
    pl.pipeline "SimplifyExpr"(assert(pl.parse(text)))
    for _, row in ipairs(pl.rule_report()) do assert.equal(0, row.seconds) end
  end)
end)
