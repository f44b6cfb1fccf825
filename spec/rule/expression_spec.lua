-- pl.rule_expression: rules whose patterns and replacements are expressions of Lua.

local pl = require "perilune"

local e = pl.rule_expression
local x, a, b = e.var "x", e.var("a", "const"), e.var("b", "const")

local function rewritten(rules, text)
  local fn = assert(pl.parse('#[version = "0.0.5"]\n' .. text)).main
  local new = rules(fn)
  assert(pl.check(pl.module { main = fn }, pl.module { main = new }))
  return new.body
end

describe("an expression of a rule", function()
  it("has its text", function()
    assert.equal("add(?x, multiply(?a:const, 2))", tostring(x + a * 2))
    assert.equal("negative(subtract(1.5, ?x))", tostring(-(1.5 - x)))
    assert.equal("nn.conv(?x, _, group=1, pads=[0, 1])",
      tostring(e.op.nn.conv(x, e.any(), { pads = { 0, 1 }, group = 1 })))
    assert.equal("reshape(?x, newshape=sublist(?x.shape, 0, (?x.rank - 1)))",
      tostring(e.op.reshape(x, { newshape = e.fn.sublist(x.shape, 0, x.rank - 1) })))
    assert.equal("(sigmoid(?x) | ?r@tanh(?x))",
      tostring(e.op.sigmoid(x) | e.bind("r", e.op.tanh(x))))
    assert.equal("?a.shape[0]", tostring(a.shape[0]))
  end)

  it("is a pattern and a replacement", function()
    local rules = pl.rules { { (x + a) * b, x * b + a * b, grows = true, proof = "reassociates" } }
    local body = rewritten(rules,
      "def @main(%x: Tensor[(3), float32]) { multiply(add(%x, 2f), 4f) }")
    assert.equal("add", body.op.name)
    assert.equal("multiply", body.args[1].op.name)
  end)

  it("computes attributes", function()
    local flat = { newshape = e.fn.list(1, e.fn.product(x.shape)) }
    local rules = pl.rules {
      { e.op.nn.relu(e.op.reshape(x)), e.op.reshape(e.op.nn.relu(x), flat) } }
    local body = rewritten(rules,
      "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(reshape(%x, newshape=[6])) }")
    assert.equal("reshape", body.op.name)
    assert.equal("Tensor[(6), float32]", tostring(body.type))
  end)

  it("stands beside texts and functions", function()
    local rules = pl.rules { { e.op.add(x, 0), "?x" }, { "multiply(?x, 1)", x },
      { e.op.nn.relu(e.op.nn.relu(x)), function(m) return m.x end } }
    assert.equal("Var", rewritten(rules,
      "def @main(%x: Tensor[(3), float32]) { multiply(add(%x, 0f), 1f) }").kind)
  end)

  it("tells at the caller's line what is wrong", function()
    local here = "expression_spec.lua:%d+: "
    for message, f in pairs {
      ["var: a name has letters, digits and _, not 'x y'"] = function() e.var "x y" end,
      ["add: operand 2: an expression, a number, a boolean, a string or a list expected"] =
        function() local sum = e.op.add(x, print) return sum end,
      ["an expression of a rule is immutable"] = function() x.y = 1 end,
      ["'%%' is not for nodes"] = function() return x % 2 end,
      ["only a variable has 'shape'"] = function() return (x + 1).shape end,
    } do
      local ok, raised = pcall(f)
      assert.is_false(ok)
      assert.matches(here .. message, raised)
    end
    local ok, diag = pcall(pl.rules, { { e.op.ad(x, 0), x } })
    assert.is_false(ok)
    assert.matches("there is no operator 'ad'", tostring(diag))
    ok, diag = pcall(pl.rules, { { e.op.add(x, 0), a } })
    assert.is_false(ok)
    assert.matches("?a", tostring(diag), 1, true)
  end)
end)
