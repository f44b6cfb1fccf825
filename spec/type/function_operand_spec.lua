-- Functions that operators call: their parameters are typed from the call.

local pl = require "perilune"
local op = pl.op

local function param(name, type) return pl.var(name, pl.type(type)) end

-- The type of the last operand of the call that the function returns.
local function operand_type(fn)
  local call = assert(pl.infer_type(fn)).body
  return tostring(call.args[#call.args].type)
end

describe("The untyped function given to", function()
  it("flex_attention takes and gives scores", function()
    local q = param("q", "Tensor[(1, 2, 1, 2), float32]")
    local k = param("k", "Tensor[(1, 1, 2, 2), float32]")
    local v = param("v", "Tensor[(1, 1, 2, 3), float32]")
    local x = pl.var "x"
    local fn = pl.func({ q, k, v }, op.flex_attention(q, k, v, pl.func({ x }, op.negative(x)), {}))
    assert.equal("fn (Tensor[(1, 2, 1, 2), float32]) -> Tensor[(1, 2, 1, 2), float32]",
      operand_type(fn))
  end)

  it("flex_attention keeps the types that it declares", function()
    local q = param("q", "Tensor[(1, 2, 1, 2), float32]")
    local k = param("k", "Tensor[(1, 1, 2, 2), float32]")
    local v = param("v", "Tensor[(1, 1, 2, 3), float32]")
    local x = param("x", "Tensor[(?, 2, 1, ?), float32]")
    local fn = pl.func({ q, k, v }, op.flex_attention(q, k, v, pl.func({ x }, op.negative(x)), {}))
    assert.equal("fn (Tensor[(?, 2, 1, ?), float32]) -> Tensor[(?, 2, 1, ?), float32]",
      operand_type(fn))
  end)
end)
