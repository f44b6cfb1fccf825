--- pl.tune.extract_subgraph, pl.tune.substitute: a part of a function as a module that runs alone,
-- and the way back.
--
--     local part = pl.tune.extract_subgraph(mod, nodes)
--     local result = pl.tune.search { mod = part.mod }
--     local out = pl.tune.substitute(mod, part, result.mod)
--
--     local parts = pl.tune.extract_subgraphs(mod, is_op "nn.relu" (is_op "nn.conv" (nil)))
--     local tuned = pl.tune.tune_subgraphs(mod, parts, { trials = 20 })
--
-- The part consists of calls of operators, tuples and their fields. Constants go with it;
-- what else it uses are its inputs, what others use of it its outputs. Equal parts are equal
-- modules with equal parameters: one workload of a database, and tuned once.

local argument = require "perilune.argument"
local core = require "perilune.core"
local ir = require "perilune.ir"
core.internal()

local subgraph = {}

local class = { __name = "subgraph" }

local function fail(format, ...)
  core.raise(core.diag("unsupported", format:format(...)))
end

-- The value operands of a node.
local function operands_of(node)
  if node.kind == "Call" then return node.args end
  if node.kind == "Tuple" then return node.fields end
  if node.kind == "TupleGetItem" then return { node.tuple } end
  return {}
end

-- The node with the images of its operands.
local function rebuilt(node, image)
  local operands = {}
  for i, operand in ipairs(operands_of(node)) do
    operands[i] = image[operand] or operand.kind == "Constant" and operand
      or fail("a replacement uses a %s that is none of its own values", operand.kind)
  end
  if node.kind == "Call" and node.op then return node:with { args = operands } end
  if node.kind == "Tuple" then return ir.Tuple(operands) end
  if node.kind == "TupleGetItem" then return ir.TupleGetItem(operands[1], node.index) end
  return fail("a subgraph has calls of operators, tuples and their fields, and no %s", node.kind)
end

local function function_of(mod, name, where)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail(("%s: a module expected, got %s"):format(where, argument.kind_of(mod)))
  end
  local fn = mod.functions[name]
  if not fn or fn.kind ~= "Function" then
    argument.fail(("%s: the module has no function @%s of operators"):format(where, name))
  end
  return fn
end

-- What is known of a function for all of its parts: its nodes in order, their places, their users.
local function index_of(fn)
  local self = { fn = fn, order = {}, place = {}, users = {} }
  for node in fn:nodes() do
    self.order[#self.order + 1] = node
    self.place[node] = #self.order
    local seen = {}
    local function use(operand)
      if seen[operand] then return end
      seen[operand] = true
      self.users[operand] = self.users[operand] or {}
      table.insert(self.users[operand], node)
    end
    for _, operand in ipairs(operands_of(node)) do use(operand) end
    -- What uses operands in another way: a branch, a let, a nested function.
    for i = 1, #node do use(node[i]) end
  end
  return self
end

-- ------------------------------------------------------------------ extracting

-- The chosen nodes, each once, in order; all lie in the function.
local function sorted_nodes(index, nodes, where)
  local list, seen = {}, {}
  for i, node in ipairs(nodes) do
    argument.node(node, where, ("node %d"):format(i))
    if not index.place[node] then
      argument.fail(("%s: node %d is none of the function's"):format(where, i))
    end
    if node.kind ~= "Constant" and not seen[node] then
      seen[node], list[#list + 1] = true, node
    end
  end
  if #list == 0 then argument.fail(where .. ": nodes: the list is empty") end
  table.sort(list, function(a, b) return index.place[a] < index.place[b] end)
  return list, seen
end

-- A part is convex: nothing outside of it lies between two of its nodes. The node that does.
local function between(index, list, chosen)
  local behind = {}
  for i = index.place[list[1]], index.place[list[#list]] do
    local node = index.order[i]
    for _, operand in ipairs(operands_of(node)) do
      if chosen[node] and behind[operand] then return operand end
      if not chosen[node] and (chosen[operand] or behind[operand]) then behind[node] = true end
    end
  end
end

local function is_used_outside(index, chosen, node)
  if node == index.fn.body then return true end
  for _, user in ipairs(index.users[node] or {}) do
    if not chosen[user] then return true end
  end
  return false
end

-- What the nodes use that is none of them, and what of them others use, in order.
local function boundary(index, list, chosen)
  local inputs, outputs, seen = {}, {}, {}
  for _, node in ipairs(list) do
    for _, operand in ipairs(operands_of(node)) do
      if not chosen[operand] and operand.kind ~= "Constant" and not seen[operand] then
        seen[operand], inputs[#inputs + 1] = true, operand
      end
    end
    if is_used_outside(index, chosen, node) then outputs[#outputs + 1] = node end
  end
  return inputs, outputs
end

local function build(list, inputs, outputs)
  local image, params, results = {}, {}, {}
  for i, node in ipairs(inputs) do
    params[i] = ir.Var(("p%d"):format(i - 1), node.type)
    image[node] = params[i]
  end
  for _, node in ipairs(list) do image[node] = rebuilt(node, image) end
  for i, node in ipairs(outputs) do results[i] = image[node] end
  return core.module { main = ir.Function(params, #results == 1 and results[1]
    or ir.Tuple(results)) }
end

local function part_of(index, list, chosen, name)
  local inputs, outputs = boundary(index, list, chosen)
  return setmetatable({ mod = build(list, inputs, outputs), inputs = inputs, outputs = outputs,
    nodes = list, name = name, whole = index.fn }, class)
end

-- ------------------------------------------------------------------- by pattern

-- Pattern objects whose nodes belong to a part: others match what it uses.
local inside = { CallPattern = true, TuplePattern = true, TupleGetItemPattern = true }

-- The nodes of a match at that root; nil where there is none that is free.
local function matched_nodes(pattern, root, taken)
  local map = pattern:extract_matched_expr(root)
  if not map then return nil end
  local list = {}
  for object, nodes in pairs(map) do
    for _, node in ipairs(inside[object.kind] and nodes or {}) do
      if taken[node] then return nil end
      list[#list + 1] = node
    end
  end
  return #list > 0 and list or nil
end

-- The parts that a pattern matches, from the results on; a node belongs to one of them.
local function matched_parts(index, pattern, name)
  local parts, taken = {}, {}
  for i = #index.order, 1, -1 do
    local root = index.order[i]
    local nodes = (root.op or root.kind == "Tuple" or root.kind == "TupleGetItem")
      and matched_nodes(pattern, root, taken)
    local list, chosen
    if nodes then list, chosen = sorted_nodes(index, nodes, "pl.tune.extract_subgraphs") end
    if list and not between(index, list, chosen) then
      for _, node in ipairs(list) do taken[node] = true end
      table.insert(parts, part_of(index, list, chosen, name))
    end
  end
  local n = #parts
  for i = 1, n // 2 do parts[i], parts[n + 1 - i] = parts[n + 1 - i], parts[i] end
  return parts
end

--- What is known of a function for all of its parts: order (nodes), place (their numbers), users.
function subgraph.index(mod, name, where) return index_of(function_of(mod, name, where)) end

--- The part of these nodes; nil where something outside lies between two of them.
function subgraph.part(index, nodes, name)
  local list, chosen = sorted_nodes(index, nodes, "pl.tune.placement")
  if between(index, list, chosen) then return nil end
  return part_of(index, list, chosen, name)
end

--- The parts that a pattern matches, one for each root that it has; they may have nodes in common.
function subgraph.matches(index, pattern, name)
  local parts = {}
  for _, root in ipairs(index.order) do
    local nodes = root.op and matched_nodes(pattern, root, {})
    parts[#parts + 1] = nodes and subgraph.part(index, nodes, name) or nil
  end
  return parts
end

local function is_pattern(x) return require "perilune.dataflow_pattern.pattern".is_pattern(x) end

--- The parts of a function that a dataflow pattern matches, in order; no two share a node. `name`:
-- the function, "main". Matches that something outside lies between are left out.
function subgraph.extract_all(mod, pattern, name)
  local where = "pl.tune.extract_subgraphs"
  name = argument.string(name or "main", where, "name")
  if not is_pattern(pattern) then
    argument.fail(("%s: pattern: a dataflow pattern expected, got %s"):format(where,
      argument.kind_of(pattern)))
  end
  return matched_parts(index_of(function_of(mod, name, where)), pattern, name)
end

--- A part of a function: { mod = (its @main has the inputs as parameters), inputs =, outputs =,
-- nodes = (of the whole), name = }. `what`: a list of nodes, or a dataflow pattern, whose first
-- match it is; nil where nothing matches. `name`: the function, "main".
function subgraph.extract(mod, what, name)
  local where = "pl.tune.extract_subgraph"
  if is_pattern(what) then return subgraph.extract_all(mod, what, name)[1] end
  name = argument.string(name or "main", where, "name")
  local index = index_of(function_of(mod, name, where))
  local list, chosen = sorted_nodes(index, argument.table(what, where, "nodes"), where)
  local node = between(index, list, chosen)
  if node then
    fail("the nodes are no subgraph: %s lies between two of them",
      node.op and node.op.name or node.kind)
  end
  return part_of(index, list, chosen, name)
end

-- ---------------------------------------------------------------- substituting

local function check_signature(part, new)
  local old = part.mod.functions.main
  if #new.params ~= #old.params then
    fail("the replacement has %d parameters, and the subgraph %d", #new.params, #old.params)
  end
  for i, param in ipairs(new.params) do
    if param.type ~= old.params[i].type then
      fail("parameter %d of the replacement is %s, and %s is expected", i, tostring(param.type),
        tostring(old.params[i].type))
    end
  end
  if new.body.type ~= old.body.type then
    fail("the replacement gives %s, and %s is expected", tostring(new.body.type),
      tostring(old.body.type))
  end
end

-- The nodes of the replacement over the inputs, as far as its result `result` needs them.
local function expand(new, inputs, result)
  local image, needed = {}, { [result] = true }
  for i, param in ipairs(new.params) do image[param] = inputs[i] end
  local order = {}
  for node in new:nodes() do order[#order + 1] = node end
  for i = #order, 1, -1 do
    if needed[order[i]] then
      for _, operand in ipairs(operands_of(order[i])) do needed[operand] = true end
    end
  end
  for _, node in ipairs(order) do
    if needed[node] and not image[node] and node.kind ~= "Constant" then
      image[node] = rebuilt(node, image)
    end
  end
  return image[result] or result
end

-- What stands for an output: the body, or its field.
local function result_of(part, new, k)
  if #part.outputs == 1 then return expand(new, part.inputs, new.body) end
  if new.body.kind == "Tuple" then return expand(new, part.inputs, new.body.fields[k]) end
  return ir.TupleGetItem(expand(new, part.inputs, new.body), k - 1)
end

-- Parts and replacements as lists of equal lengths.
local function pairs_of(parts, replacements, where)
  if getmetatable(parts) == class then
    parts, replacements = { parts }, { replacements }
  elseif argument.kind_of(replacements) == "Module" then
    argument.fail(where .. ": what pl.tune.extract_subgraph makes is expected")
  end
  argument.table(parts, where, "parts")
  argument.table(replacements, where, "replacements")
  for i, part in ipairs(parts) do
    if getmetatable(part) ~= class then
      argument.fail(where .. ": what pl.tune.extract_subgraph makes is expected")
    elseif part.name ~= parts[1].name then
      argument.fail(("%s: part %d is of another function than the first"):format(where, i))
    end
  end
  if #parts ~= #replacements then
    argument.fail(("%s: %d parts and %d replacements"):format(where, #parts, #replacements))
  end
  return parts, replacements
end

-- What stands for each output, a function by node.
local function replacements_by_node(fn, parts, replacements, where)
  local by_node = {}
  for i, part in ipairs(parts) do
    if fn ~= part.whole then
      argument.fail(("%s: @%s is not the function that the subgraph is of"):format(where,
        part.name))
    end
    local new = function_of(replacements[i], "main", where)
    check_signature(part, new)
    for k, node in ipairs(part.outputs) do
      if by_node[node] then argument.fail(where .. ": two parts have a node in common") end
      by_node[node] = function() return result_of(part, new, k) end
    end
  end
  return by_node
end

--- The module with a replacement (a module of the same @main) in place of the part; or with several
-- replacements in place of as many parts of one function, which have no node in common. What
-- outputs have in common is computed once for each of them; EliminateCommonSubexpr makes it one.
function subgraph.substitute(mod, parts, replacements)
  local where = "pl.tune.substitute"
  parts, replacements = pairs_of(parts, replacements, where)
  if #parts == 0 then return mod end
  local name = parts[1].name
  local fn = function_of(mod, name, where)
  local by_node = replacements_by_node(fn, parts, replacements, where)
  local function replace(node)
    if by_node[node] then return by_node[node]() end
  end
  return mod:with { [name] = core.mutate({ Call = replace, Tuple = replace,
    TupleGetItem = replace }, fn) }
end

-- ----------------------------------------------------------------------- tuning

-- Parts that are equal modules: { part =, members = (numbers) } in order.
local function groups_of(parts)
  local groups, by_hash = {}, {}
  for i, part in ipairs(parts) do
    local hash = core.module_hash(part.mod)
    local found
    for _, group in ipairs(by_hash[hash] or {}) do
      if core.module_equal(group.part.mod, part.mod) then found = group end
    end
    if not found then
      found = { part = part, members = {} }
      by_hash[hash] = by_hash[hash] or {}
      table.insert(by_hash[hash], found)
      groups[#groups + 1] = found
    end
    table.insert(found.members, i)
  end
  return groups
end

-- What of a module a function cannot take; nil if nothing.
local function obstacle(mod)
  for node in mod.functions.main:nodes() do
    if node.kind == "Call" and not node.op then return "a Call of a function" end
    if node.kind ~= "Call" and node.kind ~= "Tuple" and node.kind ~= "TupleGetItem"
      and node.kind ~= "Constant" and node.kind ~= "Var" and node ~= mod.functions.main then
      return "a " .. node.kind
    end
  end
end

--- Tunes parts of a function (a list of pl.tune.extract_subgraph's, or a pattern), equal ones once,
-- and puts what is found in their places: { mod =, groups = { { part =, count =, result = (of
-- pl.tune.search), reason = (why it is not used) } } }. `options`: of pl.tune.search, for each of
-- the different parts.
function subgraph.tune(mod, parts, options)
  local where = "pl.tune.tune_subgraphs"
  if is_pattern(parts) then parts = subgraph.extract_all(mod, parts) end
  parts = pairs_of(argument.table(parts, where, "parts"), table.move(parts, 1, #parts, 1, {}),
    where)
  local out, chosen, replacements = { groups = {} }, {}, {}
  for i, group in ipairs(groups_of(parts)) do
    local spec = { mod = group.part.mod }
    for name, value in pairs(argument.options(options, where)) do spec[name] = value end
    local result = require "perilune.tune.search".run(spec)
    local reason = obstacle(result.mod)
    for _, member in ipairs(reason and {} or group.members) do
      chosen[#chosen + 1], replacements[#replacements + 1] = parts[member], result.mod
    end
    out.groups[i] = { part = group.part, count = #group.members, result = result, reason = reason }
  end
  out.mod = subgraph.substitute(mod, chosen, replacements)
  return out
end

return subgraph
