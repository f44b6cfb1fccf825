--- perilune zoo: makes models to try things on.

local stop = require "perilune.cli.stop"

local command = { description = "Lists the models that can be made here, or makes one." }

function command.arguments(parser)
  parser:argument("name", "The model to make."):args "?"
  parser:option("-o --output", "Where to write it."):argname "FILE"
end

function command.run(options)
  local zoo = require "perilune.zoo"
  if not options.name then
    if options.output then stop.usage "-o asks for the name of a model" end
    for _, entry in ipairs(zoo.models) do print(entry.name .. "\n  " .. entry.doc) end
    return 0
  end
  local model, reason = zoo.build(options.name)
  if not model then stop.usage("%s", reason) end
  if not options.output then stop.usage "say where to write the model: -o FILE" end
  local ok
  ok, reason = model:save(options.output)
  if not ok then stop.failure("%s", reason) end
  return 0
end

return command
