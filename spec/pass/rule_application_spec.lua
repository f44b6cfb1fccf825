-- Rule applications: what passes decide to change, counted by name, and how
-- many of them may happen.

local pl = require "perilune"

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %0 = add(%x, meta[relay.Constant][0]);
  %1 = reshape(%0, newshape=[2, 3]);
  %2 = reshape(%1, newshape=[6]);
  %3 = reshape(%2, newshape=[2, 3]);
  %4 = tanh(%3);
  %5 = tanh(%3);
  add(%4, %5)
}
]]

local function model()
  return assert(pl.parse((text:gsub("meta%b[]%b[]", "0f"))))
end

local function run(config, pipeline, mod)
  local context = pl.context { opt_level = 3, config = config }
  return pl.with(context, pl.pipeline(pipeline), mod or model())
end

-- The row of a rule in the last report.
local function row_of(pass, rule)
  for _, row in ipairs(pl.rule_report()) do
    if row.pass == pass and row.rule == rule then return row end
  end
end

local all = "SimplifyExpr,EliminateCommonSubexpr,DeadCodeElimination"

describe("rule applications", function()
  it("are counted by pass and rule", function()
    run({}, all)
    assert.equal(1, row_of("SimplifyExpr", "add_zero").applied)
    assert.equal(1, row_of("EliminateCommonSubexpr", "merge").applied)
    assert.equal(0, row_of("EliminateCommonSubexpr", "merge").refused)
    assert.equal("number", type(row_of("EliminateCommonSubexpr", "merge").last))
    assert.equal(0, row_of("EliminateCommonSubexpr", "merge").seconds)
  end)

  it("are told of each run", function()
    run({}, all .. ",SimplifyExpr,SimplifyExpr")
    local report = pl.report()
    assert.same({ 1, 2, 3, 4, 5 },
      { report[1].run, report[2].run, report[3].run, report[4].run, report[5].run })
    assert.equal(1, report[2].applications)
    assert.is_true(report[1].applications >= 3)
    assert.equal(1, report[4].applications) -- the sum of equal nodes becomes a product
    assert.equal(0, report[5].applications)
  end)

  it("begin anew with each outermost call", function()
    run({}, all)
    run({}, "EliminateCommonSubexpr")
    assert.equal(1, #pl.rule_report())
    assert.equal(1, pl.report()[1].run)
  end)

  it("of Lua mutators are named by kind, or as they say", function()
    local function drop(name)
      return pl.mutator { name = name, Call = function(call)
        if call.op.name == "tanh" then return call.args[1] end
      end }
    end
    local kinds = pl.function_pass { name = "Drop", run = drop() }
    kinds(model())
    assert.equal(2, row_of("Drop", "Call").applied)
    pl.function_pass { name = "Drop", run = drop "no_tanh" }(model())
    assert.equal(2, row_of("Drop", "no_tanh").applied)
    assert.has_error(function() pl.mutator { name = 1 } end,
      "pl.mutator: name expects a string, got number")
  end)

  it("of Lua mutators of types have the names of kinds of types", function()
    local halve = pl.function_pass { name = "Halve", run = pl.mutator {
      TensorType = function(t)
        if t.dtype == "float32" then return "Tensor[(2, 3), float64]" end
      end } }
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { tanh(%x) }
]])
    local out = pl.with(pl.context { config = { ["bisect.applications"] = 0 } }, halve, mod)
    assert.equal(mod, out)
    assert.equal(1, row_of("Halve", "TensorType").refused)
    assert.matches("float64", tostring(halve(mod)), 1, true)
  end)

  it("can be asked for by the body of a pass", function()
    local seen = {}
    local pass = pl.module_pass { name = "Ask", run = function(mod, ctx)
      for i = 1, 3 do seen[i] = ctx:rule("wish", mod.functions.main) end
      return mod
    end }
    pl.with(pl.context { config = { ["bisect.applications"] = 2 } }, pass, model())
    assert.same({ true, true, false }, seen)
    local row = row_of("Ask", "wish")
    assert.same({ 3, 2, 1 }, { row.tried, row.applied, row.refused })
    assert.has_error(function() pl.current():rule "wish" end,
      "rule is for the body of a pass")
  end)
end)

describe("bisect.applications", function()
  it("lets the first so many happen", function()
    run({}, all)
    local total = 0
    for _, row in ipairs(pl.report()) do total = total + row.applications end
    local sizes = {}
    for k = 0, total do
      local out = run({ ["bisect.applications"] = k }, all)
      local applied = 0
      for _, row in ipairs(pl.rule_report()) do applied = applied + row.applied end
      assert.equal(k, applied)
      sizes[k] = #tostring(out)
      assert.is_true(pl.check(model(), out))
    end
    assert.equal(sizes[total], #tostring(run({}, all)))
  end)

  it("of 0 leaves the module as it is", function()
    local mod = model()
    assert.equal(mod, run({ ["bisect.applications"] = 0 }, all, mod))
  end)

  it("counts in the last run that bisect.passes allows", function()
    local out = run({ ["bisect.passes"] = 2, ["bisect.applications"] = 0 }, all)
    assert.equal(2, #pl.report())
    assert.equal(1, row_of("EliminateCommonSubexpr", "merge").refused)
    assert.is_true(pl.equal(run({}, "SimplifyExpr"), out))
  end)

  it("holds in contexts that a body enters", function()
    local inner = pl.module_pass { name = "Inner", run = function(mod)
      return pl.with(pl.context(), pl.pipeline "EliminateCommonSubexpr", mod)
    end }
    local mod = model()
    assert.equal(mod, pl.with(pl.context { config = { ["bisect.applications"] = 0 } }, inner, mod))
    local names = {}
    pl.with(pl.context { config = { ["bisect.passes"] = 1 } }, inner, mod)
    for i, row in ipairs(pl.report()) do names[i] = row.name .. row.run end
    assert.same({ "Inner1" }, names)
  end)
end)

describe("bisect.passes", function()
  it("lets the first so many runs happen, without hooks for others", function()
    local seen = {}
    local log = { name = "log", before = function(_, info) seen[#seen + 1] = info.name end,
      should_run = function(_, info) seen[#seen + 1] = "?" .. info.name return true end }
    local pass = pl.sequential { name = "all", "SimplifyExpr", "EliminateCommonSubexpr" }
    pl.with(pl.context { opt_level = 3, config = { ["bisect.passes"] = 1 }, instruments = { log } },
      pass, model())
    assert.same({ "?all", "all", "?SimplifyExpr", "SimplifyExpr" }, seen)
    assert.equal(1, #pl.report())
  end)

  it("of 0 runs no pass", function()
    local mod = model()
    assert.equal(mod, run({ ["bisect.passes"] = 0 }, all, mod))
    assert.equal(0, #pl.report())
  end)

  it("does not count a pass that is vetoed", function()
    local veto = { name = "veto", should_run = function(_, info)
      return info.name ~= "SimplifyExpr"
    end }
    pl.with(pl.context { opt_level = 3, config = { ["bisect.passes"] = 1 },
      instruments = { veto } }, pl.pipeline(all), model())
    assert.equal("EliminateCommonSubexpr", pl.report()[1].name)
    assert.equal(1, pl.report()[1].run)
  end)

  it("of less than -1 is refused", function()
    for _, key in ipairs { "bisect.passes", "bisect.applications" } do
      local ok, diag = pcall(pl.context, { config = { [key] = -2 } })
      assert.is_false(ok)
      assert.equal(("config key '%s' expects an integer from -1 on, got -2"):format(key),
        diag.message)
      pl.context { config = { [key] = -1 } }
    end
  end)
end)
