--- perilune ops: what operators there are.

local core = require "perilune.core"
local operator_name = require "perilune.ir.operator_name"
local stop = require "perilune.cli.stop"
local missing_kernel = require "perilune.cli.missing_kernel"
core.internal() -- errors name the scripts of others

local ops = {
  description = "Lists operators, or shows one; those that a script registers with --script.",
}

function ops.arguments(parser)
  parser:argument("name", "The operator to show, by its Relay or ONNX name; 'nn' "
    .. "shows all of nn."):args "?"
  parser:flag("--missing", "Lists the operators that are not computed, and why.")
end

-- "x, bias?, more..."
local function operand_names(op)
  local names = {}
  for i, arg in ipairs(op.args) do
    names[i] = arg.name .. (arg.variadic and "..." or "") .. (arg.optional and "?" or "")
  end
  return table.concat(names, ", ")
end

local function show(op, onnx)
  local arity = op.max_args == op.min_args and tostring(op.min_args)
    or ("%d to %s"):format(op.min_args, op.max_args or "any number of")
  local traits = {}
  for trait in pairs(op.traits) do traits[#traits + 1] = trait end
  table.sort(traits)
  print(op.name)
  print("  " .. op.doc)
  if op.args and #op.args > 0 then arity = ("%s (%s)"):format(arity, operand_names(op)) end
  print(("  operands: %s"):format(arity))
  print(("  attributes: %s"):format((op.attrs or "") ~= "" and op.attrs or "none"))
  print(("  traits: %s"):format(#traits > 0 and table.concat(traits, ", ") or "none"))
  print(("  ONNX: %s"):format(#onnx > 0 and table.concat(onnx, ", ") or "none"))
  if op.results then print(("  results: %d"):format(op.results)) end
  local reason = missing_kernel[op.name]
  if op.registered and not op.has_kernel then reason = "it was registered without eval" end
  print(("  evaluated: %s"):format(reason and "no: " .. reason or "yes"))
end

-- What ONNX calls it, and since which versions of which domain.
local function onnx_names(name)
  local list = {}
  for _, row in ipairs(core.onnx_operators()) do
    if row[4] == name then
      list[#list + 1] = ("%s from %s %d"):format(row[2], row[1], row[3])
    end
  end
  return list
end

-- The operators whose names begin so; nil: all.
local function list(prefix)
  local rows = {}
  for _, name in ipairs(core.ops()) do
    if not prefix or name:sub(1, #prefix) == prefix then
      rows[#rows + 1] = { name, core.op(name).doc }
    end
  end
  if #rows > 0 then io.stdout:write(require "perilune.columns"(rows)) end
  return #rows > 0
end

local function show_one(name)
  local op = core.op(name)
  if op then return show(op, onnx_names(name)) end
  local prefix = name:gsub("%.?$", ".")
  if list(prefix) then return end
  local shown = {}
  for _, row in ipairs(operator_name.of_onnx(name)) do
    if not shown[row[4]] then show(core.op(row[4]), onnx_names(row[4])) end
    shown[row[4]] = true
  end
  if not next(shown) then stop.usage("%s", operator_name.unknown(name)) end
end

local function list_missing()
  local rows = {}
  for _, name in ipairs(core.ops()) do
    if missing_kernel[name] then rows[#rows + 1] = { name, missing_kernel[name] } end
  end
  io.stdout:write(require "perilune.columns"(rows))
end

function ops.run(options)
  if options.missing then return list_missing() end
  if options.name then return show_one(options.name) end
  list()
end

return ops
