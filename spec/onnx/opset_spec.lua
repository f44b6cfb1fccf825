-- Models in the opset that they say, and in others: what is written as it is,
-- said otherwise, made of older operators, refused.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"
local onnx = require "spec.onnx.bytes"
local pl = require "perilune"

-- A model of one result: add(m, x...) gives its name.
local function one(opset, add, inputs, dtype, result)
  local m = model.new { name = "one", opset = opset, ir_version = 8 }
  local vars = {}
  for i, shape in ipairs(inputs or { { 2, 3 } }) do
    vars[i] = m:input("x" .. i, dtype or "float32", shape)
  end
  m:output(add(m, table.unpack(vars)), result or dtype or "float32", nil)
  return assert(pl.onnx.parse(m:tostring()))
end

local function node(op, attributes)
  return function(m, ...) return m:node(op, { ... }, attributes) end
end

local function convert(mod, opset) return pl.passes.ConvertOpset { opset = opset } (mod) end

-- What is written: operator -> how often, and the model that is read again.
local function written(mod, opset)
  local out = opset and convert(mod, opset) or mod
  local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(out))))
  local found = {}
  for call in again.main:nodes() do
    local name = call.kind == "Call" and call.op and call.op.name
    if name then found[name] = (found[name] or 0) + 1 end
  end
  return found, again
end

local function call_of(mod, name)
  for call in mod.main:nodes() do
    if call.kind == "Call" and call.op and call.op.name == name then return call end
  end
  error("no call of " .. name)
end

-- Round 3 has NaN and infinities among its numbers.
local function same(a, b, rounds)
  local equal, diag = pl.check(a, b, { rounds = rounds or 3 })
  assert(equal, diag and tostring(diag))
end

-- Converted, it is made of these operators and computes the same.
local function becomes(mod, opset, operators)
  local found, again = written(mod, opset)
  assert.same(operators, found)
  assert.equal(opset, again.attrs.opset_import["ai.onnx"])
  same(mod, again)
  return again
end

local function refused(mod, opset, message)
  local ok, reason = pcall(convert, mod, opset)
  assert.is_false(ok)
  assert.matches(message, tostring(reason), 1, true)
end

describe("a model", function()
  local relu = one(17, node "Relu")
  local function with(op)
    local rule = pl.mutator { Call = function(call) return op(call.args[1]) end }
    return relu:with { main = rule(relu.main) }
  end

  it("is written with the operators that its opset has", function()
    local changed = with(pl.op.nn.silu)
    local found, again = written(changed)
    assert.same({ sigmoid = 1, multiply = 1 }, found)
    same(changed, again)
    assert.same({ divide = 1, erf = 1, add = 1, multiply = 2 }, (written(with(pl.op.nn.gelu))))
    assert.same({ ["nn.softplus"] = 1, tanh = 1, multiply = 1 }, (written(with(pl.op.nn.mish))))
    assert.same({ ["nn.hard_swish"] = 1 }, (written(with(pl.op.nn.hard_swish))))
  end)

  it("is refused by name when its opset has no such operator", function()
    local bytes, diag = pl.onnx.tostring(with(function(x)
      return pl.op.cast(pl.op.bitwise_not(pl.op.cast(x, { dtype = "int32" })),
        { dtype = "float32" })
    end))
    assert.is_nil(bytes)
    assert.matches("the operator BitwiseNot needs opset 18, and the model has 17; use --opset 18",
      diag.message, 1, true)
  end)

  it("has the defaults of its opset", function()
    local m = one(11, node "Relu", { { 2, 3, 4 } })
    local rule = pl.mutator { Call = function(call) return pl.op.nn.softmax(call.args[1]) end }
    local changed = m:with { main = rule(m.main) }
    local _, again = written(changed)
    same(changed, again)
  end)

  it("keeps what its file has, newer or not", function()
    local mod = one(14, function(m, x)
      local scale = m:initializer("s", "float32", { 3 }, model.fill(3, 1))
      return m:node("LayerNormalization", { x, scale })
    end)
    assert.same({ ["nn.layer_norm"] = 1 }, (written(mod)))
  end)

  it("stays byte for byte when it has the opset that is asked for", function()
    assert.equal(relu, convert(relu, 17))
    assert.equal(relu, convert(relu, 0))
  end)

  it("imports the domains that its nodes use", function()
    local changed = with(function(x)
      return pl.op.ml.scaler(x, { offset = { 0 }, scale = { 1 } })
    end)
    local _, again = written(changed)
    assert.equal(3, again.attrs.opset_import["ai.onnx.ml"])
  end)

  it("is saved in another opset", function()
    local path = os.tmpname()
    assert(pl.onnx.save(relu, path, { opset = 21 }))
    assert.equal(21, pl.onnx.load(path).attrs.opset_import["ai.onnx"])
    local ok, diag = pl.onnx.save(relu, path, { opset = 3 })
    assert.is_nil(ok)
    assert.matches("opset 3 is outside of [7, ", diag.message, 1, true)
    os.remove(path)
  end)
end)

describe("ConvertOpset", function()
  it("makes inputs of attributes, and attributes of inputs", function()
    local sum = one(11, node("ReduceSum", { axes = { 1 }, keepdims = 0 }))
    local newer = becomes(sum, 13, { sum = 1 })
    assert.equal(2, #call_of(newer, "sum").args)
    assert.is_nil(call_of(newer, "sum").attrs.axes)
    local older = becomes(newer, 11, { sum = 1 })
    assert.same({ 1 }, call_of(older, "sum").attrs.axes)

    local clip = one(6, node("Clip", { min = -0.5, max = 0.5 }))
    becomes(becomes(clip, 13, { clip = 1 }), 7, { clip = 1 })
    local slice = one(9, node("Slice", { starts = { 1 }, ends = { 3 }, axes = { 1 } }))
    becomes(becomes(slice, 18, { strided_slice = 1 }), 9, { strided_slice = 1 })
    local pad = one(10, node("Pad", { pads = { 0, 1, 0, 1 }, value = 2.5 }))
    becomes(becomes(pad, 19, { ["nn.pad"] = 1 }), 10, { ["nn.pad"] = 1 })
    local unsqueeze = one(12, node("Unsqueeze", { axes = { 0, 2 } }))
    becomes(becomes(unsqueeze, 13, { expand_dims = 1 }), 9, { expand_dims = 1 })
  end)

  it("counts axes from the start where they may not be counted from the end", function()
    local mean = becomes(one(13, node("ReduceMean", { axes = { -1 } })), 10, { mean = 1 })
    assert.same({ 1 }, call_of(mean, "mean").attrs.axes)
  end)

  it("keeps what softmax means", function()
    local old = one(11, node("Softmax", { axis = 1 }), { { 2, 3, 4 } })
    local newer = becomes(old, 13, { shape_of = 1, flatten = 1, ["nn.softmax"] = 1, reshape = 1 })
    becomes(newer, 11, { shape_of = 1, flatten = 1, ["nn.softmax"] = 1, reshape = 1 })
    becomes(one(11, node("Softmax", { axis = 2 }), { { 2, 3, 4 } }), 13, { ["nn.softmax"] = 1 })
    for _, axis in ipairs { 0, 1, 2, -1 } do
      for _, op in ipairs { "Softmax", "LogSoftmax", "Hardmax" } do
        local mod = one(13, node(op, { axis = axis }), { { 2, 3, 4 } })
        local _, again = written(mod, 9)
        same(mod, again)
        local _, back = written(again, 13)
        same(mod, back)
      end
    end
    local open = one(13, node("Softmax", { axis = 0 }), { { "N", 3, "M" } })
    local _, again = written(open, 12)
    same(open, again)
  end)

  it("makes new operators of older ones", function()
    local function made(opset, to, op, attributes, inputs)
      local mod = one(opset, node(op, attributes), inputs)
      local _, again = written(mod, to)
      assert.has_error(function() call_of(again, op) end)
      same(mod, again)
    end
    made(20, 17, "Gelu")
    made(20, 17, "Gelu", { approximate = "tanh" })
    made(24, 13, "Swish", { alpha = 1.5 })
    made(18, 9, "Mish")
    made(14, 8, "HardSwish")
    made(12, 10, "Celu", { alpha = 2.0 })
    made(10, 9, "ThresholdedRelu", { alpha = 0.25 })
    made(12, 11, "GreaterOrEqual", nil, { { 2, 3 }, { 2, 3 } })
    made(12, 11, "LessOrEqual", nil, { { 2, 3 }, { 2, 3 } })
    made(9, 8, "MeanVarianceNormalization", nil, { { 2, 3, 4, 5 } })
    made(23, 13, "RMSNormalization", { axis = 1 }, { { 2, 3, 4 }, { 3, 4 } })
    made(17, 11, "LayerNormalization", { axis = 1 }, { { 2, 3, 4 }, { 3, 4 }, { 3, 4 } })
    made(17, 11, "LayerNormalization", nil, { { "N", 4 }, { 4 } })
    made(21, 17, "GroupNormalization", { num_groups = 2 }, { { 2, 4, 3, 3 }, { 4 }, { 4 } })
    made(28, 20, "SwiGLU", nil, { { 2, 3 }, { 2, 3 } })
  end)

  it("makes attention and its relatives of products and slices", function()
    local function made(op, attributes, inputs)
      local mod = one(23, node(op, attributes), inputs)
      local found, again = written(mod, 18)
      assert.is_nil(found.attention)
      assert.is_nil(found.rotary_embedding)
      same(mod, again, 2) -- what a mask hides is multiplied with 0, NaN too
    end
    local heads = { { 2, 2, 3, 4 }, { 2, 2, 5, 4 }, { 2, 2, 5, 4 } }
    made("Attention", nil, heads)
    made("Attention", { scale = 0.25 }, { heads[1], heads[2], heads[3], { 3, 5 } })
    made("Attention", { is_causal = 1 }, heads)
    made("Attention", { q_num_heads = 2, kv_num_heads = 2 },
      { { 2, 3, 8 }, { 2, 5, 8 }, { 2, 5, 8 } })
    for interleaved = 0, 1 do
      made("RotaryEmbedding", { interleaved = interleaved },
        { { 2, 3, 4, 8 }, { 2, 4, 4 }, { 2, 4, 4 } })
      made("RotaryEmbedding", { interleaved = interleaved, num_heads = 2 },
        { { 2, 4, 16 }, { 2, 4, 4 }, { 2, 4, 4 } })
    end
  end)

  it("attends to nothing where a mask hides all", function()
    local q = pl.var("q", "Tensor[(1, 1, 2, 2), float32]")
    local bools = pl.tensor({ { false, false }, { true, false } }, "bool")
    local floats = pl.tensor({ { -math.huge, -math.huge }, { 0, -math.huge } }, "float32")
    for _, mask in ipairs { bools, floats } do
      local fn = pl.func({ q }, pl.op.attention(q, q, q, pl.const(mask)))
      local mod = pl.pipeline "ConvertOpset{opset=23}" (pl.module { main = fn })
      for _, opset in ipairs { 9, 13, 18 } do
        local _, again = written(mod, opset)
        assert.same({ { { { 0, 0 }, { 1, 2 } } } },
          pl.eval(again, { { { { 1, 2 }, { 3, 4 } } } }):to_table())
      end
    end
  end)

  it("crops and pads with slices and pads", function()
    for _, axes in ipairs { {}, { 0, 1 } } do
      local mod = one(18, function(m, x)
        local shape = m:constant { 2, 5 }
        return m:node("CenterCropPad", { x, shape }, { axes = axes[1] and axes })
      end, { { 3, 4 } })
      local found, again = written(mod, 13)
      assert.is_nil(found.center_crop_pad)
      same(mod, again)
    end
  end)

  it("takes scales and biases of groups to channels", function()
    local normalise = node("GroupNormalization", { num_groups = 2 })
    local mod = one(18, normalise, { { 2, 4, 3 }, { 2 }, { 2 } })
    local _, again = written(mod, 21)
    same(mod, again)
  end)

  it("keeps triangles by comparisons before opset 14", function()
    for _, dtype in ipairs { "float32", "int32", "bool", "float16" } do
      local x, k = pl.var("x", ("Tensor[(2, N, 4), %s]"):format(dtype)), pl.var("k", "int64")
      for _, operands in ipairs { { x }, { x, k } } do
        for upper = 0, 1 do
          local fn = pl.func(operands, pl.op.trilu(operands, { upper = upper }))
          local mod = pl.pipeline "ConvertOpset{opset=17}" (pl.module { main = fn })
          local found, again = written(mod, 13)
          assert.is_nil(found.trilu)
          same(mod, again)
        end
      end
    end
  end)

  it("tells shapes by slices before opset 15", function()
    local mod = one(15, node("Shape", { start = 1 }), { { "N", 3, "M" } }, "float32", "int64")
    becomes(mod, 13, { shape_of = 1, strided_slice = 1 })
  end)

  it("reshapes to extents that may be 0 before opset 14", function()
    local x, s = pl.var("x", "Tensor[(N, M), float32]"), pl.var("s", "Tensor[(3), int64]")
    local mod = pl.module { main = pl.func({ x, s }, pl.op.reshape(x, s, { allowzero = 1 })) }
    local found, again = written(mod, 13)
    assert.equal(2, found.reshape)
    for shape, extents in pairs { [{ 2, 3 }] = { 3, 1, 2 }, [{ 0, 3 }] = { 5, 0, 2 },
      [{ 3, 0 }] = { 0, 4, 7 }, [{ 0, 0 }] = { 2, 2, 0 }, [{ 4, 1 }] = { 2, -1, 2 },
      [{ 0, 1 }] = { 3, -1, 2 } } do
      local given = pl.eval(pl.func({}, pl.op.ones { shape = shape, dtype = "float32" }))
      local to = pl.tensor(extents, "int64")
      assert.is_true(pl.eval(mod, given, to):equal(pl.eval(again, given, to)))
    end
  end)

  it("gives what is made of one node names that differ", function()
    local mod = one(14, function(m, x, s)
      return m:node("Reshape", { x, s }, { allowzero = 1 }, nil, "the_only")
    end, { { "N", "M" }, { 3 } }, "int64")
    local bytes = assert(pl.onnx.tostring(convert(mod, 13)))
    local _, n = bytes:gsub("\26\8the_only", "")
    assert.equal(1, n)
  end)

  it("computes in float32 what it does not in bfloat16", function()
    local x = pl.var("x", "Tensor[(1, 2, 4, 4), bfloat16]")
    local w = pl.var("w", "Tensor[(3, 2, 2, 2), bfloat16]")
    local mod = pl.module { main = pl.func({ x, w }, pl.op.nn.conv(x, w)) }
    becomes(mod, 17, { cast = 3, ["nn.conv"] = 1 })
    refused(mod, 12, "the operator Conv needs opset 22")
  end)

  -- Converted, no call of the operator is left, and it gives the same of these inputs.
  local function expands(mod, opset, name, data)
    local found, again = written(mod, opset)
    assert.is_nil(found[name])
    assert.equal(opset, again.attrs.opset_import["ai.onnx"])
    local equal, diag = pl.check(mod, again, { data = { data } })
    assert(equal, diag and tostring(diag))
  end

  local function ints(values) return pl.tensor(values, "int64") end

  it("makes losses of one-hot labels before opset 12", function()
    local scores = pl.tensor.random({ 3, 5, 2 }, "float32", { seed = 1 })
    local weights = pl.tensor({ 0.5, 1, 2, 0.25, 3 }, "float32")
    local labels, ignoring = ints { { 0, 4 }, { 2, 1 }, { 3, 3 } },
      ints { { 0, -1 }, { -1, 1 }, { 3, 3 } }
    for op, name in pairs { NegativeLogLikelihoodLoss = "nn.nll_loss",
      SoftmaxCrossEntropyLoss = "nn.softmax_cross_entropy" } do
      for _, reduction in ipairs { "none", "sum", "mean" } do
        for _, weighted in ipairs { false, true } do
          for _, ignore in ipairs { false, -1 } do
            local m = model.new { name = "loss", opset = 13, ir_version = 8 }
            local inputs = { m:input("x", "float32", { 3, 5, 2 }), m:input("t", "int64", { 3, 2 }) }
            local data = { scores, ignore and ignoring or labels, weighted and weights or nil }
            if weighted then inputs[3] = m:input("w", "float32", { 5 }) end
            m:output(m:node(op, inputs, { reduction = reduction, ignore_index = ignore or nil }),
              "float32", nil)
            local mod = assert(pl.onnx.parse(m:tostring()))
            for _, opset in ipairs { 11, 9 } do expands(mod, opset, name, data) end
          end
        end
      end
    end
  end)

  it("counts by places of ones before opset 11", function()
    local function range(dtype, ...)
      local mod = one(11, node "Range", { {}, {}, {} }, dtype)
      local data = {}
      for i, value in ipairs { ... } do data[i] = pl.tensor.full(value, {}, dtype) end
      for _, opset in ipairs { 10, 9 } do expands(mod, opset, "arange", data) end
    end
    range("int64", 3, 11, 3)
    range("int64", 9, -2, -4)
    range("int32", 5, 5, 1)
    range("int64", 5, 2, 1)
    range("float32", 0.5, 2.25, 0.25)
  end)

  it("quantises by the range of the elements before opset 11", function()
    local mod = one(11, function(m, x)
      local y = m:node("DynamicQuantizeLinear", { x }, nil, { "q", "scale", "zero" })
      return m:node("DequantizeLinear", { y, "scale", "zero" })
    end, { { 3, 4 } })
    expands(mod, 10, "dynamic_quantize_linear", { pl.tensor.random({ 3, 4 }, "float32") })
    refused(mod, 9, "the operator DynamicQuantizeLinear needs opset 11")
  end)

  it("makes grids of products before opset 20", function()
    for align = 0, 1 do
      for _, size in ipairs { { 2, 3, 4, 5 }, { 2, 1, 3, 4, 5 } } do
        local rank = #size - 2
        local mod = one(20, function(m, theta)
          return m:node("AffineGrid", { theta, m:constant(size) }, { align_corners = align })
        end, { { 2, rank, rank + 1 } })
        local theta = pl.tensor.random({ 2, rank, rank + 1 }, "float32")
        for _, opset in ipairs { 19, 13, 9 } do
          expands(mod, opset, "image.affine_grid", { theta })
        end
      end
    end
  end)

  it("writes pads of int32 as int64", function()
    local x, pads = pl.var("x", "Tensor[(2, 3), float32]"), pl.var("pads", "Tensor[(4), int32]")
    local fn = pl.func({ x, pads }, pl.op.nn.pad(x, pads, pl.const(1.5, "float32")))
    local mod = convert(pl.module { main = fn }, 13)
    local found, again = written(mod)
    assert.same({ cast = 1, ["nn.pad"] = 1 }, found)
    local data = { pl.tensor.random({ 2, 3 }, "float32"), pl.tensor({ 1, 0, 2, 1 }, "int32") }
    assert(pl.check(mod, again, { data = { data } }))
  end)

  it("refuses what no older operator says, with the opset that it needs", function()
    refused(one(16, node "GridSample", { { 1, 1, 2, 2 }, { 1, 2, 2, 2 } }), 13,
      "the operator GridSample needs opset 16, and the model has 13; use --opset 16")
    local open = one(13, node "ReduceSum", { { 2, 3 } })
    assert.same({ sum = 1 }, (written(open, 9)))
    refused(one(14, function(m, x, shape)
      return m:node("Reshape", { x, m:node("Cast", { shape }, { to = 7 }) }, { allowzero = 1 })
    end, { { 2, 3 }, { "K" } }), 13, "the operator Reshape needs opset 14, and the model has 13")
  end)

  it("keeps the bytes of nodes that mean the same in both", function()
    local m = model.new { name = "bytes", opset = 13, ir_version = 8 }
    local x = m:input("x", "float32", { 2, 3 })
    m:output(m:node("Relu", { m:node("Add", { x, x }) }, nil, nil, "kept"), "float32", { 2, 3 })
    local before = assert(pl.onnx.parse(m:tostring()))
    local bytes = assert(pl.onnx.tostring(convert(before, 20)))
    assert.equal(#m:tostring(), #bytes)
    assert.equal(before.main, convert(before, 20).main)
  end)

  it("splits evenly, or says the parts", function()
    local function split(opset, extent, attributes)
      return one(opset, function(m, x)
        m:node("Split", { x }, attributes, { "first", "second" })
        return m:node("Concat", { "second", "first" }, { axis = 0 })
      end, { { extent, 2 } })
    end
    local even = becomes(split(13, 4), 18, { split = 1, concatenate = 1 })
    assert.equal(2, call_of(even, "split").attrs.num_outputs)
    local odd = becomes(split(18, 5, { num_outputs = 2 }), 13, { split = 1, concatenate = 1 })
    assert.equal(2, #call_of(odd, "split").args)
  end)
end)

describe("a local function", function()
  -- Softmax of opset 11 in a model of opset 17.
  local function mixed()
    local f = onnx.func { name = "F", domain = "local", inputs = "x", outputs = "y", opset = 11,
      nodes = { onnx.node("Softmax", "x", "y") } }
    return assert(pl.onnx.parse(onnx.model { opset = 17, domains = { ["local"] = 1 },
      functions = { f },
      graph = onnx.graph { inputs = { onnx.value("x", 1, { 2, 3, 4 }) },
        nodes = { onnx.node("F", "x", "y", nil, { domain = "local" }) },
        outputs = { onnx.value("y", 1, { 2, 3, 4 }) } } }))
  end

  it("keeps an opset of its own", function()
    local mod = mixed()
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(mod))))
    assert.equal(11, again.attrs.function_opset_import["local::F"]["ai.onnx"])
    same(mod, again)
  end)

  it("is converted with the model", function()
    local _, again = written(mixed(), 13)
    assert.is_nil(again.attrs.function_opset_import)
    assert.is_nil(call_of({ main = again.functions["local::F"] }, "nn.softmax").attrs.coerce_2d)
    same(mixed(), again)
  end)

  it("means the same where it is inlined", function()
    local mod = mixed()
    local f = mod.functions["local::F"]
    local marked = pl.ir.Function(f.params, f.body, nil, { Inline = 1 })
    local inlined = pl.passes.Inline()(mod:with { ["local::F"] = marked })
    same(mod, assert(pl.onnx.parse(assert(pl.onnx.tostring(inlined)))))
  end)
end)

local shared = (os.getenv "PERILUNE_SHARED" or "../shared") .. "/conformance/own-defects/"
describe("a model of an old opset", function()
  local function load(name)
    local mod = pl.onnx.load(shared .. name .. "/model.onnx")
    return mod or pending "the models are not there"
  end

  it("has a sequence twice without Identity", function()
    local mod = load "cse-sequence-identity"
    local merged = pl.passes.EliminateCommonSubexpr()(mod)
    local found, again = written(merged)
    assert.same({ split_to_sequence = 1, sequence_insert = 1, sequence_erase = 1 }, found)
    same(mod, again)
  end)

  it("has a mask of Dropout of the operand's dtype", function()
    local mod = load "dropout9-mask"
    local folded = pl.passes.FoldConstant()(mod)
    local _, again = written(folded)
    assert.equal("Tensor[(2, 3), float32]", tostring(again.main.body.type))
    same(mod, again)
  end)
end)

describe("perilune opt --opset", function()
  local folder = command.folder()
  local function run(arguments) return command.run(folder, arguments) end
  local input, output = folder .. "/in.onnx", folder .. "/out.onnx"
  local m = model.new { name = "one", opset = 20, ir_version = 8 }
  m:output(m:node("Gelu", { m:input("x", "float32", { 2, 3 }) }), "float32", { 2, 3 })
  assert(m:save(input))
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("converts the model once the passes are done", function()
    local arguments = ("opt %s -o %s --check --only SimplifyExpr --opset 13"):format(input, output)
    local status = run(arguments)
    assert.equal(0, status)
    local mod = assert(pl.onnx.load(output))
    assert.equal(13, mod.attrs.opset_import["ai.onnx"])
    assert.equal("erf", call_of(mod, "erf").op.name)
  end)

  it("fails with the operator, and writes nothing", function()
    os.remove(output)
    local status, _, err = run(("opt %s -o %s --opset 8"):format(input, output))
    assert.equal(1, status)
    assert.matches("the operator Gelu needs opset 20, and the model has 8", err)
    assert.is_nil(io.open(output))
  end)

  it("tells which opsets there are", function()
    local status, _, err = run(("opt %s -o %s --opset 99"):format(input, output))
    assert.equal(2, status)
    assert.matches("'99' is not an opset from 7 to ", err, 1, true)
  end)
end)
