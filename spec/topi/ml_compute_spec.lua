-- Operators of ai.onnx.ml give the same by loops as by the evaluator's kernels.

local programs = dofile "spec/topi/programs.lua"

local float, typed = programs.float, programs.typed
local cases, case = programs.cases()

-- ----------------------------------------------------------------- features

case("ml.scaler", { float(4, 3) }, { offset = { 0.5, -1.0, 2.0 }, scale = { 2.0, 0.5, 1.5 } })
case("ml.scaler", { typed("int64", 4, 3) }, { offset = { 1.0 }, scale = { 0.25 } })
for _, norm in ipairs { "MAX", "L1", "L2" } do
  case("ml.normalizer", { float(5, 4) }, { norm = norm })
end
case("ml.imputer", { float(5, 3) }, { imputed_value_floats = { 1.0, 2.0, 3.0 },
  replaced_value_float = 0 / 0 }, { special = true })
case("ml.imputer", { typed("int64", 5, 3) }, { imputed_value_int64s = { 9 },
  replaced_value_int64 = 1 })
case("ml.binarizer", { float(3, 4) }, { threshold = 0.25 })
case("ml.feature_vectorizer", { float(3, 2), float(3, 4) }, { inputdimensions = { 2, 3 } })

-- ------------------------------------------------------------ linear models

local rows = { 0.5, -1.0, 0.25, 1.5, 2.0, -0.5, -1.25, 0.75, 1.0 }
for _, post in ipairs { "NONE", "SOFTMAX", "LOGISTIC" } do
  case("ml.linear_regressor", { float(4, 3) }, { coefficients = rows, targets = 3,
    intercepts = { 0.5, 0.0, -0.5 }, post_transform = post })
  case("ml.linear_regressor", { float(4, 3) }, { coefficients = { 1.0, 2.0, -1.0 }, targets = 1,
    post_transform = post })
  case("ml.linear_classifier", { float(7, 3) }, { coefficients = rows,
    intercepts = { 0.5, 0.0, -0.5 }, classlabels_ints = { 7, 3, 5 }, post_transform = post })
  case("ml.linear_classifier", { float(7, 3) }, { coefficients = { 1.0, 2.0, -1.0 },
    intercepts = { 0.25 }, classlabels_ints = { -1, 1 }, post_transform = post })
end

-- -------------------------------------------------------------------- trees

-- Tree 0 splits by column 0, then 1; tree 1 by column 2. Leaves have weights of `targets`.
local function forest(prefix, targets, more)
  local attrs = {
    nodes_treeids = { 0, 0, 0, 0, 0, 1, 1, 1 }, nodes_nodeids = { 0, 1, 2, 3, 4, 0, 1, 2 },
    nodes_featureids = { 0, 0, 1, 0, 0, 2, 0, 0 },
    nodes_values = { 0.25, 0.0, -0.5, 0.0, 0.0, 0.5, 0.0, 0.0 },
    nodes_modes = { "BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF",
      "LEAF" },
    nodes_truenodeids = { 1, 0, 3, 0, 0, 1, 0, 0 }, nodes_falsenodeids = { 2, 0, 4, 0, 0, 2, 0, 0 },
    [prefix .. "_treeids"] = { 0, 0, 0, 1, 1, 1 }, [prefix .. "_nodeids"] = { 1, 3, 4, 1, 2, 2 },
    [prefix .. "_ids"] = targets, [prefix .. "_weights"] = { 0.5, 0.75, -0.25, 1.0, 0.5, 2.0 },
  }
  for key, value in pairs(more or {}) do attrs[key] = value end
  return attrs
end

for _, mode in ipairs { "LEQ", "LT", "GT", "GTE" } do
  local modes = {}
  for i, name in ipairs(forest("target", {}).nodes_modes) do
    modes[i] = name == "LEAF" and name or "BRANCH_" .. mode
  end
  case("ml.tree_ensemble_regressor", { float(20, 3) }, forest("target", { 0, 1, 0, 1, 0, 1 },
    { n_targets = 2, nodes_modes = modes }))
end
case("ml.tree_ensemble_regressor", { float(20, 3) }, forest("target", { 0, 0, 0, 0, 0, 0 },
  { n_targets = 1, aggregate_function = "AVERAGE", base_values = { 0.5 } }))
case("ml.tree_ensemble_regressor", { float(20, 3) }, forest("target", { 0, 0, 0, 0, 0, 0 },
  { n_targets = 1, nodes_missing_value_tracks_true = { 1, 0, 0, 0, 0, 1, 0, 0 } }),
  { special = true })
case("ml.tree_ensemble_regressor", { typed("int64", 9, 3) },
  forest("target", { 0, 1, 2, 0, 1, 2 }, { n_targets = 3, base_values = { 1.0, 0.0, -1.0 } }))
for _, post in ipairs { "NONE", "SOFTMAX", "LOGISTIC" } do
  case("ml.tree_ensemble_classifier", { float(30, 3) }, forest("class", { 0, 1, 2, 0, 1, 2 },
    { classlabels_int64s = { 4, 2, 9 }, post_transform = post,
      class_weights = { 0.5, 0.75, 0.125, 1.0, 0.625, 2.0 } }))
  case("ml.tree_ensemble_classifier", { float(30, 3) }, forest("class", { 0, 0, 0, 0, 0, 0 },
    { classlabels_int64s = { 0, 1 }, post_transform = post }))
end
case("ml.tree_ensemble_classifier", { float(30, 3) }, forest("class", { 0, 0, 0, 0, 0, 0 },
  { classlabels_int64s = { 0, 1 }, class_weights = { 0.5, 0.25, 0.125, 0.5, 0.25, 0.125 } }))
case("ml.tree_ensemble_classifier", { float(30, 3) }, forest("class", { 0, 1, 1, 0, 1, 1 },
  { classlabels_int64s = { 3, 8 } }))

describe("computes of ai.onnx.ml", function()
  programs.each(cases, function(name, agrees)
    it(name, function() assert.is_true(agrees()) end)
  end)
end)
