--- Gradient-boosted regression trees with squared loss (Friedman 2001): each tree fits what those
-- before it leave over. Splits are exact: every feature is sorted once for all trees.

require "perilune.core".internal() -- errors name the scripts of others

local trees = {}

local methods = {}
local class = { __index = methods }

-- Trees, their depth, the part of each that counts, and the least samples of a leaf.
local ROUNDS, DEPTH, RATE, LEAST = 60, 4, 0.15, 2
-- What is added to the number of samples of a leaf: small leaves say less.
local SHRINK = 1

-- For each feature the numbers of the rows in the order of its values.
local function orders_of(rows)
  local orders = {}
  for column = 1, #rows[1] do
    local order = {}
    for i = 1, #rows do order[i] = i end
    table.sort(order, function(a, b)
      local x, y = rows[a][column], rows[b][column]
      if x ~= y then return x < y end
      return a < b
    end)
    orders[column] = order
  end
  return orders
end

local function gain(sum, n) return sum * sum / (n + SHRINK) end

-- The best split of the rows of a node by one feature.
local function split_by(state, node, column, best)
  local rows, left_sum, left_n, last = state.rows, 0, 0, nil
  for _, i in ipairs(state.orders[column]) do
    if state.node_of[i] == node then
      local x = rows[i][column]
      if last and x > last and left_n >= LEAST and node.n - left_n >= LEAST then
        local score = gain(left_sum, left_n) + gain(node.sum - left_sum, node.n - left_n)
        if score > best.score + 1e-12 then
          best.score, best.column, best.at = score, column, (last + x) / 2
        end
      end
      left_sum, left_n, last = left_sum + state.rest[i], left_n + 1, x
    end
  end
end

local function best_split(state, node)
  local best = { score = gain(node.sum, node.n) }
  for column = 1, #state.orders do split_by(state, node, column, best) end
  return best.column and best or nil
end

local function new_node(depth) return { depth = depth, sum = 0, n = 0 } end

local function put(state, node, i)
  state.node_of[i] = node
  node.sum, node.n = node.sum + state.rest[i], node.n + 1
end

local function divide(state, node, split)
  node.column, node.at = split.column, split.at
  node.left, node.right = new_node(node.depth + 1), new_node(node.depth + 1)
  for i = 1, #state.rows do
    if state.node_of[i] == node then
      put(state, state.rows[i][node.column] < node.at and node.left or node.right, i)
    end
  end
end

local function grow(state)
  local root = new_node(0)
  for i = 1, #state.rows do put(state, root, i) end
  local open = { root }
  while #open > 0 do
    local node = table.remove(open)
    local split = node.depth < DEPTH and best_split(state, node)
    if split then
      divide(state, node, split)
      open[#open + 1], open[#open + 2] = node.left, node.right
    else
      node.value = RATE * node.sum / (node.n + SHRINK)
    end
  end
  return root
end

local function value_of(node, row)
  while node.column do node = row[node.column] < node.at and node.left or node.right end
  return node.value
end

--- What the trees give for a list of features.
function methods.predict(self, row)
  local sum = self.offset
  for _, tree in ipairs(self) do sum = sum + value_of(tree, row) end
  return sum
end

--- Fits rows of features to targets, lists of equal lengths.
function trees.fit(rows, targets)
  local self = setmetatable({ offset = 0 }, class)
  for _, x in ipairs(targets) do self.offset = self.offset + x / #targets end
  local state = { rows = rows, orders = orders_of(rows), rest = {}, node_of = {} }
  for i, x in ipairs(targets) do state.rest[i] = x - self.offset end
  for _ = 1, ROUNDS do
    local tree = grow(state)
    self[#self + 1] = tree
    for i, row in ipairs(rows) do state.rest[i] = state.rest[i] - value_of(tree, row) end
  end
  return self
end

return trees
