--- What a model file holds: { nodes, compute_nodes, operators by name, files },
-- the last of which are those of its external data. ONNX files are counted as
-- they are, without reading weights; of text it is the module's calls of operators, and the
-- statements of its PrimFuncs.

local core = require "perilune.core"
core.internal() -- diagnostics point at the scripts of others

local is_statement = {}
for _, name in ipairs { "LetStmt", "AttrStmt", "AssertStmt", "BufferStore", "BufferRealize",
  "ProducerStore", "ProducerRealize", "Allocate", "AllocateConst", "Evaluate", "IfThenElse", "For",
  "While", "Prefetch", "Block" } do is_statement[name] = true end

local function of_module(module)
  local counts = { nodes = 0, operators = {}, files = {} }
  for _, fn in pairs(module) do
    for node in fn:nodes() do
      local op = node.kind == "Call" and node.op
      local name = op and op.name or is_statement[node.kind] and node.kind
      if name then
        counts.nodes = counts.nodes + 1
        counts.operators[name] = (counts.operators[name] or 0) + 1
      end
    end
  end
  counts.compute_nodes = counts.nodes
  return counts
end

-- `bytes`: those of the model, where there is no regular file.
local function is_text(path, bytes)
  if bytes then return core.file_kind(bytes) ~= nil end
  return require "perilune.cli.load".names_text(path)
end

return function(path, module, bytes)
  if is_text(path, bytes) then return of_module(module) end
  local counts, diag = core.onnx_count(not bytes and path or nil, bytes)
  if not counts then error(diag, 0) end
  return counts
end
