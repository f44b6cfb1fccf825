-- Visitors and mutators of TIR: PrimExprs, statements and PrimFuncs,
-- in the order of TVM's StmtExprVisitor. Its functions are perilune.tir's.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local expr = require("perilune.tir.operand").expr
local walk = require "perilune.tir.depth_first"

local walks = {}

local kind_number, class_of = {}, {}
for number, row in ipairs(core.kinds()) do
  kind_number[row.name], class_of[row.name] = number, row.class
end

-- Kinds that hold PrimExprs but are none: walked through, never visited.
local transparent = {
  Range = true, BufferRegion = true, IterVar = true, BlockReads = true, BlockWrites = true,
  MatchBuffer = true, BlockInit = true, AllocBuffer = true, BufferBind = true,
  Array = true,
}

local function visits(kind)
  if transparent[kind] then return false end
  local class = class_of[kind]
  return class == "prim" or class == "stmt" or kind == "Var"
end

local function nothing() return nil end

--- Calls visit(node) for each PrimExpr and statement, operands and bodies first.
function walks.post_order(root, visit)
  argument.callable(visit, "tir.post_order", "visit")
  walk(core.seal(root), nothing, function(node_, _, kind)
    if visits(kind) then visit(node_) end
    return node_
  end)
end

--- Calls visit(node) before its parts; false leaves them out.
function walks.pre_order(root, visit)
  argument.callable(visit, "tir.pre_order", "visit")
  walk(core.seal(root), function(node_, kind)
    if visits(kind) and visit(node_) == false then return node_ end
    return nil
  end, function(node_) return node_ end)
end

local function chosen(only)
  if only == nil then return visits end
  local set = {}
  for _, name in ipairs(argument.table(only, "tir.transform", "only")) do
    name = argument.string(name, "tir.transform", "a kind"):gsub("^tir%.", "")
    if kind_number[name] == nil then
      argument.fail(("no kind is called '%s'"):format(name))
    end
    set[name] = true
  end
  return function(kind) return set[kind] end
end

--- Rewrites a function or statement: pre(node) may give what stands for a node, and then its
-- parts are left alone; else post(node), the node with rewritten parts, may. `only` lists the
-- kinds that both are called for.
function walks.transform(root, pre, post, only)
  local wanted = chosen(only)
  if pre then argument.callable(pre, "tir.transform", "pre") end
  if post then argument.callable(post, "tir.transform", "post") end
  return walk(core.seal(root), function(node_, kind)
    if pre and wanted(kind) then return expr(pre(node_)) end
    return nil
  end, function(_, rebuilt, kind)
    if post and wanted(kind) then
      local instead = post(rebuilt)
      if instead ~= nil then return expr(instead) end
    end
    return rebuilt
  end)
end

--- The statement, function or PrimExpr with other values for free variables: a table from Vars
-- to PrimExprs.
function walks.substitute(root, values)
  local list = {}
  for var, value in pairs(argument.table(values, "tir.substitute", "values")) do
    argument.node(var, "tir.substitute", "a variable")
    list[#list + 1] = { var, expr(value, var.dtype) }
  end
  return walk(core.seal(root), function(node_, kind)
    if kind ~= "Var" then return nil end
    for _, pair in ipairs(list) do
      if pair[1] == node_ then return pair[2] end
    end
    return node_
  end, function(_, rebuilt) return rebuilt end, true)
end

return walks
