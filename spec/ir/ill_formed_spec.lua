-- Programs built by scripts that make no sense: the message says what is wrong
-- and shows the node.

local pl = require "perilune"
local ir = pl.ir

local vector = pl.type "Tensor[(2), float32]"

describe("a program", function()
  local x, y = pl.var("x", vector), pl.var("y", vector)
  local c = pl.var("c", "bool")

  local function refused(what, node, build)
    local ok, message = pcall(function() return pl.verify(build()) end)
    assert.is_false(ok)
    message = tostring(message)
    assert(message:find(what, 1, true), message)
    assert(message:find(node, 1, true), message)
    assert(message:find "ill_formed_spec.lua:%d+", message)
  end

  it("that is ill-typed is refused where it is built", function()
    refused("extents 2 and 3 do not broadcast", "in add(%x: ", function()
      return x + pl.var("z", "Tensor[(3), float32]")
    end)
    refused("at most 1 arguments, got 2", "in tanh(%x: ", function() return pl.op.tanh(x, x) end)
    refused("field 3 of a tuple of 1", "in TupleGetItem(Tuple", function()
      return pl.tuple(x):get(3)
    end)
    refused("field 0 of a value that is not a tuple", "in TupleGetItem(%x: ",
      function() return x:get(0) end)
    refused("takes 1 argument, got 2", "in Function(%x: ", function()
      return pl.func({ x }, x)(x, x)
    end)
    refused("not a function", "in %x(%x: ", function() return x(x) end)
  end)

  it("has branches of one type and a boolean condition", function()
    refused("have different types", "in If(%c: ", function()
      return pl.if_(c, x, pl.const(1, "int32"))
    end)
    refused("must be boolean, not Tensor[(2), float32]", "in If(%x: ", function()
      return pl.if_(x, y, y)
    end)
  end)

  it("has references to values of one type", function()
    refused("of a value that is not a reference", "in RefRead(%x: ",
      function() return ir.RefRead(x) end)
    refused("holds a value of another type", "in RefWrite(", function()
      return ir.RefWrite(ir.RefCreate(x), pl.const(1))
    end)
  end)

  it("binds variables, to values of their type", function()
    refused("bound to a value of another type", "in Let(%x: ", function()
      return pl.let(x, pl.const(1), x)
    end)
    refused("only a Var can be bound, not a Call", "in add(%x: ", function()
      return pl.let(x + 1, x, x)
    end)
    refused("only a Var can be bound, not a Call", "in add(%x: ", function()
      return pl.func({ x + 1 }, x)
    end)
    refused("a pattern is expected, not a Call", "in add(%x: ", function()
      return pl.match(x, { { x + 1, x } })
    end)
  end)

  it("binds a variable once", function()
    refused("'x' is bound more than once", "in Function(%x: ", function()
      return pl.func({ x, x }, x)
    end)
    refused("'x' is bound more than once", "in Let(%x: ", function()
      return pl.func({ x }, pl.let(x, y, x))
    end)
    refused("'y' is bound more than once", "in Function(%y: ", function()
      return pl.func({ y }, pl.func({ y }, y)(y))
    end)
  end)

  it("uses variables where they are bound", function()
    refused("'y' is used outside of the let", "in Let(%y: ", function()
      return pl.func({ x }, pl.tuple(pl.let(y, x, y), y))
    end)
  end)
end)
