-- Well-formedness as TVM has it: the counterparts of its test_ir_well_formed.py, by
-- name.

local pl = require "perilune"

local ir = pl.ir

local function good(program) assert(pl.well_formed(program)) end

local function bad(program, message)
  local ok, diag = pl.well_formed(program)
  assert.is_nil(ok)
  assert.matches(message, diag.message, 1, true)
end

describe("well_formed", function()
  it("test_let: one let of a variable, also where it stands in its own body", function()
    local x, v = pl.var "x", pl.const(10)
    good(x)
    local let = pl.let(x, v, x)
    good(let)
    bad(pl.let(x, v, pl.let(x, v, x)), "the variable 'x' is bound more than once")
    bad(pl.let(x, v, let), "the variable 'x' is bound more than once")
    local p = pl.var "p"
    local f = pl.func({ p }, p)
    good(f)
    good(pl.let(pl.var "y", f, pl.let(pl.var "z", f, v)))
  end)

  it("test_tuple: a let may be shared, not repeated", function()
    local x, v = pl.var "x", pl.const(10)
    local let = pl.let(x, v, x)
    good(pl.tuple { v, v })
    good(pl.tuple { let, let })
    bad(pl.tuple { let, pl.let(x, v, x) }, "the variable 'x' is bound more than once")
  end)

  it("test_tuple_get_item: of what is no tuple yet", function()
    good(ir.TupleGetItem(pl.var "t", 2))
  end)

  it("test_adt: two arms that bind one variable", function()
    local x, data = pl.var "x", pl.var "data"
    local named = { ir.PatternConstructor("S", { ir.PatternVar(x) }), x }
    local default = { x, x }
    good(ir.Match(data, { default }, { complete = false }))
    bad(ir.Match(data, { named, default }, { complete = false }),
      "the variable 'x' is bound more than once")
  end)
end)
