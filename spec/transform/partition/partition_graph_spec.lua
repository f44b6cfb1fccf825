-- PartitionGraph: regions of other compilers as functions of the module.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local function becomes(before, after, options)
  local pass = pl.passes.PartitionGraph(options or {})
  local mod, expected = golden.module(before), golden.module(after)
  local out = pass(mod)
  assert(pl.verify(out))
  pl.assert_equal(out, expected)
  local same, diag = pl.check(mod, out)
  -- The evaluator does not know annotations of tuples.
  assert(same or tostring(diag):find("only the first refuses", 1, true), diag)
end

describe("PartitionGraph", function()
  it("makes a function of a region and removes annotations for default", function()
    becomes([[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = annotation.compiler_end(%0, compiler="a");
  %2 = exp(annotation.compiler_begin(%1, compiler="default"));
  annotation.compiler_end(%2, compiler="default")
}]], [[
def @main(%x: Tensor[(4), float32]) { exp(@tvmgen_default_a_main_0(%x)) }
def @tvmgen_default_a_main_0(%a_0_i0: Tensor[(4), float32],
    global_symbol="tvmgen_default_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  nn.relu(%a_0_i0)
}]])
  end)

  local constants = [[
def @main(%x: Tensor[(4), float32]) {
  %0 = add(annotation.compiler_begin(%x, compiler="a"),
           annotation.compiler_begin(2f, compiler="a"));
  annotation.compiler_end(%0, compiler="a")
}]]

  it("copies constants into the functions", function()
    becomes(constants, [[
def @main(%x: Tensor[(4), float32]) { @tvmgen_default_a_main_0(%x) }
def @tvmgen_default_a_main_0(%y: Tensor[(4), float32],
    global_symbol="tvmgen_default_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  add(%y, 2f)
}]])
  end)

  it("passes constants when it is told so, and uses the name of the library", function()
    becomes(constants, [[
def @main(%x: Tensor[(4), float32]) { @tvmgen_my_lib_a_main_0(%x, 2f) }
def @tvmgen_my_lib_a_main_0(%y: Tensor[(4), float32], %z: float32,
    global_symbol="tvmgen_my_lib_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  add(%y, %z)
}]], { mod_name = "my-lib", bind_constants = false })
  end)

  it("passes a value once, and gives several results as a tuple", function()
    becomes([[
def @main(%x: Tensor[(4), float32]) {
  %0 = add(annotation.compiler_begin(%x, compiler="a"),
           annotation.compiler_begin(%x, compiler="a"));
  %1 = exp(%0);
  (annotation.compiler_end(%0, compiler="a"), annotation.compiler_end(%1, compiler="a"))
}]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = @tvmgen_default_a_main_0(%x);
  (%0.0, %0.1)
}
def @tvmgen_default_a_main_0(%y: Tensor[(4), float32],
    global_symbol="tvmgen_default_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  %0 = add(%y, %y);
  (%0, exp(%0))
}]])
  end)

  it("gives the fields of a tuple that leaves a region", function()
    becomes([[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  annotation.compiler_end((%0, exp(%0)), compiler="a")
}]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = @tvmgen_default_a_main_0(%x);
  (%0.0, %0.1)
}
def @tvmgen_default_a_main_0(%y: Tensor[(4), float32],
    global_symbol="tvmgen_default_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  %0 = nn.relu(%y);
  (%0, exp(%0))
}]])
  end)

  it("calls a region before its first result, though an argument is computed later", function()
    becomes([[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = tanh(annotation.compiler_end(%0, compiler="a"));
  %2 = exp(%y);
  %3 = add(%0, annotation.compiler_begin(%2, compiler="a"));
  (%1, annotation.compiler_end(%3, compiler="a"))
}]], [[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = exp(%y);
  %1 = @tvmgen_default_a_main_0(%x, %0);
  (tanh(%1.0), %1.1)
}
def @tvmgen_default_a_main_0(%p: Tensor[(4), float32], %q: Tensor[(4), float32],
    global_symbol="tvmgen_default_a_main_0", Primitive=1, Compiler="a", Inline=1) {
  %0 = nn.relu(%p);
  (%0, add(%0, %q))
}]])
  end)

  it("renames functions for other compilers that are there", function()
    becomes([[
def @f(%x: Tensor[(4), float32], Compiler="a", global_symbol="f") { exp(%x) }
def @main(%x: Tensor[(4), float32]) { @f(%x) }]], [[
def @tvmgen_default_f(%x: Tensor[(4), float32], Compiler="a", global_symbol="tvmgen_default_f") {
  exp(%x)
}
def @main(%x: Tensor[(4), float32]) { @tvmgen_default_f(%x) }]])
  end)

  it("leaves a module without annotations as it is", function()
    golden.stays(pl.passes.PartitionGraph(),
      "def @main(%x: Tensor[(4), float32]) { exp(nn.relu(%x)) }")
  end)

  it("refuses a region whose function is there already", function()
    local mod = golden.module [[
def @tvmgen_default_a_main_0(%x: Tensor[(4), float32]) { exp(%x) }
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  annotation.compiler_end(%0, compiler="a")
}]]
    assert.error_matches(function() pl.passes.PartitionGraph()(mod) end,
      "has a function @tvmgen_default_a_main_0 already")
  end)

  it("refuses a region that depends on its own result", function()
    local mod = golden.module [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = tanh(annotation.compiler_end(%0, compiler="a"));
  %2 = add(%0, annotation.compiler_begin(%1, compiler="a"));
  annotation.compiler_end(%2, compiler="a")
}]]
    assert.error_matches(function() pl.passes.PartitionGraph()(mod) end,
      "one depends on its own result")
  end)
end)
