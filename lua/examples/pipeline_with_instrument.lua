--- A pipeline with an instrument: optimises a model and shows what each pass
-- did to it.
--
--     lua5.4 pipeline_with_instrument.lua model.onnx small.onnx
--
-- Without arguments it optimises a small function built by hand. A file that
-- ended in `return deploy` would be a script for `perilune opt -p`.

local pl = require "perilune"

-- A pipeline is a value: passes, their names, or other pipelines.
local deploy = pl.sequential { name = "deploy",
  "SimplifyExpr",
  pl.passes.FoldConstant { fold = "all" },
  "EliminateCommonSubexpr",
  "DeadCodeElimination",
}

-- An instrument is a table of hooks; this one tells when a pass changed the
-- module. Unchanged means the very same module.
local before = {}
local log = {
  name = "log",
  before = function(mod) before[#before + 1] = mod end,
  after = function(mod, info)
    local changed = table.remove(before) ~= mod
    print(("%-24s %s"):format(info.name, changed and "changed the module" or "no change"))
  end,
}

-- relu(x * (2 + 3)) + relu(x * (2 + 3)), written the long way.
local function small_module()
  local x = pl.var("x", "Tensor[(N, 4), float32]")
  local function once() return pl.op.nn.relu(x * (pl.const(2.0) + 3.0)) end
  return pl.module { main = pl.func({ x }, once() + once()) }
end

local function main(input, output)
  local timing = pl.instruments.timing()
  local scope <close> = pl.context { opt_level = 3, instruments = { timing, log } }:enter()
  local model = input and assert(pl.onnx.load(input)) or small_module()
  local small = deploy(model)
  print(timing)
  if output then
    assert(pl.onnx.save(small, output))
  else
    print(small)
  end
end

main(...)
