--- The pipelines that come with the library, by name, as pl.pipelines.
--
--     local out = pl.pipelines["relay.default"](mod)
--     for _, row in ipairs(pl.pipelines) do print(row.name, row.doc) end
--
-- Each is a script perilune/pipelines/NAME.lua that returns one, or a pass of the engine
-- (`registered`) that is a sequential, which texts of pipelines know by its name.

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

local pipelines = {
  { name = "default",
    doc = "What `perilune opt` runs when it is not told otherwise: DeadCodeElimination, then\n    "
      .. "SimplifyExpr,FoldConstant,FoldExplicitPadding,FoldBatchNorm,MatMulAddToGemm,\n    "
      .. "FoldConvBias,EliminateCommonSubexpr,DeadCodeElimination\n    "
      .. "until nothing changes." },
  { name = "emulate_bfloat16",
    doc = "Compute bfloat16 operators step by step, rounding after each." },
  { name = "emulate_float16",
    doc = "Compute float16 operators in float32, rounding where elements are moved or leave." },
}

-- The passes of the engine that are pipelines for whole modules.
for _, name in ipairs { "relay.default", "relay.optimize", "tir.lower" } do
  table.insert(pipelines, { name = name, doc = core.registered(name).doc, registered = true })
end

--- The chunk of a pipeline, to be called with its arguments and, for those that take
-- them, sets of rules: found where the scripts of the library are, inside the command or
-- on the path.
function pipelines.chunk(name)
  local module = "perilune.pipelines." .. name
  for _, searcher in ipairs(package.searchers) do
    local chunk, where = searcher(module)
    if type(chunk) == "function" then
      return function(arguments, rules) return chunk(arguments, where, rules) end
    end
  end
  error(("there is no pipeline '%s'"):format(name), 2)
end

local by_name = {}
for _, row in ipairs(pipelines) do by_name[row.name] = row end

-- The pipeline of that name, or nil.
local function make(_, name)
  local row = by_name[name]
  if not row then return nil end
  return row.registered and core.make(name) or pipelines.chunk(name) {}
end

--- What pl.pipelines is: the rows, and by name the pipelines.
pipelines.public = setmetatable(table.move(pipelines, 1, #pipelines, 1, {}), { __index = make })

return pipelines
