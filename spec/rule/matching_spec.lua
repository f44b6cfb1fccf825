-- The decision tree gives what trying every rule on every node gives, on random
-- rules and graphs. PERILUNE_SEED and PERILUNE_RULES (number of pairs) change the runs.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local pairs_wanted = tonumber(os.getenv "PERILUNE_RULES" or 400)

local unary = { "nn.relu", "tanh", "negative", "abs", "exp" }
local binary = { "add", "multiply", "subtract", "maximum" }

local function pick(random, list) return list[random(1, #list)] end

-- A pattern of at most that depth; adds its variables to `vars`.
local function random_pattern(random, depth, vars)
  local kind = depth == 0 and 1 or random(depth == 3 and 3 or 1, 6)
  if kind == 1 then
    local name = "?v" .. random(1, 3)
    vars[#vars + 1] = name
    return name
  elseif kind == 2 then
    return pick(random, { "0", "1", "_", "2" })
  elseif kind == 3 then
    return ("%s(%s)"):format(pick(random, unary), random_pattern(random, depth - 1, vars))
  elseif kind == 4 and depth < 3 then
    return ("(%s | %s)"):format(random_pattern(random, 0, vars),
      ("%s(%s)"):format(pick(random, unary), random_pattern(random, depth - 1, vars)))
  elseif kind == 5 then
    return ("{%s|%s}(%s)"):format(unary[random(1, 2)], unary[random(3, 5)],
      random_pattern(random, depth - 1, vars))
  end
  return ("%s(%s, %s)"):format(pick(random, binary), random_pattern(random, depth - 1, vars),
    random_pattern(random, depth - 1, vars))
end

-- A rule whose replacement has fewer calls than its pattern, so that rules end.
local function random_rule(random)
  local vars = {}
  local pattern = random_pattern(random, 3, vars)
  local where = random() < 0.3 and " where ?r.rank == 1" or ""
  return ("?r@%s => %s%s"):format(pattern, #vars > 0 and pick(random, vars) or "1", where)
end

local function random_rules(random)
  local rules = {}
  while #rules < 8 do
    local ok = pcall(pl.rules, { random_rule(random) })
    local text = ok and random_rule(random)
    if text and pcall(pl.rules, { text }) then rules[#rules + 1] = text end
  end
  return rules
end

local function random_module(random)
  local lines, n = {}, 0
  local function value()
    local which = random(-2, n)
    if which == -2 then return ("%d"):format(random(0, 2)) .. "f" end
    return which < 1 and (which == 0 and "%x" or "%y") or ("%%%d"):format(which)
  end
  for i = 1, 20 do
    if random() < 0.5 then
      lines[i] = ("  %%%d = %s(%s);"):format(i, pick(random, unary), i > 1 and "%" .. i - 1 or "%x")
    else
      lines[i] = ("  %%%d = %s(%s, %s);"):format(i, pick(random, binary),
        i > 1 and "%" .. random(1, i - 1) or "%x", value())
    end
    n = i
  end
  return assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%x: Tensor[(3), float32], %%y: Tensor[(3), float32]) {
%s
  add(%%19, %%20)
}
]]):format(table.concat(lines, "\n"))))
end

describe("the decision tree", function()
  it("finds what trying every rule finds", function()
    local applied = 0
    for seed = first, first + pairs_wanted - 1 do
      local random = seeded_random(seed)
      local texts = random_rules(random)
      local rules, mod = pl.rules(texts), random_module(random)
      local ok, fast, counts = pcall(rules.apply, rules, mod)
      local same, slow, slow_counts = pcall(rules.apply, rules, mod, { naive = true })
      assert.equal(ok, same, ("seed %d: %s"):format(seed, tostring(fast)))
      if ok then
        assert.is_true(pl.equal(fast, slow), ("seed %d:\n%s\n%s"):format(seed, rules, mod))
        for i, count in ipairs(counts) do
          assert.equal(slow_counts[i].applied, count.applied, ("seed %d"):format(seed))
          assert.is_true(count.tried <= slow_counts[i].tried)
          applied = applied + count.applied
        end
      end
    end
    assert.is_true(applied > pairs_wanted)
  end)
end)
