--- pl.tune.extract_subgraph, pl.tune.substitute: a part of a function as a module that runs alone,
-- and the way back.
--
--     local part = pl.tune.extract_subgraph(mod, nodes)
--     local result = pl.tune.search { mod = part.mod }
--     local out = pl.tune.substitute(mod, part, result.mod)
--
-- The part consists of calls of operators, tuples and their fields. Constants go with it;
-- what else it uses are its inputs, what others use of it its outputs. Equal parts are equal
-- modules with equal parameters, and so one workload of a database.

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

-- ------------------------------------------------------------------ extracting

-- The chosen nodes as a set; all lie in the function.
local function set_of(fn, nodes)
  local chosen, present, n = {}, {}, 0
  for node in fn:nodes() do present[node] = true end
  for i, node in ipairs(argument.table(nodes, "pl.tune.extract_subgraph", "nodes")) do
    argument.node(node, "pl.tune.extract_subgraph", ("node %d"):format(i))
    if not present[node] then
      argument.fail(("pl.tune.extract_subgraph: node %d is none of the function's"):format(i))
    end
    if node.kind ~= "Constant" then chosen[node], n = true, n + 1 end
  end
  if n == 0 then argument.fail "pl.tune.extract_subgraph: nodes: the list is empty" end
  return chosen
end

-- A part is convex: nothing outside of it lies between two of its nodes.
local function check_convex(fn, chosen)
  local behind = {}
  for node in fn:nodes() do
    for _, operand in ipairs(operands_of(node)) do
      if chosen[node] and behind[operand] then
        fail("the nodes are no subgraph: %s lies between two of them",
          operand.op and operand.op.name or operand.kind)
      end
      if not chosen[node] and (chosen[operand] or behind[operand]) then behind[node] = true end
    end
  end
end

-- What the nodes use that is none of them, and what of them others use, in order.
local function boundary(fn, chosen)
  local inputs, outputs, used, seen = {}, {}, {}, {}
  for node in fn:nodes() do
    for _, operand in ipairs(operands_of(node)) do
      if not chosen[node] then
        used[operand] = true
      elseif not chosen[operand] and operand.kind ~= "Constant" and not seen[operand] then
        seen[operand], inputs[#inputs + 1] = true, operand
      end
    end
    -- What uses operands in another way: a branch, a let, a nested function.
    if not chosen[node] then
      for i = 1, #node do used[node[i]] = true end
    end
  end
  used[fn.body] = true
  for node in fn:nodes() do
    if chosen[node] and used[node] then outputs[#outputs + 1] = node end
  end
  return inputs, outputs
end

local function build(fn, chosen, inputs, outputs)
  local image, params, results = {}, {}, {}
  for i, node in ipairs(inputs) do
    params[i] = ir.Var(("p%d"):format(i - 1), node.type)
    image[node] = params[i]
  end
  for node in fn:nodes() do
    if chosen[node] then image[node] = rebuilt(node, image) end
  end
  for i, node in ipairs(outputs) do results[i] = image[node] end
  return core.module { main = ir.Function(params, #results == 1 and results[1]
    or ir.Tuple(results)) }
end

--- A part of a function: { mod = (its @main has the inputs as parameters), inputs =, outputs = (the
-- nodes that they are in the whole), name = }. `nodes`: a list; `name`: the function, "main".
function subgraph.extract(mod, nodes, name)
  name = argument.string(name or "main", "pl.tune.extract_subgraph", "name")
  local fn = function_of(mod, name, "pl.tune.extract_subgraph")
  local chosen = set_of(fn, nodes)
  check_convex(fn, chosen)
  local inputs, outputs = boundary(fn, chosen)
  return setmetatable({ mod = build(fn, chosen, inputs, outputs), inputs = inputs,
    outputs = outputs, name = name, whole = fn }, class)
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

--- The module with a replacement (a module of the same @main) in place of the part. What outputs
-- have in common is computed once for each of them; EliminateCommonSubexpr makes it one.
function subgraph.substitute(mod, part, replacement)
  local where = "pl.tune.substitute"
  if getmetatable(part) ~= class then
    argument.fail(where .. ": what pl.tune.extract_subgraph makes is expected")
  end
  local fn = function_of(mod, part.name, where)
  if fn ~= part.whole then
    argument.fail(("%s: @%s is not the function that the subgraph is of"):format(where, part.name))
  end
  local new = function_of(replacement, "main", where)
  check_signature(part, new)
  local index = {}
  for k, node in ipairs(part.outputs) do index[node] = k end
  local function replace(node)
    if index[node] then return result_of(part, new, index[node]) end
  end
  return mod:with { [part.name] = core.mutate({ Call = replace, Tuple = replace,
    TupleGetItem = replace }, fn) }
end

return subgraph
