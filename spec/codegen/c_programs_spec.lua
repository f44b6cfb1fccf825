-- Whole programs as C against the interpreter of loops: those that TVM lowered from tensor
-- expressions, and random ones. PERILUNE_SEED and PERILUNE_GRAPHS set the first seed and the
-- number of the random ones; PERILUNE_TIR_ORACLE_ROOT names a folder with TVM's.

local pl = require "perilune"
local amount = require "spec.random.amount"
local compare = require "spec.codegen.compare"
local random_program = require "spec.tir.random_program"

local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = amount("PERILUNE_GRAPHS", 50)

-- The loop vectoriser of gcc 12.2 (-O2) miscompiles the program of seed 74, which gcc -O1, gcc
-- without that pass, and clang compute as the interpreter does: it orders stores through a
-- restrict pointer, whose index falls, behind later ones. So it is off here.
local exact = "-O1 -std=c11 -march=native -ffp-contract=off -Wall -Wextra -Werror"
local batch = 50

-- A module of random programs with the seeds from `from` on.
local function random_module(from, n)
  local lines = { "from tvm.script import ir as I", "from tvm.script import tir as T", "",
    "@I.ir_module", "class Module:" }
  for seed = from, from + n - 1 do
    local text = random_program.body(seed, "f" .. seed)
    lines[#lines + 1] = (text:gsub("([^\n]+)", "    %1"))
  end
  return assert(pl.tir.parse(table.concat(lines, "\n")))
end

local pipelines = {
  {}, { "tir.FlattenBuffer" }, { "tir.VectorizeLoop" },
  { "tir.LoopPartition", "tir.VectorizeLoop", "tir.StorageRewrite", "tir.UnrollLoop",
    "tir.RenormalizeSplitPattern", "tir.Simplify", "tir.RemoveNoOp", "tir.CommonSubexprElimTIR" },
}

local kinds = { "ordinary", "special" }

describe("random programs as C", function()
  it("compute what the interpreter computes", function()
    local compared, skipped = 0, 0
    local function run(mod, built, seed, where)
      local fn = mod.functions["f" .. seed]
      local args = compare.arguments(fn, {}, seed, kinds[seed % 2 + 1])
      local how, why = compare.run(fn, built, "f" .. seed, args)
      assert(not how, ("seed %d, %s: %s\n%s"):format(seed, where, how, how and tostring(fn)))
      if why then skipped = skipped + 1 else compared = compared + 1 end
    end
    for from = first_seed, first_seed + number - 1, batch do
      local n = math.min(batch, first_seed + number - from)
      local mod = random_module(from, n)
      for i, names in ipairs(pipelines) do
        local lowered = #names > 0 and pl.sequential(names)(mod) or mod
        local built = pl.build(lowered, { flags = exact, run = "process",
          vector_bytes = ({ 16, 32, 64 })[i % 3 + 1] })
        for seed = from, from + n - 1 do
          run(lowered, built, seed, "passes: " .. table.concat(names, ","))
        end
      end
    end
    print(("random programs as C: %d compared, %d that the interpreter refuses"):format(compared,
      skipped))
    assert.is_true(compared >= number)
  end)
end)

-- ------------------------------------------------------------------ recorded

local folder = os.getenv "PERILUNE_TIR_ORACLE_ROOT"

-- Programs that the interpreter runs within some seconds; sizes of their variables.
local programs = { "add2d_fused_parallel", "blur2d_compute_at_tile", "blur2d_inline",
  "depthwise_conv2d", "elementwise_chain_inline", "elementwise_chain_root", "gather_indirect",
  "gemv", "gemv_rfactor_vectorized", "int8_dot_naive", "matmul_symbolic_tiled", "maxpool2d",
  "reduce_predicated_where", "scan_symbolic_multistage", "softmax_naive", "sum_all",
  "sum_all_rfactor", "transpose_tiled", "unroll_pragma", "vecadd_nondivisible",
  "vecadd_symbolic", "vecadd_symbolic_split_vectorize" }
local sizes = { n = 37, m = 21, k = 19, l = 18, t = 11, num_step = 11 }

local function unpacked()
  local shared = os.getenv "PERILUNE_SHARED" or "../shared"
  local archive = io.open(shared .. "/conformance/tir-oracle.tar.xz")
  if not archive then return nil end
  archive:close()
  local target = os.tmpname() .. ".d"
  os.execute(("mkdir -p %s && tar -C %s -xf %s/conformance/tir-oracle.tar.xz tir-oracle/te"):format(
    target, target, shared))
  return target .. "/tir-oracle", target
end

describe("lowered tensor expressions as C", function()
  it("compute what the interpreter computes", function()
    local root, temporary = folder, nil
    if not root then root, temporary = unpacked() end
    if not root then return pending "no recorded programs" end
    for _, name in ipairs(programs) do
      local file = assert(io.open(("%s/te/%s/lower_full.tvmscript"):format(root, name)))
      local mod = assert(pl.tir.parse(file:read "a", name))
      file:close()
      for fn_name, fn in pairs(mod) do
        local args = compare.arguments(fn, sizes, 7)
        local built = pl.build(mod, { flags = exact })
        -- Of C's library exp is not: see the specs of polynomials in c_run_spec.lua.
        local tolerance = built:source():find("pl_exp_f32", 1, true) and 1e-6 or nil
        local how, why = compare.run(fn, built, fn_name, args, tolerance)
        assert(not how, ("%s: %s"):format(name, how))
        assert(not why, ("%s: %s"):format(name, why))
        how = compare.run(fn, pl.build(mod, { threads = 2 }), fn_name, args, 1e-5)
        assert(not how, ("%s with threads: %s"):format(name, how))
      end
    end
    if temporary then os.execute("rm -r " .. temporary) end
  end)
end)
