-- LowerTE: calls of fused functions become calls of PrimFuncs, which the evaluator runs.

local pl = require "perilune"

local function parse(body)
  return assert(pl.parse("#[version = \"0.0.5\"]\n" .. body))
end

local fuse = pl.sequential { "InferType", "FuseOps" }

local function lower(mod, options) return pl.passes.LowerTE(options)(fuse(mod)) end

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(text, tostring(err), 1, true)
end

local function count(mod)
  local functions, calls = 0, 0
  for _, fn in pairs(mod) do
    if fn.kind == "PrimFunc" then functions = functions + 1 end
  end
  for node in mod.functions.main:nodes() do
    if node.kind == "Call" and node.op and node.op.name == "call_lowered" then
      calls = calls + 1
    end
  end
  return functions, calls
end

describe("LowerTE", function()
  it("prints calls and loops", function()
    local mod = lower(parse [[
def @main(%x: Tensor[(2, 8), float32], %b: Tensor[(8), float32]) {
  nn.relu(add(%x, %b))
}]])
    assert.equal([[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 8), float32] /* ty=Tensor[(2, 8), float32] */, ]]
      .. [[%b: Tensor[(8), float32] /* ty=Tensor[(8), float32] */) -> Tensor[(2, 8), float32] {
  %0 = (%x, %b) /* ty=(Tensor[(2, 8), float32], Tensor[(8), float32]) */;
  call_lowered(@tvmgen_default_fused_add_nn_relu, %0) /* ty=Tensor[(2, 8), float32] */
}

# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def tvmgen_default_fused_add_nn_relu(p0: T.Buffer((2, 8), "float32"), ]]
      .. [[p1: T.Buffer((8,), "float32"), T_relu: T.Buffer((2, 8), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i0_i1_outer_fused in T.parallel(2):
            cse_var_1: T.int32 = i0_i1_outer_fused * 8
            T_relu_1 = T.Buffer((16,), data=T_relu.data)
            p0_1 = T.Buffer((16,), data=p0.data)
            T_relu_1[cse_var_1:cse_var_1 + 8] = T.Select(]]
      .. [[p0_1[cse_var_1:cse_var_1 + 8] + p1[0:8] < T.Broadcast(T.float32(0), 8), ]]
      .. [[T.Broadcast(T.float32(0), 8), p0_1[cse_var_1:cse_var_1 + 8] + p1[0:8])
]], (tostring(mod):gsub("%s*$", "\n")))
    assert(pl.verify(mod))
  end)

  it("lowers equal functions once", function()
    local mod = lower(parse [[
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.softmax(%x);
  %1 = nn.softmax(%0);
  %2 = nn.softmax(reshape(%1, newshape=[2, 2]));
  (nn.softmax(%1), %2)
}]])
    local functions, calls = count(mod)
    assert.equal(3, functions) -- of 4 elements, of 2x2 elements, the reshape
    assert.equal(5, calls)
  end)

  it("makes constants of a body operands of the call, scalars part of the loops", function()
    local x = pl.var("x", "Tensor[(3), float32]")
    local mod = pl.module { main = pl.func({ x }, pl.op.add(pl.op.multiply(x, 2.0),
      pl.const(pl.tensor({ 1, 2, 3 }, "float32")))) }
    local lowered = lower(mod)
    assert.same({ 3, 6, 9 }, pl.eval(lowered, { 1, 2, 3 }):to_table())
    local functions, calls = count(lowered)
    assert.equal(1, functions)
    assert.equal(1, calls)
  end)

  it("knows shapes and bounds that are constant operands", function()
    local x = pl.var("x", "Tensor[(2, 6), float32]")
    local function list(...) return pl.const(pl.tensor({ ... }, "int64")) end
    local mod = pl.module { main = pl.func({ x }, pl.op.strided_slice(
      pl.op.reshape(x, list(3, 4)), list(1), list(3), list(0), list(1))) }
    local lowered = lower(mod)
    local main = tostring(lowered.functions.main)
    assert.is_nil(main:find("Constant", 1, true))
    local input = {}
    for i = 1, 12 do input[i] = i end
    local tensor = pl.eval(pl.op.reshape(pl.const(pl.tensor(input, "float32")),
      { newshape = { 2, 6 } }))
    assert.same({ { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, pl.eval(lowered, tensor):to_table())
  end)

  it("passes of tuples the fields that are read", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 6), float32]) {
  %0 = split(%x, indices_or_sections=3, axis=1);
  %1 = nn.softmax(%0.1);
  (%1, add(%0.0, %0.2), %0)
}]]
    local lowered = lower(mod)
    local input = { { 1, 2, 3, 4, 5, 6 }, { 6, 5, 4, 3, 2, 1 } }
    local expected, got = { pl.eval(mod, input) }, { pl.eval(lowered, input) }
    assert.equal(#expected, #got)
    assert.is_true((got[1]:compare(expected[1], { atol = 1e-6 })))
    assert.is_true(got[2]:equal(expected[2]))
  end)

  it("returns parameters and values that stand twice as buffers of their own", function()
    local mod = parse [[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%p: Tensor[(4), float32], Primitive=1) { %1 = exp(%p); (%1, %1, %p) };
  %0(%x)
}]]
    local lowered = pl.passes.LowerTE()(pl.passes.InferType()(mod))
    local a, b, c = pl.eval(lowered, { 0, 0, 1, 1 })
    assert.is_true(a:equal(b))
    assert.same({ 0, 0, 1, 1 }, c:to_table())
  end)

  it("names what has no compute, or leaves it to the evaluator", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 2), float32]) { microsoft.inverse(nn.relu(%x)) }]]
    fails("operator 'microsoft.inverse' has no compute", lower, mod)
    local kept = lower(mod, { unsupported = "keep" })
    local functions, calls = count(kept)
    assert.equal(1, functions)
    assert.equal(1, calls)
    local input = { { 3, 1 }, { 2, 5 } }
    assert.is_true(pl.eval(kept, input):equal(pl.eval(mod, input)))
  end)

  it("lowers functions again for other constants only where their compute asks for them", function()
    local x = pl.var("x", "Tensor[(2, 4), float32]")
    local function number(value) return pl.const(pl.tensor(value, "float32")) end
    local function lowered_with(f)
      local a, b = number(0.25), number(0.5)
      local mod = pl.module { main = pl.func({ x }, pl.tuple { f(x, a), f(x, b) }) }
      -- Scalars as operands of the calls.
      local p, q = pl.var("p", "Tensor[(2, 4), float32]"), pl.var("q", "Tensor[(), float32]")
      local fn = pl.ir.Function({ p, q }, f(p, q), { attrs = { Primitive = 1 } })
      local calls = pl.module { main = pl.func({ x }, pl.tuple {
        pl.ir.Call(fn, { x, a }), pl.ir.Call(fn, { x, b }) }) }
      local result = pl.passes.LowerTE()(assert(pl.infer_type(calls)))
      local input = { { 0, 0.3, 0.6, 1 }, { -1, 2, 0.25, 0.5 } }
      local expected, got = { pl.eval(mod, input) }, { pl.eval(result, input) }
      for i = 1, 2 do assert.is_true((got[i]:compare(expected[i], { atol = 1e-6 }))) end
      return (count(result))
    end
    assert.equal(1, lowered_with(function(a, b) return pl.op.multiply(a, b) end))
    assert.equal(2, lowered_with(function(a, b) return pl.op.clip(a, b) end))
  end)

  it("refuses shapes that depend on data, by the operator's name", function()
    fails("'nonzero': the shape of its result", lower, parse [[
def @main(%x: Tensor[(2, 4), float32]) { nonzero(%x) }]])
  end)

  it("refuses shapes that are not known", function()
    fails("is not known", lower, parse [[
def @main(%x: Tensor[(?, 4), float32]) { nn.relu(%x) }]])
  end)

  it("leaves modules without fused functions as they are", function()
    local mod = parse "def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }"
    assert.equal(mod, pl.passes.LowerTE()(mod))
  end)

  it("uses computes and schedules of scripts", function()
    local te = pl.te
    local scheduled = 0
    pl.op_attr("nn.relu", "FTVMCompute", function(_, inputs)
      local x = inputs[1]
      return te.compute({ 4 }, function(i) return x[{ i }] * 3.0 end, "tripled")
    end)
    pl.op_attr("nn.relu", "FTVMSchedule", function(_, outs)
      scheduled = scheduled + 1
      return te.create_schedule(outs[1].op)
    end)
    local lowered = lower(parse "def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }")
    pl.op_attr("nn.relu", "FTVMCompute", nil)
    pl.op_attr("nn.relu", "FTVMSchedule", nil)
    assert.equal(1, scheduled)
    assert.same({ 3, -6, 0, 3 }, pl.eval(lowered, { 1, -2, 0, 1 }):to_table())
    local again = lower(parse "def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }")
    assert.same({ 1, 0, 0, 1 }, pl.eval(again, { 1, -2, 0, 1 }):to_table())
  end)

  it("checks what computes give", function()
    local mod = parse "def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }"
    for text, f in pairs {
      ["did not give 1 tensors"] = function() return 7 end,
      ["its compute gave"] = function(_, inputs) return pl.topi.cast(inputs[1], "int32") end,
      ["no reason at all"] = function() return nil, "no reason at all" end,
      ["a mistake"] = function() error "a mistake" end,
    } do
      pl.op_attr("nn.relu", "FTVMCompute", f)
      local ok, err = pcall(lower, mod)
      pl.op_attr("nn.relu", "FTVMCompute", nil)
      assert.is_false(ok)
      assert.matches(text, tostring(err), 1, true)
    end
  end)
end)

describe("call_lowered in the evaluator", function()
  local function module_of(name, type_, args)
    local x = pl.var("x", "Tensor[(4), float32]")
    local A = pl.te.placeholder({ 4 }, "float32", "A")
    local B = pl.te.compute({ 4 }, function(i) return A[{ i }] + 1.0 end, "B")
    local loops = pl.te.create_schedule(B.op):to_module({ A, B }, "loops").functions.loops
    local call = pl.op.call_lowered(pl.global(name, type_), pl.tuple(args(x)))
    local y = pl.var("y", "Tensor[(4), float32]")
    return pl.module { main = pl.func({ x }, call), loops = loops,
      relay = pl.func({ y }, pl.op.exp(y)) }
  end

  local one = "fn (Tensor[(4), float32]) -> Tensor[(4), float32]"
  local function just(x) return { x } end

  it("runs loops", function()
    local mod = module_of("loops", one, just)
    assert(pl.verify(mod))
    assert.same({ 2, 3, 4, 5 }, pl.eval(mod, { 1, 2, 3, 4 }):to_table())
    assert.equal(mod, pl.infer_type(mod))
  end)

  it("refuses what fits no loops", function()
    fails("other parameters", pl.eval, module_of("loops", one, function(x) return { x, x } end),
      { 1, 2, 3, 4 })
    fails("other parameters", pl.eval, module_of("loops",
      "fn (Tensor[(4), float32]) -> (Tensor[(4), float32], Tensor[(4), float32])", just),
      { 1, 2, 3, 4 })
    fails("not known", pl.eval, module_of("loops",
      "fn (Tensor[(4), float32]) -> Tensor[(?), float32]", just), { 1, 2, 3, 4 })
    fails("float32 expected", pl.eval, module_of("loops",
      "fn (Tensor[(4), float32]) -> Tensor[(4), int32]", just), { 1, 2, 3, 4 })
    fails("a PrimFunc is expected", pl.eval, module_of("relay", one, just), { 1, 2, 3, 4 })
  end)
end)

describe("packed weights", function()
  local function conv(mod, weight, x)
    local c = pl.op.nn.conv(x, pl.const(weight), { kernel_shape = { 1, 1 } })
    return mod and pl.op.nn.relu(c) or c
  end

  it("are operands of each call; equal functions are lowered once", function()
    local x = pl.var("x", "Tensor[(1, 8, 4, 4), float32]")
    local function weight(seed)
      return pl.tensor.random({ 8, 8, 1, 1 }, "float32", { seed = seed, low = -1, high = 1 })
    end
    local mod = pl.module { main = pl.func({ x },
      conv(true, weight(2), conv(true, weight(1), x))) }
    local lowered = lower(mod)
    local functions, calls = count(lowered)
    assert.equal(1, functions)
    assert.equal(2, calls)
    assert.matches("(1, 8, 1, 1, 8)", tostring(lowered.functions.main), 1, true)
    local input = pl.tensor.random({ 1, 8, 4, 4 }, "float32", { seed = 3 })
    assert.is_true((pl.eval(lowered, input):compare(pl.eval(mod, input), { rtol = 1e-4,
      atol = 1e-5 })))
  end)

  it("are filled with zeros where their columns make no whole vectors", function()
    local x = pl.var("x", "Tensor[(5, 24), float32]")
    local weight = pl.tensor.random({ 37, 24 }, "float32", { seed = 1, low = -1, high = 1 })
    local mod = pl.module { main = pl.func({ x }, pl.op.nn.relu(pl.op.nn.dense(x,
      pl.const(weight), { units = 37 }))) }
    local lowered = lower(mod)
    assert.matches("Tensor[(2, 24, 32), float32]", tostring(lowered.functions.main), 1, true)
    local input = pl.tensor.random({ 5, 24 }, "float32", { seed = 3 })
    assert.is_true((pl.eval(lowered, input):compare(pl.eval(mod, input), { rtol = 1e-4,
      atol = 1e-5 })))
    local built = pl.build(mod).main(input)[1]
    assert.is_true((built:compare(pl.eval(mod, input), { rtol = 1e-4, atol = 1e-5 })))
  end)
end)
