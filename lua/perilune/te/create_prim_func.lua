-- A graph of tensors as a PrimFunc of blocks, which pl.tir.Schedule schedules: TVM's
-- te.create_prim_func. Each operation is a loop nest around a block.

local core = require "perilune.core"
core.internal()

local access = require "perilune.tir.schedule.access"
local argument = require "perilune.argument"
local graph = require "perilune.te.graph"
local operation = require "perilune.te.operation"
local Terms = require "perilune.tir.schedule.terms"
local tree = require "perilune.tir.schedule.tree"
local with_index_dtype = require "perilune.te.index_dtype"

local where = "te.create_prim_func"

-- ------------------------------------------------------------------- graph

local function unique_name(names, name)
  local unique = name
  while names[unique] do
    names[name] = names[name] + 1
    unique = ("%s_%d"):format(name, names[name])
  end
  names[unique] = 0
  return unique
end

-- ------------------------------------------------------------- expressions

-- Elements of tensors as elements of buffers, inner ones first.
local function loads_of(terms, term)
  local from, to = {}, {}
  local loads = terms:parts(term, "ProducerLoad")
  for i = #loads, 1, -1 do
    local operands = terms:operands(loads[i])
    local indices = {}
    for k = 2, #operands do indices[k - 1] = terms:replace(operands[k], from, to) end
    from[#from + 1], to[#to + 1] = loads[i], terms:load(operands[1], indices)
  end
  return terms:replace(term, from, to)
end

-- What an operation's expressions become: variables of the block stand for those of its axes.
local function converter(terms, from, to)
  return function(node) return terms:replace(loads_of(terms, terms:import(node)), from, to) end
end

-- ------------------------------------------------------------------ blocks

local function new_block(name, iters, values)
  return { kind = "Block", id = tree.new_id(), name = name, iters = iters, values = values,
    reads = {}, writes = {}, allocs = {}, matches = {}, annotations = {} }
end

-- The values of a reduction's outputs, where left is what there is and right what is added.
local function combined(terms, convert, reduce, left)
  local combiner, from, to, out = reduce.combiner, {}, {}, {}
  for i, source in ipairs(reduce.source) do
    from[#from + 1], to[#to + 1] = terms:import(combiner.lhs[i]), left[i]
    from[#from + 1], to[#to + 1] = terms:import(combiner.rhs[i]), convert(source)
  end
  local condition = convert(reduce.condition)
  for i, result in ipairs(combiner.result) do
    out[i] = terms:replace(terms:import(result), from, to)
    if condition ~= terms.yes then out[i] = terms.core:select(condition, out[i], left[i]) end
  end
  return out
end

-- Several outputs are computed before the first of them is stored.
local function stores(terms, buffers, indices, values)
  local list, lets = {}, {}
  for i, buffer in ipairs(buffers) do
    local value = values[i]
    if #buffers > 1 then
      value = terms:var("v_" .. terms:name(buffer), terms:dtype(values[i]))
      lets[i] = value
    end
    list[i] = { kind = "Store", buffer = buffer, value = value, indices = indices }
  end
  local body = tree.seq(list)
  for i = #lets, 1, -1 do
    body = { kind = "Let", var = lets[i], value = values[i], body = body }
  end
  return body
end

local function reduction_block(terms, block, op, buffers, indices, convert)
  local reduce, left, init = op.body[1], {}, {}
  for i, buffer in ipairs(buffers) do
    left[i] = terms:load(buffer, indices)
    local first = reduce.init[i] or reduce.combiner.identity_element[i]
    init[i] = { kind = "Store", buffer = buffer, value = convert(first), indices = indices }
  end
  block.init = tree.seq(init)
  block.body = stores(terms, buffers, indices, combined(terms, convert, reduce, left))
  return block
end

local function annotations_of(op)
  local out = {}
  for key, value in pairs(op.attrs) do out[key] = value end
  return out
end

-- Loops around, and the block's variables and values.
local function axes_of(terms, op)
  local nest = { loops = {}, iters = {}, values = {}, from = {}, to = {}, indices = {} }
  local function add(axis, type_)
    local name, var = axis.var.name, terms:import(axis.var)
    local loop, iter = terms:var(name, axis.var.dtype), terms:var("v_" .. name, axis.var.dtype)
    local min, extent = terms:simplify(terms:import(axis[2][1])),
      terms:simplify(terms:import(axis[2][2]))
    nest.loops[#nest.loops + 1] = { var = loop, min = min, extent = extent }
    nest.iters[#nest.iters + 1] = { var = iter, min = min, extent = extent, type = type_ }
    nest.values[#nest.values + 1] = loop
    nest.from[#nest.from + 1], nest.to[#nest.to + 1] = var, iter
  end
  for _, axis in ipairs(op.axis) do add(axis, tree.SPATIAL) end
  nest.indices = table.move(nest.to, 1, #op.axis, 1, {})
  for _, axis in ipairs(op.reduce_axis) do add(axis, tree.REDUCE) end
  if #nest.iters == 0 then
    local zero = terms:number("int32", 0)
    nest.iters[1] = { var = terms:var("vi", "int32"), min = zero, extent = terms:int(zero, 1),
      type = tree.SPATIAL }
    nest.values[1] = zero
  end
  return nest
end

-- The block of some outputs of an operation, with what it accesses.
local function finished(terms, op, block)
  block.predicate, block.annotations = terms.yes, annotations_of(op)
  return access.declared(terms, block)
end

local function compute_stmt(job, op)
  local terms, nest, blocks = job.terms, axes_of(job.terms, op), {}
  local convert = converter(terms, nest.from, nest.to)
  local buffers = {}
  for i, tensor in ipairs(op.outputs) do buffers[i] = terms:import(tensor.buffer) end
  if op.body[1].kind == "Reduce" then
    local block = new_block(unique_name(job.names, op.name), nest.iters, nest.values)
    reduction_block(terms, block, op, buffers, nest.indices, convert)
    blocks[1] = finished(terms, op, block)
  else
    for i, value in ipairs(op.body) do
      local name = unique_name(job.names, op.outputs[i].buffer.name)
      local block = new_block(name, nest.iters, nest.values)
      block.body = { kind = "Store", buffer = buffers[i], value = terms:simplify(convert(value)),
        indices = nest.indices }
      blocks[i] = finished(terms, op, block)
      if i > 1 then blocks[i] = tree.renewed(terms, blocks[i]) end
    end
  end
  local body = tree.seq(blocks)
  for i = #nest.loops, 1, -1 do
    local loop = nest.loops[i]
    body = tree.loop(loop.var, loop.min, loop.extent, body)
  end
  return body
end

-- A statement that somebody wrote, over the buffers of the tensors instead of its placeholders.
local function extern_stmt(job, op)
  local terms, from, to = job.terms, {}, {}
  local block = new_block(unique_name(job.names, op.name), {}, {})
  local function stands_for(placeholder, tensor, regions)
    local old, new = terms:import(placeholder), terms:import(tensor.buffer)
    from[#from + 1], to[#to + 1] = old, new
    local data = terms:operands(old)[1]
    from[#from + 1], to[#to + 1] = data, terms:operands(new)[1]
    local offset = terms:operands(old)[#terms:operands(old)]
    if terms:kind(offset) == "Var" then
      from[#from + 1], to[#to + 1] = offset, terms:int(offset, 0)
    end
    regions[#regions + 1] = tree.full_region(terms, new)
  end
  for i, buffer in ipairs(op.input_placeholders) do
    stands_for(buffer, op.input_tensors[i], block.reads)
  end
  for i, buffer in ipairs(op.output_placeholders) do
    stands_for(buffer, op.outputs[i], block.writes)
  end
  block.predicate = terms.yes
  block.body = tree.replace_exprs(terms, tree.read(terms, op.stmt), from, to)
  return block
end

local stmt_of_kind = { ComputeOp = compute_stmt, ExternOp = extern_stmt,
  HybridOp = extern_stmt }

-- -------------------------------------------------------------- the function

-- The numbers of the parameters of which an operation says, by the attribute
-- layout_free_placeholders (tensors or names), that their layout may be chosen.
local function layout_free(ops, args)
  local named, numbers = {}, {}
  for _, op in ipairs(ops) do
    for _, tensor in ipairs(op.layout_free or {}) do named[tensor.op] = true end
  end
  for i, arg in ipairs(args) do
    if operation.is_tensor(arg) and named[arg.op] then numbers[#numbers + 1] = i - 1 end
  end
  return #numbers > 0 and numbers or nil
end

-- The parameters and the operations behind them.
local function signature(job, args)
  local terms, ops = job.terms, {}
  for i, arg in ipairs(args) do
    if argument.kind_of(arg) == "Node" and arg.kind == "Var" then
      job.params[i] = terms:import(arg)
    elseif operation.is_tensor(arg) and operation.is_operation(arg.op) and arg.op.core then
      local buffer = terms:import(arg.buffer)
      if job.is_arg[buffer] then
        argument.fail(("%s: tensor '%s' is given twice"):format(where, arg.name))
      end
      job.is_arg[buffer] = true
      job.params[i] = terms:var("var_" .. arg.buffer.name, "handle")
      job.binds[#job.binds + 1] = { param = job.params[i], buffer = buffer }
      ops[#ops + 1] = arg.op
    else
      argument.fail(("%s: argument %d must be a tensor or a Var"):format(where, i))
    end
  end
  return ops
end

local function stage(job, op)
  if op.kind == "PlaceholderOp" then
    if job.is_arg[job.terms:import(op:output(0).buffer)] then return end
    argument.fail(("%s: placeholder '%s' is not among the arguments"):format(where, op.name))
  elseif not stmt_of_kind[op.kind] then
    argument.fail(("%s: operation '%s' is a %s; only placeholder, compute and extern have blocks")
      :format(where, op.name, op.kind))
  end
  job.stmts[#job.stmts + 1] = stmt_of_kind[op.kind](job, op)
  for _, tensor in ipairs(op.outputs) do
    local buffer = job.terms:import(tensor.buffer)
    if not job.is_arg[buffer] then job.allocs[#job.allocs + 1] = buffer end
  end
end

local function check_options(options)
  local dtype = argument.options(options, where, { "index_dtype_override" }).index_dtype_override
  if dtype ~= nil and dtype ~= "int32" and dtype ~= "int64" then
    argument.fail(where .. ": index_dtype_override is 'int32' or 'int64'")
  end
  return dtype
end

--- The PrimFunc of tensors and Vars, its parameters in this order: what they read is computed by
-- one block an operation, intermediates are buffers of the root block. Options:
-- index_dtype_override, the dtype of all indices and sizes.
local function create_prim_func(args, options)
  local dtype = check_options(options)
  if operation.is_tensor(args) then args = { args } end
  argument.table(args, where, "tensors")
  local terms = Terms.new()
  local job = { terms = terms, names = {}, is_arg = {}, params = {}, binds = {}, stmts = {},
    allocs = {} }
  local ops = graph.post_order(signature(job, args))
  for _, op in ipairs(ops) do stage(job, op) end
  if #job.stmts == 0 then argument.fail(where .. ": nothing is computed") end
  local root = new_block("root", {}, {})
  root.predicate, root.body, root.allocs = terms.yes, tree.seq(job.stmts), job.allocs
  local func = { params = job.params, binds = job.binds, body = root,
    attrs = { global_symbol = "main", ["tir.noalias"] = true,
      layout_free_buffers = layout_free(ops, args) } }
  if dtype then func = with_index_dtype(terms, func, dtype) end
  return core.seal(tree.write_func(terms, func))
end

return create_prim_func
