-- Whoever changes an operand's type has its users typed again: what inference
-- says of the new operands counts, and what it refuses is an error that leaves
-- everything as it was.

local pl = require "perilune"
local op = pl.op

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end
local function ints(list) return pl.const(pl.tensor(list, "int64")) end

-- A mutator that puts f(call) in the place of calls of an operator.
local function replacing(operator, f)
  return pl.mutator { name = "replace", Call = function(call)
    if call.op == operator then return f(call) end
  end }
end

-- The rewrite is refused with all of those texts, in a pass and without one.
local function refuses(fn, rule, texts)
  local ok, err = pcall(rule, fn)
  assert.is_false(ok, "it was not refused")
  assert.equal("type", err.code)
  for _, text in ipairs(texts) do assert.matches(text, tostring(err), 1, true) end
  local mod = pl.module { main = fn }
  ok, err = pcall(pl.function_pass { name = "Wrong", run = rule }, mod)
  assert.is_false(ok)
  assert.matches("pass 'Wrong', function @main: ", tostring(err), 1, true)
  for _, text in ipairs(texts) do assert.matches(text, tostring(err), 1, true) end
  assert.is_true(pl.verify(mod))
  assert.is_true(pl.equal(mod.main, fn))
end

local function mean(call) return op.mean(call.args[1], { axis = { 1 } }) end

describe("a replacement of another type", function()
  local x = pl.var("x", f32(1, 3, 8, 8))
  local w = pl.var("w", f32(4, 3, 3, 3))

  it("that an operator refuses is an error with rule, node and both types", function()
    local fn = pl.func({ x, w }, op.nn.conv2d(op.nn.relu(x), w, { kernel_size = { 3, 3 } }))
    refuses(fn, replacing(op.nn.relu, mean), { "in nn.conv2d(",
      "the rewrite changed this from Tensor[(1, 3, 8, 8), float32] to Tensor[(1, ",
      "rule 'replace' replaced nn.relu(%x: Tensor[(1, 3, 8, 8), float32]): "
        .. "Tensor[(1, 3, 8, 8), float32] by mean(" })
  end)

  it("that operators take has all that follows typed again", function()
    local y = pl.var("y", f32(2, 3))
    local seen = pl.func({ y }, pl.tuple(op.sum(op.tanh(op.nn.relu(y)), { axis = { 0 } })))
    local body = replacing(op.nn.relu, function(call)
      return op.transpose(call.args[1], { axes = { 1, 0 } })
    end)(seen.body)
    assert.equal(f32(2), body.fields[1].type)
    assert.is_true(pl.verify(body))
  end)

  it("is refused where it is the result of a function", function()
    local y = pl.var("y", f32(2, 3))
    refuses(pl.func({ y }, op.nn.relu(y)), replacing(op.nn.relu, mean), {
      "the function is declared to return Tensor[(2, 3), float32], but returns ",
      "rule 'replace' replaced nn.relu(" })
    local inner = pl.func({ y }, op.nn.relu(y), f32(2, 3))
    local z = pl.var("z", f32(2, 3))
    refuses(pl.func({ z }, pl.tuple(inner(z), z)), replacing(op.nn.relu, mean),
      { "the function is declared to return" })
  end)

  it("is refused where a let's variable, a reference or a pattern needs the old one", function()
    local y, v = pl.var("y", f32(2, 3)), pl.var("v", f32(2, 3))
    refuses(pl.func({ y }, pl.let(v, op.nn.relu(y), op.tanh(v))), replacing(op.nn.relu, mean),
      { "a variable is bound to a value of another type" })
    local ref = pl.ir.RefCreate(y)
    refuses(pl.func({ y }, pl.tuple(pl.ir.RefWrite(ref, op.nn.relu(y)), y)),
      replacing(op.nn.relu, mean), { "a reference holds a value of another type" })
    local a, b = pl.var("a", f32(2, 3)), pl.var("b", f32(2, 3))
    local match = pl.ir.Match(pl.tuple(op.nn.relu(y), y), { { { a, b }, a } })
    refuses(pl.func({ y }, match), pl.mutator { name = "replace", Tuple = function()
      return pl.tuple(y)
    end }, { "the pattern is for (Tensor[(2, 3), float32], Tensor[(2, 3), float32])" })
  end)

  it("is refused as an argument, as a condition and where branches differ", function()
    local y, c = pl.var("y", f32(2, 3)), pl.var("c", "bool")
    local half = pl.func({ pl.var("p", f32(2, 3)) }, y)
    refuses(pl.func({ y }, half(op.nn.relu(y))), replacing(op.nn.relu, mean),
      { "argument 1 must be Tensor[(2, 3), float32]" })
    refuses(pl.func({ y, c }, pl.if_(op.logical_not(c), y, y)),
      replacing(op.logical_not, function() return y end),
      { "the condition of an If must be boolean" })
    refuses(pl.func({ y, c }, pl.if_(c, op.nn.relu(y), y)),
      replacing(op.nn.relu, function(call) return op.cast(call.args[1], { dtype = "int8" }) end),
      { "the branches of an If have different types" })
  end)

  it("takes what was known of its value along", function()
    local y = pl.var("y", f32(2, 3))
    local shape = op.copy(ints { 3, 2 })
    local body = op.nn.relu(op.reshape(y, shape))
    assert.equal(f32(3, 2), body.type)
    local s = pl.var("s", pl.type "Tensor[(2), int64]")
    local open = replacing(op.copy, function() return s end)(body)
    assert.equal(pl.type "Tensor[(?, ?), float32]", open.type)
    local flat = replacing(op.copy, function() return ints { 6 } end)(body)
    assert.equal(f32(6), flat.type)
  end)

  it("may say less than what it replaces, and its users then know less", function()
    local y = pl.var("y", f32(2, 3))
    local any = pl.var("any", "Tensor[(?, 3), float32]")
    local body = replacing(op.nn.relu, function() return any end)(op.tanh(op.nn.relu(y)))
    assert.equal(pl.type "Tensor[(?, 3), float32]", body.type)
  end)
end)

describe("a type that is declared beyond what is inferred", function()
  it("stays where operands tell as much as before", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[*, float32]) {
  %0: Tensor[(2, 4), float32] = tanh(nn.relu(%x));
  %0
}]])
    local out = replacing(op.nn.relu, function(call) return op.abs(call.args[1]) end)(mod.main)
    assert.equal(f32(2, 4), out.body.type)
  end)
end)
