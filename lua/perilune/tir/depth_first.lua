-- The walk of TIR: a PrimExpr, statement or PrimFunc and what it is
-- made of, in the order of TVM's StmtExprVisitor, put together again on the way
-- back. Called by tir.post_order and its like, and by pl.mutator.

local core = require "perilune.core"
core.internal()

-- Operands that define, or that TVM's visitors pass over: the first so many.
local passed_over = {
  BufferLoad = 1, BufferStore = 1, ProducerLoad = 1, BufferRegion = 1,
  AttrStmt = 1, PrimLet = 1, IterVar = 1, DeclBuffer = 1,
  AllocBuffer = 1, MatchBuffer = 1, BufferBind = 2, Prefetch = 1,
}

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

return walk
