-- Chains of operators that only move elements or give them another shape, made
-- at random: SimplifyExpr keeps what they compute, and the default pipeline
-- ends. PERILUNE_CHAINS says how many, PERILUNE_SEED which come first.

local pl = require "perilune"
local amount = require "spec.random.amount"
local default = require "perilune.pipelines.default"

local op = pl.op

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local chains = amount("PERILUNE_CHAINS", 1500)

local function generator(seed)
  local state = seed
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
end

local function ints(list) return pl.const(pl.tensor(list, "int64")) end

-- Each takes a node and its shape, in which N is a name, and gives both anew, or
-- nothing when the shape does not allow it.
local steps = {}

-- Neighbouring extents become one, others are taken apart; N may be left open.
function steps.reshape(y, shape, below)
  local new, list, i = {}, {}, 1
  while i <= #shape do
    local a, b = shape[i], shape[i + 1]
    if below(2) == 1 and math.type(a) and math.type(b) then
      new[#new + 1], i = a * b, i + 2
    elseif math.type(a) and a % 2 == 0 and below(2) == 1 then
      new[#new + 1] = 2
      new[#new + 1], i = a // 2, i + 1
    else
      new[#new + 1], i = a, i + 1
    end
  end
  for k, extent in ipairs(new) do list[k] = extent == "N" and -1 or extent end
  return op.reshape(y, ints(list)), new
end

function steps.transpose(y, shape, below)
  local perm, new = {}, {}
  for i = 1, #shape do table.insert(perm, below(i), i - 1) end
  for i, axis in ipairs(perm) do new[i] = shape[axis + 1] end
  return op.transpose(y, { axes = perm }), new
end

function steps.unsqueeze(y, shape, below)
  local at, new = below(#shape + 1), { table.unpack(shape) }
  table.insert(new, at, 1)
  return op.expand_dims(y, ints { at - 1 }), new
end

function steps.squeeze(y, shape)
  for at, extent in ipairs(shape) do
    if extent == 1 and #shape > 1 then
      local new = { table.unpack(shape) }
      table.remove(new, at)
      return op.squeeze(y, ints { at - 1 }), new
    end
  end
end

-- One position of an axis, by a take or by a slice, with the axis or without.
function steps.take(y, shape, below)
  local at, new = below(#shape), { table.unpack(shape) }
  local extent = shape[at]
  if extent == "N" or #shape < 2 then return end
  local i, how = below(extent) - 1, below(3)
  new[at] = how > 1 and 1 or nil
  if how == 1 then
    new = { table.unpack(shape) }
    table.remove(new, at)
    return op.take(y, pl.const(i), { axis = at - 1 }), new
  end
  if how == 2 then return op.take(y, ints { i }, { axis = at - 1 }), new end
  return op.strided_slice(y, ints { i }, ints { i + 1 }, ints { at - 1 }), new
end

function steps.sum(y, shape, below)
  local at, keep, new = below(#shape), below(2) - 1, { table.unpack(shape) }
  if shape[at] == "N" or #shape < 2 then return end
  if keep == 1 then new[at] = 1 else table.remove(new, at) end
  return op.sum(y, ints { at - 1 }, { keepdims = keep }), new
end

function steps.pad(y, shape, below)
  local at, new, pads = below(#shape), { table.unpack(shape) }, {}
  if shape[at] == "N" then return end
  for i = 1, 2 * #shape do pads[i] = 0 end
  pads[at], pads[at + #shape] = below(2) - 1, below(3) - 1
  new[at] = shape[at] + pads[at] + pads[at + #shape]
  return op.nn.pad(y, ints(pads), { pad_mode = below(2) == 1 and "edge" or "constant" }), new
end

-- The same twice, with something of its shape.
function steps.concat(y, shape, below)
  local at, new = below(#shape), { table.unpack(shape) }
  if shape[at] == "N" then return end
  new[at] = shape[at] * 2
  local other = op.negative(y)
  return op.concatenate(below(2) == 1 and { y, other } or { other, y }, { axis = at - 1 }), new
end

local names = { "reshape", "reshape", "reshape", "transpose", "transpose", "transpose",
  "unsqueeze", "squeeze", "squeeze", "take", "sum", "pad", "pad",
  "concat" }

local function chain(seed)
  local below = generator(seed)
  local shapes = { { "N", 4, 6 }, { 2, "N", 12 }, { 4, 1, 6, 2 }, { 8, "N" }, { 1, 6, 4 } }
  local shape = shapes[below(#shapes)]
  local x = pl.var("x", pl.type { shape = shape, dtype = "float32" })
  local y, kept = x, {}
  for _ = 1, 2 + below(8) do
    local node, new = steps[names[below(#names)]](y, shape, below)
    if node then y, shape = node, new end
    if below(8) == 1 then kept[#kept + 1] = y end
  end
  kept[#kept + 1] = y
  return pl.module { main = pl.func({ x }, pl.tuple(kept)) }
end

describe("A chain of moves and reshapes", function()
  it("computes the same when it is simplified", function()
    for seed = first, first + chains - 1 do
      local mod = chain(seed)
      for _, pass in ipairs { pl.passes.SimplifyExpr(), default } do
        local out = pass(mod)
        assert(pl.verify(out))
        local ok, diag = pl.check(mod, out, { seed = seed, dims = { N = 1 + seed % 3 } })
        if not ok then error(("seed %d: %s\n%s"):format(seed, tostring(diag), tostring(mod))) end
        if pass == default and default(out) ~= out then error(("seed %d: no end"):format(seed)) end
      end
    end
  end)

  it("becomes shorter", function()
    local before, after = 0, 0
    for seed = 1, 200 do
      local mod = chain(seed)
      for node in mod.main:nodes() do before = before + (node.kind == "Call" and 1 or 0) end
      for node in default(mod).main:nodes() do after = after + (node.kind == "Call" and 1 or 0) end
    end
    assert.is_true(after < before * 0.8)
  end)
end)
