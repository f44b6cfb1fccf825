--- What a program is made of: its kinds of nodes and its operators.
--
--     pl.detect_feature(mod)      -- { Call = true, Constant = true, ... }
--     pl.list_op_freqs(mod)       -- { ["nn.conv2d"] = 53, ... }
--     pl.extract_operators(mod)   -- { "add", "nn.conv2d", ... }
--     pl.features(mod)            -- { let = true, ["dynamic shapes"] = true }
--     pl.get_total_mac_number(mod)   -- 4089284608

local argument = require "perilune.argument"
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

--- The features of an expression, or of all functions of a module: a set of "let", "letrec",
-- "refs", "closures", "ADTs", "control flow", "dynamic shapes", "quantised" and "loops", which
-- passes say to handle or not (`handles` of a pass).
function analysis.features(program)
  if argument.kind_of(program) == "Node" then return core.features(program) end
  if argument.kind_of(program) ~= "Module" then
    argument.fail("pl.features: a module or a function expected, got "
      .. argument.kind_of(program))
  end
  local all = {}
  for _, fn in pairs(program) do
    for name in pairs(core.features(fn)) do all[name] = true end
  end
  return all
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

--- The multiply-accumulates of all calls of operators, each counted once, whatever is
-- called or repeated how often; and how many calls have a number that is not known, because
-- a dim is open. Those are left out.
function analysis.get_total_mac_number(program)
  local total, open = 0, 0
  visitor.post_order(program, function(node)
    if not node.op or node.kind ~= "Call" then return end
    local macs = core.cost(node)
    if math.type(macs) == "integer" then total = total + macs else open = open + 1 end
  end)
  return total, open
end

return analysis
