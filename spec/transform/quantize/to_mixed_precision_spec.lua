-- ToMixedPrecision: which operators are computed in the lower precision, where
-- casts stand, and what keeps its dtypes.

local pl = require "perilune"

local function parse(body) return assert(pl.parse('#[version = "0.0.5"]\n' .. body)) end

local function convert(mod, options, config)
  local scope <close> = pl.context { config = config }:enter() -- luacheck: ignore scope
  options = options or {}
  options.missing_op_mode = options.missing_op_mode or 2
  local out = pl.passes.ToMixedPrecision(options)(mod)
  assert(pl.verify(out))
  return out
end

-- The module's text becomes the other's, types left out; the second run changes
-- nothing more.
local function becomes(before, after, options, config)
  local out, wanted = convert(parse(before), options, config), pl.passes.InferType()(parse(after))
  assert.is_nil((pl.mismatch(out, wanted)))
  return out
end

describe("ToMixedPrecision converts", function()
  it("products always, and casts a tensor once", function()
    becomes([[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  nn.dense(nn.dense(%x, %w), %w)
}]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = cast(%x, dtype="float16");
  %1 = cast(%w, dtype="float16");
  %2 = nn.dense(%0, %1, units=None, out_dtype="float16");
  nn.dense(%2, %1, units=None, out_dtype="float16")
}]])
  end)

  it("what follows, as long as its operands do; exp never", function()
    becomes([[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = nn.relu(nn.dense(%x, %w));
  (add(%0, %x), multiply(exp(%0), %0))
}]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = cast(%x, dtype="float16");
  %1 = nn.dense(%0, cast(%w, dtype="float16"), units=None, out_dtype="float16");
  %2 = nn.relu(%1);
  %3 = cast(%2, dtype="float32");
  (add(%2, %0), multiply(exp(%3), %3))
}]])
  end)

  it("a clip whose bounds the lower precision has", function()
    local clip = [[
def @main(%%x: Tensor[(2, 4), float32], %%w: Tensor[(4, 4), float32]) {
  clip(nn.dense(%%x, %%w), a_min=%sf, a_max=%sf)
}]]
    local after = [[
def @main(%%x: Tensor[(2, 4), float32], %%w: Tensor[(4, 4), float32]) {
  %%0 = nn.dense(cast(%%x, dtype="%s"), cast(%%w, dtype="%s"), units=None, out_dtype="%s");
  clip(%s, a_min=%sf, a_max=%sf)
}]]
    local function result(dtype, value, least, most)
      return after:format(dtype, dtype, dtype, value, least, most)
    end
    local float32 = 'cast(%0, dtype="float32")'
    becomes(clip:format(-65504, 65504), result("float16", "%0", -65504, 65504))
    becomes(clip:format(-128000, 6), result("float16", float32, -128000, 6))
    becomes(clip:format(0, 65505), result("float16", float32, 0, 65505))
    becomes(clip:format(-128000, 128000), result("bfloat16", "%0", -128000, 128000),
      { mixed_precision_type = "bfloat16" })
  end)

  it("the fields of a tuple, one by one", function()
    becomes([[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  concatenate((nn.dense(%x, %w), exp(%x)), axis=1)
}]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), units=None,
    out_dtype="float16");
  %1 = (%0, exp(%x));
  concatenate((cast(%1.0, dtype="float32"), %1.1), axis=1)
}]])
  end)

  it("variables that lets bind", function()
    becomes([[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %a = nn.dense(%x, %w);
  nn.relu(%a)
}]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %a: Tensor[(2, 4), float16] =
    nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), units=None, out_dtype="float16");
  nn.relu(%a)
}]])
  end)

  it("both branches to one dtype, and shares a cast between them", function()
    becomes([[
def @main(%c: bool, %x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  if (%c) { nn.dense(%x, %w) } else { exp(nn.dense(%x, %w)) }
}]], [[
def @main(%c: bool, %x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = cast(%x, dtype="float16");
  %1 = cast(%w, dtype="float16");
  if (%c) { nn.dense(%0, %1, units=None, out_dtype="float16") }
  else {
    cast(exp(cast(nn.dense(%0, %1, units=None, out_dtype="float16"), dtype="float32")),
      dtype="float16")
  }
}]])
  end)

  it("what makes tensors, unless they are of integers", function()
    becomes([[
def @main() { (zeros(shape=[2], dtype="float32"), zeros(shape=[2], dtype="int32")) }]], [[
def @main() { (zeros(shape=[2], dtype="float16"), zeros(shape=[2], dtype="int32")) }]])
  end)

  it("to bfloat16", function()
    becomes([[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) { nn.dense(%x, %w) }]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  nn.dense(cast(%x, dtype="bfloat16"), cast(%w, dtype="bfloat16"), units=None, out_dtype="bfloat16")
}]], { mixed_precision_type = "bfloat16" })
  end)
end)

describe("ToMixedPrecision keeps", function()
  local keep = { ["relay.ToMixedPrecision.keep_orig_output_dtype"] = true }

  it("the very same module where nothing is cast", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 4), float32], %i: Tensor[(2, 4), int32]) { (exp(%x), add(%i, %i)) }]]
    assert.equal(mod, convert(mod))
  end)

  it("the dtype of the result, if the context says so", function()
    local out = convert(parse [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  (nn.dense(%x, %w), exp(%x))
}]], nil, keep)
    assert.equal("(Tensor[(2, 4), float32], Tensor[(2, 4), float32])",
      tostring(out.main.ret_type))
  end)

  it("the types of what functions and references take", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %f = fn (%y: Tensor[(2, 4), float32]) { nn.dense(%y, %w) };
  let %r = ref(%f(nn.dense(%x, %w)));
  ref_write(%r, nn.dense(%x, %w));
  ref_read(%r)
}]]
    assert.equal("Tensor[(2, 4), float32]", tostring(convert(mod).main.ret_type))
  end)

  it("the results of functions that others call", function()
    local mod = parse [[
def @f(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) { nn.dense(%x, %w) }
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  nn.dense(@f(nn.dense(%x, %w), %w), %w)
}]]
    local out = convert(mod)
    assert.equal("Tensor[(2, 4), float32]", tostring(out.functions.f.ret_type))
    assert.equal("Tensor[(2, 4), float16]", tostring(out.main.ret_type))
  end)

  it("the dtypes of what is matched", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  match ((nn.dense(%x, %w), %x)) { (%a, %b) => { add(%a, %b) } }
}]]
    assert.equal("Tensor[(2, 4), float16]", tostring(convert(mod).main.ret_type))
  end)

  it("values, up to the lower precision", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  nn.softmax(nn.relu(nn.dense(%x, %w)))
}]]
    local x, w = pl.tensor({ { 1, -2, 3, 0.5 }, { 0, 1, 0.25, -1 } }, "float32"), {}
    for i = 1, 4 do w[i] = { i / 4, 1 - i / 4, -i / 8, 0.5 } end
    w = pl.tensor(w, "float32")
    local a = pl.eval(mod, x, w):to_table()
    local b = pl.eval(convert(mod), x, w):to_table()
    for i = 1, 2 do
      for k = 1, 4 do assert.is_true(math.abs(a[i][k] - b[i][k]) < 2e-3) end
    end
  end)
end)

describe("ToMixedPrecision", function()
  local logs = [[def @main(%x: Tensor[(2, 4), float32]) { log(%x) }]]
  local key = "FTVMMixedPrecisionConversionType"

  it("refuses an operator that has no category in mode 0", function()
    local ok, diag = pcall(convert, parse(logs), { missing_op_mode = 0 })
    assert.is_false(ok)
    assert.matches("operator 'log' has no FTVMMixedPrecisionConversionType", tostring(diag))
  end)

  it("asks an operator's attribute", function()
    local asked
    local reset = { __close = function() pl.op_attr("log", key, nil) end }
    local scope <close> = setmetatable({}, reset) -- luacheck: ignore scope
    pl.op_attr("log", key, function(call, dtype)
      asked = call.op.name .. " " .. dtype
      return { 0, "float32", dtype }
    end)
    becomes(logs, [[
def @main(%x: Tensor[(2, 4), float32]) { log(cast(%x, dtype="float16")) }]],
      { missing_op_mode = 0 })
    assert.equal("log float16", asked)
    pl.op_attr("log", key, function() return { 3, "float32", "int8" } end)
    local mod = parse(logs)
    local ok, diag = pcall(convert, mod)
    assert.is_false(ok)
    assert.matches("'log': { 0, 1 or 2, float dtype, float dtype } expected", tostring(diag))
  end)

  it("refuses other options", function()
    for _, options in ipairs { { mixed_precision_type = "int8" }, { missing_op_mode = 3 },
      { mixed_precision_type = 16 } } do
      assert.is_false((pcall(pl.passes.ToMixedPrecision, options)))
    end
  end)

  it("is run by a pipeline's text", function()
    local text = 'ToMixedPrecision{mixed_precision_type="bfloat16",missing_op_mode=2}'
    local out = pl.pipeline(text)(parse(logs))
    assert.equal("Tensor[(2, 4), bfloat16]", tostring(out.main.ret_type))
  end)
end)
