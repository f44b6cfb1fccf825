-- pl.target: TVM's texts and dictionaries of targets, and targets of contexts.

local pl = require "perilune"

describe("pl.target", function()
  it("reads TVM's text", function()
    local t = pl.target "llvm -mcpu=skylake-avx512 -num-cores=4 --mattr=+avx2,+fma -libs=cblas"
    assert.equal("llvm", t.kind)
    assert.same({ "cpu" }, t.keys)
    assert.equal("skylake-avx512", t.attrs.mcpu)
    assert.equal(4, t.attrs["num-cores"])
    assert.same({ "+avx2", "+fma" }, t.attrs.mattr)
    assert.same({ "cblas" }, t.attrs.libs)
    assert.is_nil(t.host)
  end)

  it("prints the text that TVM prints", function()
    local function prints(expected, spec, host)
      local t = pl.target(spec, host)
      assert.equal(expected, tostring(t))
      assert.equal(t, pl.target(tostring(t), host))
    end
    prints("llvm -keys=cpu", "llvm")
    prints("llvm -keys=cpu -mcpu=skylake -num-cores=4", "llvm -num-cores 4 --mcpu=skylake")
    prints("llvm -keys=arm_cpu,cpu -device=arm_cpu", "llvm -device=arm_cpu")
    prints("cuda -keys=cuda,gpu -arch=sm_50 -max_function_args=16",
      { kind = "cuda", arch = "sm_50", max_function_args = 16 })
    prints("c -keys=cpu -system-lib=1", "c -system-lib")
    prints('llvm -keys=cpu -opt="a b"', 'llvm -opt="a b"')
  end)

  it("has a host", function()
    local t = pl.target { kind = "cuda", host = "llvm -mcpu=skylake" }
    assert.equal("llvm -keys=cpu -mcpu=skylake", tostring(t.host))
    assert.equal(t, pl.target("cuda", "llvm -mcpu=skylake"))
    assert.not_equal(t, pl.target "cuda")
    assert.equal("llvm", t:dict().host.kind)
    assert.equal(t, pl.target(t:dict()))
  end)

  it("may be JSON text, and of a kind of one's own", function()
    local t = pl.target '{"kind": "cuda", "arch": "sm_50", "keys": ["x"], "host": "llvm"}'
    assert.equal("cuda -keys=x,cuda,gpu -arch=sm_50", tostring(t))
    assert.equal("llvm", t.host.kind)
    assert.equal("my_accelerator", pl.target "my_accelerator -size=2".kind)
  end)

  it("is immutable", function()
    local t = pl.target "llvm"
    assert.error_matches(function() t.kind = "c" end, "a target is immutable")
  end)

  it("refuses what is no target", function()
    local function refused(spec, message)
      assert.error_matches(function() pl.target(spec) end, message)
    end
    refused("", "no kind in ''")
    refused("-mcpu=x", "no kind in '%-mcpu=x'")
    refused("llvm mcpu=x", "'mcpu=x' is not of the form %-name=value")
    refused("llvm -mcpu=x -mcpu=y", "'mcpu' stands twice")
    refused({ mcpu = "x" }, "kind: a string expected, got nil")
    refused({ kind = "llvm", mcpu = function() end }, "attribute 'mcpu'")
    refused(1, "options: a table expected, got number")
    refused("llvmm", "there is no kind 'llvmm'; did you mean 'llvm'")
    refused("cuda -host=lvm", "there is no kind 'lvm'; did you mean 'llvm'")
    refused("3d", "a kind is a name, got '3d'")
    refused("{", "'{' is not the JSON text of an object")
    refused('{"kind": 3}', "kind: a string expected, got number")
    refused('{"mcpu": "x"}', "kind: a string expected, got nil")
    refused('{"kind": "llvm", "mcpu": {"a": 1}}', "attribute 'mcpu'")
  end)
end)

describe("A context's target", function()
  it("is what passes find in the current context", function()
    local seen
    local look = pl.module_pass { name = "Look", run = function(_, ctx) seen = ctx.target end }
    local mod = pl.parse [[
#[version = "0.0.5"]
def @main(%x: float32) { %x }]]
    local ctx = pl.context { target = "llvm -mcpu=skylake" }
    assert.equal(pl.target "llvm -mcpu=skylake", ctx.target)
    pl.with(ctx, look, mod)
    assert.equal(ctx.target, seen)
    assert.is_nil(pl.current().target)
    assert.is_nil(pl.context {}.target)
  end)

  it("is checked when the context is made", function()
    assert.error_matches(function() pl.context { target = "-x" } end, "no kind in '%-x'")
  end)
end)
