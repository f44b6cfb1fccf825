-- What specs of schedules share: tensors of small numbers, and that a schedule computes what the
-- default one does.

local assert = require "luassert"
local pl = require "perilune"

local te, tir = pl.te, pl.tir

local keeps = {}

local function blank(shape, level, seed)
  if #shape == 0 then return seed * 1.0 end
  local rows = {}
  for i = 1, shape[level].value do
    if level < #shape then
      rows[i] = blank(shape, level + 1, seed + i)
    else
      rows[i] = ((i * 7 + seed * 5) % 11 - 5) * 1.0
    end
  end
  return rows
end

--- Values for the tensors, which have constant shapes.
function keeps.values(args)
  local values = {}
  for i, tensor in ipairs(args) do
    values[i] = pl.tensor(blank(tensor.shape, 1, i), tensor.dtype)
  end
  return values
end

--- What the last argument is behind a module.
function keeps.run(mod, args)
  return tir.run(mod, keeps.values(args))[#args]:to_table()
end

--- The default and the given schedule compute the same, before and after lowering.
function keeps.same(s, args)
  local expected = keeps.run(te.create_schedule(args[#args].op):to_module(args, "main"), args)
  assert.same(expected, keeps.run(s:to_module(args, "main"), args))
  assert.same(expected, keeps.run(pl.lower(s, { args = args }), args))
  return expected
end

--- The names of axes.
function keeps.names_of(axes)
  local names = {}
  for i, axis in ipairs(axes) do names[i] = axis.var.name end
  return names
end

--- f raises an error whose text matches.
function keeps.fails(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

--- The inferred extents of the axes of a tensor's operation, as text.
function keeps.extents(s, tensor)
  local found, bounds = {}, s:infer_bound()
  for i, axis in ipairs(tensor.op.axis) do found[i] = tostring(bounds(axis).extent) end
  return found
end

return keeps
