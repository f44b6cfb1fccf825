--- pl.visitor, pl.post_order: looking at what an expression is made of.
--
--     local names = {}
--     local see = pl.visitor {
--       Call = function(call) names[#names + 1] = call.op and call.op.name end,
--       Function = { enter = function(fn) return not fn.attrs.Compiler end },
--       GlobalVar = function(g, visit) visit(mod.functions[g.name]) end,
--     }
--     see(fn)                               -- a node, or all functions of a module
--     for node in pl.post_order(fn) do print(node.kind) end
--
-- Each node is visited once, operands first: a function, or `leave`, is called
-- after all that the node is made of, `enter` before; an enter that gives
-- false leaves the node out. visit(other) has another node visited later.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local visitor = {}

local names, numbers = {}, {}
for i, row in ipairs(core.kinds()) do names[i], numbers[row.name] = row.name, i end

-- By name of a kind of type: the numbers of that name.
local types = {}
for i, name in ipairs(core.type_kinds()) do
  if not types[name] then types[name], names[#names + 1] = {}, name end
  table.insert(types[name], i)
end

local function is_module(program) return getmetatable(program) == "perilune.Module" end

-- The nodes that a program stands for.
local function roots(program)
  if not is_module(program) then return { program } end
  local list = {}
  for _, fn in pairs(program) do list[#list + 1] = fn end
  return list
end

local function refuse(message, ...) argument.fail("pl.visitor: " .. message:format(...)) end

local function pair_of(kind, functions)
  if type(functions) == "function" then return { leave = functions } end
  if type(functions) ~= "table" then
    refuse("a function, or { enter =, leave = }, is expected for '%s', not a %s", tostring(kind),
      type(functions))
  end
  for key, value in pairs(functions) do
    if key ~= "enter" and key ~= "leave" or type(value) ~= "function" then
      refuse("'%s' has enter and leave, which are functions, not '%s'", tostring(kind),
        tostring(key))
    end
  end
  return functions
end

local class = {
  __name = "visitor",
  __call = function(self, program)
    core.visit(roots(program), self.enter, self.leave, self.types)
  end,
}

local function add_kind(made, kind, value)
  local i = numbers[kind]
  if i then
    local own = pair_of(kind, value)
    made.enter[i], made.leave[i] = own.enter, own.leave
  elseif types[kind] and type(value) == "function" then
    made.types = made.types or {}
    for _, number in ipairs(types[kind]) do made.types[number] = value end
  elseif kind ~= "enter" and kind ~= "leave" or type(value) ~= "function" then
    argument.fail(("pl.visitor: no kind of node or type is called '%s'%s"):format(tostring(kind),
      core.suggest(tostring(kind), names)))
  end
end

--- A visitor: functions by kind of node; `enter` and `leave` for every kind that
-- has none of its own. Functions by kind of type (TensorType, TypeVar, ...) get
-- each distinct type of variables and functions, parts first.
function visitor.make(functions)
  local made = { enter = {}, leave = {} }
  argument.table(functions, "pl.visitor", "functions")
  for _, i in pairs(numbers) do
    made.enter[i], made.leave[i] = functions.enter, functions.leave
  end
  for kind, value in pairs(functions) do add_kind(made, kind, value) end
  return setmetatable(made, class)
end

--- Calls f for each node that `program` is made of, operands first, itself last;
-- without f, an iterator over them.
function visitor.post_order(program, f)
  if f then argument.callable(f, "pl.post_order", "f") end
  if not is_module(program) then
    if not f then return core.post_order(program) end
    for node in core.post_order(program) do f(node) end
    return
  end
  local list = roots(program)
  if f then
    for _, fn in ipairs(list) do visitor.post_order(fn, f) end
    return
  end
  local i, step = 0, nil
  return function()
    local node = step and step()
    while not node and i < #list do
      i = i + 1
      step = core.post_order(list[i])
      node = step()
    end
    return node
  end
end

return visitor
