--- Compares what generated C computes with the interpreter of loops, on inputs made for a PrimFunc.

local core = require "perilune.core"
local pl = require "perilune"

local compare = {}

-- The shape of a buffer, with sizes for variables.
local function shape_of(buffer, sizes)
  local shape = {}
  for axis, dim in ipairs(buffer.shape) do
    shape[axis] = dim.kind == "IntImm" and dim.value or sizes[dim.name]
    assert(shape[axis], "a dimension that is no size")
  end
  return shape
end

--- Arguments for a PrimFunc: `sizes` are those of variables by name, `kind` one of
-- core.generate_input's. Integers are indices into buffers of 16 elements at least.
function compare.arguments(fn, sizes, seed, kind)
  local by_param, list = {}, {}
  for _, stmt in ipairs(fn.stmts) do
    if stmt.kind == "BufferBind" then by_param[stmt.param] = stmt.buffer end
  end
  for i, param in ipairs(fn.params) do
    local buffer = by_param[param]
    local dtype = (buffer or param).dtype
    local base, lanes = dtype:match "^(.-%d)x(%d+)$"
    local shape = buffer and shape_of(buffer, sizes) or {}
    if lanes then shape[#shape + 1] = tonumber(lanes) end
    local how = dtype:find "int" and "small" or kind or "ordinary"
    list[i] = core.generate_input(base or dtype, shape, how, seed * 1000003 + i)
  end
  return list
end

local function flatten(value, out)
  if type(value) ~= "table" then
    out[#out + 1] = value
  else
    for _, part in ipairs(value) do flatten(part, out) end
  end
  return out
end

local function agrees(x, y, tolerance, most)
  if x == y or x ~= x and y ~= y then return true end
  return tolerance and math.abs(x - y) <= tolerance * math.max(math.abs(x), most)
end

--- What differs between two tensors, or nil. With a tolerance floats may differ by that part of
-- the largest magnitude.
function compare.difference(expected, got, tolerance)
  local a, b, most = flatten(expected:to_table(), {}), flatten(got:to_table(), {}), 0
  if expected.dtype ~= got.dtype or #a ~= #b then return "another dtype or size" end
  for _, x in ipairs(a) do
    if math.abs(x) > most and math.abs(x) < math.huge then most = math.abs(x) end
  end
  for i, x in ipairs(a) do
    if not agrees(x, b[i], tolerance, most) then
      return ("element %d: %s expected, got %s"):format(i, x, b[i])
    end
  end
end

--- What differs between the interpreter's results and those of a function of a built module;
-- nil: nothing. "refused" when the interpreter finds a fault.
function compare.run(fn, built, name, args, tolerance)
  local ok, expected = pcall(pl.tir.run, fn, args, { uninitialized = "error" })
  if not ok then return nil, "refused" end
  local results = built:run(name, table.unpack(args))
  for i, tensor in ipairs(expected) do
    local how = compare.difference(tensor, results[i], tolerance)
    if how then return ("buffer %d: %s"):format(i, how) end
  end
end

return compare
