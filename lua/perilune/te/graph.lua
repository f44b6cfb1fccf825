-- Analyses of the graph of operations that a scan is part of: TVM's te.schedule.ScanGetBody and
-- ScanFixPointAnalysis (src/te/schedule/graph.cc).

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operation = require "perilune.te.operation"
local walk = require "perilune.tir.walk"

local graph = {}

-- ------------------------------------------------------------------- order

--- The operations that some read, each behind those that it reads. `known`: a set of operations
-- beyond which is not looked.
function graph.post_order(ops, known)
  local order, state, stack = {}, {}, {}
  for i = #ops, 1, -1 do stack[#stack + 1] = ops[i] end
  while #stack > 0 do
    local op = stack[#stack]
    if not state[op] and not (known and known[op]) then
      state[op] = "entered"
      for i = #op.inputs, 1, -1 do
        if not state[op.inputs[i]] then stack[#stack + 1] = op.inputs[i] end
      end
    else
      stack[#stack] = nil
      if state[op] == "entered" then order[#order + 1] = op end
      state[op] = "listed"
    end
  end
  return order
end

local function scan_of(value, where)
  if operation.is_tensor(value) then value = value.op end
  if not operation.is_operation(value) or value.kind ~= "ScanOp" then
    argument.fail(where .. ": a scan is expected")
  end
  return value
end

-- The operations of `order` that depend on one of the set, and are not in it.
local function dependents(order, set)
  local out, reaches = {}, {}
  for _, op in ipairs(order) do
    for _, input in ipairs(op.inputs) do
      reaches[op] = reaches[op] or set[input] or reaches[input]
    end
    if reaches[op] and not set[op] then out[#out + 1] = op end
  end
  return out
end

local function ops_of(tensors, set)
  local list = {}
  for i, tensor in ipairs(tensors) do
    list[i] = tensor.op
    if set then set[tensor.op] = true end
  end
  return list
end

--- The operations between the state of a scan and its updates, each behind those that it reads.
function graph.scan_body(scan)
  scan = scan_of(scan, "te.schedule.ScanGetBody")
  local states = {}
  ops_of(scan.state_placeholder, states)
  return dependents(graph.post_order(ops_of(scan.update)), states)
end

-- ----------------------------------------------------------------- fix point
--
-- A dimension of a tensor is a text. Axis of a scan's dimension k: that which all reads between
-- state and update keep as dimension k.

local function key_of(buffer, k) return ("%d.%d"):format(core.te_identity(buffer), k) end

local function new_analysis() return { reached = {}, failed = {}, reads = {} } end

-- Dimension `to` is indexed by what reaches `from`.
local function merge(a, to, from)
  local axis = a.reached[from]
  if not axis then return end
  if not a.reached[to] then
    a.reached[to] = axis
  elseif a.reached[to] ~= axis then
    a.failed[axis], a.failed[a.reached[to]] = true, true
  end
end

local function add_read(a, from, to)
  a.reads[from] = a.reads[from] or {}
  table.insert(a.reads[from], to)
end

-- Whose dimensions an axis variable is, by the identity of the variable.
local function dimensions_of(op)
  local out = {}
  for k, axis in ipairs(op.axis) do
    local keys = {}
    for i, tensor in ipairs(op.outputs) do keys[i] = key_of(tensor.buffer, k) end
    out[core.te_identity(axis)] = keys
  end
  return out
end

local function add_load(a, dimensions, load)
  for k = 2, #load do
    local index, from = load[k], key_of(load.producer, k - 1)
    local keys = index.kind == "Var" and dimensions[core.te_identity(index)]
    if keys then
      for _, to in ipairs(keys) do
        merge(a, to, from)
        add_read(a, to, from)
      end
    else
      if a.reached[from] then a.failed[a.reached[from]] = true end
      -- Every axis in the index depends on the dimension.
      walk.post_order(index, function(node)
        local used = node.kind == "Var" and dimensions[core.te_identity(node)]
        for _, to in ipairs(used or {}) do add_read(a, to, from) end
      end)
    end
  end
end

local function add_compute(a, op)
  local dimensions = dimensions_of(op)
  for _, body in ipairs(op.body) do
    walk.post_order(body, function(node)
      if node.kind == "ProducerLoad" then add_load(a, dimensions, node) end
    end)
  end
end

local function add_scan(a, op)
  for i, tensor in ipairs(op.outputs) do
    for k = 1, tensor.ndim do
      local to = key_of(tensor.buffer, k)
      for _, source in ipairs { op.update[i], op.init[i] } do
        if k > 1 then merge(a, to, key_of(source.buffer, k)) end
        add_read(a, to, key_of(source.buffer, k))
      end
    end
  end
end

-- Whether a dimension depends on one of the states' other than `target`.
local function reaches_other(a, from, target, states)
  local stack, seen = { from }, { [from] = true }
  while #stack > 0 do
    local key = table.remove(stack)
    if states[key] and key ~= target then return true end
    for _, read in ipairs(not states[key] and a.reads[key] or {}) do
      if not seen[read] then
        seen[read] = true
        stack[#stack + 1] = read
      end
    end
  end
  return false
end

-- The axes of a scan behind its first as { axis, state, update, dimension }.
local function spatial_axes(scan)
  local out = {}
  for i, state in ipairs(scan.state_placeholder) do
    for k = 2, state.ndim do
      out[#out + 1] = { axis = scan.axis[#out + 2], state = key_of(state.buffer, k),
        update = key_of(scan.update[i].buffer, k) }
    end
  end
  return out
end

local function is_fixed(a, row, states)
  return not a.failed[row] and a.reached[row.update] == row
    and not reaches_other(a, row.update, row.state, states)
end

--- Of the axes of a scan but the first, which are fixed: each step reads the state at the very
-- index that it writes. The list has 1 for a fixed axis and 0 for another one.
function graph.scan_fix_point(scan)
  scan = scan_of(scan, "te.schedule.ScanFixPointAnalysis")
  local a, states, rows, out = new_analysis(), {}, spatial_axes(scan), {}
  for _, state in ipairs(scan.state_placeholder) do
    for k = 1, state.ndim do states[key_of(state.buffer, k)] = true end
  end
  for _, row in ipairs(rows) do a.reached[row.state] = row end
  for _, op in ipairs(graph.scan_body(scan)) do
    if op.kind == "ScanOp" then add_scan(a, op)
    elseif op.kind == "ComputeOp" then add_compute(a, op)
    end
  end
  for i, row in ipairs(rows) do out[i] = is_fixed(a, row, states) and 1 or 0 end
  return out
end

return graph
