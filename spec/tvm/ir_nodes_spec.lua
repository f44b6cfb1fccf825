-- Nodes and their fields as TVM has them: the counterparts of its test_ir_nodes.py,
-- and of what its test_ir_op.py says of calls, by name.

local pl = require "perilune"

local ir = pl.ir

describe("types", function()
  it("test_tensor_type: shape and dtype", function()
    local type = ir.TensorType({ 1, 2, 3 }, "float32")
    assert.same({ 1, 2, 3 }, type.shape)
    assert.equal("float32", type.dtype)
    assert.equal("Tensor[(1, 2, 3), float32]", tostring(type))
  end)

  it("test_type_param: name and kind", function()
    local var = ir.TypeVar("name", "ShapeVar")
    assert.same({ "var", "name", "ShapeVar" }, { var.kind, var.name, var.var_kind })
    assert.equal("name", tostring(var))
  end)

  it("test_func_type: arguments, result, variables, relations", function()
    local a = ir.TypeVar "a"
    local relation = ir.TypeRelation("Identity", { a, a }, 1)
    local type = ir.FuncType({ a }, a, { a }, { relation })
    assert.same({ { a }, a, { a }, { relation } },
      { type.params, type.ret_type, type.type_params, type.constraints })
    assert.equal("fn () -> int32", tostring(ir.FuncType({}, pl.type "int32")))
  end)
end)

describe("expressions", function()
  it("test_constant: data", function()
    local data = pl.tensor { 10.0 }
    local const = ir.Constant(data)
    assert.equal(data, const.data)
    assert.is_string(tostring(const))
  end)

  it("test_tuple: fields, none of them too", function()
    assert.same({}, ir.Tuple {}.fields)
    local x = pl.var "x"
    assert.same({ x, x }, ir.Tuple { x, x }.fields)
    assert.equal("() /* ty=() */", tostring(ir.Tuple {}))
  end)

  it("test_local_var, test_global_var: a name", function()
    assert.equal("s", ir.Var "s".name)
    assert.equal("g", ir.GlobalVar "g".name)
    assert.matches("%%s", tostring(ir.Var "s"))
    assert.matches("@g", tostring(ir.GlobalVar "g"))
  end)

  it("test_function: parameters, body, result, type parameters, attributes", function()
    local params = {}
    for i, name in ipairs { "a", "b", "c", "d" } do params[i] = pl.var(name, "int32") end
    local fn = ir.Function(params, params[2], "int32", { Inline = 1 })
    assert.same(params, fn.params)
    assert.equal(params[2], fn.body)
    assert.equal(pl.type "int32", fn.ret_type)
    assert.same({}, fn.type_params)
    assert.equal(1, fn.attrs.Inline)
    assert.matches("fn %(%%a", tostring(fn))
  end)

  it("test_call: callee and arguments", function()
    local f, args = pl.var "f", { pl.var "a", pl.var "b" }
    local call = ir.Call(f, args)
    assert.equal(f, call.callee)
    assert.same(args, call.args)
    assert.equal("", tostring(call.attrs))
    assert.matches("%%f%(%%a, %%b%)", tostring(call))
  end)

  it("test_let: variable, value, body", function()
    local x, value = pl.var "x", pl.const(10)
    local let = ir.Let(x, value, x)
    assert.same({ x, value, x }, { let.var, let.value, let.body })
    assert.matches("let %%x", tostring(let))
  end)

  it("test_if: condition and branches", function()
    local cond, left, right = pl.var "cond", pl.var "left", pl.var "right"
    local choice = ir.If(cond, left, right)
    assert.same({ cond, left, right },
      { choice.cond, choice.true_branch, choice.false_branch })
    assert.matches("if %(%%cond%)", tostring(choice))
  end)

  it("test_op_level1, test_op_level3: a call has its operator and its argument", function()
    local x = pl.var "x"
    for _, name in ipairs { "log", "exp", "sqrt", "rsqrt", "tanh", "ceil", "floor", "trunc",
      "round", "abs", "negative" } do
      local call = pl.op[name](x)
      assert.equal(name, call.op.name)
      assert.equal(x, call.args[1])
    end
  end)
end)
