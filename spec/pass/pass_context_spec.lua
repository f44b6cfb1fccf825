-- What contexts are: scopes that do not merge, stacks by coroutine, closing,
-- entering again; and what is wrong, word for word.

local pl = require "perilune"

local function small()
  local x = pl.var("x", "Tensor[(2), float32]")
  return pl.module { main = pl.func({ x }, x + 1) }
end
local function nothing() end

-- What is raised, without the place when it is a string.
local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return type(err) == "string" and err:gsub("^%S*_spec.lua:%d+: ", "") or err.message
end

describe("nested contexts", function()
  it("do not merge: the inner one is all that counts", function()
    pl.passes.High = { opt_level = 3, run = nothing }
    local outer = pl.context { opt_level = 3, disabled = { "High" }, config = { fold = "all" } }
    pl.with(outer, function()
      pl.with(pl.context {}, function()
        local ctx = pl.current()
        assert.same({ 2, {}, "budget" }, { ctx.opt_level, ctx.disabled, ctx:get "fold" })
        assert.is_nil(ctx.config.fold)
      end)
      assert.same({ 3, { "High" }, "all" }, { pl.current().opt_level, pl.current().disabled,
        pl.current():get "fold" })
    end)
    pl.passes.High = nil
  end)

  it("are left innermost first, and only when they were entered", function()
    local outer, inner = pl.context {}, pl.context {}
    assert.equal("the context to be left has not been entered", message(outer.exit, outer))
    outer:enter()
    inner:enter()
    assert.equal("the context to be left is not the current one; leave inner contexts first",
      message(outer.exit, outer))
    inner:exit()
    outer:exit()
    assert.equal("the context to be left has not been entered", message(outer.exit, outer))
  end)

  it("may be the same one: its hooks run each time", function()
    local calls = {}
    local ctx = pl.context { instruments = { { enter = function() calls[#calls + 1] = "enter" end,
      exit = function() calls[#calls + 1] = "exit" end } } }
    pl.with(ctx, pl.with, ctx, nothing)
    pl.with(ctx, nothing)
    assert.equal("enter enter exit exit enter exit", table.concat(calls, " "))
  end)

  it("are left when the body raises, by pl.with and by <close>", function()
    local outside, left = pl.current(), 0
    local function context()
      return pl.context { instruments = { { exit = function() left = left + 1 end } } }
    end
    assert.equal("no luck", message(pl.with, context(), error, "no luck", 0))
    assert.equal("no luck", message(function()
      local scope <close> = context():enter() -- luacheck: ignore scope
      error("no luck", 0)
    end))
    assert.same({ outside, 2 }, { pl.current(), left })
  end)
end)

describe("the context that is always there", function()
  it("has all defaults, and keeps the instruments it is given", function()
    local ctx, n = pl.current(), 0
    assert.same({ 2, {}, {}, {}, 0 }, { ctx.opt_level, ctx.required, ctx.disabled, ctx.only,
      #ctx.config })
    pl.current():override_instruments { { before = function() n = n + 1 end } }
    pl.passes.InferType()(small())
    pl.with(pl.context {}, pl.passes.InferType(), small())
    pl.passes.InferType()(small())
    pl.current():override_instruments {}
    pl.passes.InferType()(small())
    assert.equal(2, n)
  end)

  it("is what a coroutine starts from; what the coroutine enters is its own", function()
    local function level() return pl.current().opt_level end
    local co = coroutine.wrap(function()
      pl.context { opt_level = 0 }:enter()
      coroutine.yield(level())
      local inner <close> = pl.context { opt_level = 1 }:enter() -- luacheck: ignore inner
      coroutine.yield(level())
    end)
    pl.with(pl.context { opt_level = 3 }, function()
      assert.same({ 0, 3, 1, 3 }, { co(), level(), co(), level() })
    end)
    assert.equal(2, level())
  end)

  it("cannot be left", function()
    assert.equal("the context to be left has not been entered",
      message(function() pl.current():exit() end))
  end)
end)

describe("a context as text", function()
  it("is what it was made of", function()
    assert.equal("context { opt_level = 2 }", tostring(pl.context {}))
    assert.equal("context { opt_level = 3, required = { InferType }, disabled = { FoldConstant:2, "
      .. 'FuseOps }, only = { InferType }, instruments = { log, instrument }, config = {fold="all",'
      .. "tir.InjectDoubleBuffer={split_loop=2}} }", tostring(pl.context { opt_level = 3,
      required = { "InferType" }, disabled = { "FoldConstant:2", "FuseOps" },
      only = { "InferType" }, instruments = { { name = "log" }, {} },
      config = { fold = "all", ["tir.InjectDoubleBuffer"] = { split_loop = 2 } } }))
  end)
end)

describe("a closed context", function()
  it("cannot be used again, for anything", function()
    local ctx = pl.context {}
    ctx:close()
    for _, use in ipairs {
      function() ctx:enter() end, function() ctx:exit() end, function() ctx:get "fold" end,
      function() return ctx.opt_level end, function() return tostring(ctx) end,
      function() ctx:override_instruments {} end, function() pl.with(ctx, nothing) end,
      function() pl.passes.InferType()(small(), ctx) end, function() ctx:close() end,
    } do
      assert.matches("the context has been closed$", message(use))
    end
  end)

  it("is none that is entered", function()
    local ctx = pl.context {}
    pl.with(ctx, function()
      assert.equal("the context is entered; leave it before it is closed", message(ctx.close, ctx))
    end)
    ctx:close()
  end)

  it("lets go of its instruments", function()
    local weak = setmetatable({ {} }, { __mode = "v" })
    local ctx = pl.context { instruments = { weak[1] } }
    collectgarbage()
    assert.is_truthy(weak[1])
    ctx:close()
    collectgarbage()
    assert.is_nil(weak[1])
  end)
end)

describe("pl.context refuses", function()
  it("what is no list of known names", function()
    for field in pairs { required = 1, disabled = 1, only = 1 } do
      assert.equal(("a context's '%s' is a list of names, got a string"):format(field),
        message(pl.context, { [field] = "FoldConstant" }))
      assert.equal(("a context's '%s' is a list of names; entry 1 is a number"):format(field),
        message(pl.context, { [field] = { 1 } }))
      assert.equal(field .. ": pass 'FoldConstnat' is not registered; did you mean 'FoldConstant'?",
        message(pl.context, { [field] = { "FoldConstnat" } }))
    end
  end)

  it("other fields, and values of another type", function()
    assert.equal("a context has no field 'optlevel'; did you mean 'opt_level'?",
      message(pl.context, { optlevel = 2 }))
    assert.equal("field 'opt_level': an integer expected, got string",
      message(pl.context, { opt_level = "high" }))
    assert.equal("a context is made from a table, got a number", message(pl.context, 3))
  end)

  it("takes passes and constructors for names", function()
    local pass = pl.function_pass { name = "mine", run = nothing }
    assert.same({ "mine", "FoldConstant" },
      pl.context { disabled = { pass, pl.passes.FoldConstant } }.disabled)
  end)
end)

describe("pl.with refuses", function()
  it("what is no context, and what cannot be called", function()
    assert.equal("pl.with: a context expected, got nil", message(pl.with, nil, nothing))
    assert.equal("pl.with: a context expected, got table", message(pl.with, {}, nothing))
    assert.equal("pl.with: a function expected, got nil", message(pl.with, pl.context {}))
  end)

  it("nothing that is returned: all of it comes back", function()
    assert.same({ 1, nil, 3, n = 3 }, table.pack(pl.with(pl.context {}, function(...)
      return ...
    end, 1, nil, 3)))
  end)
end)

describe("a pass", function()
  it("refuses what is no module or no context", function()
    local pass = pl.passes.InferType()
    assert.matches("perilune.Module expected, got number", message(pass, 3), 1, true)
    assert.matches("perilune.Module expected, got no value", message(pass), 1, true)
    assert.matches("perilune.Context expected, got number", message(pass, small(), 3), 1, true)
    pass:close()
    assert.matches("the pass has been closed$", message(pass, small()))
  end)

  it("that is described badly is refused, with what is wrong", function()
    for wanted, spec in pairs {
      ["pass 'p' has no function 'run'"] = { name = "p" },
      ["pass 'p': 'run' is a number, not a function"] = { name = "p", run = 3 },
      ["field 'opt_level': an integer expected, got string"] = { run = nothing, opt_level = "x" },
      ["field 'name': a string expected, got number"] = { run = nothing, name = 3 },
      ["field 'doc': a string expected, got number"] = { run = nothing, doc = 3 },
      ["a pass's 'required' is a list of names, got a string"] = { run = nothing, required = "x" },
      ["a list of names expected; entry 1 is a number"] = { run = nothing, required = { 1 } },
      ["a pass has no field 'nmae'; did you mean 'name'?"] = { run = nothing, nmae = "x" },
      ["options are a table, got a number"] = { run = nothing, options = 3 },
      ["option 'depth' is listed twice"] = { run = nothing, options = { { name = "depth",
        default = 1 }, depth = 2 } },
    } do
      assert.equal(wanted, message(pl.function_pass, spec))
    end
    assert.equal("a pass is described by a table, got a number", message(pl.function_pass, 3))
    assert.equal("field 'kind': 'function', 'module' or 'prim_func' expected, got 'loop'",
      message(function() pl.passes.Mine = { kind = "loop", run = nothing } end))
  end)

  it("made of passes that is described badly is refused", function()
    for wanted, spec in pairs {
      ["a sequential's 'required' is a list of names, got a string"] = { required = "x" },
      ["a sequential's 'name' is a string, got a number"] = { name = 3 },
      ["a sequential's 'opt_level' is a number, got a string"] = { opt_level = "x" },
      ["a sequential has no field 'nmae'; did you mean 'name'?"] = { nmae = "x" },
      ["element 1 of a sequential: a pass, a name or a function expected, got a number"] = { 7 },
      ["pass 'FoldConstnat' is not registered; did you mean 'FoldConstant'?"] = { "FoldConstnat" },
    } do
      assert.equal(wanted, message(pl.sequential, spec))
    end
    assert.equal("a sequential is made from a table, got a number", message(pl.sequential, 3))
    assert.equal("a sequential is made from a table, got a string; pl.pipeline reads text",
      message(pl.sequential, "SimplifyExpr,FoldConstant"))
    assert.equal("a fixpoint's 'rounds' is a number, got a string",
      message(pl.fixpoint, { rounds = "x" }))
    assert.equal("'fixpoint' takes a count from 1 to 1000", message(pl.fixpoint, { rounds = 0 }))
    assert.equal("pass 'InferType' is a module pass; functions{...} takes passes over functions",
      message(pl.functions, { "InferType" }))
  end)
end)

describe("a body", function()
  it("that never ends is stopped, also inside pcall", function()
    local ctx = pl.context { config = { ["limit.seconds"] = 0.05 } }
    local function forever() while true do end end -- luacheck: ignore
    local endless = pl.function_pass { name = "endless", run = forever }
    local stubborn = pl.module_pass { name = "stubborn", run = function()
      while true do pcall(forever) end
    end }
    local outside = pl.current()
    assert.equal("pass 'endless', function @main: it took longer than limit.seconds = 0.05",
      message(pl.with, ctx, endless, small()))
    assert.equal("pass 'stubborn': it took longer than limit.seconds = 0.05",
      message(pl.with, ctx, stubborn, small()))
    assert.equal(outside, pl.current())
  end)

  it("that yields is refused, in a coroutine and outside", function()
    local pass = pl.function_pass { name = "yields", run = function() coroutine.yield() end }
    assert.equal("pass 'yields', function @main: attempt to yield from outside a coroutine",
      message(pass, small()))
    local _, diag = coroutine.resume(coroutine.create(function() return pass(small()) end))
    assert.equal("pass 'yields', function @main: attempt to yield across a C-call boundary",
      diag.message)
  end)
end)

describe("a pass of the registry", function()
  after_each(function() pl.passes.Mine, pl.passes.Again = nil, nil end)

  it("may be defined anew: pipelines made before keep the old one", function()
    local ran = {}
    local function says(text) return { run = function() ran[#ran + 1] = text end } end
    pl.passes.Mine = says "one"
    local constructor, made = pl.passes.Mine, pl.passes.Mine()
    local list, text = pl.sequential { "Mine", "Mine" }, pl.pipeline "Mine,fixpoint{Mine}"
    pl.passes.Mine = says "two"
    local function order(pass)
      ran = {}
      pass(small())
      return table.concat(ran, " ")
    end
    assert.same({ "one", "one one", "one one" }, { order(made), order(list), order(text) })
    assert.same({ "two", "two", "two" }, { order(constructor()), order(pl.passes.Mine()),
      order(pl.pipeline "Mine") })
    pl.passes.Mine = nil
    assert.same({ "one", "one one" }, { order(made), order(list) })
    assert.equal("pass 'Mine' is not registered", message(pl.pipeline, "Mine"))
    assert.equal("pass 'Mine' is not registered", message(constructor))
  end)

  it("comes from a table, function, mutator, list, pass, constructor or class", function()
    local mod = small()
    local double = function(fn) return pl.func(fn.params, fn.body * 2) end
    local function changes(value)
      pl.passes.Mine = value
      return pl.passes.Mine()(mod) ~= mod
    end
    assert.is_true(changes { run = double })
    assert.is_true(changes(double))
    assert.is_true(changes(pl.mutator { Call = function(call) return call * 2 end }))
    assert.is_true(changes { double = nil, pl.function_pass { name = "double", run = double } })
    assert.is_true(changes(pl.function_pass { name = "double", run = double }))
    assert.is_true(changes(pl.pass_class { name = "D", run = function(_,
      fn) return double(fn) end }))
    pl.passes.Again = pl.passes.Mine
    assert.is_true(pl.passes.Again()(mod) ~= mod)
    assert.equal("Again", pl.passes.Again().name)
  end)

  it("stays in its place when it is defined anew, and goes when it is nil", function()
    local function names()
      local list = {}
      for name in pairs(pl.passes) do list[#list + 1] = name end
      return table.concat(list, " ", #list - 1)
    end
    pl.passes.Mine, pl.passes.Again = { run = nothing }, { run = nothing }
    pl.passes.Mine, pl.passes.Again = { run = nothing, doc = "New." }, { run = nothing }
    assert.equal("New.", pl.passes.Mine.doc)
    assert.is_truthy(names() == "Mine Again" or names() == "Again Mine")
    pl.passes.Mine = nil
    assert.is_nil(pl.passes.Mine)
    pl.passes.Mine = nil
  end)

  it("that is built in stays", function()
    assert.equal("pass 'FoldConstant' is built in and stays registered",
      message(function() pl.passes.FoldConstant = nil end))
    assert.equal("pass 'FoldConstant' is built in; register another name",
      message(function() pl.passes.FoldConstant = nothing end))
    assert.equal("passes are registered under names",
      message(function() pl.passes[1] = nothing end))
    assert.equal("a pass is described by a table, got a number",
      message(function() pl.passes.Mine = 7 end))
  end)
end)
