--- tir.InjectCopyIntrin: loops that copy a region, marked by a pragma, become the statement that a
-- function makes of it: a DMA, a call of memcpy.
--
--     T.attr(..., "pragma_memcpy", 1); for i, j in T.grid(4, 8): B[i * 8 + j] = A[i * 10 + j]
--         =>   fintrin(A as (4, 8) with strides (10, 1), B as (4, 8) with strides (8, 1))
--
-- Definition: TVM 0.14, src/tir/transforms/inject_copy_intrin.cc.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local arith = require "perilune.arith"

local function refuse(problem, body)
  argument.fail(("tir.InjectCopyIntrin: this is no copy: %s\n%s"):format(problem, tostring(body)))
end

local function is_zero(expr) return expr.kind == "IntImm" and expr.value == 0 end

-- The loops around a store, and the store.
local function loops_of(body)
  local loops, stmt = {}, body
  while stmt.kind == "For" do
    if not is_zero(stmt.min) then refuse("a loop does not begin at 0", body) end
    loops[#loops + 1], stmt = stmt, stmt.body
  end
  if stmt.kind ~= "BufferStore" then refuse("it does something else than one store", body) end
  return loops, stmt
end

-- What is loaded; under which condition, and the value elsewhere.
local function loaded(value, body)
  local condition, other
  if value.kind == "Select" then
    condition, other, value = value.condition, value.false_value, value.true_value
  elseif value.kind == "PrimCall" and value.builtin == "if_then_else" then
    condition, other, value = value.args[1], value.args[3], value.args[2]
  end
  if value.kind == "Cast" then value = value.value end
  if value.kind ~= "BufferLoad" then refuse("what is stored is not loaded", body) end
  return value, condition, other
end

-- The factors of the variables in an access's index, and what is left.
local function strides_of(access, vars, body)
  if #access.indices ~= 1 then
    refuse("its buffers are not flat: run tir.StorageFlatten or tir.FlattenBuffer first", body)
  end
  local list = arith.detect_linear_equation(access.indices[1], vars)
  if not list or #list ~= #vars + 1 then refuse("an index is not linear in its loops", body) end
  return list, table.remove(list)
end

-- The part of the shape that the condition leaves, and how much is padded on both sides.
local function clip(copy, condition, body)
  local analyzer = arith.Analyzer()
  local bounds = arith.detect_clip_bound(condition, copy.vars)
  if not bounds or #bounds == 0 then refuse("its condition is not linear in its loops", body) end
  local tir = require "perilune.tir"
  for i, extent in ipairs(copy.shape) do
    local least, most, size = bounds[2 * i - 1], bounds[2 * i], extent
    local before, behind = tir.const(0, extent.dtype), tir.const(0, extent.dtype)
    if least then
      before = analyzer:simplify(tir.max(least, 0))
      copy.offset, size = copy.offset + before * copy.strides[i], size - before
    end
    if most then
      behind = analyzer:simplify(tir.max(extent - most - 1, 0))
      size = size - behind
    end
    copy.pad_before[i], copy.pad_after[i] = before, behind
    copy.shape[i] = analyzer:simplify(size)
  end
  copy.offset = analyzer:simplify(copy.offset)
end

-- The buffer of an access as a region with strides.
local function region(access, shape, strides, offset)
  local tir = require "perilune.tir"
  local buffer = access.buffer
  return tir.Buffer(buffer.data, buffer.dtype, shape, strides, offset, buffer.name)
end

local function intrinsic(body, fintrin)
  local tir = require "perilune.tir"
  local loops, store = loops_of(body)
  local load, condition, other = loaded(store.value, body)
  local vars, shape = {}, {}
  for i, loop in ipairs(loops) do vars[i], shape[i] = loop.loop_var, loop.extent end
  local to, to_offset = strides_of(store, vars, body)
  local from, from_offset = strides_of(load, vars, body)
  local copy = { vars = vars, shape = { table.unpack(shape) }, strides = from,
    offset = from_offset, pad_before = {}, pad_after = {} }
  if condition then clip(copy, condition, body) end
  if #loops == 0 then
    local one = tir.const(1, "int32")
    shape, copy.shape, to, copy.strides = { one }, { one }, { one }, { one }
  end
  local made = fintrin(region(load, copy.shape, copy.strides, copy.offset),
    region(store, shape, to, to_offset), copy.pad_before, copy.pad_after, other)
  if type(made) ~= "userdata" then
    argument.fail(("tir.InjectCopyIntrin: the function gave a %s, no statement"):format(type(made)))
  end
  return made
end

--- A pass over PrimFuncs: below each attribute "pragma_KEY" the loops become what
-- fintrin(src, dst, pad_before, pad_after, pad_value) returns. src and dst are Buffers with the
-- shape, strides and offset of what is copied; pads are extents by dimension, or none.
return function(pragma_key, fintrin)
  argument.string(pragma_key, "tir.InjectCopyIntrin", "pragma_key")
  if type(fintrin) ~= "function" then
    argument.fail(("tir.InjectCopyIntrin: fintrin: a function expected, got a %s"):format(
      type(fintrin)))
  end
  local tir, key = require "perilune.tir", "pragma_" .. pragma_key
  return require "perilune.pass".pass_class {
    name = "tir.InjectCopyIntrin", kind = "prim_func",
    doc = "Replaces loops that copy, marked by a pragma, by a statement.",
    run = function(_, fn)
      return tir.transform(fn, function(stmt)
        if stmt.attrs.attr_key ~= key then return nil end
        return intrinsic(stmt.body, fintrin)
      end, nil, { "tir.AttrStmt" })
    end,
  }()
end
