-- Dataflow patterns: construction and matching. The names of the first two groups are those
-- of TVM's tests (tests/python/relay/test_dataflow_pattern.py).

local pl = require "perilune"
local df = pl.dataflow_pattern
local op = pl.op

local wildcard, is_op, is_var, is_constant = df.wildcard, df.is_op, df.is_var, df.is_constant
local ELEMENTWISE, BROADCAST = 0, 1

local function vars(names)
  local list = {}
  for name in names:gmatch "%S+" do list[#list + 1] = pl.var(name) end
  return table.unpack(list)
end

local function call(name, ...) return is_op(name)(...) end

-- A call of each operator with two operands, nested: conv2d, relu and leaky_relu of it.
local function diamond_pattern()
  local conv = call("nn.conv2d", wildcard(), wildcard())
  return call("add", call("nn.relu", conv), call("nn.leaky_relu", conv))
end

local function elementwise()
  return wildcard():has_attr { TOpPattern = ELEMENTWISE } (wildcard())
end

local function dominator_pattern(path)
  return df.dominates(call("nn.conv2d", wildcard(), wildcard()), path or elementwise(),
    call("add", wildcard(), wildcard()))
end

local function leaky(x) return op.nn.leaky_relu(x, { alpha = 0 }) end

describe("a dataflow pattern is constructed:", function()
  local function has_kinds(list, kind)
    for _, pattern in ipairs(list) do assert.equal(kind, pattern.kind) end
  end

  it("test_expr_pattern", function()
    local ep = df.is_expr(pl.var("x", "Tensor[(4, 1), float32]"))
    assert.equal("ExprPattern", ep.kind)
    assert.equal("Var", ep.expr.kind)
  end)

  it("test_var_pattern", function()
    local v = is_var "x"
    assert.equal("VarPattern", v.kind)
    assert.equal("x", v.name)
  end)

  it("test_constant_pattern", function() assert.equal("ConstantPattern", is_constant().kind) end)

  it("test_wildcard_pattern", function() assert.equal("WildcardPattern", wildcard().kind) end)

  it("test_CallPattern", function()
    local c = call("add", wildcard(), wildcard())
    assert.equal("CallPattern", c.kind)
    assert.equal(2, #c.args)
    has_kinds(c.args, "WildcardPattern")
  end)

  it("test_FunctionPattern", function()
    local a, b = wildcard(), wildcard()
    local f = df.FunctionPattern({ a, b }, call("add", a, b))
    assert.equal("FunctionPattern", f.kind)
    has_kinds(f.params, "WildcardPattern")
    assert.equal("CallPattern", f.body.kind)
    has_kinds(f.body.args, "WildcardPattern")
  end)

  it("test_TuplePattern", function()
    local t = df.is_tuple { wildcard(), wildcard() }
    assert.equal("TuplePattern", t.kind)
    assert.equal(2, #t.fields)
    has_kinds(t.fields, "WildcardPattern")
  end)

  it("test_TupleGetItemPattern", function()
    local get = df.is_tuple_get_item(df.is_tuple { wildcard(), wildcard() }, 1)
    assert.equal("TupleGetItemPattern", get.kind)
    assert.equal("TuplePattern", get.tuple.kind)
    assert.equal(1, get.index)
    has_kinds(get.tuple.fields, "WildcardPattern")
  end)

  it("test_AltPattern", function()
    assert.equal("AltPattern", (is_op "add" | is_op "subtract").kind)
  end)

  it("test_TypePattern", function()
    local type_ = pl.type "Tensor[(10, 10), float32]"
    local pattern = df.has_type(type_)
    assert.equal("TypePattern", pattern.kind)
    assert.equal(type_, pattern.type)
  end)

  it("test_DataTypePattern", function()
    local pattern = df.has_dtype "float16"
    assert.equal("DataTypePattern", pattern.kind)
    assert.equal("float16", pattern.dtype)
  end)

  it("test_ShapePattern", function()
    local pattern = df.has_shape { 10, 10 }
    assert.equal("ShapePattern", pattern.kind)
    assert.same({ 10, 10 }, pattern.shape)
  end)

  it("test_AttrPattern", function()
    local pattern = is_op "add":has_attr { TOpPattern = ELEMENTWISE }
    assert.equal("AttrPattern", pattern.kind)
    assert.equal(ELEMENTWISE, pattern.attrs.TOpPattern)
  end)

  it("test_IfPattern", function()
    local x, y = is_var "x", is_var "y"
    local pattern = df.is_if(call("less", x, y), x, y)
    assert.equal("IfPattern", pattern.kind)
    assert.equal("CallPattern", pattern.cond.kind)
    has_kinds({ pattern.true_branch, pattern.false_branch }, "VarPattern")
  end)

  it("test_LetPattern", function()
    local let = is_var "let"
    local pattern = df.is_let(let, call("less", is_var "x", is_var "y"), let)
    assert.equal("LetPattern", pattern.kind)
    assert.equal("CallPattern", pattern.value.kind)
    has_kinds({ pattern.var, pattern.body }, "VarPattern")
  end)
end)

describe("a dataflow pattern matches:", function()
  it("test_match_op", function() assert.is_true(is_op "add":match(op.add)) end)

  it("test_no_match_op", function() assert.is_false(is_op "add":match(op.subtract)) end)

  it("test_match_op_or", function()
    local either = is_op "add" | is_op "subtract"
    assert.is_true(either:match(op.add))
    assert.is_true(either:match(op.subtract))
    assert.is_false(either:match(op.multiply))
  end)

  it("test_match_call_commutive", function()
    local x, y = vars "x y"
    local add = call("add", is_var "x", is_var "y")
    assert.is_true(add:match(x + y))
    assert.is_true(add:match(y + x))
    local multiply = call("multiply", is_var "x", is_var "y")
    assert.is_true(multiply:match(x * y))
    assert.is_true(multiply:match(y * x))
  end)

  it("test_no_match_call_commutive", function()
    local x, y = vars "x y"
    local subtract = call("subtract", is_var "x", is_var "y")
    assert.is_true(subtract:match(x - y))
    assert.is_false(subtract:match(y - x))
    local divide = call("divide", is_var "x", is_var "y")
    assert.is_true(divide:match(x / y))
    assert.is_false(divide:match(y / x))
  end)

  it("test_match_call", function()
    local x, y = vars "x y"
    assert.is_true(call("add", wildcard(), wildcard()):match(x + y))
    local any = wildcard()(nil)
    assert.is_true(any:match(op.nn.relu(x)))
    assert.is_true(any:match(x + y))
    assert.is_false(any:match(x))
  end)

  it("test_no_match_call", function()
    local x, y = vars "x y"
    assert.is_false(call("add", wildcard(), wildcard()):match(x - y))
  end)

  it("test_match_func", function()
    local x, y = vars "x y"
    local a, b = wildcard(), wildcard()
    assert.is_true(df.FunctionPattern({ a, b }, a + b):match(pl.func({ x, y }, x + y)))
    local any = df.FunctionPattern(nil, wildcard())
    assert.is_true(any:match(pl.func({ x }, x)))
    assert.is_true(any:match(pl.func({ x, y }, x + y)))
  end)

  it("test_no_match_func", function()
    local x, y = vars "x y"
    local a, b = wildcard(), wildcard()
    local pattern = df.FunctionPattern({ a, b }, a + b)
    assert.is_false(pattern:match(pl.func({ x, y }, x - y)))
    assert.is_false(pattern:match(pl.func({ x, y }, x + x)))
    assert.is_false(pattern:match(pl.func({ x }, x + x)))
  end)

  local function if_pattern()
    local x, y = is_var "x", is_var "y"
    return df.is_if(call("less", x, y), x, y)
  end

  it("test_match_if", function()
    local x, y = vars "x y"
    assert.is_true(if_pattern():match(pl.if_(x:less(y), x, y)))
  end)

  it("test_no_match_if", function()
    local x, y = vars "x y"
    assert.is_false(if_pattern():match(pl.if_(x:greater(y), x, y)))
    assert.is_false(if_pattern():match(pl.if_(x:less(y), y, x)))
  end)

  local function let_pattern()
    local let = is_var "let"
    return df.is_let(let, call("less", is_var "x", is_var "y"), let)
  end

  it("test_match_let", function()
    local x, y, let = vars "x y let"
    assert.is_true(let_pattern():match(pl.let(let, x:less(y), let)))
  end)

  it("test_no_match_let", function()
    local x, y, let = vars "x y let"
    assert.is_false(let_pattern():match(pl.let(let, x:greater(y), let)))
    assert.is_false(let_pattern():match(pl.let(let, x:less(y), let * x)))
  end)

  local function with_bias()
    return call("nn.relu", call("nn.conv2d", wildcard(), wildcard()):optional(function(x)
      return call("nn.bias_add", x, wildcard())
    end))
  end

  it("test_match_option", function()
    local x, w, b = vars "x w b"
    local conv = op.nn.conv2d(x, w)
    assert.is_true(with_bias():match(op.nn.relu(conv)))
    assert.is_true(with_bias():match(op.nn.relu(op.nn.bias_add(conv, b))))
    local pattern = call("nn.conv2d", wildcard(), wildcard()):optional(is_op "nn.relu")
      :optional(is_op "tanh")
    assert.is_true(pattern:match(conv))
    assert.is_true(pattern:match(op.nn.relu(conv)))
    assert.is_true(pattern:match(op.tanh(conv)))
    assert.is_true(pattern:match(op.tanh(op.nn.relu(conv))))
    assert.is_false(pattern:match(op.nn.relu(op.tanh(conv))))
  end)

  it("test_no_match_option", function()
    local x, w, b = vars "x w b"
    local conv, dense = op.nn.conv2d(x, w), op.nn.dense(x, w)
    assert.is_false(with_bias():match(op.tanh(conv)))
    assert.is_false(with_bias():match(op.tanh(dense)))
    assert.is_false(with_bias():match(op.nn.relu(op.nn.bias_add(dense, b))))
    assert.is_false(with_bias():match(op.nn.relu(conv + w)))
  end)

  it("test_match_const", function()
    local pattern = call("nn.bias_add", call("nn.conv2d", wildcard(), is_constant()), wildcard())
    local x = pl.var("x", "Tensor[(1, 3, 8, 8), float32]")
    local w = pl.var("w", "Tensor[(3, 3, 3, 3), float32]")
    local b = pl.var("b", "Tensor[(3), float32]")
    local fn = pl.func({ x, w, b }, op.nn.bias_add(op.nn.conv2d(x, w), b))
    assert.is_false(pattern:match(fn.body))
    local ones = pl.tensor.full(1, { 3, 3, 3, 3 }, "float32")
    assert.is_true(pattern:match(pl.bind(fn, { [fn.params[2]] = ones }).body))
  end)

  it("test_match_tuple", function()
    local x, y = vars "x y"
    local add = pl.ir.Op(op.add)
    local pattern = df.is_tuple { is_var "x", wildcard(), is_op "add" }
    local tuple = pl.tuple { x, y, add }
    assert.is_true(pattern:match(tuple))
    assert.is_true(df.is_tuple_get_item(pattern, 1):match(tuple:get(1)))
    for i = 0, 2 do assert.is_true(df.is_tuple_get_item(pattern):match(tuple:get(i))) end
    local concatenate = call("concatenate", df.is_tuple(nil))
    for _, fields in ipairs { { x }, { x, y }, { x, y, x } } do
      assert.is_true(concatenate:match(op.concatenate(pl.tuple(fields), { axis = 0 })))
    end
  end)

  it("test_no_match_tuple", function()
    local x, y = vars "x y"
    local tuple = pl.tuple { x, y, pl.ir.Op(op.add) }
    assert.is_false(df.is_tuple { is_var "x", wildcard(), is_op "add", wildcard() }:match(tuple))
    local pattern = df.is_tuple { is_var "x", wildcard(), is_op "add" }
    assert.is_false(df.is_tuple_get_item(pattern, 1):match(tuple:get(2)))
  end)

  local function typed(dtype) return pl.var("x", ("Tensor[(10, 10), %s]"):format(dtype)) end

  it("test_match_type", function()
    assert.is_true(df.has_type "Tensor[(10, 10), float32]":match(typed "float32"))
  end)

  it("test_no_match_type", function()
    assert.is_false(df.has_type "Tensor[(10, 10), float32]":match(typed "int32"))
  end)

  it("test_match_dtype", function()
    assert.is_true(df.has_dtype "float32":match(typed "float32"))
  end)

  it("test_no_match_dtype", function()
    assert.is_false(df.has_dtype "float32":match(typed "int32"))
  end)

  it("test_match_shape", function()
    assert.is_true(df.has_shape { 10, 10 }:match(typed "float32"))
  end)

  it("test_no_match_shape", function()
    assert.is_false(df.has_shape { 10, 5 }:match(typed "float32"))
    assert.is_false(df.has_shape { 10 }:match(typed "float32"))
  end)

  it("test_match_op_attr", function()
    local x, y = vars "x y"
    local pattern = is_op "add":has_attr { TOpPattern = BROADCAST } (wildcard(), wildcard())
    assert.is_true(pattern:match(x + y))
  end)

  it("test_no_match_op_attr", function()
    local x, y, z = vars "x y z"
    local dense = is_op "nn.dense":has_attr { TOpPattern = ELEMENTWISE } (wildcard(), wildcard())
    assert.is_false(dense:match(op.nn.dense(x, y)))
    local add = is_op "add":has_attr { TOpPattern = BROADCAST } (wildcard(), wildcard())
    assert.is_false(add:match(x - y))
    assert.is_false(add:match(pl.let(z, x + y, z)))
    assert.is_false(is_op "add":has_attr { NoSuchAttribute = 1 }:match(op.add))
    pl.op_attr("add", "spec.dataflow", "text")
    assert.is_true(is_op "add":has_attr { ["spec.dataflow"] = "text" }:match(op.add))
    assert.is_false(is_op "add":has_attr { ["spec.dataflow"] = "other" }:match(op.add))
    pl.op_attr("add", "spec.dataflow", nil)
  end)

  local function composite(name)
    local x, y = vars "x y"
    return pl.func({ x, y }, x + y, { attrs = name })
  end

  it("test_match_func_attr", function()
    assert.is_true(wildcard():has_attr { Composite = "add" }:match(composite { Composite = "add" }))
  end)

  it("test_no_match_func_attr", function()
    local pattern = wildcard():has_attr { Composite = "add" }
    assert.is_false(pattern:match(composite { RandomTest = "add" }))
    assert.is_false(pattern:match(composite { Composite = "conv_bias" }))
  end)

  it("test_match_call_attr", function()
    local x, y, a, b = vars "x y a b"
    local conv = call("nn.conv2d", wildcard(), wildcard())
    assert.is_true(conv:has_attr { data_layout = "NCHW" }:match(op.nn.conv2d(x, y)))
    assert.is_true(conv:has_attr { kernel_size = { 3, 3 } }
      :match(op.nn.conv2d(x, y, { kernel_size = { 3, 3 } })))
    local applied = pl.call(a, { b }, { call_attr = "attr" })
    assert.is_true(wildcard()(wildcard()):has_attr { call_attr = "attr" }:match(applied))
    assert.is_true(wildcard()(wildcard()):has_attr {}:match(applied))
    assert.is_true(wildcard()(wildcard()):has_attr {}:match(pl.call(a, { b })))
  end)

  it("test_no_match_call_attr", function()
    local x, y, a, b = vars "x y a b"
    local conv = call("nn.conv2d", wildcard(), wildcard())
    assert.is_false(conv:has_attr { data_layout = "NHWC" }:match(op.nn.conv2d(x, y)))
    assert.is_false(conv:has_attr { RandomAttr = "NCHW" }:match(op.nn.conv2d(x, y)))
    assert.is_false(conv:has_attr { kernel_size = { 3, 3 } }
      :match(op.nn.conv2d(x, y, { kernel_size = { 2, 1 } })))
    local pattern = wildcard()(wildcard()):has_attr { call_attr = "attr" }
    assert.is_false(pattern:match(pl.call(a, { b })))
    assert.is_false(pattern:match(pl.call(a, { b }, { wrong = "attr" })))
    assert.is_false(pattern:match(pl.call(a, { b }, { call_attr = "wrong" })))
    assert.is_false(pattern:match(pl.call(a, { b }, {})))
  end)

  it("test_match_call_attr_dtype", function()
    local x = vars "x"
    local cast = call("cast", wildcard())
    assert.is_true(cast:has_attr { dtype = "float32" }:match(op.cast(x, { dtype = "float32" })))
    assert.is_false(cast:has_attr { dtype = "float16" }:match(op.cast(x, { dtype = "float32" })))
  end)

  it("test_match_diamond", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    assert.is_true(diamond_pattern():match(op.nn.relu(conv) + leaky(conv)))
  end)

  it("test_no_match_diamond", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    assert.is_false(diamond_pattern():match(leaky(conv)))
    assert.is_false(diamond_pattern():match(op.nn.relu(conv)))
  end)

  it("test_match_fake_diamond", function()
    local x, w, x2, w2 = vars "input1 weight1 input2 weight2"
    local one, two = op.nn.conv2d(x, w), op.nn.conv2d(x2, w2)
    assert.is_false(diamond_pattern():match(op.nn.relu(one) + leaky(two)))
  end)

  it("test_at_most_one_parent", function()
    local parent = call("nn.conv2d", wildcard(), wildcard())
    local pattern = df.dominates(parent, call("nn.relu", wildcard()),
      call("add", wildcard(), wildcard()))
    local x, w = vars "x w"
    local n6 = op.nn.conv2d(x, w)
    local n8 = op.nn.conv2d(op.tanh(n6), w)
    assert.is_false(pattern:match(op.nn.relu(n8) + op.nn.relu(n6)))
    assert.is_false(pattern:match(op.nn.relu(n6) + op.nn.relu(n8)))
  end)

  it("test_match_dominator", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    local twice = op.nn.relu(op.nn.relu(conv))
    assert.is_true(dominator_pattern():match(twice + leaky(conv)))
    assert.is_true(dominator_pattern():match(op.tanh(twice) + leaky(conv)))
    assert.is_true(dominator_pattern():match(twice + op.tanh(twice)))
    local fuzzy = dominator_pattern(elementwise() | call("add", wildcard(), wildcard()))
    local relu = op.nn.relu(conv)
    assert.is_true(fuzzy:match(op.tanh(relu + relu) + leaky(conv)))
  end)

  it("test_not_match_dominator", function()
    local x, w, x2, w2 = vars "input1 weight1 input2 weight2"
    local conv = op.nn.conv2d(x, w)
    local pattern = dominator_pattern()
    assert.is_false(pattern:match(op.nn.relu(conv) + leaky(op.nn.conv2d(x2, w2))))
    local relu = op.nn.relu(conv)
    assert.is_false(pattern:match((relu + relu) + leaky(conv)))
    assert.is_false(pattern:match(op.nn.relu(x) + leaky(conv)))
    local twice = op.nn.relu(op.nn.relu(x))
    assert.is_false(pattern:match(twice + op.tanh(twice)))
  end)

  it("test_not_match_dominator2", function()
    local parent = call("nn.conv2d", wildcard(), wildcard())
    local pattern = df.dominates(parent, call("nn.relu", wildcard()),
      call("add", wildcard(), wildcard()))
    local x, w = vars "x w"
    local n6 = op.nn.conv2d(x, w)
    local n8 = op.nn.conv2d(op.tanh(n6), w)
    assert.is_false(pattern:match(n8 + op.nn.relu(n6)))
  end)

  local function typed_dominator(dtype, shape)
    return df.dominates(call("nn.conv2d", wildcard(), wildcard()), elementwise():has_dtype(dtype),
      call("add", wildcard(), wildcard()):has_shape(shape))
  end

  local function typed_diamond()
    local x = pl.var("input", "Tensor[(1, 3, 12, 12), float32]")
    local w = pl.var("weight", "Tensor[(3, 3, 3, 3), float32]")
    local conv = op.nn.conv2d(x, w)
    return op.nn.relu(op.nn.relu(conv)) + leaky(conv)
  end

  it("test_match_typed_dominator", function()
    assert.is_true(typed_dominator("float32", { 1, 3, 10, 10 }):match(typed_diamond()))
  end)

  it("test_no_match_typed_dominator", function()
    assert.is_false(typed_dominator("float32", { 1, 1, 10, 10 }):match(typed_diamond()))
    assert.is_false(typed_dominator("float16", { 1, 3, 10, 10 }):match(typed_diamond()))
  end)

  it("test_not_fuse_multi_diamond", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    assert.is_false(diamond_pattern():match(op.nn.relu(conv) + leaky(conv) + conv))
  end)
end)

describe("matching", function()
  it("tells what each object matched", function()
    local x, y = vars "x y"
    local a, f = wildcard(), is_op "tanh"
    local pattern = f(a) + a
    local found = pattern:extract_matched_expr(y + op.tanh(y))
    assert.equal("y", found[a][1].name)
    assert.equal(op.tanh, found[f][1])
    assert.equal("Call", found[pattern][1].kind)
    assert.is_nil(pattern:extract_matched_expr(op.tanh(y) + x))
  end)

  it("takes an alternative back when what follows fails", function()
    local x, y = vars "x y"
    local a, b = wildcard(), wildcard()
    local pattern = call("subtract", call("add", a, b), b)
    assert.is_true(pattern:match((x + y) - y))
    assert.is_true(pattern:match((x + y) - x))
    local either = call("subtract", (a | call("tanh", a)), a)
    assert.is_true(either:match(op.tanh(x) - x))
  end)

  it("compares expressions by structure, and variables by identity", function()
    local x, y = vars "x x"
    local pattern = df.is_expr(op.tanh(x) + 1)
    assert.is_true(pattern:match(op.tanh(x) + 1))
    assert.is_false(pattern:match(op.tanh(y) + 1))
    assert.is_false(pattern:match(op.tanh(x) + 2))
    assert.is_true((df.wildcard() + x):match(y + x))
  end)

  it("reads nodes of sealed functions where they are", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %c: bool) {
  let %a = tanh(%x);
  let %b = exp(%a);
  if (%c) { nn.relu(%b) } else { let %d = exp(%b); add(%d, %a) }
}
]])
    local body = mod.main.body
    assert.is_true(df.is_let(is_var "a", call("tanh", wildcard()),
      df.is_let(is_var "b", wildcard(), df.is_if(is_var "c", call("nn.relu", is_var "b"),
        df.is_let(wildcard(), wildcard(), call("add", is_var "d", is_var "a"))))):match(body))
    assert.is_true(df.has_type "Tensor[(2, 3), float32]":match(body))
    assert.is_true(df.is_function({ is_var "x", wildcard() }, df.is_let(wildcard(), wildcard(),
      wildcard())):match(mod.main))
    assert.is_true(call("exp", is_var "a"):match(body.body.value))
  end)

  it("matches a block of lets inside an expression", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { let %v = (let %w = tanh(%x); exp(%w)); add(%v, %x) }
]])
    local inner = df.is_let(is_var "w", wildcard(), call("exp", is_var "w"))
    assert.is_true(df.is_let(is_var "v", inner, wildcard()):match(mod.main.body))
  end)

  it("sees no use outside of the expression", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    local child = op.nn.relu(conv) + leaky(conv)
    local whole = pl.func({ x, w }, pl.tuple { child, conv })
    assert.is_true(dominator_pattern():match(child))
    assert.is_true(dominator_pattern():match(whole.body[1]))
    assert.is_false(df.is_tuple { dominator_pattern(), wildcard() }:match(whole.body))
  end)

  it("looks for dominators in either operand, and below others", function()
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    local diamond = op.nn.relu(conv) + leaky(conv)
    assert.is_true((dominator_pattern() + wildcard()):match(x + diamond))
    assert.is_true(df.dominates(dominator_pattern(), elementwise(), call("multiply", wildcard(),
      wildcard())):match(op.tanh(diamond) * op.exp(diamond)))
  end)

  it("needs a path for a dominator by default, of anything", function()
    local x, w = vars "x w"
    local conv = call("nn.conv2d", wildcard(), wildcard())
    local pattern = call("add", wildcard(), wildcard()):dominates(conv)
    local y = op.nn.conv2d(x, w)
    assert.is_true(pattern:match(op.exp(op.tanh(y)) + y))
    assert.is_false(pattern:match(op.exp(op.tanh(y)) + x))
    assert.is_false(pattern:match(op.exp(y) + 1))
  end)

  it("gives each level of a recursive pattern an instance of its own", function()
    local rest, k = wildcard(), is_constant()
    local pattern = call("add", rest, k)
    rest:redirect_to(pattern | call("tanh", wildcard()))
    local x = vars "x"
    local y = op.tanh(x)
    assert.is_true(pattern:match(((y + 1) + 2) + 3))
    assert.is_false(pattern:match(((op.exp(x) + 1) + 2) + 3))
    assert.equal(3, #pattern:extract_matched_expr(((y + 1) + 2) + 3)[k])
  end)

  it("associates products and quotients as TVM does", function()
    local a, b, c = vars "a b c"
    local quotient = is_var "a" * is_var "b" / is_var "c"
    assert.is_true(quotient:match(a * b / c))
    assert.is_true(quotient:match(a * (b / c)))
    assert.is_true(quotient:match((a / c) * b))
    assert.is_false(quotient:match(a / (b * c)))
    local product = is_var "a" * (is_var "b" / is_var "c")
    assert.is_true(product:match((a * b) / c))
    assert.is_true(product:match((b / c) * a))
  end)

  it("prints as the language of rules does", function()
    local x = wildcard()
    assert.equal("multiply(?p1, sigmoid(?p1))", tostring(x * is_op "sigmoid"(x)))
    assert.equal('If(Var("c"), (?p1@tanh(_) | Constant), ?p1)', tostring(df.is_if(is_var "c",
      (function() x = is_op "tanh"(wildcard()) return x | is_constant() end)(), x)))
    local w = wildcard()
    local loop = is_op "exp"(w)
    w:redirect_to(loop)
    assert.matches("exp", tostring(loop))
  end)
end)
