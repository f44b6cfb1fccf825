-- A Match without arms: nothing fits it.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'
local vector = pl.type "Tensor[(2), float32]"

local function text(keyword)
  return HEAD
    .. "def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
    .. "  " .. keyword .. " (%x) { }\n}\n"
end

describe("a match without arms", function()
  it("is read and printed, of its function's result type", function()
    local module = assert(pl.parse(text "match?"))
    local printed = tostring(module)
    assert.is_truthy(printed:find("  match? (%x) {\n  }\n", 1, true))
    local again = assert(pl.parse(printed))
    assert.are.equal(printed, tostring(again))
    assert.is_true(pl.equal(module, again))
    assert.equal(pl.hash(module), pl.hash(again))
    assert.equal(vector, module.main.body.type)
    assert(pl.verify(module))
  end)

  it("is not complete", function()
    local module, diag = pl.parse(text "match")
    assert.is_nil(module)
    assert.matches("the match does not cover _;", diag.message, 1, true)
  end)

  it("is another than one with arms, or one that is complete", function()
    local partial = assert(pl.parse(text "match?")).main
    local none = partial:with { body = partial.body:with { complete = true } }
    local one = assert(pl.parse((text("match"):gsub("{ }", "{ _ => %%x }")))).main
    assert.is_false(pl.equal(none, partial))
    assert.is_false(pl.equal(none, one))
    assert.is_false(pl.equal(one, none))
  end)

  it("is not evaluated", function()
    local module = assert(pl.parse(text "match?"))
    local x = pl.tensor({ 1, 2 }, "float32")
    local ok, problem = pcall(pl.eval, module, x)
    assert.is_false(ok)
    assert.matches("the Match has no arms", tostring(problem), 1, true)
  end)

  it("stays what it is in passes", function()
    local module = assert(pl.parse((text("match?"):gsub("%(%%x%)", "(tanh(%%x))"))))
    for _, name in ipairs {
      "SimplifyExpr", "FoldConstant", "ToANormalForm", "ToGraphNormalForm",
      "ToBasicBlockNormalForm", "EliminateCommonSubexpr", "DeadCodeElimination",
      "LambdaLift", "FuseOps", "InferType",
    } do
      local after = pl.passes[name]()(module)
      assert.matches("match%? %(.*%) {\n *}", tostring(after), name)
      assert.are.equal(tostring(after), tostring(assert(pl.parse(after:text()))), name)
      assert(pl.verify(after))
    end
  end)

  it("is built by scripts", function()
    local x = pl.var("x", vector)
    local m = pl.match(x, {})
    assert.equal("Match", m.kind)
    assert.equal(0, #m.clauses)
    local seen = tostring(pl.func({ x }, m))
    assert.matches("match %(%%x%) {", seen)
  end)
end)
