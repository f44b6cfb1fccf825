-- Rules that match through variables of lets (the option lets).
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
  local out, counts = pl.rules(rules):apply(mod, options or { lets = true })
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
    assert.equal(0, (applied({ rule }, "let %a = negative(%x); negative(%a)", {})))
  end)

  it("matches through several variables, and constants behind them", function()
    assert.equal(1, (applied({ rule }, "let %a = negative(%x); let %b = %a; negative(%b)")))
    assert.equal(1, (applied({ "add(?x, 0) => ?x" }, "let %a = 0f; add(%x, %a)")))
    local merge = { "add(add(?x, ?a:const), ?b:const) => add(?x, add(?a, ?b))" }
    assert.equal(1, (applied(merge, "let %a = 1f; let %b = add(%x, %a); add(%b, 2f)")))
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
  end)

  it("leaves values with an effect alone", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%r: ref(Tensor[(2), float32])) {
  let %a = ref_read(%r);
  let %b = negative(%a);
  negative(%b)
}]])
    local out = pl.rules { "negative(negative(?x)) => ?x", "negative(Call(?f, ...)) => ?f" }
      :apply(mod, { lets = true })
    assert(pl.verify(out))
    assert.matches("ref_read", tostring(out))
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
      local out, counts = set:apply(mod, { lets = true })
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
