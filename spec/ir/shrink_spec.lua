-- Nodes replaced by less: pl.shrink. What each cut makes is in spec/c/test_cut.c.

local pl = require "perilune"

local x, c = pl.var("x", "Tensor[(2), float32]"), pl.var("c", "bool")
local fn = pl.func({ c, x }, pl.if_(c, pl.op.tanh(pl.op.exp(x)), pl.op.abs(x)) + 1)

local function find(what)
  for node in fn:nodes() do
    if node.kind == what or node.kind == "Call" and node.op.name == what then return node end
  end
end

describe("cut", function()
  it("puts less in place of nodes", function()
    local cut = pl.shrink(fn, { [find "If"] = 1, [find "tanh"] = 1 })
    assert.is_true(pl.equal(cut, pl.func({ c, x }, pl.op.exp(x) + 1)))
    cut = pl.shrink(fn, { [find "If"] = 2, [find "abs"] = "zero" })
    assert.is_true(pl.equal(cut, pl.func({ c, x }, pl.const(pl.tensor.full(0, { 2 }, "float32"))
      + 1)))
    cut = pl.shrink(fn, { [find "If"] = "free" })
    assert.equal(1, #pl.free_vars(cut))
    assert.equal("Var", cut.body.args[1].kind)
  end)

  it("of nothing is the very same function", function()
    assert.is_true(rawequal(fn, pl.shrink(fn, {})))
  end)

  it("refuses what is no cut", function()
    local function refusal(...)
      local _, err = pcall(pl.shrink, ...)
      return type(err) == "string" and err or err.message
    end
    assert.matches("shrink: the keys are nodes of the function$", refusal(fn, { [x] = "free" }))
    assert.matches("shrink: the keys are nodes of the function$", refusal(fn, { "free" }))
    assert.matches("invalid option 'gone'", refusal(fn, { [find "tanh"] = "gone" }))
    assert.matches("shrink: 'free', 'zero', 'value' or the number of an operand expected$",
      refusal(fn, { [find "tanh"] = 0 }))
    assert.matches("^node %d+, a Call, cannot be cut to an operand$",
      refusal(fn, { [find "tanh"] = 2 }))
    assert.matches("^node %d+, a If, cannot be cut to an operand$",
      refusal(fn, { [find "If"] = 3 }))
  end)
end)
