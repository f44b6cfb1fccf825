--- perilune ops: what operators there are.

require "perilune.core".internal() -- errors name the scripts of others

local stop = require "perilune.cli.stop"

local ops = { description = "Lists operators, or shows one." }

function ops.arguments(parser)
  parser:argument("name", "The operator to show."):args "?"
end

local function show(op)
  local arity = op.max_args == op.min_args and tostring(op.min_args)
    or ("%d to %s"):format(op.min_args, op.max_args or "any number of")
  local traits = {}
  for trait in pairs(op.traits) do traits[#traits + 1] = trait end
  table.sort(traits)
  print(op.name)
  print("  " .. op.doc)
  print(("  operands: %s"):format(arity))
  print(("  attributes: %s"):format((op.attrs or "") ~= "" and op.attrs or "none"))
  print(("  traits: %s"):format(#traits > 0 and table.concat(traits, ", ") or "none"))
  print(("  evaluated: %s"):format(op.has_kernel and "yes" or "no"))
end

function ops.run(options)
  local core = require "perilune.core"
  if options.name then
    local op = core.op(options.name)
    if not op then
      stop.usage("no operator is called '%s'%s", options.name,
        core.suggest(options.name, core.ops()))
    end
    show(op)
    return
  end
  local rows = {}
  for i, name in ipairs(core.ops()) do rows[i] = { name, core.op(name).doc } end
  io.stdout:write(require "perilune.cli.columns"(rows))
end

return ops
