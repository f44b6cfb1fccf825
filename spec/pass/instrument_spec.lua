-- What is called when a hook of an instrument raises, hook by hook, as TVM's
-- table of exceptions has it; which passes of a sequential run; what required
-- passes do.

local pl = require "perilune"

local function small()
  local x = pl.var("x", "Tensor[(2), float32]")
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 1) }
end

-- The calls so far, in a row; a call that raises has a "!".
local trace

local function note(text) trace[#trace + 1] = text end

local function traced(name, raises)
  local instrument = { name = name }
  for _, hook in ipairs { "enter", "exit", "should_run", "before", "after" } do
    instrument[hook] = function()
      local fails = raises == hook
      note(name .. "." .. hook .. (fails and "!" or ""))
      if fails then error(name .. " fails in " .. hook, 0) end
      return true
    end
  end
  return instrument
end

local function body(raises)
  return pl.function_pass { name = "body", run = function()
    note(raises and "body!" or "body")
    if raises then error "no luck" end
  end }
end

-- What is called with three instruments of which one raises.
local function calls(who, hook, pass)
  trace = {}
  local list = {}
  for i, name in ipairs { "a", "b", "c" } do list[i] = traced(name, name == who and hook) end
  local outside = pl.current()
  local context = pl.context { instruments = list }
  local ok, err = pcall(pl.with, context, pass or body(), small())
  assert.equal(outside, pl.current())
  if hook then
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find(who .. " fails in " .. hook, 1, true))
  end
  return table.concat(trace, " "), context, ok
end

local around = "a.enter b.enter c.enter %s a.exit b.exit c.exit"
local asked = "a.should_run b.should_run c.should_run "
local before = asked .. "a.before b.before c.before "

describe("a hook", function()
  it("is called in the order of the list", function()
    assert.equal(around:format(before .. "body a.after b.after c.after"), (calls()))
  end)

  it("enter that raises: those before leave in reverse, none is left, no body", function()
    local text, context = calls("c", "enter")
    assert.equal("a.enter b.enter c.enter! b.exit a.exit", text)
    assert.equal(0, #context.instruments)
    assert.equal("a.enter b.enter! a.exit", (calls("b", "enter")))
    assert.equal("a.enter!", (calls("a", "enter")))
  end)

  it("exit that raises: those behind get none, and none is left", function()
    local text, context = calls("b", "exit")
    assert.equal("a.enter b.enter c.enter " .. before
      .. "body a.after b.after c.after a.exit b.exit!", text)
    assert.equal(0, #context.instruments)
  end)

  it("should_run that raises: no other is asked, nothing runs", function()
    assert.equal(around:format "a.should_run b.should_run!", (calls("b", "should_run")))
  end)

  it("before that raises: no body, and no after for anybody", function()
    assert.equal(around:format(asked .. "a.before b.before!"), (calls("b", "before")))
  end)

  it("after that raises: those behind get none", function()
    assert.equal(around:format(before .. "body a.after b.after!"), (calls("b", "after")))
  end)

  it("after is not called for a pass that raises", function()
    local text, _, ok = calls(nil, nil, body(true))
    assert.is_false(ok)
    assert.equal(around:format(before .. "body!"), text)
  end)

  it("should_run is asked of all, and one that says no is enough", function()
    trace = {}
    local no = traced "b"
    no.should_run = function() note "b.no" return false end
    local context = pl.context { instruments = { traced "a", no, traced "c" } }
    local mod = small()
    assert.equal(mod, pl.with(context, body(), mod))
    assert.equal(around:format "a.should_run b.no c.should_run", table.concat(trace, " "))
  end)

  it("should_run is not asked of a required pass", function()
    pl.passes.Wanted = { run = function() note "Wanted" end }
    trace = {}
    local no = { name = "no", should_run = function() note "asked" return false end }
    pl.with(pl.context { required = { "Wanted" }, instruments = { no } }, pl.passes.Wanted(),
      small())
    assert.same({ "Wanted" }, trace)
    pl.passes.Wanted = nil
  end)
end)

describe("replacing the instruments of a context", function()
  local function replace(old, new)
    trace = {}
    local context = pl.context { instruments = old }
    local outside = pl.current()
    context:enter()
    local ok = pcall(context.override_instruments, context, new)
    assert.equal(context, pl.current())
    local n = #context.instruments
    pcall(context.exit, context)
    assert.equal(outside, pl.current())
    return table.concat(trace, " "), ok, n
  end

  it("leaves the old ones, then enters the new", function()
    local text, ok, n = replace({ traced "a" }, { traced "b", traced "c" })
    assert.is_true(ok)
    assert.equal(2, n)
    assert.equal("a.enter a.exit b.enter c.enter b.exit c.exit", text)
  end)

  it("ends without any when an old one raises: the new are not entered", function()
    local text, ok, n = replace({ traced("a", "exit"), traced "b" }, { traced "c" })
    assert.is_false(ok)
    assert.equal(0, n)
    assert.equal("a.enter b.enter a.exit!", text)
  end)

  it("ends without any when a new one raises", function()
    local text, ok, n = replace({ traced "a" }, { traced "b", traced("c", "enter") })
    assert.is_false(ok)
    assert.equal(0, n)
    assert.equal("a.enter a.exit b.enter c.enter! b.exit", text)
  end)
end)

describe("a sequential", function()
  local names = { "Base", "Middle", "Top", "Low" }

  setup(function()
    local function runs(name) return function() note(name) end end
    pl.passes.Base = { run = runs "Base" }
    pl.passes.Middle = { required = { "Base" }, run = runs "Middle" }
    pl.passes.Top = { opt_level = 3, required = { "Middle", "Base" }, run = runs "Top" }
    pl.passes.Low = { opt_level = 0, run = runs "Low" }
  end)
  teardown(function()
    for _, name in ipairs(names) do pl.passes[name] = nil end
  end)

  local function order(list, spec)
    trace = {}
    local ok, err = pcall(pl.with, pl.context(spec), pl.sequential(list), small())
    return ok and table.concat(trace, " ") or tostring(err)
  end

  it("runs what level, required and disabled enable, in this order of strength", function()
    assert.equal("Low", order({ "Low", "Top" }, { opt_level = 2 }))
    assert.equal("Base Middle Top", order({ "Top" }, { opt_level = 3 }))
    assert.equal("Base Middle Top", order({ "Top" }, { opt_level = 0, required = { "Top" } }))
    assert.equal("", order({ "Low" }, { required = { "Low" }, disabled = { "Low" } }))
  end)

  it("runs only the passes that `only` names, but for those disabled", function()
    assert.equal("Low Low", order({ "Low", "Base", { "Low", "Base" } }, { only = { "Low" } }))
    assert.equal("", order({ "Low" }, { only = { "Low" }, disabled = { "Low" } }))
    assert.equal("Base Middle Top", order({ "Top", "Low" }, { opt_level = 0, only = { "Top" } }))
  end)

  it("tells the second time that a pass comes from the first", function()
    assert.equal("Low Base Low",
      order({ "Low", "Base", "Low", "Low" }, { disabled = { "Low:2" } }))
    assert.equal("Low", order({ "Low", { "Low" }, "Base" }, { only = { "Low:2" } }))
    local ctx = pl.context { required = { "Top:2" }, opt_level = 0 }
    assert.same({ "Top:2" }, ctx.required)
    trace = {}
    pl.with(ctx, pl.sequential { "Top", "Top" }, small())
    assert.same({ "Base", "Middle", "Top" }, trace)
  end)

  it("counts in each run by itself", function()
    trace = {}
    pl.with(pl.context { disabled = { "Low:1" } }, function()
      local pair = pl.sequential { "Low", "Low" }
      pair(small())
      pair(small())
    end)
    assert.same({ "Low", "Low" }, trace)
  end)

  it("leaves names that end in a colon and a number their meaning", function()
    pl.passes["Low:2"] = { run = function() note "Low:2" end }
    assert.equal("Low Low", order({ "Low", "Low", "Low:2" }, { disabled = { "Low:2" } }))
    pl.passes["Low:2"] = nil
    for _, name in ipairs { "Lowe:2", ":2", "Low:0", "Low:", "Low:99999999999999999999" } do
      assert.has_error(function() pl.context { only = { name } } end)
    end
  end)

  it("is not asked about when a pass is called itself", function()
    trace = {}
    pl.with(pl.context { opt_level = 0, disabled = { "Top" } }, pl.passes.Top(), small())
    assert.same({ "Top" }, trace)
  end)

  it("runs required passes first, transitively, once while nothing changes", function()
    assert.equal("Base Middle Top Middle", order({ "Top", "Middle" }, { opt_level = 3 }))
    local changes = pl.function_pass { name = "changes", run = function(fn)
      note "changes"
      return pl.func(fn.params, fn.body + 1)
    end }
    assert.equal("Base Middle changes Base Middle", order { "Middle", changes, "Middle" })
  end)

  it("refuses a required pass that is disabled, and names both", function()
    local text = order({ "Middle" }, { disabled = { "Base" } })
    assert.is_truthy(text:find("Base", 1, true) and text:find("Middle", 1, true))
    assert.is_truthy(text:find "error")
  end)

  it("shows required passes to instruments", function()
    local seen = {}
    local log = { name = "log", before = function(_, info) seen[#seen + 1] = info.name end }
    trace = {}
    pl.with(pl.context { instruments = { log } }, pl.sequential { name = "all", "Middle" }, small())
    assert.same({ "all", "Base", "Middle" }, seen)
  end)
end)

describe("the context of a coroutine", function()
  it("is its own: hooks, nesting and failures stay inside", function()
    local outer <close> = pl.context { opt_level = 1 }:enter()
    local function work(level)
      return coroutine.create(function()
        local inner <close> = pl.context { opt_level = level }:enter()
        for _ = 1, 3 do coroutine.yield(pl.current() == inner and pl.current().opt_level) end
        error "ends so"
      end)
    end
    local first, second = work(0), work(3)
    for _ = 1, 3 do
      local _, a = coroutine.resume(first)
      local _, b = coroutine.resume(second)
      assert.same({ 0, 3, outer }, { a, b, pl.current() })
    end
    assert.is_false(coroutine.resume(first))
    assert.equal(outer, pl.current())
    local _, b = coroutine.resume(second)
    assert.is_string(tostring(b))
    assert.equal(outer, pl.current())
  end)
end)

describe("a context that a pass enters and forgets", function()
  it("is left when the pass ends, also when it fails", function()
    local outer <close> = pl.context { opt_level = 1 }:enter()
    for _, fails in ipairs { false, true } do
      local left = 0
      local forgetful = pl.module_pass { name = "forgetful", run = function(module)
        local counts = { name = "counts", exit = function() left = left + 1 end }
        pl.context { instruments = { counts } }:enter()
        pl.context { opt_level = 3 }:enter()
        if fails then error "too bad" end
        return module
      end }
      assert.equal(not fails, pcall(forgetful, small()))
      assert.equal(outer, pl.current())
      assert.equal(1, left)
    end
  end)
end)
