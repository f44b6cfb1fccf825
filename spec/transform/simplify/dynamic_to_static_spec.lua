-- DynamicToStatic: operators whose shapes turn out to be known.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local pass = pl.passes.DynamicToStatic()
local op = pl.op

local function var(name, type) return pl.var(name, type) end
local function ints(...) return pl.const(pl.tensor({ ... }, "int64")) end
local function number(value, dtype) return pl.const(pl.tensor(value, dtype or "float32")) end

-- What the pass makes of a function of x with that body, as text of one line; it computes the same.
local function body_of(x, call, inputs)
  local mod = pl.module { main = pl.func({ x }, call) }
  local out = golden.apply(pass, mod)
  if inputs ~= false then assert(pl.check(mod, out, inputs)) end
  local line = out.main.body:text { metadata = false }:gsub("^.*\n([^\n]*)%s*$", "%1")
  return (line:gsub(" /%* ty=(.-) %*/", "")), out
end

describe("DynamicToStatic makes static", function()
  local x = var("x", "Tensor[(2, 8), float32]")
  local image = var("x", "Tensor[(1, 2, 4, 4), float32]")

  local cases = {
    { x, "reshape(%x, newshape=[4, 4])", op.dyn.reshape(x, ints(4, 4), { newshape = {} }) },
    { x, "tile(%x, reps=[1, 2])", op.dyn.tile(x, ints(1, 2), { reps = {} }) },
    { x, "broadcast_to(%x, shape=[3, 2, 8])",
      op.dyn.broadcast_to(x, ints(3, 2, 8), { shape = {} }) },
    { x, 'topk(%x, k=3, is_ascend=True, ret_type="values")',
      op.dyn.topk(x, ints(3), { is_ascend = true, ret_type = "values" }) },
    { x, "strided_slice(%x, begin=[0, 1], end=[2, 7], strides=[1, 2], axes=None)",
      op.dyn.strided_slice(x, ints(0, 1), ints(2, 7), ints(1, 2),
        { begin = {}, ["end"] = {}, strides = {} }) },
    { x, "expand_dims(%x, axis=1, num_newaxis=2)",
      op.dyn.expand_dims(x, number(1, "int64"), { num_newaxis = 2 }) },
    { var("x", "Tensor[(1, 8, 1), float32]"), "squeeze(%x, axis=[0, 2])",
      function(y) return op.dyn.squeeze(y, ints(0, 2), { axis = {} }) end },
    { image, "nn.upsampling(%x, scale_h=2f, scale_w=2f)",
      op.dyn.nn.upsampling(image, number(2), number(2)) },
    { image, "image.resize2d(%x, size=[8, 6]", op.dyn.image.resize2d(image, ints(8, 6),
      pl.const(pl.tensor({ 0, 0, 0, 0 }, "float32")), { method = "nearest_neighbor",
        coordinate_transformation_mode = "asymmetric", rounding_method = "floor" }) },
  }
  for _, case in ipairs(cases) do
    local param, expected, call = table.unpack(case)
    it(expected:match "^[%w_.]+", function()
      if type(call) == "function" then call = call(param) end
      local text = body_of(param, call)
      assert.equal(expected:match "^[^,)]*", text:match "^[^,)]*")
      for word in expected:gmatch "[%w_]+=[^ )]+" do
        local name, value = word:match "^(.-)=(.*)$"
        if value ~= "None" then
          assert.truthy(text:find(name .. "=" .. value:gsub(",$", ""), 1, true), text)
        end
      end
    end)
  end

  it("nn.pad, which keeps its fill as an operand", function()
    local widths = pl.const(pl.tensor({ { 1, 2 }, { 0, 3 } }, "int64"))
    local text, out = body_of(x, op.dyn.nn.pad(x, widths, number(5), { pad_width = {} }))
    assert.truthy(text:find("nn.pad(%x, 5f, pad_width=[[1, 2], [0, 3]])", 1, true), text)
    assert.equal("Tensor[(5, 11), float32]", tostring(out.main.body.type))
  end)

  it("one_hot", function()
    local i = var("x", "Tensor[(4), int32]")
    local text = body_of(i, op.dyn.one_hot(i, number(1), number(0), number(6, "int32"),
      { axis = 0, dtype = "float32" }))
    assert.truthy(text:find("one_hot(%x, 1f, 0f, depth=6, axis=0", 1, true), text)
  end)

  it("sparse_to_dense", function()
    local i = var("x", "Tensor[(3), int32]")
    local values = pl.const(pl.tensor({ 1, 2, 3 }, "float32"))
    local text = body_of(i, op.dyn.sparse_to_dense(i, values, number(0), ints(7),
      { output_shape = {} }), false)
    assert.truthy(text:find("output_shape=[7])", 1, true), text)
  end)

  it("full, zeros and ones", function()
    local s = var("x", "float32")
    local text = body_of(s, op.dyn.full(s, ints(2, 3), { shape = {}, dtype = "float32" }))
    assert.equal('full(%x, shape=[2, 3], dtype="float32")', text)
    for _, name in ipairs { "zeros", "ones" } do
      local _, out = body_of(s, op.add(s, op.dyn[name](ints(2, 3),
        { shape = {}, dtype = "float32" })))
      assert.equal("Tensor[(2, 3), float32]", tostring(out.main.ret_type))
      assert.is_nil(tostring(out):find("dyn.", 1, true))
    end
  end)
end)

describe("DynamicToStatic", function()
  it("follows shapes through shapes that it has made static", function()
    golden.becomes(pass, [[
def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32], %z: Tensor[(2, 2, 2), float32]) {
  %0 = dyn.reshape(%x, shape_of(%y, dtype="int64"), newshape=[]);
  %1 = dyn.reshape(add(%0, %y), shape_of(%z, dtype="int64"), newshape=[]);
  %2 = shape_of(%1, dtype="int64");
  dyn.reshape(%1, multiply(take(%2, 0i64), concatenate((full(1i64, shape=[1], dtype="int64"),
    full(2i64, shape=[1], dtype="int64")))), newshape=[])
}]], [[
def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32], %z: Tensor[(2, 2, 2), float32]) {
  %0 = reshape(%x, newshape=[8]);
  %1 = reshape(add(%0, %y), newshape=[2, 2, 2]);
  reshape(%1, newshape=[2, 4])
}]])
  end)

  it("types the function and its callers anew", function()
    golden.becomes(pass, [[
def @shaped(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) -> Tensor[(?), float32] {
  dyn.reshape(%x, shape_of(%y, dtype="int64"), newshape=[])
}
def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) {
  @shaped(%x, %y)
}]], [[
def @shaped(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) -> Tensor[(8), float32] {
  reshape(%x, newshape=[8])
}
def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) -> Tensor[(8), float32] {
  @shaped(%x, %y)
}]])
  end)

  it("takes branches apart", function()
    golden.becomes(pass, [[
def @main(%c: bool, %x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) {
  if (%c) { dyn.reshape(%x, shape_of(%y, dtype="int64"), newshape=[]) } else { tanh(%y) }
}]], [[
def @main(%c: bool, %x: Tensor[(2, 4), float32], %y: Tensor[(8), float32]) {
  if (%c) { reshape(%x, newshape=[8]) } else { tanh(%y) }
}]])
  end)

  it("leaves what a parameter says", function()
    golden.stays(pass, [[
def @main(%x: Tensor[(2, 4), float32], %s: Tensor[(2), int64]) {
  dyn.reshape(%x, %s, newshape=[])
}]])
  end)

  it("is of level 2, and folds within the budget that its option says", function()
    assert.equal(2, pl.passes.DynamicToStatic.opt_level)
    assert.equal("fold", pl.passes.DynamicToStatic.options[1].name)
    assert.has_error(function() pl.passes.DynamicToStatic { fold = "some" } end)
  end)

  it("is linear in a chain of shapes", function()
    local function seconds(n)
      local x = var("x", "Tensor[(2, 4), float32]")
      local e = x
      for i = 1, n do
        local shape = op.shape_of(e, { dtype = "int64" })
        e = op.dyn.reshape(op.tanh(x), shape, { newshape = {} })
        if i % 2 == 0 then e = op.add(e, x) end
      end
      local mod = pl.module { main = pl.func({ x }, e) }
      local began = os.clock()
      local out = pass(mod)
      assert.is_nil(tostring(out):find("dyn.", 1, true))
      return os.clock() - began
    end
    local short, long = seconds(2000), seconds(16000)
    assert.is_true(long < 30 * short + 0.1, ("%g s for 2,000, %g s for 16,000"):format(short, long))
  end)
end)
