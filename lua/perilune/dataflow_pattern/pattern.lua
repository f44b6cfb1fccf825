--- Pattern objects, and their compilation for the engine (engine/rule/dataflow).
--
-- An object is an empty table with a metatable; what it has is in `contents`, so that
-- nothing changes after construction but where a wildcard is redirected. A pattern is
-- compiled when it is first used, and again after a redirection.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local ir = require "perilune.ir"

local pattern = { methods = {} }

local contents = setmetatable({}, { __mode = "k" })
local compiled = setmetatable({}, { __mode = "k" })

local class = { __name = "DFPattern" }

function class.__index(self, key)
  local method = pattern.methods[key]
  if method then return method end
  return contents[self][key]
end

function class.__newindex(_, key)
  argument.fail(("a dataflow pattern is immutable; '%s' cannot be set"):format(tostring(key)))
end

--- Adds metamethods to pattern objects.
function pattern.metamethods(functions)
  for name, f in pairs(functions) do class[name] = f end
end

--- A new pattern object; `kind` is TVM's name of its class.
function pattern.make(kind, fields)
  local self = setmetatable({}, class)
  fields.kind = kind
  contents[self] = fields
  return self
end

local function is_pattern(value) return getmetatable(value) == class end

--- A pattern, or the one that a node or operator stands for.
function pattern.as_pattern(value, where)
  if is_pattern(value) then return value end
  local kind = argument.kind_of(value)
  if kind == "Node" or kind == "Op" then return pattern.make("ExprPattern", { expr = value }) end
  argument.fail(("%s: a dataflow pattern expected, got %s"):format(where, kind))
end

function pattern.type(spec)
  if argument.kind_of(spec) == "Type" then return spec end
  if type(spec) ~= "table" then argument.string(spec, "has_type", "a type") end
  return ir.type(spec)
end

function pattern.find_op(name)
  if argument.kind_of(name) == "Op" then return name end
  return ir.find_op(name)
end

--- From now on the wildcard matches what `target` does. That may contain the wildcard:
-- then the pattern is recursive.
function pattern.methods:redirect_to(target)
  if self.kind ~= "WildcardPattern" then
    argument.fail(("a %s cannot be redirected; a wildcard can"):format(self.kind))
  end
  local fields = contents[self]
  fields.redirect = pattern.as_pattern(target, "redirect_to")
  for known in pairs(compiled) do compiled[known] = nil end
end

-- ---------------------------------------------------------------- compilation

-- By class: the engine's kind, the operands' fields in TVM's order (a list's ends
-- with "*"), and the field that has the value.
local rows = {
  WildcardPattern = { "wildcard", { "redirect" } },
  ExprPattern = { "expr", {}, "expr" },
  VarPattern = { "var", {}, "name" },
  ConstantPattern = { "constant", {} },
  CallPattern = { "call", { "op", "args*" } },
  FunctionPattern = { "function", { "params*", "body" } },
  LetPattern = { "let", { "var", "value", "body" } },
  IfPattern = { "if", { "cond", "true_branch", "false_branch" } },
  TuplePattern = { "tuple", { "fields*" } },
  TupleGetItemPattern = { "tuple_get_item", { "tuple" }, "index" },
  AltPattern = { "alt", { "left", "right" } },
  TypePattern = { "type", { "pattern" }, "type" },
  DataTypePattern = { "dtype", { "pattern" }, "dtype" },
  ShapePattern = { "shape", { "pattern" }, "shape" },
  AttrPattern = { "attr", { "pattern" }, "attrs" },
  DominatorPattern = { "dominator", { "parent", "path", "child" } },
}

-- The operands of an object, in TVM's order, and whether any number of them is allowed.
local function operands_of(object)
  local list, any, fields = {}, false, contents[object]
  for _, name in ipairs(rows[fields.kind][2]) do
    local field = name:match "^(.*)%*$"
    if not field then
      list[#list + 1] = fields[name]
    elseif fields[field] then
      table.move(fields[field], 1, #fields[field], #list + 1, list)
    else
      any = true
    end
  end
  return list, any
end

-- Objects in postorder, the operands of each, and their numbers.
local function list_objects(root)
  local objects, operands, numbers = {}, {}, {}
  local stack = { root }
  while #stack > 0 do
    local object = stack[#stack]
    if numbers[object] == nil then
      numbers[object], operands[object] = 0, (operands_of(object))
      for i = #operands[object], 1, -1 do
        if numbers[operands[object][i]] == nil then stack[#stack + 1] = operands[object][i] end
      end
    else
      stack[#stack] = nil
      if numbers[object] == 0 then
        objects[#objects + 1] = object
        numbers[object] = #objects
      end
    end
  end
  return objects, operands, numbers
end

-- What the engine is given of an object beside its operands.
local function row_of(object)
  local fields = contents[object]
  local kind, value = rows[fields.kind][1], fields[rows[fields.kind][3]]
  if kind == "expr" and argument.kind_of(value) == "Op" then kind = "op" end
  if kind == "expr" and value.kind == "Op" then kind, value = "op", value.op end
  if kind == "var" and value == "" then value = nil end
  if kind == "shape" then value = ir.type { shape = value } end
  local _, any = operands_of(object)
  return { kind = kind, value = value, any = any }
end

--- The engine's form of a pattern.
function pattern.compiled(root)
  local done = compiled[root]
  if done then return done end
  local objects, operands, numbers = list_objects(root)
  local list = {}
  for i, object in ipairs(objects) do
    local row = row_of(object)
    for k, operand in ipairs(operands[object]) do row[k] = numbers[operand] end
    list[i] = row
  end
  done = core.dataflow_pattern(list, objects, numbers[root])
  compiled[root] = done
  return done
end

--- The option `lets` of matching, rewriting and partitioning.
function pattern.lets(options, where)
  return argument.options(options, where, { "lets" }).lets or false
end

--- Whether an expression or operator matches, and, on demand, what each object matched.
function pattern.match(self, expr, map, options)
  local lets = pattern.lets(options, "match")
  if argument.kind_of(expr) == "Op" then expr = ir.Op(expr) end
  argument.node(expr, "match", "expr")
  return pattern.compiled(self):match(expr, map, lets)
end

-- ----------------------------------------------------------------------- text

local function value_text(value)
  if type(value) == "string" then return ('"%s"'):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local items = {}
  for i = 1, #value do items[i] = value_text(value[i]) end
  return ("[%s]"):format(table.concat(items, ", "))
end

-- `name=value, ...`, in order of the names.
local function attrs_text(attrs)
  local names = {}
  for name in pairs(attrs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do names[i] = name .. "=" .. value_text(attrs[name]) end
  return table.concat(names, ", ")
end

local function test_text(fields)
  if fields.kind == "TypePattern" then return "has_type " .. tostring(fields.type) end
  if fields.kind == "DataTypePattern" then return "has_dtype " .. fields.dtype end
  if fields.kind == "AttrPattern" then return ("has_attr {%s}"):format(attrs_text(fields.attrs)) end
  local dims = {}
  for i, dim in ipairs(fields.shape) do dims[i] = tostring(dim) end
  return ("has_shape (%s)"):format(table.concat(dims, ", "))
end

-- A list of texts and objects: `open`, the objects from `first` on between commas, `close`.
local function listed(open, objects, close, first)
  local parts = { open }
  for i = first or 1, #objects do
    parts[#parts + 1] = objects[i]
    parts[#parts + 1] = i < #objects and ", " or nil
  end
  parts[#parts + 1] = close
  return parts
end

-- The name of an operator, or of alternatives of them, as a call has it; nil for what else
-- may be called.
local function operator_text(object)
  local names, stack = {}, { object }
  while #stack > 0 do
    local fields = contents[table.remove(stack)]
    if fields.kind == "AltPattern" then
      stack[#stack + 1] = fields.right
      stack[#stack + 1] = fields.left
    elseif fields.kind == "ExprPattern" and argument.kind_of(fields.expr) == "Op" then
      names[#names + 1] = fields.expr.name
    else
      return nil
    end
  end
  return #names == 1 and names[1] or ("{%s}"):format(table.concat(names, "|"))
end

-- A call, with attributes as text or without.
local function call_parts(operands, any, attrs)
  local name = operator_text(operands[1])
  local tail = attrs and attrs ~= "" and attrs .. ")" or ")"
  local rest = any and "..." .. (tail == ")" and "" or ", ") or ""
  local some = (any or #operands > 1) and tail ~= ")" and not any and ", " or ""
  if name then return listed(name .. "(", operands, some .. rest .. tail, 2) end
  return listed("Call(", operands, (any and ", ..." or "") .. tail)
end

local function expr_text(expr)
  local constant = argument.kind_of(expr) == "Node" and expr.kind == "Constant" and expr.data
  if constant and #constant.shape == 0 then return value_text(constant:get()) end
  local text = argument.kind_of(expr) == "Node" and expr:text { metadata = false } or tostring(expr)
  return (text:gsub("%s+$", ""))
end

-- Texts and objects whose text is that of an object, by its class.
local parts_of = {
  WildcardPattern = function(_, operands) return { operands[1] or "_" } end,
  ExprPattern = function(fields) return { expr_text(fields.expr) } end,
  VarPattern = function(fields)
    return { fields.name == "" and "Var" or ('Var("%s")'):format(fields.name) }
  end,
  ConstantPattern = function() return { "Constant" } end,
  CallPattern = function(_, operands, any) return call_parts(operands, any) end,
  FunctionPattern = function(_, operands, any)
    return listed(any and "Function(..., " or "Function(", operands, ")")
  end,
  LetPattern = function(_, operands) return listed("Let(", operands, ")") end,
  IfPattern = function(_, operands) return listed("If(", operands, ")") end,
  TuplePattern = function(_, operands, any)
    return any and { "(...)" } or listed("(", operands, #operands == 1 and ",)" or ")")
  end,
  TupleGetItemPattern = function(fields, operands)
    return { "(", operands[1], ")." .. (fields.index or "_") }
  end,
  AltPattern = function(_, operands) return { "(", operands[1], " | ", operands[2], ")" } end,
  DominatorPattern = function(_, operands) return listed("dominates(", operands, ")") end,
}

-- The call of operators that an attribute pattern tests; nil for what else it may test.
local function tested_call(fields)
  if fields.kind ~= "AttrPattern" then return nil end
  local call = contents[fields.pattern]
  return call.kind == "CallPattern" and operator_text(call.op) and fields.pattern or nil
end

local function parts_of_test(fields, operands)
  local call = tested_call(fields)
  if not call then return { "(", operands[1], " " .. test_text(fields) .. ")" } end
  local inner, any = operands_of(call)
  return call_parts(inner, any, attrs_text(fields.attrs))
end

-- How often each object is an operand.
local function uses_of(objects, operands)
  local uses = {}
  for _, object in ipairs(objects) do
    for _, operand in ipairs(operands[object]) do uses[operand] = (uses[operand] or 0) + 1 end
  end
  return uses
end

-- Names for the objects that `wanted` selects.
local function names_of(objects, wanted)
  local names, n = {}, 0
  for _, object in ipairs(objects) do
    if contents[object].kind ~= "ExprPattern" and wanted(object) then
      n = n + 1
      names[object] = "?p" .. n
    end
  end
  return names
end

local MOST_PARTS = 10000 -- of the text of a rule's pattern

-- The text of an object and what it consists of. An object with a name is spelled out
-- where it comes first; in a rule everywhere, for the first place may be an alternative.
local function text_of(self, operands, names, where)
  local spelled, texts, stack = {}, {}, { self }
  while #stack > 0 do
    local item = table.remove(stack)
    local name, fields = names[item], contents[item]
    if not fields then
      texts[#texts + 1] = item
    elseif spelled[item] and not where then
      texts[#texts + 1] = name or "?recursive"
    else
      local _, any = operands_of(item)
      local parts = (parts_of[fields.kind] or parts_of_test)(fields, operands[item], any)
      spelled[item] = name or #operands[item] > 0
      local plain = parts[1] == "_"
      texts[#texts + 1] = name and (plain and name or name .. "@")
      for i = #parts, plain and name and 2 or 1, -1 do stack[#stack + 1] = parts[i] end
    end
    if where and #texts > MOST_PARTS then
      argument.fail(("%s: the pattern is too large for a rule"):format(where))
    end
  end
  return table.concat(texts)
end

--- The pattern in the language of rules, as far as that has it: an object that is used
-- twice is a variable.
function class.__tostring(self)
  local objects, operands = list_objects(self)
  local uses = uses_of(objects, operands)
  return text_of(self, operands, names_of(objects, function(object)
    return (uses[object] or 0) > 1
  end))
end

-- Why an object has no form in the language of rules; nil: it has one.
local function obstacle(object, operands)
  local fields = contents[object]
  local kind, _, any = fields.kind, operands_of(object)
  if kind == "WildcardPattern" then return #operands > 0 and "a redirected wildcard" end
  if kind == "LetPattern" or kind == "DominatorPattern" then return "a " .. kind end
  if kind == "TuplePattern" then return any and "a TuplePattern of any fields" end
  if kind == "TupleGetItemPattern" then return not fields.index and "a field of any index" end
  if kind == "ExprPattern" then
    local constant = argument.kind_of(fields.expr) == "Node" and fields.expr.data
    local scalar = constant and #constant.shape == 0
    return not (scalar or argument.kind_of(fields.expr) == "Op") and "an ExprPattern of a program"
  end
  return not parts_of[kind] and not tested_call(fields) and "a " .. kind
end

function pattern.is_pattern(value) return is_pattern(value) end

-- The names of variables in a rule. What is bound once has one name: an alternative that
-- is used twice has it, else its sides have theirs.
local function rule_names(objects, operands)
  local uses, sides = uses_of(objects, operands), {}
  for i = #objects, 1, -1 do
    local fields = contents[objects[i]]
    local named = (uses[objects[i]] or 0) > 1 or sides[objects[i]]
    if fields.kind == "AltPattern" and named then
      sides[fields.left], sides[fields.right] = true, true
    end
  end
  return names_of(objects, function(object)
    local alternative = contents[object].kind == "AltPattern" and (uses[object] or 0) < 2
    return not (alternative or sides[object] or operator_text(object))
  end)
end

-- Sets the names of alternatives to those of their sides, and of tested calls to those of
-- the tests. A list: the first that is bound.
local function rule_variables(objects, names)
  local variables = {}
  for _, object in ipairs(objects) do
    local fields, call = contents[object], tested_call(contents[object])
    local list = names[object] and { names[object]:sub(2) } or {}
    if fields.kind == "AltPattern" and not names[object] then
      for _, side in ipairs { fields.left, fields.right } do
        table.move(variables[side], 1, #variables[side], #list + 1, list)
      end
      -- A side that contains the other one binds both names.
      table.sort(list, function(a, b) return tonumber(a:sub(2)) > tonumber(b:sub(2)) end)
    end
    variables[object] = list
    if call then variables[call] = list end
  end
  return variables
end

--- The pattern in the language of rules, and the names of the variables that stand for each
-- object. Raises, naming `where`, for what that language does not have.
function pattern.rule_text(self, where)
  local objects, operands = list_objects(self)
  for _, object in ipairs(objects) do
    local why = obstacle(object, operands[object])
    if why then
      argument.fail(("%s: %s has no form in the language of rules; pl.dataflow_pattern.rewrite "
        .. "takes it"):format(where, why))
    end
  end
  local names = rule_names(objects, operands)
  return text_of(self, operands, names, where), rule_variables(objects, names)
end

return pattern
