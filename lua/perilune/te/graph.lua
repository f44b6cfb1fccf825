-- The graph of the operations that some read.

local core = require "perilune.core"
core.internal()

local graph = {}

--- The operations that some read, each behind those that it reads; with a stack. `known` (a set):
-- operations that are not listed, and beyond which is not looked.
function graph.post_order(ops, known)
  local order, state, stack = {}, {}, {}
  for i = #ops, 1, -1 do stack[#stack + 1] = ops[i] end
  while #stack > 0 do
    local op = stack[#stack]
    if known and known[op] then
      stack[#stack] = nil
    elseif not state[op] then
      state[op] = "entered"
      for i = #op.inputs, 1, -1 do
        if not state[op.inputs[i]] then stack[#stack + 1] = op.inputs[i] end
      end
    else
      stack[#stack] = nil
      if state[op] == "entered" then order[#order + 1] = op end
      state[op] = "listed"
    end
  end
  return order
end

return graph
