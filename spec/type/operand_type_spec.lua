-- Operands that no version of an operator takes, in ONNX or in Relay: inference
-- refuses them by name where nodes are made by hand, read from text or rewritten.

local pl = require "perilune"
local op = pl.op

local function var(name, type_) return pl.var(name, type_) end
local x = var("x", "Tensor[(2, 3), float32]")
local image = var("image", "Tensor[(1, 2, 5, 4), float32]")
local floats = var("floats", "Tensor[(2), float32]")
local bools = var("bools", "Tensor[(2, 3), bool]")

local function ints(list) return pl.const(pl.tensor(list, "int64")) end

-- f() is refused with that text.
local function refuses(text, f)
  local ok, err = pcall(f)
  assert.is_false(ok, "it was not refused: " .. text)
  assert.matches(text, tostring(err.message or err), 1, true)
end

describe("a tuple", function()
  local pair = pl.tuple(x, x)

  it("is joined, and no operand of others", function()
    assert.equal("Tensor[(4, 3), float32]", tostring(op.concatenate(pair, { axis = 0 }).type))
    assert.equal("Tensor[(2, 2, 3), float32]", tostring(op.stack(pair, { axis = 0 }).type))
    assert.equal("(Tensor[(2, 3), float32], Tensor[(2, 3), float32])",
      tostring(op.annotation.stop_fusion(pair).type))
    local got = "operand 0: expected a tensor, got (Tensor[(2, 3), float32]"
    refuses("'expand_dims', " .. got, function() return op.expand_dims(pair, { axes = { 0 } }) end)
    refuses("'transpose', " .. got, function() return op.transpose(pair) end)
    refuses("'nn.conv', " .. got, function() return op.nn.conv(pair, image) end)
    refuses("'shape_of', " .. got, function() return op.shape_of(pair) end)
  end)

  it("holds tensors alone where it is joined, and stands alone", function()
    refuses("'concatenate', operand 0: expected a tensor, got (", function()
      return op.concatenate(pl.tuple(x, pair), { axis = 0 })
    end)
    refuses("'concatenate', operand 1: expected a tensor, got (", function()
      return op.concatenate(x, pair, { axis = 0 })
    end)
  end)

  it("is refused where a rule puts it", function()
    local fn = pl.func({ x }, op.transpose(op.tanh(x)))
    local rule = pl.mutator { name = "pairs", Call = function(call)
      if call.op == op.tanh then return pl.tuple(call.args) end
    end }
    refuses("'transpose', operand 0: expected a tensor", function() return rule(fn) end)
  end)
end)

describe("a sequence", function()
  it("is an operand of what works on sequences, and of the identity", function()
    local list = op.sequence_construct(x, x)
    assert.equal("seq(Tensor[(2, 3), float32])", tostring(op.copy(list).type))
    assert.equal("int64", tostring(op.sequence_length(list).type))
    for _, name in ipairs { "concatenate", "abs", "transpose", "shape_of" } do
      refuses(("'%s', operand 0: expected a tensor, got seq(Tensor[(2, 3), float32])"):format(name),
        function() return op[name](list) end)
    end
  end)
end)

describe("a shape, an axis, an index", function()
  it("is of integers", function()
    local got = "expected integers, got float32"
    local number = pl.const(1.0, "float32")
    local cases = {
      reshape = { 1, function() return op.reshape(x, floats) end },
      broadcast_to = { 1, function() return op.broadcast_to(x, floats) end },
      strided_slice = { 1, function() return op.strided_slice(x, floats, floats) end },
      tile = { 1, function() return op.tile(x, floats) end },
      topk = { 1, function() return op.topk(x, number, { n_results = 2 }) end },
      ["nn.pad"] = { 1, function() return op.nn.pad(x, floats) end },
      squeeze = { 1, function() return op.squeeze(x, floats) end },
      expand_dims = { 1, function() return op.expand_dims(x, floats) end },
      split = { 1, function() return op.split(x, floats, { n_results = 2 }) end },
      take = { 1, function() return op.take(x, floats, { axis = 0 }) end },
      gather = { 1, function() return op.gather(x, x, { axis = 0 }) end },
      gather_nd = { 1, function() return op.gather_nd(x, floats) end },
      scatter_elements = { 1, function() return op.scatter_elements(x, x, x, { axis = 0 }) end },
      scatter_nd = { 1, function() return op.scatter_nd(x, x, x) end },
      constant_of_shape = { 0, function() return op.constant_of_shape(floats) end },
      cumsum = { 1, function() return op.cumsum(x, number) end },
      trilu = { 1, function() return op.trilu(x, number) end },
      reverse_sequence = { 1, function() return op.reverse_sequence(x, floats) end },
      sequence_at = { 1, function() return op.sequence_at(op.sequence_construct(x), number) end },
    }
    for name, case in pairs(cases) do
      refuses(("'%s', operand %d: %s"):format(name, case[1], got), case[2])
    end
    refuses("'sum', operand 1: " .. got, function() return op.sum(x, floats) end)
  end)

  it("of topk is one number, which export makes a vector", function()
    refuses("'topk': k must be one number, got 2", function() return op.topk(x, ints { 1, 1 }) end)
    local fn = pl.func({ x }, op.topk(x, ints(1), { n_results = 2 }))
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(pl.module { main = fn }))))
    local text = tostring(again.main)
    assert.truthy(text:find("topk(%x, meta[relay.Constant][0] /* ty=Tensor[(1), int64]", 1, true))
  end)

  it("is no matter where nobody knows its dtype", function()
    local any = var("any", nil)
    assert.truthy(op.reshape(x, any))
    assert.truthy(op.take(x, var("i", "Tensor[(2), uint8]"), { axis = 0 }))
  end)
end)

describe("logic", function()
  it("is that of booleans", function()
    local i = var("i", "Tensor[(2, 3), int64]")
    for _, name in ipairs { "logical_and", "logical_or", "logical_xor" } do
      refuses(("'%s', operand 0: expected bool, got int64"):format(name), function()
        return op[name](i, i)
      end)
      assert.equal(bools.type, op[name](bools, bools).type)
    end
    refuses("'logical_not', operand 0: expected bool", function() return op.logical_not(i) end)
  end)
end)

describe("a variable of a let", function()
  it("is bound to what its type says, when it is computed", function()
    local n, v = var("n", "Tensor[(N), float32]"), var("v", "Tensor[(2), float32]")
    local mod = pl.module { main = pl.func({ n }, pl.let(v, op.abs(n), op.add(v, v))) }
    assert.same({ 2, 4 }, pl.eval(mod, { -1, 2 }):to_table())
    refuses("the variable 'v' has type Tensor[(2), float32], but is bound to a value of "
      .. "another type", function() return pl.eval(mod, { 1, 2, 3 }) end)
  end)
end)

describe("bits", function()
  it("are those of integers", function()
    for _, name in ipairs { "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
      "right_shift" } do
      refuses(("'%s', operand 0: expected integers, got float32"):format(name), function()
        return op[name](x, x)
      end)
    end
    refuses("'bitwise_not', operand 0: expected integers", function() return op.bitwise_not(x) end)
    assert.equal(bools.type, op.bitwise_and(bools, bools).type)
  end)
end)

describe("the channels of a normalisation", function()
  it("are as many as its scale, bias, mean and variance have", function()
    local function vector(n)
      return pl.const(pl.tensor(table.move({ 1, 1, 1 }, 1, n, 1, {}), "float32"))
    end
    local two, three = vector(2), vector(3)
    assert.equal(image.type, op.nn.batch_norm(image, two, two, two, two, { n_results = 0 }).type)
    for i = 2, 5 do
      local vectors = { two, two, two, two }
      vectors[i - 1] = three
      refuses(("'nn.batch_norm', operand %d: expected extent 2, got 3"):format(i - 1), function()
        return op.nn.batch_norm(image, table.unpack(vectors))
      end)
    end
  end)
end)

describe("the body of a loop", function()
  local i, go = var("i", "int64"), var("go", "bool")
  local sum, each = var("sum", "Tensor[(3), float32]"), var("each", "Tensor[(3), float32]")

  local function scan(start, rows)
    local body = pl.func({ sum, each }, pl.tuple(op.add(sum, each), each))
    return op.scan(start, rows, body, { num_scan_inputs = 1, n_results = 2 })
  end

  it("of a scan takes what is carried and what is scanned", function()
    local start = pl.const { 0.0, 0.0, 0.0 }
    assert.truthy(scan(start, x))
    refuses("'scan', operand 1: each iteration takes Tensor[(3), float32], got Tensor[(3), int64]",
      function() return scan(start, op.cast(x, { dtype = "int64" })) end)
    refuses("'scan', operand 1: each iteration takes Tensor[(3), float32], got "
      .. "Tensor[(2), float32]", function() return scan(start, op.transpose(x)) end)
    refuses("'scan', operand 0: each iteration takes Tensor[(3), float32], got float32",
      function() return scan(pl.const(0.0), x) end)
  end)

  it("of a loop takes what is carried, whose extents may change", function()
    local function loop(start)
      local body = pl.func({ i, go, sum }, pl.tuple(go, op.add(sum, sum)))
      return op.loop(ints(3), pl.const(true), start, body, { n_results = 1 })
    end
    assert.truthy(loop(pl.const { 0.0, 0.0, 0.0 }))
    assert.truthy(loop(pl.const { 0.0, 0.0 }))
    refuses("'loop', operand 2: each iteration takes Tensor[(3), float32], got float32",
      function() return loop(pl.const(0.0)) end)
    refuses("'loop', operand 2: each iteration takes Tensor[(3), float32], got Tensor[(3), int64]",
      function() return loop(ints { 0, 0, 0 }) end)
  end)

  it("is asked while a condition holds, a number of times", function()
    local body = pl.func({ i, go, sum }, pl.tuple(go, op.add(sum, sum)))
    local start = pl.const { 0.0, 0.0, 0.0 }
    refuses("'loop', operand 0: expected integers, got float32", function()
      return op.loop(pl.const(1.0), pl.const(true), start, body, { n_results = 1 })
    end)
    refuses("'loop', operand 1: expected bool, got int64", function()
      return op.loop(ints(1), ints(1), start, body, { n_results = 1 })
    end)
  end)
end)

describe("an operand in a message", function()
  it("is counted from 0 by inference, by kernels and by export", function()
    local one, narrow = "Tensor[(1, 1, 1), float32]", pl.var("narrow", "Tensor[(1, 2), float32]")
    local sequence, r = pl.var("x", one), pl.var("r", one)
    local w = pl.var("w", "Tensor[(1, 1, ?), float32]")
    refuses("'rnn', operand 1: expected rank 3, got 2", function()
      return op.rnn(sequence, narrow, r, { n_results = 1 })
    end)
    local fn = pl.func({ sequence, w, r }, op.rnn(sequence, w, r, { n_results = 1 }))
    local cell, wide = pl.tensor({ { { 1 } } }, "float32"), pl.tensor({ { { 1, 1 } } }, "float32")
    refuses("'rnn': operand 1 does not match the others", function()
      return pl.eval(fn, cell, wide, cell)
    end)
    local b = pl.var("b", "Tensor[(2), bool]")
    local _, why = pl.onnx.tostring(pl.module { main = pl.func({ b }, op.nn.prelu(b, b)) })
    assert.matches("input 0 is bool", tostring(why), 1, true)
  end)

  it("is an argument, from 1, where a function is called", function()
    refuses("argument 2 must be int32", function()
      return assert(pl.parse('#[version = "0.0.5"] '
        .. "def @f(%a: int32, %b: int32) { %b } def @main() { @f(1, 2f) }"))
    end)
  end)
end)
