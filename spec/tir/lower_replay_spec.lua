-- The programs that TVM lowered from tensor expressions, lowered here (lower_replay.lua).

local pl = require "perilune"
local replay = dofile "spec/tir/lower_replay.lua"

-- How many of the 35 programs have TVM's result by structure, at least. The others differ
-- in form, in what tir.CommonSubexprElimTIR names, and compute the same.
local LEAST = { simple = 34, full = 32 }
-- Those whose results differ by structure and are too long to be run.
local MOST_DIFFERENT = 1

describe("lowering recorded tensor programs", function()
  it("gives what TVM gives", function()
    local folder, remove = os.getenv "PERILUNE_TIR_ORACLE_ROOT", function() end
    if folder then folder = folder .. "/te" else folder, remove = replay.unpack() end
    if not folder then return pending "no recorded programs" end
    local counts = { simple = {}, full = {} }
    for _, name in ipairs(replay.programs(folder)) do
      replay.program(pl, folder, name, function(what, verdict, message)
        local row = counts[what]
        if not row then return end
        assert(verdict ~= "failed", ("%s, %s: %s"):format(name, what, message))
        row[verdict] = (row[verdict] or 0) + 1
      end)
    end
    remove()
    for mode, least in pairs(LEAST) do
      local row = counts[mode]
      assert.equal(35, (row.equal or 0) + (row.same or 0) + (row.different or 0))
      assert.is_true((row.equal or 0) >= least, ("%s: %d equal"):format(mode, row.equal or 0))
      assert.is_true((row.different or 0) <= MOST_DIFFERENT)
    end
  end)
end)
