-- Instruments as TVM has them: the counterparts of its test_pass_instrument.py,
-- by name. What is called when a hook raises is pinned hook by hook in
-- spec/pass/instrument_spec.lua too; here the events are those of TVM's tests.

local pl = require "perilune"

local function small()
  local x = pl.var("x", "Tensor[(2), float32]")
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 1) }
end
local function nothing() end

local events
before_each(function() events = {} end)

local function note(text) events[#events + 1] = text end

-- An instrument that notes what is called; the hook `raises` fails.
local function noted(name, raises, hooks)
  local self = { name = name }
  for _, hook in ipairs(hooks or { "enter", "exit", "should_run", "before", "after" }) do
    self[hook] = function()
      note(name .. "::" .. hook)
      if raises == hook then error(name .. " fails", 0) end
      return true
    end
  end
  return self
end

-- Runs in a context with those instruments; whether it went well.
local function run(instruments, ...)
  local outside = pl.current()
  local context = pl.context { instruments = instruments }
  local ok = pcall(pl.with, context, ...)
  assert.equal(outside, pl.current())
  return ok, context
end

describe("test_pass_timing_instrument", function()
  it("may be installed in the context that is always there, and be taken out", function()
    local timing = pl.instruments.timing()
    pl.current():override_instruments { timing }
    pl.sequential { "FoldConstant", "DeadCodeElimination" } (small())
    pl.current():override_instruments {}
    for _, name in ipairs { "sequential", "FoldConstant", "DeadCodeElimination" } do
      assert.matches(name, tostring(timing), 1, true)
    end
    local n = #timing.rows
    pl.passes.FoldConstant()(small())
    assert.equal(n, #timing.rows)
    assert.equal(0, #pl.current().instruments)
  end)
end)

describe("test_custom_instrument", function()
  it("enter, before, after, exit: of a table, of a class", function()
    local hooks = { "enter", "before", "after", "exit" }
    local class = { __index = noted("class", nil, hooks) }
    for name, instrument in pairs {
      table = noted("table", nil, hooks), class = setmetatable({}, class) } do
      events = {}
      assert.is_true((run({ instrument }, pl.passes.InferType(), small())))
      assert.same({ name .. "::enter", name .. "::before", name .. "::after", name .. "::exit" },
        events)
    end
  end)
end)

describe("test_disable_pass", function()
  it("a hook that says no keeps one pass from running, and nobody sees it", function()
    local ran, seen = {}, {}
    local function body(name) return function() ran[#ran + 1] = name end end
    local p = pl.function_pass { name = "p", run = body "p" }
    local q = pl.function_pass { name = "q", run = body "q" }
    local custom = { should_run = function(_, info) return info.name ~= "p" end,
      before = function(_, info) seen[#seen + 1] = info.name end,
      after = function(_, info) seen[#seen + 1] = info.name end }
    assert.is_true((run({ custom }, pl.sequential { name = "s", p, q }, small())))
    assert.same({ { "q" }, { "s", "q", "q", "s" } }, { ran, seen })
  end)

  it("one that rejects a sequential keeps all that is in it from running", function()
    local custom = { should_run = function(_, info) return info.name ~= "s" end }
    local p = pl.function_pass { name = "p", run = function() note "p" end }
    local mod = small()
    run({ custom }, function() assert.equal(mod, pl.sequential { name = "s", p } (mod)) end)
    assert.same({}, events)
  end)

  it("is not asked about passes that the context requires", function()
    pl.passes.Wanted = { run = function() note "Wanted" end }
    local custom = { should_run = function() note "asked" return false end }
    pl.with(pl.context { required = { "Wanted" }, instruments = { custom } },
      pl.passes.Wanted(), small())
    assert.same({ "Wanted" }, events)
    pl.passes.Wanted = nil
  end)
end)

describe("test_multiple_instrument", function()
  it("one that says no is enough; the third sees only what is left", function()
    local skip_q = { should_run = function(_, info) return info.name ~= "q" end }
    local skip_p = { should_run = function(_, info) return info.name ~= "p" end }
    local printer = { before = function(_, info) note(info.name) end }
    local list = {}
    for i, name in ipairs { "p", "q", "r" } do
      list[i] = pl.function_pass { name = name, run = nothing }
    end
    list.name = "s"
    run({ skip_q, skip_p, printer }, pl.sequential(list), small())
    assert.same({ "s", "r" }, events)
  end)
end)

describe("test_instrument_pass_counts", function()
  it("as many before as after in a whole pipeline, and none when it is left", function()
    local befores, afters, counts = 0, 0, nil
    local counter = { before = function() befores = befores + 1 end,
      after = function() afters = afters + 1 end,
      exit = function() counts = { befores, afters } befores, afters = 0, 0 end }
    run({ counter }, require "perilune.pipelines.default", small())
    assert.equal(counts[1], counts[2])
    assert.is_true(counts[1] > 5)
    assert.same({ 0, 0 }, { befores, afters })
  end)
end)

describe("test_list_pass_configs", function()
  it("there are some, each with a type", function()
    assert.is_truthy(next({ pairs(pl.config)() }))
    assert.equal("integer", pl.config["relay.FuseOps.max_depth"].type)
    assert.equal("boolean", pl.config["relay.FuseOps.link_params"].type)
  end)
end)

describe("test_enter_pass_ctx_exception", function()
  it("the one before leaves; the context is not entered and has no instruments", function()
    local hooks = { "enter", "exit" }
    local ok, context = run({ noted("%1", nil, hooks), noted("%2", "enter", hooks) }, nothing)
    assert.is_false(ok)
    assert.same({ "%1::enter", "%2::enter", "%1::exit" }, events)
    assert.equal(0, #context.instruments)
    assert.is_false(pl.current() == context)
  end)

  it("test_enter_pass_ctx_exception_global: outside of any context", function()
    local ok = pcall(function() pl.current():override_instruments { noted("%1", "enter") } end)
    assert.is_false(ok)
    assert.equal(0, #pl.current().instruments)
  end)
end)

describe("test_exit_pass_ctx_exception", function()
  it("those behind get no exit; the outer context is back", function()
    local hooks = { "enter", "exit" }
    local ok, context = run({ noted("%1", nil, hooks), noted("%2", "exit", hooks),
      noted("%3", nil, hooks) }, nothing)
    assert.is_false(ok)
    assert.same({ "%1::enter", "%2::enter", "%3::enter", "%1::exit", "%2::exit" }, events)
    assert.equal(0, #context.instruments)
  end)

  it("test_exit_pass_ctx_exception_global: the second override raises, nothing is installed",
    function()
      pl.current():override_instruments { noted("%1", "exit", { "enter", "exit" }) }
      local ok = pcall(function()
        pl.current():override_instruments { noted("%2", nil, { "enter", "exit" }) }
      end)
      assert.is_false(ok)
      assert.same({ "%1::enter", "%1::exit" }, events)
      assert.equal(0, #pl.current().instruments)
    end)
end)

local function passing(name, fails)
  return pl.function_pass { name = name, run = function()
    note(name)
    if fails then error "no luck" end
  end }
end

describe("test_pass_exception", function()
  it("no after for a pass that raises", function()
    assert.is_false((run({ noted "%1" }, passing("body", true), small())))
    assert.same({ "%1::enter", "%1::should_run", "%1::before", "body", "%1::exit" }, events)
  end)
end)

describe("test_should_run_exception", function()
  it("nobody else is asked, nothing runs, all leave", function()
    assert.is_false((run({ noted("%1", "should_run"), noted "%2" }, passing "body", small())))
    assert.same({ "%1::enter", "%2::enter", "%1::should_run", "%1::exit", "%2::exit" }, events)
  end)
end)

describe("test_run_before_exception", function()
  it("the body is not run", function()
    assert.is_false((run({ noted("%1", "before"), noted "%2" }, passing "body", small())))
    assert.same({ "%1::enter", "%2::enter", "%1::should_run", "%2::should_run", "%1::before",
      "%1::exit", "%2::exit" }, events)
  end)
end)

describe("test_run_after_exception", function()
  it("the others get no after, and the result is lost", function()
    assert.is_false((run({ noted("%1", "after"), noted "%2" }, passing "body", small())))
    assert.same({ "%1::enter", "%2::enter", "%1::should_run", "%2::should_run", "%1::before",
      "%2::before", "body", "%1::after", "%1::exit", "%2::exit" }, events)
  end)
end)

describe("test_instrument_call_sequence", function()
  it("two instruments, two passes", function()
    run({ noted "%1", noted "%2" }, function()
      passing "pass1" (small())
      passing "pass2" (small())
    end)
    local each = " %1::should_run %2::should_run %1::before %2::before pass%d %1::after %2::after"
    assert.equal("%1::enter %2::enter" .. each:gsub("%%d", "1") .. each:gsub("%%d", "2")
      .. " %1::exit %2::exit", table.concat(events, " "))
  end)
end)

describe("a hook", function()
  it("before sees the module as it was, after the result", function()
    local mod, seen = small(), {}
    local log = { before = function(m) seen[1] = m end, after = function(m) seen[2] = m end,
      should_run = function(m) seen[3] = m return true end }
    local change = pl.function_pass { name = "change", run = function(fn)
      return pl.func(fn.params, fn.body * 2)
    end }
    local out
    run({ log }, function() out = change(mod) end)
    assert.same({ mod, out, mod }, seen)
  end)

  it("sees passes that a body runs, and what a pass requires, nested in time", function()
    pl.passes.Needed = { run = nothing }
    local log = { before = function(_, info) note("<" .. info.name) end,
      after = function(_, info) note(info.name .. ">") end }
    local inner = pl.function_pass { name = "inner", run = nothing }
    local outer = pl.module_pass { name = "outer", required = { "Needed" }, run = inner }
    run({ log }, pl.sequential { name = "all", outer }, small())
    assert.equal("<all <Needed Needed> <outer <inner inner> outer> all>", table.concat(events, " "))
    pl.passes.Needed = nil
  end)

  it("of an outer context is silent in an inner one", function()
    run({ noted("outer", nil, { "before" }) }, function()
      pl.with(pl.context { instruments = { noted("inner", nil, { "before" }) } },
        pl.passes.InferType(), small())
      pl.passes.InferType()(small())
    end)
    assert.same({ "inner::before", "outer::before" }, events)
  end)

  it("enter sees the outer context as the current one, exit as well", function()
    local outside, seen = pl.current(), {}
    local log = { enter = function(ctx) seen[1] = { ctx.opt_level, pl.current() == outside } end,
      exit = function(ctx) seen[2] = { ctx.opt_level, pl.current() == outside } end }
    pl.with(pl.context { opt_level = 3, instruments = { log } }, nothing)
    assert.same({ { 3, true }, { 3, true } }, seen)
  end)

  it("that yields is refused, whichever it is", function()
    for _, hook in ipairs { "enter", "exit", "should_run", "before", "after" } do
      local outside = pl.current()
      local co = coroutine.create(function()
        local context = pl.context { instruments = { { [hook] = coroutine.yield } } }
        return pl.with(context, pl.passes.InferType(), small())
      end)
      local ok, diag = coroutine.resume(co)
      assert.is_false(ok)
      assert.matches("attempt to yield across a C-call boundary", diag.message, 1, true)
      assert.equal("dead", coroutine.status(co))
      assert.equal(outside, pl.current())
    end
  end)

  it("that is none is refused when the context is made", function()
    local function refused(list)
      local _, err = pcall(pl.context, { instruments = list })
      return err.message
    end
    assert.equal("instrument 'log': 'before' is a number, no function",
      refused { { name = "log", before = 3 } })
    assert.equal("instrument 2: a table expected, got a number", refused { {}, 3 })
    assert.equal("a list of instruments expected, got a string", refused "timing")
  end)
end)
