-- EqualitySaturation: rules applied in all orders at once, in both directions where they are
-- equations, and the cheapest program taken out.

local matmul_chain = require "spec.rule.matmul_chain"
local pl = require "perilune"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"

local header = '#[version = "0.0.5"]\n'

local function parse(text) return assert(pl.parse(header .. text)) end

local function counts(mod)
  local list = {}
  for name, n in pairs(pl.list_op_freqs(mod)) do list[#list + 1] = name .. "=" .. n end
  table.sort(list)
  return table.concat(list, " ")
end

-- The module after the pass, which computes the same.
local function saturate(text, options)
  local mod = type(text) == "string" and parse(text) or text
  local out = pl.passes.EqualitySaturation(options)(mod)
  -- The rules that are given hold of real numbers.
  assert(pl.check(mod, out, { rounds = 2, rtol = 1e-4, atol = 1e-4 }))
  return out, mod
end

local associative, chain = matmul_chain.associative, matmul_chain.module

-- The operations of the cheapest order, by dynamic programming over intervals.
local function cheapest_order(extents)
  local n, best = #extents - 1, {}
  for i = 1, n do best[i] = { [i] = 0 } end
  for length = 1, n - 1 do
    for i = 1, n - length do
      local k = i + length
      for cut = i, k - 1 do
        local flops = best[i][cut] + best[cut + 1][k]
          + 2 * extents[i] * extents[cut + 1] * extents[k + 1]
        best[i][k] = math.min(best[i][k] or math.huge, flops)
      end
    end
  end
  return best[1][n]
end

local function flops_of(mod) return pl.tune.measure.flops(mod) end

describe("EqualitySaturation", function()
  it("takes the cheap order of a chain of products", function()
    for _, extents in ipairs { { 10, 100, 5, 50 }, { 30, 35, 15, 5, 10, 20, 25 },
      { 40, 20, 30, 10, 30 }, { 5, 4, 6, 2, 7, 3, 9, 2 } } do
      local out = saturate(chain(extents), { rules = associative, cost = "flops" })
      assert.equal(cheapest_order(extents), flops_of(out))
    end
  end)

  it("finds that (a * 2) / 2 is a", function()
    local out = saturate("def @main(%a: Tensor[(8), float32]) { divide(multiply(%a, 2f), 2f) }",
      { rules = { "?x * ?a / ?b <=> ?x * (?a / ?b)" } })
    assert.equal("Var", out.main.body.kind)
  end)

  it("uses the rules that are shipped, as exactly as SimplifyExpr", function()
    local text = "def @main(%a: Tensor[(8), float32]) { nn.relu(nn.relu(add(%a, 0f))) }"
    assert.equal("nn.relu=1", counts(saturate(text)))
    local mod = parse(text)
    assert.equal(mod, pl.passes.EqualitySaturation { shipped_rules = false } (mod))
  end)

  it("merges two products of one operand where the merged one is cheaper", function()
    local x = pl.var("x", "Tensor[(8, 4096), float32]")
    local function weights(seed)
      return pl.const(pl.tensor.random({ 4096, 4 }, "float32", { seed = seed, high = 0.1 }))
    end
    local mod = pl.module { main = pl.func({ x }, pl.tuple {
      pl.op.nn.relu(pl.op.nn.matmul(x, weights(1))), pl.op.tanh(pl.op.nn.matmul(x, weights(2))) }) }
    local merge = "merge: nn.matmul(?x, ?a), nn.matmul(?x, ?b) => (?s@split(nn.matmul(?x, "
      .. "concatenate((?a, ?b), axis=1)), indices_or_sections=2, axis=1, n_results=2)).0, ?s.1 "
      .. "where ?a.shape == ?b.shape"
    local out = saturate(mod, { rules = merge, cost = "bytes" })
    assert.equal(1, pl.list_op_freqs(out)["nn.matmul"])
    assert.equal(mod, (saturate(mod, { rules = merge, cost = "nodes" })))
  end)

  -- Products of one operand, each of which something else uses.
  local function products(n)
    local x, results = pl.var("x", "Tensor[(8, 4096), float32]"), {}
    for i = 1, n do
      results[i] = pl.op.nn.relu(pl.op.nn.matmul(x, pl.const(pl.tensor.random({ 4096, 4 },
        "float32", { seed = i, high = 0.1 }))))
    end
    return pl.module { main = pl.func({ x }, pl.tuple(results)) }
  end

  local merge_any = "merge: nn.matmul(?x, ?a), nn.matmul(?x, ?b) => (?s@split(nn.matmul(?x, "
    .. "concatenate((?a, ?b), axis=1)), constant([?a.shape[1], ?b.shape[1]]), axis=1, "
    .. "n_results=2)).0, ?s.1 where ?a.rank == 2 and ?b.rank == 2"

  it("applies rules of several roots to what they made k_multi - 1 times", function()
    local mod, e_nodes = products(4), {}
    for k = 0, 3 do
      local out = saturate(mod, { rules = merge_any, cost = "bytes", k_multi = k,
        shipped_rules = false })
      local counted = pl.report()[1].counts
      e_nodes[k] = counted["e-nodes"]
      assert.equal(1, counted.rules)
      assert.equal(k > 0 and 1 or nil, counted["rules tried"])
      assert.equal(1, counted.saturated)
      assert.equal(({ [0] = 4, 2, 1, 1 })[k], pl.list_op_freqs(out)["nn.matmul"], k)
    end
    -- Each pair once, whichever comes first: 6 of them, of 5 e-nodes each, and their sizes.
    assert.equal(e_nodes[0] + 6 * 5 + 1, e_nodes[1])
    -- Nothing is merged with a part of itself: six of each.
    assert.is_true(e_nodes[3] < e_nodes[0] + 100, e_nodes[3])
  end)

  it("merges what other rules made, in whichever round", function()
    local x = pl.var("x", "Tensor[(8, 4096), float32]")
    local function weights(seed)
      return pl.const(pl.tensor.random({ 4096, 4 }, "float32", { seed = seed, high = 0.1 }))
    end
    -- Three rounds until both products are of x.
    local rules = { merge_any, "maximum(?x, ?x) => minimum(?x, ?x)",
      "minimum(?x, ?x) => negative(negative(?x))", "negative(negative(?x)) => ?x" }
    local mod = pl.module { main = pl.func({ x }, pl.tuple {
      pl.op.nn.relu(pl.op.nn.matmul(x, weights(1))),
      pl.op.tanh(pl.op.nn.matmul(pl.op.maximum(x, x), weights(2))) }) }
    local out = saturate(mod, { rules = rules, cost = "bytes", shipped_rules = false })
    assert.equal(1, pl.list_op_freqs(out)["nn.matmul"])
  end)

  it("takes an attribute that is given as its default for one that is left out", function()
    local x = pl.var("x", "Tensor[(1, 4, 8, 8), float32]")
    local w = pl.const(pl.tensor.random({ 4, 4, 3, 3 }, "float32", { seed = 1, high = 0.1 }))
    local conv = pl.op.nn.conv
    local function nodes(f, forms)
      local calls = {}
      for i, attrs in ipairs(forms) do calls[i] = f(attrs) end
      pl.passes.EqualitySaturation { shipped_rules = false, rules = "exp(?x) => exp(?x)" } (
        pl.module { main = pl.func({ x }, pl.tuple(calls)) })
      return pl.report()[1].counts["e-classes"]
    end
    local function image(attrs) return conv(x, w, attrs) end
    assert.equal(4, nodes(image, { {}, { strides = { 1, 1 } }, { group = 1, dilations = { 1, 1 } },
      { kernel_shape = { 3, 3 }, pads = { 0, 0, 0, 0 }, auto_pad = "NOTSET" } }))
    assert.equal(6, nodes(image, { {}, { strides = { 2, 2 } }, { pads = { 1, 1, 1, 1 } } }))
    assert.equal(3, nodes(function(attrs) return pl.op.nn.softmax(x, attrs) end,
      { {}, { axis = -1 } }))
  end)

  it("keeps a program that is the cheapest already, the very same", function()
    local mod = chain { 10, 4, 20 }
    assert.equal(mod, (saturate(mod, { rules = associative })))
  end)

  it("takes rules in both directions that would not end otherwise", function()
    local rules = { "commute: add(?x, ?y) => add(?y, ?x)",
      "group: add(add(?x, ?y), ?z) <=> add(?x, add(?y, ?z))",
      "factor: add(multiply(?x, ?y), multiply(?x, ?z)) <=> multiply(?x, add(?y, ?z))" }
    local out = saturate([[def @main(%a: Tensor[(8), float32], %b: Tensor[(8), float32],
        %c: Tensor[(8), float32], %d: Tensor[(8), float32]) {
      add(add(multiply(%a, %b), %d), multiply(%c, %a))
    }]], { rules = rules, cost = "nodes" })
    assert.equal("add=2 multiply=1", counts(out))
  end)

  it("works on the branches of an If, and leaves what a let keeps", function()
    local out = saturate([[def @main(%c: bool, %a: Tensor[(8), float32]) {
      if (%c) { add(add(%a, 0f), 0f) } else { nn.relu(nn.relu(%a)) }
    }]])
    assert.equal("nn.relu=1", counts(out))
    saturate([[def @main(%a: Tensor[(8), float32]) {
      let %x = nn.relu(nn.relu(%a));
      add(%x, tanh(%x))
    }]])
  end)

  it("keeps to its limits", function()
    local rules = { "commute: add(?x, ?y) => add(?y, ?x)",
      "group: add(add(?x, ?y), ?z) <=> add(?x, add(?y, ?z))" }
    local params, out = {}, nil
    for i = 1, 12 do
      params[i] = pl.var("a" .. i, "Tensor[(4), float32]")
      out = out and pl.op.add(out, params[i]) or params[i]
    end
    local mod = pl.module { main = pl.func(params, out) }
    for _, case in ipairs { { "node_limit", 500 }, { "iter_limit", 2 }, { "time_limit", 1e-9 } } do
      local pass = pl.passes.EqualitySaturation { rules = rules, shipped_rules = false,
        [case[1]] = case[2] }
      pass(mod)
      assert.equal(1, pl.report()[1].counts["stopped by " .. case[1]], case[1])
    end
  end)

  it("reads rules from the text of a pipeline", function()
    local pass = pl.pipeline('EqualitySaturation{rules=["?x * ?a / ?b <=> ?x * (?a / ?b)"]}')
    local out = pass(parse "def @main(%a: Tensor[(8), float32]) { divide(multiply(%a, 2f), 2f) }")
    assert.equal("Var", out.main.body.kind)
  end)

  describe("says what is wrong with a rule", function()
    for text, message in pairs {
      ["add(?x ?y) => ?x"] = "',' or ')' expected",
      ["add(?x, ?y) => nn.foo(?x)"] = "there is no operator 'nn.foo'",
      ["add(?x, ?y)"] = "a rule needs a replacement",
      ["add(?x, ?y) <=> ?x"] = "this is the reverse",
      ["add(?x, ?y) => ?z"] = "?z",
    } do
      it(text, function()
        local mod = parse "def @main(%a: Tensor[(8), float32]) { add(%a, %a) }"
        local ok, err = pcall(pl.passes.EqualitySaturation { rules = text }, mod)
        assert.is_false(ok)
        assert.truthy(tostring(err):find(message, 1, true), tostring(err))
      end)
    end

    it("and of an equation among rules that are applied one by one", function()
      local ok, err = pcall(pl.rules, { "add(?x, ?y) <=> add(?y, ?x)" })
      assert.is_false(ok)
      assert.truthy(tostring(err):find("only EqualitySaturation", 1, true), tostring(err))
    end)
  end)

  it("keeps what random graphs compute", function()
    local first = tonumber(os.getenv "PERILUNE_SEED") or 1
    local graphs = tonumber(os.getenv "PERILUNE_GRAPHS") or 400
    local rules = { "add(?x, ?y) => add(?y, ?x)", "multiply(?x, ?y) => multiply(?y, ?x)",
      "maximum(?x, maximum(?y, ?z)) <=> maximum(maximum(?x, ?y), ?z)",
      "negative(negative(?x)) => ?x where ?x.dtype == float32",
      "subtract(?x, ?y) => add(?x, negative(?y)) where ?x.dtype == float32",
      "nn.relu(?x), tanh(?x) => nn.relu(?x), tanh(?x)" }
    local changed = 0
    for seed = first, first + graphs - 1 do
      local mod, rough = random_graph(seed)
      for _, cost in ipairs { "nodes", "time" } do
        local out = pl.passes.EqualitySaturation { rules = rules, cost = cost, node_limit = 400,
          iter_limit = 6 } (mod)
        if out ~= mod then changed = changed + 1 end
        local ok, why = pl.verify(out)
        if ok then ok, why = compare(mod, out, { seed = seed, dims = { N = 1 + seed % 3 },
          rtol = rough and 1e-4 or 1e-6, atol = rough and 1e-4 or 1e-6, scaled = true }) end
        if not ok then error(("seed %d, %s: %s"):format(seed, cost, tostring(why)), 0) end
      end
    end
    assert.truthy(changed > graphs / 4)
  end)
end)
