--- Sizes that the command line fixes: --dim NAME=SIZE for symbolic dims, --shape
-- INPUT=D0,D1 for inputs, whose dims may have names or none.

local core = require "perilune.core"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local shapes = {}

--- The options.
function shapes.options(parser)
  parser:option("--dim", "Fixes the size of a symbolic dim: N=1."):argname "NAME=SIZE":count "*"
  parser:option("--shape", "Fixes the sizes of an input's dims, named or not: "
    .. "x=1,3,224,224; '?' leaves a dim open. A named dim gets its size everywhere.")
    :argname "INPUT=SIZES":count "*"
end

local function dim_of(word, text)
  if word == "?" then return "?" end
  local size = word:match "^%d+$" and math.tointeger(tonumber(word))
  if size then return size end
  stop.usage("--shape %s: '%s' is not a size; expected INPUT=SIZES, as in --shape x=1,3,224,224",
    text, word)
end

local function shape_of(text)
  local name, list = text:match "^(.+)=([^=]*)$"
  if not name then
    stop.usage("--shape %s: expected INPUT=SIZES, as in --shape x=1,3,224,224", text)
  end
  local shape = {}
  list = list:gsub("^%s*[%[%(]", ""):gsub("[%]%)]%s*$", "")
  if list:match "%S" then
    for word in (list .. ","):gmatch "%s*(.-)%s*," do shape[#shape + 1] = dim_of(word, text) end
  end
  return { name = name, shape = shape, text = text }
end

--- What the options say; wrong usage is told. { dims = { { name, size } }, shapes = {
-- { name, shape, text } } }.
function shapes.parse(options)
  local fixed, given = { dims = numbers.dims(options.dim), shapes = {} }, {}
  for i, text in ipairs(options.shape) do
    fixed.shapes[i] = shape_of(text)
    local name = fixed.shapes[i].name
    if given[name] then stop.usage("--shape %s: '%s' is given twice", text, name) end
    given[name] = true
  end
  return fixed
end

local function input_names(module)
  local names = {}
  for i, row in ipairs((require "perilune.cli.signature"(module))) do names[i] = row.name end
  return names
end

local function complain(module, row, diag)
  local near = diag.code == "name" and core.suggest(row.name, input_names(module)) or ""
  stop.failure("--shape %s: %s%s", row.text, diag.message, near)
end

--- The module with what is fixed (of shapes.parse).
function shapes.fix(module, fixed)
  for _, dim in ipairs(fixed.dims) do
    local better, diag = module:fix_dim(dim.name, dim.size)
    if not better then stop.failure("--dim %s=%d: %s", dim.name, dim.size, diag.message) end
    module = better
  end
  for _, row in ipairs(fixed.shapes) do
    local better, diag = module:fix_shape(row.name, row.shape)
    if not better then complain(module, row, diag) end
    module = better
  end
  return module
end

return shapes
