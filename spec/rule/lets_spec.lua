-- Rules that match through variables of lets (the option lets, which is on by default).
-- PERILUNE_GRAPHS says how many random graphs, PERILUNE_SEED which come first.

local pl = require "perilune"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"
local rewriting = require "spec.rule.rewriting"
local program = rewriting.program

local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local graphs = tonumber(os.getenv "PERILUNE_GRAPHS" or 500)

-- How often the rules were applied, and the program without the lets that are dead then.
local function applied(rules, body, options)
  local mod = program(body)
  local out, counts = pl.rules(rules):apply(mod, options)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  local n = 0
  for _, count in ipairs(counts) do n = n + count.applied end
  return n, tostring(pl.passes.DeadCodeElimination()(out))
end

describe("a rule with lets", function()
  local rule = "negative(negative(?x)) => ?x"

  it("matches the value of a variable", function()
    local n, text = applied({ rule }, "let %a = negative(%x); let %b = negative(%a); tanh(%b)")
    assert.equal(1, n)
    assert.not_matches("negative", text)
    assert.equal(0, (applied({ rule }, "let %a = negative(%x); negative(%a)", { lets = false })))
  end)

  it("matches through several variables, and constants behind them", function()
    assert.equal(1, (applied({ rule }, "let %a = negative(%x); let %b = %a; negative(%b)")))
    assert.equal(1, (applied({ "add(?x, 0) => ?x" }, "let %a = 0f; add(%x, %a)")))
    local merge = { "add(add(?x, ?a:const), ?b:const) => add(?x, add(?a, ?b))" }
    assert.equal(1, (applied(merge, "let %a = 1f; let %b = add(%x, %a); add(%b, 2f)")))
    assert.equal(1, (applied({ "add(?x, 0) => ?x" }, "let %a = 0f; add(%a, %x)")))
    assert.equal(1, (applied({ "power(?x, ?c) => ?x where is_const(?c) and scalar(?c) == 1" },
      "let %a = 1f; power(%x, %a)")))
  end)

  it("matches joined tuples, and a variable for its value", function()
    local joined = { "concatenate(?a, concatenate(?b, ?c, axis=?n), axis=?n) => "
      .. "concatenate(?a, ?b, ?c, axis=?n)" }
    assert.equal(1, (applied(joined, "let %s = (%x, %x); let %a = concatenate(%s); "
      .. "let %t = (%x, %a); concatenate(%t)")))
    assert.equal(1, (applied({ "maximum(?e@exp(?x), ?e) => ?e" },
      "let %a = exp(%x); maximum(%a, %a)")))
    assert.equal(1, (applied({ { "subtract(?a, ?b) => add(?a, negative(?b)) "
      .. "where ?a.op == 'exp'", grows = true } },
      "let %a = exp(%x); let %b = tanh(%x); subtract(%a, %b)")))
  end)

  it("does not unroll functions that call themselves", function()
    local text = [[#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  let %f = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] {
    if (equal(1, 2)) { %f(negative(%y)) } else { %y }
  };
  %f(%x)
}]]
    local mod = assert(pl.parse(text))
    assert.equal(mod, pl.rules { "Call(Function(?p, ?body), ?x) => ?body" }:apply(mod))
    local a, b = pl.var("a", "Tensor[(2), float32]"), pl.var("b", "Tensor[(2), float32]")
    for _, let in ipairs { pl.let(a, a, pl.op.tanh(a)),
      pl.let(a, b, pl.let(b, a, pl.op.tanh(pl.op.exp(b)))) } do
      assert.is_truthy(pl.rules { "tanh(tanh(?x)) => tanh(?x)" }:apply(let))
    end
    local once = text:gsub("if.*else { %%y }", "tanh(%%y)")
    assert.equal(1, select(2, pl.rules { "Call(Function(?p, tanh(?p)), ?x) => tanh(?x)" }
      :apply(assert(pl.parse(once))))[1].applied)
  end)

  it("gives ?x and Var the variable itself", function()
    local n, text = applied({ "add(?x, ?x) => multiply(?x, 2)" },
      "let %a = tanh(%x); add(%a, %a)")
    assert.equal(1, n)
    assert.matches("multiply(%a, 2f", text, 1, true)
    assert.equal(1, (applied({ "nn.relu(?v@Var) => maximum(?v, 0)" },
      "let %a = tanh(%x); nn.relu(%a)")))
  end)

  it("counts the uses of the variable", function()
    local once = { "negative(?n@negative(?x)) => ?x where ?n.uses == 1" }
    assert.equal(1, (applied(once, "let %a = negative(%x); negative(%a)")))
    assert.equal(0, (applied(once, "let %a = negative(%x); add(negative(%a), %a)")))
    assert.equal(0, (applied(once, "let %a = negative(%x); let %b = %a; add(negative(%b), %b)")))
    assert.equal(1, (applied(once, "let %a = negative(%x); let %b = %a; tanh(negative(%b))")))
  end)

  it("leaves values with an effect alone", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%r: ref(Tensor[(2), float32])) {
  let %a = ref_read(%r);
  let %b = negative(%a);
  negative(%b)
}]])
    local out = pl.rules { "negative(negative(?x)) => ?x", "negative(Call(?f, ...)) => ?f" }
      :apply(mod)
    assert(pl.verify(out))
    assert.matches("ref_read", tostring(out))
  end)

  it("runs in passes unless rules.lets is false", function()
    local mod = program "let %a = negative(%x); let %b = negative(%a); tanh(%b)"
    local pass = pl.function_pass { name = "P", run = pl.rules { rule } }
    local function changes(run, lets)
      local context = pl.context { opt_level = 3, config = { ["rules.lets"] = lets } }
      return pl.with(context, run, mod) ~= mod
    end
    for _, run in ipairs { pass, pl.passes.SimplifyExpr(), pl.sequential { pl.rules { rule } } } do
      assert.is_true(changes(run))
      assert.is_true(changes(run, true))
      assert.is_false(changes(run, false))
    end
  end)

  it("is explained through the variable", function()
    local mod = program "let %a = tanh(%x); let %b = negative(%a); negative(%b)"
    local found = pl.why_not("negative(negative(exp(?x))) => ?x", mod)
    assert.matches("operand 0 of operand 0 is a call of another operator: tanh of type",
      tostring(found), 1, true)
    assert.same({ 0, 0 }, found[1].path)
    assert.equal(2, found[1].matched)
    assert.equal("tanh", found[1].node.op.name)
    found = pl.why_not("negative(negative(exp(?x))) => ?x", mod, { lets = false })
    assert.matches("operand 0 is no call of an operator: %a of type", tostring(found), 1, true)
  end)

  it("keeps what random programs in A-normal form compute", function()
    local set = pl.rules { rule, "add(?x, 0) => ?x", "multiply(?x, 1) => ?x",
      "nn.relu(nn.relu(?x)) => nn.relu(?x)", "abs(negative(?x)) => abs(?x)",
      "negative(subtract(?x, ?y)) => subtract(?y, ?x)",
      "transpose(?y@transpose(?x, axes=[1, 0]), axes=[1, 0]) => ?x",
      "maximum(?x, ?x) => ?x", "minimum(?x, ?x) => ?x",
      { "add(?x:float, ?y@?f{elementwise}(?z)) => subtract(?x, negative(?y))", grows = true } }
    local n = 0
    for seed = first, first + graphs - 1 do
      local mod = pl.passes.ToANormalForm()((random_graph(seed)))
      local out, counts = set:apply(mod)
      assert(pl.equal(out, (set:apply(mod, { naive = true }))), seed)
      for _, count in ipairs(counts) do n = n + count.applied end
      assert(pl.verify(out))
      if out ~= mod then
        local same, diag = compare(mod, out, { seed = seed, rounds = 1,
          dims = { N = 1 + seed % 3 }, rtol = 1e-4, atol = 1e-4, scaled = true })
        assert.is_true(same, ("seed %d: %s"):format(seed, tostring(diag)))
      end
    end
    assert.is_true(n > graphs / 20, n)
  end)
end)
