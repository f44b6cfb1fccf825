-- Functions for other compilers: outlined, marked as external, put back.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local literal = [[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%a: Tensor[(4), float32], Compiler="a", Primitive=1, global_symbol="f") { nn.relu(%a) };
  exp(%0(%x))
}]]

local outlined = [[
def @f(%a: Tensor[(4), float32], Compiler="a", Primitive=1, global_symbol="f") { nn.relu(%a) }
def @main(%x: Tensor[(4), float32]) { exp(@f(%x)) }]]

describe("OutlineCompilerFunctionsWithExistingGlobalSymbols", function()
  local function outline(filter)
    return pl.passes.OutlineCompilerFunctionsWithExistingGlobalSymbols { compiler_filter = filter }
  end

  it("makes functions of the module of function literals", function()
    golden.becomes(outline(), literal, outlined)
    golden.becomes(outline "a", literal, outlined)
    golden.stays(outline "b", literal)
  end)

  it("refuses functions without a name, and with free variables", function()
    local function refused(text, message)
      assert.error_matches(function() outline()(golden.module(text)) end, message)
    end
    refused([[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%a: Tensor[(4), float32], Compiler="a") { nn.relu(%a) };
  %0(%x)
}]], "has no attribute global_symbol")
    refused([[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%a: Tensor[(4), float32], Compiler="a", global_symbol="f") { add(%a, %x) };
  %0(%x)
}]], "has the free variable 'x'")
  end)
end)

describe("MarkCompilerFunctionsAsExtern", function()
  it("leaves the attribute Extern, and calls through call_lowered", function()
    local mark = pl.passes.MarkCompilerFunctionsAsExtern()
    golden.becomes(mark, outlined, [[
def @f(%a: Tensor[(4), float32], Extern=1) { nn.relu(%a) }
def @main(%x: Tensor[(4), float32]) { exp(call_lowered(@f, (%x,))) }]], false)
    golden.stays(pl.passes.MarkCompilerFunctionsAsExtern { compiler_filter = "b" }, outlined)
  end)
end)

describe("InlineCompilerFunctionsBoundTo", function()
  local function inline(names)
    return pl.passes.InlineCompilerFunctionsBoundTo { global_vars = names }
  end

  it("puts bodies in the place of calls", function()
    local mod, expected = golden.module(outlined), golden.module [[
def @main(%x: Tensor[(4), float32]) { exp(nn.relu(%x)) }]]
    local out = inline { "f" } (mod)
    assert(pl.verify(out))
    pl.assert_equal(out, expected)
    assert(pl.check(mod, out))
    golden.stays(inline {}, outlined)
  end)

  it("refuses names of other functions", function()
    local mod = golden.module(outlined)
    assert.error_matches(function() inline { "main" } (mod) end,
      "no function @main with the attribute Compiler")
    assert.error_matches(function() inline { "g" } (mod) end, "no function @g")
  end)
end)
