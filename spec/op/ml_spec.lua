-- Operators of ai.onnx.ml on numbers worked out by hand. spec/cross/classical.py
-- compares all of them with ONNX Runtime.

local pl = require "perilune"

local op = pl.op.ml

local function evaluate(name, operands, attributes)
  local params, values = {}, {}
  for i, t in ipairs(operands) do
    params[i] = pl.var("x" .. i, tostring(pl.const(t).type))
    values[i] = t
  end
  local args = { table.unpack(params) }
  args[#args + 1] = attributes
  return pl.eval(pl.func(params, op[name](table.unpack(args))), table.unpack(values))
end

local function gives(wanted, name, operand, attributes)
  assert.same(wanted, evaluate(name, { operand }, attributes):to_table())
end

local function refuses(message, name, operand, attributes)
  local ok, why = pcall(evaluate, name, { operand }, attributes)
  assert.is_false(ok)
  assert.matches(message, tostring(why), 1, true)
end

local function floats(values) return pl.tensor(values, "float32") end

-- One tree: x <= 1 leads to 0.25 for class or target 0, else to 0.75.
local function tree(prefix, more)
  local attributes = {
    nodes_treeids = { 0, 0, 0 }, nodes_nodeids = { 4, 5, 6 }, nodes_featureids = { 0, 0, 0 },
    nodes_truenodeids = { 5, 0, 0 }, nodes_falsenodeids = { 6, 0, 0 },
    nodes_values = { 1.0, 0.0, 0.0 }, nodes_modes = { "BRANCH_LEQ", "LEAF", "LEAF" },
    [prefix .. "_treeids"] = { 0, 0 }, [prefix .. "_nodeids"] = { 5, 6 },
    [prefix .. "_ids"] = { 0, 0 }, [prefix .. "_weights"] = { 0.25, 0.75 } }
  for k, v in pairs(more) do attributes[k] = v end
  return attributes
end

describe("an operator of ai.onnx.ml", function()
  it("scales columns", function()
    gives({ { 4, 2 } }, "scaler", floats { { 3, 3 } }, { offset = { 1.0, 2.0 }, scale = { 2.0 } })
  end)

  it("says how many numbers do not match the columns", function()
    refuses("3 offsets and 1 scales for 2 columns", "scaler", floats { { 3, 3 } },
      { offset = { 1.0, 2.0, 3.0 }, scale = { 2.0 } })
  end)

  it("leaves a row whose norm is 0", function()
    gives({ { 0.25, 0.75 }, { 0, 0 } }, "normalizer", floats { { 1, 3 }, { 0, 0 } },
      { norm = "L1" })
  end)

  it("replaces the first of equal keys, and what it does not know", function()
    gives({ 7, 8, -1 }, "label_encoder", pl.tensor({ "a", "b", "c" }, "string"),
      { keys_strings = { "a", "b", "a" }, values_int64s = { 7, 8, 9 } })
  end)

  it("finds NaN", function()
    gives({ "no number", "?" }, "label_encoder", floats { 0 / 0, 1 },
      { keys_floats = { 0 / 0 }, values_strings = { "no number" }, default_string = "?" })
  end)

  it("refuses a category that is not listed, when asked to", function()
    gives({ { 0, 1 }, { 0, 0 } }, "one_hot_encoder", pl.tensor({ 5, 9 }, "int64"),
      { cats_int64s = { 3, 5 } })
    refuses("element 1 is no category", "one_hot_encoder", pl.tensor({ 5, 9 }, "int64"),
      { cats_int64s = { 3, 5 }, zeros = 0 })
  end)

  it("classifies by the sign of a single score", function()
    local label, scores = evaluate("linear_classifier", { floats { { 0.25 }, { -1 } } },
      { coefficients = { 1.0 }, intercepts = { 0.0 }, classlabels_strings = { "no", "yes" },
        n_results = 2 })
    assert.same({ "yes", "no" }, label:to_table())
    assert.same({ { 0.75, 0.25 }, { 2, -1 } }, scores:to_table())
  end)

  it("walks a tree whose nodes are numbered anyhow", function()
    gives({ { 0.25 }, { 0.75 } }, "tree_ensemble_regressor", floats { { 1 }, { 2 } },
      tree("target", { n_targets = 1 }))
    local label, scores = evaluate("tree_ensemble_classifier", { floats { { 1 }, { 2 } } },
      tree("class", { classlabels_int64s = { 3, 9 }, n_results = 2 }))
    assert.same({ 3, 9 }, label:to_table())
    assert.same({ { 0.75, 0.25 }, { 0.25, 0.75 } }, scores:to_table())
  end)

  it("refuses cycles, nodes that are not there and features beyond the columns", function()
    refuses("a tree has a cycle", "tree_ensemble_regressor", floats { { 1 } },
      tree("target", { nodes_truenodeids = { 4, 0, 0 } }))
    refuses("node 4 of tree 0 leads to a node that does not exist", "tree_ensemble_regressor",
      floats { { 1 } }, tree("target", { nodes_truenodeids = { 7, 0, 0 } }))
    refuses("beyond 1 columns", "tree_ensemble_regressor", floats { { 1 } },
      tree("target", { nodes_featureids = { 1, 0, 0 } }))
    refuses("node 0 has mode 'BRANCH'", "tree_ensemble_regressor", floats { { 1 } },
      tree("target", { nodes_modes = { "BRANCH", "LEAF", "LEAF" } }))
  end)

  it("measures the distance to support vectors", function()
    gives({ { 3 }, { 1 } }, "svm_regressor", floats { { 1 }, { 1e3 } },
      { kernel_type = "RBF", kernel_params = { 1.0, 0.0, 0.0 }, coefficients = { 2.0 },
        support_vectors = { 1.0 }, n_supports = 1, rho = { 1.0 } })
  end)
end)
