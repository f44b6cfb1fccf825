--- pl.tensor: tensors from and to tables, bytes and NumPy's .npy files.
--
--     pl.tensor { { 1, 2 }, { 3, 4 } }                    -- int64, (2, 2)
--     pl.tensor({ 1, 2, 3 }, "float32")
--     pl.tensor(bytes, "float32", { 2, 2 })               -- little-endian elements
--     pl.tensor.full(0, "float32", { 1024, 1024 })        -- one element stored
--     pl.tensor.random("float32", { 2, 3 }, { seed = 1, low = -1, high = 1 })
--     local t = assert(pl.tensor.load_npy "in.npy")
--     assert(t:save_npy "out.npy")
--
-- t.dtype, t.shape, t.rank, t.size, t.bytes; t:to_table(), t:to_bytes(),
-- t:get(i, j) with indices from 1, t:equal(other).

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

local tensor = {}

--- A tensor of little-endian elements, row by row: the same as pl.tensor(bytes,
-- dtype, shape).
tensor.from_bytes = core.tensor_bytes

--- A tensor whose elements are all `value`; stores one. Of dtypes that Lua has no
-- number for, such as float8_e5m2, float4_e2m1fn or complex64, `value` is the
-- element's bytes.
function tensor.full(value, dtype, shape) return core.tensor_splat(value, dtype, shape) end

--- A tensor of random elements, for one seed (0) always the same: uniform from
-- `low` (0) to `high` (1), or bell-shaped around `mean` (0) with standard
-- deviation `deviation` (1).
function tensor.random(dtype, shape, noise) return core.random(dtype, shape, noise) end

--- A tensor of an .npy file's bytes, or nil and a diagnostic. `name` is what
-- messages call it.
tensor.parse_npy = core.npy_parse

--- The tensor in an .npy file, or nil and a diagnostic. Its elements stay in the
-- file where they can.
tensor.load_npy = core.npy_load

local methods = {}

--- The bytes of an .npy file (version 1.0), or nil and a diagnostic.
methods.to_npy = core.npy_tostring

--- Writes an .npy file, beside `path` and renamed: true, or nil and a diagnostic.
methods.save_npy = core.npy_save

--- Compares with the tensor that is expected: true, or false and how they
-- differ: { what = "dtype", "shape" or "elements", largest =, differing =,
-- index =, got =, expected = }. Floats may differ by atol + rtol * |expected|
-- (0 when not given); `scaled` multiplies atol by the largest finite magnitude
-- that is expected, at least 1. NaN agrees with NaN. `index` is that of the
-- first differing element, as get takes it; got and expected are its texts;
-- `largest` is told when all agree, too.
function methods.compare(self, expected, options)
  options = argument.options(options, "tensor:compare")
  local what, how = core.tensor_compare(self, expected, options.rtol, options.atol,
    options.scaled)
  how.what = what ~= "none" and what or nil
  return what == "none", how
end

core.extend("perilune.Tensor", methods)

return setmetatable(tensor, {
  __name = "perilune.ir.tensor",
  __call = function(_, value, dtype, shape)
    if shape then return core.tensor_bytes(value, dtype, shape) end
    return core.tensor(value, dtype)
  end,
})
