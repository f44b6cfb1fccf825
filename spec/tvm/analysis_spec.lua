-- What programs are made of, as TVM's analyses tell: the counterparts of its
-- test_analysis_feature.py and test_analysis_extract_operators.py, by name.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

describe("detect_feature", function()
  it("test_prelude: of functions over a data type", function()
    local mod = parse [[
type List[A] { Cons(A, List[A]), Nil }
def @nth(%l: List[(int32, float32)], %n: int32) -> float32 {
  match? (%l) {
    Cons(%p, %rest) => {
      let %first = %p.1;
      if (%n == 0) { %first } else { @nth(%rest, %n - 1) }
    }
  }
}
def @pair(%x: int32) { (%x, Nil) }
]]
    local found = pl.detect_feature(mod)
    for _, kind in ipairs { "Var", "GlobalVar", "Constant", "Tuple", "TupleGetItem", "Function",
      "Op", "Call", "Let", "If", "Constructor", "Match" } do
      assert.is_true(found[kind], kind)
    end
    assert.is_nil(found.RefCreate)
  end)

  it("test_ad: of a function with references", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local r, u = pl.var "r", pl.var "u"
    local found = pl.detect_feature(pl.func({ x }, pl.let(r, pl.ir.RefCreate(x + x),
      pl.let(u, pl.ir.RefWrite(r, x), pl.ir.RefRead(r)))))
    assert.same({ Var = true, Function = true, Op = true, Call = true, Let = true,
      RefCreate = true, RefRead = true, RefWrite = true }, found)
  end)
end)

describe("extract_operators", function()
  local x, w = pl.var("x", "Tensor[(1, 1, 5, 1), float32]"),
    pl.var("w", "Tensor[(1, 1, 3, 3), float32]")
  local function conv(data)
    return pl.op.nn.conv2d(data, w, { padding = { 1, 1 }, channels = 1, kernel_size = { 3, 3 } })
  end

  it("test_extract_identity: one operator", function()
    assert.same({ "nn.conv2d" }, pl.extract_operators(pl.module { main = pl.func({ x, w },
      conv(x)) }))
  end)

  it("test_extract_conv_net: each once; a shared call counts as one", function()
    local y = conv(x)
    local mod = pl.module { main = pl.func({ x, w }, y + conv(y)) }
    assert.same({ "add", "nn.conv2d" }, pl.extract_operators(mod))
    assert.same({ add = 1, ["nn.conv2d"] = 2 }, pl.list_op_freqs(mod))
    assert.same({ add = 1, ["nn.conv2d"] = 2 }, pl.list_op_freqs(mod.main))
  end)

  it("refuses what is no program", function()
    assert.has_error(function() pl.extract_operators(1) end)
  end)
end)
