-- Passes over PrimFuncs for the processor that calls them: targets, signatures, functions of
-- the runtime. The texts were written for these tests and their results checked by hand.

local pl = require "perilune"

local function module_of(text)
  return assert(pl.tir.parse("from tvm.script import ir as I\nfrom tvm.script import tir as T\n"
    .. text))
end

local function function_of(body, head)
  return module_of(("@T.prim_func\n%s\n%s"):format(head or "def main(A: T.Buffer((64,), "
    .. '"float32"), n: T.int32):', body:gsub("[^\n]+", "    %0")))
end

local function gives(passes, body, expected, head, new_head)
  local result = pl.sequential(passes)(function_of(body, head))
  local wanted = function_of(expected, new_head or head)
  assert.is_true(pl.equal(result, wanted, { map_free_vars = true }), tostring(result))
end

local function refuses(passes, body, message, head)
  local ok, err = pcall(pl.sequential(passes), function_of(body, head))
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
end

local cpu = 'T.target({"keys": ["cpu"], "kind": "%s", "tag": ""})'
local with_target = "T.func_attr({\"target\": " .. cpu .. "})\n"
local hosted = 'T.func_attr({"target": T.target({"host": {"keys": ["cpu"], "kind": "c", '
  .. '"tag": ""}, "keys": ["cpu"], "kind": "c", "tag": ""})})\n'

describe("tir.BindTarget", function()
  local function bound(text, attrs)
    local body = ("T.func_attr({%s})\nA[0] = T.float32(0)"):format(attrs or "")
    return pl.passes["tir.BindTarget"] { target = text }(function_of(body)).functions.main
  end

  it("reads the text of a target, with its host", function()
    local target = bound('llvm -mcpu=x -num-cores=4 -host="c -keys=cpu"').attrs.target
    assert.equal("llvm", target.kind)
    assert.equal("x", target.mcpu)
    assert.equal(4, target["num-cores"])
    assert.equal("c", target.host.kind)
    assert.equal("cpu", target.keys[1])
  end)

  it("keeps a function's own target but for a host that it lacks", function()
    local own = bound('cuda -host="c"', '"target": ' .. cpu:format "llvm").attrs.target
    assert.equal("llvm", own.kind)
    assert.equal("c", own.host.kind)
  end)

  it("refuses what is no target", function()
    assert.error_matches(function() bound "-keys=cpu" end, "a target is a kind and words")
    assert.error_matches(function() bound "llvm cpu" end, "not 'cpu'")
    assert.error_matches(function() pl.passes["tir.BindTarget"]()(function_of "A[0] = 1.0") end,
      "the option 'target' is missing")
  end)
end)

describe("tir.LowerIntrin", function()
  local function lowers(kind, before, after)
    local head = with_target:format(kind)
    gives({ "tir.LowerIntrin" }, head .. before, head .. after)
  end

  it("divides by powers of two by shifts and masks", function()
    lowers("c", "for i in range(64):\n    A[i // 8 + n % 4] = T.float32(0)",
      "for i in range(64):\n    A[T.shift_right(i, 3) + T.bitwise_and(n, 3)] = T.float32(0)")
  end)

  it("divides towards zero what is not negative", function()
    lowers("c", "for i in range(64):\n    A[i // 3 + i % 5] = T.float32(0)",
      "for i in range(64):\n    A[T.Div(i, 3) + T.truncmod(i, 5)] = T.float32(0)")
  end)

  it("moves what has a lower bound above zero", function()
    lowers("c", "for i in range(64):\n    A[(i - 7) // 3 + 3] = T.float32(0)",
      "for i in range(64):\n    A[T.Div(i + 2, 3) - 3 + 3] = T.float32(0)")
  end)

  it("corrects other quotients", function()
    lowers("c", "A[n // 3] = T.float32(0)",
      "A[T.Div(n, 3) + T.shift_right(T.truncmod(n, 3), 31)] = T.float32(0)")
  end)

  it("knows in a value of a Select that its condition holds", function()
    lowers("c", "A[T.Select(n >= 0, n // 3, 0)] = T.float32(0)",
      "A[T.Select(n >= 0, T.Div(n, 3), 0)] = T.float32(0)")
    lowers("c", "A[T.if_then_else(n < 0, 0, n % 3)] = T.float32(0)",
      "A[T.if_then_else(n < 0, 0, T.truncmod(n, 3))] = T.float32(0)")
  end)

  it("corrects all uses where a quotient is used in both values", function()
    lowers("c", "A[T.Select(n >= 0, n // 3, n // 3 + 1)] = T.float32(0)",
      "A[T.Select(n >= 0, T.Div(n, 3), T.Div(n, 3) + T.shift_right(T.truncmod(n, 3), 31) + 1)] "
      .. "= T.float32(0)")
  end)

  it("computes quotient and remainder once where no sign is known", function()
    lowers("c", "A[n // (n + 5)] = T.float32(0)", [[
q = T.int32()
r = T.int32()
A[T.Let(T.Let(T.Select(n + 5 >= 0 and r >= 0 or n + 5 < 0 and r <= 0, q, q - 1),
              where={q: T.Div(n, n + 5)}), where={r: T.truncmod(n, n + 5)})] = T.float32(0)]])
  end)

  it("calls functions of C, and fused operations of LLVM", function()
    lowers("c", "A[0] = T.exp(A[1])", 'A[0] = T.call_pure_extern("float32", "expf", A[1])')
    lowers("llvm", "A[0] = A[1] + A[2] * A[3]",
      'A[0] = T.call_llvm_pure_intrin("float32", T.uint32(141), T.uint32(3), A[2], A[3], A[1])')
    lowers("c", "A[0] = A[1] + A[2] * A[3]", "A[0] = A[1] + A[2] * A[3]")
  end)

  it("wants a target", function()
    refuses({ "tir.LowerIntrin" }, "A[0] = T.float32(0)", "has no attribute 'target'")
  end)
end)

describe("tir.LowerTVMBuiltin", function()
  local device = 'T.attr("default", "device_type", 1)\nT.attr("default", "device_id", 0)\n'

  it("keeps small memory on the stack", function()
    local body = 'B = T.allocate([255], "float32", "global")\n'
      .. "B_1 = T.Buffer((255,), data=B)\nB_1[0] = A[0]"
    gives({ "tir.LowerTVMBuiltin" }, device .. body, body)
  end)

  it("makes other memory workspaces, and computes the same", function()
    local mod = function_of(device .. 'B = T.allocate([256], "float32", "global")\n'
      .. "B_1 = T.Buffer((256,), data=B)\nfor i in range(64):\n    B_1[i] = A[i] * T.float32(2)\n"
      .. "for i in range(64):\n    A[i] = B_1[63 - i]")
    local out = pl.passes["tir.LowerTVMBuiltin"]()(mod)
    local text = tostring(out)
    assert.is_truthy(text:find("T.TVMBackendAllocWorkspace(1, 0, T.uint64(1024), 2, 32)", 1, true))
    assert.is_truthy(text:find("T.TVMBackendFreeWorkspace(1, 0, B)", 1, true))
    assert.is_true(pl.tir.check(mod, out) ~= nil)
  end)

  it("puts the arguments of packed calls on stacks, per parallel loop", function()
    local mod = function_of 'for i in T.parallel(4):\n    T.call_packed("f", i, A[i])'
    local text = tostring(pl.passes["tir.LowerTVMBuiltin"]()(mod))
    for _, part in ipairs {
      'for i in T.parallel(4):\n            stack_tcode: T.handle("int32") = '
        .. 'T.tvm_stack_alloca("arg_tcode", 3)',
      'T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", i))',
      'T.tvm_struct_set(stack_value, 1, 12, T.Cast("float64", A[i]))',
      'T.call_packed_lowered("f", stack_value, stack_tcode, 0, 2)' } do
      assert.is_truthy(text:find(part, 1, true), text)
    end
  end)

  it("wants to know the device of memory and tensors", function()
    refuses({ "tir.LowerTVMBuiltin" }, 'B = T.allocate([n], "float32", "global")\n'
      .. "B_1 = T.Buffer((n,), data=B)\nB_1[0] = A[0]", "no attribute device_type")
    refuses({ "tir.LowerTVMBuiltin" }, 'T.call_packed("f", T.tvm_stack_make_array(A.data, '
      .. "T.tvm_stack_make_shape(64), 0, 1, T.float32(0), 0))", "a tensor is passed where")
  end)
end)

describe("tir.MakePackedAPI", function()
  it("reads and checks the arguments", function()
    local out = pl.passes["tir.MakePackedAPI"]()(function_of(hosted .. "A[n] = T.float32(1)"))
    local text = tostring(out)
    for _, part in ipairs {
      "def main(args: T.handle, arg_type_ids: T.handle(\"int32\"), num_args: T.int32",
      'assert num_args == 2, "main: num_args should be 2"',
      'n: T.int32 = T.Cast("int32", T.tvm_struct_get(args, 1, 12, "int64"))',
      "Expect arg[0] to be pointer", "Expect arg[1] to be int",
      ".ndim is expected to equal 1", "has an unsatisfied constraint: 64 == ",
      'with T.attr(0, "compute_scope", "main_compute_"):', "T.ret(0)" } do
      assert.is_truthy(text:find(part, 1, true), part .. "\n" .. text)
    end
    assert.equal(1, out.functions.main.attrs.calling_conv)
    assert.is_nil(out.functions.main.attrs.target.host)
    assert.is_true(rawequal(out, pl.passes["tir.MakePackedAPI"]()(out)))
  end)

  it("refuses what can never be passed, and returned values", function()
    refuses({ "tir.MakePackedAPI" }, hosted .. "T.ret(n)", "returns a value")
    refuses({ "tir.MakePackedAPI" }, "A[n] = T.float32(1)", "no attribute 'target'")
  end)

  it("leaves functions alone that are not called from outside", function()
    local mod = module_of("@T.prim_func(private=True)\ndef main(n: T.int32):\n    T.evaluate(n)")
    assert.is_true(rawequal(mod, pl.passes["tir.MakePackedAPI"]()(mod)))
    assert.is_true(rawequal(mod, pl.passes["tir.MakeUnpackedAPI"]()(mod)))
  end)
end)

describe("tir.MakeUnpackedAPI", function()
  it("takes memory instead of buffers", function()
    gives({ "tir.MakeUnpackedAPI" }, hosted .. "T.evaluate(n)",
      with_target:format "c" .. 'T.attr("default", "device_id", 0)\n'
      .. 'T.attr("default", "device_type", 1)\nT.evaluate(n)\nT.ret(0)', nil,
      'def main(A: T.handle("float32", "global"), n: T.int32) -> T.int32:')
  end)
end)

describe("tir.LowerDeviceKernelLaunch", function()
  it("passes the extents of threads behind the arguments", function()
    local out = pl.passes["tir.LowerDeviceKernelLaunch"]()(module_of([[
@I.ir_module
class Module:
    @T.prim_func
    def kernel(A: T.handle("float32", "global"), m: T.int32):
        T.func_attr({"target": T.target({"keys": ["cuda", "gpu"], "kind": "cuda", "tag": ""})})
        A_1 = T.decl_buffer((64,), data=A)
        i = T.launch_thread("threadIdx.x", m * 2)
        A_1[i] = T.float32(0)

    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), n: T.int32):
        T.func_attr({"target": T.target({"keys": ["cpu"], "kind": "llvm", "tag": ""})})
        Module.kernel(A.data, n + 1)]]))
    assert.is_truthy(tostring(out):find('T.call_packed("kernel", A.data, n + 1, (n + 1) * 2)', 1,
      true), tostring(out))
    local attrs = out.functions.kernel.attrs
    assert.equal(2, attrs.calling_conv)
    assert.equal("threadIdx.x", attrs["tir.kernel_launch_params"][1])
  end)
end)

describe("tir.LegalizePackedCalls", function()
  local text = [[
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.handle, B: T.handle, context: T.handle):
        A_1 = T.match_buffer(A, (1, 3))
        T.evaluate(0)

    @T.prim_func
    def main(p: T.handle):
        A = T.handle()
        B = T.handle()
        context = T.handle()
        T.evaluate(T.call_cpacked("f", %s, context))]]
  local legalize = pl.passes["tir.LegalizePackedCalls"]

  it("passes tensors as the called function sees them, and parameters as they are", function()
    local out = tostring(legalize()(module_of(text:format "A, B")))
    assert.is_truthy(out:find('T.tvm_stack_make_array(A, T.tvm_stack_make_shape(1, 3), '
      .. 'T.reinterpret("handle", T.uint64(0)), T.uint32(2), T.Cast("float32", 0), 0), '
      .. 'T.tvm_stack_make_array(B, T.tvm_stack_make_shape(), '
      .. 'T.reinterpret("handle", T.uint64(0)), T.uint32(0), T.Cast("handle", 0), '
      .. 'T.uint64(0)), context)', 1, true), out)
    local same = module_of(text:format "p, p")
    assert.is_true(pl.equal(same, legalize()(same)))
  end)

  it("refuses calls of what is not there, and of too many arguments", function()
    for arguments, message in pairs { ["A, B, A, B"] = "passes 4 arguments to a function of 3" } do
      local ok, problem = pcall(legalize(), module_of(text:format(arguments)))
      assert.is_false(ok)
      assert.is_truthy(tostring(problem):find(message, 1, true), tostring(problem))
    end
    local ok, problem = pcall(legalize(), module_of((text:format("A, B"):gsub('"f"', '"g"'))))
    assert.is_false(ok)
    assert.is_truthy(tostring(problem):find("the module has no function 'g'", 1, true))
  end)
end)

describe("tir.MakeUnpackedAPI", function()
  it("types calls of functions that return 0 then", function()
    local attrs = [[T.func_attr({"global_symbol": "%s", "target": T.target({"host": ]]
      .. [[{"keys": ["cpu"], "kind": "llvm", "tag": ""}, "keys": ["cpu"], "kind": "llvm", ]]
      .. [["tag": ""})})]]
    local out = pl.passes["tir.MakeUnpackedAPI"]()(module_of(([[
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.handle("float32", "global")):
        %s
        T.evaluate(A)

    @T.prim_func
    def main(A: T.handle("float32", "global")):
        %s
        Module.f(A)]]):format(attrs:format "f", attrs:format "main")))
    assert.is_true(pl.equal(out, assert(pl.tir.parse(tostring(out)))))
  end)
end)

describe("small passes", function()
  it("tir.SkipAssert removes assertions", function()
    gives({ "tir.SkipAssert" }, 'assert n > 0, "n"\nA[0] = T.float32(0)', "A[0] = T.float32(0)")
  end)

  it("tir.RemoveAssume removes what is assumed", function()
    gives({ "tir.RemoveAssume" }, "for i in range(64):\n    T.assume(A[i] == T.float32(0))\n"
      .. "A[0] = T.float32(1)", "A[0] = T.float32(1)")
  end)

  it("tir.RemoveStoreUndef removes stores of anything, and refuses other uses", function()
    gives({ "tir.RemoveStoreUndef" }, 'A[1] = T.Cast("float32", T.undef())\nA[0] = T.float32(1)',
      "A[0] = T.float32(1)")
    refuses({ "tir.RemoveStoreUndef" }, "A[T.undef()] = T.float32(1)", "used other than as a")
  end)

  it("tir.ConvertSSA gives each binding its variable", function()
    local mod = pl.passes["tir.UnrollLoop"]()(function_of("for i in T.unroll(2):\n"
      .. "    for j in range(8):\n        A[i * 8 + j] = T.float32(1)"))
    assert.is_false(pl.tir.verify_ssa(mod.functions.main))
    local out = pl.passes["tir.ConvertSSA"]()(mod)
    assert.is_true(pl.tir.verify_ssa(out.functions.main))
    assert.is_true(pl.tir.check(mod, out) ~= nil)
  end)

  it("tir.ConvertSSA makes variables that several shapes define plain ones", function()
    local function mod(size_var)
      return assert(pl.tir.parse(([[
from tvm.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32(%s)
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    B[0] = A[n - 1] ]]):format(size_var and "is_size_var=True" or "")))
    end
    local out = pl.passes["tir.ConvertSSA"]()(mod(true))
    assert.is_true(pl.equal(mod(false), out), tostring(out))
  end)

  it("tir.Filter keeps what the condition holds for", function()
    local mod = module_of [[
@I.ir_module
class Module:
    @T.prim_func
    def host(n: T.int32):
        T.evaluate(n)

    @T.prim_func
    def kernel(n: T.int32):
        T.func_attr({"calling_conv": 2})
        T.evaluate(n)]]
    local out = pl.passes["tir.Filter"] {
      fcond = function(f) return f.attrs.calling_conv ~= 2 end }(mod)
    assert.is_truthy(out.functions.host)
    assert.is_nil(out.functions.kernel)
  end)

  it("tir.DecorateDeviceScope says that a body runs on a device", function()
    gives({ "tir.DecorateDeviceScope" }, "A[0] = T.float32(0)",
      'T.attr(0, "device_scope", 0)\nA[0] = T.float32(0)')
  end)

  it("tir.ExtractPrimFuncConstants lists equal tensors once", function()
    local one = '    K = T.allocate_const([1, 2], "int32", [2])\n    T.evaluate(n)'
    local mod = module_of("@I.ir_module\nclass Module:\n"
      .. ("@T.prim_func\ndef f(n: T.int32):\n%s\n@T.prim_func\ndef g(n: T.int32):\n%s\n"
        .. "@T.prim_func\ndef h(n: T.int32):\n%s"):format(one, one, (one:gsub("2%]", "3]", 1)))
      :gsub("[^\n]+", "    %0"))
    local out = pl.passes["tir.ExtractPrimFuncConstants"]()(mod)
    assert.equal(2, #out.attrs.constants)
    assert.is_true(rawequal(out, pl.passes["tir.ExtractPrimFuncConstants"]()(out)))
  end)

  it("tir.InstrumentBoundCheckers guards stores", function()
    local mod = function_of 'T.attr(A.data, "buffer_bound", T.tvm_tuple(64))\nA[n] = T.float32(0)'
    local text = tostring(pl.passes["tir.InstrumentBoundCheckers"]()(mod))
    assert.is_truthy(text:find('if T.Cast("int64", n) >= T.int64(0) and T.Cast("int64", n) < '
      .. 'T.Cast("int64", 64):\n            A[n] = T.float32(0)', 1, true), text)
    assert.is_truthy(text:find('"OUT OF THE BOUNDS"', 1, true))
  end)

  it("tir.InstrumentProfileIntrinsics marks loops and functions", function()
    local config = pl.context { config = { ["tir.instr_siblings"] = false,
      ["tir.lwp_min_height"] = 0, ["tir.lwp_max_depth"] = 1 } }
    local mod = function_of("for i in range(8):\n    for j in range(8):\n"
      .. "        A[i] = T.float32(0)")
    local text = tostring(pl.with(config, pl.passes["tir.InstrumentProfileIntrinsics"](), mod))
    local start = "T.start_profile_intrinsic(0)\n        T.start_profile_intrinsic(1)\n"
    assert.is_truthy(text:find(start .. "        for i, j in T.grid(8, 8):", 1, true), text)
  end)
end)
