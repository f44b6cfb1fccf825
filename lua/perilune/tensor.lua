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
-- t.dtype, t.shape, t.rank, t.size, t.bytes; t:totable(), t:tobytes(),
-- t:get(i, j) with indices from 1, t:equal(other).

local core = require "perilune.core"
core.internal()

-- NumPy's names of element types, without byte order.
local from_npy = {
  f2 = "float16", f4 = "float32", f8 = "float64", i1 = "int8", i2 = "int16", i4 = "int32",
  i8 = "int64", u1 = "uint8", u2 = "uint16", u4 = "uint32", u8 = "uint64", b1 = "bool",
  c8 = "complex64", c16 = "complex128",
}
local to_npy = {}
for short, name in pairs(from_npy) do to_npy[name] = short end

local function fail(path, message)
  return nil, core.diag("format", message, path)
end

-- The header's text and where the elements begin, by version of the format.
local function split_header(bytes)
  if bytes:sub(1, 6) ~= "\147NUMPY" or #bytes < 12 then return nil end
  local long = bytes:byte(7) > 1
  local size, start = string.unpack(long and "<I4" or "<I2", bytes, 9)
  return bytes:sub(start, start + size - 1), start + size
end

local function read_dims(text)
  local dims = {}
  for n in text:gmatch "%d+" do
    dims[#dims + 1] = math.tointeger(tonumber(n))
    if not dims[#dims] then return nil end
  end
  return dims
end

-- Column-major elements in row-major order.
local function transposed(bytes, width, dims)
  local strides, stride, count = {}, 1, 1
  for i, d in ipairs(dims) do strides[i], stride, count = stride, stride * d, count * d end
  local out, index, at = {}, {}, 0
  for i = 1, #dims do index[i] = 0 end
  for k = 1, count do
    out[k] = bytes:sub(at * width + 1, (at + 1) * width)
    for i = #dims, 1, -1 do
      index[i], at = index[i] + 1, at + strides[i]
      if index[i] < dims[i] then break end
      index[i], at = 0, at - dims[i] * strides[i]
    end
  end
  return table.concat(out)
end

local function swapped(bytes, width)
  local parts = {}
  for i = 1, #bytes, width do parts[#parts + 1] = bytes:sub(i, i + width - 1):reverse() end
  return table.concat(parts)
end

local function read_file(path)
  local file, reason = io.open(path, "rb")
  if not file then return nil, reason end
  local bytes
  bytes, reason = file:read "a"
  file:close()
  return bytes, reason
end

local tensor = {}

--- A tensor of little-endian elements, row by row: the same as pl.tensor(bytes,
-- dtype, shape).
tensor.from_bytes = core.tensor_bytes

--- A tensor whose elements are all `value`; stores one.
function tensor.full(value, dtype, shape) return core.tensor_splat(value, dtype, shape) end

--- A tensor of random elements, for one seed (0) always the same: uniform from
-- `low` (0) to `high` (1), or bell-shaped around `mean` (0) with standard
-- deviation `deviation` (1).
function tensor.random(dtype, shape, noise) return core.random(dtype, shape, noise) end

--- A tensor of an .npy file's bytes, or nil and a diagnostic.
function tensor.parse_npy(bytes, path)
  local header, start = split_header(bytes)
  if not header then return fail(path, "no .npy file: its magic bytes are missing") end
  local order, short = header:match "'descr':%s*'([<>|=])(%a%d+)'"
  local dtype = from_npy[short]
  local shape = header:match "'shape':%s*(%b())"
  if not dtype or not shape then
    return fail(path, "the .npy header names no known element type or shape")
  end
  local dims = read_dims(shape)
  local width = math.tointeger(tonumber(short:sub(2)))
  local count = 1
  for _, d in ipairs(dims or {}) do count = count * d end
  local data = bytes:sub(start)
  if not dims or count < 0 or count > #data or #data ~= count * width then
    return fail(path, ("the .npy file holds %d bytes, its shape %s asks for another number")
      :format(#data, shape))
  end
  if order == ">" then data = swapped(data, short:sub(1, 1) == "c" and width // 2 or width) end
  if header:find "'fortran_order':%s*True" then data = transposed(data, width, dims) end
  return core.tensor_bytes(data, dtype, dims)
end

--- The tensor in an .npy file, or nil and a diagnostic.
function tensor.load_npy(path)
  local bytes, reason = read_file(path)
  if not bytes then return nil, core.diag("io", reason) end
  return tensor.parse_npy(bytes, path)
end

local methods = {}

--- The bytes of an .npy file (version 1.0), or nil and a diagnostic.
function methods.tonpy(self)
  local short = to_npy[self.dtype]
  if not short then
    return nil, core.diag("unsupported", ("NumPy has no element type '%s'"):format(self.dtype))
  end
  local dims = table.concat(self.shape, ", ")
  local order = short:sub(2) == "1" and "|" or "<"
  local header = ("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s%s), }")
    :format(order, short, dims, self.rank == 1 and "," or "")
  local pad = -(10 + #header + 1) % 64
  header = header .. (" "):rep(pad) .. "\n"
  return "\147NUMPY\1\0" .. string.pack("<s2", header) .. self:tobytes()
end

--- Compares with the tensor that is expected: true, or false and how they
-- differ: { what = "dtype", "shape" or "elements", largest =, differing =,
-- index =, got =, expected = }. Floats may differ by atol + rtol * |expected|
-- (0 when not given); `scaled` multiplies atol by the largest finite magnitude
-- that is expected, at least 1. NaN agrees with NaN. `index` is that of the
-- first differing element, as get takes it; got and expected are its texts;
-- `largest` is told when all agree, too.
function methods.compare(self, expected, options)
  options = options or {}
  local what, how = core.tensor_compare(self, expected, options.rtol, options.atol,
    options.scaled)
  how.what = what ~= "none" and what or nil
  return what == "none", how
end

--- Writes an .npy file: true, or nil and a diagnostic.
function methods.save_npy(self, path)
  local bytes, diag = self:tonpy()
  if not bytes then return nil, diag end
  local file, reason = io.open(path, "wb")
  if not file then return nil, core.diag("io", reason) end
  local ok
  ok, reason = file:write(bytes)
  file:close()
  if not ok then return nil, core.diag("io", reason) end
  return true
end

core.extend("perilune.Tensor", methods)

return setmetatable(tensor, {
  __name = "perilune.tensor",
  __call = function(_, value, dtype, shape)
    if shape then return core.tensor_bytes(value, dtype, shape) end
    return core.tensor(value, dtype)
  end,
})
