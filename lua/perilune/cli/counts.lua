--- What a model file holds: { nodes, compute_nodes, operators by name, files },
-- the last of which are those of its external data. ONNX files are counted as
-- they are, without reading weights; of Relay text it is the module's calls of operators.

local core = require "perilune.core"
core.internal() -- diagnostics point at the scripts of others

local function of_module(module)
  local counts = { nodes = 0, operators = {}, files = {} }
  for _, fn in pairs(module) do
    for node in fn:nodes() do
      local op = node.kind == "Call" and node.op
      if op then
        counts.nodes = counts.nodes + 1
        counts.operators[op.name] = (counts.operators[op.name] or 0) + 1
      end
    end
  end
  counts.compute_nodes = counts.nodes
  return counts
end

-- `bytes`: those of the model, where there is no regular file.
local function is_text(path, bytes)
  if bytes then return core.file_kind(bytes) ~= nil end
  return path:find "%.relay$" ~= nil
end

return function(path, module, bytes)
  if is_text(path, bytes) then return of_module(module) end
  local counts, diag = core.onnx_count(not bytes and path or nil, bytes)
  if not counts then error(diag, 0) end
  return counts
end
