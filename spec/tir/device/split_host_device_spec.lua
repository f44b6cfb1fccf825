local pl = require "perilune"

local annotate = pl.passes["tir.AnnotateDeviceRegions"]
local split = pl.passes["tir.SplitHostDevice"]

local function parsed(text)
  return assert(pl.tir.parse([[
from tvm.script import ir as I
from tvm.script import tir as T

]] .. text))
end

local function turns(pass, before, after)
  local out = pass()(parsed(before))
  assert.is_true(pl.equal(out, parsed(after), { map_free_vars = true }), pl.tir.script(out))
  assert.is_true(pl.equal(parsed(pl.tir.script(out)), out))
end

local cuda = [[T.target({"keys": ["cuda", "gpu"], "kind": "cuda", "tag": ""})]]
local cpu = [[T.target({"keys": ["cpu"], "kind": "llvm", "tag": ""})]]
local hosted = [[T.target({"host": {"keys": ["cpu"], "kind": "llvm", "tag": ""}, ]]
  .. [["keys": ["cuda", "gpu"], "kind": "cuda", "tag": ""})]]
local names = { CUDA = cuda, CPU = cpu, HOSTED = hosted }

local function text(s)
  return (s:gsub("%f[%w](%u+)%f[%W]", names))
end

describe("a target as the node of an attribute", function()
  it("is read and printed", function()
    local mod = parsed(text [[
@T.prim_func
def main(n: T.int32):
    T.attr(CUDA, "target", 0)
    T.attr({"a": 1}, "other", 0)
    T.evaluate(n)
]])
    local printed = pl.tir.script(mod)
    assert.is_truthy(printed:find(([[T.attr(%s, "target", 0)]]):format(cuda), 1, true))
    assert.is_truthy(printed:find([[T.attr({"a": 1}, "other", 0)]], 1, true))
    assert.is_true(pl.equal(mod, parsed(printed)))
  end)
end)

describe("tir.AnnotateDeviceRegions", function()
  it("marks the outermost parts that only a device can run", function()
    turns(annotate, text [[
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    T.func_attr({"target": HOSTED})
    for k in range(2):
        i = T.launch_thread("threadIdx.x", 16)
        T.attr(0, "device_scope", 0)
        A[i] = T.float32(0)
    with T.attr(0, "pipeline_exec_scope", 0):
        A[0] = T.float32(1)
    with T.attr(CPU, "target", 0):
        T.attr(0, "device_scope", 0)
        A[0] = T.float32(2)
]], text [[
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    T.func_attr({"target": HOSTED})
    for k in range(2):
        T.attr(CUDA, "target", 0)
        i = T.launch_thread("threadIdx.x", 16)
        T.attr(0, "device_scope", 0)
        A[i] = T.float32(0)
    with T.attr(CUDA, "target", 0):
        T.attr(0, "pipeline_exec_scope", 0)
        A[0] = T.float32(1)
    with T.attr(CPU, "target", 0):
        T.attr(0, "device_scope", 0)
        A[0] = T.float32(2)
]])
  end)

  it("marks nothing where all runs on the device, and asks for a target", function()
    local body = "    T.attr(0, \"device_scope\", 0)\n    T.evaluate(0)\n"
    local attr = "    T.func_attr({\"target\": CUDA})\n"
    local mod = parsed(text("@T.prim_func\ndef main():\n" .. attr .. body))
    assert.is_true(rawequal(mod, annotate()(mod)))
    assert.error_matches(function() annotate()(parsed("@T.prim_func\ndef main():\n" .. body)) end,
      "the function has no target: run tir.BindTarget before", 1, true)
  end)
end)

describe("tir.SplitHostDevice", function()
  it("makes functions of the parts that run on a device", function()
    turns(split, text [[
@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32, B: T.Buffer((16,), "float32"), A: T.Buffer((16,), "float32")):
        T.func_attr({"target": HOSTED})
        for k in range(2):
            T.attr(CUDA, "target", 0)
            i = T.launch_thread("threadIdx.x", n)
            C = T.allocate([4], "float32", "local")
            C_1 = T.Buffer((4,), data=C, scope="local")
            C_1[0] = B[i + k]
            A[i] = C_1[0]
]], text [[
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def main_kernel(A: T.handle("float32", "global"), B: T.handle("float32", "global"),
                    k: T.int32, n: T.int32):
        T.func_attr({"target": CUDA, "tir.is_global_func": T.bool(True),
                     "tir.noalias": T.bool(True)})
        A_1 = T.decl_buffer((16,), data=A)
        B_1 = T.decl_buffer((16,), data=B)
        i = T.launch_thread("threadIdx.x", n)
        C = T.allocate([4], "float32", "local")
        C_1 = T.Buffer((4,), data=C, scope="local")
        C_1[0] = B_1[i + k]
        A_1[i] = C_1[0]

    @T.prim_func
    def main(n: T.int32, B: T.Buffer((16,), "float32"), A: T.Buffer((16,), "float32")):
        T.func_attr({"target": HOSTED})
        for k in range(2):
            Module.main_kernel(A.data, B.data, k, n)
]])
  end)

  it("finds names that are free, and checks what a processor returns", function()
    turns(split, text [[
@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32, p: T.handle):
        T.func_attr({"global_symbol": "entry", "target": HOSTED})
        with T.attr(CUDA, "target", 0):
            with T.attr(CPU, "target", 0):
                T.evaluate(n)
            T.evaluate(p)
        with T.attr(CPU, "target", 0):
            T.evaluate(n)

    @T.prim_func
    def entry_kernel(x: T.int32):
        T.evaluate(x)
]], text [[
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def entry_kernel_1(p: T.handle, n: T.int32):
        T.func_attr({"target": CUDA, "tir.is_global_func": T.bool(True),
                     "tir.noalias": T.bool(True)})
        with T.attr(CPU, "target", 0):
            T.evaluate(n)
        T.evaluate(p)

    @T.prim_func(private=True)
    def entry_kernel_2(n: T.int32) -> T.int32:
        T.func_attr({"target": CPU, "tir.is_global_func": T.bool(True),
                     "tir.noalias": T.bool(True)})
        T.evaluate(n)
        T.ret(0)

    @T.prim_func
    def main(n: T.int32, p: T.handle):
        T.func_attr({"global_symbol": "entry", "target": HOSTED})
        Module.entry_kernel_1(p, n)
        kernel_error_code: T.int32 = Module.entry_kernel_2(n)
        assert kernel_error_code == 0, "Error executing compute kernel"
        T.evaluate(0)

    @T.prim_func
    def entry_kernel(x: T.int32):
        T.evaluate(x)
]])
  end)

  it("leaves a module without such parts, and stands between its neighbours", function()
    local mod = parsed(text "@T.prim_func\ndef main(n: T.int32):\n    T.evaluate(n)\n")
    assert.is_true(rawequal(mod, split()(mod)))
    local out = pl.sequential { "tir.AnnotateDeviceRegions", "tir.SplitHostDevice",
      "tir.LowerDeviceKernelLaunch" }(parsed(text [[
@T.prim_func
def main():
    T.func_attr({"target": HOSTED})
    for i in range(16):
        T.attr(0, "device_scope", 0)
        for j in range(16):
            T.evaluate(i)
]]))
    assert.is_truthy(pl.tir.script(out):find("Module.main_kernel(i)", 1, true))
  end)
end)
