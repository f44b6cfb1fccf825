-- Shapes and indices for pl.topi: dimensions as integers where they are known, axes counted from
-- the end, positions in a row-major order.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tir = require "perilune.tir"

local dims = {}

--- A dimension: an integer if it is one, else its expression.
function dims.value(dim)
  if type(dim) == "userdata" and dim.kind == "IntImm" then return dim.value end
  return dim
end

--- The shape of a tensor as a list of integers and expressions.
function dims.of(tensor)
  local list = {}
  for i, dim in ipairs(tensor.shape) do list[i] = dims.value(dim) end
  return list
end

--- A te.Tensor.
function dims.tensor(value, where, what)
  if not operation.is_tensor(value) then
    argument.fail(("%s: %s: a te.Tensor expected, got %s"):format(where, what or "x",
      argument.kind_of(value)))
  end
  return value
end

--- A list of integers, or expressions: `one` number stands for n of it.
function dims.list(value, n, where, what)
  if math.type(value) == "integer" and n then
    local list = {}
    for i = 1, n do list[i] = value end
    return list
  end
  argument.table(value, where, what)
  if n and #value ~= n then
    argument.fail(("%s: %s: %d numbers expected, got %d"):format(where, what, n, #value))
  end
  for i, item in ipairs(value) do
    if math.type(item) ~= "integer" and argument.kind_of(item) ~= "Node" then
      argument.fail(("%s: %s: item %d: an integer expected, got %s"):format(where, what, i,
        argument.kind_of(item)))
    end
  end
  return value
end

--- The axis, from 0, of an axis that may be counted from the end.
function dims.axis(axis, rank, where)
  if math.type(axis) ~= "integer" or axis < -rank or axis >= rank then
    argument.fail(("%s: axis %s is none of a tensor of rank %d"):format(where, tostring(axis),
      rank))
  end
  return axis < 0 and axis + rank or axis
end

--- A number, an integer; the default where it is nil.
function dims.number(value, default, where, what)
  if value == nil then value = default end
  if type(value) ~= "number" then
    argument.fail(("%s: %s: a number expected, got %s"):format(where, what,
      argument.kind_of(value)))
  end
  return value
end

function dims.integer(value, default, where, what)
  value = dims.number(value, default, where, what)
  if math.type(value) ~= "integer" then
    argument.fail(("%s: %s: an integer expected, got %s"):format(where, what, value))
  end
  return value
end

--- Axes as a set of positions from 1; nil are all axes.
function dims.axis_set(axes, rank, where)
  local set = {}
  if axes == nil then
    for i = 1, rank do set[i] = true end
    return set
  end
  if type(axes) == "number" then axes = { axes } end
  for _, axis in ipairs(argument.table(axes, where, "axis")) do
    set[dims.axis(axis, rank, where) + 1] = true
  end
  return set
end

--- The product of dimensions first to last.
function dims.product(list, first, last)
  local product = 1
  for i = first or 1, last or #list do product = product * list[i] end
  return product
end

--- The position of an element in a tensor of that shape.
function dims.flatten(index, shape)
  local at = 0
  for i, dim in ipairs(shape) do
    at = (dim == 1 and at) or (at == 0 and index[i]) or at * dim + index[i]
  end
  return at
end

--- The index of the element at a position.
function dims.unflatten(at, shape)
  local index = {}
  for i = #shape, 1, -1 do
    local dim = shape[i]
    if dim == 1 then
      index[i] = 0
    elseif i == 1 or at == 0 then
      index[i] = at
      at = 0
    else
      index[i], at = tir.indexmod(at, dim), tir.indexdiv(at, dim)
    end
  end
  return index
end

--- The first element of a tensor: that of a tensor that has one.
function dims.first_element(x)
  local index = {}
  for i = 1, x.ndim do index[i] = 0 end
  return x[index]
end

-- The symbolic sizes (sizes.lua) of what is computed; nil: none.
local sizes

--- Calls f with symbolic sizes: shapes become those of types, and extents that are taken for equal
-- are noted.
function dims.with_sizes(own, f, ...)
  local outer = sizes
  sizes = own
  local results = table.pack(pcall(f, ...))
  sizes = outer
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- Whether two extents are the same number or expression.
function dims.equal(a, b)
  a, b = dims.value(a), dims.value(b)
  if type(a) == "number" or type(b) == "number" then return a == b end
  return a == b or core.node_equal(a, b, false)
end

--- Whether two extents are equal in what is computed. Of symbolic sizes that is checked where the
-- model is called.
function dims.agree(a, b)
  if type(a) == "number" and type(b) == "number" then return a == b end
  return not sizes or sizes:agree(a, b)
end

--- Whether two extents, which may be symbolic, are the same for all that is known.
function dims.may_equal(a, b)
  if dims.equal(a, b) then return true end
  return sizes ~= nil and sizes:may_equal(a, b)
end

--- The integer that an extent is a multiple of another one by; nil: it is none.
function dims.multiple(extent, of)
  if type(extent) == "number" and type(of) == "number" then
    return of > 0 and extent % of == 0 and extent // of or nil
  end
  local x, y = dims.samples(extent), dims.samples(of)
  local factor = x and y and y[1] > 0 and x[1] % y[1] == 0 and x[1] // y[1]
  if not factor or not dims.may_equal(extent, of * factor) then return nil end
  return dims.agree(extent, of * factor) and factor or nil
end

--- The numbers of an extent for some sizes, to compare extents with; nil: not known.
function dims.samples(extent) return sizes and sizes:values(extent) end

--- te.compute of a function of the list of indices.
function dims.compute(shape, f, name, tag, attrs)
  if sizes then
    local own = {}
    for i, dim in ipairs(shape) do own[i] = sizes:canonical(dim) end
    shape = own
  end
  local result = operation.compute(shape, function(...) return f { ... } end, name,
    { tag = tag, attrs = attrs })
  return result
end

--- The value, of a dtype, as an expression.
function dims.const(value, dtype) return operand.const(value, dtype) end

--- A size, which may be an expression, as a number of a dtype.
function dims.size(value, dtype)
  value = dims.value(value)
  if type(value) == "number" then return operand.const(value, dtype) end
  return operand.cast(dtype, value)
end

--- A number of a dtype that an expression may have been given as.
function dims.expr(value, dtype)
  if type(value) == "number" or type(value) == "boolean" then return operand.const(value, dtype) end
  return value
end

--- An index as one of an axis: negative ones count from the end, "clip" limits, "wrap" is modulo.
-- What is out of range in strict mode is limited too: no memory besides the tensor is read.
function dims.position(value, extent, mode)
  local zero, most = operand.const(0, value.dtype), dims.expr(extent - 1, value.dtype)
  if mode == "wrap" then
    value = tir.floormod(value, dims.expr(extent, value.dtype))
  elseif mode == "strict" then
    value = tir.Select(tir.lt(value, zero), value + dims.expr(extent, value.dtype), value)
  end
  if mode ~= "wrap" then value = tir.max(tir.min(value, most), zero) end
  return operand.cast("int32", value)
end

--- Whether the first of two is greater, or no number: what a maximum that propagates NaN keeps.
function dims.keeps_greater(a, b)
  if not operand.is_float(a.dtype) then return tir.gt(a, b) end
  return tir.logical_or(tir.gt(a, b), tir.ne(a, a))
end

function dims.keeps_less(a, b)
  if not operand.is_float(a.dtype) then return tir.lt(a, b) end
  return tir.logical_or(tir.lt(a, b), tir.ne(a, a))
end

--- The least value of a dtype: of floats minus infinity, and the greatest.
function dims.least(dtype)
  if operand.is_float(dtype) and dtype:find "^float%d+$" then
    return operand.FloatImm(dtype, -math.huge)
  end
  return tir.min_value(dtype)
end

function dims.greatest(dtype)
  if operand.is_float(dtype) and dtype:find "^float%d+$" then
    return operand.FloatImm(dtype, math.huge)
  end
  return tir.max_value(dtype)
end

return dims
