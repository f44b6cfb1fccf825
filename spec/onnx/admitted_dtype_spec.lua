-- Export writes no operator without what the model's opset wants of it, or with
-- operands whose dtypes it does not take: it is refused by name, or its indices
-- and shapes are cast. What a file says itself is written as it was.

local pl = require "perilune"
local zoo = require "perilune.zoo.model"
local op = pl.op

local function read(bytes) return assert(pl.onnx.parse(bytes)) end
local function through_file(fn) return read(assert(pl.onnx.tostring(pl.module { main = fn }))) end
local function refusal(mod)
  local bytes, diag = pl.onnx.tostring(mod)
  assert.is_nil(bytes)
  return diag.message
end

-- A pass that puts f(call) in the place of calls of an operator.
local function replacing(operator, f)
  return pl.function_pass { name = "Replace", run = pl.mutator { Call = function(call)
    if call.op == operator then return f(call) end
  end } }
end

local function operators(mod)
  local names = {}
  for node in mod.main:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op.name end
  end
  return table.concat(names, " ")
end

local x = pl.var("x", "Tensor[(2, 3), float32]")
local i = pl.var("i", "Tensor[(2, 3), int32]")
local b = pl.var("b", "Tensor[(2, 3), bool]")

describe("an operator whose operand the opset does not take", function()
  it("is refused by name, operand, dtype and opset", function()
    for name, fn in pairs {
      Abs = pl.func({ b }, op.abs(b)), Relu = pl.func({ b }, op.nn.relu(b)),
      Add = pl.func({ b }, op.add(b, b)), ReduceSum = pl.func({ b }, op.sum(b, { axis = { 0 } })),
    } do
      local said = ("the operator %s cannot be written at opset 17: input 0 is bool"):format(name)
      assert.matches(said, refusal(pl.module { main = fn }), 1, true)
    end
  end)

  it("is told the opset that takes it", function()
    local old = pl.pipeline "ConvertOpset{opset=13}" (through_file(pl.func({ i }, op.abs(i))))
    local relu = replacing(op.abs, function(call) return op.nn.relu(call.args[1]) end)(old)
    assert.matches("the operator Relu needs opset 14, and the model has 13: input 0 is int32; "
      .. "use --opset 14", refusal(relu), 1, true)
  end)
end)

describe("an attribute that the opset wants said", function()
  it("is, though it is the default here", function()
    local again = through_file(pl.func({ x }, op.concatenate(x, x)))
    assert.equal(0, again.main.body.attrs.axis)
  end)
end)

describe("a node of a file", function()
  local shape = op.cast(op.tanh(pl.const(pl.tensor({ 3.0, 2.0 }, "float32"))), { dtype = "int64" })
  local function narrow(call) return op.cast(call.args[1], { dtype = "int32" }) end

  it("has its operand cast when a pass gives it other integers", function()
    local mod = replacing(op.cast, narrow)(through_file(pl.func({ x }, op.reshape(x, shape))))
    local again = read(assert(pl.onnx.tostring(mod)))
    assert.equal("tanh cast cast reshape", operators(again))
    assert.truthy(tostring(again.main):find('dtype="int32".*dtype="int64".*reshape'))
  end)

  it("or a value of the file that has another dtype", function()
    local s = pl.var("s", "Tensor[(2), int32]")
    local mod = through_file(pl.func({ x, s }, op.reshape(x, op.cast(s, { dtype = "int64" }))))
    local out = replacing(op.cast, function(call) return call.args[1] end)(mod)
    assert.equal("cast reshape", operators(read(assert(pl.onnx.tostring(out)))))
  end)

  it("is refused when a pass gives it what it does not take", function()
    local mod = through_file(pl.func({ x }, op.greater(op.abs(op.tanh(x)), op.abs(op.tanh(x)))))
    local rule = replacing(op.tanh, function(call)
      return op.cast(call.args[1], { dtype = "bool" })
    end)
    assert.matches("the operator Abs cannot be written at opset 17: input 0 is bool",
      refusal(rule(mod)), 1, true)
  end)

  it("is written as it was, whatever it takes", function()
    local m = zoo.new { name = "ill", opset = 13 }
    m:input("b", "bool", { 2 })
    m:input("x", "float32", { 2 })
    m:output(m:node("Abs", { m:node("Not", { "b" }, nil, "n") }, nil, "y"), "bool", { 2 })
    m:output(m:node("Relu", { m:node("Tanh", { "x" }, nil, "t") }, nil, "z"), "float32", { 2 })
    local bytes = m:tostring()
    local mod = read(bytes)
    assert.equal(bytes, pl.onnx.tostring(mod))
    local out = replacing(op.tanh, function(call) return op.sin(call.args[1]) end)(mod)
    assert.equal("logical_not abs sin nn.relu", operators(read(assert(pl.onnx.tostring(out)))))
  end)
end)

describe("shapes, axes and indices of other integers", function()
  local s = pl.var("s", "Tensor[(2), int32]")

  it("are cast to int64", function()
    local k = pl.var("k", "Tensor[(1), uint8]")
    local cases = {
      ["cast reshape"] = pl.func({ x, s }, op.reshape(x, s)),
      ["cast tile"] = pl.func({ x, s }, op.tile(x, s)),
      ["cast broadcast_to"] = pl.func({ x, s }, op.broadcast_to(x, s)),
      ["cast take"] = pl.func({ x, k }, op.take(x, k, { axis = 0 })),
      ["cast constant_of_shape"] = pl.func({ s }, op.constant_of_shape(s)),
    }
    for want, fn in pairs(cases) do
      local mod = pl.module { main = fn }
      local again = read(assert(pl.onnx.tostring(mod)))
      assert.equal(want, operators(again))
    end
  end)

  it("are other constants", function()
    local fn = pl.func({ x }, op.reshape(x, pl.const(pl.tensor({ 3, 2 }, "int32"))))
    local again = through_file(fn)
    assert.equal("reshape", operators(again))
    assert(pl.check(pl.module { main = fn }, again))
  end)

  it("stay where the opset takes them", function()
    local fn = pl.func({ x, s }, op.take(x, s, { axis = 0 }))
    assert.equal("take", operators(through_file(fn)))
  end)
end)
