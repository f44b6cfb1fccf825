-- A model as generated C: the main function of Relay code whose calls are those of PrimFuncs
-- (LowerTE) becomes a PrimFunc too, in destination-passing style:
--     main(inputs, weights, outputs)
-- `weights` are the bytes of all constants, each at a multiple of 64. What is computed in between
-- lies in one arena, which is planned by lifetimes: a value gets the smallest free part that it
-- fits.
--
-- An If of the main function is one of the entry: both branches write their results to the buffers
-- of its result. So is a loop (model_loops.lua).
--
-- Sizes may be symbolic (model_sizes.lua): the entry reads them from the shapes of the inputs. What
-- has a symbolic size lies in slots behind the rest of the arena, one after the other; values that
-- are not needed at the same time share a slot, which is as long as the longest of them.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local decision = require "perilune.topi.decision"
local external = require "perilune.codegen.external"
local ir = require "perilune.ir"
local model_loops = require "perilune.codegen.model_loops"
local model_plan = require "perilune.codegen.model_plan"
local model_sizes = require "perilune.codegen.model_sizes"
local operand = require "perilune.tir.operand"
local pass = require "perilune.pass"
local symbolic_dim = require "perilune.topi.symbolic_dim"
local tir = require "perilune.tir"

local model = {}

--- The function of the C source that runs the model.
model.entry = "tvmgen_default___tvm_main__"

local add_row, flatten = model_plan.add_row, model_plan.flatten
local check_type, new_buffers = model_plan.check_type, model_plan.new_buffers
local refuse = model_plan.refuse

local function aligned(bytes)
  return (bytes + model_plan.ALIGNMENT - 1) // model_plan.ALIGNMENT * model_plan.ALIGNMENT
end

-- ------------------------------------------------------------------ lowering

local function is_own_buffer(node)
  return node.kind ~= "Var" and node.kind ~= "Constant"
end

-- Results are buffers of their own: inputs, constants and what is returned twice are copied.
local function with_own_results(fn)
  local body, seen = fn.body, {}
  local fields = body.kind == "Tuple" and body.fields or { body }
  local changed = false
  for i, field in ipairs(fields) do
    if field.type.kind == "tensor" and (not is_own_buffer(field) or seen[field]) then
      fields[i], changed = ir.Call("copy", { field }), true
    end
    seen[field] = true
  end
  if not changed then return fn end
  local result = body.kind == "Tuple" and ir.Tuple(fields) or fields[1]
  return ir.Function(fn.params, result, { attrs = fn.attrs })
end

local function calls_loops(fn)
  for node in fn:nodes() do
    if node.kind == "Call" and node.op and node.op.name == "call_lowered" then return true end
  end
  return false
end

-- A type whose unknown dims have names that no symbol of the function has.
local function named_type(type_, name, taken)
  local dims = {}
  for i, dim in ipairs(type_.shape) do
    dims[i] = dim
    if dim == "?" then
      local new = ("%s_%d"):format(name, i - 1)
      while taken[new] do new = new .. "_" end
      taken[new], dims[i] = true, new
    end
  end
  return ir.type(("Tensor[(%s), %s]"):format(table.concat(dims, ", "), type_.dtype))
end

local function symbols_of(fn)
  local taken = {}
  for _, param in ipairs(fn.params) do
    for _, dim in ipairs(param.type.kind == "tensor" and param.type.shape or {}) do
      if dim ~= "?" then symbolic_dim.symbols(symbolic_dim.parse(dim), taken) end
    end
  end
  return taken
end

--- The module whose inputs have a symbol for each dim that is not known.
function model.with_named_dims(mod)
  local main = mod.functions.main
  if not main or main.kind ~= "Function" then return mod end
  local params, changed, any, taken = {}, {}, false, symbols_of(main)
  for i, param in ipairs(main.params) do
    local type_ = param.type
    params[i] = param
    if type_.kind == "tensor" and type_.shape and table.concat(type_.shape, ","):find("?", 1, true)
    then
      local name = (param.name or ""):gsub("%W", "_")
      params[i] = ir.Var(param.name or ("input" .. i),
        named_type(type_, name:find "^%a" and name or "input" .. i, taken))
      changed[param], any = params[i], true
    end
  end
  if not any then return mod end
  local fn = ir.Function(params, require "perilune.ir.vars".bind(main.body, changed),
    { attrs = main.attrs })
  return pass.sequential { "InferType" } (mod:with { main = fn })
end

-- Shapes of all that is computed, before functions become loops: { shape, of what }.
local function shapes_in(mod)
  local list, seen = {}, {}
  local function add(type_, what)
    for _, part in ipairs(type_.kind == "tuple" and type_.parts or { type_ }) do
      if part.kind == "tuple" then
        add(part, what)
      elseif part.kind == "tensor" and part.shape and symbolic_dim.is_symbolic(part) then
        local key = table.concat(part.shape, ",")
        if not seen[key] and not key:find("?", 1, true) then
        list[#list + 1] = { part.shape, what }
      end
        seen[key] = true
      end
    end
  end
  for node in mod.functions.main:nodes() do
    if node.kind == "Call" and node.type then
      add(node.type, node.op and ("a result of '%s'"):format(node.op.name) or "a result")
    end
  end
  return list
end

-- Calls of fused functions of a module whose unknown dims have names.
local function fused_of(mod)
  mod = mod:with { main = model_loops.counted(mod.functions.main) }
  local folded = pass.sequential { "qnn.CanonicalizeOps", "InferType",
    'FoldConstant{fold="all"}' } (mod)
  folded = folded:with { main = with_own_results(folded.functions.main) }
  return pass.sequential { "InferType", "FuseOps" } (folded)
end

--- The module with calls of fused functions: what LowerTE is given for a model.
function model.fused(mod) return fused_of(model.with_named_dims(mod)) end

-- The module with calls of PrimFuncs only, shapes_in it, and pairs of dims that are equal.
local function lowered(mod, options)
  if calls_loops(mod.functions.main) then return mod, shapes_in(mod), {} end
  local fused = model.fused(mod)
  if options.schedules then fused = decision.annotate(fused, options.schedules) end
  local lower_te = ('LowerTE{layout="NCHWc",symbolic="on",winograd="%s",vector_bytes=%d}'):format(
    options.winograd == false and "off" or "on", options.vector_bytes)
  return pass.sequential { lower_te } (fused), shapes_in(fused),
    model_loops.equal_sizes(mod.functions.main)
end

-- --------------------------------------------------------------------- plan

-- A constant without elements has an address, too.
local function add_weight(plan, node)
  local bytes = node.data:to_bytes()
  local weight = { kind = "weight", offset = plan.weight_bytes }
  local room = aligned(math.max(#bytes, 1))
  plan.weights[#plan.weights + 1] = bytes
  plan.weights[#plan.weights + 1] = ("\0"):rep(room - #bytes)
  plan.weight_bytes = plan.weight_bytes + room
  return weight
end

local function add_external_call(plan, node)
  local name = node.callee.name
  local called = external.called(plan, name, plan.functions_of[name])
  if not called then refuse("'%s' is no function that FuseOps and LowerTE have lowered", name) end
  local results, args = new_buffers(plan, node.type, #plan.calls + 1), {}
  for _, arg in ipairs(node.args) do flatten(plan.values[arg], args) end
  add_row(plan, { external = called, args = args, results = flatten(results, {}) })
  return results
end

local function add_call(plan, node)
  if node.callee and node.callee.kind == "GlobalVar" then return add_external_call(plan, node) end
  local name = node.op and node.op.name or "a function"
  if name ~= "call_lowered" then
    refuse("'%s' is not lowered: run FuseOps and LowerTE first", name)
  end
  local results = new_buffers(plan, node.type, #plan.calls + 1)
  add_row(plan, { name = node.args[1].name, args = flatten(plan.values[node.args[2]], {}),
    results = flatten(results, {}) })
  return results
end

-- The nodes at which branches begin and end: the nodes inside of an If are those of its first
-- branch up to its result, then those of the other one. Of those that begin at one node the outer
-- ones, which come later, begin first.
local function note_branches(plan, node)
  local inside, last = {}, 0
  for inner in node:nodes() do
    if inner ~= node then inside[#inside + 1] = inner end
    if inner ~= node and inner == node.true_branch then last = #inside end
  end
  local first, middle = inside[1] or node, inside[last + 1] or node
  plan.begins[middle] = plan.begins[middle] or {}
  table.insert(plan.begins[middle], 1, { node, "else" })
  plan.begins[first] = plan.begins[first] or {}
  table.insert(plan.begins[first], 1, { node, "if" })
end

local function begin_branches(plan, node)
  local cond = plan.values[node.cond]
  local at = #plan.calls + 1
  if not cond or not cond.kind or node.cond.type.rank ~= 0 then
    refuse "an If whose condition is no scalar"
  end
  plan.results[node] = new_buffers(plan, node.type, at)
  plan.starts[node] = at
  add_row(plan, { branch = "if", cond = cond, args = { cond },
    results = flatten(plan.results[node], {}) })
end

-- What a branch gives is written to the buffers of the result, or copied there if no call in the
-- branch makes it.
local function share_results(plan, node, branch)
  local own, results = flatten(plan.values[branch], {}), flatten(plan.results[node], {})
  local start = plan.starts[node]
  for i, result in ipairs(results) do
    local value = own[i]
    local is_own = value.kind == "buffer" and not value.alias and value.first > start
      and not value.is_shared
    if is_own then
      value.alias = result
    else
      value.is_shared = true
      model_plan.copy(plan, value, result)
    end
  end
  plan.starts[node] = #plan.calls + 1
end

local function end_branches(plan, node)
  share_results(plan, node, node.false_branch)
  add_row(plan, { branch = "end" })
  for _, result in ipairs(flatten(plan.results[node], {})) do result.last = #plan.calls end
  return plan.results[node]
end

-- Branches of the Ifs in `owner` that begin at a node: others are in loops (model_loops.lua).
local function begin_at(plan, node, owner)
  for _, row in ipairs(plan.begins[node] or {}) do
    local is_own = plan.owner[row[1]] == owner
    if is_own and row[2] == "if" then
      begin_branches(plan, row[1])
    elseif is_own then
      share_results(plan, row[1], row[1].true_branch)
      add_row(plan, { branch = "else" })
    end
  end
end

local visit

local function value_of(plan, node)
  local kind, values = node.kind, plan.values
  if kind == "Constant" then return add_weight(plan, node) end
  if model_loops.is_loop(node) then return model_loops.add(plan, node, visit) end
  if kind == "Call" then return add_call(plan, node) end
  if kind == "TupleGetItem" then return values[node.tuple][node.index + 1] end
  if kind == "GlobalVar" or kind == "Absent" or plan.bodies[node] then return false end
  if kind == "Var" or kind == "Function" then
    refuse("a function is not lowered: LowerTE has left it to the evaluator, or an operator "
      .. "other than loop and scan calls it")
  end
  if kind == "If" then return end_branches(plan, node) end
  if kind ~= "Tuple" then refuse("a %s in the main function", kind) end
  local fields = {}
  for i, field in ipairs(node.fields) do fields[i] = values[field] end
  return fields
end

-- The nodes of the main function, or of a body of a loop.
function visit(plan, fn, owner)
  for node in fn:nodes() do
    begin_at(plan, node, owner)
    if plan.owner[node] == owner and plan.values[node] == nil then
      plan.values[node] = value_of(plan, node)
    end
  end
end

local function read(mod, sources, shapes, equal)
  local fn = mod.functions.main
  local plan = { values = {}, buffers = {}, calls = {}, weights = {}, weight_bytes = 0,
    inputs = {}, begins = {}, results = {}, starts = {}, helpers = {}, loops = {},
    functions_of = mod.functions, sources = sources, externals = {}, external_of = {},
    add_weight = add_weight }
  model_loops.find(plan, fn)
  for i, param in ipairs(fn.params) do
    check_type(param.type)
    plan.inputs[i] = { kind = "input", index = i, type = param.type, name = param.name }
    plan.values[param] = plan.inputs[i]
  end
  plan.sizes = model_sizes(plan.inputs, equal)
  for _, input in ipairs(plan.inputs) do
    plan.sizes:add_shape(input.type.shape, ("input '%s'"):format(input.name or input.index))
  end
  for _, row in ipairs(shapes) do plan.sizes:add_shape(row[1], row[2]) end
  for node in fn:nodes() do
    if node.kind == "If" then note_branches(plan, node) end
    if node.kind == "Match" then
      refuse "Match: what runs depends on data, and this control flow is not compiled"
    end
  end
  visit(plan, fn)
  plan.outputs = flatten(plan.values[fn.body], {})
  for i, output in ipairs(plan.outputs) do
    if output.kind ~= "buffer" or output.output then
      refuse("result %d is an input, a constant or another result: copy it before FuseOps", i)
    end
    output.output = i
  end
  return plan
end

-- ------------------------------------------------------------------- arena

-- Takes the smallest free part that is large enough; its place, or nil.
local function take(free, bytes)
  local best
  for i, part in ipairs(free) do
    if part.bytes >= bytes and (not best or part.bytes < free[best].bytes) then best = i end
  end
  if not best then return nil end
  local part = free[best]
  local place = part.offset
  part.offset, part.bytes = part.offset + bytes, part.bytes - bytes
  if part.bytes == 0 then table.remove(free, best) end
  return place
end

-- Gives a part back, and joins it with its neighbours: parts are in the order of places.
local function give(free, offset, bytes)
  local at = 1
  while free[at] and free[at].offset < offset do at = at + 1 end
  table.insert(free, at, { offset = offset, bytes = bytes })
  for i = math.min(at, #free - 1), math.max(1, at - 1), -1 do
    local a, b = free[i], free[i + 1]
    if b and a.offset + a.bytes == b.offset then
      a.bytes = a.bytes + b.bytes
      table.remove(free, i + 1)
    end
  end
end

-- A slot for a buffer of a symbolic size: a free one of the same size, one that is as long, or any
-- one, which becomes longer.
local function take_slot(plan, free, bytes)
  local best, most
  for i, slot in ipairs(free) do
    local own = slot.sizes[bytes.key]
    local score = own and (own.factor == bytes.factor and 4 or own.factor > bytes.factor and 3 or 2)
      or 1
    if not most or score > most then best, most = i, score end
  end
  local slot = best and table.remove(free, best)
  if not slot then
    slot = { sizes = {}, keys = {} }
    plan.slots[#plan.slots + 1] = slot
  end
  local own = slot.sizes[bytes.key]
  if not own then slot.keys[#slot.keys + 1] = bytes.key end
  if not own or own.factor < bytes.factor then slot.sizes[bytes.key] = bytes end
  return slot
end

-- A slot for each buffer of a symbolic size but the outputs.
local function place_symbolic(plan)
  local free, ends = {}, {}
  plan.slots = {}
  for at, call in ipairs(plan.calls) do
    for _, buffer in ipairs(call.results) do
      if not buffer.output and not buffer.alias and type(buffer.bytes) == "table" then
        buffer.slot = take_slot(plan, free, buffer.bytes)
        ends[buffer.last] = ends[buffer.last] or {}
        table.insert(ends[buffer.last], buffer.slot)
      end
    end
    for _, slot in ipairs(ends[at] or {}) do free[#free + 1] = slot end
  end
end

-- A place for each buffer of a constant size but the outputs; the size of the arena.
local function place_buffers(plan)
  local free, size, ends = {}, 0, {}
  local function extend(bytes)
    local last = free[#free]
    local offset = size
    if last and last.offset + last.bytes == size then
      offset = last.offset
      free[#free] = nil
    end
    size = offset + bytes
    return offset
  end
  for at, call in ipairs(plan.calls) do
    for _, buffer in ipairs(call.results) do
      if not buffer.output and not buffer.alias and type(buffer.bytes) == "number" then
        buffer.offset = take(free, buffer.bytes) or extend(buffer.bytes)
        ends[buffer.last] = ends[buffer.last] or {}
        table.insert(ends[buffer.last], buffer)
      end
    end
    for _, buffer in ipairs(ends[at] or {}) do give(free, buffer.offset, buffer.bytes) end
  end
  return size
end

-- ----------------------------------------------------------------- function

local function offset_in(buffer, offset)
  if type(offset) == "number" then offset = operand.const(offset, "int64") end
  return tir.address_of(tir.BufferLoad(buffer, { offset }))
end

local function flat_bytes(bytes, name, data)
  if type(bytes) == "number" then bytes = operand.const(math.max(bytes, 1), "int64") end
  return tir.decl_buffer({ bytes }, "uint8", name, data and { data = data })
end

local function buffer_name(name, prefix, i)
  local clean = type(name) == "string" and name:gsub("%W", "_") or ""
  return clean:find "^%a" and clean or prefix .. i
end

-- How many parameters of a PrimFunc are no buffers.
local function scalars_of(fn)
  local n = 0
  for _, param in ipairs(fn.params) do
    if param.dtype == "int32" then n = n + 1 end
  end
  return n
end

-- The sizes that a call passes behind its buffers.
local function add_sizes(plan, args, fn)
  local texts = fn.attrs and fn.attrs.symbolic_dims
  local scalars = texts and scalars_of(fn) or 0
  for i, text in ipairs(texts or {}) do
    local value = plan.sizes:dim(text).value
    args[#args + 1] = i <= scalars and tir.Cast("int32", value) or value
  end
end

local function sequence(stmts)
  if #stmts == 0 then stmts[1] = tir.Evaluate(0) end
  return #stmts > 1 and tir.SeqStmt(stmts) or stmts[1]
end

-- Whether a scalar in memory is true.
local function condition(params, value)
  while value.alias do value = value.alias end
  local zero = operand.const(0, "int64")
  if value.kind == "input" then return tir.BufferLoad(params.inputs[value.index], {}) end
  if value.output then return tir.BufferLoad(params.outputs[value.output], {}) end
  local flat = value.kind == "weight" and params.weights or params.arena
  local at = operand.const(value.offset, "int64")
  return tir.ne(tir.BufferLoad(flat, { at }), operand.cast("uint8", zero))
end

-- The rows of a plan as a statement, with an IfThenElse for each If and a While for each loop.
local function statements(plan, run, condition_of)
  local lists, open = { {} }, {}
  for _, row in ipairs(plan.calls) do
    if row.branch == "if" then
      open[#open + 1] = { condition = condition_of(row.cond) }
      lists[#lists + 1] = {}
    elseif row.branch == "else" then
      open[#open].first = sequence(table.remove(lists))
      lists[#lists + 1] = {}
    elseif row.branch == "loop" then
      lists[#lists + 1] = {}
    elseif row.branch == "end loop" then
      local round = sequence(table.remove(lists))
      table.insert(lists[#lists], tir.While(condition_of(row.cond), round))
    elseif row.branch == "end" then
      local one = table.remove(open)
      local second = sequence(table.remove(lists))
      table.insert(lists[#lists], tir.IfThenElse(one.condition, one.first, second))
    elseif row.name or row.external then
      table.insert(lists[#lists], run(row))
    end
  end
  return sequence(lists[1])
end

-- The statement that runs all calls.
local function body_of(plan, params, functions)
  local function pointer(value)
    while value.alias do value = value.alias end
    if value.kind == "input" then return params.inputs[value.index].data end
    if value.kind == "weight" then return offset_in(params.weights, value.offset) end
    if value.output then return params.outputs[value.output].data end
    return offset_in(params.arena, value.slot and value.slot.var or value.offset)
  end
  local function run_external(call)
    local args = {}
    for _, value in ipairs(call.args) do args[#args + 1] = pointer(value) end
    for _, value in ipairs(call.results) do args[#args + 1] = pointer(value) end
    return external.call(call.external, args)
  end
  local function run(call)
    if call.external then return run_external(call) end
    local args = { call.name }
    for _, value in ipairs(call.args) do args[#args + 1] = pointer(value) end
    for _, value in ipairs(call.results) do args[#args + 1] = pointer(value) end
    for _, value in ipairs(call.targets) do args[#args + 1] = pointer(value) end
    if call.sizes then
      table.move(call.sizes, 1, #call.sizes, #args + 1, args)
    else
      add_sizes(plan, args, functions[call.name])
    end
    return tir.Evaluate(tir.call_extern("int32", table.unpack(args)))
  end
  return statements(plan, run, function(value) return condition(params, value) end)
end

-- The bytes of a slot.
local function slot_bytes(slot)
  local bytes
  for _, key in ipairs(slot.keys) do
    local own = slot.sizes[key].value
    bytes = bytes and tir.max(bytes, own) or own
  end
  return bytes
end

-- Variables for the places of slots; the bytes of the arena.
local function name_slots(plan)
  local at = operand.const(plan.arena_bytes, "int64")
  for i, slot in ipairs(plan.slots) do
    slot.var, slot.place = tir.Var("at" .. i, "int64"), at
    at = slot.var + slot_bytes(slot)
  end
  return #plan.slots > 0 and at or plan.arena_bytes
end

local function around_body(plan, arena, bytes, body)
  if type(bytes) ~= "number" or bytes > 0 then
    local extent = type(bytes) == "number" and operand.const(bytes, "int64") or bytes
    body = tir.Allocate(arena, "uint8", { extent }, true, body)
  end
  for i = #plan.slots, 1, -1 do
    body = tir.LetStmt(plan.slots[i].var, plan.slots[i].place, body)
  end
  return plan.sizes:around(body)
end

local function main_function(plan, functions)
  local params, list = { inputs = {}, outputs = {} }, {}
  for i, input in ipairs(plan.inputs) do
    params.inputs[i] = tir.decl_buffer(plan.sizes:shape(input.type.shape), input.type.dtype,
      buffer_name(input.name, "input", i))
    list[#list + 1] = params.inputs[i]
  end
  if plan.weight_bytes > 0 then
    params.weights = flat_bytes(plan.weight_bytes, "weights")
    list[#list + 1] = params.weights
  end
  for i, output in ipairs(plan.outputs) do
    params.outputs[i] = tir.decl_buffer(plan.sizes:shape(output.type.shape), output.type.dtype,
      "output" .. i)
    list[#list + 1] = params.outputs[i]
  end
  local arena = tir.Var("arena", tir.PointerType("uint8"))
  local bytes = name_slots(plan)
  params.arena = flat_bytes(bytes, "arena", arena)
  local body = body_of(plan, params, functions)
  local attrs = { global_symbol = model.entry, ["tir.noalias"] = true }
  if plan.is_symbolic or #plan.externals > 0 then attrs.keep_asserts = 1 end
  return tir.PrimFunc(list, around_body(plan, arena, bytes, body), nil, nil, attrs)
end

-- ---------------------------------------------------------------------- API

--- Whether a module has a main function of Relay code.
function model.is_model(mod)
  local main = mod.functions.main
  return main ~= nil and main.kind == "Function"
end

-- Pairs of dims that functions take for equal, behind those of `list`.
local function equal_sizes(mod, list)
  for _, fn in pairs(mod) do
    local checks = fn.attrs and fn.attrs.size_checks or {}
    for i = 1, #checks, 2 do
      list[#list + 1] = { symbolic_dim.parse(math.tointeger(checks[i]) or checks[i]),
        symbolic_dim.parse(math.tointeger(checks[i + 1]) or checks[i + 1]) }
    end
  end
  return list
end

-- What has to hold of the sizes that a function is called with.
local function add_checks(plan, fn)
  local checks = fn.attrs and fn.attrs.size_checks or {}
  for i = 1, #checks, 2 do plan.sizes:add_equal(checks[i], checks[i + 1]) end
  for _, text in ipairs(fn.attrs and fn.attrs.symbolic_dims or {}) do
    plan.sizes:add_shape({ text }, "a size")
  end
end

--- What is built of a module: { names, functions (the last one runs the model), inputs, outputs
-- (types), weights (bytes), arena_bytes }. options.winograd: false leaves convolutions as they are;
-- options.schedules: what is decided for kernels, in place of what the module has;
-- options.external: the C of functions that a user's code computes (external.lua).
function model.plan(mod, options)
  local sources = options and options.external or {}
  local shapes, equal
  mod, shapes, equal = lowered(external.inline_own(mod, sources), options or {})
  local plan = read(mod, sources, shapes, equal_sizes(mod, equal))
  plan.is_symbolic = #plan.sizes.order > 0
  plan.arena_bytes = place_buffers(plan)
  place_symbolic(plan)
  local names, functions, seen = {}, {}, {}
  for _, call in ipairs(plan.calls) do
    local fn = call.name and (plan.helpers[call.name] or mod.functions[call.name])
    if call.name and not (fn and fn.kind == "PrimFunc") then
      refuse("'%s' is no PrimFunc", call.name)
    end
    if call.name and not seen[call.name] then
      seen[call.name] = true
      names[#names + 1], functions[#functions + 1] = call.name, fn
      add_checks(plan, fn)
    end
  end
  names[#names + 1] = model.entry
  functions[#functions + 1] = main_function(plan, mod.functions)
  plan.names, plan.functions, plan.text = names, functions, external.text(plan)
  plan.weights = table.concat(plan.weights)
  return plan
end

--- The tensor of all constants.
function model.weights(plan)
  return core.tensor_bytes(plan.weights, { #plan.weights }, "uint8")
end

local function as_tensor(value, dtype)
  if ir.kind_of(value) == "Tensor" then return value end
  return core.tensor(value, dtype)
end

--- Arguments of the entry for these inputs: with weights and room for the outputs.
function model.arguments(plan, inputs)
  if #inputs ~= #plan.inputs then
    argument.fail(("main: %d arguments expected, got %d"):format(#plan.inputs, #inputs))
  end
  local args = table.move(inputs, 1, #inputs, 1, {})
  local values = {}
  if plan.is_symbolic then
    local shapes = {}
    for i, input in ipairs(plan.inputs) do
      args[i] = as_tensor(args[i], input.type.dtype)
      shapes[i] = args[i].shape
    end
    values = plan.sizes:bind(shapes)
  end
  if plan.weight_bytes > 0 then
    plan.weight_tensor = plan.weight_tensor or model.weights(plan)
    args[#args + 1] = plan.weight_tensor
  end
  for _, output in ipairs(plan.outputs) do
    local zero = operand.dtype(output.type.dtype) ~= "bool" and 0
    args[#args + 1] =
      core.tensor_splat(zero, plan.sizes:evaluated(output.type.shape, values), output.type.dtype)
  end
  return args
end

--- The outputs among what the entry's buffers are after a call.
function model.results(plan, buffers)
  return table.move(buffers, #buffers - #plan.outputs + 1, #buffers, 1, {})
end

return model
