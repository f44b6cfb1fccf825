-- Operators on operands and attributes that nobody means: ranks, dtypes and
-- extents that do not fit, numbers at the ends of their range. Each call is
-- computed, or refused with a message. PERILUNE_SEED and PERILUNE_ROUNDS choose others.

local pl = require "perilune"
local amount = require "spec.random.amount"
local seeded = require "spec.random.seeded"

local seed = tonumber(os.getenv "PERILUNE_SEED") or 1

local shapes = { {}, { 1 }, { 2 }, { 4 }, { 0 }, { 2, 2 }, { 2, 3 }, { 4, 1 }, { 1, 0 },
  { 1, 2, 4 }, { 2, 1, 2 }, { 1, 2, 2, 2 }, { 2, 1, 1, 2, 2 }, { 1, 1, 3, 3 } }
local dtypes = { "float32", "float32", "float32", "float16", "float64", "int64", "int32", "uint8",
  "int8", "bool", "string" }
local numbers = { 0, 1, 2, 3, 4, 16, -1, -2, 1 << 20, 1 << 40, math.maxinteger, math.mininteger }
local small = { 0, 1, 2, 3, -1 }
local reals = { 0.0, 1.0, -1.0, 0.5, 1e30, -1e30, 1 / 0, 0 / 0 }
local texts = { "", "NONE", "Relu", "SOFTMAX", "BRANCH_LEQ", "LEAF", "a", "\255", "SAME_UPPER" }

local function pick(random, list) return list[random(1, #list)] end

local function list_of(random, values)
  local list = {}
  for i = 1, pick(random, { 0, 1, 2, 3, 4, 8 }) do list[i] = pick(random, values) end
  return list
end

local kinds = {
  int = function(random) return pick(random, random() < 0.5 and small or numbers) end,
  float = function(random) return pick(random, reals) end,
  string = function(random) return pick(random, texts) end,
  ints = function(random) return list_of(random, random() < 0.7 and small or numbers) end,
  floats = function(random) return list_of(random, reals) end,
  strings = function(random) return list_of(random, texts) end,
}

-- An element, or a nested list of elements of the axes from `axis` on.
local function nested(element, shape, axis)
  if axis > #shape then return element() end
  local list = {}
  for i = 1, shape[axis] do list[i] = nested(element, shape, axis + 1) end
  return list
end

local function operand(random)
  local dtype, shape = pick(random, dtypes), pick(random, shapes)
  for _, n in ipairs(shape) do
    if n == 0 then return pl.tensor("", shape, "float32") end
  end
  return pl.tensor(nested(function()
    if dtype == "string" then return pick(random, texts) end
    if dtype == "bool" then return random() < 0.5 end
    return random(0, 3)
  end, shape, 1), dtype)
end

local function attributes_of(random, op)
  local attributes = { n_results = pick(random, { 0, 0, 2, 4 }) }
  for name, kind in (op.attrs or ""):gmatch "([%w_]+):(%a+)" do
    if kinds[kind] and random(1, 3) > 1 then attributes[name] = kinds[kind](random) end
  end
  return attributes
end

-- Calls the operator on operands drawn; true if it is computed, else the message.
local function try(random, op)
  local params, values, args = {}, {}, {}
  for i = 1, random(op.min_args, math.min(op.max_args or 6, op.min_args + 4)) do
    values[i] = operand(random)
    params[i] = pl.var("x" .. i, tostring(pl.const(values[i]).type))
    args[i] = params[i]
  end
  args[#args + 1] = attributes_of(random, op)
  return pcall(function()
    pl.eval(pl.func(params, op(table.unpack(args))), table.unpack(values))
  end)
end

-- By name, so that a seed makes the same calls in each process.
local function sorted(ops)
  local list = {}
  for _, op in pairs(ops) do
    if op.has_kernel then list[#list + 1] = op end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function is_of_a_domain(op)
  return op.name:find "^microsoft%." or op.name:find "^ml%."
end

-- Tries each operator n times, with memory for small results.
local function try_all(ops, n)
  local random, computed, refused = seeded(seed), 0, 0
  local few = pl.context { config = { ["limit.memory"] = pl.memory() + (1 << 28) } }
  for _, op in ipairs(sorted(ops)) do
    for _ = 1, n do
      local ok, why = pl.with(few, function() return try(random, op) end)
      computed, refused = computed + (ok and 1 or 0), refused + (ok and 0 or 1)
      assert.is_true(ok or #tostring(why) > 0, op.name)
    end
  end
  assert.is_true(computed > 0 and refused > 0,
    ("seed %d: %d computed, %d refused"):format(seed, computed, refused))
end

describe("an operator on operands that nobody means", function()
  for _, domain in ipairs { "microsoft", "ml" } do
    it("is computed or refused, in " .. domain, function()
      try_all(pl.op[domain], amount("PERILUNE_ROUNDS", 40))
    end)
  end

  it("is computed or refused, among all others", function()
    local others = {}
    for name, op in pairs(pl.ops) do
      if not is_of_a_domain(op) then others[name] = op end
    end
    try_all(others, amount("PERILUNE_ROUNDS", 20))
  end)
end)
