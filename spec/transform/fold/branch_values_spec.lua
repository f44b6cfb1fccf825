-- FoldConstant in the branches of an If: what the condition says of the values that they use.

local pl = require "perilune"
local golden = require "spec.transform.golden"
local onnx = require "spec.onnx.bytes"

local fold = pl.passes.FoldConstant()

local function becomes(params, before, after)
  golden.becomes(fold, ("def @main(%s) { %s }"):format(params, before),
    ("def @main(%s) { %s }"):format(params, after))
end

local function stays(params, body)
  golden.stays(fold, ("def @main(%s) { %s }"):format(params, body))
end

local X, XY = "%x: int32", "%x: int32, %y: int32"

describe("FoldConstant in a branch", function()
  it("takes the constant that a value equals", function()
    becomes(X, "if (equal(%x, 3)) { multiply(%x, 2) } else { multiply(%x, 4) }",
      "if (equal(%x, 3)) { 6 } else { multiply(%x, 4) }")
    becomes(X, "if (equal(3, %x)) { %x } else { 7 }", "if (equal(3, %x)) { 3 } else { 7 }")
    becomes(X, "if (not_equal(%x, 3)) { %x } else { add(%x, 1) }",
      "if (not_equal(%x, 3)) { %x } else { 4 }")
    becomes("%x: float32", "if (equal(%x, 2f)) { multiply(%x, %x) } else { %x }",
      "if (equal(%x, 2f)) { 4f } else { %x }")
  end)

  it("looks into conjunctions, disjunctions and negations", function()
    becomes(XY, "if (logical_and(equal(%x, 3), equal(%y, 4))) { multiply(%x, %y) } else { %x }",
      "if (logical_and(equal(%x, 3), equal(%y, 4))) { 12 } else { %x }")
    becomes(XY, "if (logical_or(not_equal(%x, 3), logical_not(equal(%y, 4)))) { %x } "
      .. "else { add(%x, %y) }",
      "if (logical_or(not_equal(%x, 3), logical_not(equal(%y, 4)))) { %x } else { 7 }")
    stays(XY, "if (logical_or(equal(%x, 3), equal(%y, 4))) { multiply(%x, %y) } else { %x }")
  end)

  it("knows the condition itself, and that of Ifs inside", function()
    becomes("%c: bool, " .. XY, "if (%c) { if (%c) { %x } else { %y } } "
      .. "else { if (logical_not(%c)) { add(%x, %y) } else { %y } }",
      "if (%c) { %x } else { add(%x, %y) }")
    becomes(X, "if (equal(%x, 3)) { if (less(%x, 4)) { negative(%x) } else { 1 } } else { %x }",
      "if (equal(%x, 3)) { -3 } else { %x }")
  end)

  it("looks through lets, and into functions in the branch", function()
    becomes(X, "let %c = equal(%x, 3); let %y = add(%x, 1); if (%c) { let %z = multiply(%x, 2); "
      .. "add(%z, %y) } else { %y }",
      "let %c = equal(%x, 3); let %y = add(%x, 1); if (%c) { add(6, %y) } else { %y }")
    becomes(XY, "let %v = add(%x, 1); if (equal(%v, 3)) { let %f = fn (%a: int32) { add(%a, %v) }; "
      .. "add(%f(%x), %f(%y)) } else { %v }",
      "let %v = add(%x, 1); if (equal(%v, 3)) { let %f = fn (%a: int32) { add(%a, 3) }; "
      .. "add(%f(%x), %f(%y)) } else { %v }")
  end)

  it("leaves the value alone behind the If and in the other branch", function()
    becomes(X, "%0 = if (equal(%x, 3)) { add(%x, 1) } else { subtract(%x, 1) }; multiply(%0, %x)",
      "%0 = if (equal(%x, 3)) { 4 } else { subtract(%x, 1) }; multiply(%0, %x)")
  end)

  it("does not take zero for negative zero, one dtype or shape for another, unequal for equal",
    function()
      stays("%x: float32", "if (equal(%x, 0f)) { divide(1f, %x) } else { %x }")
      stays(X, "if (equal(cast(%x, dtype=\"int8\"), 3i8)) { add(%x, 1) } else { %x }")
      stays("%x: Tensor[(2), int32]", "if (all(equal(%x, 3))) { add(%x, 1) } else { %x }")
      stays(X, "if (not_equal(%x, 3)) { add(%x, 1) } else { 2 }")
      stays(X, "if (less(%x, 3)) { add(%x, 1) } else { 2 }")
    end)

  it("writes each value to the log", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: int32) { if (equal(%x, 3)) { multiply(%x, 2) } else { 5 } }
]])
    local path = os.tmpname()
    os.remove(path)
    pl.passes.FoldConstant { log = path }(mod)
    local file = assert(io.open(path))
    local text = file:read "a"
    file:close()
    os.remove(path)
    assert.truthy(text:find("@main: %x => 3  # value in a branch, 4 bytes\n", 1, true))
    assert.truthy(text:find("multiply(3, 2) => 6", 1, true))
  end)

  it("works in an ONNX model's If over Equal", function()
    local function scalar(name) return onnx.value(name, 7, {}) end
    local function branch(op, inputs)
      return onnx.graph { nodes = { onnx.node(op, inputs, "r") }, outputs = { scalar "r" } }
    end
    local model = onnx.model { graph = onnx.graph { inputs = { scalar "x" },
      initializers = { onnx.tensor("three", 7, {}, { 3 }), onnx.tensor("two", 7, {}, { 2 }) },
      outputs = { scalar "y" }, nodes = { onnx.node("Equal", "x three", "c"),
        onnx.node("If", "c", "y", { onnx.subgraph("then_branch", branch("Mul", "x two")),
          onnx.subgraph("else_branch", branch("Neg", "x")) }) } } }
    local mod = assert(pl.onnx.parse(model))
    local folded = fold(mod)
    assert(pl.check(mod, folded))
    local text = tostring(folded)
    assert.is_nil(text:find("multiply", 1, true))
    assert.truthy(text:find("negative(%x)", 1, true))
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(folded))))
    for x = 2, 4 do
      local want = pl.tensor(x == 3 and 6 or -x, "int64")
      assert.is_true(pl.eval(again, pl.tensor(x, "int64")):equal(want))
    end
  end)

  it("takes time in proportion to the depth of nested Ifs", function()
    local function nested(n)
      local parts = {}
      for i = 1, n do parts[i] = ("if (equal(%%x, %d)) { add(%%x, 1) } else { "):format(i) end
      return assert(pl.parse(('#[version = "0.0.5"]\ndef @main(%%x: int32) { %s 0 %s }'):format(
        table.concat(parts), ("}"):rep(n))))
    end
    local function seconds(n)
      local mod = nested(n)
      local best = math.huge
      for _ = 1, 3 do
        local begin = os.clock()
        fold(mod)
        best = math.min(best, os.clock() - begin)
      end
      return best
    end
    assert.is_true(seconds(8000) < 5 * seconds(2000) + 0.05)
  end)
end)
