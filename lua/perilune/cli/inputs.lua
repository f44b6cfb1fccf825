--- What a model is run on, as the command line tells it: files, random numbers,
-- defaults.

local core = require "perilune.core"
local pl = require "perilune"
local sizes = require "perilune.check.input_shapes"
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
  stop.usage("--input %s: the model has no input of this name%s", name, near)
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
      stop.usage("--input %s=random: its dimension %s is unknown; use --dim NAME=SIZE or give "
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

local function shape_of_value(value)
  if type(value) == "table" then value = value[1] end
  return type(value) == "userdata" and value.shape or nil
end

local function all_ones(search)
  local x = {}
  for v in ipairs(search.vars) do x[v] = 1 end
  return x
end

-- The shapes of the inputs once open dims have the sizes that the given values tell:
-- others have 1 where the operators admit it, else the least sizes that they admit.
local function sized(module, rows, values)
  local main, types, shapes = module.functions.main, {}, {}
  for i, param in ipairs(main.params) do types[i] = param.type end
  for i in ipairs(rows) do shapes[i] = shape_of_value(values[i]) end
  local search = sizes.new(types, main, module)
  local ones = search:of_shapes(shapes, all_ones(search))
  local trial = search:try(ones)
  if not trial.failed and not trial.empty then return search:shapes(ones) end
  return search:shapes(search:base(shapes) or ones)
end

local function complain(missing)
  local lines = {}
  for i, row in ipairs(missing) do
    lines[i] = ("  %s: %s"):format(row.name, tostring(row.type))
  end
  stop.usage("inputs are missing: give each by --input NAME=FILE, or make up all by "
    .. "--input random\n%s", table.concat(lines, "\n"))
end

-- Values from files and defaults; what is to be random is left out.
local function load_all(module, rows, given, rest)
  local values, missing, random_kinds = { n = #rows }, {}, {}
  local defaults = must(pl.onnx.defaults(module))
  for i, row in ipairs(rows) do
    local what = given[row.name]
    if what and is_random(what) then
      random_kinds[i] = what
    elseif what then
      values[i] = load(what, row)
    else
      values[i] = defaults[row.name]
      if values[i] == nil and rest then random_kinds[i] = rest
      elseif values[i] == nil and row.type.kind ~= "optional" then
        missing[#missing + 1] = row
      end
    end
  end
  if #missing > 0 then complain(missing) end
  return values, random_kinds
end

--- A value for each input (`rows`, of perilune.cli.signature): a list with its
-- length in n.
function inputs.make(module, rows, given, rest)
  local values, random_kinds = load_all(module, rows, given, rest)
  if not next(random_kinds) then return values end
  local shapes = sized(module, rows, values)
  for i, row in ipairs(rows) do
    if random_kinds[i] then values[i] = random(row, random_kinds[i], shapes[i], i - 1) end
  end
  return values
end

return inputs
