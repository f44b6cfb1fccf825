-- AnnotateTarget: which compiler takes a call. MergeCompilerRegions: regions as large as they
-- can be.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local function annotate(options)
  options = options or {}
  options.targets = options.targets or "spec"
  return pl.passes.AnnotateTarget(options)
end

-- Registers attributes of operators, calls f, and removes them.
local function with_attrs(key, attrs, f, ...)
  for op, value in pairs(attrs) do pl.op_attr(op, key, value) end
  local result = table.pack(pcall(f, ...))
  for op in pairs(attrs) do pl.op_attr(op, key, nil) end
  if not result[1] then error(result[2], 0) end
  return table.unpack(result, 2, result.n)
end

local relu_is_supported = { ["nn.relu"] = true }

local function annotates(before, after, options)
  with_attrs("target.spec", relu_is_supported, golden.becomes, annotate(options), before, after)
end

describe("AnnotateTarget", function()
  it("marks calls that a compiler takes, and the others as default", function()
    annotates([[
def @main(%x: Tensor[(4), float32]) { exp(nn.relu(%x)) }]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="spec"));
  %1 = annotation.compiler_end(%0, compiler="spec");
  %2 = exp(annotation.compiler_begin(%1, compiler="default"));
  annotation.compiler_end(%2, compiler="default")
}]])
  end)

  it("gives each use of a value annotations of its own", function()
    annotates([[
def @main(%x: Tensor[(4), float32]) { %0 = nn.relu(%x); add(%0, %0) }]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="spec"));
  %1 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="spec"), compiler="default");
  %2 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="spec"), compiler="default");
  annotation.compiler_end(add(%1, %2), compiler="default")
}]])
  end)

  it("gives a tuple to the compiler that all its fields come from", function()
    annotates([[
def @main(%x: Tensor[(4), float32]) { (nn.relu(%x),) }]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="spec"));
  %1 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="spec"), compiler="spec");
  annotation.compiler_end((%1,), compiler="spec")
}]])
  end)

  it("ends what tuples take when only calls are annotated", function()
    annotates([[
def @main(%x: Tensor[(4), float32]) { (nn.relu(%x),) }]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="spec"));
  (annotation.compiler_end(%0, compiler="spec"),)
}]], { include_non_call_ops = false })
  end)

  it("ends conditions and the results of branches", function()
    annotates([[
def @main(%c: Tensor[(1), float32], %x: Tensor[(4), float32]) {
  if (less(sum(%c), 0f)) { nn.relu(%x) } else { %x }
}]], [[
def @main(%c: Tensor[(1), float32], %x: Tensor[(4), float32]) {
  %0 = sum(annotation.compiler_begin(%c, compiler="default"));
  %1 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="default"),
    compiler="default");
  %2 = less(%1, annotation.compiler_begin(0f, compiler="default"));
  %3 = annotation.compiler_end(%2, compiler="default");
  if (%3) {
    %4 = nn.relu(annotation.compiler_begin(%x, compiler="spec"));
    annotation.compiler_end(%4, compiler="spec")
  } else { %x }
}]])
  end)

  it("does not enter composite functions, and takes them by their names", function()
    annotates([[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%y: Tensor[(4), float32], Composite="spec.exp") { exp(%y) };
  %0(%x)
}]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%y: Tensor[(4), float32], Composite="spec.exp") { exp(%y) };
  %1 = %0(annotation.compiler_begin(%x, compiler="spec"));
  annotation.compiler_end(%1, compiler="spec")
}]])
  end)

  it("prefers the first of several targets, and keeps what is annotated already", function()
    local function both()
      local mod = golden.module "def @main(%x: Tensor[(4), float32]) { exp(nn.relu(%x)) }"
      local at_once = annotate { targets = { "spec", "other" } } (mod)
      local in_turn = annotate { targets = "other" } (annotate { targets = { "spec" } } (mod))
      pl.assert_equal(at_once, in_turn)
      assert.is_truthy(tostring(at_once):find("other", 1, true))
    end
    with_attrs("target.other", { ["nn.relu"] = true, exp = true }, with_attrs, "target.spec",
      relu_is_supported, both)
  end)

  it("asks functions, which see the call", function()
    local seen
    local function takes(call)
      seen = call
      return #call.type.shape == 1
    end
    local mod = golden.module [[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4, 4), float32]) { (nn.relu(%x), nn.relu(%y)) }]]
    local out = with_attrs("target.spec", { ["nn.relu"] = takes }, annotate(), mod)
    assert.equal(mod.functions.main.body.fields[2], seen)
    local n = 0
    for node in out.functions.main:nodes() do
      if node.kind == "Call" and node.attrs.compiler == "spec" then n = n + 1 end
    end
    assert.equal(2, n) -- a begin and an end; the tuple has operands of both
  end)

  it("reports functions that raise, yield or leave", function()
    local mod = golden.module "def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }"
    local function refused(f, message)
      local before = tostring(mod)
      local ok, diag = pcall(with_attrs, "target.spec", { ["nn.relu"] = f }, annotate(), mod)
      assert.is_false(ok)
      assert.is_truthy(tostring(diag):find(message), tostring(diag))
      assert.is_truthy(tostring(diag):find("attribute 'target.spec' of 'nn.relu'", 1, true))
      assert.equal(before, tostring(mod))
    end
    refused(function() error "broken" end, "annotate_target_spec.lua:%d+: broken")
    refused(function() coroutine.yield() end, "attempt to yield")
    refused(function(call) return call.no_such_field.x end, "no_such_field")
  end)

  it("refuses targets that are no names", function()
    assert.error_matches(function() annotate { targets = { 1 } } end, "expects a list of strings")
    assert.error_matches(function() annotate { include_non_call_ops = "x" } end, "true or false")
  end)

  it("is written as text", function()
    local pass = pl.pipeline 'AnnotateTarget{targets=["a","b"],include_non_call_ops=false}'
    assert.equal('AnnotateTarget{include_non_call_ops=false,targets=["a","b"]}', tostring(pass))
  end)
end)

describe("MergeCompilerRegions", function()
  local merge = pl.passes.MergeCompilerRegions()

  it("removes annotations between regions of a compiler", function()
    golden.becomes(merge, [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="a"), compiler="a");
  annotation.compiler_end(exp(%1), compiler="a")
}]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  annotation.compiler_end(exp(%0), compiler="a")
}]])
  end)

  it("leaves regions apart when another one lies between them on one of the ways", function()
    golden.stays(merge, [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="a"), compiler="b");
  %2 = annotation.compiler_end(exp(%1), compiler="b");
  %3 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="a"), compiler="a");
  %4 = add(%3, annotation.compiler_begin(%2, compiler="a"));
  annotation.compiler_end(%4, compiler="a")
}]])
  end)

  it("merges regions that feed the same one", function()
    golden.becomes(merge, [[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = nn.relu(annotation.compiler_begin(%y, compiler="a"));
  %2 = annotation.compiler_begin(annotation.compiler_end(%0, compiler="a"), compiler="a");
  %3 = annotation.compiler_begin(annotation.compiler_end(%1, compiler="a"), compiler="a");
  annotation.compiler_end(add(%2, %3), compiler="a")
}]], [[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = nn.relu(annotation.compiler_begin(%x, compiler="a"));
  %1 = nn.relu(annotation.compiler_begin(%y, compiler="a"));
  annotation.compiler_end(add(%0, %1), compiler="a")
}]])
  end)

  it("leaves a module without annotations as it is", function()
    golden.stays(merge, "def @main(%x: Tensor[(4), float32]) { exp(nn.relu(%x)) }")
  end)

  it("refuses annotations that are not in pairs", function()
    local function refused(text, message)
      local mod = golden.module(text)
      assert.error_matches(function() merge(mod) end, message)
    end
    refused([[
def @main(%x: Tensor[(4), float32]) { annotation.compiler_end(exp(%x), compiler="a") }]],
      "the operand of an end belongs to no region")
    refused([[
def @main(%x: Tensor[(4), float32]) {
  annotation.compiler_end(exp(annotation.compiler_begin(%x, compiler="a")), compiler="b")
}]], "an end is of another compiler")
    refused([[
def @main(%x: Tensor[(4), float32]) {
  annotation.compiler_end(add(annotation.compiler_begin(%x, compiler="a"), %x), compiler="a")
}]], "only some arguments of a call have a begin")
  end)

  it("takes time in proportion to the length of a chain", function()
    local text = { "def @main(%x: Tensor[(4), float32]) {\n  %0 = exp(%x);" }
    for i = 1, 3000 do
      text[#text + 1] = ("  %%%d = %s(%%%d);"):format(i, i % 3 == 0 and "exp" or "nn.relu", i - 1)
    end
    text[#text + 1] = "  %3000\n}"
    local mod = golden.module(table.concat(text, "\n"))
    local annotated = with_attrs("target.spec", relu_is_supported, annotate(), mod)
    local began = os.clock()
    local merged = merge(annotated)
    assert.is_true(os.clock() - began < 5)
    assert(pl.verify(merged))
  end)
end)
