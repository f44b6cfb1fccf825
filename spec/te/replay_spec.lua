-- The 35 programs that TVM lowered give the same loops here. They are those of ../shared's archive;
-- PERILUNE_TIR_ORACLE_ROOT names a folder where it is unpacked.

local pl = require "perilune"

local replay = dofile "spec/te/replay.lua"

local function unpacked()
  local shared = os.getenv "PERILUNE_SHARED" or "../shared"
  local archive = io.open(shared .. "/conformance/tir-oracle.tar.xz")
  if not archive then return nil end
  archive:close()
  local target = os.tmpname() .. ".d"
  os.execute(("mkdir -p %s && tar -C %s -xf %s/conformance/tir-oracle.tar.xz --wildcards "
    .. "'tir-oracle/te/*/phases/000_input.tvmscript'"):format(target, target, shared))
  return target .. "/tir-oracle", target
end

describe("recorded programs of tensor expressions", function()
  local folder, temporary = os.getenv "PERILUNE_TIR_ORACLE_ROOT", nil

  setup(function()
    if not folder then folder, temporary = unpacked() end
  end)

  teardown(function()
    if temporary then os.execute("rm -rf " .. temporary) end
  end)

  it("are lowered to the loops that TVM makes", function()
    if not folder then return pending "no archive tir-oracle.tar.xz" end
    local results, counts = replay.run(pl, folder .. "/te")
    for name, result in pairs(results) do
      assert.equal("equal", result.result, name .. ": " .. tostring(result.why))
    end
    assert.same({ equal = 35, different = 0, unread = 0, error = 0 }, counts)
  end)
end)
