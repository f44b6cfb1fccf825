-- The built-in passes: what goes in, what comes out, and that both compute the
-- same.

local pl = require "perilune"

local op = pl.op

local function tensor(dtype, ...) return pl.type { shape = { ... }, dtype = dtype } end
local function f32(...) return tensor("float32", ...) end
local function ints(...) return pl.const(pl.tensor({ ... }, "int64")) end
local function floats(...) return pl.const(pl.tensor({ ... }, "float32")) end

-- The module of a function of vars with that body.
local function module(vars, body) return pl.module { main = pl.func(vars, body) } end

-- How many calls of `name` there are.
local function count(mod, name)
  local n = 0
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op.name == name then n = n + 1 end
  end
  return n
end

-- Applies a pipeline; the result is valid, computes the same, and is final.
local function run(pipeline, mod, unchecked)
  local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
  local pass = pl.pipeline(pipeline)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(unchecked or pl.check(mod, out))
  assert.equal(out, pass(out))
  return out
end

local function simplify(vars, body) return run("SimplifyExpr", module(vars, body)) end
local function is_param(mod) return mod.main.body == mod.main.params[1] end

describe("SimplifyExpr removes", function()
  local x = pl.var("x", f32(2, 3))
  local i = pl.var("i", tensor("int64", 2, 3))
  local p = pl.var("p", tensor("bool", 2, 3))
  local u = pl.var("u", f32("?", "?"))

  local nothing = {
    { "a copy", x, function() return op.copy(x) end },
    { "x + 0", x, function() return x + 0 end },
    { "0 + x", x, function() return 0 + x end },
    { "x - 0", x, function() return x - 0 end },
    { "x * 1", x, function() return x * 1 end },
    { "x / 1", x, function() return x / 1 end },
    { "x + 0 of integers", i, function() return op.add(i, ints(0)) end },
    { "x * ones of its shape", x, function()
      return op.multiply(x, pl.const(pl.tensor({ { 1, 1, 1 }, { 1, 1, 1 } }, "float32"))) end },
    { "x ^ 1", x, function() return op.power(x, floats(1)) end },
    { "p and true", p, function()
      return op.logical_and(p, pl.const(pl.tensor({ true }, "bool"))) end },
    { "p or false", p, function()
      return op.logical_or(p, pl.const(pl.tensor({ false }, "bool"))) end },
    { "a cast to its own dtype", x, function() return op.cast(x, { to = 1 }) end },
    { "a reshape to its own shape", x, function() return op.reshape(x, ints(2, 3)) end },
    { "a reshape to 0, -1", x, function() return op.reshape(x, ints(0, -1)) end },
    { "a reshape of unknown extents to copies of them", u, function()
      return op.reshape(u, ints(0, -1)) end },
    { "a reshape there and back", x, function()
      return op.reshape(op.reshape(x, ints(6)), ints(2, 3)) end },
    { "a transpose that moves nothing", x, function()
      return op.transpose(x, { axes = { 0, 1 } }) end },
    { "two transposes that undo each other", x, function()
      return op.transpose(op.transpose(x)) end },
    { "a pad by nothing", x, function() return op.nn.pad(x, ints(0, 0, 0, 0)) end },
    { "a slice of all", x, function()
      return op.strided_slice(x, ints(0, 0), ints(2, 9223372036854775807)) end },
    { "an expand to its own shape", x, function() return op.broadcast_to(x, ints(2, 3)) end },
    { "an expand by ones", x, function() return op.broadcast_to(x, ints(1)) end },
    { "a tile by ones", x, function() return op.tile(x, ints(1, 1)) end },
    { "a concat of one", x, function() return op.concatenate(x, { axis = 1 }) end },
    { "a squeeze of an unsqueeze", x, function()
      return op.squeeze(op.expand_dims(x, ints(0)), ints(0)) end },
    { "a dropout", x, function() return op.nn.dropout(x) end },
    { "the sum of one", x, function() return op.add_n(x) end },
  }
  for _, case in ipairs(nothing) do
    local name, var, body = table.unpack(case)
    it(name, function() assert.is_true(is_param(simplify({ var }, body()))) end)
  end
end)

describe("SimplifyExpr keeps", function()
  local x = pl.var("x", f32(2, 3))
  local u = pl.var("u", f32("?", "?"))

  local same = {
    { "x + 0 that broadcasts", x, function()
      return op.add(x, pl.const(pl.tensor({ { { 0 } } }, "float32"))) end },
    { "1 / x", x, function() return 1 / x end },
    { "0 - x", x, function() return 0 - x end },
    { "x + 1", x, function() return x + 1 end },
    { "a cast that narrows and widens again", x, function()
      return op.cast(op.cast(x, { to = 10 }), { to = 1 }) end },
    { "a reversed slice of the same shape", x, function()
      return op.strided_slice(x, ints(-1), ints(-9223372036854775807), ints(0), ints(-1)) end },
    { "a transpose of a square of unknown sides", u, function()
      return op.transpose(u, { axes = { 1, 0 } }) end },
    { "a slice to an unknown end", u, function() return op.strided_slice(u, ints(0), ints(4)) end },
    { "an expand of an unknown shape", u, function()
      return op.broadcast_to(u, ints(1, 1, 1)) end },
  }
  for _, case in ipairs(same) do
    local name, var, body = table.unpack(case)
    it(name, function()
      local mod = module({ var }, body())
      local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
      assert.equal(mod, pl.passes.SimplifyExpr()(mod))
    end)
  end
end)

describe("SimplifyExpr merges", function()
  local x = pl.var("x", f32(2, 3, 4))
  local n = pl.var("n", f32("N", 3, 4))

  it("transposes", function()
    local out = simplify({ x }, op.transpose(op.transpose(x, { axes = { 1, 2, 0 } }),
      { axes = { 1, 2, 0 } }))
    assert.equal(1, count(out, "transpose"))
    assert.same({ 2, 0, 1 }, out.main.body.attrs.axes)
  end)

  it("reshapes, and knows of what a 0 is a copy", function()
    local out = simplify({ x }, op.reshape(op.reshape(x, ints(6, 4)), ints(0, 2, 2)))
    assert.equal(1, count(out, "reshape"))
    out = simplify({ n }, op.reshape(op.reshape(n, ints(0, 12)), ints(0, 2, 6)))
    assert.equal(1, count(out, "reshape"))
    assert.same({ 0, 2, 6 }, out.main.body.args[2].data:to_table())
  end)

  it("a reshape with what keeps the order of elements", function()
    local out = simplify({ x }, op.reshape(op.expand_dims(x, ints(0)), ints(4, 6)))
    assert.equal(0, count(out, "expand_dims"))
  end)

  it("squeezes and unsqueezes", function()
    local y = pl.var("y", f32(1, 2, 1, 3, 1))
    local out = simplify({ y }, op.squeeze(op.squeeze(y, ints(0, 2)), ints(-1)))
    assert.equal(1, count(out, "squeeze"))
    assert.same({ 0, 2, 4 }, out.main.body.args[2].data:to_table())
    out = simplify({ x }, op.expand_dims(op.expand_dims(x, ints(1)), ints(0, 2)))
    assert.equal(1, count(out, "expand_dims"))
    assert.same({ 0, 2, 3 }, out.main.body.args[2].data:to_table())
  end)

  it("casts that widen first", function()
    local h = pl.var("h", tensor("float16", 4))
    local out = simplify({ h }, op.cast(op.cast(h, { to = 1 }), { to = 11 }))
    assert.equal(1, count(out, "cast"))
    assert.is_true(is_param(simplify({ h }, op.cast(op.cast(h, { to = 1 }), { to = 10 }))))
  end)

  it("away what is empty in a concat", function()
    local e = pl.var("e", f32(2, 0, 4))
    local out = run("SimplifyExpr", module({ x, e },
      op.concatenate(x, e, x, { axis = 1 })), "made inputs have no empty axes")
    assert.equal(2, #out.main.body.args)
  end)

  it("the arithmetic of a shape into the reshape that it is for", function()
    local size = op.take(op.shape_of(n), ints(0), { axis = 0 })
    local out = run("SimplifyExpr,DeadCodeElimination",
      module({ n }, op.reshape(n, op.concatenate(size, ints(12), { axis = 0 }))))
    assert.equal(0, count(out, "shape_of"))
    assert.same({ 0, 12 }, out.main.body.args[2].data:to_table())
  end)
end)

describe("FoldConstant", function()
  local x = pl.var("x", f32(2, 2))
  local function fold(vars, body, options)
    return run("FoldConstant" .. (options or ""), module(vars, body))
  end

  it("computes what depends on constants", function()
    local out = fold({ x }, x + op.multiply(floats(2), floats(3)))
    assert.equal(0, count(out, "multiply"))
    assert.same({ 6.0 }, out.main.body.args[2].data:to_table())
  end)

  it("computes the shape of what has static dims", function()
    local out = fold({ x }, op.shape_of(x))
    assert.equal("Constant", out.main.body.kind)
    assert.same({ 2, 2 }, out.main.body.data:to_table())
  end)

  it("keeps what it knows in part", function()
    local n = pl.var("n", f32("N", 2))
    assert.equal(1, count(fold({ n }, op.shape_of(n)), "shape_of"))
  end)

  it("dissolves an If whose condition is constant", function()
    local yes = pl.const(pl.tensor(true, "bool"))
    local out = fold({ x }, pl.ir.If(yes, op.tanh(x), op.exp(x)))
    assert.equal(1, count(out, "tanh"))
    assert.equal(0, count(out, "exp"))
    for node in out.main:nodes() do assert.not_equal("If", node.kind) end
  end)

  it("keeps to the budget, unless fold is all", function()
    local big = op.broadcast_to(floats(1), ints(200, 200))
    local y = pl.var("y", f32(200, 200))
    local mod = module({ y }, big + y)
    local function expands(options)
      local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
      return count(pl.pipeline("FoldConstant" .. options)(mod), "broadcast_to")
    end
    assert.equal(1, expands "")
    assert.equal(1, pl.report()[1].counts["refused: over_budget"])
    assert.equal(0, expands '{fold="all"}')
    local ctx = pl.context { opt_level = 3, config = { fold = "all" } }
    assert.equal(0, count(pl.passes.FoldConstant()(mod, ctx), "broadcast_to"))
    assert.has_error(function() pl.passes.FoldConstant { fold = "some" }(mod) end)
  end)

  it("leaves random values and division by zero alone", function()
    local random = op.random_uniform { shape = { 2, 2 } }
    local out = run("DeadCodeElimination,FoldConstant,EliminateCommonSubexpr",
      module({ x }, op.add(x, op.cast(op.divide(ints(1), ints(0)), { to = 1 }))),
      "not defined")
    assert.equal(1, count(out, "divide"))
    local mod = module({ x }, x + random)
    assert.equal(mod, pl.passes.FoldConstant()(mod))
  end)
end)

describe("EliminateCommonSubexpr", function()
  local x = pl.var("x", f32(2, 2))

  it("makes one of two", function()
    local out = run("EliminateCommonSubexpr", module({ x }, op.tanh(x) + op.tanh(x)))
    assert.equal(1, count(out, "tanh"))
  end)

  it("makes one of a branch's and its surroundings', not of two branches'", function()
    local c = pl.var("c", tensor "bool")
    local out = run("EliminateCommonSubexpr",
      module({ c, x }, pl.ir.If(c, op.tanh(x) + 1, op.tanh(x) + 2)))
    assert.equal(2, count(out, "tanh"))
    out = run("EliminateCommonSubexpr",
      module({ c, x }, op.tanh(x) + pl.ir.If(c, op.tanh(x), x)))
    assert.equal(1, count(out, "tanh"))
  end)

  it("keeps two random nodes apart", function()
    local function random() return op.random_uniform { shape = { 2, 2 } } end
    local mod = module({ x }, x + random() + random())
    assert.equal(mod, pl.passes.EliminateCommonSubexpr()(mod))
  end)

  it("makes one of equal small constants", function()
    local out = run("EliminateCommonSubexpr",
      module({ x }, op.tanh(x + floats(1, 2)) + (x + floats(1, 2))))
    assert.equal(2, count(out, "add"))
  end)
end)

describe("DeadCodeElimination", function()
  local x = pl.var("x", f32(2))
  local y, z = pl.var("y", f32(2)), pl.var("z", f32(2))

  it("drops lets that nothing uses, and what only they used", function()
    local out = run("DeadCodeElimination",
      module({ x }, pl.ir.Let(y, op.tanh(x), pl.ir.Let(z, op.exp(y), x))))
    assert.is_true(is_param(out))
    assert.equal(0, count(out, "tanh"))
  end)

  it("keeps lets that are used", function()
    local mod = module({ x }, pl.ir.Let(y, op.tanh(x), y + x))
    assert.equal(mod, pl.passes.DeadCodeElimination()(mod))
  end)

  it("dissolves a block of which nothing is left", function()
    local out = run("DeadCodeElimination",
      module({ x }, op.exp(pl.ir.Let(y, op.tanh(x), x))))
    for node in out.main:nodes() do assert.not_equal("LetBlock", node.kind) end
    assert.equal(0, count(out, "tanh"))
  end)
end)

describe("A pass over a file that calls operators with too few operands", function()
  local model = require "perilune.zoo.model"
  local types = { "Cast", "Reshape", "Transpose", "Add", "Mul", "Pad", "Slice", "Expand", "Concat",
    "Dropout", "Identity", "Squeeze", "Unsqueeze", "Tile", "Sum", "Split", "Flatten", "Shape" }

  -- What gives a graph another form, attributes or spans changes it, and what it computes not.
  local forms = { ToANormalForm = true, ToBasicBlockNormalForm = true, ToGraphNormalForm = true,
    FuseOps = true, DefuseOps = true, EtaExpand = true, LambdaLift = true, InferType = true,
    ToCPS = true, PartialEvaluate = true, LazyGradientInit = true, PlanDevices = true,
    LabelOps = true, CapturePostDfsIndexInSpans = true, ["relay.optimize"] = true }
  -- Some operators have no gradient; text with such calls cannot be parsed.
  local may_refuse = { Gradient = true, FirstOrderGradient = true, AnnotateSpans = true }

  it("leaves them as they are", function()
    for _, type in ipairs(types) do
      local m = model.new { name = "few" }
      m:input("x", "float32", { 2 })
      m:output(m:node(type, {}, nil, "y"), "float32", { 2 })
      local mod = assert(pl.onnx.parse(m:tostring()))
      for name, pass in pairs(pl.passes) do
        local ok, after = true, mod
        if name ~= "PrintIR" then ok, after = pcall(pass(), mod) end
        assert(ok or may_refuse[name], after)
        if not forms[name] and not may_refuse[name] then assert.equal(mod, after) end
      end
    end
  end)
end)

describe("DeadCodeElimination", function()
  -- As TVM has it: making, reading and writing a reference are effects.
  it("keeps references that nobody reads or writes", function()
    local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(3), float32]) {
  let %r = ref(%x);
  let %y = add(%x, %x);
  %x
}]]
    local out = tostring(pl.passes.DeadCodeElimination()(assert(pl.parse(text))))
    assert.matches("let %%r", out)
    assert.not_matches("let %%y", out)
  end)

  local function lets(body)
    local pass = pl.passes.DeadCodeElimination()
    local out = pass(assert(pl.parse(([[
      #[version = "0.0.5"]
      def @main(%%r: ref(float32), %%x: float32) -> float32 { %s }]]):format(body))))
    assert.equal(out, pass(out))
    return select(2, tostring(out):gsub("let ", "")), out
  end
  local function tick(i, value)
    return ("keep %%%d = ref_write(%%r, %%x); let %%u%d = tanh(%%x); %s"):format(i, i, value)
  end

  it("looks again at lets that stayed for effects in a block that is gone", function()
    assert.equal(0, lets(("let %%y = (%s); %%x"):format(tick(1, "exp(%x)"))))
    assert.equal(0, lets(("let %%y = (%s); %%x"):format(
      tick(1, ("let %%z = (%s); exp(%%x)"):format(tick(2, "exp(%x)"))))))
    local n, out = lets(("let %%k = exp(%%x); let %%y = (%s); %%x"):format(tick(1, "exp(%k)")))
    assert.equal(0, n)
    assert.equal(1, select(2, tostring(out):gsub("ref_write", "")))
  end)

  it("keeps the lets whose effects stay", function()
    assert.equal(1, lets "let %y = ref_write(%r, %x); %x")
    assert.equal(1, lets(("let %%y = if (less(%%x, 0f)) { %s } else { %%x }; %%x"):format(
      tick(1, "exp(%x)"))))
  end)
end)

describe("SimplifyExpr adds constants of integers", function()
  it("before the variable", function()
    local i = pl.var("i", tensor("int64", 2, 3))
    local mod = simplify({ i }, (i + 2) + 3)
    assert.equal(i, mod.main.body.args[1])
  end)
end)
