-- What cannot be computed is refused with the operator, the node, what it was
-- given and the value at fault; nothing is computed in its place.

local pl = require "perilune"
local zoo = require "perilune.zoo.model"

local op = pl.op

local x = pl.var("x", "Tensor[(?, ?), float32]")
local y = pl.var("y", "Tensor[(?, ?), float32]")
local i = pl.var("i", "Tensor[(?), int64]")
local n = pl.var("n", "Tensor[(), int64]")
local four = pl.tensor({ { 1, 2 }, { 3, 4 } }, "float32")
local none = pl.tensor("", "float32", { 0, 3 })
local function ints(...) return pl.tensor({ ... }, "int64") end

-- The body on arguments for the named parameters fails with the message.
local function refuses(message, params, body, ...)
  local f = pl.func(params, body)
  local ok, err = pcall(pl.eval, f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err), 1, true)
end

describe("a refusal tells", function()
  it("the index and the operands", function()
    refuses("'take': index 5 is outside of [-2, 2) "
      .. "(given Tensor[(2, 2), float32] and Tensor[(2), int64] = [0, 5])",
      { x, i }, op.take(x, i, { axis = 0 }), four, ints(0, 5))
  end)

  it("the worst of indices", function()
    refuses("index -9223372036854775808 is outside of [-2, 2)",
      { x, i }, op.take(x, i, { axis = 1 }), four, ints(math.mininteger))
    refuses("index -3 is outside of [-2, 2)",
      { x, i }, op.gather_nd(x, op.reshape(i, pl.const(ints(1, 2)))), four, ints(1, -3))
    refuses("index 2 is outside of [-2, 2)",
      { x, i }, op.scatter_elements(x, op.reshape(i, pl.const(ints(1, 1))),
        op.cast(op.reshape(i, pl.const(ints(1, 1))), { to = 1 })), four, ints(2))
  end)

  it("the shape that does not fit", function()
    refuses("Tensor[(2, 2), float32] and Tensor[(2), int64] = [3, 3]",
      { x, i }, op.reshape(x, i), four, ints(3, 3))
    refuses("'reshape': the shape does not match the operand",
      { x, i }, op.reshape(x, i), four, ints(1 << 40, 1 << 40))
    refuses("'reshape': the shape does not match the operand",
      { x, i }, op.reshape(x, i), four, ints(-1, -1))
    refuses("'broadcast_to': ", { x, i }, op.broadcast_to(x, i), four, ints(1 << 40, 1 << 40, 2, 2))
  end)

  it("operands that do not go together", function()
    local three = pl.tensor({ { 1, 2, 3 } }, "float32")
    for _, body in ipairs { x + y, op.nn.matmul(x, y), op.concatenate(x, y, { axis = 0 }) } do
      refuses("(given Tensor[(2, 2), float32] and Tensor[(1, 3), float32])", { x, y }, body,
        four, three)
    end
  end)

  it("what has no quotient", function()
    refuses("'divide': division by zero", { i }, i / i, ints(3, 0))
    refuses("Tensor[(1), int64] = [-9223372036854775808]",
      { i }, i / pl.const(-1), ints(math.mininteger))
    refuses("'mod': division by zero", { i }, op.mod(i, i), ints(0))
  end)

  it("sizes out of range", function()
    refuses("'tile': a repeat is out of range", { x, i }, op.tile(x, i), four, ints(-1, 1))
    refuses("'tile': the result is too large", { x, i }, op.tile(x, i), four,
      ints(1 << 40, 1 << 40))
    refuses("'nn.pad': the pads do not match the operand", { x, i }, op.nn.pad(x, i), four,
      ints(-3, 0, 0, 0))
    refuses("'split': the parts do not match the operand", { x, i },
      op.split(x, i, { axis = 0, n_results = 2 }):get(0), four, ints(1, 3))
    refuses("'topk': k or the axis does not match the operand", { x, i },
      op.topk(x, i, { n_results = 2 }):get(0), four, ints(7))
    refuses("'one_hot': the depth or the axis is out of range", { i, n },
      op.one_hot(i, n, pl.const(pl.tensor({ 0, 1 }, "float32"))), ints(0), -5)
  end)

  it("axes that are none", function()
    refuses("'squeeze': axis 0 is not of extent 1", { x, i }, op.squeeze(x, i), four, ints(0))
    refuses("'expand_dims': axes are repeated or outside", { x, i }, op.expand_dims(x, i), four,
      ints(9))
    refuses("'sum': axes do not match the operand", { x, i }, op.sum(x, i), four, ints(2))
  end)

  it("that there is nothing to choose from", function()
    refuses("'argmax': there are no elements (given Tensor[(0, 3), float32])", { x },
      op.argmax(x, { axis = 0 }), none)
  end)

  it("which variable has no value", function()
    refuses("variable 'y' has no value", { x }, x + y, four)
  end)

  it("the argument, what was expected and what it got", function()
    refuses("expected 1 arguments, got 0", { x }, x)
    refuses("argument 1 'x': expected Tensor[(?, ?), float32], got Tensor[(1), float32]",
      { x }, x, pl.tensor({ 1 }, "float32"))
    refuses("argument 1 'i': expected Tensor[(?), int64], got Tensor[(2, 2), float32]",
      { i }, i, four)
  end)
end)

describe("a refusal in a model tells the node", function()
  local function fails(message, fill, ...)
    local m = zoo.new { name = "bad" }
    m:input("x", "float32", { 4, 2 })
    m:input("i", "int64", { 1 })
    fill(m)
    m:output("y", "float32", { 1, 2 })
    local ok, err = pcall(pl.eval, assert(pl.onnx.parse(m:tostring())), ...)
    assert.is_false(ok)
    assert.matches(message, tostring(err), 1, true)
  end
  local eight = pl.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }, "float32")

  it("by its name", function()
    fails("node 'pick' (Gather): 'take': index 7 is outside of [-4, 4)", function(m)
      m:node("Gather", { "x", "i" }, { axis = 0 }, "y", "pick")
    end, eight, ints(7))
  end)

  it("by what it makes where it has none", function()
    fails("the node of 'h' (Gather): ", function(m)
      m:node("Gather", { "x", "i" }, { axis = 0 }, "h", "")
      m:node("Relu", { "h" }, nil, "y", "r")
    end, eight, ints(-5))
  end)
end)
