-- Rules of several roots: calls that share an operand are replaced together.
-- PERILUNE_GRAPHS says how many random graphs, PERILUNE_SEED which come first.

local pl = require "perilune"
local compare = require "spec.random.compare"
local random_graph = require "spec.random.graph"

local first = tonumber(os.getenv "PERILUNE_SEED" or 1)
local graphs = tonumber(os.getenv "PERILUNE_GRAPHS" or 1000)

local rewriting = require "spec.rule.rewriting"
local message, program = rewriting.message, rewriting.program

local function rewritten(rules, body)
  local out = pl.rules(rules)(program(body))
  assert(pl.verify(out))
  return rewriting.body_of(out)
end

describe("a rule of several roots", function()
  local merge = "tanh(?x), negative(?x) => ?y@exp(?x), sin(?y)"

  it("replaces each, in either order of the program", function()
    local text = rewritten({ merge }, "(tanh(%x), negative(%x))")
    assert.equal("%0 = exp(%x);\n%1 = sin(%0);\n(%0, %1)", text)
    text = rewritten({ merge }, "(negative(%x), tanh(%x))")
    assert.equal("%0 = exp(%x);\n%1 = sin(%0);\n(%1, %0)", text)
  end)

  it("needs all of them, of the same operand", function()
    assert.matches("tanh", (rewritten({ merge }, "(tanh(%x), negative(%y))")))
    assert.matches("tanh", (rewritten({ merge }, "tanh(%x)")))
    assert.matches("tanh", (rewritten({ merge }, "negative(tanh(%x))")))
  end)

  it("takes two products of one operand for a product and a split", function()
    local rules = { "qk: nn.dense(?x, ?a:const), nn.dense(?x, ?b:const) => "
      .. "(?y@split(nn.dense(?x, concatenate(?a, ?b, axis=0)), constant([4, 4]), axis=-1, "
      .. "n_results=2)).0, ?y.1" }
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local function weight(seed)
      local rows = {}
      for i = 1, 4 do rows[i] = { seed + i, seed - i, seed * i } end
      return pl.const(pl.tensor(rows, "float32"))
    end
    local dense = pl.op.nn.dense
    local mod = pl.module { main = pl.func({ x },
      pl.op.subtract(dense(x, weight(1)), dense(x, weight(2)))) }
    local out, counts = pl.rules(rules):apply(mod)
    assert.equal(1, counts[1].applied)
    assert(pl.verify(out))
    local n = 0
    for node in out.main:nodes() do
      if node.kind == "Call" and node.op.name == "nn.dense" then n = n + 1 end
    end
    assert.equal(1, n)
    assert(pl.check(mod, out))
  end)

  it("merges equal calls pair by pair", function()
    local cse = { "?a@tanh(?x), tanh(?x) => ?a, ?a" }
    local text = rewritten(cse, "(tanh(%x), tanh(%x), exp(tanh(%x)), tanh(%y))")
    assert.equal(2, select(2, text:gsub("tanh", "")))
  end)

  it("takes up to four roots", function()
    local rules = { "tanh(?x), exp(?x), sin(?x), cos(?x) => ?x, ?x, ?x, ?x" }
    assert.equal("(%x, %x, %x, %x)", (rewritten(rules, "(cos(%x), tanh(%x), sin(%x), exp(%x))")))
    assert.matches("at most 4 roots",
      message { "tanh(?x), exp(?x), sin(?x), cos(?x), tan(?x) => ?x, ?x, ?x, ?x, ?x" })
  end)

  it("leaves calls alone whose other operands are not known yet", function()
    local rules = { "add(?x, ?a), multiply(?x, ?b) => subtract(?x, ?a), subtract(?x, ?b)" }
    assert.matches("multiply", (rewritten(rules, "%0 = add(%x, %y); multiply(%x, tanh(%0))")))
    assert.matches("multiply", (rewritten(rules, "%0 = add(%x, %y); multiply(%x, %0)")))
    assert.matches("subtract.*subtract", (rewritten(rules, "(add(%x, %y), multiply(%x, 2f))")))
  end)

  it("keeps to one scope", function()
    local out = pl.rules { merge } (program "%0 = tanh(%x); if (True) { negative(%x) } else { %0 }")
    assert(pl.verify(out))
    assert.matches("negative", tostring(out))
  end)

  it("evaluates conditions of all of them, and checks types", function()
    local wide = { "tanh(?x), negative(?x) => exp(?x), sin(?x) where x.rank == 3" }
    assert.matches("tanh", (rewritten(wide, "(tanh(%x), negative(%x))")))
    local ok, err = pcall(pl.rules { "tanh(?x), negative(?x) => exp(?x), sum(?x)" },
      program "(tanh(%x), negative(%x))")
    assert.is_false(ok)
    assert.matches("replaces a node of type", tostring(err))
  end)

  it("says why not", function()
    local found = pl.why_not(merge, program "tanh(%x)")
    assert.equal("no call after it can be another root of the rule", found[1].reason)
    assert.equal("negative(?x)", found[1].rule.text:sub(found[1].first, found[1].last))
  end)

  it("is refused when its sides do not fit", function()
    assert.matches("2 roots need as many replacements, found 1",
      message { "tanh(?x), negative(?x) => ?x" })
    assert.matches("a variable in common", message { "tanh(?x), negative(?y) => ?x, ?y" })
    assert.matches("roots of a rule that has several are calls",
      message { "tanh(?x), ?x => ?x, ?x" })
    assert.matches("replacements in text",
      message { { "tanh(?x), negative(?x)", function() end } })
    assert.matches("?y is bound behind this",
      message { "tanh(?x), negative(?x) => sin(?y), ?y@exp(?x)" }, 1, true)
    assert.matches("a new name", message { "tanh(?x), negative(?x) => ?x@sin(?x), ?x" }, 1, true)
  end)

  it("keeps what random graphs compute", function()
    local set = pl.rules { "?a@add(?x, ?y), add(?x, ?y) => ?a, ?a",
      "?a@multiply(?x, ?y), multiply(?x, ?y) => ?a, ?a", "?a@tanh(?x), tanh(?x) => ?a, ?a",
      "?a@nn.relu(?x), nn.relu(?x) => ?a, ?a",
      "negative(?x), subtract(?y, ?x) => ?n@negative(?x), add(?y, ?n)" }
    local applied, refused = 0, 0
    for seed = first, first + graphs - 1 do
      local mod = random_graph(seed)
      local out, counts = set:apply(mod)
      for _, count in ipairs(counts) do applied = applied + count.applied end
      assert(pl.verify(out))
      if out ~= mod then
        local same, diag, none = compare(mod, out, { seed = seed, rounds = 1,
          dims = { N = 1 + seed % 3 } })
        assert.is_true(same, ("seed %d: %s"):format(seed, tostring(diag)))
        refused = refused + (none and 1 or 0)
      end
    end
    assert.is_true(applied > graphs / 100, applied)
    assert.is_true(refused <= 1 + graphs / 100, refused)
  end)

  it("costs linear time where one operand has many users", function()
    local function seconds(n)
      local x, list = pl.var("x", "Tensor[(2), float32]"), {}
      for i = 1, n do list[i] = i % 2 == 0 and pl.op.tanh(x) or pl.op.negative(x) end
      local mod = pl.module { main = pl.func({ x }, pl.tuple(list)) }
      local set = pl.rules { merge }
      local began = os.clock()
      local _, counts = set:apply(mod)
      assert.equal(n // 2, counts[1].applied)
      return os.clock() - began
    end
    seconds(1000)
    assert.is_true(seconds(40000) < 40 * seconds(4000))
  end)
end)
