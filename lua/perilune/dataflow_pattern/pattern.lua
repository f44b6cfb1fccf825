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

--- Whether an expression or operator matches, and, on demand, what each object matched.
function pattern.match(self, expr, map)
  if argument.kind_of(expr) == "Op" then expr = ir.Op(expr) end
  argument.node(expr, "match", "expr")
  return pattern.compiled(self):match(expr, map)
end

-- ----------------------------------------------------------------------- text

local function test_text(fields)
  if fields.kind == "TypePattern" then return "has_type " .. tostring(fields.type) end
  if fields.kind == "DataTypePattern" then return "has_dtype " .. fields.dtype end
  if fields.kind == "ShapePattern" then
    local dims = {}
    for i, dim in ipairs(fields.shape) do dims[i] = tostring(dim) end
    return ("has_shape (%s)"):format(table.concat(dims, ", "))
  end
  local names = {}
  for name in pairs(fields.attrs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do names[i] = name .. "=" .. tostring(fields.attrs[name]) end
  return ("has_attr {%s}"):format(table.concat(names, ", "))
end

-- A list of texts and objects: `open`, the objects between commas, `close`.
local function listed(open, objects, close, first)
  local parts = { open }
  for i = first or 1, #objects do
    parts[#parts + 1] = objects[i]
    parts[#parts + 1] = i < #objects and ", " or nil
  end
  parts[#parts + 1] = close
  return parts
end

local function call_parts(operands, any)
  local parts = any and { "(...)" } or listed("(", operands, ")", 2)
  table.insert(parts, 1, operands[1])
  return parts
end

-- Texts and objects whose text is that of an object, by its class.
local parts_of = {
  WildcardPattern = function(_, operands) return { operands[1] or "_" } end,
  ExprPattern = function(fields) return { (tostring(fields.expr):gsub("%s+$", "")) } end,
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
    return { operands[1], "." .. (fields.index or "_") }
  end,
  AltPattern = function(_, operands) return { "(", operands[1], " | ", operands[2], ")" } end,
  DominatorPattern = function(_, operands) return listed("dominates(", operands, ")") end,
}

local function parts_of_test(fields, operands)
  return { "(", operands[1], " " .. test_text(fields) .. ")" }
end

-- Names for objects that are operands more than once.
local function names_of(objects, operands)
  local uses, names, n = {}, {}, 0
  for _, object in ipairs(objects) do
    for _, operand in ipairs(operands[object]) do uses[operand] = (uses[operand] or 0) + 1 end
  end
  for _, object in ipairs(objects) do
    if (uses[object] or 0) > 1 and contents[object].kind ~= "ExprPattern" then
      n = n + 1
      names[object] = "?p" .. n
    end
  end
  return names
end

--- The pattern in the language of rules, as far as that has it: an object that is used
-- twice is a variable, spelled out where it comes first.
function class.__tostring(self)
  local objects, operands = list_objects(self)
  local names, spelled, texts, stack = names_of(objects, operands), {}, {}, { self }
  while #stack > 0 do
    local item = table.remove(stack)
    local name, fields = names[item], contents[item]
    if not fields then
      texts[#texts + 1] = item
    elseif spelled[item] then
      texts[#texts + 1] = name or "?recursive"
    else
      local _, any = operands_of(item)
      local parts = (parts_of[fields.kind] or parts_of_test)(fields, operands[item], any)
      spelled[item] = name or #operands[item] > 0
      texts[#texts + 1] = name and (parts[1] == "_" and #parts == 1 and "" or name .. "@")
      if name and parts[1] == "_" then parts = { name } end
      for i = #parts, 1, -1 do stack[#stack + 1] = parts[i] end
    end
  end
  return table.concat(texts)
end

return pattern
