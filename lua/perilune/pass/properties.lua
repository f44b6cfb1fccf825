--- pl.pass_properties: what passes require of a program, provide and destroy.
--
--     pl.pass_properties.MyPass = { requires = { "fused" }, destroys = { "graph normal form" } }
--
-- Properties: "A-normal form" (values are bound by let), "graph normal form" (no let),
-- "basic block normal form", "fused" (primitive functions of several operators), "annotated"
-- (regions of external compilers), "partitioned" (functions for external compilers), "inference"
-- (no operators of training), "first order" (no function is a value), "layout fixed" (layouts are
-- what a backend wants). Scripts may name others. `undoes` names passes whose work a pass takes
-- back; `before` those that it must not come after. `handles` lists the features of programs
-- (pl.features) that a pass handles, where it fails with others: built-in passes say so here, those
-- of scripts in the field of that name. `removes` lists features that a program may have no more
-- after it; features that it brings are provided.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal() -- errors name the scripts of others

local anf, graph, blocks = "A-normal form", "graph normal form", "basic block normal form"

-- All features but these.
local function all_but(...)
  local out, left = {}, {}
  for _, name in ipairs { ... } do left[name] = true end
  for _, name in ipairs(core.feature_names()) do
    if not left[name] then out[#out + 1] = name end
  end
  return out
end

local rows = {
  Gradient = { handles = all_but("ADTs", "quantised") },
  FirstOrderGradient = { handles = all_but("let", "letrec", "refs", "closures", "ADTs",
    "control flow", "quantised") },
  LazyGradientInit = { handles = all_but "ADTs" },
  LowerTE = { handles = all_but "dynamic shapes" },
  ToANormalForm = { provides = { anf, blocks, "let" }, destroys = { graph }, undoes = {
    "ToGraphNormalForm" } },
  ToGraphNormalForm = { provides = { graph }, destroys = { anf, blocks }, removes = { "let" },
    undoes = { "ToANormalForm", "ToBasicBlockNormalForm" } },
  ToBasicBlockNormalForm = { provides = { blocks }, destroys = { anf } },
  FuseOps = { provides = { "fused" }, undoes = { "DefuseOps" } },
  DefuseOps = { destroys = { "fused" }, undoes = { "FuseOps" } },
  SimplifyInference = { provides = { "inference" } },
  ForwardFoldScaleAxis = { requires = { "inference" } },
  BackwardFoldScaleAxis = { requires = { "inference" } },
  AlterOpLayout = { provides = { "layout fixed" }, before = { "FuseOps" } },
  ConvertLayout = { destroys = { "layout fixed" }, before = { "FuseOps", "AlterOpLayout" },
    undoes = { "ConvertLayout" } }, -- where it asks for another layout of an operator
  AnnotateTarget = { provides = { "annotated" }, before = { "MergeCompilerRegions",
    "PartitionGraph" } },
  MergeComposite = { before = { "AnnotateTarget", "PartitionGraph" } },
  MergeCompilerRegions = { requires = { "annotated" } },
  PartitionGraph = { requires = { "annotated" }, provides = { "partitioned" },
    destroys = { "annotated" } },
  Defunctionalization = { provides = { "first order" }, removes = { "closures" } },
  LambdaLift = { before = { "Defunctionalization" }, removes = { "closures", "letrec" } },
  DeadCodeElimination = { removes = core.feature_names() },
  PartialEvaluate = { removes = core.feature_names() },
  FoldConstant = { removes = core.feature_names() },
  SimplifyExpr = { removes = core.feature_names() },
  DynamicToStatic = { removes = { "dynamic shapes" } },
  Inline = { removes = { "closures" } },
  UnCPS = { removes = { "closures" } },
  CombineParallelConv2D = { before = { "FuseOps" } },
  CombineParallelDense = { before = { "FuseOps" } },
  CombineParallelBatchMatmul = { before = { "FuseOps" } },
}

local is_feature = {}
for _, name in ipairs(core.feature_names()) do is_feature[name] = true end

local fields = { "requires", "provides", "destroys", "undoes", "before", "handles", "removes" }

local function check(name, row)
  if type(name) ~= "string" then argument.fail "pl.pass_properties: names of passes are keys" end
  if row == nil then return end
  argument.options(row, "pl.pass_properties." .. name, fields)
  for _, field in ipairs(fields) do
    for _, item in ipairs(argument.table(row[field] or {}, "pl.pass_properties." .. name, field)) do
      argument.string(item, "pl.pass_properties." .. name, field)
    end
  end
  for _, field in ipairs { "handles", "removes" } do
    for _, feature in ipairs(row[field] or {}) do
      if not is_feature[feature] then
        argument.fail(("pl.pass_properties.%s: %s: there is no feature '%s'%s"):format(name, field,
          feature, argument.near(feature, is_feature)))
      end
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
