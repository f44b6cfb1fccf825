--- pl.pass_properties: what passes require of a program, provide and destroy.
--
--     pl.pass_properties.MyPass = { requires = { "fused" }, destroys = { "graph normal form" } }
--
-- Properties: "A-normal form" (values are bound by let), "graph normal form" (no let),
-- "basic block normal form", "fused" (primitive functions of several operators), "annotated"
-- (regions of external compilers), "partitioned" (functions for external compilers), "inference"
-- (no operators of training), "first order" (no function is a value), "layout fixed" (layouts are
-- what a backend wants). Scripts may name others. `undoes` names passes whose work a pass takes
-- back; `before` those that it must not come after.

local argument = require "perilune.argument"
require "perilune.core".internal() -- errors name the scripts of others

local anf, graph, blocks = "A-normal form", "graph normal form", "basic block normal form"

local rows = {
  ToANormalForm = { provides = { anf, blocks }, destroys = { graph }, undoes = {
    "ToGraphNormalForm" } },
  ToGraphNormalForm = { provides = { graph }, destroys = { anf, blocks }, undoes = {
    "ToANormalForm", "ToBasicBlockNormalForm" } },
  ToBasicBlockNormalForm = { provides = { blocks }, destroys = { anf } },
  FuseOps = { provides = { "fused" }, undoes = { "DefuseOps" } },
  DefuseOps = { destroys = { "fused" }, undoes = { "FuseOps" } },
  SimplifyInference = { provides = { "inference" } },
  ForwardFoldScaleAxis = { requires = { "inference" } },
  BackwardFoldScaleAxis = { requires = { "inference" } },
  AlterOpLayout = { provides = { "layout fixed" }, before = { "FuseOps" } },
  ConvertLayout = { destroys = { "layout fixed" }, before = { "FuseOps", "AlterOpLayout" } },
  AnnotateTarget = { provides = { "annotated" }, before = { "MergeCompilerRegions",
    "PartitionGraph" } },
  MergeComposite = { before = { "AnnotateTarget", "PartitionGraph" } },
  MergeCompilerRegions = { requires = { "annotated" } },
  PartitionGraph = { requires = { "annotated" }, provides = { "partitioned" },
    destroys = { "annotated" } },
  Defunctionalization = { provides = { "first order" } },
  LambdaLift = { before = { "Defunctionalization" } },
  CombineParallelConv2D = { before = { "FuseOps" } },
  CombineParallelDense = { before = { "FuseOps" } },
  CombineParallelBatchMatmul = { before = { "FuseOps" } },
}

local fields = { "requires", "provides", "destroys", "undoes", "before" }

local function check(name, row)
  if type(name) ~= "string" then argument.fail "pl.pass_properties: names of passes are keys" end
  if row == nil then return end
  argument.options(row, "pl.pass_properties." .. name, fields)
  for _, field in ipairs(fields) do
    for _, item in ipairs(argument.table(row[field] or {}, "pl.pass_properties." .. name, field)) do
      argument.string(item, "pl.pass_properties." .. name, field)
    end
  end
end

return setmetatable({}, {
  __name = "perilune.pass_properties",
  __index = rows,
  __newindex = function(_, name, row)
    check(name, row)
    rows[name] = row
  end,
  __pairs = function() return next, rows, nil end,
})
