-- Times the C of the programs that TVM lowered from tensor expressions, beside the times that TVM
-- recorded on its machine, and beside OpenBLAS for the products.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/codegen.lua FOLDER [NAME]
--
-- FOLDER is the unpacked tir-oracle/te. The peak of this CPU is that of a loop of 12 independent
-- vector FMAs in C, compiled by the same compiler with the same flags, one thread, least of 20
-- runs. TVM's machine is another one (Sapphire Rapids); its peak is not recorded: PERILUNE_PEAK,
-- in GFLOP/s, is what it is taken to be (192: two 512-bit FMAs at 3 GHz). A ratio above 1 is for
-- us: our share of the peak over TVM's; where a program computes little, its bytes per second
-- over TVM's. Times are the least of calls within 0.3 s, one thread.
--
-- `bound` is the roofline's share: the time that the program must take at the least, over its time.
-- It is the greater of operations / peak and bytes / bandwidth. Bytes are those of all arguments,
-- once; the bandwidth is that of a loop over as many bytes, so that data which fit a cache are held
-- against that cache: a sum where the result is less than an eighth of the bytes, else a = b + c
-- in three arrays with ordinary stores (a store that misses reads its line first, which is not
-- counted). The letter names what binds, f for operations or m for memory. What is between
-- (intermediate tensors, loads from L1 that a stencil repeats) is not in the bound.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local compare = require "spec.codegen.compare"
local roofline = require "spec.bench.roofline"

local root, only = assert(arg[1], "the folder te of the recordings is expected"), arg[2]
local tvm_peak = tonumber(os.getenv "PERILUNE_PEAK" or 192)
local cc, flags = os.getenv "CC" or "cc", os.getenv "CFLAGS_C"

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function info_of(name)
  local text = read(("%s/%s/info.json"):format(root, name))
  local out = { bind = {} }
  for key, value in (text or ""):gmatch '"([%w_]+)": ([%d%.]+)' do
    out[key] = out[key] or tonumber(value)
  end
  for key, value in ((text or ""):match '"bind": (%b{})' or ""):gmatch '"(%w+)": (%d+)' do
    out.bind[key] = math.tointeger(value)
  end
  return out
end

local function time(name, info)
  local text = read(("%s/%s/lower_full.tvmscript"):format(root, name))
  local mod = text and pl.tir.parse(text, name)
  if not mod then return nil end
  local ok, built = pcall(pl.build, mod, { cc = cc, flags = flags, run = "process" })
  if not ok then return nil end
  local fn_name = built:functions()[1].name
  local args = compare.arguments(mod.functions[fn_name], info.bind, 7)
  return built:time(fn_name, args, { least = 0.3 }), args
end

-- The least time of a product of n x n by the evaluator's BLAS.
local function blas(n)
  local f = assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%a: Tensor[(%d, %d), float32], %%b: Tensor[(%d, %d), float32]) {
  nn.matmul(%%a, %%b, units=None)
}]]):format(n, n, n, n)))
  local a = pl.tensor.random({ n, n }, "float32")
  local best = math.huge
  for _ = 1, 20 do
    local begin = os.clock()
    pl.eval(f, a, a)
    best = math.min(best, os.clock() - begin)
  end
  return best
end

local here = roofline.peak(cc)
print(("peak of this CPU: %.1f GFLOP/s; of TVM's, as assumed: %.0f"):format(here, tvm_peak))
local ok, product = pcall(blas, 512)
if ok then
  print(("OpenBLAS, 512^3: %.0f us, %.1f GFLOP/s"):format(product * 1e6,
    2 * 512 ^ 3 / product / 1e9))
end
print(("%-34s %10s %10s %9s %7s %8s %7s"):format("program", "us", "TVM us", "GFLOP/s", "share",
  "bound", "ratio"))
local list = assert(io.popen(("ls '%s'"):format(root)))
local better, count = 0, 0
for name in list:lines() do
  local info = (not only or name == only) and info_of(name) or {}
  local theirs = info.runtime_us_min
  local seconds, args
  if theirs then
    seconds, args = time(name, info)
  end
  if seconds then
    local gflops = (info.flops or 0) / seconds / 1e9
    local tvm_share = (info.flops or 0) / theirs / 1e3 / tvm_peak
    local computes = tvm_share > 0.05
    local ratio = computes and gflops / here / tvm_share or theirs / (seconds * 1e6)
    count, better = count + 1, better + (ratio >= 1 and 1 or 0)
    local memory, work = roofline.memory_seconds(cc, args), (info.flops or 0) / here / 1e9
    print(("%-34s %10.1f %10.1f %9.1f %6.1f%% %6.1f%%%s %7.2f%s"):format(name, seconds * 1e6,
      theirs, gflops, gflops / here * 100, math.max(memory, work) / seconds * 100,
      work > memory and "f" or "m", ratio, computes and "" or " (bytes)"))
  end
end
roofline.close()
print(("%d of %d at least as fast as TVM's"):format(better, count))
