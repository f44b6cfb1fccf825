-- Attributes that an operator does not have, or not so: text and scripts are told
-- of them in the same words. Scripts may use Relay's names.

local pl = require "perilune"
local op = pl.op

local x = pl.var("x", "Tensor[(1, 3, 8, 8), float32]")
local w = pl.var("w", "Tensor[(4, 3, 3, 3), float32]")

-- `call` as text, and built by `build`, are both refused with the message.
local function refuses(title, call, build, message)
  it(title, function()
    local mod, why = pl.parse(("#[version = \"0.0.5\"]\ndef @main(%s, %s) { %s }"):format(
      "%x: Tensor[(1, 3, 8, 8), float32]", "%w: Tensor[(4, 3, 3, 3), float32]", call))
    assert.is_nil(mod)
    assert.equal(message, (why.message:gsub(": in .*", "")))
    local ok, raised = pcall(build)
    assert.is_false(ok)
    assert.equal(message, (raised.message:gsub(": in .*", "")))
    assert.equal(why.code, raised.code)
  end)
end

describe("an attribute is refused", function()
  refuses("that is misspelt", "nn.conv2d(%x, %w, paddding=[1, 1])",
    function() return op.nn.conv2d(x, w, { paddding = { 1, 1 } }) end,
    "'nn.conv2d' has no attribute 'paddding'; did you mean 'padding'?")
  refuses("that is misspelt, of an operator that ONNX has too", "sum(%x, keepdim=True)",
    function() return op.sum(x, { keepdim = true }) end,
    "'sum' has no attribute 'keepdim'; did you mean 'keepdims'?")
  refuses("that nothing is like", "nn.relu(%x, alpha=1f)",
    function() return op.nn.relu(x, { alpha = 1.0 }) end,
    "'nn.relu' has no attribute 'alpha'")
  refuses("that is not a list", "nn.conv2d(%x, %w, padding=\"same\")",
    function() return op.nn.conv2d(x, w, { padding = "same" }) end,
    "attribute 'padding' takes a list of integers")
  refuses("that is a list of others", "nn.conv2d(%x, %w, padding=[1.5f, 1f])",
    function() return op.nn.conv2d(x, w, { padding = { 1.5, 1.0 } }) end,
    "attribute 'padding' takes a list of integers")
  refuses("that is not an integer", "nn.conv2d(%x, %w, groups=1.5f)",
    function() return op.nn.conv2d(x, w, { groups = 1.5 }) end,
    "attribute 'groups' takes an integer")
  refuses("that is not a number", "nn.leaky_relu(%x, alpha=\"little\")",
    function() return op.nn.leaky_relu(x, { alpha = "little" }) end,
    "attribute 'alpha' takes a number")
  refuses("that is not true or false", "sum(%x, keepdims=\"yes\")",
    function() return op.sum(x, { keepdims = "yes" }) end,
    "attribute 'keepdims' takes True or False")
  refuses("that is no string", "nn.conv2d(%x, %w, data_layout=4)",
    function() return op.nn.conv2d(x, w, { data_layout = 4 }) end,
    "attribute 'data_layout' takes a string")
  refuses("that is no dtype", "cast(%x, dtype=\"float31\")",
    function() return op.cast(x, { dtype = "float31" }) end,
    "there is no dtype 'float31'")
  refuses("that is no name of a dtype", "nn.conv2d(%x, %w, out_dtype=3)",
    function() return op.nn.conv2d(x, w, { out_dtype = 3 }) end,
    "attribute 'out_dtype' takes the name of a dtype")
  refuses("that is left out", "layout_transform(%x, src_layout=\"NCHW\")",
    function() return op.layout_transform(x, { src_layout = "NCHW" }) end,
    "'layout_transform': dst_layout is missing")
  refuses("that is left out with all others", "fixed_point_multiply(%x)",
    function() return op.fixed_point_multiply(x) end,
    "'fixed_point_multiply': multiplier is missing")
  refuses("that is a dtype left out", "cast(%x)", function() return op.cast(x) end,
    "'cast': dtype is missing")
end)

describe("a script that uses Relay's names", function()
  -- The call as text reads it equals the call as the script builds it.
  local function same(call, built)
    local read = assert(pl.parse(("#[version = \"0.0.5\"]\ndef @main(%s) { %s }"):format(
      "%x: Tensor[(1, 3, 8, 8), float32]", call)))
    assert.is_true(pl.equal(read.main, pl.func({ x }, built)), tostring(built))
  end

  it("means what text means", function()
    same("sum(%x, axis=[1])", op.sum(x, { axis = 1 }))
    same("sum(%x, axis=[1], keepdims=True)", op.sum(x, { axis = { 1 }, keepdims = true }))
    same("cast(%x, dtype=\"int8\")", op.cast(x, { dtype = "int8" }))
    same("clip(%x, a_min=0f, a_max=6f)", op.clip(x, { a_min = 0, a_max = 6 }))
    same("transpose(%x, axes=[3, 2, 1, 0])", op.transpose(x, { axes = { 3, 2, 1, 0 } }))
    same("expand_dims(%x, axis=1)", op.expand_dims(x, { axis = 1 }))
    same("squeeze(%x, axis=[0])", op.squeeze(x, { axis = { 0 } }))
    same("strided_slice(%x, begin=[0, 1], end=[1, 3], strides=[1], axes=[0, 1])",
      op.strided_slice(x, { begin = { 0, 1 }, ["end"] = { 1, 3 }, strides = { 1 },
        axes = { 0, 1 } }))
    same("nn.depth_to_space(%x, block_size=1)", op.nn.depth_to_space(x, { block_size = 1 }))
  end)

  it("gets as many results", function()
    same("nn.dropout(%x, rate=0.1f).0", op.nn.dropout(x, { rate = 0.1 }):get(0))
    same("nn.dropout(%x, rate=0.1f)", op.nn.dropout(x, { rate = 0.1, n_results = 2 }))
  end)

  it("still has the others, which mean what ONNX means", function()
    assert.equal("Tensor[(1, 1, 8, 8), float32]", tostring(op.sum(x, { axes = { 1 } }).type))
    assert.equal("Tensor[(1, 8, 8), float32]", tostring(op.sum(x, { axis = { 1 } }).type))
    assert.equal("int64", op.cast(x, { to = 7 }).type.dtype)
  end)

  it("may give one integer for a list of such", function()
    assert.same({ 2 }, op.nn.conv2d(x, w, { strides = 2 }).attrs.strides)
  end)

  it("is told of names that neither has", function()
    local ok, why = pcall(op.sum, x, { axis = { 1 }, noop = 1, keepdim = true })
    assert.is_false(ok)
    assert.truthy(why.message:find("'sum' has no attribute", 1, true), why.message)
  end)
end)
