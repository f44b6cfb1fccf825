-- Times the interpreter of the loop IR: nanoseconds for each innermost store of a product of
-- 128 x 128 matrices, and the seconds of the programs that TVM lowered.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/loop.lua [FOLDER]
--
-- FOLDER is the unpacked tir-oracle/te. A time is the least of three runs, translation included.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"

local product = [[
@T.prim_func
def product(A: T.Buffer((128, 128)), B: T.Buffer((128, 128)), C: T.Buffer((128, 128))):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] ]]

local function least(times, fn)
  local best = math.huge
  for _ = 1, times do
    local begin = os.clock()
    fn()
    best = math.min(best, os.clock() - begin)
  end
  return best
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return pl.tir.parse(text, path)
end

local mod = assert(pl.tir.parse(product, "product"))
local a = pl.tensor.random({ 128, 128 }, "float32")
local seconds = least(3, function() pl.tir.run(mod, { a, a, a }) end)
print(("product of 128 x 128, blocks: %.1f ns an innermost store (wanted: 100)"):format(
  seconds / 128 ^ 3 * 1e9))

if arg[1] then
  local list = assert(io.popen(("ls '%s'"):format(arg[1])))
  for name in list:lines() do
    local program = read(("%s/%s/lower_full.tvmscript"):format(arg[1], name))
    if program then
      -- A comparison with itself makes inputs and runs it twice.
      local same
      local twice = least(1, function() same = pl.tir.check(program, program, { rounds = 1 }) end)
      print(("%-34s %8.3f s%s"):format(name, twice / 2, same and "" or " (refused)"))
    end
  end
  list:close()
end
