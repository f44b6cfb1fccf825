-- Models that other tools would not let pass, or about whose results they do not
-- agree: in every command, plain and optimised, they end as they should.

local pl = require "perilune"
local zoo = require "perilune.zoo.model"

local default = require "perilune.pipelines.default"
local defects = (os.getenv "PERILUNE_SHARED" or "../shared") .. "/conformance/own-defects/"

local function load(name)
  local file = io.open(defects .. name, "rb")
  if not file then return pending("the models are not there") end
  file:close()
  return assert(pl.onnx.load(defects .. name))
end

-- What the model gives, plain, folded and optimised, which are the same.
local function results(mod, ...)
  local want = table.pack(pl.eval(mod, ...))
  for _, pass in ipairs { pl.passes.FoldConstant { fold = "all" }, default } do
    local got = table.pack(pl.eval(pass(mod), ...))
    for i = 1, want.n do assert.is_true(got[i]:compare(want[i])) end
  end
  return table.unpack(want, 1, want.n)
end

-- Neither crashes, and nothing makes a model run that does not.
local function refuses(message, mod, ...)
  local ok, why = pcall(pl.eval, mod, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(why), 1, true)
  assert.is_false((pcall(pl.eval, default(mod), ...)))
end

describe("an operator without an operand", function()
  it("that its rule reads", function()
    local mod = load "expand-one-operand/model.onnx"
    if mod then pl.verify(default(mod)) end
  end)

  it("is refused where it would be computed", function()
    local m = zoo.new { name = "few", opset = 13 }
    m:input("x", "float32", { 3 })
    m:output(m:node("Expand", { "x" }, nil, "y"), "float32")
    refuses("'broadcast_to': the shape is missing", assert(pl.onnx.parse((m:tostring()))),
      pl.tensor({ 1, 2, 3 }, "float32"))
    for _, name in ipairs { "Identity", "Loop", "SequenceLength", "Relu", "Shape" } do
      m = zoo.new { name = "none", opset = 17 }
      m:output(m:node(name, {}, nil, "y"), "float32")
      local mod = assert(pl.onnx.parse((m:tostring())))
      refuses("takes at least", mod)
    end
  end)

  it("or with one too many", function()
    local mod = load "reduce-refuse-stack/model.onnx"
    if mod then refuses("takes at most 2 operands, got 3", mod, pl.tensor({ 1, 2 }, "int64")) end
  end)
end)

describe("a model without nodes", function()
  it("has nothing to give", function()
    local mod = load "ub-null/a.onnx"
    if not mod then return end
    assert.equal(0, select("#", pl.eval(mod)))
    assert.is_true(pl.check(mod, default(mod)))
    assert(pl.onnx.parse((assert(pl.onnx.tostring(default(mod))))))
  end)
end)

describe("what texts leave open", function()
  it("reductions of no axes still compute", function()
    local mod = load "reduce-noop-composite/model.onnx"
    if not mod then return end
    local l1, l2, square, log, log_exp = results(mod)
    assert.same({ 2, 3 }, l1:to_table())
    assert.same({ 2, 3 }, l2:to_table())
    assert.same({ 4, 9 }, square:to_table())
    local logs = log:to_table()
    assert.is_true(logs[1] ~= logs[1])
    assert.near(math.log(3), logs[2], 1e-6)
    assert.same({ -2, 3 }, log_exp:to_table())
  end)

  it("Clip without a limit limits to the finite numbers", function()
    local mod = load "clip-omitted-min/model.onnx"
    if not mod then return end
    local least = 0
    for element in results(mod):to_bytes():gmatch "...." do
      local x = ("<f"):unpack(element)
      assert.is_true(x ~= -math.huge)
      least = math.min(least, x)
    end
    assert.equal(-(2.0 - 2.0 ^ -23) * 2.0 ^ 127, least)
  end)

  it("ThresholdedRelu of NaN is 0", function()
    local mod = load "clip-omitted-min/thresholdedrelu.onnx"
    if mod then assert.equal(0, results(mod):get(5, 1)) end
  end)

  -- As ONNX's test resize_downsample_scales_linear_align_corners: 4 * 0.6 = 2.4
  -- elements end at 1.4, not at 1.
  it("Resize aligns the corner of a fractional extent", function()
    local m = zoo.new { name = "resize", opset = 13 }
    m:initializer("x", "float32", { 1, 1, 2, 4 }, ("<ffffffff"):pack(1, 2, 3, 4, 5, 6, 7, 8))
    m:initializer("s", "float32", { 4 }, ("<ffff"):pack(1, 1, 0.6, 0.6))
    m:output(m:node("Resize", { "x", "", "s" }, { mode = "linear",
      coordinate_transformation_mode = "align_corners" }, "y"), "float32")
    local made = assert(pl.onnx.parse((m:tostring())))
    local y = results(made)
    assert.same({ 1, 1, 1, 2 }, y.shape)
    assert.near(3.142857, y:get(1, 1, 1, 2), 1e-5)
    local mod = load "resize-align-corners/model.onnx"
    if mod then assert.near(1.6973385, results(mod):get(1, 1, 2, 1), 1e-5) end
  end)
end)

-- Types that a file declares count as far as inference leaves them open. A pass
-- may show that they are wrong.
describe("a declared type", function()
  local function calls(mod)
    local names = {}
    for node in mod.main:nodes() do
      if node.kind == "Call" then names[#names + 1] = node.op.name end
    end
    return table.concat(names, " ")
  end

  it("that makes a call ill-typed does so after it is forgotten", function()
    local m = zoo.new { name = "refused", opset = 13 }
    m:input("x", "float32")
    m:node("SpaceToDepth", { "x" }, { blocksize = -3 }, "open")
    m:value("vector", "float16", { 3 })
    m:node("Identity", { "open" }, nil, "vector")
    m:node("ArgMin", { "vector" }, { axis = 7 }, "position")
    m:output(m:node("Neg", { "position" }, nil, "y"), "float32")
    local mod = assert(pl.onnx.parse((m:tostring())))
    local after = pl.passes.SimplifyExpr()(mod)
    assert.equal("nn.space_to_depth argmin negative", calls(after))
    assert.equal(mod.main.ret_type, after.main.ret_type)
    assert.is_false((pcall(pl.eval, after, pl.tensor({ 1 }, "float32"))))
  end)

  local function branch(op, attributes, dtype)
    local b = zoo.new { name = op }
    b:output(b:node(op, { "x" }, attributes, op .. "_y"), dtype)
    return b
  end

  it("that a pass contradicts gives way with a warning", function()
    local m = zoo.new { name = "later", opset = 13 }
    m:input("x", "int64", { 3 })
    m:initializer("true", "bool", {}, "\1")
    m:node("If", { "true" }, { then_branch = branch("Neg", nil, "int64"),
      else_branch = branch("Cast", { to = 1 }, "float32") }, "either")
    m:output(m:node("Neg", { "either" }, nil, "y"), "float32", { 3 })
    local mod = assert(pl.onnx.parse((m:tostring())))
    assert.equal("Tensor[(3), int64]", tostring(default(mod).main.ret_type))
    local warning = pl.diagnostics()[1]
    assert.equal("warning", warning.severity)
    assert.matches("the function is declared to return Tensor[(3), float32], but returns "
      .. "Tensor[(3), int64]", warning.message, 1, true)
  end)

  it("is not passed on to an operand that another call takes as something else", function()
    local m = zoo.new { name = "two", opset = 13 }
    m:input("x", "float32")
    local open = m:node("SpaceToDepth", { "x" }, { blocksize = -3 }, "refused")
    local sum = m:node("ReduceProd", { open }, nil, "open")
    m:value("integers", "int64")
    m:output(m:node("Neg", { sum }, nil, "integers"), "int64")
    m:value("floats", "float32", { 2, 3 })
    m:output(m:node("Identity", { sum }, nil, "floats"), "float32", { 2, 3 })
    local mod = assert(pl.onnx.parse((m:tostring())))
    assert(pl.verify(pl.passes.SimplifyExpr()(mod)))
  end)

  it("that a script's pass contradicts is an error of the pass", function()
    local m = zoo.new { name = "rule", opset = 13 }
    m:input("x", "int64", { 3 })
    m:output(m:node("Neg", { "x" }, nil, "y"), "int64", { 3 })
    local mod = assert(pl.onnx.parse((m:tostring())))
    pl.passes.Contradicts = { kind = "function", run = function(fn)
      return pl.rewrite(fn, { Call = function(pre)
        return pl.op.cast(pre.args[1], { dtype = "float32" })
      end })
    end }
    local ok, why = pcall(pl.passes.Contradicts(), mod)
    assert.is_false(ok)
    assert.matches("but returns Tensor[(3), float32]", tostring(why), 1, true)
    assert.matches("rule 'Call' replaced", tostring(why), 1, true)
  end)
end)
