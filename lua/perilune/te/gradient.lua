-- Gradients of tensor expressions, TVM's te.gradient: reverse accumulation over the operations
-- between an output and its inputs.
--
-- An operation out[k] = sum over r of e(A[f(k, r)]) passes the adjoint of `out` on to A:
--
--     adjoint_A[p, i] = sum over k, r with f(k, r) = i of adjoint_out[p, k] * de/dA
--
-- The equations f(k, r) = i are solved for variables of k and r that have the coefficient 1 or -1;
-- these leave the sum (TVM's zero elimination). The other equations stay as conditions.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local arith = require "perilune.arith"
local derivative = require "perilune.te.derivative"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tir = require "perilune.tir"

-- -------------------------------------------------------------- operations

-- Operations that the output depends on, each before those that it reads.
local function consumers_first(output)
  local order, state, stack = {}, {}, { { op = output.op, next = 1 } }
  state[output.op] = true
  while #stack > 0 do
    local top = stack[#stack]
    local input = top.op.inputs[top.next]
    top.next = top.next + 1
    if input == nil then
      table.insert(order, top.op)
      stack[#stack] = nil
    elseif not state[input] then
      state[input] = true
      stack[#stack + 1] = { op = input, next = 1 }
    end
  end
  local reversed = {}
  for i = #order, 1, -1 do reversed[#reversed + 1] = order[i] end
  return reversed
end

-- What is kept for a tensor in a table by operation and output.
local function kept(list, tensor)
  local outputs = list[tensor.op]
  return outputs and outputs[tensor.value_index]
end

local function keep(list, tensor, value)
  list[tensor.op] = list[tensor.op] or {}
  list[tensor.op][tensor.value_index] = value
end

local function check_differentiable(op)
  if op.kind ~= "ComputeOp" or op.num_outputs ~= 1 then
    argument.fail(("te.gradient: '%s' is a %s with %d outputs; gradients go through computed "
      .. "tensors of one output"):format(op.name, op.kind, op.num_outputs))
  end
end

-- ------------------------------------------------------------------ indices

-- The variables of axes with their first values and extents.
local function variables_of(axes)
  local list = {}
  for i, axis in ipairs(axes) do
    local dom = axis.dom[1]
    list[i] = { var = axis.var, min = dom.min, extent = dom.extent }
  end
  return list
end

local function substituted(expr, values)
  return next(values) and tir.substitute(expr, values) or expr
end

-- coef, base of expr = coef * var + base; nil if it is not linear with coefficient 1 or -1.
local function unit_coefficient(expr, var)
  local parts = arith.detect_linear_equation(expr, { var })
  local coef = parts[1] and parts[1].kind == "IntImm" and parts[1].value
  if coef == 1 or coef == -1 then return coef, parts[2] end
  return nil
end

-- Solves one equation for one of the variables: its place and value.
local function solve_one(equation, variables)
  for place, each in ipairs(variables) do
    local coef, base = unit_coefficient(equation.left, each.var)
    if coef == 1 then return place, equation.right - base end
    if coef == -1 then return place, base - equation.right end
  end
  return nil
end

local function substitute_all(equations, values, var, value)
  for _, each in ipairs(equations) do each.left = tir.substitute(each.left, { [var] = value }) end
  for _, each in ipairs(values) do
    each.value = tir.substitute(each.value, { [var] = value })
  end
end

-- Takes variables that an equation gives out of the sum: a list of { var, value, min, extent }.
-- Both lists keep what is left.
local function eliminate(equations, variables)
  local values, at = {}, 1
  while at <= #equations do
    local place, value = solve_one(equations[at], variables)
    if place then
      local each = table.remove(variables, place)
      table.remove(equations, at)
      substitute_all(equations, values, each.var, value)
      each.value = value
      values[#values + 1] = each
      at = 1
    else
      at = at + 1
    end
  end
  return values
end

-- ------------------------------------------------------------------- adjoint

-- An analyzer that knows the ranges of the result's axes and of what is summed over.
local function analyzer_of(shape, vars, variables)
  local analyzer = arith.Analyzer()
  for i, var in ipairs(vars) do
    analyzer:bind(var, tir.Range(operand.const(0, var.dtype), shape[i]))
  end
  for _, each in ipairs(variables) do
    analyzer:bind(each.var, tir.range_from(each.min, each.extent))
  end
  return analyzer
end

-- Conditions that are not proved.
local function guards_of(analyzer, values, equations)
  local guards = {}
  local function add(condition)
    if not analyzer:can_prove(condition) then guards[#guards + 1] = condition end
  end
  for _, each in ipairs(values) do
    each.value = analyzer:simplify(each.value)
    add(tir.LE(each.min, each.value))
    add(tir.LT(each.value, each.min + each.extent))
  end
  for _, each in ipairs(equations) do
    add(tir.EQ(analyzer:simplify(each.left), each.right))
  end
  return guards
end

local function fresh_axis(each, names)
  local name = each.var.name
  names[name] = (names[name] or 0) + 1
  return tir.IterVar(tir.range_from(each.min, each.extent), name, "CommReduce")
end

local function summed(value, variables)
  if #variables == 0 then return value end
  local axes, values, names = {}, {}, {}
  for i, each in ipairs(variables) do
    axes[i] = fresh_axis(each, names)
    values[each.var] = axes[i].var
  end
  return tir.sum(tir.substitute(value, values), axes)
end

local function simplified_indices(analyzer, value)
  return tir.transform(value, nil, function(node)
    local operands = { node.producer }
    for i, index in ipairs(node.indices) do operands[i + 1] = analyzer:simplify(index) end
    return operand.node("ProducerLoad", operands, nil, nil, operand.type(node.dtype))
  end, { "ProducerLoad" })
end

-- Expressions of an operation are copied into another one, which reads the same.
local function note_inputs(op)
  for _, each in ipairs(op.inputs) do operation.note(each) end
end

-- One term of the sum: the part of one load. `link`: out, adjoint, prefix, input.
local function term_of(link, source, part, vars)
  local variables, equations = variables_of(link.out.op.axis), {}
  for _, each in ipairs(variables_of(source.axis)) do variables[#variables + 1] = each end
  for i, index in ipairs(part.load.indices) do
    equations[i] = { left = index, right = vars[link.prefix + i] }
  end
  local adjoint_indices = {}
  for i = 1, link.prefix do adjoint_indices[i] = vars[i] end
  for _, axis in ipairs(link.out.op.axis) do adjoint_indices[#adjoint_indices + 1] = axis.var end
  local value = link.adjoint(table.unpack(adjoint_indices)) * part.derivative
  local values = eliminate(equations, variables)
  local analyzer = analyzer_of(link.shape, vars, variables)
  local guards, map = guards_of(analyzer, values, equations), {}
  for _, each in ipairs(values) do map[each.var] = each.value end
  if source.condition then guards[#guards + 1] = substituted(source.condition, map) end
  value = simplified_indices(analyzer, substituted(value, map))
  if #guards > 0 then
    value = tir.if_then_else(tir.all(table.unpack(guards)), value,
      operand.const(0.0, value.dtype))
  end
  return summed(value, variables)
end

-- ---------------------------------------------------------------- reductions

local arg_best = {
  Max = function(x, y) return tir.GE(x, y) end, Min = function(x, y) return tir.LE(x, y) end,
}

-- Where along the reduction the result of a maximum or minimum is: the first such place.
local function best_place(out, reduce, kind)
  local place = operand.const(0, "int32")
  for _, axis in ipairs(reduce.axis) do
    local dom = axis.dom[1]
    place = place * operand.cast("int32", dom.extent)
      + operand.cast("int32", axis.var - dom.min)
  end
  local better = arg_best[kind]
  local combine = tir.comm_reducer(function(x, y)
    local first = tir.Or(better(x[2], y[2]) & tir.LE(x[1], y[1]),
      tir.Not(better(y[2], x[2])))
    return { tir.Select(first, x[1], y[1]), tir.Select(first, x[2], y[2]) }
  end, function(_, dtype)
    return { operand.const(2147483647, "int32"),
      kind == "Max" and tir.min_value(dtype) or tir.max_value(dtype) }
  end, "argument")
  local fresh, axes = {}, {}
  for i, axis in ipairs(reduce.axis) do
    local dom = axis.dom[1]
    axes[i] = tir.IterVar(tir.range_from(dom.min, dom.extent), axis.var.name, "CommReduce")
    fresh[axis.var] = axes[i].var
  end
  local argument_of = operation.compute(out.shape, function(...)
    note_inputs(out.op)
    local values = {}
    for i, axis in ipairs(out.op.axis) do values[axis.var] = select(i, ...) end
    for var, instead in pairs(fresh) do values[var] = instead end
    return combine({ tir.substitute(place, values), tir.substitute(reduce.source[1], values) },
      axes, tir.substitute(reduce.condition, values))
  end, out.name .. ".argument")
  return place, argument_of
end

-- What is summed: { expr, axis, condition }. An operation without a reduction sums nothing.
local function source_of(out)
  local body = out.op.body[1]
  if body.kind ~= "Reduce" then return { expr = body, axis = {} } end
  local combiner = body.combiner
  local kind = combiner.result[1].kind
  local is_plain = #body.source == 1 and #body.init == 0
    and combiner.result[1].a == combiner.lhs[1] and combiner.result[1].b == combiner.rhs[1]
  if not is_plain or not (kind == "Add" or arg_best[kind]) then
    argument.fail(("te.gradient: '%s' reduces by %s; sums, maxima and minima without initial "
      .. "values are differentiated"):format(out.name, tostring(combiner)))
  end
  local condition = body.condition
  if condition.kind == "IntImm" then condition = nil end
  local source = { expr = body.source[1], axis = body.axis, condition = condition }
  if arg_best[kind] then source.kind, source.reduce = kind, body end
  return source
end

-- The source of a maximum counts where the maximum is.
local function at_best(out, source)
  if not source.kind then return source end
  local place, argument_of = best_place(out, source.reduce, source.kind)
  local indices = {}
  for i, axis in ipairs(out.op.axis) do indices[i] = axis.var end
  source.best = argument_of
  local here = tir.EQ(place, argument_of(table.unpack(indices)))
  source.condition = source.condition and tir.And(source.condition, here) or here
  return source
end

-- ------------------------------------------------------------------- driver

-- What `out` passes on to an input: a list of tensors to add, one for each load.
local function passed_on(out, input, adjoint, prefix)
  local source = source_of(out)
  local parts = derivative.by_loads(source.expr, function(node)
    return node.kind == "ProducerLoad" and node.producer.data == input.buffer.data
  end)
  if #parts == 0 then return {} end
  at_best(out, source)
  local shape, list = {}, {}
  for i = 1, prefix do shape[i] = adjoint.shape[i] end
  for _, dim in ipairs(input.shape) do shape[#shape + 1] = dim end
  local link = { out = out, adjoint = adjoint, prefix = prefix, input = input, shape = shape }
  for _, part in ipairs(parts) do
    list[#list + 1] = operation.compute(shape, function(...)
      note_inputs(out.op)
      if source.best then operation.note(source.best.op) end
      return term_of(link, source, part, { ... })
    end, ("%s.%s.grad"):format(out.name, input.name))
  end
  return list
end

local function total(tensors)
  if #tensors == 1 then return tensors[1] end
  return operation.compute(tensors[1].shape, function(...)
    local sum = tensors[1](...)
    for i = 2, #tensors do sum = sum + tensors[i](...) end
    return sum
  end, tensors[1].name .. ".sum")
end

local function zeros(shape, dtype)
  return operation.compute(shape, function() return operand.const(0.0, dtype) end, "zeros")
end

-- The head that gives all derivatives: 1 where both halves of the indices are equal.
local function identity(output)
  local shape = {}
  for i, dim in ipairs(output.shape) do
    shape[i], shape[output.ndim + i] = dim, dim
  end
  return operation.compute(shape, function(...)
    local vars, conditions = { ... }, {}
    for i = 1, output.ndim do conditions[i] = tir.EQ(vars[i], vars[output.ndim + i]) end
    local one = operand.const(1.0, output.dtype)
    if #conditions == 0 then return one end
    return tir.Select(tir.all(table.unpack(conditions)), one, operand.const(0.0, output.dtype))
  end, "identity")
end

local function check_tensor(tensor, what)
  if not operation.is_tensor(tensor) then
    argument.fail(("te.gradient: %s must be a tensor"):format(what))
  end
  if not operand.is_float(tensor.dtype) then
    argument.fail(("te.gradient: %s '%s' has the dtype %s, which has no derivatives"):format(what,
      tensor.name, tensor.dtype))
  end
end

local function check_head(head, output)
  check_tensor(head, "the head")
  local prefix = head.ndim - output.ndim
  for i, dim in ipairs(output.shape) do
    local other = prefix >= 0 and head.shape[prefix + i]
    if not other or not arith.Analyzer():can_prove_equal(other, dim) then
      argument.fail "te.gradient: the last dimensions of the head are not those of the output"
    end
  end
  return prefix
end

-- Operations from which the output can be reached and that read an input, transitively.
local function on_the_way(order, inputs)
  local wanted = {}
  for _, tensor in ipairs(inputs) do wanted[tensor.op] = true end
  for i = #order, 1, -1 do
    for _, input in ipairs(order[i].inputs) do
      wanted[order[i]] = wanted[order[i]] or wanted[input]
    end
  end
  return wanted
end

-- Adds what a tensor passes on to those that it reads.
local function pass_on(out, adjoint, prefix, wanted, lists)
  for _, op in ipairs(out.op.inputs) do
    for _, input in ipairs(wanted[op] and op.outputs or {}) do
      check_differentiable(out.op)
      local list = kept(lists, input) or {}
      for _, tensor in ipairs(passed_on(out, input, adjoint, prefix)) do
        list[#list + 1] = tensor
      end
      keep(lists, input, list)
    end
  end
end

-- The adjoint of each tensor from which the output is computed of an input.
local function accumulate(output, inputs, head, prefix)
  local order, lists, adjoints = consumers_first(output), {}, {}
  local wanted = on_the_way(order, inputs)
  keep(lists, output, { head })
  for _, op in ipairs(order) do
    for _, out in ipairs(op.outputs) do
      local list = wanted[op] and kept(lists, out)
      if list and #list > 0 then
        keep(adjoints, out, total(list))
        pass_on(out, kept(adjoints, out), prefix, wanted, lists)
      end
    end
  end
  return adjoints
end

--- The derivatives of a tensor by others, a list of tensors: te.gradient(output, { A, B }).
-- With a head of shape (..., output's shape) they are the products with it, of shape (..., input's
-- shape): what the chain rule passes on. Without one they are all derivatives, of shape (output's
-- shape, input's shape).
return function(output, inputs, head)
  if operation.is_tensor(inputs) then inputs = { inputs } end
  check_tensor(output, "the output")
  argument.table(inputs, "te.gradient", "inputs")
  for _, input in ipairs(inputs) do check_tensor(input, "an input") end
  if head == nil then head = identity(output) end
  local prefix = check_head(head, output)
  local adjoints, gradients = accumulate(output, inputs, head, prefix), {}
  for i, input in ipairs(inputs) do
    local shape = {}
    for k = 1, prefix do shape[k] = head.shape[k] end
    for _, dim in ipairs(input.shape) do shape[#shape + 1] = dim end
    gradients[i] = kept(adjoints, input) or zeros(shape, output.dtype)
  end
  return gradients
end
