-- Calls that a pass shows to be ill-typed, in a branch that need not be taken.

local pl = require "perilune"
local onnx = require "spec.onnx.bytes"

local FLOAT, INT, BOOL = 1, 7, 9

-- The sizes of %y are known once FoldConstant has computed them. They rule out
-- the Squeeze of the first branch.
local function model()
  local function branch(name, node)
    return onnx.graph { name = name, nodes = { node }, outputs = { onnx.value(name .. "_y") } }
  end
  return onnx.model { opset = 13, graph = onnx.graph {
    inputs = { onnx.value("x", FLOAT, { 2, 3 }), onnx.value("c", BOOL, {}) },
    initializers = { onnx.tensor("sizes", FLOAT, { 2 }, { 3, 2 }),
      onnx.tensor("axes", INT, { 1 }, { 0 }) },
    nodes = {
      onnx.node("Floor", "sizes", "floor"),
      onnx.node("Cast", "floor", "shape", { onnx.int("to", INT) }),
      onnx.node("Reshape", "x shape", "y"),
      onnx.node("If", "c", "z", {
        onnx.subgraph("then_branch", branch("then", onnx.node("Squeeze", "y axes", "then_y"))),
        onnx.subgraph("else_branch", branch("else", onnx.node("Relu", "y", "else_y"))),
      }),
    },
    outputs = { onnx.value("z", FLOAT) },
  } }
end

describe("a call in a branch that folding shows to be ill-typed", function()
  local x = pl.tensor({ { -1, 2, -3 }, { 4, -5, 6 } }, "float32")

  it("does not stop the pass, and the other branch computes what it did", function()
    local mod = assert(pl.onnx.parse(model()))
    local out = pl.passes.FoldConstant()(mod)
    assert.not_equal(mod, out)
    assert.is_true(pl.verify(out))
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(out))))
    local result = pl.eval(again, x, pl.tensor(false, "bool"))
    assert.same({ { 0, 2 }, { 0, 4 }, { 0, 6 } }, result:to_table())
  end)

  it("is refused where the branch is taken", function()
    local out = pl.passes.FoldConstant()(assert(pl.onnx.parse(model())))
    local ok, err = pcall(pl.eval, out, x, pl.tensor(true, "bool"))
    assert.is_false(ok)
    assert.matches("squeeze", tostring(err), 1, true)
  end)

  it("is an error where a rule of a script gives the operand another type", function()
    local mod = assert(pl.onnx.parse(model()))
    local pass = pl.function_pass { name = "Grow", run = pl.mutator { Call = function(call)
      if call.op.name == "reshape" then return pl.op.reshape(call.args[1], { newshape = { 6 } }) end
    end } }
    local ok, err = pcall(pass, mod)
    assert.is_false(ok)
    assert.matches("squeeze", tostring(err), 1, true)
  end)
end)
