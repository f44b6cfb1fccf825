-- The shipped rules that are text: random subsets of them keep what random graphs
-- compute. PERILUNE_GRAPHS says how many graphs, PERILUNE_SEED which come first; a seed that
-- fails is named.

local pl = require "perilune"
local amount = require "spec.random.amount"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"
local seeded_random = require "spec.random.seeded"

local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local graphs = amount("PERILUNE_GRAPHS", 2000)

local folder = "lua/perilune/rules/"

-- The rules that sweeps apply; spec/tune/rule_generation_spec.lua has the others.
local function shipped()
  local all = {}
  for _, set in ipairs(dofile(folder .. "init.lua")) do
    for _, file in ipairs(set.saturates and {} or set.files) do
      for _, rule in ipairs(dofile(folder .. file .. ".lua")) do
        -- the condition on the opset of a model holds here: graphs have none
        if not rule.native then
          all[#all + 1] = { (rule[1]:gsub("opset >= %d+", "true")), proof = rule.proof,
            grows = rule.grows }
        end
      end
    end
  end
  return all
end

local rules = shipped()

local function subset(random)
  local some, share = {}, random()
  for _, rule in ipairs(rules) do
    if random() < share then some[#some + 1] = rule end
  end
  return some[1] and some or { rules[1] }
end

describe("the shipped rules", function()
  it("keep what random graphs compute, in random subsets", function()
    local applied, refused = 0, 0
    for seed = first, first + graphs - 1 do
      local mod = random_graph(seed)
      local set = pl.rules(subset(seeded_random(seed)))
      local out, counts = set:apply(mod)
      for _, count in ipairs(counts) do applied = applied + count.applied end
      assert(pl.verify(out))
      if out ~= mod then
        local same, diag, none = compare(mod, out, { seed = seed, rounds = 1,
          dims = { N = 1 + seed % 3 }, rtol = 1e-4, atol = 1e-4, scaled = true })
        assert.is_true(same, ("seed %d: %s"):format(seed, tostring(diag)))
        refused = refused + (none and 1 or 0)
      end
    end
    assert.is_true(applied > graphs / 10)
    assert.is_true(refused <= 1 + graphs / 100, refused)
  end)

  it("are each applied to something that no earlier one matches", function()
    assert.is_true(#pl.rules(rules) > 50)
    assert.same({}, pl.diagnostics())
  end)

  it("can all be read when a program needs them", function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local body = pl.op.add(x, pl.op.exp(x))
    for _, set in ipairs(dofile(folder .. "init.lua")) do
      if set.saturates then goto continue end
      local pass = pl.passes[set.pass]()
      local before = pass(pl.module { main = pl.func({ x }, body) })
      assert(pl.why_not(set.pass, before.main)) -- reads all of them
      assert.is_true(pl.equal(before, pass(pl.module { main = pl.func({ x }, body) })))
      ::continue::
    end
  end)

  it("have reasons, and names that are theirs alone", function()
    local names = {}
    for _, set in ipairs(dofile(folder .. "init.lua")) do
      for _, file in ipairs(set.files) do
        for _, rule in ipairs(dofile(folder .. file .. ".lua")) do
          local name = rule[1]:match "^([%w_]+):"
          assert.is_string(name, rule[1])
          assert.is_nil(names[name], name)
          assert.is_true(#rule.reason > 3, name)
          names[name] = true
        end
      end
    end
  end)
end)
