-- The cache of results: what is given again, what is not, and that nobody can
-- tell it from running.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %0 = add(%x, 0f /* ty=float32 */);
  let %y = nn.relu(%0);
  %1 = multiply(%y, 1f /* ty=float32 */);
  nn.relu(%1)
}
]]

local config = { cache = 1000000 }

local function run(pass, mod, settings)
  return pl.with(pl.context { opt_level = 3, config = settings or config }, pass, mod)
end

local function parse() return assert(pl.parse(text)) end

-- Hits and misses of a call.
local function told(f, ...)
  local before = pl.cache_stats()
  local result = f(...)
  local after = pl.cache_stats()
  return { after.hits - before.hits, after.misses - before.misses }, result
end

local function counting(spec)
  local n = 0
  spec.cache, spec.name = true, spec.name or "Counting"
  local body = spec.run
  spec.run = function(...)
    n = n + 1
    return body and body(...)
  end
  return spec, function() return n end
end

describe("the cache of results", function()
  before_each(pl.cache_clear)

  it("is off unless a context has room for it", function()
    local hits = told(run, pl.passes.SimplifyExpr(), parse(), {})
    assert.same({ 0, 0 }, hits)
    assert.equal(0, pl.config.cache.default)
  end)

  it("gives the same graph for the same function", function()
    local mod, pass = parse(), pl.passes.SimplifyExpr()
    local first, one = told(run, pass, mod)
    local second, two = told(run, pass, mod)
    assert.same({ 0, 1 }, first)
    assert.same({ 1, 0 }, second)
    assert.equal(one.functions.main, two.functions.main)
    assert.equal(1, pl.report()[1].counts.cached)
    assert.is_true(pl.report()[1].changed)
  end)

  it("knows that a pass changed nothing", function()
    local mod = run(pl.passes.SimplifyExpr(), parse())
    run(pl.passes.SimplifyExpr(), mod)
    local hits, same = told(run, pl.passes.SimplifyExpr(), mod)
    assert.same({ 1, 0 }, hits)
    assert.equal(mod, same)
    assert.is_false(pl.report()[1].changed)
  end)

  it("counts again what the run had counted", function()
    local spec = counting { run = function(_, _, ctx) ctx:note("looked", 3) end }
    local pass, mod = pl.function_pass(spec), parse()
    run(pass, mod)
    run(pass, mod)
    assert.equal(3, pl.report()[1].counts.looked)
  end)

  it("serves a function that was read again, with variables and places of its own", function()
    local pass = pl.passes.SimplifyExpr()
    local one, two = parse(), assert(pl.parse("\n\n" .. text, "other.relay"))
    local plain = run(pass, two, {})
    run(pass, one)
    local hits, got = told(run, pass, two)
    assert.same({ 1, 0 }, hits)
    assert.equal(tostring(plain), tostring(got))
    local x = two.functions.main.params[1]
    assert.equal(x, got.functions.main.params[1])
    assert.not_equal(one.functions.main.params[1], x)
    local span = got.functions.main.body.span
    assert.same(plain.functions.main.body.span, span)
    assert.same(plain.functions.main.body:history(), got.functions.main.body:history())
  end)

  it("serves each function of a module that is like another", function()
    local functions = {}
    for i = 1, 10 do functions["f" .. i] = parse().functions.main end
    local mod = pl.module(functions)
    local plain = run(pl.passes.SimplifyExpr(), mod, {})
    local hits, got = told(run, pl.passes.SimplifyExpr(), mod)
    assert.same({ 9, 1 }, hits)
    assert.equal(tostring(plain), tostring(got))
    assert.is_true(pl.verify(got))
    for name, fn in pairs(got) do
      assert.equal(mod.functions[name].params[1], fn.params[1])
      for other, there in pairs(got) do
        if other ~= name then assert.not_equal(fn.params[1], there.params[1]) end
      end
    end
  end)

  it("makes new variables for each", function()
    local pass = pl.function_pass { name = "Wrap", cache = true, run = function(fn)
      local y = pl.var("wrapped")
      return pl.func(fn.params, pl.let(y, fn.body, pl.op.tanh(y)))
    end }
    local mod = pl.module { a = parse().functions.main, b = parse().functions.main }
    local got = run(pass, mod)
    local a = pl.bound_vars(got.functions.a)
    for _, var in ipairs(pl.bound_vars(got.functions.b)) do
      for _, other in ipairs(a) do assert.not_equal(var, other) end
    end
  end)

  it("spares what a fixpoint runs again", function()
    local spec, count = counting {}
    local looking = pl.function_pass(spec)
    local once = pl.module_pass { name = "Once", run = function(mod)
      if not mod.functions.more then return mod:with { more = pl.func({}, pl.const(1)) } end
    end }
    local mod = pl.module { a = pl.func({}, pl.const(1)), b = pl.func({}, pl.const(2)) }
    run(pl.fixpoint { looking, once }, mod, {})
    assert.equal(5, count())
    run(pl.fixpoint { looking, once }, mod)
    assert.equal(8, count()) -- `more` is a constant like `a`, of another line
  end)

  it("spares what a try runs again after a failure", function()
    local spec, count = counting {}
    local pass = pl.function_pass(spec)
    local failing = pl.module_pass { run = function() error "no" end }
    run(pl.try { pass, failing, otherwise = { pass } }, parse())
    assert.equal(1, count())
  end)

  it("tells options, levels and config apart", function()
    local mod = parse()
    local pass, all = pl.passes.FoldConstant(), pl.passes.FoldConstant { fold = "all" }
    run(pass, mod)
    assert.same({ 0, 1 }, (told(run, all, mod)))
    assert.same({ 0, 1 }, (told(run, pass, mod, { cache = 1000000, fold = "all" })))
    local context = pl.context { opt_level = 1, config = config }
    assert.same({ 0, 1 }, (told(pl.with, context, pass, mod)))
  end)

  it("tells names of variables apart, which are printed", function()
    run(pl.passes.SimplifyExpr(), parse())
    local other = assert(pl.parse((text:gsub("%%y", "%%z"))))
    local hits, got = told(run, pl.passes.SimplifyExpr(), other)
    assert.same({ 0, 1 }, hits)
    assert.equal(tostring(run(pl.passes.SimplifyExpr(), other, {})), tostring(got))
  end)

  it("serves module passes by the functions of the module", function()
    local mod = parse()
    local one = run(pl.passes.InferType(), mod)
    local copy = pl.module { main = mod.functions.main }
    assert.same({ 1, 0 }, (told(run, pl.passes.InferType(), copy)))
    assert.equal(mod, one)
    copy = copy:with { other = pl.func({}, pl.const(1)) }
    assert.same({ 0, 1 }, (told(run, pl.passes.InferType(), copy)))
  end)

  it("leaves passes alone that do not say so", function()
    local n = 0
    local pass = pl.function_pass { run = function() n = n + 1 end }
    local mod = parse()
    run(pass, mod)
    run(pass, mod)
    assert.equal(2, n)
    assert.is_false(pass.cacheable)
    assert.is_true(pl.passes.SimplifyExpr().cacheable)
  end)

  it("keeps nothing that was reported about, and no failure", function()
    local spec, count = counting { run = function() error "no" end }
    local pass, mod = pl.function_pass(spec), parse()
    assert.is_false(pcall(run, pass, mod))
    assert.is_false(pcall(run, pass, mod))
    assert.equal(2, count())
  end)

  it("keeps to its size, and drops what was used least", function()
    local pass = pl.passes.SimplifyExpr()
    local mods = {}
    for i = 1, 20 do
      local x = pl.var("x" .. i, f32(2))
      mods[i] = pl.module { main = pl.func({ x }, x * 1 + i) }
      run(pass, mods[i])
    end
    local all = pl.cache_stats()
    assert.equal(20, all.results)
    assert.is_true(all.bytes > 0)
    run(pass, mods[1])
    local most = all.bytes // 2
    run(pass, mods[1], { cache = most })
    local some = pl.cache_stats()
    assert.is_true(some.bytes <= most)
    assert.is_true(some.results < 20 and some.results > 5)
    assert.equal(21 - some.results, some.dropped - all.dropped)
    assert.same({ 1, 0 }, (told(run, pass, mods[1])))
    assert.same({ 0, 1 }, (told(run, pass, mods[2])))
    run(pass, mods[1], { cache = 1 })
    assert.equal(0, pl.cache_stats().results)
    assert.equal(0, pl.cache_stats().bytes)
  end)

  -- Of many small functions, and of tables that had to grow, what keeps count weighs as much
  -- as what is counted.
  it("holds no more than its limit, its own tables among it", function()
    local limit = 200000
    local function pipeline(k)
      local functions = {}
      for i = 1, 150 do
        local x = pl.var("x", f32(2))
        functions["f" .. i] = pl.func({ x }, pl.op.tanh(x * 1 + (k * 1000 + i)))
      end
      run(pl.sequential { "SimplifyExpr", "FoldConstant", "InferType" }, pl.module(functions),
        { cache = limit })
    end
    for k = 1, 4 do
      pipeline(k)
      collectgarbage()
      collectgarbage()
      local with, stats = pl.memory(), pl.cache_stats()
      pl.cache_clear()
      local held = with - pl.memory()
      assert.is_true(stats.results > 20)
      assert.equal(stats.bytes, held)
      assert.is_true(held <= limit)
    end
  end)

  it("lets go of the results of a pass that nobody has any more", function()
    local mod = parse()
    local pass = pl.function_pass { name = "Short-lived", cache = true,
      run = function(fn) return fn end }
    run(pass, mod)
    run(pl.passes.SimplifyExpr(), mod)
    assert.equal(2, pl.cache_stats().results)
    assert(pass)
    pass = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.equal(1, pl.cache_stats().results)
  end)

  it("is emptied by pl.cache_clear", function()
    local mod, pass = parse(), pl.passes.SimplifyExpr()
    run(pass, mod)
    pl.cache_clear()
    assert.equal(0, pl.cache_stats().results)
    assert.equal(0, pl.cache_stats().bytes)
    assert.same({ 0, 1 }, (told(run, pass, mod)))
  end)

  it("is not used, and let go, under limit.memory, and while rules are limited", function()
    local mod, pass = parse(), pl.passes.SimplifyExpr()
    run(pass, mod)
    assert.same({ 0, 0 }, (told(run, pass, mod,
      { cache = 1000000, ["bisect.applications"] = 1 })))
    assert.equal(1, pl.cache_stats().results)
    assert.same({ 0, 0 }, (told(run, pass, mod,
      { cache = 1000000, ["limit.memory"] = pl.memory() + 1000000 })))
    assert.equal(0, pl.cache_stats().results)
  end)

  it("is the same at any number of threads", function()
    local function large()
      local functions = {}
      for i = 1, 8 do
        local x = pl.var("x", f32(2))
        local y = x
        for k = 1, 800 do y = pl.op.nn.relu(y * 1) + (i % 4 * 1000 + k) end
        functions["f" .. i] = pl.func({ x }, y)
      end
      return pl.module(functions)
    end
    local pipeline = pl.fixpoint { "SimplifyExpr", "EliminateCommonSubexpr" }
    local function seen(threads)
      pl.cache_clear()
      local lines = {}
      local settings = { cache = 100000000, threads = threads }
      local hits = told(function()
        for _ = 1, 2 do
          lines[#lines + 1] = tostring(run(pipeline, large(), settings))
          for _, row in ipairs(pl.report()) do
            lines[#lines + 1] = ("%s %s %s"):format(row.name, row.changed, row.counts.cached)
          end
        end
      end)
      lines[#lines + 1] = table.concat(hits, " ")
      return lines
    end
    local one = seen(1)
    assert.same(one, seen(2))
    assert.same(one, seen(4))
    assert.equal(tostring(run(pipeline, large(), {})), one[1])
  end)

  it("does not keep what depends on another function", function()
    local main = "def @main() -> int32 { @f(2) }\n"
    for _, threads in ipairs { 1, 4 } do
      pl.cache_clear()
      for i = 1, 3 do
        local mod = assert(pl.parse(('#[version = "0.0.5"]\n%s'
          .. "def @f(%%x: int32) -> int32 { %%x * %d }"):format(main, i)))
        local out = run(pl.passes.FoldConstant(), mod, { cache = 100000000, threads = threads })
        assert.equal(2 * i, out.main.body.data:to_table())
      end
    end
  end)

  it("refuses a size below nothing", function()
    local ok, err = pcall(pl.context, { config = { cache = -1 } })
    assert.is_false(ok)
    assert.equal("config key 'cache' expects an integer from 0 on, got -1", err.message)
  end)
end)

describe("a pass of a script", function()
  before_each(pl.cache_clear)

  -- A pass from a chunk, as a file that is loaded again makes one.
  local function make(code, ...)
    return pl.function_pass { name = "Scripted", cache = true,
      run = assert(load(code, "=chunk"))(pl, ...) }
  end

  local wrapping = [[
    local pl, name = ...
    local function wrap(x) return pl.op[name or "tanh"](x) end
    return function(fn) return pl.func(fn.params, wrap(fn.body)) end
  ]]

  it("is known by its code and what that holds", function()
    local mod = parse()
    local one = run(make(wrapping, "exp"), mod)
    local hits, two = told(run, make(wrapping, "exp"), mod)
    assert.same({ 1, 0 }, hits)
    assert.equal(one.functions.main, two.functions.main)
    assert.same({ 0, 1 }, (told(run, make(wrapping, "log"), mod)))
    assert.same({ 0, 1 }, (told(run, make((wrapping:gsub("tanh", "sin")), "exp"), mod)))
  end)

  it("is known by itself when it holds what has no text", function()
    local mod = parse()
    local code = "local held = coroutine.create(print); return function() return nil, held end"
    local pass = make(code)
    run(pass, mod)
    assert.same({ 1, 0 }, (told(run, pass, mod)))
    assert.same({ 0, 1 }, (told(run, make(code), mod)))
  end)

  it("may be a mutator", function()
    local mod = parse()
    local function pass(name)
      return make([[
        local pl, name = ...
        return pl.mutator { Call = function(call)
          if call.op.name == name then return call.args[1] end
        end }]], name)
    end
    run(pass "nn.relu", mod)
    assert.same({ 1, 0 }, (told(run, pass "nn.relu", mod)))
    assert.same({ 0, 1 }, (told(run, pass "add", mod)))
  end)

  it("is known by its file, and the modules that it requires", function()
    local folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir -p " .. folder)
    local function write(name, body)
      local file = assert(io.open(folder .. "/" .. name .. ".lua", "w"))
      file:write(body)
      file:close()
    end
    local path = package.path
    package.path = folder .. "/?.lua;" .. path
    local function make_again()
      package.loaded.cache_spec_name = nil
      require "cache_spec_name"
      return pl.function_pass { name = "Filed", cache = true,
        run = dofile(folder .. "/filed.lua") }
    end
    write("cache_spec_name", "return { name = 'exp' }")
    write("filed", [[
      local pl = require "perilune"
      return function(fn)
        return pl.func(fn.params, pl.op[require "cache_spec_name".name](fn.body))
      end]])
    local mod = parse()
    run(make_again(), mod)
    local again = told(run, make_again(), mod)
    write("cache_spec_name", "return { name = 'log' }")
    local changed = told(run, make_again(), mod)
    write("filed", "return function() end")
    local other = told(run, make_again(), mod)
    package.path = path
    os.execute("rm -r " .. folder)
    assert.same({ 1, 0 }, again)
    assert.same({ 0, 1 }, changed)
    assert.same({ 0, 1 }, other)
  end)
end)
