-- What running a pass costs beside the pass: over a module of 100,000 nodes that
-- it does not change; what instruments add that have nothing to tell; what is
-- spared when results are kept (config key `cache`).
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/executor.lua BUILD

package.path = "lua/?.lua;lua/?/init.lua;spec/bench/?.lua;" .. package.path

local build = arg[1] or "build"
local pl = require "perilune"
local graphs = require "graphs"

os.execute("mkdir -p " .. build .. "/bench")

local function load(n)
  local path = build .. "/bench/executor.onnx"
  graphs.chain(n, path)
  local module = assert(pl.onnx.load(path))
  os.remove(path)
  return module
end

-- The best of three, after one that warms up; in seconds of this process.
local function time(body)
  body()
  local best = math.huge
  for _ = 1, 3 do
    collectgarbage()
    local start = os.clock()
    body()
    best = math.min(best, os.clock() - start)
  end
  return best
end

local function show(name, wanted, format, ...)
  print(("%-46s %14s  (wanted: %s)"):format(name, format:format(...), wanted))
end

local function run(pass, module, spec) return pl.with(pl.context(spec or {}), pass, module) end

local n = 100000
local large = pl.passes.SimplifyExpr()(load(n))

local function hundred(pass)
  local list = {}
  for i = 1, 100 do list[i] = pass end
  return pl.sequential(list)
end

-- ------------------------------------------------------------------ executor

local function beside(name, kind)
  local pass = pl[kind .. "_pass"] { name = "Nothing", run = function() end }
  local all = hundred(pass)
  local seconds = time(function() for _ = 1, 10 do all(large) end end) / 1000
  show("one of 100 " .. name .. " passes, 100,000 nodes", "1 ms", "%.4f ms", seconds * 1e3)
end

beside("module", "module")
beside("function", "function")

local sweep = pl.passes.SimplifyExpr()
local alone = time(function() for _ = 1, 10 do sweep(large) end end) / 10
local sweeps = hundred(sweep)
local among = time(function() sweeps(large) end) / 100
show("SimplifyExpr alone, and one of 100", "the same", "%.2f %.2f ms", alone * 1e3, among * 1e3)
show("a node verified", "10 ns", "%.1f ns", time(function() pl.verify(large) end) / n * 1e9)

-- --------------------------------------------------------------- instruments

local folder = build .. "/bench/dump"
os.execute("mkdir -p " .. folder)
local function silent() end
local watched = {
  { "timing", function() return pl.instruments.timing() end },
  { "nodes", function() return pl.instruments.nodes() end },
  { "memory", function() return pl.instruments.memory() end },
  { "changes", function() return pl.instruments.changes() end },
  { "statistics", function() return pl.instruments.statistics() end },
  { "diff", function() return pl.instruments.diff { write = silent } end },
  { "dump", function() return pl.instruments.dump(folder) end },
  { "oracle", function() return pl.instruments.oracle() end },
  { "print_after others", function() return pl.instruments.print_after({ "Other" }, silent) end },
  { "progress", function() return pl.instruments.progress { write = silent } end },
}

local idle = pl.sequential { "SimplifyExpr", "EliminateCommonSubexpr", "DeadCodeElimination",
  "FoldConstant" }
local quiet = run(pl.fixpoint { idle }, large)

-- What a pass costs more that does nothing, as a part of a sweep over the nodes.
-- What one writes at its beginning, as dump does, is no part of it.
local nothing = hundred(pl.module_pass { name = "Nothing", run = function() end })
local function with(pass, count, make)
  local context = pl.context { opt_level = 3, instruments = make and { make() } or nil }
  local scope <close> = context:enter()
  return time(function() for _ = 1, count do pass(quiet) end end) / count
end

local bare = with(nothing, 10)
for _, each in ipairs(watched) do
  local extra = (with(nothing, 10, each[2]) - bare) / 100
  show("instrument " .. each[1] .. ", nothing changes", "5 %", "%.1f us %.2f %%", extra * 1e6,
    extra / alone * 100)
end
show("SimplifyExpr while rules are watched", "5 % more", "%.2f %.2f ms", alone * 1e3,
  with(sweep, 10, pl.instruments.statistics) * 1e3)
os.execute("rm -r " .. folder)

-- --------------------------------------------------------------------- cache

local kept = { opt_level = 3, config = { cache = 1 << 30 } }
local plain = { opt_level = 3 }

local function compare(name, body)
  pl.cache_clear()
  local without = time(function() body(plain) end)
  local with_cache = time(function() body(kept) end)
  show(name, "less with the cache", "%.2f %.3f ms", without * 1e3, with_cache * 1e3)
end

local first = time(function() run(idle, quiet, plain) end)
local stored = time(function()
  pl.cache_clear()
  run(idle, quiet, kept)
end)
show("4 passes, and keeping what they give", "-", "%.2f %.2f ms", first * 1e3, stored * 1e3)
compare("4 passes again on the same module", function(spec) run(idle, quiet, spec) end)

local many_functions = {}
for i = 1, 50 do many_functions["f" .. i] = load(2000).functions.main end
many_functions = pl.module(many_functions)
local looking = pl.function_pass { name = "Looking", cache = true,
  run = pl.mutator { Call = function() end } }
compare("50 equal functions of 2,000 nodes, once", function(spec)
  pl.cache_clear()
  run(idle, many_functions, spec)
end)
compare("... through a pass of a script", function(spec)
  pl.cache_clear()
  run(looking, many_functions, spec)
end)

local round = 0
compare("one of 50 functions edited, and run again", function(spec)
  round = round + 1
  local x = pl.var("x", "Tensor[(2), float32]")
  run(idle, many_functions:with { f1 = pl.func({ x }, pl.op.tanh(x + round)) }, spec)
end)

local once = pl.module_pass { name = "Once", run = function(mod)
  if not mod.functions.more then return mod:with { more = pl.func({}, pl.const(1)) } end
end }
compare("a fixpoint that changes another function", function(spec)
  run(pl.fixpoint { idle, once }, many_functions, spec)
end)

local failing = pl.module_pass { name = "Fails", run = function() error "no" end }
compare("a try that fails, and its other way", function(spec)
  run(pl.try { idle, failing, otherwise = { idle } }, many_functions, spec)
end)
