-- Building and reading expressions from Lua.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

describe("an expression", function()
  it("is typed as it is built", function()
    local x = pl.var("x", "Tensor[(?, 64), float32]")
    local y = pl.op.nn.relu(x * 2 + 1)
    assert.equal("Call", y.kind)
    assert.equal(pl.op.nn.relu, y.op)
    assert.equal("nn.relu", y.op.name)
    assert.equal("float32", y.type.dtype)
    assert.equal(pl.op.add, y[1].op)
    assert.equal(1.0, y[1].args[2].data:to_table())
  end)

  it("makes numbers constants of the other operand's dtype", function()
    for _, dtype in ipairs { "float16", "float64", "int8", "int64" } do
      local x = pl.var("x", { shape = { 2 }, dtype = dtype })
      local y = 3 + x
      assert.equal(dtype, y[1].type.dtype)
      assert.equal(dtype, y.type.dtype)
    end
    local i = pl.var("i", "Tensor[(2), int32]")
    assert.has_error(function() return i * 2.5 end)
  end)

  it("has the operators of Lua", function()
    local x, y = pl.var("x", f32(2)), pl.var("y", f32(2))
    for name, e in pairs {
      add = x + y, subtract = x - y, multiply = x * y, divide = x / y, power = x ^ y,
      negative = -x, less = x:less(y), greater_equal = x:greater_equal(y),
    } do
      assert.equal(name, e.op.name)
    end
    assert.equal("bool", x:less(0.5).type.dtype)
  end)

  it("that is ill-typed raises, naming the script's line", function()
    local x, y = pl.var("x", f32(2, 3)), pl.var("y", f32(4, 5))
    local ok, diag = pcall(function() return x + y end)
    assert.is_false(ok)
    assert.equal("type", diag.code)
    assert.is_truthy(tostring(diag):find("expression_spec.lua:%d+"))
  end)

  it("takes attributes in a last table", function()
    local x = pl.var("x", f32(2, 3))
    local y = pl.op.concatenate({ x, x }, { axis = 1 })
    assert.equal(1, y.attrs.axis)
    assert.equal(2, #y)
    assert.same({ 2, 6 }, y.type.shape)
    assert.same({ 4, 3 }, pl.op.concatenate(x, x, { axis = 0 }).type.shape)
    assert.same({ 3, 2 }, pl.op.transpose(x, { axes = { 1, 0 } }).type.shape)
  end)

  it("with an unknown attribute or operator raises and tells which there are", function()
    local x = pl.var("x", f32(2))
    local ok, diag = pcall(pl.op.concatenate, x, { axes = 1 })
    assert.is_false(ok)
    assert.is_truthy(tostring(diag):find "axis")
    ok, diag = pcall(function() return pl.op.multipy end)
    assert.is_false(ok)
    assert.is_truthy(tostring(diag):find "did you mean 'multiply'")
  end)

  it("finds operators by namespace and by full name", function()
    assert.equal(pl.op.nn.relu, pl.op["nn.relu"])
    local names = {}
    for name, op in pairs(pl.op) do names[name] = op end
    assert.equal(pl.op.add, names.add)
    assert.equal(pl.op.nn.relu, names["nn.relu"])
    assert.is_string(pl.op.add.doc)
  end)

  it("may have tuples and omitted operands", function()
    local x = pl.var("x", f32(2))
    local t = pl.tuple(x, x + 1)
    assert.equal("Tuple", t.kind)
    assert.equal(x, t.fields[1])
    assert.equal("tuple", t.type.kind)
    local first = t:get(0)
    assert.equal("TupleGetItem", first.kind)
    assert.equal(0, first.index)
    assert.equal(t, first.tuple)
    assert.has_error(function() t:get(2) end)
    local clip = pl.op.clip(x, nil, 1.0)
    assert.equal("Absent", clip[2].kind)
  end)
end)

describe("a function", function()
  local x = pl.var("x", f32("N", 4))
  local body = pl.op.nn.relu(x + 1)
  local f = pl.func({ x }, body, nil, { Inline = 1 })

  it("has parameters, a body, attributes and a type", function()
    assert.equal("Function", f.kind)
    assert.equal(1, #f.params)
    assert.equal(x, f.params[1])
    assert.equal(body, f.body)
    assert.equal(1, f.attrs.Inline)
    assert.equal(f32("N", 4), f.ret_type)
    assert.equal("fn (Tensor[(N, 4), float32]) -> Tensor[(N, 4), float32]", tostring(f.type))
  end)

  it("gives its nodes in the order of evaluation", function()
    local kinds = {}
    for node in f:nodes() do kinds[#kinds + 1] = node.op and node.op.name or node.kind end
    assert.equal("Var", kinds[1])
    assert.equal("nn.relu", kinds[#kinds])
    assert.equal(4, #kinds)
  end)

  it("prints as Relay text", function()
    local text = tostring(f)
    assert.is_truthy(text:find("fn (%x: Tensor[(N, 4), float32]", 1, true))
    assert.is_truthy(text:find("nn.relu(", 1, true))
  end)

  it("gives changed copies", function()
    local g = f:with { body = body * 2 }
    assert.equal(pl.op.multiply, g.body.op)
    assert.equal(1, g.attrs.Inline)
    local call = body:with { args = { x } }
    assert.equal(x, call.args[1])
    local x2 = pl.op.concatenate({ x, x }, { axis = 0 })
    assert.equal(1, x2:with({ attrs = { axis = 1 } }).attrs.axis)
    assert.has_error(function() f:with { bdoy = x } end)
  end)

  it("refuses what is no variable as a parameter", function()
    assert.has_error(function() pl.func({ body }, body) end)
  end)

  it("may hold branches", function()
    local c = pl.var("c", "bool")
    local g = pl.func({ c, x }, pl.if_(c, x + 1, x - 1))
    local branch = g.body
    assert.equal("If", branch.kind)
    assert.equal(c, branch.cond)
    assert.equal(pl.op.add, branch.true_branch.op)
    assert.equal(pl.op.subtract, branch.false_branch.op)
    local sealed = pl.module({ main = g }).functions.main
    assert.equal(pl.op.subtract, sealed.body.false_branch.op)
    assert(pl.verify(g))
  end)

  it("may hold lets, which look as in Relay", function()
    local a, b = pl.var "a", pl.var "b"
    local g = pl.func({ x }, pl.let(a, x + 1, pl.let(b, a * 2, b - a)))
    local main = pl.module({ main = g }).functions.main
    local let = main.body
    assert.equal("Let", let.kind)
    assert.equal("a", let.var.name)
    assert.equal(pl.op.add, let.value.op)
    assert.equal("Let", let.body.kind)
    assert.equal(pl.op.subtract, let.body.body.op)
    -- a let that is taken over stands for the rest of its block
    local again = pl.func(main.params, main.body)
    assert.is_true(pl.equal(g, again))
    assert(pl.verify(again))
  end)

  it("may be nested, closing over variables", function()
    local y = pl.var("y", f32("N", 4))
    local inner = pl.func({ y }, y + x)
    local outer = pl.func({ x }, inner(x * 2))
    assert(pl.verify(outer))
    assert.equal("Function", outer.body.callee.kind)
    assert.equal(f32("N", 4), outer.ret_type)
  end)
end)

describe("equality", function()
  local function make(name)
    local x = pl.var(name, f32(2))
    return pl.func({ x }, x + 1)
  end

  it("of functions is structural and ignores names", function()
    assert.is_true(pl.equal(make "x", make "y"))
    assert.equal(pl.hash(make "x"), pl.hash(make "y"))
    local x = pl.var("x", f32(2))
    assert.is_false(pl.equal(make "x", pl.func({ x }, x + 2)))
  end)

  it("tells a shared expression from a repeated one", function()
    local function two(share)
      local x = pl.var("x", f32(2))
      local a = pl.op.tanh(x)
      return pl.func({ x }, a + (share and a or pl.op.tanh(x)))
    end
    assert.is_true(pl.equal(two(true), two(true)))
    assert.is_false(pl.equal(two(true), two(false)))
  end)

  it("of modules looks at all functions", function()
    local a = pl.module { main = make "x", other = make "y" }
    local b = pl.module { main = make "u", other = make "v" }
    assert.is_true(pl.equal(a, b))
    assert.is_false(pl.equal(a, b:without "other"))
    assert.is_false(a == b)
  end)
end)

describe("a module", function()
  local x = pl.var("x", f32(2))
  local f, g = pl.func({ x }, x + 1), pl.func({ x }, x * 2)
  local mod = pl.module { main = f, aux = g }

  it("is a map of functions that never changes", function()
    assert.equal(2, #mod)
    assert.same({ "aux", "main" }, mod.names)
    assert.equal(pl.op.add, mod.main.body.op)
    assert.equal(mod.functions.main, mod.main)
    assert.is_nil(mod.functions.nothing)
    local seen = {}
    for name, fn in pairs(mod) do seen[#seen + 1] = name .. ":" .. fn.kind end
    assert.same({ "aux:Function", "main:Function" }, seen)
    assert.has_error(function() mod.main = g end)
  end)

  it("gives changed copies", function()
    local more = mod:with { extra = f }
    assert.equal(3, #more)
    assert.equal(2, #mod)
    assert.equal(1, #mod:without "aux")
    assert.equal("yes", mod:with_attrs({ tested = "yes" }).attrs.tested)
    assert.equal(mod, mod:with { main = mod.main })
    assert.has_error(function() mod:with { main = x + 1 } end)
    assert.has_error(function() mod:with { main = 7 } end)
  end)

  it("prints as Relay text", function()
    assert.is_truthy(tostring(mod):find "def @main%(%%x%d*: Tensor%[%(2%), float32%]")
  end)

  it("is verified", function() assert.is_true(pl.verify(mod)) end)

  it("calls functions by name", function()
    local m = pl.module { double = g, main = pl.func({ x }, pl.global("double", g.type)(x) + 1) }
    assert(pl.verify(m))
    assert.same({ 3, 5 }, pl.eval(m, { 1, 2 }):to_table())
  end)

  it("closes, and says so afterwards", function()
    local m = pl.module { main = f }
    m:close()
    m:close()
    assert.equal("Module (closed)", tostring(m))
    assert.has_error(function() return #m end)
    assert.has_error(function() return m.functions end)
  end)
end)

describe("pl.eval", function()
  it("runs a function on tables, numbers and tensors", function()
    local x, y = pl.var("x", f32(2)), pl.var("y", "float32")
    local f = pl.func({ x, y }, pl.op.nn.relu(x * y - 1))
    assert.same({ 0, 3 }, pl.eval(f, { -1, 2 }, 2):to_table())
    assert.same({ 1, 5 }, pl.eval(f, pl.tensor({ 1, 3 }, "float32"), pl.tensor(2, "float32"))
      :to_table())
  end)

  it("gives a tuple's fields one by one", function()
    local x = pl.var("x", f32(2))
    local a, b = pl.eval(pl.func({ x }, pl.tuple(x + 1, x * 2)), { 1, 2 })
    assert.same({ 2, 3 }, a:to_table())
    assert.same({ 2, 4 }, b:to_table())
  end)

  it("runs an expression without variables", function()
    assert.equal(5.0, pl.eval(pl.const(2.0) + 3.0):to_table())
  end)

  it("refuses what does not fit", function()
    local x = pl.var("x", f32(2))
    local f = pl.func({ x }, x + 1)
    assert.has_error(function() pl.eval(f) end)
    assert.has_error(function() pl.eval(f, { 1, 2, 3 }) end)
    assert.has_error(function() pl.eval(x + 1) end)
  end)
end)

describe("pl.check", function()
  local x = pl.var("x", "Tensor[(N, 3), float32]")
  local f = pl.func({ x }, (x + 1) * 2)

  it("finds functions that compute the same", function()
    assert(pl.check(f, pl.func({ x }, 2 * x + 2), { rounds = 3 }))
    assert(pl.check(pl.module { main = f }, pl.module { main = f }))
  end)

  it("tells where they differ", function()
    local ok, diag = pl.check(f, pl.func({ x }, (x + 1) * 2.01))
    assert.is_nil(ok)
    assert.is_truthy(diag.message:find("result 1 differs", 1, true))
    ok, diag = pl.check(f, pl.func({ x }, pl.tuple(x, x)))
    assert.is_nil(ok)
    assert.is_truthy(diag.message:find("one gives 1 results", 1, true))
  end)
end)

describe("a builder", function()
  it("builds scope by scope", function()
    local b = pl.builder()
    local scope = b:open()
    local x = b:param("x", "Tensor[(2), float32]")
    local c = b:param("c", "bool")
    local yes = b:open()
    b:finish(yes, b:run(pl.op.tanh, x))
    local no = b:open()
    b:finish(no, b:run(function() return x + 1 end))
    b:finish(scope, b:if_(c, yes, no))
    local fn = b:seal(b:func(scope))
    assert(fn:verify())
    local u, d = pl.var("x", "Tensor[(2), float32]"), pl.var("c", "bool")
    assert.is_true(pl.equal(fn, pl.func({ u, d }, pl.if_(d, pl.op.tanh(u), u + 1))))
    assert.has_error(function() return x.kind end)
    assert.has_error(function() b:open() end)
  end)

  it("refuses what is out of order", function()
    local b = pl.builder()
    local scope = b:open()
    local x = b:param("x", "Tensor[(2), float32]")
    b:open()
    assert.has_error(function() b:finish(scope, x) end)
    assert.has_error(function() b:func(scope) end)
    assert.has_error(function() b:func(99) end)
    assert.has_error(function() b:run(error, "x") end)
  end)
end)
