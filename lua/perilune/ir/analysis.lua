--- What a program is made of: its kinds of nodes and its operators.
--
--     pl.detect_feature(mod)      -- { Call = true, Constant = true, ... }
--     pl.list_op_freqs(mod)       -- { ["nn.conv2d"] = 53, ... }
--     pl.extract_operators(mod)   -- { "add", "nn.conv2d", ... }

local core = require "perilune.core"
core.internal()

local sorted_keys = require "perilune.sorted_keys"
local visitor = require "perilune.ir.visitor"

local analysis = {}

--- The kinds of nodes that an expression, or a module's functions, are made of: a
-- set by name. A call of an operator has the kinds Call and Op, as in Relay.
function analysis.detect_feature(program)
  local found = {}
  visitor.post_order(program, function(node)
    found[node.kind] = true
    if node.op then found.Op = true end
  end)
  return found
end

--- How many calls of each operator there are, by its name. A shared call is one.
function analysis.list_op_freqs(program)
  local counts = {}
  visitor.post_order(program, function(node)
    local op = node.op
    if op then counts[op.name] = (counts[op.name] or 0) + 1 end
  end)
  return counts
end

--- The names of the operators that are called, each once, in order of their bytes.
function analysis.extract_operators(program)
  return sorted_keys(analysis.list_op_freqs(program))
end

return analysis
