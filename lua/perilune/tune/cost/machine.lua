--- What this machine can do at most: operations a second, and bytes of memory a second, of one
-- thread. Both are measured once, in about 0.2 s. The first runs touch new memory, which is
-- slower: the fastest of several counts.

local core = require "perilune.core"
core.internal()
local ir = require "perilune.ir"

local machine = {}

-- Products of matrices that stay in the cache, and a chain of sums of vectors that do not; what a
-- sum leaves goes into memory that the one before it has left.
local SIZE, ELEMENTS, SUMS = 384, 1 << 20, 8

-- The least seconds of some runs.
local function fastest(f, runs)
  local best = math.huge
  for _ = 1, runs do
    local begun = core.clock()
    f()
    best = math.min(best, core.clock() - begun)
  end
  return best
end

-- A function of parameters of that type that calls an operator.
local function call_of(name, type_, attrs)
  local a, b = ir.Var("a", type_), ir.Var("b", type_)
  return core.module { main = ir.Function({ a, b }, ir.Call(name, { a, b }, attrs)) }
end

local function measure_peak()
  local mod = call_of("nn.dense", ("Tensor[(%d, %d), float32]"):format(SIZE, SIZE))
  local x = core.generate_input("float32", { SIZE, SIZE }, "ordinary", 1)
  return 2 * SIZE ^ 3 / fastest(function() core.eval(mod, x, x) end, 12)
end

-- A sum reads two operands and writes one result.
local function measure_bandwidth()
  local type_ = ("Tensor[(%d), float32]"):format(ELEMENTS)
  local a, b = ir.Var("a", type_), ir.Var("b", type_)
  local sum = a
  for _ = 1, SUMS do sum = ir.Call("add", { sum, b }) end
  local mod = core.module { main = ir.Function({ a, b }, sum) }
  local x = core.generate_input("float32", { ELEMENTS }, "ordinary", 1)
  local y = core.generate_input("float32", { ELEMENTS }, "ordinary", 2)
  return SUMS * 12 * ELEMENTS / fastest(function() core.eval(mod, x, y) end, 20)
end

-- What a call of an operator takes when it computes next to nothing.
local function measure_overhead()
  local mod = call_of("add", "Tensor[(4), float32]")
  local x = core.generate_input("float32", { 4 }, "ordinary", 1)
  return fastest(function() core.eval(mod, x, x) end, 200)
end

local known

--- { flops = (a second), bandwidth = (bytes a second), overhead = (seconds of a call) }.
function machine.limits()
  known = known or { flops = measure_peak(), bandwidth = measure_bandwidth(),
    overhead = measure_overhead() }
  return known
end

return machine
