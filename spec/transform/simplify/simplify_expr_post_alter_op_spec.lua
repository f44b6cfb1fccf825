-- SimplifyExprPostAlterOp: what AlterOpLayout leaves behind.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local pass = pl.passes.SimplifyExprPostAlterOp()

local function main(params, body) return ("def @main(%s) { %s }"):format(params, body) end

local floats, ints = "%x: Tensor[(2, 4), float32]", "%x: Tensor[(2, 4), int32]"

describe("SimplifyExprPostAlterOp", function()
  it("drops neutral operands", function()
    golden.becomes(pass, main(floats, "divide(multiply(subtract(add(%x, 0f), 0f), 1f), 1f)"),
      main(floats, "%x"))
    golden.becomes(pass, main(floats, 'add(zeros(shape=[2, 4], dtype="float32"), %x)'),
      main(floats, "%x"))
  end)

  it("merges reshapes and casts", function()
    golden.becomes(pass, main(floats, "reshape(reshape(%x, newshape=[8]), newshape=[4, 2])"),
      main(floats, "reshape(%x, newshape=[4, 2])"))
    golden.becomes(pass, main(ints, 'cast(cast(cast(%x, dtype="int64"), dtype="int64"), '
      .. 'dtype="float32")'), main(ints, 'cast(%x, dtype="float32")'))
  end)

  it("drops casts and limits that change no integer", function()
    golden.becomes(pass, main(ints, 'cast(cast(clip(%x, a_min=0f, a_max=255f), dtype="uint8"), '
      .. 'dtype="int32")'), main(ints, "clip(%x, a_min=0f, a_max=255f)"))
    golden.becomes(pass, main(ints, 'cast(cast(clip(%x, a_min=-128f, a_max=99f), dtype="int8"), '
      .. 'dtype="int16")'), main(ints, 'cast(clip(%x, a_min=-128f, a_max=99f), dtype="int16")'))
    golden.becomes(pass, main("%x: Tensor[(4), uint8]", "clip(%x, a_min=0f, a_max=255f)"),
      main("%x: Tensor[(4), uint8]", "%x"))
  end)

  it("keeps what those would change", function()
    golden.stays(pass, main(ints, 'cast(cast(clip(%x, a_min=0f, a_max=256f), dtype="uint8"), '
      .. 'dtype="int32")'))
    golden.stays(pass, main(ints, 'cast(cast(clip(%x, a_min=-1f, a_max=9f), dtype="uint16"), '
      .. 'dtype="int32")'))
    golden.stays(pass, main(floats, 'cast(cast(clip(%x, a_min=0f, a_max=255f), dtype="uint8"), '
      .. 'dtype="float32")'))
  end)

  it("runs no other rules of SimplifyExpr", function()
    golden.stays(pass, main(floats, "transpose(transpose(%x))"))
    golden.stays(pass, main(floats, "add(%x, %x)"))
  end)

  it("runs the rules that the context allows", function()
    local mod = golden.module(main(floats, "add(reshape(reshape(%x, newshape=[8]), "
      .. "newshape=[4, 2]), 0f)"))
    local function with(names)
      return pl.with(pl.context { config = { ["rules.only"] = names } }, pass, mod)
    end
    local some = main(floats, "reshape(reshape(%x, newshape=[8]), newshape=[4, 2])")
    assert(pl.equal(golden.module(some), with { "add_zero", "not_not" }))
    assert.equal(mod, with { "not_not" })
  end)
end)
