-- pl.ops: operators that scripts register are typed, printed and parsed, computed and folded
-- as those of the library are.

local pl = require "perilune"

local count = 0

-- Registers an operator under a new name and returns it.
local function register(spec)
  count = count + 1
  local name = "spec_ops.op" .. count
  spec.args = spec.args or { "x" }
  pl.ops[name] = spec
  return pl.op[name], name
end

local function x_of(text) return pl.var("x", text or "Tensor[(2, 3), float32]") end

local function fails(wanted, f, ...)
  local ok, why = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(why):find(wanted, 1, true), tostring(why))
  return tostring(why)
end

-- Doubles each element of a matrix, in Lua.
local function double(inputs)
  local rows = inputs[1]:to_table()
  for _, row in ipairs(rows) do
    for i, element in ipairs(row) do row[i] = 2 * element end
  end
  return rows
end

describe("registering an operator", function()
  it("makes it one of pl.op and pl.ops", function()
    local op, name = register { doc = "A sentence.", attrs = { axis = -1 } }
    assert.equal(op, pl.ops[name])
    assert.equal(op, pl.op.spec_ops[name:match "%w+$"])
    assert.equal("A sentence.", op.doc)
    assert.equal("axis:int=-1", op.attrs)
    assert.is_true(op.registered)
    assert.is_false(pl.op.add.registered)
    local listed
    for other, one in pairs(pl.ops) do
      if other == name then listed = one end
    end
    assert.equal(op, listed)
  end)

  it("says what its operands are", function()
    local op = register { args = { "x", "bias?", "more...?" } }
    assert.same({
      { name = "x", optional = false, variadic = false },
      { name = "bias", optional = true, variadic = false },
      { name = "more", optional = true, variadic = true },
    }, op.args)
    assert.equal(1, op.min_args)
    assert.is_nil(op.max_args)
  end)

  it("refuses names that are taken or none", function()
    local function assign(name) pl.ops[name] = { args = { "x" } } end
    local _, name = register {}
    fails(("operator '%s': it has been registered already"):format(name), assign, name)
    fails("operator 'add': the library has one of that name", assign, "add")
    fails("operator 'spec_ops': there are operators 'spec_ops...'", assign, "spec_ops")
    fails(("'%s' is an operator"):format(name), assign, name .. ".more")
    fails("a name is words", assign, "spec ops")
    fails("said by the field onnx", assign, "com.example::Op")
    fails("a word of Relay text", assign, "let")
    assert.is_nil(pl.ops["spec ops"])
  end)

  it("refuses to remove one, and says why", function()
    local op, name = register {}
    fails(("operator '%s' cannot be removed"):format(name), function() pl.ops[name] = nil end)
    assert.equal(op, pl.ops[name])
    pl.ops["spec_ops.never_was"] = nil
  end)

  it("refuses descriptions that say nothing sensible", function()
    for wanted, spec in pairs {
      ["has no field 'infr'; did you mean 'infer'?"] = { infr = "same" },
      ["'x' occurs twice"] = { args = { "x", "x" } },
      ["operand 'xs' is variadic and not the last one"] = { args = { "xs...", "y" } },
      ["'1x' is no name of an operand"] = { args = { "1x" } },
      ["it has no operand y"] = { infer = { same_as = "y" } },
      ["infer is a function"] = { infer = "like" },
      ["there is no trait 'comutative'; did you mean 'commutative'?"] =
        { traits = { "comutative" } },
      ["takes two operands"] = { traits = { "commutative" } },
      ["exclude each other"] = { traits = { "elementwise", "reduce" } },
      ["neither stateful nor random"] = { traits = { "pure", "stateful" } },
      ["there is no kind 'integer'"] = { attrs = { axis = { kind = "integer" } } },
      ["is required and has a default"] =
        { attrs = { axis = { default = 1, required = true } } },
      ["the kind of an empty list must be said"] = { attrs = { axes = {} } },
      ["not of its kind, int"] = { attrs = { axis = { kind = "int", default = "a" } } },
      ["results is a number from 1 on"] = { results = 0 },
    } do
      local why = fails(wanted, register, spec)
      assert.truthy(why:find("operator 'spec_ops.op", 1, true), why)
    end
  end)
end)

describe("a call of a registered operator", function()
  it("is typed by a function, which gets types and attributes", function()
    local seen
    local op = register { args = { "x", "y?" }, attrs = { axis = -1, mode = "linear" },
      infer = function(types, attrs)
        seen = { types.x, types[1], types.y or false, attrs.axis, attrs.mode }
        return "Tensor[(7), int8]"
      end }
    local call = op(x_of(), { axis = 0 })
    assert.equal("Tensor[(7), int8]", tostring(call.type))
    local type = pl.type "Tensor[(2, 3), float32]"
    assert.same({ type, type, false, 0, "linear" }, seen)
  end)

  it("is typed like an operand, or by broadcasting", function()
    local y = pl.var("y", "Tensor[(4, 1, 3), float32]")
    local args = { "x", "y" }
    local same, second = register { args = args, infer = "same" },
      register { args = args, infer = { same_as = "y" } }
    local wide = register { args = args, traits = { "broadcast" } }
    local elementwise = register { traits = { "elementwise" } }
    assert.equal("Tensor[(2, 3), float32]", tostring(same(x_of(), y).type))
    assert.equal(y.type, second(x_of(), y).type)
    assert.equal("Tensor[(4, 2, 3), float32]", tostring(wide(x_of(), y).type))
    assert.equal(x_of().type, elementwise(x_of()).type)
    fails("operand 1", wide, x_of(), pl.var("z", "Tensor[(5), float32]"))
  end)

  it("has several results", function()
    local op = register { results = { "values", "mask" },
      infer = function(types) return { types.x, "Tensor[(2), bool]" } end }
    local call = op(x_of())
    assert.equal("(Tensor[(2, 3), float32], Tensor[(2), bool])", tostring(call.type))
    assert.equal("Tensor[(2), bool]", tostring(pl.ir.TupleGetItem(call, 1).type))
  end)

  it("has optional and variadic operands", function()
    local op = register { args = { "x", "y?", "more...?" },
      infer = function(types) return ("Tensor[(%d), int8]"):format(#types) end }
    assert.equal("Tensor[(1), int8]", tostring(op(x_of()).type))
    assert.equal("Tensor[(4), int8]", tostring(op(x_of(), x_of(), x_of(), x_of()).type))
    local required = register { args = { "x", "y", "z?" } }
    fails("operand 1: 'y' is missing", required, x_of(), nil, x_of())
    fails("takes at least 2 arguments, got 1", required, x_of())
    fails("takes at most 3 arguments, got 4", required, x_of(), x_of(), x_of(), x_of())
  end)

  it("has the attributes of its schema", function()
    local op, name = register { infer = "same",
      attrs = { axis = -1, scale = 1.5, pads = { 0, 1 },
        tag = { kind = "string", required = true } } }
    fails(("'%s' has no attribute 'axes'; did you mean 'axis'?"):format(name),
      op, x_of(), { axes = 1, tag = "" })
    fails(("'%s': attribute 'axis' takes an integer"):format(name),
      op, x_of(), { axis = "a", tag = "" })
    fails(("'%s': attribute 'tag' is missing"):format(name), op, x_of())
    local call = op(x_of(), { tag = "t", scale = 2, pads = { 3 } })
    assert.equal(2.0, call.attrs.scale)
    assert.same({ 3 }, call.attrs.pads)
    local x = x_of() -- a default is the same whether it is said or not
    assert.is_true(pl.equal(op(x, { tag = "t", axis = -1, scale = 1.5, pads = { 0, 1 } }),
      op(x, { tag = "t" })))
  end)

  it("is not typed while a rank or dtype is unknown", function()
    local op = register { infer = function() error "called" end }
    assert.equal("_", tostring(op(pl.var "u").type))
    assert.equal("_", tostring(op(x_of "Tensor[*, float32]").type))
  end)

  it("is typed again when an operand changes", function()
    local op = register { infer = function(types) return types.x end }
    local x = x_of()
    local changed = pl.bind(op(x), { [x] = pl.var("y", "Tensor[(5), int8]") })
    assert.equal("Tensor[(5), int8]", tostring(changed.type))
  end)
end)

describe("the function that types calls", function()
  local function refuses(wanted, infer)
    local op, name = register { infer = infer }
    local why = fails(wanted, op, x_of())
    assert.truthy(why:find(name, 1, true), why)
    assert.truthy(why:find("registered_operators_spec.lua:%d+"), why)
    return why
  end

  it("is named when it raises, yields or returns something else", function()
    refuses("boom", function() error "boom" end)
    refuses("attempt to yield", function() coroutine.yield() end)
    refuses("a type, or the text of one, expected, got a number", function() return 3 end)
    refuses("expected a dim", function() return "Tensor[(" end)
    refuses("1 result expected, got 2", function(types) return types.x, types.x end)
    refuses("not an image", function() return nil, "not an image" end)
  end)

  it("may build, run passes, register, and collect garbage", function()
    local op = register { infer = function(types)
      local y = pl.var("y", types.x)
      local module = pl.module { main = pl.func({ y }, pl.op.add(y, pl.const(0.0))) }
      local simple = pl.passes.SimplifyExpr()(module)
      register {}
      for _ = 1, 50 do pl.op.abs(y) end
      collectgarbage()
      return simple.main.body.type
    end }
    local x = x_of()
    local call = op(op(x) + op(x))
    assert.equal(x.type, call.type)
    assert.is_true(pl.equal(call, op(op(x) + op(x))))
  end)

  it("cannot call itself without end", function()
    local op
    op = register { infer = function(types) return op(pl.var("y", types.x)).type end }
    fails("other functions of operators", op, x_of())
  end)

  it("cannot seal the builder that asks it", function()
    local b = pl.builder()
    local scope = b:open()
    local x = b:param("x", "Tensor[(2), float32]")
    local op = register { infer = function(types)
      b:seal(x)
      return types.x
    end }
    fails("the builder is running", b.run, b, function() return op(x) end)
    b:finish(scope, b:run(function() return x + x end))
    assert.equal("Function", b:seal(b:func(scope)).kind)
  end)
end)

describe("the text of a registered operator", function()
  it("is read as it was printed", function()
    local op, name = register { infer = "same", results = 2,
      attrs = { axis = 1, scale = 1.0, names = { kind = "strings" }, flag = false } }
    local x = x_of()
    local call = op(x, { axis = 2, scale = 3, names = { "a", "b" }, flag = true })
    local module = pl.module { main = pl.func({ x }, call) }
    local text = tostring(module)
    assert.truthy(text:find(name .. "(%x, axis=2, ", 1, true), text)
    assert.is_true(pl.equal(module, pl.parse(text)))
    assert.is_nil(text:find "n_results")
  end)

  it("has attributes of the schema's kinds", function()
    local _, name = register { infer = "same", attrs = { scale = 1.0 } }
    local text = '#[version = "0.0.5"]\ndef @main(%%x: Tensor[(2), float32]) { %s(%%x, %s) }'
    local module = assert(pl.parse(text:format(name, "scale=3")))
    assert.equal("float", math.type(module.main.body.attrs.scale))
    local _, why = pl.parse(text:format(name, "scal=3"))
    assert.truthy(tostring(why):find("has no attribute 'scal'", 1, true), tostring(why))
    _, why = pl.parse(text:format(name, 'scale="a"'))
    assert.truthy(tostring(why):find("attribute 'scale' takes a number", 1, true), tostring(why))
  end)
end)

describe("a registered operator on values", function()
  local pair = "(Tensor[(2), float32], Tensor[(2), float32])"
  local one, two = pl.tensor({ 1, 2 }, "float32"), pl.tensor({ 3, 5 }, "float32")

  local function evaluate(op, text, ...)
    local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. text:gsub("OP", op)))
    return pl.eval(mod, ...)
  end

  local function swap(types)
    return ("(%s, %s)"):format(types.x.parts[2], types.x.parts[1])
  end

  it("takes and gives tuples", function()
    local seen
    local op, name = register { traits = { "values" }, infer = swap,
      eval = function(inputs)
        seen = inputs.x
        return { inputs.x[2], inputs.x[1] }
      end }
    local x = pl.var("x", "Tensor[(2), float32]")
    local call = op(pl.tuple { x, pl.const(two) })
    assert.equal(pair, tostring(call.type))
    local first, second = pl.eval(pl.func({ x }, call), one)
    assert.same({ 3, 5 }, first:to_table())
    assert.same({ 1, 2 }, second:to_table())
    assert.equal(2, #seen)
    local sum = evaluate(name, [[
def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
  %0 = (%x, %y);
  %1 = OP(%0);
  subtract(%1.0, %1.1)
}]], one, two)
    assert.same({ 2, 3 }, sum:to_table())
  end)

  it("takes and gives sequences", function()
    local op = register { args = { "x", "n" }, traits = { values = true },
      infer = function(types) return types.x end,
      eval = function(inputs)
        local out = {}
        for i = #inputs.x, 1, -1 do out[#out + 1] = inputs.x[i] end
        for _ = 1, inputs.n:to_table() do out[#out + 1] = one end
        return out
      end }
    local x = pl.var("x", pl.type "seq(Tensor[(2), float32])")
    local n = pl.var("n", pl.type "int64")
    local out = pl.eval(pl.func({ x, n }, op(x, n)), { one, two }, 1)
    assert.same({ { 3, 5 }, { 1, 2 }, { 1, 2 } },
      { out[1]:to_table(), out[2]:to_table(), out[3]:to_table() })
  end)

  it("is checked for what it gives", function()
    local given
    local op = register { traits = { "values" }, infer = function() return pair end,
      eval = function() return given end }
    local x = pl.var("x", "Tensor[(2), float32]")
    local fn = pl.func({ x }, op(pl.tuple { x, x }))
    given = { one }
    fails("a table of 2 values expected", pl.eval, fn, one)
    given = 1
    fails("a table of 2 values expected, got a number", pl.eval, fn, one)
    given = { one, pl.tensor({ 1, 2, 3 }, "float32") }
    fails("is not of type (Tensor[(2), float32], Tensor[(2), float32])", pl.eval, fn, one)
    given = { one, two }
    assert.same({ 3, 5 }, select(2, pl.eval(fn, one)):to_table())
  end)

  it("is not folded, and others take no tuples", function()
    local op = register { traits = { "values" }, infer = function() return pair end,
      eval = function(inputs) return inputs.x end }
    local mod = pl.module { main = pl.func({}, op(pl.tuple { pl.const(one), pl.const(two) })) }
    assert.equal(mod, pl.passes.FoldConstant()(mod))
    assert.same({ 1, 2 }, pl.eval(mod):to_table())
    local plain = register { infer = "same", eval = double }
    fails("expected a tensor", plain, pl.tuple { pl.const(one) })
    fails("has one result, which may be a tuple", register,
      { traits = { "values" }, results = 2, eval = double })
  end)
end)

describe("computing a registered operator", function()
  local data = pl.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }

  local function constant_module(op, ...)
    return pl.module { main = pl.func({}, op(pl.const(data), ...)) }
  end

  it("calls its function", function()
    local op = register { infer = "same", eval = double }
    local x = x_of "Tensor[(2, 2), float32]"
    local result = pl.eval(pl.module { main = pl.func({ x }, op(x)) }, data)
    assert.same({ { 2, 4 }, { 6, 8 } }, result:to_table())
    assert.equal("float32", result.dtype)
  end)

  it("gives several results, and fewer when fewer are asked for", function()
    local op = register { results = 2, infer = function(types) return types.x, "int64" end,
      eval = function(inputs) return inputs.x, 7 end }
    local x = x_of "Tensor[(2, 2), float32]"
    local both = pl.func({ x }, op(x))
    local one, other = pl.eval(pl.module { main = both }, data)
    assert.equal(7, other:to_table())
    assert.same(data:to_table(), one:to_table())
    local first = pl.func({ x }, op(x, { n_results = 0 }))
    assert.same(data:to_table(), pl.eval(pl.module { main = first }, data):to_table())
  end)

  it("is done by FoldConstant if it is pure", function()
    local pure = register { infer = "same", eval = double }
    local stateful = register { infer = "same", eval = double, traits = { "stateful" } }
    local random = register { infer = "same", eval = double, traits = { "random" } }
    local fold = pl.passes.FoldConstant()
    assert.equal("Constant", fold(constant_module(pure)).main.body.kind)
    assert.equal("Call", fold(constant_module(stateful)).main.body.kind)
    assert.equal("Call", fold(constant_module(random)).main.body.kind)
  end)

  it("is refused by what it cannot compute", function()
    local op = register { infer = "same",
      eval = function() return nil, "no such mode" end }
    fails("no such mode", pl.eval, constant_module(op))
    assert.equal("Call", pl.passes.FoldConstant()(constant_module(op)).main.body.kind)
    local never = register { infer = "same" }
    assert.is_false(never.has_kernel)
    fails("cannot be evaluated", pl.eval, constant_module(never))
  end)

  it("keeps to the budget of FoldConstant", function()
    local op = register { infer = function() return "Tensor[(1000, 1000), float32]" end,
      eval = function() return pl.tensor.random({ 1000, 1000 }, "float32") end }
    local module = constant_module(op)
    assert.equal("Call", pl.passes.FoldConstant()(module).main.body.kind)
    local all = pl.passes.FoldConstant { fold = "all" }
    assert.equal("Constant", all(module).main.body.kind)
  end)

  it("reports what is not the call's type, and changes nothing", function()
    for wanted, eval in pairs {
      ["boom"] = function() error "boom" end,
      ["attempt to yield"] = function() coroutine.yield() end,
      ["result 1: a tensor expected, got a string"] = function() return "a" end,
      ["computed a Tensor[(1), float32], but the call has type Tensor[(2, 2), float32]"] =
        function() return { 1.0 } end,
      ["computed a Tensor[(2, 2), int64]"] =
        function() return pl.tensor { { 1, 2 }, { 3, 4 } } end,
      ["1 result expected, got 0"] = function() end,
      ["1 result expected, got 2"] = function(inputs) return inputs.x, inputs.x end,
    } do
      local op, name = register { infer = "same", eval = eval }
      local module = constant_module(op)
      local before = tostring(module)
      local why = fails(wanted, pl.eval, module)
      assert.truthy(why:find(name, 1, true), why)
      why = fails(wanted, pl.passes.FoldConstant(), module)
      assert.truthy(why:find(name, 1, true), why)
      assert.equal(before, tostring(module))
    end
  end)

  it("may call back into the library", function()
    local op = register { infer = "same", eval = function(inputs)
      collectgarbage()
      local y = pl.var("y", "Tensor[(2, 2), float32]")
      return pl.eval(pl.func({ y }, y * pl.const(3.0)), inputs.x)
    end }
    assert.same({ { 3, 6 }, { 9, 12 } }, pl.eval(constant_module(op)):to_table())
  end)
end)
