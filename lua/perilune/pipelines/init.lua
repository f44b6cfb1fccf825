--- The pipelines that come with the library, by name: each is a script
-- perilune/pipelines/NAME.lua that returns one.

require "perilune.core".internal() -- errors name the scripts of others

local pipelines = {
  { name = "default",
    doc = "What `perilune opt` runs when it is not told otherwise: DeadCodeElimination, then\n    "
      .. "SimplifyExpr,FoldConstant,FoldExplicitPadding,FoldBatchNorm,MatMulAddToGemm,\n    "
      .. "FoldConvBias,EliminateCommonSubexpr,DeadCodeElimination\n    "
      .. "until nothing changes." },
  { name = "emulate_float16",
    doc = "Compute float16 operators in float32, rounding where elements are moved or leave." },
}

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

return pipelines
