--- The inputs and outputs of a model: two lists of { name, type }; none when it
-- has no function @main.

require "perilune.core".internal() -- errors name the scripts of others

return function(module)
  local main = module.functions.main
  local inputs, outputs = {}, {}
  if not main then return inputs, outputs end
  for i, param in ipairs(main.params) do
    inputs[i] = { name = param.name, type = param.type }
  end
  local names = main.scope_attrs.output_names or {}
  local result = main.body
  while result.kind == "Let" do result = result.body end
  local fields = #names ~= 1 and result.kind == "Tuple" and result.fields or { result }
  for i, field in ipairs(fields) do
    outputs[i] = { name = names[i] or ("output %d"):format(i), type = field.type }
  end
  return inputs, outputs
end
