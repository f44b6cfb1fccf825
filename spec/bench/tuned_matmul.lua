-- Schedules that the tuner finds for products of matrices, beside OpenBLAS; one thread.
--
--     perilune spec/bench/tuned_matmul.lua [SIZE] [SECONDS] [TRIALS] [SEED]
--
-- The search begins at the loops as they are written. OpenBLAS is timed through the evaluator, on
-- inputs that are there: its time has what the evaluator adds (a few microseconds) in it.

local pl = require "perilune"

local size = tonumber(arg[1]) or 512
local seconds, trials = tonumber(arg[2]) or 45, tonumber(arg[3]) or 200
local seed = tonumber(arg[4]) or 1

local function program(n)
  local a = pl.te.placeholder({ n, n }, "float32", "A")
  local b = pl.te.placeholder({ n, n }, "float32", "B")
  local k = pl.te.reduce_axis({ 0, n }, "k")
  local c = pl.te.compute({ n, n }, function(i, j)
    return pl.te.sum(a[{ i, k.var }] * b[{ k.var, j }], k)
  end, "C")
  return pl.module { main = pl.te.create_prim_func { a, b, c } }
end

local function square() return pl.tensor.random({ size, size }, "float32") end

-- The least seconds of a product by the evaluator with that library, of those that end within
-- two seconds.
local function library_seconds(name)
  pl.blas(name)
  local f = assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%a: Tensor[(%d, %d), float32], %%b: Tensor[(%d, %d), float32]) {
  nn.matmul(%%a, %%b, units=None)
}]]):format(size, size, size, size)))
  local a, b, best, begun = square(), square(), math.huge, os.clock()
  repeat
    local start = os.clock()
    pl.eval(f, a, b)
    best = math.min(best, os.clock() - start)
  until os.clock() - begun > 2
  return best
end

local function compiled_seconds(mod)
  local built = pl.build(pl.lower(mod), { run = "process" })
  return (built:time("main", { square(), square(), square() }, { least = 2 }))
end

local function line(name, s)
  print(("%-22s %10.0f us %8.1f GFLOP/s"):format(name, s * 1e6, 2 * size ^ 3 / s / 1e9))
end

local mod = program(size)
local result = pl.tune.search { mod = mod, schedule = true, trials = trials, seconds = seconds,
  seed = seed, builder = pl.tune.builder "c", runner = pl.tune.runner { rounds = 1 } }
local tuned = compiled_seconds(result.mod)
line("as it is written", compiled_seconds(mod))
line("tuned", tuned)
line("the evaluator's own", library_seconds "own")
local ok, reference = pcall(library_seconds, "openblas")
if ok then
  line("OpenBLAS", reference)
  print(("tuned: %.2f of OpenBLAS's speed"):format(reference / tuned))
else
  print "OpenBLAS is not installed"
end
print(("%d trials, %d failed, %.1f s, confidence %.4f"):format(result.trials, result.failed,
  result.seconds, result.confidence))
print(result.trace)
