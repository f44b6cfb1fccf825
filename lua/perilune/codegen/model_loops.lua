-- Loops of a compiled model: a call of `loop` or `scan` is a While of the entry. Called by
-- model.lua.
--
--     buffers: counter, go, carried values, stacked results
--     begin(trip count, condition, counter, go); carried values <- initial values
--     while go:
--       slices <- scanned operands [counter]; the rows of the body
--       stacked results [counter] <- results; carried values <- results; next(counter, go)
--
-- A loop with a constant number of rounds is a scan over 0, 1, ...: so the extents of what it
-- stacks are known (`counted`, `equal_sizes`). Other loops that stack results have extents by their
-- type, and fail if they run another number of rounds.

local core = require "perilune.core"
core.internal()

local ir = require "perilune.ir"
local model_plan = require "perilune.codegen.model_plan"
local operand = require "perilune.tir.operand"
local symbolic_dim = require "perilune.topi.symbolic_dim"
local tir = require "perilune.tir"

local add_row, flatten, refuse = model_plan.add_row, model_plan.flatten, model_plan.refuse

local loops = {}

--- Whether it is a call that repeats a function.
function loops.is_loop(node)
  local name = node.kind == "Call" and node.op and node.op.name
  return name == "loop" or name == "scan"
end

local function body_of(node)
  local body = node.args[node.attrs.body + 1]
  if body.kind ~= "Function" then refuse("a %s whose body is no function", node.op.name) end
  return body
end

-- ------------------------------------------------------------------ counted loops

-- The value of a constant of one element, or nil.
local function constant_of(node)
  if node.kind ~= "Constant" or node.type.rank > 1 or (node.type.shape[1] or 1) ~= 1 then
    return nil
  end
  local value = node.data:to_table()
  if type(value) == "table" then return value[1] end
  return value
end

-- Whether a condition of the body is true, or that of the round before.
local function stays_true(node, param)
  while node.kind == "Call" and node.op and node.op.name == "copy" do node = node.args[1] end
  return node == param or constant_of(node) == true
end

local MOST_ROUNDS = 1 << 24

-- The number of rounds, if it is constant.
local function rounds_of(call)
  local trip, condition = call.args[1], call.args[2]
  local body = body_of(call)
  local rounds = constant_of(trip)
  local starts = condition.kind == "Absent" or constant_of(condition) == true
  local result = body.body
  local continues = result.kind == "Tuple" and result.fields[1] or result
  if not rounds or not starts or not stays_true(continues, body.params[2]) then return nil end
  rounds = math.max(rounds, 0)
  return rounds <= MOST_ROUNDS and rounds or nil
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return ir.Constant(core.tensor(list, "int64", { n }))
end

-- While a function is rewritten, what contains scopes cannot be put into another function.
local function is_flat(body)
  for node in body:nodes() do
    if node ~= body and (node.kind == "If" or node.kind == "Function") then return false end
  end
  return true
end

-- The loop as a scan, or nil. Its condition is carried, too.
local function as_scan(call)
  local body, states = body_of(call), call.attrs.body - 2
  local fields = body.body.kind == "Tuple" and body.body.fields
  local rounds = fields and #fields > states + 1 and rounds_of(call)
  if not rounds or not is_flat(body) then return nil end
  local params = table.move(body.params, 2, 2 + states, 1, {})
  params[#params + 1] = body.params[1]
  local args = table.move(call.args, 3, 2 + states, 2, { ir.Constant(true, "bool") })
  args[#args + 1] = numbers(rounds)
  args[#args + 1] = ir.Function(params, body.body)
  local scan = ir.Call("scan", args, { body = #args - 1, num_scan_inputs = 1, n_results = #fields })
  local results = {}
  for i = 1, #fields - 1 do results[i] = ir.TupleGetItem(scan, i) end
  return #results > 1 and ir.Tuple(results) or results[1]
end

--- The function with loops of a constant number of rounds that stack results as scans.
function loops.counted(fn)
  for node in fn:nodes() do
    if loops.is_loop(node) and node.op.name == "loop" then
      local mutator = require "perilune.ir.mutator"
      return mutator.rewrite(fn, { Call = function(call)
        if loops.is_loop(call) and call.op.name == "loop" then return as_scan(call) end
      end })
    end
  end
  return fn
end

local function fields_of(type_) return type_.kind == "tuple" and type_.parts or { type_ } end

local function shape_of(type_) return type_ and type_.kind == "tensor" and type_.shape or {} end

-- Appends a pair of dims of which at least one has a name.
local function add_pair(list, a, b)
  if a and b and a ~= b and a ~= "?" and b ~= "?" then
    list[#list + 1] = { symbolic_dim.parse(a), symbolic_dim.parse(b) }
  end
end

local function add_pairs(list, a, b)
  for i, dim in ipairs(#a == #b and a or {}) do add_pair(list, dim, b[i]) end
end

-- What is carried on has the shape of the result; what is scanned that of the operand but an axis.
local function add_params(list, node)
  local is_scan = node.op.name == "scan"
  local scans = is_scan and node.attrs.num_scan_inputs or 0
  local first = is_scan and 0 or 2
  local states = node.attrs.body - first - scans
  local params, results = body_of(node).params, fields_of(node.type)
  for i = 1, states do
    if params[first + i] and results[i] then
      add_pairs(list, shape_of(params[first + i].type), shape_of(results[i]))
    end
  end
  for i = 1, scans do
    local row = table.move(shape_of(node.args[states + i].type), 1, 64, 1, {})
    local axis = (node.attrs.scan_input_axes or {})[i] or 0
    if #row > 0 then table.remove(row, (axis < 0 and axis + #row or axis) + 1) end
    if params[states + i] then add_pairs(list, shape_of(params[states + i].type), row) end
  end
end

-- The extent of what a loop stacks is its constant number of rounds.
local function add_rounds(list, node)
  local part = fields_of(node.type)[node.attrs.body - 1] -- behind the carried values
  local rounds = part and rounds_of(node)
  if rounds then add_pair(list, shape_of(part)[1], rounds) end
end

-- What both branches have is the shape of the result.
local function add_branches(list, node)
  local then_, else_ = fields_of(node.true_branch.type), fields_of(node.false_branch.type)
  for i, part in ipairs(fields_of(node.type)) do
    local a, b = shape_of(then_[i]), shape_of(else_[i])
    for k, dim in ipairs(shape_of(part)) do
      if a[k] == b[k] then add_pair(list, dim, a[k]) end
    end
  end
end

--- Pairs of dims that are equal: in and around loops and branches.
function loops.equal_sizes(fn)
  local list = {}
  for node in fn:nodes() do
    if loops.is_loop(node) then
      add_params(list, node)
      if node.op.name == "loop" then add_rounds(list, node) end
    elseif node.kind == "If" then
      add_branches(list, node)
    end
  end
  return list
end

-- ------------------------------------------------------------------------ nodes

--- Notes the bodies of loops: plan.bodies, and plan.owner: the innermost body that a node is in.
function loops.find(plan, fn)
  plan.owner, plan.bodies, plan.visited = {}, {}, {}
  for node in fn:nodes() do
    if loops.is_loop(node) then
      local body = body_of(node)
      plan.bodies[body] = true
      for inner in body:nodes() do
        if inner ~= body and not plan.owner[inner] then plan.owner[inner] = body end
      end
    end
  end
end

-- A body that is the operand of a second loop is visited again.
local function forget_values(plan, body)
  if plan.visited[body] then
    for inner in body:nodes() do
      if inner ~= body then plan.values[inner] = nil end
    end
  end
  plan.visited[body] = true
end

-- -------------------------------------------------------------------- functions

local function int64(value) return operand.const(value, "int64") end

-- What a step function is of: { step = "begin" or "next", trip = "value" (in memory), "size" (a
-- parameter) or nil, condition = true if there is one, kept = true if it is copied for the body,
-- limited = true if the number of rounds is a parameter, too }.
local function step_buffers(kind)
  local function buffer(dtype, name) return tir.decl_buffer({}, dtype, name) end
  local of = { counter = buffer("int64", "counter"), go = buffer("bool", "go") }
  if kind.trip == "value" then of.trip = buffer("int64", "trip") end
  if kind.trip == "size" then of.count = tir.Var("trip", "int64") end
  if kind.condition then of.condition = buffer("bool", "condition") end
  if kind.kept then of.kept = buffer("bool", "kept") end
  if kind.limited then of.rounds = tir.Var("rounds", "int64") end
  return of
end

local function step_params(of)
  local params = {}
  for _, name in ipairs { "trip", "condition", "counter", "go", "kept", "count", "rounds" } do
    params[#params + 1] = of[name]
  end
  return params
end

-- Whether a round follows.
local function goes_on(of)
  local counter = tir.BufferLoad(of.counter, {})
  local limit = of.count or of.trip and tir.BufferLoad(of.trip, {})
  local condition = of.condition and tir.BufferLoad(of.condition, {})
  local below = limit and tir.lt(counter, limit)
  return condition and below and tir.logical_and(condition, below) or condition or below
    or operand.const(true, "bool")
end

local ROUNDS = "a Loop runs another number of rounds than the shape of its result says"

-- counter = 0 or counter + 1; go = whether a round follows.
local function step_function(plan, kind)
  local name = table.concat({ "loop", kind.step, kind.trip or "endless",
    kind.kept and "kept" or kind.condition and "if" or "always",
    kind.limited and "limited" or nil }, "_")
  return model_plan.helper(plan, name, function()
    local of = step_buffers(kind)
    local at = kind.step == "begin" and int64(0) or tir.BufferLoad(of.counter, {}) + int64(1)
    local store = tir.BufferStore(of.go, goes_on(of), {})
    if of.rounds then
      local counter = tir.BufferLoad(of.counter, {})
      store = tir.AssertStmt(tir.eq(tir.BufferLoad(of.go, {}), tir.lt(counter, of.rounds)),
        tir.StringImm(ROUNDS), tir.Evaluate(0))
      store = tir.SeqStmt { tir.BufferStore(of.go, goes_on(of), {}), store }
    end
    local stmts = { tir.BufferStore(of.counter, at, {}), store }
    if of.kept then
      table.insert(stmts, 2, tir.BufferStore(of.kept, tir.BufferLoad(of.condition, {}), {}))
    end
    return step_params(of), tir.SeqStmt(stmts)
  end)
end

-- Copies the slice of index `counter` of the middle one of three axes; from it, or to it.
local function slice_function(plan, dtype, is_load)
  local name = (is_load and "slice_" or "stack_") .. dtype:gsub("%W", "_")
  return model_plan.helper(plan, name, function()
    local outer, extent, inner = tir.Var("outer", "int64"), tir.Var("extent", "int64"),
      tir.Var("inner", "int64")
    local reversed = tir.Var("reversed", "int64")
    local whole = tir.decl_buffer({ outer * extent * inner }, dtype, "whole")
    local part = tir.decl_buffer({ outer * inner }, dtype, "part")
    local counter = tir.decl_buffer({}, "int64", "counter")
    local at, o, i = tir.Var("at", "int64"), tir.Var("o", "int64"), tir.Var("i", "int64")
    local here, there = (o * extent + at) * inner + i, o * inner + i
    local copy = is_load and tir.BufferStore(part, tir.BufferLoad(whole, { here }), { there })
      or tir.BufferStore(whole, tir.BufferLoad(part, { there }), { here })
    local nest = tir.For(o, int64(0), outer, "serial", tir.For(i, int64(0), inner, "serial", copy))
    local round = tir.BufferLoad(counter, {})
    local index = tir.if_then_else(tir.eq(reversed, int64(0)), round, extent - int64(1) - round)
    local first, last = whole, part
    if not is_load then first, last = part, whole end
    return { first, counter, last, outer, extent, inner, reversed }, tir.LetStmt(at, index, nest)
  end)
end

-- What a slice along an axis of a shape is called with: outer, extent, inner.
local function sizes_around(plan, shape, axis)
  local sizes = { int64(1), int64(1), int64(1) }
  for i, dim in ipairs(shape) do
    local k = i <= axis and 1 or i == axis + 1 and 2 or 3
    sizes[k] = sizes[k] * plan.sizes:dim(dim).value
  end
  return sizes
end

local function add_slice(plan, row, type_, axis, reversed)
  if axis < 0 then axis = axis + #type_.shape end
  row.sizes = sizes_around(plan, type_.shape, axis)
  row.sizes[4] = int64(reversed and 1 or 0)
  row.name = slice_function(plan, type_.dtype, row.is_load)
  return add_row(plan, row)
end

-- ------------------------------------------------------------------------- rows

-- What a loop is: { node, body, states, scans (operands that are scanned), outputs (values), ... }.
local function read(plan, node)
  local is_scan = node.op.name == "scan"
  local scans = is_scan and node.attrs.num_scan_inputs or 0
  local first = is_scan and 1 or 3
  local one = { node = node, body = body_of(node), is_scan = is_scan, scans = scans, first = first,
    states = node.attrs.body - first + 1 - scans, start = #plan.calls + 1, used = {} }
  for i = first, first + one.states + scans - 1 do
    local value = plan.values[node.args[i]]
    if not value or not value.kind then refuse("a loop over a %s", node.args[i].kind) end
  end
  one.result = model_plan.new_buffers(plan, node.type, one.start)
  one.values = flatten(one.result, {})
  local stacked = not is_scan and one.values[one.states + 1]
  one.rounds = stacked and plan.sizes:dim(stacked.type.shape[1]).value or nil
  return one
end

local function new_scalar(plan, one, dtype)
  return model_plan.new_buffers(plan, ir.type(("Tensor[(), %s]"):format(dtype)), one.start)
end

-- The operand as a value, or nil.
local function given(plan, one, i)
  local value = not one.is_scan and plan.values[one.node.args[i]]
  return value or nil
end

local function add_buffers(plan, one)
  one.counter, one.go = new_scalar(plan, one, "int64"), new_scalar(plan, one, "bool")
  one.kept = not one.is_scan and new_scalar(plan, one, "bool") or nil
  local list = table.move(one.values, 1, #one.values, 3, { one.counter, one.go })
  list[#list + 1] = one.kept
  one.own = list
  add_row(plan, { branch = "buffers", results = list })
end

-- The rows' call of a step: "begin" or "next".
local function add_step(plan, one, step, condition)
  local trip = given(plan, one, 1)
  local kind = one.is_scan and "size" or trip and "value" or nil
  local args, targets = {}, { one.counter, one.go }
  if trip then args[1] = trip end
  if condition then args[#args + 1] = condition end
  if condition and condition ~= one.kept then targets[3] = one.kept end
  local sizes = {}
  if one.is_scan then
    local scanned = one.node.args[one.first + one.states]
    local axis = (one.node.attrs.scan_input_axes or { 0 })[1]
    if axis < 0 then axis = axis + #scanned.type.shape end
    sizes[1] = plan.sizes:dim(scanned.type.shape[axis + 1]).value
  end
  sizes[#sizes + 1] = one.rounds
  local name = step_function(plan, { step = step, trip = kind, condition = condition ~= nil,
    kept = targets[3] ~= nil, limited = one.rounds ~= nil })
  add_row(plan, { name = name, args = args, targets = targets, sizes = sizes })
end

-- The condition before the first round.
local function first_condition(plan, one)
  if one.is_scan then return nil end
  local condition = given(plan, one, 2)
  if condition then return condition end
  return plan.add_weight(plan, ir.Constant(true, "bool"))
end

local function begin_loop(plan, one)
  add_buffers(plan, one)
  add_step(plan, one, "begin", first_condition(plan, one))
  for i = 1, one.states do
    model_plan.copy(plan, plan.values[one.node.args[one.first + i - 1]], one.values[i])
  end
  plan.loops[#plan.loops + 1] = one
  add_row(plan, { branch = "loop", cond = one.go, args = { one.go } })
end

local function add_slices(plan, one)
  local attrs, body = one.node.attrs, one.body
  for i = 1, one.scans do
    local arg = one.node.args[one.first + one.states + i - 1]
    local param = body.params[one.states + i]
    local slice = model_plan.new_buffers(plan, param.type, #plan.calls + 1)
    add_slice(plan, { is_load = true, args = { plan.values[arg], one.counter },
      results = { slice } }, arg.type, (attrs.scan_input_axes or {})[i] or 0,
      (attrs.scan_input_directions or {})[i] == 1)
    plan.values[param] = slice
  end
end

local function bind_params(plan, one)
  local params = one.body.params
  local first = one.is_scan and 0 or 2
  if #params ~= first + one.states + one.scans then
    refuse "a loop of other operands than its body"
  end
  if not one.is_scan then
    plan.values[params[1]], plan.values[params[2]] = one.counter, one.kept
  end
  for i = 1, one.states do plan.values[params[first + i]] = one.values[i] end
end

local function stack_results(plan, one, results, first)
  local attrs = one.node.attrs
  for i = one.states + 1, #one.values do
    local k, to = i - one.states, one.values[i]
    add_slice(plan, { args = { results[first + i], one.counter }, targets = { to } }, to.type,
      (attrs.scan_output_axes or {})[k] or 0, (attrs.scan_output_directions or {})[k] == 1)
  end
end

-- A result that is a carried value of another place is put aside before that is overwritten.
local function put_aside(plan, one, results, first)
  local place, needed = {}, {}
  for i = 1, one.states do place[one.values[i]] = i end
  for i = 1, one.states do
    local value = results[first + i]
    if place[value] and place[value] ~= i then
      local copy = model_plan.new_buffers(plan, one.values[i].type, #plan.calls + 1)
      model_plan.copy(plan, value, copy).results = { copy }
      plan.calls[#plan.calls].targets = {}
      results[first + i] = copy
    end
    if place[value] then needed[value] = true end
  end
  return needed
end

-- The call that makes a result writes it to its place, if the old value is not needed any more.
local function may_share(one, value, state)
  return value.kind == "buffer" and not value.alias and not value.is_shared
    and value.first > state.last and value.first > one.start
end

local function carry_on(plan, one, results, first)
  local needed = put_aside(plan, one, results, first)
  for i = 1, one.states do
    local value, state = results[first + i], one.values[i]
    if value == state then -- luacheck: ignore 542
      -- It stays as it is.
    elseif not needed[state] and may_share(one, value, state) then
      value.alias = state
    else
      value.is_shared = true
      model_plan.copy(plan, value, state)
    end
  end
end

-- What a loop uses lives up to its end.
local function end_loop(plan, one)
  add_row(plan, { branch = "end loop", cond = one.go, args = { one.go } })
  plan.loops[#plan.loops] = nil
  local at = #plan.calls
  for value in pairs(one.used) do
    while value.alias do value = value.alias end
    value.last = math.max(value.last or at, at)
  end
  for _, value in ipairs(one.own) do value.last = at end
end

--- Adds the rows of a loop; visit(plan, body, body) adds those of its body. Its results.
function loops.add(plan, node, visit)
  local one = read(plan, node)
  begin_loop(plan, one)
  forget_values(plan, one.body)
  bind_params(plan, one)
  add_slices(plan, one)
  visit(plan, one.body, one.body)
  local results = flatten(plan.values[one.body.body], {})
  local first = one.is_scan and 0 or 1
  if #results ~= first + #one.values then refuse "a loop of other results than its body" end
  stack_results(plan, one, results, first)
  carry_on(plan, one, results, first)
  add_step(plan, one, "next", not one.is_scan and results[1] or nil)
  end_loop(plan, one)
  return one.result
end

return loops
