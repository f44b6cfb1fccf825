-- Config keys and options of passes: types, defaults, bounds, choices, lists,
-- tables with fields; what is refused, word for word. TVM's test_pass_config,
-- test_list_pass_configs and its command line's name=value are among these.

local pl = require "perilune"

local function small()
  local x = pl.var("x", "Tensor[(2), float32]")
  return pl.module { main = pl.func({ x }, x + 1) }
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return type(err) == "string" and err:gsub("^%S*pass_config_spec.lua:%d+: ", "") or err.message
end

local function refused(config) return message(pl.context, { config = config }) end

describe("the list of config keys", function()
  it("has rows in order, each with type, default and doc", function()
    local names = {}
    for name, row in pairs(pl.config) do
      names[#names + 1] = name
      assert.equal(name, row.name)
      assert.is_true(#row.doc > 0)
      assert.is_true(row.default ~= nil)
    end
    assert.equal("fold", names[1])
    assert.equal("string", pl.config.fold.type)
    assert.equal("budget", pl.config.fold.default)
    assert.equal("budget|all", pl.config.fold.choices)
    assert.is_false(pl.config["relay.FuseOps.link_params"].default)
    assert.equal(1, pl.config["relay.FuseOps.max_depth"].least)
    assert.is_nil(pl.config.nothing)
  end)

  it("has the tables of TIR with TVM's defaults", function()
    local row = pl.config["tir.UnrollLoop"]
    local fields = {}
    for i,
      field in ipairs(row.fields) do fields[i] = field.name .. "=" .. tostring(field.default) end
    assert.equal("table", row.type)
    assert.same({ "auto_max_step=0", "auto_max_depth=8", "auto_max_extent=0",
      "explicit_unroll=true",
      "unroll_local_access=false" }, fields)
    assert.equal(8, row.default.auto_max_depth)
    assert.equal(1, pl.config["tir.InjectDoubleBuffer"].default.split_loop)
    assert.equal(5, #pl.config["tir.Simplify"].default)
  end)
end)

describe("a config key that is a table", function()
  it("takes the defaults of the fields that are not given", function()
    local ctx = pl.context { config = { ["tir.UnrollLoop"] = { auto_max_step = 8 } } }
    local got = ctx.config["tir.UnrollLoop"]
    assert.equal(8, got.auto_max_step)
    assert.equal(8, got.auto_max_depth)
    assert.is_true(got.explicit_unroll)
    assert.is_false(got.unroll_local_access)
    assert.equal(8, ctx:get "tir.UnrollLoop.auto_max_step")
    assert.equal(0, pl.context {}:get "tir.UnrollLoop".auto_max_step)
    assert.equal(8, #pl.context { config = { ["tir.UnrollLoop"] = {} } }:get "tir.UnrollLoop" + 3)
  end)

  it("may be set field by field", function()
    local ctx = pl.context { config = { ["tir.UnrollLoop.auto_max_step"] = 4,
      ["tir.UnrollLoop.explicit_unroll"] = false, ["tir.UnrollLoop"] = { auto_max_extent = 2 } } }
    local got = ctx.config["tir.UnrollLoop"]
    assert.same({ 4, false, 2, 8 }, { got.auto_max_step, got.explicit_unroll, got.auto_max_extent,
      got.auto_max_depth })
    assert.is_nil(ctx.config["tir.UnrollLoop.auto_max_step"])
  end)

  it("refuses unknown fields and values of another type, and names key and field", function()
    assert.equal("config key 'tir.UnrollLoop' has no field 'auto_max_stepp'; did you mean "
      .. "'auto_max_step'?", refused { ["tir.UnrollLoop"] = { auto_max_stepp = 8 } })
    assert.equal("config key 'tir.InjectDoubleBuffer' has no field 'x'; it has 'split_loop'",
      refused { ["tir.InjectDoubleBuffer"] = { x = 8 } })
    assert.equal("config key 'tir.UnrollLoop', field 'auto_max_step' expects an integer from 0 on, "
      .. "got a string", refused { ["tir.UnrollLoop"] = { auto_max_step = "8" } })
    assert.equal("config key 'tir.UnrollLoop', field 'auto_max_step' expects an integer from 0 on, "
      .. "got -1", refused { ["tir.UnrollLoop.auto_max_step"] = -1 })
    assert.equal("config key 'tir.UnrollLoop' expects a table, got an integer",
      refused { ["tir.UnrollLoop"] = 8 })
    assert.equal("config key 'tir.UnrollLoop' has no field 'step'; it has 'auto_max_step', "
      .. "'auto_max_depth', 'auto_max_extent', 'explicit_unroll', 'unroll_local_access'",
      refused { ["tir.UnrollLoop.step"] = 8 })
  end)
end)

describe("a config", function()
  it("refuses keys that nobody knows, with the nearest", function()
    assert.equal("there is no config key 'tir.UnrolLoop'; did you mean 'tir.UnrollLoop'?",
      refused { ["tir.UnrolLoop"] = 3 })
    assert.equal("there is no config key 'FoldConstnat.fold'; did you mean 'FoldConstant.fold'?",
      refused { ["FoldConstnat.fold"] = "all" })
    assert.equal("pass 'FoldConstant' has no option 'flod'; did you mean 'fold'?",
      refused { ["FoldConstant.flod"] = "all" })
    local all = refused { ["relay.backend.use_auto_scheduler"] = true }
    assert.matches("^there is no config key 'relay.backend.use_auto_scheduler'; there are 'fold', ",
      all)
    assert.matches("'relay.FuseOps.max_depth', .*, and 'Pass.option' for each option of a pass$",
      all)
  end)

  it("refuses values of the wrong type or out of bounds", function()
    assert.equal("config key 'fold' expects one of budget|all, got an integer",
      refused { fold = 1 })
    assert.equal("config key 'fold' expects one of budget|all, got 'half'",
      refused { fold = "half" })
    assert.equal("config key 'relay.FuseOps.max_depth' expects an integer from 1 to 2147483647, "
      .. "got 0", refused { ["relay.FuseOps.max_depth"] = 0 })
    assert.equal("config key 'relay.FuseOps.link_params' expects true or false, got 2",
      refused { ["relay.FuseOps.link_params"] = 2 })
    assert.equal("config key 'limit.seconds' expects a number from 0 on, got nan",
      (refused { ["limit.seconds"] = 0 / 0 }:gsub("%-nan", "nan")))
    assert.equal("config key 'limit.seconds' expects a number from 0 on, got a list of integers",
      refused { ["limit.seconds"] = { 1 } })
    assert.equal("a context's config is a table, got a number", refused(3))
    assert.matches("names of attributes are strings", refused { 1 })
  end)

  it("takes whole numbers for integers, integers for numbers, 0 and 1 for booleans", function()
    local ctx = pl.context { config = { ["limit.nodes"] = 10.0, ["limit.seconds"] = 2,
      ["relay.FuseOps.link_params"] = 1 } }
    assert.equal("integer", math.type(ctx.config["limit.nodes"]))
    assert.equal("float", math.type(ctx.config["limit.seconds"]))
    assert.is_true(ctx.config["relay.FuseOps.link_params"])
  end)

  it("gives what is set, else the default; a key that is none raises", function()
    assert.equal("all", pl.context { config = { fold = "all" } }:get "fold")
    assert.equal("budget", pl.context {}:get "fold")
    assert.equal("there is no config key 'flod'; did you mean 'fold'?",
      message(function() return pl.current():get "flod" end))
  end)
end)

describe("a script's config key", function()
  after_each(function() pl.config.mine, pl.config.other = nil, nil end)

  it("is registered by assignment, in order, and removed by nil", function()
    pl.config.mine = { default = 3, least = 1, most = 5, doc = "Mine." }
    pl.config.other = { fields = { deep = 2, wide = { default = "a", choices = { "a", "b" } } } }
    local last, before
    for name in pairs(pl.config) do last, before = name, last end
    assert.same({ "mine", "other" }, { before, last })
    assert.equal("Mine.", pl.config.mine.doc)
    assert.equal(5, pl.context { config = { mine = 5 } }:get "mine")
    assert.equal("config key 'mine' expects an integer from 1 to 5, got 6", refused { mine = 6 })
    assert.equal("config key 'other', field 'wide' expects one of a|b, got 'c'",
      refused { other = { wide = "c" } })
    pl.config.mine = nil
    assert.is_nil(pl.config.mine)
    assert.matches("there is no config key 'mine'", refused { mine = 3 })
    pl.config.mine = nil
  end)

  it("may be assigned anew; contexts made before keep what they have", function()
    pl.config.mine = { default = 3 }
    local before = pl.context { config = { mine = 7 } }
    pl.config.mine = { default = "seven" }
    assert.equal("seven", pl.context {}:get "mine")
    assert.equal(7, before.config.mine)
  end)

  it("reaches the passes, as the context has it", function()
    pl.config.mine = { default = { "a" } }
    local got
    local see = pl.function_pass { name = "see", run = function(_, _,
      ctx) got = ctx:get "mine" end }
    see(small())
    assert.same({ "a" }, got)
    see(small(), pl.context { config = { mine = { "b", "c" } } })
    assert.same({ "b", "c" }, got)
  end)

  it("is refused when it is none, or built in", function()
    local function assign(name, row) return message(function() pl.config[name] = row end) end
    assert.equal("config key 'fold' is built in and stays as it is", assign("fold",
      { default = 1 }))
    assert.equal("config key 'fold' is built in and stays as it is", assign("fold", nil))
    assert.equal("a config key is { default = ..., doc = ... } or { fields = { ... } }",
      assign("mine", 3))
    assert.equal("config keys have names", assign(1, { default = 1 }))
    assert.equal("option 'mine' has no field 'leest'", assign("mine", { default = 1, leest = 0 }))
    assert.equal("the default of option 'mine' expects an integer from 2 on, got 1",
      assign("mine", { default = 1, least = 2 }))
    assert.equal("option 'mine' needs bounds that are numbers of its kind",
      assign("mine", { default = "x", least = 2 }))
    assert.equal("option 'mine': a list is of strings or of numbers",
      assign("mine", { default = { 1, "x" } }))
    assert.equal("option 'mine': the default is not a value of type 'strings'",
      assign("mine", { default = 1, type = "strings" }))
    assert.equal("option 'a' needs a kind: an integer, a number, a string, true or false, "
      .. "or a list",
      assign("mine", { fields = { a = { fields = { b = 1 } } } }))
    assert.is_nil(pl.config.mine)
  end)
end)

describe("the options of a pass", function()
  local got
  setup(function()
    pl.passes.Mine = {
      options = {
        { name = "depth", default = 3, least = 1, most = 9, doc = "How deep." },
        { name = "names", default = {}, type = "strings" },
        { name = "axes", default = { 0, 1 }, least = -8, most = 7 },
        { name = "scales", default = { 1, 0.1 }, least = 0 },
        { name = "weights", default = { 1, 2 }, type = "numbers" },
        { name = "mode", default = "fast", choices = { "fast", "small" } },
        { name = "share", default = 0.5, least = 0, most = 1 },
        loops = { fields = { step = 1, explicit = true } },
        loud = false,
      },
      run = function(_, _, ctx)
        got = {}
        for _, name in ipairs { "depth", "names", "axes", "scales", "weights", "mode", "share",
          "loud" } do
          got[name] = ctx:option(name)
        end
        local loops = ctx:option "loops"
        got.loops = { step = loops.step, explicit = loops.explicit }
      end,
    }
  end)
  teardown(function() pl.passes.Mine = nil end)

  local function given(pass)
    pass(small())
    return got
  end

  it("have defaults of every type", function()
    assert.same({ depth = 3, names = {}, axes = { 0, 1 }, scales = { 1.0, 0.1 },
      weights = { 1.0, 2.0 }, mode = "fast", share = 0.5, loud = false,
      loops = { step = 1, explicit = true } }, given(pl.passes.Mine()))
    local rows = {}
    for _, row in ipairs(pl.passes.Mine.options) do rows[row.name] = row.type end
    assert.same({ depth = "integer", names = "strings", axes = "integers", scales = "numbers",
      weights = "numbers", mode = "string",
      share = "number", loud = "boolean", loops = "table" }, rows)
  end)

  it("are taken from a table and from text alike", function()
    local wanted = { depth = 9, names = { "a", 'b"\\\n' }, axes = {}, mode = "small", share = 1.0,
      scales = { 3.0, 1e-300 }, weights = {}, loud = true, loops = { step = 4, explicit = true } }
    local options = { depth = 9, names = { "a", 'b"\\\n' }, axes = {}, mode = "small", share = 1,
      scales = { 3, 1e-300 }, weights = {}, loud = true, loops = { step = 4 } }
    local pass = pl.passes.Mine(options)
    assert.same(wanted, given(pass))
    assert.same(wanted, given(pl.pipeline(tostring(pass))))
    assert.equal('Mine{axes=[],depth=9,loops={explicit=true,step=4},loud=true,'
      .. 'mode="small",names=["a","b\\"\\\\\n"],scales=[3,1e-300],share=1,weights=[]}',
      tostring(pass))
    assert.same({ 2.0, -0.5 }, given(pl.pipeline "Mine{weights=[2,-5e-1]}").weights)
    assert.equal("float", math.type(given(pl.passes.Mine { weights = { 2 } }).weights[1]))
    assert.same({ "x", "y" }, given(pl.pipeline "Mine{names=[x, y],axes=[ ],loops={}}").names)
  end)

  it("come from the context when they are not given", function()
    local ctx = pl.context { config = { ["Mine.loops"] = { step = 2 }, Mine = { names = { "n" } },
      ["Mine.mode"] = "small" } }
    pl.with(ctx, pl.passes.Mine { mode = "fast" }, small())
    assert.same({ step = 2, explicit = true }, got.loops)
    assert.same({ "n" }, got.names)
    assert.equal("fast", got.mode)
    assert.equal("config key 'Mine.loops', field 'step' expects an integer, got a string",
      refused { Mine = { loops = { step = "x" } } })
  end)

  it("that are wrong are refused when the pass is made: pass, option, what is allowed", function()
    for _, row in ipairs {
      { { depht = 1 }, "pass 'Mine' has no option 'depht'; did you mean 'depth'?" },
      { { depth = "x" },
        "pass 'Mine': option 'depth' expects an integer from 1 to 9, got a string" },
      { { depth = 10 }, "pass 'Mine': option 'depth' expects an integer from 1 to 9, got 10" },
      { { depth = 1.5 },
        "pass 'Mine': option 'depth' expects an integer from 1 to 9, got a number" },
      { { names = "a" }, "pass 'Mine': option 'names' expects a list of strings, got a string" },
      { { names = { 1 } },
        "pass 'Mine': option 'names' expects a list of strings, got a list of integers" },
      { { axes = { 9 } },
        "pass 'Mine': option 'axes' expects a list of integers from -8 to 7, got 9" },
      { { scales = { 1, -2.5 } },
        "pass 'Mine': option 'scales' expects a list of numbers from 0 on, got -2.5" },
      { { scales = { 0, -1 } },
        "pass 'Mine': option 'scales' expects a list of numbers from 0 on, got -1" },
      { { scales = { 0 / 0 } }, ("pass 'Mine': option 'scales' expects a list of numbers "
        .. "from 0 on, got %s"):format(0 / 0) },
      { { scales = 1.5 },
        "pass 'Mine': option 'scales' expects a list of numbers from 0 on, got a number" },
      { { weights = { "a" } },
        "pass 'Mine': option 'weights' expects a list of numbers, got a list of strings" },
      { { axes = { 1.5 } },
        "pass 'Mine': option 'axes' expects a list of integers from -8 to 7, "
          .. "got a list of numbers" },
      { { mode = "slow" }, "pass 'Mine': option 'mode' expects one of fast|small, got 'slow'" },
      { { share = 2 }, "pass 'Mine': option 'share' expects a number from 0 to 1, got 2" },
      { { loud = "yes" }, "pass 'Mine': option 'loud' expects true or false, got a string" },
      { { loops = { stop = 1 } },
        "pass 'Mine': option 'loops' has no field 'stop'; did you mean 'step'?" },
      { { loops = { step = true } },
        "pass 'Mine': option 'loops', field 'step' expects an integer, got a boolean" },
    } do
      assert.equal(row[2], message(pl.passes.Mine, row[1]))
    end
  end)

  it("that are wrong in a text are shown with a caret", function()
    for text, wanted in pairs {
      ["Mine{depht=1}"] = { 6, "pass 'Mine' has no option 'depht'; did you mean 'depth'?" },
      ["Mine{depth=x}"] = { 12,
        "pass 'Mine': option 'depth' expects an integer from 1 to 9, got 'x'" },
      ["Mine{depth=10}"] = { 12,
        "pass 'Mine': option 'depth' expects an integer from 1 to 9, got 10" },
      ["Mine{axes=[1,y]}"] = { 14,
        "pass 'Mine': option 'axes' expects a list of integers from -8 to 7, got 'y'" },
      ["Mine{axes=[1,9]}"] = { 11,
        "pass 'Mine': option 'axes' expects a list of integers from -8 to 7, got 9" },
      ["Mine{weights=[1.5,y]}"] = { 19,
        "pass 'Mine': option 'weights' expects a list of numbers, got 'y'" },
      ["Mine{scales=[1.5,-1]}"] = { 13,
        "pass 'Mine': option 'scales' expects a list of numbers from 0 on, got -1" },
      ["Mine{axes=1}"] = { 11, "expected '[' and a list, got '1'" },
      ["Mine{axes=[1"] = { 13, "expected ',' or ']', got the end" },
      ["Mine{loops={stop=1}}"] = { 13,
        "pass 'Mine': option 'loops' has no field 'stop'; did you mean 'step'?" },
      ["Mine{loops={step=a}}"] = { 18,
        "pass 'Mine': option 'loops', field 'step' expects an integer, got 'a'" },
      ["Mine{loops={step=1,step=2}}"] = { 20, "the field is given twice" },
      ["Mine{loops={step=1"] = { 19, "expected ',' or '}' after the field, got the end" },
      ["Mine{mode=slow}"] = { 11,
        "pass 'Mine': option 'mode' expects one of fast|small, got 'slow'" },
    } do
      local _, diag = pcall(pl.pipeline, text)
      assert.equal(wanted[2], diag.message)
      assert.equal(wanted[1], diag.span.column, text)
    end
  end)

  it("of a registered pass object are its defaults", function()
    pl.passes.Deep = pl.passes.Mine { depth = 7 }
    assert.equal(7, given(pl.passes.Deep()).depth)
    assert.equal(7, given(pl.pipeline "Deep").depth)
    local both = given(pl.pipeline "Deep{mode=small}")
    assert.same({ 7, "small" }, { both.depth, both.mode })
    assert.equal(2, given(pl.passes.Deep { depth = 2 }).depth)
    pl.passes.Deep = nil
  end)
end)
