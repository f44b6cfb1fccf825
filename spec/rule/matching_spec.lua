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
  local kind = depth == 0 and 1 or random(depth == 3 and 3 or 1, 9)
  if kind == 1 then
    local name = "?v" .. random(1, 3)
    vars[#vars + 1] = name
    return name
  elseif kind == 2 then
    local constant = pick(random, { "0", "1", "_", "2", "?c:const" })
    if constant == "?c:const" then vars[#vars + 1] = "?c" end
    return constant
  elseif kind == 3 then
    return ("%s(%s)"):format(pick(random, unary), random_pattern(random, depth - 1, vars))
  elseif kind == 4 and depth < 3 then
    return ("(%s | %s)"):format(random_pattern(random, 0, vars),
      ("%s(%s)"):format(pick(random, unary), random_pattern(random, depth - 1, vars)))
  elseif kind == 5 then
    return ("{%s|%s}(%s)"):format(unary[random(1, 2)], unary[random(3, 5)],
      random_pattern(random, depth - 1, vars))
  elseif kind == 7 then
    return ("(%s, %s).%d"):format(random_pattern(random, depth - 1, vars),
      random_pattern(random, depth - 1, vars), random(0, 1))
  elseif kind == 8 then
    return ("split(%s, indices_or_sections=1).0"):format(random_pattern(random, depth - 1, vars))
  elseif kind == 9 and depth < 3 then
    return ("If(_, %s, %s)"):format(random_pattern(random, depth - 1, vars),
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

-- A line of a module: the value %i, of type Tensor[(3), float32], from earlier ones.
local function random_line(random, i)
  local function value()
    local which = random(-2, i - 1)
    if which == -2 then return ("%df"):format(random(0, 2)) end
    return which < 1 and (which == 0 and "%x" or "%y") or ("%%%d"):format(which)
  end
  local last = i > 1 and "%" .. i - 1 or "%x"
  local kind = random()
  if kind < 0.5 then return ("%s(%s)"):format(pick(random, unary), last) end
  if kind < 0.6 then return ("(%s, %%x).%d"):format(last, random(0, 1)) end
  if kind < 0.7 then
    return ("split(%s, indices_or_sections=1, axis=0).0"):format(last)
  elseif kind < 0.75 then
    return ("if (%%b) { %s(%s) } else { %s(%s) }"):format(pick(random, unary), last,
      pick(random, unary), last)
  end
  return ("%s(%s, %s)"):format(pick(random, binary), i > 1 and "%" .. random(1, i - 1) or "%x",
    value())
end

local function random_module(random)
  local lines = {}
  for i = 1, 20 do lines[i] = ("  %%%d = %s;"):format(i, random_line(random, i)) end
  return assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%x: Tensor[(3), float32], %%y: Tensor[(3), float32], %%b: bool) {
%s
  add(%%19, %%20)
}
]]):format(table.concat(lines, "\n"))))
end

describe("a rewrite by rules", function()
  -- The first change, and one after it.
  for _, earlier in ipairs { "", "  %3 = negative(negative(%x));\n" } do
    it("infers users again of a node whose type it learns", function()
      local mod = assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%x: Tensor[*, float32]) {
%s  %%0 = tanh(%%x);
  %%1 = reshape(%%0, newshape=[2, 3]);
  %%2 = exp(%%0);
  (%%1, %%2, %s)
}
]]):format(earlier, earlier == "" and "%x" or "%3")))
      local out = pl.rules { "reshape(?y@tanh(_), newshape=_) => ?y",
        "negative(negative(?x)) => ?x" }(mod)
      assert.equal("Tensor[(2, 3), float32]", tostring(out.main.body.fields[1].type))
      assert.equal("Tensor[(2, 3), float32]", tostring(out.main.body.fields[2].type))
    end)
  end
end)

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
          for _, key in ipairs { "matches", "refused", "applied" } do
            assert.equal(slow_counts[i][key], count[key], ("seed %d"):format(seed))
          end
          assert.is_true(count.tried <= slow_counts[i].tried)
          applied = applied + count.applied
        end
      end
    end
    assert.is_true(applied > pairs_wanted)
  end)

  it("tells operators apart that were registered after it was made", function()
    local rules = pl.rules { "nn.relu(tanh(?x)) => tanh(?x)", "nn.relu(exp(?x)) => exp(?x)",
      "nn.relu(abs(?x)) => abs(?x)", "nn.relu(sqrt(?x)) => sqrt(?x)",
      "nn.relu(?c:const) => ?c" }
    local x = pl.var("x", "Tensor[(3), float32]")
    for i = 1, 100 do
      local name = ("spec_matching.op%d"):format(i)
      pl.ops[name] = { args = { "x" }, infer = "same" }
      local fn = pl.func({ x }, pl.op.nn.relu(pl.op[name](x)))
      assert.equal(fn, (rules:apply(fn)))
    end
  end)

  it("is made in linear time", function()
    local ops = { "exp", "log", "sqrt", "tanh", "sigmoid", "negative", "abs", "floor", "ceil",
      "erf", "sin", "cos", "sinh", "cosh", "tan", "atan", "round", "sign", "rsqrt", "nn.relu" }
    -- Of the first n rules, with the seconds that they take.
    local function made(n)
      local texts = {}
      for i = 0, n - 1 do
        texts[i + 1] = ("%s(%s(%s(nn.softplus(%s(?x))))) => exp(?x)"):format(ops[i % 20 + 1],
          ops[i // 20 % 20 + 1], ops[i // 400 % 20 + 1], ops[i // 8000 + 1])
      end
      local began = os.clock()
      return pl.rules(texts), os.clock() - began
    end
    local _, few = made(2000)
    local rules, many = made(16000)
    assert.is_true(many < 24 * few + 0.02)
    local x = pl.var("x", "Tensor[(3), float32]")
    local last = pl.op.nn.relu(pl.op.nn.relu(pl.op.nn.relu(pl.op.nn.softplus(pl.op.log(x)))))
    local _, counts = rules:apply(pl.func({ x }, last))
    assert.equal(1, counts[16000].tried)
  end)

  it("visits a node behind thousands that it passes over", function()
    local last = pl.var("x", "Tensor[(3), float32]")
    local fn = last
    for i = 1, 20000 do fn = pl.op[i % 5000 == 0 and "abs" or "exp"](fn) end
    local rules = pl.rules { "?r@abs(exp(?x:once)) => exp(?x)" }
    local new, counts = rules:apply(pl.func({ last }, fn))
    assert.equal(4, counts[1].applied)
    assert.equal(4, counts[1].tried)
    local same = rules:apply(pl.func({ last }, fn), { naive = true })
    assert.is_true(pl.equal(new, same))
  end)
end)
