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

  it("scan takes the carried values and slices", function()
    local a, b = param("a", "Tensor[(3), float32]"), param("b", "Tensor[(4, 3), float32]")
    local s, r = pl.var "s", pl.var "r"
    local body = pl.func({ s, r }, pl.tuple { op.add(s, r), op.add(s, r) })
    local fn = pl.func({ a, b }, op.scan(a, b, body, { num_scan_inputs = 1, n_results = 2 }))
    assert.equal("fn (Tensor[(3), float32], Tensor[(3), float32]) -> "
      .. "(Tensor[(3), float32], Tensor[(3), float32])", operand_type(fn))
    assert.equal("(Tensor[(3), float32], Tensor[(4, 3), float32])",
      tostring(pl.infer_type(fn).ret_type))
  end)

  it("loop takes the iteration, the condition and values of any shape", function()
    local i, go, s, x = pl.var "i", pl.var "go", pl.var "s", param("x", "Tensor[(3), float32]")
    local body = pl.func({ i, go, s },
      pl.tuple { go, op.add(s, s), op.cast(i, { dtype = "float32" }) })
    local fn = pl.func({ x }, op.loop(pl.const(3, "int64"), pl.const(true), x, body,
      { n_results = 2 }))
    assert.equal("fn (int64, bool, Tensor[*, float32]) -> (bool, Tensor[*, float32], float32)",
      operand_type(fn))
  end)

  it("another operator keeps the types that it declares", function()
    local a, b = param("a", "Tensor[(3), float32]"), param("b", "Tensor[(4, 3), float32]")
    local s, r = pl.var "s", param("r", "Tensor[(?), float32]")
    local body = pl.func({ s, r }, pl.tuple { op.add(s, r) })
    local fn = pl.func({ a, b }, op.scan(a, b, body, { num_scan_inputs = 1 }))
    assert.matches("^fn %(Tensor%[%(3%), float32%], Tensor%[%(%?%), float32%]%)", operand_type(fn))
  end)
end)
