--- What a model is run on, as the command line tells it: files, random numbers,
-- defaults.

local core = require "perilune.core"
local pl = require "perilune"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local inputs = {}

-- "x=FILE" -> { name, what }; "random:3" is for all that nothing else is said of.
local function parse(text)
  local name, what = text:match "^(.-)=(.*)$"
  if text:match "^random$" or text:match "^random:%d+$" then return { what = text } end
  if not name or name == "" or what == "" then
    stop.usage("--input %s: expected NAME=FILE.npy, NAME=FILE.pb or NAME=random[:SEED]", text)
  end
  return { name = name, what = what }
end

local function unknown(name, rows)
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.name end
  local near = core.suggest(name, names)
  if near == "" then near = "; there is: " .. table.concat(names, ", ") end
  stop.usage("--input %s: the model has no input called so%s", name, near)
end

--- The texts of `--input` for the inputs of a model: by name, and what is said
-- of all others, or nil.
function inputs.parse(texts, rows)
  local given, rest = {}, nil
  local known = {}
  for _, row in ipairs(rows) do known[row.name] = true end
  for _, text in ipairs(texts) do
    local one = parse(text)
    if one.name and not known[one.name] then unknown(one.name, rows) end
    if one.name and given[one.name] then stop.usage("--input %s: is given twice", one.name) end
    if one.name then given[one.name] = one.what else rest = one.what end
  end
  return given, rest
end

local function must(value, diag)
  if diag then error(diag, 0) end
  return value
end

local function load(path, row)
  if path:find "%.npy$" then return must(pl.tensor.load_npy(path)) end
  if path:find "%.pb$" then return must(pl.onnx.load_value(path, row.type)) end
  stop.usage("--input %s=%s: expected a file .npy or .pb, or random[:SEED]", row.name, path)
end

local function is_random(what) return what:match "^random$" or what:match "^random:%d+$" end

-- Random numbers that most operators take: integers may be indices of something
-- small, such as the kinds of tokens.
local ranges = { float = { -1, 1 }, bool = { 0, 1 }, int = { 0, 1 } }

local function shape_of(row, shape)
  local dims = {}
  for i, dim in ipairs(shape) do
    if type(dim) ~= "number" then
      stop.usage("--input %s=random: its dimension %s is not known; say --dim NAME=SIZE or give "
        .. "a file", row.name, dim)
    end
    dims[i] = dim
  end
  return dims
end

local function random(row, what, shape, index)
  local type_ = row.type
  if type_.kind ~= "tensor" or not type_.dtype or not shape then
    stop.usage("--input %s=random: no random value can be made of type %s", row.name,
      tostring(type_))
  end
  local range = ranges[type_.dtype:match "^u?(int)" or type_.dtype] or ranges.float
  local seed = math.tointeger(tonumber(what:match ":(%d+)$" or "0"))
  if not seed then stop.usage("--input %s=%s: the seed is too large", row.name, what) end
  local ok, tensor = pcall(pl.tensor.random, type_.dtype, shape_of(row, shape),
    { low = range[1], high = range[2], seed = seed ~ index << 32 })
  if not ok then stop.failure("--input %s=random: %s", row.name, tensor.message or tensor) end
  return tensor
end

-- The module with a number for `name`, or itself when it has no such dim.
local function fixed(module, name, size)
  return module:fix_dim(name, size) or module
end

-- The types of the inputs once the symbolic dims have the sizes that the given
-- tensors and --dim tell; 1 for all others.
local function sized(module, rows, values, dims)
  for _, dim in ipairs(dims) do
    local better, diag = module:fix_dim(dim.name, dim.size)
    if not better then stop.failure("--dim %s=%d: %s", dim.name, dim.size, diag.message) end
    module = better
  end
  for i, row in ipairs(rows) do
    local shape, own = row.type.shape, type(values[i]) == "userdata" and values[i].shape
    for axis = 1, own and shape and math.min(#shape, #own) or 0 do
      if type(shape[axis]) == "string" then module = fixed(module, shape[axis], own[axis]) end
    end
  end
  local params = module.functions.main.params
  for i, row in ipairs(rows) do
    for _, dim in ipairs(row.type.shape and params[i].type.shape or {}) do
      if type(dim) == "string" and dim ~= "?" then module = fixed(module, dim, 1) end
    end
    params = module.functions.main.params
  end
  return params
end

local function without_names(shape)
  local dims = {}
  for i, dim in ipairs(shape or {}) do dims[i] = dim == "?" and 1 or dim end
  return shape and dims
end

local function complain(missing)
  local lines = {}
  for i, row in ipairs(missing) do
    lines[i] = ("  %s: %s"):format(row.name, tostring(row.type))
  end
  stop.usage("these inputs are missing; give --input NAME=FILE or --input random:\n%s",
    table.concat(lines, "\n"))
end

-- Values from files and defaults; what is to be random is left out.
local function load_all(module, rows, given, rest)
  local values, missing, drawn = { n = #rows }, {}, {}
  for i, row in ipairs(rows) do
    local what = given[row.name]
    if what and is_random(what) then
      drawn[i] = what
    elseif what then
      values[i] = load(what, row)
    else
      values[i] = must(pl.onnx.default(module, row.name))
      if values[i] == nil and rest then drawn[i] = rest
      elseif values[i] == nil and row.type.kind ~= "optional" then
        missing[#missing + 1] = row
      end
    end
  end
  if #missing > 0 then complain(missing) end
  return values, drawn
end

--- A value for each input (`rows`, of perilune.cli.signature): a list with its
-- length in n. `dims` are { name, size }.
function inputs.make(module, rows, given, rest, dims)
  local values, drawn = load_all(module, rows, given, rest)
  if not next(drawn) then return values end
  local params = sized(module, rows, values, dims)
  for i, row in ipairs(rows) do
    if drawn[i] then
      values[i] = random(row, drawn[i], without_names(params[i].type.shape), i - 1)
    end
  end
  return values
end

return inputs
