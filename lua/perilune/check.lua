--- pl.check: whether two functions or modules compute the same, on inputs that
-- are made for them.
--
--     assert(pl.check(model, optimised))
--     assert(pl.check(f, g, { rounds = 5, dims = { N = 3 }, tolerance = 1e-4 }))
--
-- Symbolic dims are 2 unless `dims` names them. Floats may differ by
-- `tolerance` times their size (1e-5); everything else is equal bit by bit.

local core = require "perilune.core"
local ir = require "perilune.ir"
core.internal()

-- Numbers as a linear congruential generator gives them: the same everywhere.
local function generator(seed)
  local state = seed
  return function()
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) / 2 ^ 31 -- in [0, 1)
  end
end

-- Values that find mistakes, among the ordinary ones.
local odd = { 0.0, -0.0, 1.0, -1.0, 0.5, 100.0 }

local function value_of(dtype, random)
  if dtype == "bool" then return random() < 0.5 end
  if dtype == "string" then return ("s%d"):format(math.floor(random() * 100)) end
  if dtype:find "^u" then return math.floor(random() * 3) end
  if dtype:find "^int" then return math.floor(random() * 4) - 2 end
  if random() < 0.1 then return odd[1 + math.floor(random() * #odd)] end
  return random() * 4 - 2
end

local function size_of(dim, dims)
  if type(dim) == "number" then return dim end
  if dim == "?" then return 2 end
  if not dims[dim] and dim:find "^[%a_][%w_]*$" then dims[dim] = 2 end
  return dims[dim] or 2
end

local function fill(shape, axis, dtype, random)
  if axis > #shape then return value_of(dtype, random) end
  local row = {}
  for i = 1, shape[axis] do row[i] = fill(shape, axis + 1, dtype, random) end
  return row
end

local function input(type_, dims, random)
  if type_.kind ~= "tensor" or not type_.shape or not type_.dtype then
    return nil, core.diag("unsupported",
      ("no input can be made of type %s"):format(tostring(type_)))
  end
  local shape = {}
  for i, dim in ipairs(type_.shape) do shape[i] = size_of(dim, dims) end
  return core.tensor(fill(shape, 1, type_.dtype, random), type_.dtype)
end

local function inputs(fn, dims, random)
  local list = {}
  for i, param in ipairs(fn.params) do
    local diag
    list[i], diag = input(param.type, dims, random)
    if not list[i] then return nil, diag end
  end
  return list
end

-- NaN agrees with NaN; infinities with themselves.
local function close(a, b, tolerance)
  if a == b or (a ~= a and b ~= b) then return true end
  if type(a) ~= "number" or type(b) ~= "number" then return false end
  return math.abs(a - b) <= tolerance * math.max(1, math.abs(a), math.abs(b))
end

local function differs(a, b, tolerance)
  if a.dtype ~= b.dtype then return ("dtypes %s and %s"):format(a.dtype, b.dtype) end
  local sa, sb = table.concat(a.shape, ", "), table.concat(b.shape, ", ")
  if sa ~= sb then return ("shapes (%s) and (%s)"):format(sa, sb) end
  if a:equal(b) then return nil end
  local stack = { { a:totable(), b:totable() } }
  while #stack > 0 do
    local x, y = table.unpack(table.remove(stack))
    if type(x) == "table" then
      for i = #x, 1, -1 do stack[#stack + 1] = { x[i], y[i] } end
    elseif not close(x, y, tolerance) then
      return ("%s and %s"):format(tostring(x), tostring(y))
    end
  end
end

local function run(subject, fn, list)
  if ir.kind_of(subject) == "Module" then
    return table.pack(pcall(core.eval_in, subject, fn, table.unpack(list)))
  end
  return table.pack(pcall(core.eval, fn, table.unpack(list)))
end

local function compare(a, b, tolerance)
  for _, result in ipairs { a, b } do
    if not result[1] then return nil, result[2] end
  end
  if a.n ~= b.n then
    return nil, core.diag("invalid",
      ("one gives %d results, the other %d"):format(a.n - 1, b.n - 1))
  end
  for i = 2, a.n do
    local what = differs(a[i], b[i], tolerance)
    if what then
      return nil, core.diag("invalid", ("result %d differs: %s"):format(i - 1, what))
    end
  end
  return true
end

local function main_of(subject)
  if ir.kind_of(subject) == "Module" then return subject.functions.main end
  return subject
end

return function(a, b, options)
  options = options or {}
  local fa, fb = main_of(a), main_of(b)
  if not fa or not fb then error("pl.check: a module without a function 'main'", 2) end
  local random, dims = generator(options.seed or 1), options.dims or {}
  for _ = 1, options.rounds or 1 do
    local list, diag = inputs(fa, dims, random)
    if not list then return nil, diag end
    local ok
    ok, diag = compare(run(a, fa, list), run(b, fb, list), options.tolerance or 1e-5)
    if not ok then return nil, diag end
  end
  return true
end
