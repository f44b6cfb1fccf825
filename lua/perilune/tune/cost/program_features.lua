--- What a learned cost model sees of a program of the loop level, after the features of Ansor
-- (Zheng et al. 2020): for each store what it computes, loads and repeats, summed over the stores,
-- as logarithms.
--
-- Operands precede users in a function and a loop follows its body, so one sweep forward finds how
-- indices depend on variables, and one sweep backward which loops are around a store.

local core = require "perilune.core"
core.internal()
local bits = require "perilune.tir.operand".bits
local lowered = require "perilune.tune.lowered"

local UNROLLED, VECTORIZED, PARALLEL = 3, 2, 1

-- -------------------------------------------------------------------- indices

-- What an index is as a linear function: { [variable] = coefficient, constant = }. `other` marks
-- variables that it depends on in another way.
local OTHER <const> = math.huge

local function merged(a, b, sign)
  local out = {}
  for var, x in pairs(a) do out[var] = x end
  for var, x in pairs(b) do out[var] = (out[var] or 0) + sign * x end
  return out
end

local function scaled(a, factor)
  local out = {}
  for var, x in pairs(a) do out[var] = x == OTHER and x or x * factor end
  return out
end

local function opaque(forms)
  local out = {}
  for _, form in ipairs(forms) do
    for var in pairs(form) do if var ~= "constant" then out[var] = OTHER end end
  end
  return out
end

local function constant_of(form)
  for var, x in pairs(form) do
    if var ~= "constant" and x ~= 0 then return nil end
  end
  return form.constant or 0
end

local function form_of_call(node, forms)
  local parts = {}
  for i = 1, #node do parts[i] = forms[node[i]] or {} end
  local a, b = parts[1], parts[2]
  if node.kind == "Add" then return merged(a, b, 1) end
  if node.kind == "Sub" then return merged(a, b, -1) end
  if node.kind == "Mul" then
    local left, right = constant_of(a), constant_of(b)
    if right then return scaled(a, right) end
    if left then return scaled(b, left) end
  end
  if node.kind == "Ramp" then return a end
  if node.kind == "Broadcast" or node.kind == "Cast" then return a end
  return opaque(parts)
end

-- The forms of all expressions; `values`: what variables are bound to.
local function forms_of(order, values)
  local forms = {}
  for _, node in ipairs(order) do
    if node.kind == "IntImm" then
      forms[node] = { constant = node.value }
    elseif node.kind == "Var" then
      forms[node] = values[node] and forms[values[node]] or { [node] = 1 }
    else
      forms[node] = form_of_call(node, forms)
    end
  end
  return forms
end

-- ---------------------------------------------------------------------- stores

local float_ops = { Add = true, Sub = true, Mul = true, Div = true, Min = true, Max = true,
  PrimCall = true, Select = true, Cast = true }

local function lanes_of(node) return tonumber(tostring(node.dtype):match "x(%d+)$") or 1 end

-- How an access moves with the innermost loop: not at all, by one element, or further.
local function stride_class(self, access, loops)
  local inner = loops[#loops]
  local form = self.forms[access[#access]] or {}
  local step = inner and form[inner.var] or 0
  if lanes_of(access) > 1 then return "unit" end
  return step == 0 and "none" or math.abs(step) == 1 and "unit" or "far"
end

-- The elements of an access that the innermost `n` of the loops touch: loops of which an index
-- depends count.
local function touched(self, access, loops, n)
  local elements = lanes_of(access)
  for i = #loops - n + 1, #loops do
    for k = 2, #access do
      local form = self.forms[access[k]]
      if form and (form[loops[i].var] or 0) ~= 0 then
        elements = elements * loops[i].extent
        break
      end
    end
  end
  return elements
end

local function bytes_of(node) return math.max(8, bits(node.dtype:gsub("x%d+$", ""))) // 8 end

-- What a store evaluates, each expression as often as it stands there: its loads and operations.
local function scan_store(store)
  local loads, floats, ints, stack = {}, 0, 0, {}
  for i = 1, #store do stack[i] = store[i] end
  while #stack > 0 do
    local node = table.remove(stack)
    if node.kind == "BufferLoad" then loads[#loads + 1] = node end
    if float_ops[node.kind] then
      if tostring(node.dtype):find "^float" then
        floats = floats + lanes_of(node)
      else
        ints = ints + 1
      end
    end
    for i = node.kind == "Buffer" and #node + 1 or 1, #node do stack[#stack + 1] = node[i] end
  end
  return loads, floats, ints
end

local function product(loops, kind)
  local n = 1
  for _, loop in ipairs(loops) do
    if not kind or loop.kind == kind then n = n * loop.extent end
  end
  return n
end

local function add(sums, name, x) sums[name] = (sums[name] or 0) + x end

local function add_access(self, sums, access, loops, repeats)
  -- A small buffer of the program itself may live in registers.
  if self.own[access[1][1]] then
    add(sums, "own", repeats)
    return
  end
  add(sums, "accesses " .. stride_class(self, access, loops), repeats)
  add(sums, "bytes", repeats * bytes_of(access) * lanes_of(access))
  for _, depth in ipairs { 1, 2, 3, 5 } do
    local n = math.min(depth, #loops)
    -- Traffic if what these loops touch stays in a cache.
    local outside = repeats
    for i = #loops - n + 1, #loops do outside = outside / loops[i].extent end
    add(sums, "traffic " .. depth, outside * touched(self, access, loops, n) * bytes_of(access))
  end
end

local function add_store(self, sums, store, loops)
  local loads, floats, ints = scan_store(store)
  local repeats, lanes = product(loops), lanes_of(store[2])
  add(sums, "float", floats * repeats)
  add(sums, "integer", ints * repeats)
  add(sums, "stores", repeats)
  add(sums, "vector stores", lanes > 1 and repeats or 0)
  add(sums, "lanes", repeats * lanes)
  add(sums, "statements", 1)
  add(sums, "code", product(loops, UNROLLED) * (floats / lanes + ints + #loads + 1))
  add(sums, "unrolled", product(loops, UNROLLED) > 1 and repeats or 0)
  add(sums, "parallel", product(loops, PARALLEL) > 1 and repeats or 0)
  add(sums, "vectorized", product(loops, VECTORIZED) > 1 and repeats or 0)
  sums.threads = math.max(sums.threads or 0, product(loops, PARALLEL))
  sums.depth = math.max(sums.depth or 0, #loops)
  sums.innermost = math.max(sums.innermost or 0, #loops > 0 and loops[#loops].extent or 0)
  for _, load in ipairs(loads) do add_access(self, sums, load, loops, repeats) end
  add_access(self, sums, { store[1], table.unpack(store, 3, #store), dtype = store[2].dtype },
    loops, repeats)
end

-- ------------------------------------------------------------------- functions

-- Nodes in order, what variables of lets are bound to, and the variables of allocated buffers.
local function collect(fn)
  local order, values, own = {}, {}, {}
  for node in fn:nodes() do
    order[#order + 1] = node
    if node.kind == "LetStmt" or node.kind == "PrimLet" then values[node.var] = node.value end
    if node.kind == "Allocate" then own[node.buffer_var] = true end
  end
  return order, values, own
end

local function extent_of(loop)
  return loop.extent.kind == "IntImm" and loop.extent.value or 1
end

local function add_function(sums, fn)
  local order, values, own = collect(fn)
  local self, loops = { forms = forms_of(order, values), own = own }, {}
  for i = #order, 1, -1 do
    local node = order[i]
    if node.kind == "For" then
      loops[#loops + 1] = { var = node.loop_var, extent = extent_of(node),
        kind = node.attrs and node.attrs.kind or 0 }
      add(sums, "loops", 1)
    elseif #loops > 0 and node == loops[#loops].var then
      loops[#loops] = nil
    elseif node.kind == "BufferStore" then
      add_store(self, sums, node, loops)
    elseif node.kind == "Allocate" then
      add(sums, "allocations", 1)
    end
  end
end

local names = { "float", "integer", "stores", "vector stores", "lanes", "code", "unrolled",
  "parallel", "vectorized", "threads", "depth", "innermost", "loops", "allocations",
  "statements", "own",
  "accesses none", "accesses unit", "accesses far", "bytes", "traffic 1", "traffic 2", "traffic 3",
  "traffic 5" }

--- The features of a module of PrimFuncs: a list of numbers, of the same length for all modules.
-- Programs of blocks are lowered first.
return function(mod)
  mod = lowered(mod)
  local sums, list = {}, {}
  for _, fn in pairs(mod) do
    if fn.kind == "PrimFunc" then add_function(sums, fn) end
  end
  for i, name in ipairs(names) do list[i] = math.log(1 + (sums[name] or 0), 2) end
  return list
end
