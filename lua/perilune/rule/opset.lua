--- opset(module) -> the version of ai.onnx that the module imports, or nil: what conditions
-- of rules see.

require "perilune.core".internal()

return function(module)
  local imports = module.attrs.opset_import
  return imports and imports["ai.onnx"]
end
