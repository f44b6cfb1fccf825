-- Dataflow patterns made at random, on programs made at random: partitions compute the same,
-- rewrites that answer nothing change nothing, others give valid programs.

local pl = require "perilune"
local df = pl.dataflow_pattern
local op = pl.op

local TYPE = "Tensor[(2, 3), float32]"
local unary = { "tanh", "nn.relu", "sigmoid", "abs" }
local binary = { "add", "multiply", "subtract", "maximum" }
local ordered = { "subtract" } -- the order of operands counts

local function any_of(list) return list[math.random(#list)] end

local function random_call(pick, operators)
  if math.random(2) == 1 then return pl.ir.Call(any_of(unary), { pick() }) end
  return pl.ir.Call(any_of(operators), { pick(), pick() })
end

-- A function of n operators, branches and calls of function literals.
local function random_program(n, operators)
  local x, y, c = pl.var("x", TYPE), pl.var("y", TYPE), pl.var("c", "bool")
  local nodes = { x, y, pl.const(pl.tensor.full(0.5, { 2, 3 }, "float32")) }
  local function pick() return nodes[math.random(math.max(1, #nodes - 5), #nodes)] end
  for _ = 1, n do
    local choice = math.random(10)
    local node
    if choice == 1 then
      node = pl.if_(c, random_call(pick, operators), pick())
    elseif choice == 2 then
      local a = pl.var("a", TYPE)
      node = pl.func({ a }, pl.ir.Call(any_of(operators), { a, pick() }))(pick())
    else
      node = random_call(pick, operators)
    end
    nodes[#nodes + 1] = node
  end
  return pl.module { main = pl.func({ x, y, c }, pl.tuple { pick(), nodes[#nodes] }) }
end

local function leaf() return any_of { df.wildcard, df.wildcard, df.is_var, df.is_constant } () end

-- Constructors of a pattern from smaller ones that sub() gives; the first six have a form in
-- the language of rules.
local constructors = {
  function(sub) return df.is_op(any_of(unary))(sub()) end,
  function(sub) return df.is_op "subtract"(sub(), sub()) end,
  function(sub) return sub() | sub() end,
  function(sub) return df.is_if(sub(), sub(), sub()) end,
  function(sub) return df.is_function({ sub() }, sub())(sub()) end,
  function(sub) return df.is_function(nil, sub())(nil) end,
  function(sub) return df.is_op(any_of(binary))(sub(), sub()) end,
  function(sub) return sub():has_shape { 2, 3 } end,
  function(sub) return sub():optional(df.is_op(any_of(unary))) end,
  function(sub)
    local path = df.wildcard():has_attr { TOpPattern = math.random(0, 1) } (nil)
    return df.dominates(sub(), path, df.is_op(any_of(binary))(df.wildcard(), df.wildcard()))
  end,
}

local function random_pattern(depth, made, n)
  if #made > 0 and math.random(6) == 1 then return any_of(made) end
  local pattern = depth == 0 and leaf() or constructors[math.random(n)](function()
    return random_pattern(depth - 1, made, n)
  end)
  made[#made + 1] = pattern
  return pattern
end

-- The texts of the nodes that a pattern matches, of kinds that rules replace.
local function matched(pattern, mod)
  local texts = {}
  for node in mod.main:nodes() do
    local kind = node.kind
    if kind ~= "Var" and kind ~= "Constant" and pattern:match(node) then
      texts[tostring(node)] = true
    end
  end
  return texts
end

-- How many calls and branches a pattern matches.
local function count_matched(pattern, mod, options)
  local n = 0
  for node in mod.main:nodes() do
    local kind = node.kind
    if (kind == "Call" or kind == "If") and pattern:match(node, options) then n = n + 1 end
  end
  return n
end

describe("random dataflow patterns", function()
  it("keep programs valid, and what they compute", function()
    math.randomseed(20)
    local partitions = 0
    for _ = 1, 400 do
      local mod = random_program(math.random(3, 25), binary)
      local pattern = random_pattern(math.random(4), {}, #constructors)
      local out = pattern:partition(mod, { Composite = "random" })
      if out ~= mod then
        partitions = partitions + 1
        assert.is_true(out.main:verify())
        assert.is_true(pl.check(mod, out))
      end
      assert.equal(mod, df.rewrite({ pattern = pattern, callback = function(_, post, map)
        assert(map[pattern][#map[pattern]] == post)
      end }, mod))
      assert.is_true(df.rewrite({ pattern = pattern, rewrite_once = true,
        callback = function(_, post)
          if post.kind == "Call" then return op.add(post, 1) end
        end }, mod).main:verify())
      assert.is_string(tostring(pattern))
    end
    assert(partitions > 20, partitions)
  end)

  it("see through lets what they see in graph normal form", function()
    math.randomseed(tonumber(os.getenv "PERILUNE_SEED" or 22))
    local lets, partitions, hits = { lets = true }, 0, 0
    local graphs = tonumber(os.getenv "PERILUNE_GRAPHS" or 300)
    for _ = 1, graphs do
      local mod = pl.passes.ToANormalForm()(random_program(math.random(3, 25), binary))
      local pattern = random_pattern(math.random(4), {}, #constructors)
      local n = count_matched(pattern, mod, lets)
      assert.equal(count_matched(pattern, pl.passes.ToGraphNormalForm()(mod)), n, tostring(pattern))
      hits = hits + n
      local out = pattern:partition(mod, nil, nil, lets)
      if out ~= mod then
        partitions = partitions + 1
        assert.is_true(out.main:verify())
        assert.is_true(pl.check(mod, out))
      end
      assert.equal(mod, df.rewrite({ pattern = pattern, callback = function(_, post, map)
        assert(map[pattern][#map[pattern]] == post)
      end }, mod, nil, lets))
      assert.is_true(df.rewrite({ pattern = pattern, rewrite_once = true,
        callback = function(_, post)
          if post.kind == "Call" then return op.add(post, 1) end
        end }, mod, nil, lets).main:verify())
    end
    assert(partitions >= graphs // 15 and hits > graphs,
      ("%d partitions, %d matches"):format(partitions, hits))
  end)

  it("match the nodes that rules of these patterns match", function()
    math.randomseed(21)
    local compared, hits = 0, 0
    for _ = 1, 500 do
      local mod = random_program(math.random(3, 20), ordered)
      local pattern, found = random_pattern(math.random(4), {}, 6), {}
      -- refused: patterns of variables, and those of too many alternatives
      local ok, rules = pcall(pl.rules, { { pattern, function(m)
        found[tostring(m.root)] = true
      end } })
      if ok then
        rules(mod)
        local expected = matched(pattern, mod)
        assert.same(expected, found)
        compared, hits = compared + 1, hits + (next(found) and 1 or 0)
      end
    end
    assert(compared > 400 and hits > 40, ("%d compared, %d matched"):format(compared, hits))
  end)
end)
