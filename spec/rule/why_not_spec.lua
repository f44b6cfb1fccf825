-- pl.why_not: which part of a rule fails, where, and why.

local pl = require "perilune"

local program = require "spec.rule.rewriting".program

-- The best explanation of the rule at the body of @main.
local function best(rule, body)
  return pl.why_not(rule, program(body).main.body)[1]
end

local function failed_part(x) return x.first and x.rule.text:sub(x.first, x.last) end

describe("pl.why_not", function()
  local silu = "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)"

  it("names the first difference and the way to it", function()
    local x = best(silu, "multiply(%x, tanh(%x))")
    assert.equal("structure", x.stage)
    assert.equal("sigmoid(?x)", failed_part(x))
    assert.same({ 1 }, x.path)
    assert.equal("tanh", x.node.op.name)
    assert.equal("is a call of another operator", x.reason)
    x = best(silu, "multiply(%x, sigmoid(%y))")
    assert.same({ 1, 0 }, x.path)
    assert.equal("y", x.node.name)
    assert.equal("is another node than before", x.reason)
  end)

  it("tells of the order of operands that gets furthest", function()
    local x = best(silu, "multiply(sigmoid(%y), %x)")
    assert.same({ 0, 0 }, x.path)
    assert.equal(3, x.matched)
    assert.equal(4, x.total)
  end)

  it("names attributes, conditions and refused replacements", function()
    local x = best("nn.softmax(?x, axis=0) => ?x", "nn.softmax(%x)")
    assert.equal("attributes", x.stage)
    assert.equal("0", failed_part(x))
    x = best("tanh(?x) => ?x where x.rank == 3 and x.dtype == float32", "tanh(%x)")
    assert.equal("condition", x.stage)
    assert.equal("x.rank == 3 and x.dtype == float32", failed_part(x))
    x = best("tanh(?x) => exp(negative(?x))", "tanh(%x)")
    assert.equal("replacement", x.stage)
    assert.equal("its replacement would make the graph larger", x.reason)
    assert.equal("applies", best("tanh(?x) => exp(?x)", "tanh(%x)").stage)
  end)

  it("runs functions of Lua, and raises what they raise", function()
    local rules = pl.rules "mine" { { "tanh(?x)", function() end, name = "none" },
      { "tanh(?x)", "?x", where = function(m) return m.x.kind ~= "Var" end, name = "no_var" },
      { "exp(?x)", function() error "boom" end, name = "raises" } }
    local node = program "tanh(%x)".main.body
    assert.equal("replacement", pl.why_not(rules, node, { rule = "none" })[1].stage)
    assert.equal("condition", pl.why_not(rules, node, { rule = "no_var" })[1].stage)
    assert.matches("boom", select(2, pcall(pl.why_not, rules, program "exp(%x)".main.body)))
  end)

  it("searches functions and modules, best match first, and changes nothing", function()
    local mod = program "multiply(%x, sigmoid(tanh(multiply(%x, exp(%x)))))"
    local text = tostring(mod)
    local found = pl.why_not(silu, mod)
    assert.equal(2, #found)
    assert.equal("multiply", found[1].root.op.name)
    assert.is_true(found[1].matched > found[2].matched)
    assert.equal(mod.main.body, found[1].root)
    assert.equal(#found, #pl.why_not(silu, mod.main))
    assert.equal(1, #pl.why_not(silu, mod, { limit = 1 }))
    assert.equal(text, tostring(mod))
  end)

  it("knows shipped rules and sets by name", function()
    assert.equal("add_zero", pl.why_not("add_zero", program "add(%x, %y)")[1].rule.name)
    assert.is_true(#pl.why_not("arithmetic", program "add(%x, %y)".main.body) > 3)
    local opset = pl.why_not("silu", program "multiply(%x, sigmoid(%x))")[1]
    assert.equal("condition", opset.stage)
    assert.equal("applies", pl.why_not("silu", program "multiply(%x, sigmoid(%x))".main.body,
      { opset = 24 })[1].stage)
  end)

  it("takes a pattern alone, as text or as a dataflow pattern", function()
    local fn = program("nn.relu(tanh(%x))").main
    local df = pl.dataflow_pattern
    for _, case in ipairs { { "nn.relu(exp(?x))", "nn.relu(tanh(?x))" },
      { df.is_op "nn.relu" (df.is_op "exp" (df.wildcard())),
        df.is_op "nn.relu" (df.is_op "tanh" (df.wildcard())) } } do
      local no, yes = pl.why_not(case[1], fn)[1], pl.why_not(case[2], fn)[1]
      assert.equal("structure", no.stage)
      assert.matches("^pattern '.-nn.relu%(.-operand 0 is a call of another operator: tanh",
        tostring(no))
      assert.equal("applies", yes.stage)
      assert.equal("the pattern matches", yes.reason)
    end
    local _, err = pcall(pl.why_not, "nn.relu(exp(?x)", fn)
    assert.matches("',' or ')' expected", err.message, 1, true)
  end)

  it("is readable as text", function()
    local text = tostring(pl.why_not(silu, program "multiply(%x, tanh(%x))"))
    assert.matches([[
    silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)
                       ^^^^^^^^^^^
  operand 1 is a call of another operator: tanh of type Tensor[(2, 3), float32]
]], (text:gsub(", from [^\n]*\n?", "\n")), 1, true)
    assert.equal("no node begins to match", tostring(pl.why_not(silu, program "%x")))
  end)

  it("follows operands of a million nodes", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local e = x
    for _ = 1, 1000000 do e = pl.op.tanh(e) end
    local found = pl.why_not("tanh(exp(?x)) => ?x", pl.func({ x }, e), { limit = 3 })
    assert.equal(3, #found)
    assert.equal("is no call of an operator", found[1].reason)
    assert.equal("is a call of another operator", found[2].reason)
  end)

  it("refuses what is no rule, no node, and unknown names", function()
    local function message(...) return tostring(select(2, pcall(pl.why_not, ...))) end
    local node = program "tanh(%x)".main.body
    assert.matches("no rule and no set of rules 'sily'; did you mean 'silu'", message("sily", node))
    assert.matches("rule:1:1: error: there is no operator 'tahn'", message("tahn(?x) => ?x", node))
    assert.matches("a dataflow pattern or a name expected, got number", message(1, node))
    assert.matches("where: a node expected", message(silu, "x"))
    assert.matches("no rule is called 'add'", message(silu, node, { rule = "add" }))
    assert.matches("no option 'limt'; did you mean 'limit'", message(silu, node, { limt = 1 }))
  end)
end)
