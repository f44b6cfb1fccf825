-- The programs that TVM lowered from tensor expressions compute the same after every phase. They
-- are those of ../shared's archive; PERILUNE_TIR_ORACLE_ROOT names a folder where it is unpacked.

local pl = require "perilune"

local folder = os.getenv "PERILUNE_TIR_ORACLE_ROOT"

-- The release build compares every phase; sanitizers, which take six times as long, each fourth of
-- the small programs.
local step = (os.getenv "PERILUNE_SANITIZE" or "") ~= "" and 4 or 1

-- Programs whose every phase runs within some seconds, and those that one phase is compared of.
local whole = { "add2d_fused_parallel", "blur2d_compute_at_tile", "blur2d_inline",
  "depthwise_conv2d", "elementwise_chain_inline", "elementwise_chain_root", "gather_indirect",
  "gemv", "gemv_rfactor_vectorized", "matmul_symbolic_tiled", "maxpool2d",
  "reduce_predicated_where", "scan_symbolic_multistage", "softmax_naive", "sum_all",
  "sum_all_rfactor", "transpose_tiled", "unroll_pragma", "vecadd_naive", "vecadd_nondivisible",
  "vecadd_symbolic", "vecadd_symbolic_split_vectorize", "vecadd_vectorized" }
local part = { "batch_matmul", "conv2d_tuned", "int8_dot_naive", "matmul_packed_cachewrite",
  "matmul_tiled_vectorized" }

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

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return assert(pl.tir.parse(text, path))
end

local function phases(path)
  local list = assert(io.popen(("ls %s/phases/*.tvmscript"):format(path)))
  local out = {}
  for name in list:lines() do out[#out + 1] = name end
  list:close()
  return out
end

describe("lowered tensor expressions", function()
  it("compute the same after every phase", function()
    local root, temporary = folder, nil
    if not root then root, temporary = unpacked() end
    if not root then return pending "no recorded programs" end
    local compared = 0
    local function compare(base, path)
      local same, diag = pl.tir.check(base, read(path), { rounds = 1 })
      assert(same, ("%s: %s"):format(path, diag))
      compared = compared + 1
    end
    for _, name in ipairs(whole) do
      local path = root .. "/te/" .. name
      local base = read(path .. "/lower_simple.tvmscript")
      compare(base, path .. "/lower_full.tvmscript")
      local list = phases(path)
      for i = 1, #list, step do compare(base, list[i]) end
    end
    for _, name in ipairs(step == 1 and part or {}) do
      local path = root .. "/te/" .. name
      compare(read(path .. "/lower_simple.tvmscript"), path .. "/lower_full.tvmscript")
    end
    if temporary then os.execute("rm -r " .. temporary) end
    assert.is_true(compared > 150 / step, compared)
  end)
end)
