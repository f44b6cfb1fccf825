-- Random graphs of broadcasts and elementwise operators over shapes with many axes of extent 1:
-- EliminateBroadcast and the default pipeline keep what they compute. PERILUNE_GRAPHS says how
-- many graphs, PERILUNE_SEED which come first; a seed that fails is named.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local op = pl.op
local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local graphs = tonumber(os.getenv "PERILUNE_GRAPHS" or 1000)

local shapes = { {}, { 1 }, { 4 }, { 1, 1 }, { 1, 4 }, { 4, 1 }, { 4, 4 }, { 1, 1, 4 }, { 1, 4, 4 },
  { 1, 1, 1, 4 }, { "N", 1 }, { 1, "N" }, { "N", 4 }, { "N", 1, 4 } }
local most_axes = 6

local function below(random, n) return math.floor(random() * n) end

local function pick(random, list) return list[1 + below(random, #list)] end

-- One or two axes of the result of expand_dims, as a constant.
local function random_axes(random, rank)
  local n = 1 + below(random, 2)
  local one = below(random, rank + n)
  local axes = { one }
  if n == 2 then axes[2] = (one + 1 + below(random, rank + 1)) % (rank + 2) end
  return pl.const(pl.tensor(axes, "int64"))
end

local makers = {
  function(x, y) return op.add(x, y) end,
  function(x, y) return op.multiply(x, y) end,
  function(x) return op.negative(x) end,
  function(x, _, random) return op.expand_dims(x, random_axes(random, #x.type.shape)) end,
  function(x, y) return op.broadcast_to(x, op.shape_of(y, { dtype = "int64" })) end,
  function(x) return op.reshape(x, pl.const(pl.tensor({ 1, 1, -1, 4 }, "int64"))) end,
}

-- Operands that do not fit make no value.
local function random_broadcasts(seed)
  local random = seeded_random(seed)
  local params, values = {}, {}
  for i = 1, 4 do
    params[i] = pl.var("p" .. i, pl.type { shape = pick(random, shapes), dtype = "float32" })
    values[i] = params[i]
  end
  for _ = 1, 12 do
    local make, x, y = pick(random, makers), pick(random, values), pick(random, values)
    local made, value = pcall(make, x, y, random)
    local shape = made and value.type and value.type.shape
    if shape and #shape <= most_axes then values[#values + 1] = value end
  end
  return pl.module { main = pl.func(params, pl.tuple { values[#values], values[#values - 1] }) }
end

-- Counts the graphs that the pass changes. A graph that refuses all inputs may lose what refuses.
local function changed_by(pass)
  local changed = 0
  for seed = first, first + graphs - 1 do
    local mod = random_broadcasts(seed)
    local out = pass(mod)
    assert(pl.verify(out))
    if out ~= mod then
      changed = changed + 1
      local size = seed % 2 == 0 and 4 or 1
      local ok, diag = pl.check(mod, out, { rounds = 1, dims = { N = size } })
      diag = tostring(diag)
      if not ok and not diag:find "both refuse" and not diag:find "only the first refuses" then
        error(("seed %d: %s"):format(seed, diag), 0)
      end
    end
  end
  return changed
end

describe("graphs of broadcasts made at random", function()
  it("compute the same without those that EliminateBroadcast leaves out", function()
    assert.is_true(changed_by(pl.passes.EliminateBroadcast()) > graphs / 20)
  end)

  it("compute the same after the default pipeline", function()
    assert.is_true(changed_by(pl.pipelines.default) > graphs / 4)
  end)
end)
