-- What matching rewrite rules costs: a node that no rule matches, beside the number of
-- rules; a match of a rule in text, and what a function of Lua adds; canonicalising and
-- merging equal computations, a node.
--
--     lua5.4 spec/bench/matching.lua BUILD

local build = assert(arg[1], "usage: matching.lua BUILD")
package.cpath = build .. "/lua/?.so;" .. package.cpath
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
local pl = require "perilune"
local random = require "spec.random.seeded"

local unary = { "exp", "log", "sqrt", "tanh", "sigmoid", "nn.relu", "negative", "abs", "floor",
  "ceil", "erf", "sin", "cos" }
local binary = { "add", "subtract", "multiply", "divide", "maximum", "minimum" }

-- The least processor time of some runs, in seconds.
local function least(run, runs)
  local best = math.huge
  for _ = 1, runs or 5 do
    collectgarbage()
    local began = os.clock()
    run()
    best = math.min(best, os.clock() - began)
  end
  return best
end

-- A function of `n` calls, each of the one before, drawn at random.
local function chain(n, seed, append)
  local draw = random(seed)
  local x = pl.var("x", "Tensor[(2, 3), float32]")
  local last = x
  for _ = 1, n do last = append(last, x, draw) end
  return pl.module { main = pl.func({ x }, last) }.main
end

local function op_of(name)
  local op = pl.op
  for part in name:gmatch "[^.]+" do op = op[part] end
  return op
end

local function any_call(last, x, draw)
  local name = draw() < 0.7 and unary[draw(1, #unary)]
  if name then return op_of(name)(last) end
  return op_of(binary[draw(1, #binary)])(last, x)
end

-- `n` rules of three nodes. The outer operators are those of the chain, and so are the
-- middle ones if `deep`; the innermost is none of them.
local function rules_of(n, deep)
  local list = {}
  local middle = deep and unary or { "sinh", "cosh", "tan", "atan", "asinh", "acosh", "atanh",
    "asin", "acos", "round", "sign", "rsqrt", "nn.softplus" }
  for i = 0, n - 1 do
    local outer, inner = unary[i % #unary + 1], middle[i // #unary % #middle + 1]
    list[#list + 1] = i < #unary * #middle
      and ("%s(%s(erfc(?x))) => exp(?x)"):format(outer, inner)
      or ("%s(%s(?x), %s(erfc(?y))) => exp(?x)"):format(binary[i % #binary + 1], inner, outer)
  end
  for i, text in ipairs(list) do list[i] = text:gsub("erfc", "isnan") end
  return pl.rules(list)
end

local function unmatched(n)
  local fn = chain(n, 1, any_call)
  local function time(rules)
    return least(function() for _ = 1, 1000000 // n do rules(fn) end end) / 1000000 * 1e9
  end
  print(("no rule matches, %d nodes"):format(n))
  print(("    %-52s %6.1f ns a node"):format("1 rule, of an operator that is not there",
    time(pl.rules { "isinf(isinf(?x)) => ?x" })))
  for _, count in ipairs { 30, 100, 300 } do
    for _, deep in ipairs { false, true } do
      print(("    %-52s %6.1f ns a node%s"):format(
        ("%d rules, which fail at the %s node"):format(count, deep and "third" or "second"),
        time(rules_of(count, deep)), count == 300 and " (wanted: 10)" or ""))
    end
  end
end

local function matched()
  local n = 100000
  local fn = chain(n, 2, function(last) return pl.op.exp(pl.op.nn.relu(pl.op.nn.relu(last))) end)
  local function time(...)
    local set = pl.rules { ... }
    return least(function() set(fn) end) / n * 1e6
  end
  local text = time "nn.relu(?y@nn.relu(?x)) => ?y"
  local replacement = time { "nn.relu(?y@nn.relu(?x))", function(m) return m.y end }
  local predicate = time { "nn.relu(?y@nn.relu(?x)) => ?y", where = function() return true end }
  print(("a match, %d of them"):format(n))
  print(("    %-52s %6.2f us"):format("text, with all of the rewrite", text))
  print(("    %-52s %+6.2f us (wanted: 1.5)"):format("a replacement in Lua adds",
    replacement - text))
  print(("    %-52s %+6.2f us (wanted: 1.5)"):format("a condition in Lua adds", predicate - text))
end

local function canonicalised()
  local set = pl.rules { "add(?x, 0) => ?x", "multiply(?x, 1) => ?x", "subtract(?x, 0) => ?x",
    "nn.relu(nn.relu(?x)) => nn.relu(?x)", "negative(negative(?x)) => ?x",
    "abs(abs(?x)) => abs(?x)" }
  print "canonicalise and merge equal computations, a node"
  for _, size in ipairs { { 100000, 50 }, { 10000000, 100 } } do
    local n, wanted = size[1], size[2]
    local fn = chain(n, 3, any_call)
    local time = least(function() set:apply(fn, { share = true }) end, n > 1000000 and 2 or 5)
    print(("    %-52s %6.1f ns (wanted: %d)"):format(("%d nodes"):format(n), time / n * 1e9,
      wanted))
  end
end

unmatched(10000)
unmatched(1000000)
matched()
canonicalised()
