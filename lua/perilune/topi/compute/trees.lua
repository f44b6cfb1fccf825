-- Ensembles of decision trees (ai.onnx.ml) as loops: each row walks down each tree, and the weights
-- of the nodes it ends in are added up. Called by ml.lua.
--
-- Nodes are rows of tables, numbered in the order of the attributes; a terminal node leads to
-- itself, so that every walk has as many steps as the deepest tree. The evaluator's kernel says
-- what is right (engine/op/kernel/ml/tree_ensemble.c).

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"

local trees = {}

local compare = { BRANCH_LEQ = tir.le, BRANCH_LT = tir.lt, BRANCH_GTE = tir.ge, BRANCH_GT = tir.gt,
  BRANCH_EQ = tir.eq, BRANCH_NEQ = tir.ne }

-- ------------------------------------------------------------------- reading

-- The number, from 0, of each node by tree and id, and the roots: the first node of each tree.
local function numbers_of(attrs)
  local numbers, roots, tree_of = {}, {}, attrs.nodes_treeids
  for i, tree in ipairs(tree_of) do
    numbers[tree] = numbers[tree] or {}
    numbers[tree][attrs.nodes_nodeids[i]] = i - 1
    if tree_of[i - 1] ~= tree then roots[#roots + 1] = i - 1 end
  end
  return numbers, roots
end

-- The mode of all branches; nil: there are several.
local function mode_of(attrs)
  local mode
  for _, name in ipairs(attrs.nodes_modes) do
    if name ~= "LEAF" then
      if mode and mode ~= name or not compare[name] then return nil end
      mode = name
    end
  end
  return mode or "BRANCH_LEQ"
end

-- Where both branches of each node lead; nil: to no node.
local function read_branches(attrs, numbers, ensemble)
  for i, mode in ipairs(attrs.nodes_modes) do
    local own = numbers[attrs.nodes_treeids[i]]
    local is_end = mode == "LEAF"
    ensemble.yes[i] = is_end and i - 1 or own[attrs.nodes_truenodeids[i]]
    ensemble.no[i] = is_end and i - 1 or own[attrs.nodes_falsenodeids[i]]
    if not ensemble.yes[i] or not ensemble.no[i] then return nil end
    ensemble.feature[i] = is_end and 0 or attrs.nodes_featureids[i]
    ensemble.split[i] = attrs.nodes_values[i]
    local missing = attrs.nodes_missing_value_tracks_true
    ensemble.missing[i] = missing and missing[i] or 0
    ensemble.any_missing = ensemble.any_missing or ensemble.missing[i] ~= 0
  end
  return true
end

-- The number of steps from the roots to the deepest node; nil: a tree has a cycle.
local function depth_of(ensemble)
  local level, depth, count = ensemble.roots, 0, 0
  while #level > 0 do
    local below = {}
    for _, node in ipairs(level) do
      count = count + 1
      if ensemble.yes[node + 1] ~= node then
        below[#below + 1] = ensemble.yes[node + 1]
        below[#below + 1] = ensemble.no[node + 1]
      end
    end
    if count > #ensemble.yes then return nil end
    if #below > 0 then depth = depth + 1 end
    level = below
  end
  return depth
end

local function read_weights(attrs, prefix, numbers, ensemble)
  local values = attrs[prefix .. "_weights"] or {}
  for i, value in ipairs(values) do
    local own = numbers[attrs[prefix .. "_treeids"][i]]
    local node = own and own[attrs[prefix .. "_nodeids"][i]]
    local target = attrs[prefix .. "_ids"][i]
    if not node or not target or target < 0 or target >= ensemble.targets then return nil end
    ensemble.weights[i] = { node = node, target = target, value = value }
  end
  return true
end

--- An ensemble { yes, no, feature, split, missing (lists by node), roots, depth, weights, targets }
-- from the attributes of an operator; nil and a reason. `prefix` is "class" or "target".
function trees.read(attrs, prefix, targets)
  if not attrs.nodes_values or not attrs.nodes_modes or targets < 1 then
    return nil, "attributes that are tensors"
  end
  local count = #attrs.nodes_treeids
  for _, name in ipairs { "nodeids", "modes", "values", "truenodeids", "falsenodeids",
    "featureids" } do
    if #(attrs["nodes_" .. name] or {}) ~= count then return nil, "lists of several lengths" end
  end
  local ensemble = { yes = {}, no = {}, feature = {}, split = {}, missing = {}, weights = {},
    targets = targets, mode = mode_of(attrs) }
  local numbers
  numbers, ensemble.roots = numbers_of(attrs)
  if not ensemble.mode then return nil, "branches of several modes" end
  if not read_branches(attrs, numbers, ensemble)
    or not read_weights(attrs, prefix, numbers, ensemble) then
    return nil, "a node or weight that leads to no node"
  end
  ensemble.depth = depth_of(ensemble)
  if not ensemble.depth then return nil, "a tree with a cycle" end
  return ensemble
end

-- ------------------------------------------------------------------ walking

-- Weights by node: the first and the number of each node's, their targets and values.
local function weight_tables(ensemble)
  local first, count, targets, values, by_node = {}, {}, {}, {}, {}
  for _, weight in ipairs(ensemble.weights) do
    by_node[weight.node] = by_node[weight.node] or {}
    table.insert(by_node[weight.node], weight)
  end
  for i = 1, #ensemble.yes do
    local own = by_node[i - 1] or {}
    first[i], count[i] = #values, #own
    for _, weight in ipairs(own) do
      targets[#targets + 1], values[#values + 1] = weight.target, weight.value
    end
  end
  if #values == 0 then targets[1], values[1] = 0, 0.0 end
  return first, count, targets, values
end

-- The node behind one step of a walk.
local function step(ensemble, tables, x, row, node, columns)
  local at = tir.BufferLoad(node, { 0 })
  local function of(name) return tir.BufferLoad(tables[name], { at }) end
  local value = tir.BufferLoad(x, { row, tir.max(tir.min(of "feature", columns - 1), 0) })
  local takes = compare[ensemble.mode](operand.cast("float64", value), of "split")
  if ensemble.any_missing then
    takes = tir.logical_or(takes, tir.logical_and(tir.ne(value, value),
      tir.ne(of "missing", operand.const(0, "int32"))))
  end
  return tir.BufferStore(node, tir.Select(takes, of "yes", of "no"), { 0 })
end

-- Adds the weights of the terminal node that a walk has ended in.
local function add_weights(tables, out, row, node)
  local at = tir.BufferLoad(node, { 0 })
  return loops.over(tir.BufferLoad(tables.count, { at }), "w", function(w)
    local weight = tir.BufferLoad(tables.first, { at }) + w
    local place = { row, tir.BufferLoad(tables.target, { weight }) }
    return tir.BufferStore(out, tir.BufferLoad(out, place)
      + operand.cast(out.dtype, tir.BufferLoad(tables.value, { weight })), place)
  end)
end

--- The sums of weights of each row, (rows, targets): in float32, or float64 of such features.
-- table_of(tensor) is a tensor of constants.
function trees.scores(ensemble, x, table_of)
  local rows, columns = dims.of(x)[1], dims.of(x)[2]
  local dtype = x.dtype == "float64" and "float64" or "float32"
  local first, count, targets, values = weight_tables(ensemble)
  local names, inputs = {}, { x }
  local function add(name, list, of)
    names[#names + 1] = name
    inputs[#inputs + 1] = table_of(core.tensor(list, of))
  end
  for _, name in ipairs { "yes", "no", "feature" } do add(name, ensemble[name], "int32") end
  if ensemble.any_missing then add("missing", ensemble.missing, "int32") end
  add("split", ensemble.split, "float64")
  add("first", first, "int32")
  add("count", count, "int32")
  add("target", targets, "int32")
  add("value", values, "float64")
  add("root", ensemble.roots, "int32")
  return te.extern({ rows, ensemble.targets }, inputs, function(ins, outs)
    local tables = {}
    for i, name in ipairs(names) do tables[name] = ins[i + 1] end
    return loops.over(rows, "row", function(row)
      local zeros = loops.over(ensemble.targets, "t", function(t)
        return tir.BufferStore(outs[1], operand.const(0, dtype), { row, t })
      end)
      return loops.seq(zeros, loops.over(#ensemble.roots, "tree", function(tree)
        return loops.allocate(1, "int32", "node", function(node)
          return loops.seq(tir.BufferStore(node, tir.BufferLoad(tables.root, { tree }), { 0 }),
            loops.over(ensemble.depth, "depth", function()
              return step(ensemble, tables, ins[1], row, node, columns)
            end), add_weights(tables, outs[1], row, node))
        end)
      end))
    end)
  end, { name = "T_trees", dtype = dtype })
end

return trees
