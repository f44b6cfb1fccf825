-- Passes, sequentials, contexts and instruments written in Lua.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end
local function small()
  local x = pl.var("x", f32(2))
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 1) }
end
local function nothing() end

describe("the registry", function()
  after_each(function()
    pl.passes.Mine = nil
    pl.passes.Both = nil
  end)

  it("registers by assignment, constructs by indexing, removes by nil", function()
    assert.is_nil(pl.passes.Mine)
    pl.passes.Mine = { kind = "function", opt_level = 1, doc = "Does nothing.", run = nothing }
    local mine = pl.passes.Mine
    assert.equal("Mine", mine.name)
    assert.equal("Does nothing.", mine.doc)
    assert.equal(1, mine().info.opt_level)
    local mod = small()
    assert.equal(mod, mine()(mod))
    pl.passes.Mine = nil
    assert.is_nil(pl.passes.Mine)
    assert.equal(mod, mine and mod)
  end)

  it("lists its passes in order", function()
    pl.passes.Mine = { run = nothing }
    local names, last = {}, nil
    for name, pass in pairs(pl.passes) do
      names[name] = pass
      last = name
    end
    assert.equal("Mine", last)
    assert.is_truthy(names.FoldConstant)
    assert.is_truthy(names.DeadCodeElimination.doc)
  end)

  it("takes functions, pipelines and lists", function()
    pl.passes.Mine = function(fn) return fn end
    pl.passes.Both = { "Mine", "DeadCodeElimination" }
    local mod = small()
    assert.equal("sequential", pl.passes.Both.kind)
    assert.is_true(pl.equal(mod, pl.passes.Both()(mod)))
  end)

  it("checks options, and gives them to the body", function()
    local got
    pl.passes.Mine = { options = { { name = "limit", default = 3, doc = "How many." },
        { name = "loud", default = false }, { name = "mode", default = "slow" } },
      run = function(_, _, ctx)
        got = { ctx:option "limit", ctx:option "loud", ctx:option "mode" }
      end }
    pl.passes.Mine { limit = 5, loud = true }(small())
    assert.same({ 5, true, "slow" }, got)
    pl.passes.Mine()(small())
    assert.same({ 3, false, "slow" }, got)
    pl.pipeline "Mine{mode=\"fast\"}" (small())
    assert.same({ 3, false, "fast" }, got)
    pl.with(pl.context { config = { Mine = { limit = 9 } } }, pl.passes.Mine(), small())
    assert.equal(9, got[1])
    assert.has_error(function() pl.passes.Mine { limt = 5 } end)
    assert.has_error(function() pl.passes.Mine { limit = "many" } end)
    assert.equal("limit", pl.passes.Mine.options[1].name)
    assert.equal("integer", pl.passes.Mine.options[1].type)
  end)

  it("refuses what is no pass", function()
    assert.has_error(function() pl.passes.Mine = { kind = "function" } end)
    assert.has_error(function() pl.passes.Mine = { run = 7 } end)
    assert.has_error(function() pl.passes.Mine = { run = nothing, kind = "loop" } end)
    assert.has_error(function() pl.passes.Mine = { run = nothing, optlevel = 2 } end)
    assert.has_error(function() pl.passes.Mine = 7 end)
    assert.has_error(function() pl.passes[1] = { run = nothing } end)
    assert.has_error(function() pl.passes.FoldConstant = nil end)
  end)
end)

describe("a pass in Lua", function()
  it("that gives nil or its argument changes nothing: the very same module", function()
    local mod = small()
    assert.equal(mod, pl.function_pass { name = "a", run = nothing }(mod))
    assert.equal(mod, pl.function_pass { name = "b", run = function(fn) return fn end }(mod))
    assert.equal(mod, pl.module_pass { name = "c", run = function(m) return m end }(mod))
  end)

  it("gives a new function built freely", function()
    local double = pl.function_pass { name = "double", run = function(fn)
      return pl.func(fn.params, fn.body * 2)
    end }
    local mod = small()
    local out = double(mod)
    assert.equal(pl.op.multiply, out.main.body.op)
    assert.equal(pl.op.add, mod.main.body.op)
    assert(pl.verify(out))
  end)

  it("gives a changed module", function()
    local add = pl.module_pass { name = "add", run = function(mod)
      return mod:with { extra = mod.main }
    end }
    assert.equal(2, #add(small()))
  end)

  it("sees the function, the module and the context", function()
    local seen
    pl.with(pl.context { opt_level = 3 }, pl.function_pass { name = "see",
      run = function(fn, mod, ctx) seen = { fn.kind, #mod, ctx.opt_level } end }, small())
    assert.same({ "Function", 1, 3 }, seen)
  end)

  it("has notes in the report", function()
    local pass = pl.function_pass { name = "count", run = function(fn, _, ctx)
      for node in fn:nodes() do if node.kind == "Call" then ctx:note("calls", 1) end end
    end }
    pass(small())
    local row = pl.report()[1]
    assert.equal("count", row.name)
    assert.equal(2, row.counts.calls)
    assert.is_false(row.changed)
    assert.has_error(function() pl.current():note("calls", 1) end)
  end)

  it("that raises is named, with its line and traceback; the module is as before", function()
    local pass = pl.function_pass { name = "boom", run = function() error "broken here" end }
    local mod = small()
    local text = tostring(mod)
    local ok, diag = pcall(pass, mod)
    assert.is_false(ok)
    assert.equal("callback", diag.code)
    assert.is_truthy(diag.message:find("pass 'boom', function @main", 1, true))
    assert.is_truthy(diag.message:find("pass_spec.lua:%d+: broken here"))
    assert.is_truthy(diag.traceback:find("pass_spec.lua", 1, true))
    assert.equal("boom", diag.pass)
    assert.equal(text, tostring(mod))
  end)

  it("that raises a value of its own raises that very value", function()
    local mine = { "mine" }
    local pass = pl.function_pass { name = "boom", run = function() error(mine) end }
    local ok, got = pcall(pass, small())
    assert.is_false(ok)
    assert.is_true(rawequal(mine, got))
    ok, got = pcall(pl.sequential { pass }, small())
    assert.is_false(ok)
    assert.is_true(rawequal(mine, got))
  end)

  it("that gives garbage is named, with the line where it stands", function()
    for _, garbage in ipairs { 7, "x", {}, true, small(), pl.const(1) } do
      local pass = pl.function_pass { name = "bad", run = function() return garbage end }
      local ok, diag = pcall(pass, small())
      assert.is_false(ok)
      assert.is_truthy(tostring(diag):find("pass 'bad'", 1, true))
      assert.is_truthy(tostring(diag):find("pass_spec.lua:%d+"))
    end
    local ok = pcall(pl.module_pass { name = "bad", run = function(m) return m.main end }, small())
    assert.is_false(ok)
  end)

  it("whose expression is ill-typed is named too", function()
    local pass = pl.function_pass { name = "typo", run = function(fn)
      return fn:with { body = fn.body + pl.var("z", f32(3)) }
    end }
    local ok, diag = pcall(pass, small())
    assert.is_false(ok)
    assert.equal("type", diag.code)
    assert.is_truthy(tostring(diag):find("pass 'typo'", 1, true))
  end)

  it("that keeps nodes for a later one is named, with its line", function()
    local kept
    local keep = pl.function_pass { name = "keep", run = function(fn) kept = fn.body + 1 end }
    local use = pl.function_pass { name = "use", run = function(fn)
      local changed = pl.func(fn.params, kept)
      return changed
    end }
    local mod = small()
    local text = tostring(mod)
    local ok, diag = pcall(pl.sequential { keep, use }, mod)
    assert.is_false(ok)
    for _, what in ipairs { "stale node", "pass 'use'", "pass_spec.lua:%d+" } do
      assert.is_truthy(tostring(diag):find(what), what)
    end
    assert.equal(text, tostring(mod))
  end)

  it("that misuses the library is shown its own line, not the library's", function()
    for _, misuse in ipairs {
      function(fn) return { pl.func(3, fn.body) } end,
      function() return { pl.hash(3) } end,
      function() return { pl.mutator(nil) } end,
    } do
      local pass = pl.function_pass { name = "bad", run = misuse }
      local ok, diag = pcall(pass, small())
      assert.is_false(ok)
      assert.is_truthy(diag.message:find("^pass 'bad', function @main: %S*pass_spec.lua:%d+: "))
    end
  end)

  it("may close what it was given, collect garbage, and be removed meanwhile", function()
    local mod = small()
    pl.passes.Mine = { run = function(fn, m)
      pl.passes.Mine = nil
      m:close()
      collectgarbage()
      return pl.func(fn.params, fn.body * 2)
    end }
    local out = pl.passes.Mine()(mod)
    assert.equal(pl.op.multiply, out.main.body.op)
    assert.equal(pl.op.add, mod.main.body.op)
    assert(pl.verify(out))
  end)

  it("may run passes itself", function()
    local inner = pl.function_pass { name = "inner", run = function(fn)
      return pl.func(fn.params, fn.body + 1)
    end }
    local outer = pl.module_pass { name = "outer", run = function(mod)
      return inner(inner(mod))
    end }
    local out = outer(small())
    assert.equal(pl.op.add, out.main.body[1].op)
    assert(pl.verify(out))
    local failing = pl.module_pass { name = "outer", run = function(mod)
      local ok = pcall(pl.function_pass { name = "in", run = function() error "x" end }, mod)
      assert(not ok)
      return inner(mod)
    end }
    assert(pl.verify(failing(small())))
  end)

  it("cannot yield, and says so", function()
    local pass = pl.function_pass { name = "yields", run = function() coroutine.yield() end }
    local co = coroutine.create(function() return pass(small()) end)
    local ok, diag = coroutine.resume(co)
    assert.is_false(ok)
    assert.is_truthy(tostring(diag):find("yield across a C-call boundary", 1, true))
  end)

  it("may loop over nodes in a coroutine", function()
    local mod = small()
    local co = coroutine.wrap(function()
      for node in mod.main:nodes() do coroutine.yield(node.kind) end
    end)
    assert.equal("Var", co())
    assert.equal("Call", co())
  end)

  it("does not recurse for ever", function()
    local pass
    pass = pl.module_pass { name = "loop", run = function(mod) return pass(mod) end }
    local ok, diag = pcall(pass, small())
    assert.is_false(ok)
    assert.is_truthy(tostring(diag):find("stack overflow", 1, true))
    assert(pl.verify(small()))
  end)
end)

describe("a sequential", function()
  it("takes passes, names, constructors, functions and lists", function()
    local ran = {}
    local p = pl.function_pass { name = "p", run = function() ran[#ran + 1] = "p" end }
    local s = pl.sequential { name = "all", p, "DeadCodeElimination", pl.passes.FoldConstant,
      function() ran[#ran + 1] = "f" end, { p, p } }
    local mod = small()
    s(mod)
    assert.same({ "p", "f", "p", "p" }, ran)
    assert.equal("all", s.name)
    assert.equal(5, #s.passes)
    assert.equal("p", s.passes[1].name)
    assert.equal(mod, pl.sequential {} (mod))
  end)

  it("names unknown passes and the nearest ones", function()
    local ok, diag = pcall(pl.sequential, { "FoldConstnat" })
    assert.is_false(ok)
    assert.equal("name", diag.code)
    assert.is_truthy(tostring(diag):find("did you mean 'FoldConstant'", 1, true))
    assert.is_truthy(tostring(diag):find("pass_spec.lua:%d+"))
    assert.has_error(function() pl.sequential { 7 } end)
    assert.has_error(function() pl.sequential { nmae = "x" } end)
  end)

  it("prints as text that reads back", function()
    local s = pl.pipeline "SimplifyExpr,FoldConstant{fold=\"all\"}"
    assert.equal(2, #s.passes)
    assert.equal(tostring(s), tostring(pl.pipeline(tostring(s))))
    assert.has_error(function() pl.pipeline "SimplifyExpr,," end)
    assert.has_error(function() pl.pipeline "NoSuchPass" end)
  end)
end)

describe("a context", function()
  it("is entered and left with <close>, exit and pl.with", function()
    local outside = pl.current()
    do
      local scope <close> = pl.context { opt_level = 3 }:enter()
      assert.equal(scope, pl.current())
      assert.equal(3, pl.current().opt_level)
      local inner = pl.context { opt_level = 0 }
      inner:enter()
      assert.equal(inner, pl.current())
      inner:exit()
      assert.equal(scope, pl.current())
    end
    assert.equal(outside, pl.current())
    assert.equal(7, pl.with(pl.context {}, function(n) return n end, 7))
    assert.has_error(function() pl.with(pl.context {}, error, "x") end)
    assert.equal(outside, pl.current())
  end)

  it("of a pass call is the second argument", function()
    local level
    local p = pl.function_pass { name = "p",
      run = function(_, _, ctx) level = ctx.opt_level end }
    p(small(), pl.context { opt_level = 1 })
    assert.equal(1, level)
  end)

  it("enables by level, required and disabled", function()
    local ran
    pl.passes.High = { opt_level = 3, run = function() ran = true end }
    local s = pl.sequential { "High" }
    local function runs(spec)
      ran = false
      s(small(), pl.context(spec))
      return ran
    end
    assert.is_false(runs { opt_level = 2 })
    assert.is_true(runs { opt_level = 3 })
    assert.is_false(runs { opt_level = 3, disabled = { "High" } })
    assert.is_true(runs { opt_level = 2, required = { "High" } })
    pl.passes.High = nil
  end)

  it("checks names, keys and values", function()
    for _, spec in ipairs {
      { disabled = { "NoSuchPass" } }, { required = { "NoSuchPass" } },
      { config = { no_such_key = 1 } }, { instruments = { 7 } }, { opt_level = "high" },
      { optlevel = 2 }, { config = { ["FoldConstant.nothing"] = 1 } },
    } do
      assert.has_error(function() pl.context(spec) end)
    end
  end)

  it("is the coroutine's own", function()
    local scope <close> = pl.context { opt_level = 1 }:enter()
    local co = coroutine.wrap(function()
      local inherited = pl.current().opt_level
      local inner <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore inner
      coroutine.yield(inherited)
      return pl.current().opt_level
    end)
    assert.equal(1, co())
    assert.equal(1, pl.current().opt_level)
    assert.equal(3, co())
    assert.equal(1, pl.current().opt_level)
  end)

  it("tells what it was made of", function()
    local log = { name = "log" }
    local ctx = pl.context { opt_level = 1, disabled = { "FoldConstant" }, instruments = { log } }
    assert.equal(1, ctx.opt_level)
    assert.same({ "FoldConstant" }, ctx.disabled)
    assert.is_true(rawequal(log, ctx.instruments[1]))
  end)
end)

describe("an instrument", function()
  local p = pl.function_pass { name = "p", run = nothing }

  it("is called around contexts and passes", function()
    local calls = {}
    local log = { name = "log" }
    for _, hook in ipairs { "enter", "exit", "before", "after" } do
      log[hook] = function(_, info)
        calls[#calls + 1] = hook .. (info and " " .. info.name or "")
      end
    end
    pl.with(pl.context { instruments = { log } }, p, small())
    assert.same({ "enter", "before p", "after p", "exit" }, calls)
  end)

  it("may keep a pass from running", function()
    local ran = false
    local q = pl.function_pass { name = "q", run = function() ran = true end }
    pl.with(pl.context { instruments = { { should_run = function() return false end } } },
      q, small())
    assert.is_false(ran)
  end)

  it("may be replaced while the context is entered", function()
    local calls = {}
    local function log(name)
      return { enter = function() calls[#calls + 1] = name .. " enter" end,
        exit = function() calls[#calls + 1] = name .. " exit" end }
    end
    do
      local scope <close> = pl.context { instruments = { log "a" } }:enter()
      scope:override_instruments { log "b" }
    end
    assert.same({ "a enter", "a exit", "b enter", "b exit" }, calls)
  end)

  it("that raises stops the run with its own error", function()
    local mine = { "mine" }
    local ctx = pl.context { instruments = { { before = function() error(mine) end } } }
    local ok, got = pcall(pl.with, ctx, p, small())
    assert.is_false(ok)
    assert.is_true(rawequal(mine, got))
  end)

  it("of timing measures each pass", function()
    local timing = pl.instruments.timing()
    pl.with(pl.context { instruments = { timing } }, pl.sequential { name = "s", p, p }, small())
    local rows = timing.rows
    assert.equal("p", rows[#rows].name)
    assert.is_true(rows[#rows].seconds >= 0)
    assert.is_truthy(tostring(timing):find "p: %d")
  end)

  it("of printing writes the module", function()
    local texts = {}
    local ctx = pl.context { instruments = {
      pl.instruments.print_after({ "p" }, function(text) texts[#texts + 1] = text end) } }
    pl.with(ctx, p, small())
    assert.equal(1, #texts)
    assert.is_truthy(texts[1]:find("@main", 1, true))
  end)
end)
