--- What a learned cost model sees of a program of operators: for each class of operators how many
-- calls, operations and bytes there are, as logarithms.

local bytes_of = require "perilune.tune.cost.tensor_bytes"
local roofline = require "perilune.tune.cost.roofline"
require "perilune.core".internal() -- errors name the scripts of others

-- The class of a call: products by their size, others by what they do to their operand.
local classes = { "large product", "small product", "elementwise", "reduction", "movement" }
local LARGE = 1 << 20 -- operations

local function class_of(flops, bytes, call)
  if flops > 4 * bytes then return flops >= LARGE and "large product" or "small product" end
  if flops == 0 then return "movement" end
  local operand = call.args[1] and bytes_of(call.args[1].type) or 0
  return bytes_of(call.type) < operand and "reduction" or "elementwise"
end

local function add(sums, class, n, flops, bytes)
  local row = sums[class]
  row[1], row[2], row[3] = row[1] + n, row[2] + flops, row[3] + bytes
end

--- The features of a module: a list of numbers, of the same length for all modules. Raises where
-- an extent is not known.
return function(mod)
  local sums, list = {}, {}
  for _, class in ipairs(classes) do sums[class] = { 0, 0, 0 } end
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind == "Call" and node.op then
        local flops, bytes = roofline.call(node)
        add(sums, class_of(flops, bytes, node), 1, flops, bytes)
      end
    end
  end
  for _, class in ipairs(classes) do
    for _, x in ipairs(sums[class]) do list[#list + 1] = math.log(1 + x, 2) end
  end
  return list
end
