-- What the lets of TIR bind: a value of the variable's dtype, where
-- all pointers are handles, as TVM's constructors demand.

local pl = require "perilune"
local tir = pl.tir

local done = tir.Evaluate(0)
local n, x = tir.Var("n", "int32"), tir.Var("x", "float32")
local memory = tir.Var("m", tir.PointerType "float32")

local function refused(kind, work, ...)
  local ok, err = pcall(work, ...)
  assert.is_false(ok)
  assert.matches(kind .. ": the value is of another dtype than the variable", tostring(err), 1,
    true)
end

describe("a let of TIR", function()
  it("binds a value of its variable's dtype", function()
    for dtype, value in pairs { int32 = n + 1, float32 = x * 2, bool = tir.lt(n, 4),
      handle = tir.StringImm "a", int32x4 = tir.Ramp(n, 1, 4) } do
      local v = tir.Var("v", dtype)
      assert.is_true(pl.verify(tir.PrimFunc({ n, x }, tir.LetStmt(v, value, tir.Evaluate(v)))))
      assert.equal(dtype, tir.Let(v, value, v).dtype)
    end
  end)

  it("refuses another dtype, and another number of lanes", function()
    for dtype, value in pairs { int32 = x, float32 = n, int64 = n + 1, bool = n,
      handle = n, int32x4 = n, int32x8 = tir.Ramp(n, 1, 4), void = n } do
      local v = tir.Var("v", dtype)
      refused("LetStmt", tir.LetStmt, v, value, done)
      refused("PrimLet", tir.Let, v, value, tir.const(1))
    end
  end)

  it("takes handles for pointers, and no other value", function()
    local handle = tir.call_extern("handle", "get")
    local other = tir.Var("o", tir.PointerType "int8")
    for _, value in ipairs { handle, other } do
      local fn = tir.PrimFunc({ other }, tir.LetStmt(memory, value, tir.Evaluate(memory)))
      assert.is_true(pl.verify(fn))
    end
    assert.is_true(pl.verify(tir.PrimFunc({ memory },
      tir.LetStmt(tir.Var("h", "handle"), memory, done))))
    refused("LetStmt", tir.LetStmt, memory, n, done)
    refused("LetStmt", tir.LetStmt, memory, tir.call_extern("void", "get"), done)
    refused("LetStmt", tir.LetStmt, tir.Var("f", "float32"), memory, done)
  end)

  it("is refused when a change gives it another value", function()
    local let = tir.LetStmt(tir.Var("v", "int32"), n, done)
    refused("LetStmt", function() return let:with { value = x } end)
    local fn = tir.PrimFunc({ n, x }, let)
    refused("LetStmt", tir.transform, fn, nil, function(node)
      if node.kind == "LetStmt" then return node:with { value = x } end
    end)
  end)
end)
