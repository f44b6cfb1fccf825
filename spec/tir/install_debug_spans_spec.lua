-- tir.InstallDebugSpans: the place of each node in the text of its function.

local pl = require "perilune"

local text = [[
# from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), n: T.int32):
    for i, j in T.grid(8, 16):
        if n < i:
            x: T.int32 = j * 2
            B[i, j] = A[i, j] + T.Cast("float32", x)
        else:
            T.evaluate(0)]]

local function lines_of(fn)
  local lines = {}
  for line in (tostring(fn) .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- { kind, what stands at its span } of each node that has one.
local function spans_of(fn)
  local lines, out = lines_of(fn), {}
  for node in fn:nodes() do
    local span = node.span
    if span then
      assert.equal("f.tir", span.source)
      assert.equal(#lines[span.row] + 1, span.end_column)
      out[#out + 1] = { node = node, text = lines[span.row]:sub(span.column) }
    end
  end
  return out
end

local function installed(mod) return pl.passes["tir.InstallDebugSpans"]()(mod) end

describe("tir.InstallDebugSpans", function()
  it("gives statements and expressions the place of their text", function()
    local mod = assert(pl.tir.parse(text))
    local with = installed(mod)
    local fn = with.functions.f
    assert.equal(text, tostring(fn))
    local found = {}
    for _, one in ipairs(spans_of(fn)) do
      local kind = one.node.kind
      found[kind] = found[kind] or {}
      found[kind][one.text] = true
    end
    assert.is_true(found.For["for i, j in T.grid(8, 16):"])
    assert.is_true(found.IfThenElse["if n < i:"])
    assert.is_true(found.LetStmt["x: T.int32 = j * 2"])
    assert.is_true(found.Mul["j * 2"])
    assert.is_true(found.BufferStore["B[i, j] = A[i, j] + T.Cast(\"float32\", x)"])
    assert.is_true(found.BufferLoad["A[i, j] + T.Cast(\"float32\", x)"])
    assert.is_true(found.Cast["T.Cast(\"float32\", x)"])
    assert.is_true(found.Evaluate["T.evaluate(0)"])
  end)

  it("changes nothing but spans", function()
    local mod = assert(pl.tir.parse(text))
    local with = installed(mod)
    assert.is_true(pl.equal(mod, with))
    assert.is_false(rawequal(mod.functions.f, with.functions.f))
    assert.is_true(pl.equal(with, installed(with)))
  end)

  it("ends tir.lower where tir.enable_debug says so", function()
    local te = pl.te
    local A = te.placeholder({ 8 }, "float32", "A")
    local B = te.compute({ 8 }, function(i) return A[{ i }] + 1.0 end, "B")
    local mod = te.create_schedule(B.op):to_module({ A, B }, "f")
    local config = { ["tir.enable_debug"] = true }
    local lowered = pl.with(pl.context { config = config }, pl.lower, mod)
    local seen = {}
    for _, one in ipairs(spans_of(lowered.functions.f)) do seen[one.node.kind] = true end
    assert.is_true(seen.For and seen.BufferStore and seen.BufferLoad)
    for node in pl.lower(mod).functions.f:nodes() do assert.is_nil(node.span) end
  end)
end)
