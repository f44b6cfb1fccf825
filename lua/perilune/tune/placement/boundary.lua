--- What it costs that a value leaves the backend that made it: the option `boundary` of
-- pl.tune.placement, and which values the parts of a cover take and give.
--
-- A value is moved once for each part that takes it, from the backend of the call that made it;
-- parameters and results of the function are the host's, constants go with the part.

local argument = require "perilune.argument"
local core = require "perilune.core"
local tensor_bytes = require "perilune.tune.cost.tensor_bytes"
core.internal()

local boundary = {}

-- Backends without a compiler share the host's memory and calls.
local function is_near(backend) return backend.compiler == nil end

local function linear(seconds, bandwidth)
  return function(bytes, from, to)
    if is_near(from) and is_near(to) then return 0 end
    return seconds + bytes / bandwidth
  end
end

-- Read and written once, and a call.
local function of_this_machine()
  local limits = require "perilune.tune.cost.machine".limits()
  return linear(limits.overhead, limits.bandwidth / 2)
end

local function number(options, name, where)
  local x = options[name]
  if type(x) ~= "number" or x ~= x or x < 0 or name == "bandwidth" and x == 0 then
    argument.fail(("%s: boundary: %s: a positive number expected"):format(where, name))
  end
  return x
end

local function of_function(f, where)
  return function(bytes, from, to)
    local seconds = f(bytes, from.name, to.name)
    if type(seconds) ~= "number" or seconds ~= seconds or seconds < 0 then
      argument.fail(("%s: boundary: the function gave %s for %d bytes from '%s' to '%s', where "
        .. "seconds from 0 on are expected"):format(where, tostring(seconds), bytes, from.name,
        to.name))
    end
    return seconds
  end
end

--- The cost of (bytes, from, to) for different backends; nil: nothing costs anything. Without the
-- option it is what this machine copies, or nothing where costs are the caller's.
function boundary.cost(option, measured, where)
  if option == nil then
    return measured and of_this_machine() or nil
  elseif option == false then
    return nil
  elseif type(option) == "function" then
    return of_function(option, where)
  end
  option = argument.options(option, where .. ": boundary", { "seconds", "bandwidth" })
  return linear(number(option, "seconds", where), number(option, "bandwidth", where))
end

-- The calls that make a value, and its parameters: those of a tuple's fields, of a field's tuple.
local function producers(node, list)
  if node.kind == "Tuple" then
    for _, field in ipairs(node.fields) do producers(field, list) end
  elseif node.kind == "TupleGetItem" then
    producers(node.tuple, list)
  elseif node.kind ~= "Constant" and not list[node] then
    list[node], list[#list + 1] = true, node
  end
  return list
end

local function bytes_of(node) return node.type and tensor_bytes(node.type) or 0 end

-- The last place where what a call makes is used, by the place of the call.
local function last_uses(index)
  local last = {}
  for place, node in ipairs(index.order) do
    local operands = node.kind == "Call" and node.args or {}
    for _, operand in ipairs(operands) do
      for _, producer in ipairs(producers(operand, {})) do
        local at = index.place[producer]
        if at then last[at] = place end
      end
    end
  end
  return last
end

--- What the cover needs to know of a function: { cost =, last_use = by place }.
function boundary.new(index, cost)
  if not cost then return nil end
  local results = {}
  for _, node in ipairs(producers(index.fn.body, {})) do results[node] = true end
  return { cost = cost, last_use = last_uses(index), results = results, index = index }
end

--- Adds to a candidate what it takes ({ place = of the call, nil for a parameter, bytes = }), and
-- the bytes of the function's results that it gives.
function boundary.describe(self, one)
  local own, inputs = {}, {}
  for _, node in ipairs(one.part.nodes) do own[node] = true end
  for _, input in ipairs(one.part.inputs) do producers(input, inputs) end
  one.inputs, one.results = {}, {}
  for _, node in ipairs(inputs) do
    if not own[node] then
      local is_call = node.kind == "Call"
      table.insert(one.inputs, { place = is_call and self.index.place[node] or nil,
        bytes = bytes_of(node) })
    end
  end
  for _, node in ipairs(one.part.nodes) do
    if self.results[node] then table.insert(one.results, bytes_of(node)) end
  end
end

return boundary
