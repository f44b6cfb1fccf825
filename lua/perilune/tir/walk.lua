-- Visitors and mutators of the loop level: PrimExprs, statements and PrimFuncs,
-- in the order of TVM's StmtExprVisitor. Its functions are perilune.tir's.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local expr = require("perilune.tir.operand").expr

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
-- Operands that define, or that TVM's visitors pass over: the first so many.
local passed_over = {
  BufferLoad = 1, BufferStore = 1, ProducerLoad = 1, BufferRegion = 1,
  AttrStmt = 1, PrimLet = 1, IterVar = 1, DeclBuffer = 1,
  AllocBuffer = 1, MatchBuffer = 1, BufferBind = 2, Prefetch = 1,
}

local function visits(kind)
  if transparent[kind] then return false end
  local class = class_of[kind]
  return class == "prim" or class == "stmt" or kind == "Var"
end

-- ---------------------------------------------------------------- the order

-- Numbers from first to last, of each pair.
local function spans(...)
  local out = {}
  for _, span in ipairs { ... } do
    for i = span[1], span[2] do out[#out + 1] = i end
  end
  return out
end

-- The parts of a node in the order in which TVM visits them, where that is not the order of
-- its operands and then its bodies. `k` of its `n` parts are operands.
local orders = {
  Allocate = function(_, k, n) return spans({ 2, k }, { k + 1, n }, { 1, 1 }) end,
  BufferRealize = function(_, k, n) return spans({ 3, k }, { 2, 2 }, { k + 1, n }) end,
  ProducerRealize = function(_, k, n) return spans({ 3, k }, { k + 1, n }, { 2, 2 }) end,
  ProducerStore = function(_, _, n) return spans({ 3, n }, { 2, 2 }) end,
  BlockRealize = function(_, k, n) return spans({ 2, k }, { 1, 1 }, { k + 1, n }) end,
  For = function(_, k, n) return spans({ 1, 2 }, { k + 1, n }) end,
  Shuffle = function(node, _, n)
    local vectors = #node.vectors
    return spans({ vectors + 1, n }, { 1, vectors })
  end,
  Reduce = function(node, _, n)
    local axes = 3 + #node.source + #node.init
    return spans({ axes, n }, { 3, axes - 1 }, { 2, 2 })
  end,
}

-- --------------------------------------------------------------- the walk

-- Walks a sealed node depth first with a stack of its own. enter(node) gives
-- a replacement, and then its parts are left alone; leave(node, rebuilt) gives
-- the result. Each node is walked once; `deep` walks into buffers too, and over
-- every operand.
local function walk(root, enter, leave, deep)
  local results, stack = {}, {}
  local top = 0
  local function open(node_)
    local kind = node_.kind
    local replaced = enter(node_, kind)
    if replaced ~= nil then
      results[node_] = replaced
      return
    end
    local parts, n, operands, first = core.loop_parts(node_)
    local order = not deep and orders[kind] and orders[kind](node_, operands, n)
    top = top + 1
    stack[top] = {
      node = node_, kind = kind, parts = parts, order = order or nil,
      n = order and #order or n, first = first, changed = false,
      at = (deep or order) and 0 or math.min(passed_over[kind] or 0, operands),
    }
  end
  -- The result of the part at `frame.slot` takes its place.
  local function take(frame, part)
    local result = results[part]
    if not rawequal(result, part) then frame.parts[frame.slot], frame.changed = result, true end
  end
  local function close(frame)
    local rebuilt = frame.node
    if frame.changed then
      rebuilt = core.loop_rebuild(frame.node, frame.parts, frame.first)
    end
    results[frame.node] = leave(frame.node, rebuilt, frame.kind) or rebuilt
  end
  open(root)
  while top > 0 do
    local frame = stack[top]
    if frame.pending then
      take(frame, frame.pending)
      frame.pending = nil
    end
    frame.at = frame.at + 1
    frame.slot = frame.order and frame.order[frame.at] or frame.at
    if frame.at > frame.n then
      stack[top] = nil
      top = top - 1
      close(frame)
    else
      local part = frame.parts[frame.slot]
      if results[part] ~= nil then
        take(frame, part)
      elseif deep or part.kind ~= "Buffer" then
        frame.pending = part
        open(part)
      end
    end
  end
  return results[root]
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
      error(("no kind is called '%s'"):format(name), 3)
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
