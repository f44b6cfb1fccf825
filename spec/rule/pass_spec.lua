-- Sets of rules where a pass is expected, and the config keys that choose among rules.

local pl = require "perilune"

local function program(body)
  return assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%x: Tensor[(2, 3), float32]) {
  %s
}
]]):format(body)))
end

-- Attributes as a table.
local function plain(attrs)
  local copy = {}
  for key, value in pairs(attrs) do copy[key] = value end
  return copy
end

local once = pl.rules "once" { "tanh(tanh(?x)) => tanh(?x)" }
local zero = pl.rules "zero" { "add(?x, 0) => ?x" }
local mod = program "tanh(add(tanh(tanh(%x)), add(1f, -1f)))"

local function body_of(pass, context)
  local out = context and pl.with(context, pass, mod) or pass(mod)
  return (tostring(out.main.body):gsub(" */%*.-%*/", ""):gsub("free_var[^\n]*\n", "")
    :gsub("%s+$", ""))
end

describe("a set of rules", function()
  it("is an element of every kind of pipeline", function()
    assert.equal("tanh(%x)", body_of(pl.fixpoint { once, "FoldConstant", zero }))
    assert.matches("= add%(1f, %-1f%)", body_of(pl.sequential { once }))
    assert.matches("add%(%%%d, 0f%)", body_of(pl.sequential { { once, "FoldConstant" } }))
    local folded = pl.sequential { once, pl.if_changed { "FoldConstant" } }
    assert.matches("add%(%%%d, 0f%)", body_of(folded))
    assert.not_matches("tanh%(%%0%);\n", body_of(pl.functions { once }))
    assert.matches("add", body_of(pl.try { once, otherwise = { zero } }))
  end)

  it("is a pass by name, in texts too", function()
    pl.passes.Once = once
    assert.equal("function", pl.passes.Once.kind)
    assert.matches("add%(%%%d, 0f%)", body_of(pl.pipeline "Once,FoldConstant"))
    local text = "fixpoint(3){Once,FoldConstant}"
    assert.equal(text, tostring(pl.pipeline(text)))
    pl.passes.Once = nil
  end)

  it("is called by its name in reports, with what its rules did", function()
    pl.sequential { once } (mod)
    local report = pl.report()[1]
    assert.equal("once", report.name)
    assert.same({ ["tanh(tanh(?x))"] = 1 }, plain(report.counts))
    local statistics = pl.instruments.statistics { unused = true }
    pl.with(pl.context { instruments = { statistics } }, pl.sequential { once, zero }, mod)
    assert.matches("once: 1 run, 1 changed", tostring(statistics))
    assert.matches("tanh%(tanh%(%?x%)%): %d tried, 1 applied", tostring(statistics))
    assert.matches("never applied: add%(%?x, 0%)", tostring(statistics))
  end)

  it("knows the opset of the module that a pass runs on", function()
    local rules = pl.rules "swish" { "tanh(?x) => ?x where opset >= 20" }
    local function rewritten(opset)
      local new = pl.onnx.parse(assert(pl.onnx.tostring(program "tanh(%x)", { opset = opset })))
      return pl.sequential { rules } (new).main.body.kind
    end
    assert.equal("Call", rewritten(19))
    assert.equal("Var", rewritten(20))
  end)

  it("knows it in EqualitySaturation, also where results are kept", function()
    local pass = pl.passes.EqualitySaturation { rules = { "tanh(?x) => ?x where opset >= 20" } }
    local source = program "tanh(%x)"
    local old, new = source:with_attrs { opset_import = { ["ai.onnx"] = 19 } },
      source:with_attrs { opset_import = { ["ai.onnx"] = 20 } }
    for _ = 1, 2 do
      assert.equal("Call", pass(old).main.body.kind)
      assert.equal("Var", pass(new).main.body.kind)
      assert.equal("Call", pass(source).main.body.kind)
    end
  end)
end)

describe("the config key", function()
  local proofs = pl.rules "proofs" { "exact: abs(abs(?x)) => abs(?x)",
    { "loose: tanh(tanh(?x)) => tanh(?x)", proof = "approximates" } }
  local input = program "tanh(tanh(abs(abs(%x))))"

  local function counts(pass, config, source)
    pl.with(pl.context { opt_level = 3, config = config }, pass, source or input)
    return plain(pl.report()[1].counts)
  end

  it("rules.exact leaves out rules of another proof", function()
    local pass = pl.sequential { proofs }
    assert.same({ exact = 1, loose = 1 }, counts(pass, {}))
    assert.same({ exact = 1 }, counts(pass, { ["rules.exact"] = true }))
  end)

  it("rules.only names those that run", function()
    local pass = pl.sequential { proofs }
    assert.same({ loose = 1 }, counts(pass, { ["rules.only"] = { "loose" } }))
    assert.same({}, counts(pass, { ["rules.only"] = { "add_zero" } }))
    assert.same({}, counts(pass, { ["rules.only"] = { "loose" }, ["rules.exact"] = true }))
  end)

  it("holds for SimplifyExpr and FuseOnnxOps", function()
    local sums = program "add(add(%x, 0f), 0f)"
    assert.same({ add_zero = 2 }, counts(pl.passes.SimplifyExpr(), {}, sums))
    assert.same({}, counts(pl.passes.SimplifyExpr(), { ["rules.only"] = { "not_not" } }, sums))
    local silu = assert(pl.onnx.parse(assert(pl.onnx.tostring(program "multiply(%x, sigmoid(%x))",
      { opset = 24 }))))
    assert.same({ silu = 1 }, counts(pl.passes.FuseOnnxOps(), {}, silu))
    assert.same({}, counts(pl.passes.FuseOnnxOps(), { ["rules.exact"] = true }, silu))
  end)

  it("is checked like every other", function()
    assert.error_matches(function() pl.context { config = { ["rules.exact"] = 3 } } end,
      "'rules.exact' expects true or false")
    assert.error_matches(function() pl.context { config = { ["rules.exac"] = true } } end,
      "did you mean 'rules.exact'")
    assert.same({}, pl.config["rules.only"].default)
  end)

  it("rules.only takes names of shipped rules and of sets of scripts, and no others", function()
    for _, name in ipairs { "add_zero", "exact", "tanh(tanh(?x))", "silu" } do
      assert.truthy(pl.context { config = { ["rules.only"] = { name } } })
    end
    assert.truthy(pl.context { config = { ["rules.only"] = {} } })
    assert.error_matches(function() pl.context { config = { ["rules.only"] = { "add_zreo" } } } end,
      "rules.only: no rule is called 'add_zreo'; did you mean 'add_zero'%?")
    assert.error_matches(function() pl.context { config = { ["rules.only"] = { "lose" } } } end,
      "no rule is called 'lose'; did you mean 'loose'%?")
  end)
end)
