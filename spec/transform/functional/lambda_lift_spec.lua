-- LambdaLift and EtaExpand: functions of the module made of functions written
-- out, and the other way round.

local pl = require "perilune"

local op, ir = pl.op, pl.ir

local function v(name, type_) return pl.var(name, type_ or "float32") end
local unary = "fn (float32) -> float32"
local function int(i) return pl.const(pl.tensor(i, "int32")) end

-- Without comments and version.
local function text(mod)
  return (tostring(mod):gsub("#%[version[^\n]*\n", ""):gsub(" /%*.-%*/", ""):gsub("\n+$", "\n"))
end

local function becomes(pass, mod, expected)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  assert.equal(out, pass(out))
  assert.equal(expected, text(out))
end

describe("LambdaLift", function()
  local x, y = v "x", v "y"
  local lift = pl.passes.LambdaLift()

  it("makes closures of what functions use from around them", function()
    local f = v("f", unary)
    local body = pl.func({ y }, op.add(x, op.exp(y)))
    local main = pl.func({ x }, ir.Let(f, body, op.add(f(x), f(op.tanh(x)))))
    becomes(lift, pl.module { main = main }, [[
def @lifted_name0(%x: float32, Closure=1) -> fn (float32) -> float32 {
  fn (%y: float32) -> float32 {
    %0 = exp(%y);
    add(%x, %0)
  }
}

def @main(%x1: float32) -> float32 {
  let %f: fn (float32) -> float32 = @lifted_name0(%x1);
  %1 = tanh(%x1);
  %2 = %f(%x1);
  %3 = %f(%1);
  add(%2, %3)
}
]])
  end)

  it("puts a name where a function was that uses nothing else", function()
    becomes(lift, pl.module { main = pl.func({ x }, pl.func({ y }, op.add(y, y))(x)) }, [[
def @lifted_name0(%y: float32) -> float32 {
  add(%y, %y)
}

def @main(%x: float32) -> float32 {
  @lifted_name0(%x)
}
]])
  end)

  it("lets a function that calls itself do so by name", function()
    local f, n, k = v("f", "fn (int32) -> int32"), v("n", "int32"), v("k", "int32")
    local again = op.add(n, f(op.subtract(n, int(1))))
    local body = pl.func({ n }, ir.If(op.less_equal(n, int(0)), k, again))
    becomes(lift, pl.module { main = pl.func({ k }, ir.Let(f, body, f(int(3)))) }, [[
def @lifted_name0(%k: int32, Closure=1) -> fn (int32) -> int32 {
  fn (%n: int32) -> int32 {
    %0 = less_equal(%n, 0);
    if (%0) {
      %k
    } else {
      %1 = subtract(%n, 1);
      %2 = @lifted_name0(%k);
      %3 = %2(%1);
      add(%n, %3)
    }
  }
}

def @main(%k1: int32) -> int32 {
  let %f: fn (int32) -> int32 = @lifted_name0(%k1);
  %f(3)
}
]])
  end)

  it("leaves nothing to infer in what calls itself", function()
    local out = lift(assert(pl.infer_type(assert(pl.parse [[
      #[version = "0.0.5"]
      def @main(%k: int32) -> int32 {
        let %f = fn (%n: int32) -> int32 {
          if (less_equal(%n, 0)) { %k } else { %f(subtract(%n, 1)) }
        };
        %f(3)
      }
      def @generic[A](%x: A, %n: int32) -> A {
        let %f = fn (%i: int32) -> A {
          if (less_equal(%i, 0)) { %x } else { %f(subtract(%i, 1)) }
        };
        %f(%n)
      }]]))))
    assert.is_not_nil(out.functions.lifted_name1)
    assert.equal(out, pl.infer_type(out))
  end)

  it("passes through what only an inner function uses, in order of use", function()
    local a, b, e = v "a", v "b", op.exp(x)
    local inner = pl.func({ b }, op.add(op.multiply(b, y), op.add(a, e)))
    becomes(lift, pl.module { main = pl.func({ x, y }, op.abs(pl.func({ a }, inner(a))(e))) }, [[
def @lifted_name0(%y: float32, %x: float32, Closure=1) -> fn (float32) -> float32 {
  fn (%a: float32) -> float32 {
    %0 = @lifted_name1(%y, %a, %x);
    %0(%a)
  }
}

def @lifted_name1(%y1: float32, %a1: float32, %x1: float32, Closure=1) -> fn (float32) -> float32 {
  fn (%b: float32) -> float32 {
    %1 = multiply(%b, %y1);
    %2 = add(%a1, %x1);
    add(%1, %2)
  }
}

def @main(%x2: float32, %y2: float32) -> float32 {
  %3 = exp(%x2);
  %4 = @lifted_name0(%y2, %3);
  %5 = %4(%3);
  abs(%5)
}
]])
  end)

  it("takes callees before their arguments, whatever is evaluated first", function()
    local f, g, a = v("f", unary), v("g", unary), v "a"
    local out = lift(pl.module { main = pl.func({ f, g }, pl.func({ a }, f(g(a)))) })
    assert.matches("lifted_name0(%f1, %g1)", text(out), 1, true)
  end)

  it("makes equal functions once, and takes no name that is taken", function()
    local a, b = v "a", v "b"
    becomes(lift, pl.module {
      lifted_name0 = pl.func({ x }, x),
      main = pl.func({ y }, pl.func({ a }, op.exp(a))(pl.func({ b }, op.exp(b))(y))),
    }, [[
def @lifted_name0(%x: float32) -> float32 {
  %x
}

def @lifted_name1(%b: float32) -> float32 {
  exp(%b)
}

def @main(%y: float32) -> float32 {
  %0 = @lifted_name1(%y);
  @lifted_name1(%0)
}
]])
  end)

  it("copies constants, and leaves primitive functions alone", function()
    local a, b = v "a", v "b"
    local two = pl.const(2.0)
    local f = pl.func({ a }, op.multiply(a, two))
    local g = ir.Function({ b }, op.exp(b), nil, { Primitive = 1 })
    becomes(lift, pl.module { main = pl.func({ x }, op.add(f(g(x)), two)) }, [[
def @lifted_name0(%a: float32) -> float32 {
  multiply(%a, 2f)
}

def @main(%x: float32) -> float32 {
  %0 = fn (%b: float32, Primitive=1) -> float32 {
    exp(%b)
  };
  %1 = %0(%x);
  %2 = @lifted_name0(%1);
  add(%2, 2f)
}
]])
  end)

  it("is linear: 2,000 functions one in the other, 20,000 one after the other", function()
    local body = x
    for i = 1, 20000 do
      local a = v "a"
      body = pl.func({ a }, op.add(a, pl.const(i + 0.5)))(body)
    end
    local nested = op.tanh(y)
    for _ = 1, 2000 do
      local a = v "a"
      nested = pl.func({ a }, op.add(op.exp(a), nested))(x)
    end
    local mod = pl.module { main = pl.func({ x, y }, op.add(body, nested)) }
    local start = os.clock()
    assert(pl.verify(lift(mod)))
    assert.is_true(os.clock() - start < 5)
  end)
end)

describe("EtaExpand", function()
  local x, z = v "x", v "z"
  local f = ir.GlobalVar("f", unary)
  local expand = pl.passes.EtaExpand { expand_global_var = true }

  it("writes names of functions out, once in a function, with their attributes", function()
    local h = v("h", unary)
    becomes(expand, pl.module {
      f = ir.Function({ x }, op.exp(x), nil, { Inline = 1 }),
      main = pl.func({ z }, ir.Let(h, f, op.add(h(z), f(z)))),
    }, [[
def @f(%x: float32, Inline=1) -> float32 {
  exp(%x)
}

def @main(%z: float32) -> float32 {
  %0 = fn (%eta_expand_param: float32, Inline=1) -> float32 {
    @f(%eta_expand_param)
  };
  let %h: fn (float32) -> float32 = %0;
  %1 = %h(%z);
  %2 = %0(%z);
  add(%1, %2)
}
]])
  end)

  it("makes one function for both branches", function()
    local p = v("p", "bool")
    becomes(expand, pl.module {
      f = pl.func({ x }, op.exp(x)),
      main = pl.func({ p, z }, ir.If(p, f(z), f(op.tanh(z)))),
    }, [[
def @f(%x: float32) -> float32 {
  exp(%x)
}

def @main(%p: bool, %z: float32) -> float32 {
  if (%p) {
    %0 = fn (%eta_expand_param: float32) -> float32 {
      @f(%eta_expand_param)
    };
    %0(%z)
  } else {
    %1 = tanh(%z);
    %0(%1)
  }
}
]])
  end)

  it("does nothing that it is not asked for", function()
    local mod = pl.module { f = pl.func({ x }, op.exp(x)), main = pl.func({ z }, f(z)) }
    assert.equal(mod, pl.passes.EtaExpand()(mod))
    assert.equal(mod, pl.passes.EtaExpand { expand_constructor = true }(mod))
  end)
end)
