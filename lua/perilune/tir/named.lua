-- Reads TVMScript whose names stand for given Vars and Buffers: declarations are put in front of
-- the text, and what they declare is replaced.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local walk = require "perilune.tir.walk"

local named = {}

local function dims_text(buffer)
  local dims = {}
  for i in ipairs(buffer.shape) do dims[i] = "1" end
  return #dims == 1 and dims[1] .. "," or table.concat(dims, ", ")
end

-- Buffers are declared with a shape of as many dims, for it is replaced.
local function declaration(name, of)
  if not name:find "^[%a_][%w_]*$" then
    argument.fail(("tir.parse_expr: '%s' is no name"):format(name))
  elseif of.kind == "Buffer" then
    return ("%s = T.Buffer((%s), %q)"):format(name, dims_text(of), of.dtype)
  elseif of.kind == "Var" then
    return ("%s = T.%s()"):format(name, of.dtype == "bool" and "boolean" or of.dtype)
  end
  argument.expected("a Var or Buffer", of)
end

local function is_declared(text, name)
  return text:find("^" .. name .. " = T%.") or text:find("\n" .. name .. " = T%.")
end

-- In the order of the names, so that messages say the same at each run.
local function declarations(text, names)
  local sorted, lines = {}, {}
  for name, of in pairs(names) do
    argument.string(name, "tir.parse_expr", "a name")
    argument.node(of, "tir.parse_expr", "a name's value")
    if text:find(name, 1, true) and not is_declared(text, name) then sorted[#sorted + 1] = name end
  end
  table.sort(sorted)
  for i, name in ipairs(sorted) do lines[i] = declaration(name, names[name]) .. "\n" end
  return table.concat(lines)
end

local function replaced(names)
  local function access(node)
    local buffer = names[node.buffer.name]
    if not buffer or buffer.kind ~= "Buffer" then return nil end
    if node.kind == "BufferLoad" then return operand.node("BufferLoad", { buffer,
      table.unpack(node.indices) }) end
    return nil
  end
  return access
end

local function is_parameter(combiner, var)
  for _, list in ipairs { combiner.lhs, combiner.rhs } do
    for _, parameter in ipairs(list) do if parameter == var then return true end end
  end
  return false
end

-- Calls visit(var) for the variables in the results and identities of a combiner that are not
-- its parameters.
local function visit_combiner(combiner, visit)
  local function visit_part(part)
    if part.kind == "Var" and not is_parameter(combiner, part) then visit(part) end
  end
  for _, list in ipairs { combiner.result, combiner.identity_element } do
    for _, value in ipairs(list) do walk.post_order(value, visit_part) end
  end
end

-- The Vars that the text declares, by those that they stand for.
local function free_vars(node, names)
  local values = {}
  local function visit(part)
    if part.kind == "Reduce" then visit_combiner(part.combiner, visit) end
    if part.kind ~= "Var" then return end
    local of = names[part.name]
    if of and of.kind == "Var" and of ~= part then values[part] = of end
  end
  walk.post_order(node, visit)
  return values
end

--- See perilune.tir.parse_expr.
function named.parse_expr(text, name, names)
  argument.string(text, "tir.parse_expr", "text")
  local node, problem = core.script_parse_expr(declarations(text, names) .. text, name)
  if not node then return nil, problem end
  node = walk.transform(node, nil, replaced(names), { "BufferLoad" })
  return walk.substitute(node, free_vars(node, names))
end

return named
