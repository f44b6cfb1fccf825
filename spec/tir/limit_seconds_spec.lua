-- A pass over large PrimFuncs ends soon after limit.seconds, as it does after Ctrl-C.

local pl = require "perilune"

-- Sanitized passes are slow: a quarter of the program is as late.
local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
local SIZE = sanitized and 8000 or 32000

local programs = {
  "stores", "loops with conditions", "conditions in a loop", "calls of builtins",
  "buffers of a block", "temporaries used at the end", "lets", "lets in one expression",
  "loops in loops", "conditions in else", "stores in loops in loops", "values of conditions",
  "a sum of terms of an index",
}

-- What passes need that have an option without a default.
local options = { ["tir.BindTarget"] = { target = "llvm" } }

local function passes()
  local list = {}
  for name in pairs(pl.passes) do
    if name:match "^tir%." then
      local ok, pass = pcall(pl.passes[name], options[name])
      if ok then list[#list + 1] = { name = name, run = pass } end
    end
  end
  return list
end

-- Seconds of the processor that a pass takes within a limit.
local function seconds(pass, mod, limit)
  collectgarbage()
  local context = pl.context { config = { ["limit.seconds"] = limit } }
  local started = os.clock()
  pcall(pl.with, context, pass.run, mod)
  return os.clock() - started
end

-- What a pass needs until it can stop, in this build and on this machine: tir.Simplify looks at the
-- limit often.
local function seconds_to_stop(mod) return seconds(pl.passes["tir.Simplify"](), mod, 0.01) end

-- The bound grows with the pass and the build, so that it holds with sanitizers, too.
local function is_late(pass, mod)
  local least, allowed = math.huge, 0.03
  for _ = 1, 3 do
    least = math.min(least, seconds(pass, mod, 0.01))
    if least <= allowed then return false end
    allowed = math.max(allowed, 2 * seconds_to_stop(mod))
  end
  return least > allowed + 0.2 * seconds(pass, mod, 60)
end

describe("limit.seconds", function()
  local rows = {}
  for _, row in ipairs(dofile "spec/bench/loop_programs.lua") do rows[row.name] = row end

  for _, name in ipairs(programs) do
    it("stops each pass over a PrimFunc: " .. name, function()
      local mod, late = rows["loops: " .. name].make(SIZE), {}
      for _, pass in ipairs(passes()) do
        if is_late(pass, mod) then late[#late + 1] = pass.name end
      end
      table.sort(late)
      assert.same({}, late)
    end)
  end

  it("is looked at by most passes", function() assert.is_true(#passes() > 75) end)
end)
