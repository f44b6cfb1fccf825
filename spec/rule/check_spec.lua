-- set:check: rules that are right pass, wrong ones are caught with a counterexample.

local pl = require "perilune"

local function check(rules, options) return pl.rules(rules):check(options) end

-- Plausible mistakes. Those without a proof are claimed to be exact.
local wrong = {
  -- neutral elements and signs
  "add(?x, 1) => ?x",
  "multiply(?x, 0) => 0",
  "divide(?x, ?x) => 1",
  "subtract(?x, ?x) => 0",
  "subtract(?x, 0) => negative(?x)",
  "abs(negative(?x)) => ?x",
  "negative(nn.relu(?x)) => nn.relu(negative(?x))",
  "maximum(?x, 0) => nn.relu(negative(?x))",
  "nn.relu(?x) => abs(?x)",
  "nn.leaky_relu(?x, alpha=?a) => nn.relu(?x)",
  "sqrt(power(?x, 2)) => ?x",
  "power(?x, 2) => multiply(?x, 2)",
  "exp(log(?x)) => ?x",
  "floor(divide(?x, ?y)) => divide(?x, ?y)",
  "round(?x) => floor(add(?x, 0.5))",
  "sign(?x) => divide(?x, abs(?x))",
  -- NaN
  "logical_not(less(?x, ?y)) => greater_equal(?x, ?y)",
  "isnan(?x) => equal(?x, ?x)",
  "equal(?x, ?x) => constant(true, bool) where ?x.shape == []",
  "where(less(?x, ?y), ?x, ?y) => minimum(?x, ?y)",
  "minimum(maximum(?x, ?a:const), ?b:const) => maximum(minimum(?x, ?b), ?a)",
  -- rounding
  "add(add(?x, ?a:const), ?b:const) => add(?x, add(?a, ?b))",
  "multiply(add(?x, ?a:const), ?b:const) => add(multiply(?x, ?b), multiply(?a, ?b))",
  "divide(?x, ?c:const) => multiply(?x, reciprocal(?c))",
  "divide(divide(?x, ?a:const), ?b:const) => divide(?x, multiply(?a, ?b))",
  "multiply(?x, sigmoid(?x)) => nn.silu(?x)",
  -- factors that were forgotten
  "multiply(add(?x, ?a:const), ?b:const) => add(multiply(?x, ?b), ?a)",
  { "tanh(?x) => multiply(sigmoid(multiply(?x, 2)), 2)", proof = "approximates", grows = true },
  { "multiply(?x, sigmoid(?x)) => nn.gelu(?x)", proof = "approximates" },
  { "sum(?x, axes=?a) => mean(?x, axes=?a)", proof = "reassociates" },
  { "add(add(?x, ?y), ?z) => add(?x, ?y)", proof = "reassociates" },
  -- dtypes
  "cast(cast(?x)) => ?x",
  "?r@cast(?c@cast(?x)) => cast(?x, **?r)",
  "?r@cast(cast(?x)) => ?x where ?r.dtype == ?x.dtype",
  { "mod(?x, ?c:const) => subtract(?x, multiply(divide(?x, ?c), ?c))", grows = true },
  -- axes and shapes
  "transpose(transpose(?x, axes=?p), axes=?q) => transpose(?x, axes=compose(?q, ?p))",
  "transpose(?x, axes=[1, 0]) => ?x where ?x.rank == 2",
  "where(_, ?x, ?x) => ?x",
  "add(?x, broadcast_to(?y)) => add(?x, ?y)",
  "tile(?x) => ?x",
  "nn.pad(?x) => ?x",
  "squeeze(?x, axes=?a) => ?x",
  "split(?x).0 => ?x",
  "strided_slice(?x) => ?x where ?x.rank == 1",
  "take(?x, ?i) => ?x where ?i.rank == 1",
  "reshape(reshape(?x), newshape=?s) => reshape(?x, newshape=?s)",
  "sum(sum(?x, axes=?a, keepdims=0), axes=?b, keepdims=0) => sum(?x, axes=?a, keepdims=0)",
  "?r@max(?x) => min(?x, **?r)",
  "mean(?x) => ?x where 1 in ?x.shape",
  "clip(clip(?x, a_min=?a, a_max=?b), a_min=?d, a_max=?e) => clip(?x, a_min=?d, a_max=?e)",
  "transpose(nn.matmul(?x, ?y), axes=[1, 0]) => "
    .. "nn.matmul(transpose(?x, axes=[1, 0]), transpose(?y, axes=[1, 0]))",
  { "nn.log_softmax(?x) => log(nn.softmax(?x, axis=0))", proof = "approximates", grows = true },
  { "logical_not(logical_and(?x, ?y)) => logical_and(logical_not(?x), logical_not(?y))",
    grows = true },
  -- operators of networks
  "?c@nn.conv(?x, ?w, ?b) => nn.conv(?x, ?w, **?c)",
  { "?c@nn.conv(multiply(?x, ?s), ?w) => multiply(nn.conv(?x, ?w, **?c), ?s)",
    proof = "reassociates" },
  { "?p@nn.avg_pool(nn.relu(?x)) => nn.relu(nn.avg_pool(?x, **?p))", proof = "reassociates" },
  "?p@nn.max_pool(negative(?x)) => negative(nn.max_pool(?x, **?p))",
  { "nn.batch_norm(?x, ?s, ?b, ?m, ?v) => add(multiply(?x, ?s), ?b)", proof = "approximates",
    grows = true },
  { "?n@nn.layer_norm(?x, ?g) => nn.rms_norm(?x, ?g)", proof = "approximates" },
  "?a@argmax(negative(?x)) => argmax(?x, **?a)",
  "?s@cumsum(?x) => ?x",
  -- several roots
  "tanh(?x), negative(?x) => negative(?x), tanh(?x)",
  "add(?x, ?a), multiply(?x, ?b) => add(?x, ?b), multiply(?x, ?a)",
  -- rules that do not come to an end
  "subtract(?x, ?y) => subtract(?y, ?x) where ?x.rank >= 0",
}

local right = {
  "add(?x, 0) => ?x",
  "maximum(?x, ?x) => ?x",
  "multiply(?x:int, 2) => add(?x, ?x)",
  "negative(negative(?x)) => ?x",
  { "?p@nn.max_pool(nn.relu(?x)) => nn.relu(nn.max_pool(?x, **?p))", proof = "reassociates" },
  "?a@argmax(negative(?x:float)) => argmin(?x, **?a)",
  "?a@tanh(?x), tanh(?x) => ?a, ?a",
  "?n@negative(?x), subtract(?y, ?x) => ?n, add(?y, ?n)",
  "logical_not(logical_and(?x, ?y)) => logical_or(logical_not(?x), logical_not(?y))",
  "transpose(transpose(?x, axes=?p), axes=?q) => transpose(?x, axes=compose(?p, ?q))",
  "add(add(?x:int, ?a:const), ?b:const) => add(?x, add(?a, ?b))",
  { "add(add(?x:dynamic, ?a:const), ?b:const) => add(?x, add(?a, ?b))", proof = "reassociates" },
  "add(?x:int, negative(?x), abs(?y)) => abs(?y) where ?x.shape == ?y.shape",
  { "tanh(?x:float) => subtract(multiply(sigmoid(multiply(?x, 2)), 2), 1)", grows = true,
    proof = "approximates" },
  { "reshape(?x, newshape=?s)", function(m) if m.x.type == m.root.type then return m.x end end },
  { "nn.leaky_relu(?x:float, alpha=?a)",
    function(m) if m.a == 1 then return m.x end end },
}

describe("set:check", function()
  for _, rule in ipairs(wrong) do
    local text = type(rule) == "table" and rule[1] or rule
    it("catches " .. text, function()
      local results, passed = check { rule }
      assert.is_false(passed)
      assert.equal("failed", results[1].status)
      local found = results[1].counterexample
      assert.is_string(results[1].reason)
      assert.matches("^fn %(", found.program)
      assert.equal("failed", check({ rule }, { seed = found.seed, cases = 1 })[1].status)
    end)
  end

  it("is content with rules that are right", function()
    local results = check(right, { cases = 60 })
    for _, result in ipairs(results) do
      assert.equal("passed", result.status, result.name)
      assert.is_true(result.fired > 0)
    end
  end)

  it("says what was not checked, and fails", function()
    local results, passed = check { "add(?x, 0) => ?x",
      "add(?x, ?y) => ?x where ?x.rank == 77", "einsum(?x) => ?x",
      "nn.col2im(?x, ?y, ?z) => ?x" }
    assert.is_false(passed)
    assert.equal("passed", results[1].status)
    for i = 2, 4 do assert.equal("unchecked", results[i].status) end
    assert.matches("was not checked: it applied to none of %d+ programs", results[2].reason)
    assert.matches("was not checked: no program was generated", results[3].reason)
    assert.matches("was not checked: no program that it applies to can be evaluated",
      results[4].reason)
  end)

  it("gives a small counterexample with its program, inputs, results and seed", function()
    local results = check { "wrong: add(?x, 1) => ?x" }
    local found = results[1].counterexample
    assert.matches("Tensor[(1), float32]", found.program, 1, true)
    assert.matches("add(%x0, 1f", found.program, 1, true)
    assert.equal("x0", found.inputs[1].name)
    assert.equal(1, found.inputs[1].tensor.size)
    assert.not_equal(found.before, found.after)
    assert.matches("rewritten:", tostring(results), 1, true)
    assert.matches("seed: " .. found.seed, tostring(results), 1, true)
  end)

  it("gives the same for the same seed", function()
    local rules = { "divide(?x, ?x) => 1", "add(?x, 0) => ?x" }
    assert.equal(tostring(check(rules, { seed = 7 })), tostring(check(rules, { seed = 7 })))
  end)

  it("takes examples: Relay text, functions of Lua, lists of them", function()
    local rule = "nn.conv2d(?x, ?w) => ?x where ?w.shape == [1, 1, 1, 1]"
    local examples = {
      "fn (%x: Tensor[(N, 1, 3, 3), float32], %w: Tensor[(1, 1, 1, 1), float32]) "
        .. "{ nn.conv2d(%x, %w, padding=[0, 0, 0, 0]) }",
      function(g)
        return g.op.nn.conv2d(g:var("float32", { 1, 1, g:size(), 2 }),
          g:var("float32", { 1, 1, 1, 1 }))
      end,
    }
    for _, example in ipairs { examples[1], examples[2], examples } do
      local results = check { { rule, example = example } }
      assert.equal("failed", results[1].status)
      assert.matches("nn.conv2d", results[1].counterexample.program, 1, true)
    end
    assert.error_matches(function() check { { rule, example = "fn (%x" } } end,
      "the example of rule 'nn.conv2d")
  end)

  it("checks the rules that are asked for only, and tells each result", function()
    local told = {}
    local results = check({ "one: add(?x, 1) => ?x", "two: add(?x, 0) => ?x" }, { only = { "two" },
      progress = function(result) told[#told + 1] = result.name end })
    assert.same({ "two" }, told)
    assert.equal(1, #results)
    assert.error_matches(function() check({ "add(?x, 0) => ?x" }, { cases = 0 }) end, "cases")
    assert.error_matches(function() check({ "add(?x, 0) => ?x" }, { seeds = 1 }) end,
      "no option 'seeds'")
  end)

  it("catches a condition and a replacement in Lua that raise", function()
    local results = check { { "nn.relu(?x)", function() error "boom" end, name = "mine" } }
    assert.equal("failed", results[1].status)
    assert.matches("boom", results[1].reason)
  end)
end)
