-- DefuseOps and Inline: bodies of functions in the place of calls.

local pl = require "perilune"

local op, ir = pl.op, pl.ir

local float = pl.type "float32"
local function v(name) return pl.var(name, float) end
local function global(name) return ir.GlobalVar(name, "fn (float32) -> float32") end
local function marked(params, body) return ir.Function(params, body, nil, { Inline = 1 }) end

-- Without comments and version.
local function text(mod)
  return (tostring(mod):gsub("#%[version[^\n]*\n", ""):gsub(" /%*.-%*/", ""):gsub("\n+$", "\n"))
end

local function run(pass, mod)
  local out = pl.passes[pass]()(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  assert.equal(out, pl.passes[pass]()(out))
  return out
end

local function becomes(pass, mod, expected) assert.equal(expected, text(run(pass, mod))) end

describe("DefuseOps", function()
  local x, y, p = v "x", v "y", pl.var("p", "bool")

  it("undoes FuseOps", function()
    local e = op.exp(x)
    local mod = pl.module { main = pl.func({ p, x, y },
      op.add(ir.If(p, op.tanh(op.add(e, y)), op.abs(y)), op.multiply(e, op.exp(y)))) }
    local fused = pl.passes.FuseOps()(mod)
    assert.is_false(pl.equal(mod, fused))
    assert.is_true(pl.equal(mod, run("DefuseOps", fused)))
  end)

  it("takes a function that is called twice apart twice", function()
    local a = v "a"
    local f = pl.func({ a }, op.exp(a))
    becomes("DefuseOps", pl.module { main = pl.func({ x, y }, op.add(f(x), f(y))) }, [[
def @main(%x: float32, %y: float32) -> float32 {
  %0 = exp(%x);
  %1 = exp(%y);
  add(%0, %1)
}
]])
  end)

  it("takes functions in functions apart, whose operands come later", function()
    local a, b = v "a", v "b"
    local inner = pl.func({ b }, op.tanh(op.add(b, x)))
    local f = pl.func({ a }, inner(op.exp(a)))
    becomes("DefuseOps", pl.module { main = pl.func({ x }, f(op.abs(x))) }, [[
def @main(%x: float32) -> float32 {
  %0 = abs(%x);
  %1 = exp(%0);
  %2 = add(%1, %x);
  tanh(%2)
}
]])
  end)

  it("takes apart what functions give that are called where they stand", function()
    local a, b, f = v "a", v "b", pl.var("f", "fn (float32) -> float32")
    local curried = pl.func({ a }, pl.func({ b }, op.add(a, op.exp(b))))
    becomes("DefuseOps", pl.module { main = pl.func({ x, y }, curried(x)(y)) }, [[
def @main(%x: float32, %y: float32) -> float32 {
  %0 = exp(%y);
  add(%x, %0)
}
]])
    local twice = pl.func({ f }, f(f(x)))
    becomes("DefuseOps", pl.module { main = pl.func({ x }, twice(pl.func({ b }, op.exp(b)))) }, [[
def @main(%x: float32) -> float32 {
  %0 = exp(%x);
  exp(%0)
}
]])
  end)

  it("ends, however deep the functions are that give functions", function()
    local function deep(n)
      local head = {}
      for i = 1, n do head[i] = ("fn (%%x%d: float32) {"):format(i) end
      return assert(pl.parse(([[
        #[version = "0.0.5"]
        def @main(%%x: float32) { (%s %%x1 %s)(%%x)%s }]]):format(table.concat(head),
          ("}"):rep(n), ("(1f)"):rep(n - 1))))
    end
    local out = run("DefuseOps", deep(40))
    assert.equal(out.main.params[1], out.main.body)
    assert(pl.verify(pl.passes.DefuseOps()(deep(3000))))
  end)

  it("gives variables that are bound twice names of their own", function()
    local a, b = v "a", v "b"
    local f = pl.func({ a }, ir.Let(b, op.exp(a), op.add(b, b)))
    local out = run("DefuseOps", pl.module { main = pl.func({ x, y }, op.add(f(x), f(y))) })
    local vars = {}
    for node in out.main:nodes() do
      if node.kind == "Var" then
        for _, other in ipairs(vars) do assert.is_false(pl.equal(other, node)) end
        vars[#vars + 1] = node
      end
    end
    assert.equal(4, #vars)
  end)

  it("keeps a function that is used as a value, and takes its calls", function()
    local a, h = v "a", pl.var("h", "fn (float32) -> float32")
    local f = pl.func({ a }, op.exp(a))
    becomes("DefuseOps", pl.module { main = pl.func({ x }, ir.Let(h, f, op.add(h(x), f(x)))) }, [[
def @main(%x: float32) -> float32 {
  let %h: fn (float32) -> float32 = fn (%a: float32) -> float32 {
    exp(%a)
  };
  %0 = %h(%x);
  %1 = exp(%x);
  add(%0, %1)
}
]])
  end)

  it("is linear: 20,000 functions one in the other, and one after the other", function()
    local body = x
    for _ = 1, 20000 do
      local a = v "a"
      body = pl.func({ a }, op.tanh(a))(body)
    end
    local nested = y
    for _ = 1, 20000 do
      local a = v "a"
      nested = pl.func({ a }, op.add(a, nested))(x)
    end
    local mod = pl.module { main = pl.func({ x, y }, op.add(body, nested)) }
    local start = os.clock()
    assert(pl.verify(pl.passes.DefuseOps()(mod)))
    assert.is_true(os.clock() - start < 5)
  end)
end)

describe("Inline", function()
  local x, y, z = v "x", v "y", v "z"

  it("puts bodies where functions are called, and removes the functions", function()
    becomes("Inline", pl.module {
      f = marked({ x }, op.exp(x)),
      g = marked({ y }, op.tanh(global "f"(y))),
      main = pl.func({ z }, op.add(global "g"(z), global "g"(op.abs(z)))),
    }, [[
def @main(%z: float32) -> float32 {
  %0 = exp(%z);
  %1 = abs(%z);
  %2 = exp(%1);
  %3 = tanh(%0);
  %4 = tanh(%2);
  add(%3, %4)
}
]])
  end)

  it("writes a function out that is used as a value", function()
    local h = pl.var("h", "fn (float32) -> float32")
    becomes("Inline", pl.module {
      f = marked({ x }, op.exp(x)),
      main = pl.func({ z }, ir.Let(h, global "f", op.add(h(z), global "f"(z)))),
    }, [[
def @main(%z: float32) -> float32 {
  let %h: fn (float32) -> float32 = fn (%x: float32, Inline=1) -> float32 {
    exp(%x)
  };
  %0 = %h(%z);
  %1 = exp(%z);
  add(%0, %1)
}
]])
  end)

  it("writes another compiler's function out where it is called", function()
    becomes("Inline", pl.module {
      f = ir.Function({ x }, op.exp(x), nil, { Inline = 1, Compiler = "dnnl" }),
      main = pl.func({ z }, global "f"(z)),
    }, [[
def @main(%z: float32) -> float32 {
  %0 = fn (%x: float32, Compiler="dnnl", Inline=1) -> float32 {
    exp(%x)
  };
  %0(%z)
}
]])
  end)

  it("leaves functions alone that are not marked, or call themselves", function()
    local mod = pl.module {
      f = pl.func({ x }, op.exp(x)),
      main = pl.func({ z }, global "f"(z)),
    }
    assert.equal(mod, pl.passes.Inline()(mod))
    mod = pl.module {
      f = marked({ x }, global "g"(x)),
      g = marked({ y }, global "f"(y)),
      main = pl.func({ z }, global "f"(z)),
    }
    assert.equal(mod, pl.passes.Inline()(mod))
  end)

  it("inlines into functions that call themselves", function()
    becomes("Inline", pl.module {
      f = marked({ x }, op.exp(x)),
      main = pl.func({ z }, ir.If(op.less(z, pl.const(1.0)), global "main"(global "f"(z)), z)),
    }, [[
def @main(%z: float32) -> float32 {
  %0 = less(%z, 1f);
  if (%0) {
    %1 = exp(%z);
    @main(%1)
  } else {
    %z
  }
}
]])
  end)

  it("keeps a marked function that nothing referred to", function()
    local mod = pl.module { f = marked({ x }, op.exp(x)), main = pl.func({ z }, z) }
    assert.equal(mod, pl.passes.Inline()(mod))
  end)

  it("refuses bodies that know no bound", function()
    local functions = { main = pl.func({ z }, global "f1"(z)) }
    for i = 1, 60 do
      local a, f = v "a", global("f" .. i + 1)
      functions["f" .. i] = marked({ a }, i == 60 and op.exp(a) or op.add(f(a), f(a)))
    end
    local mod = pl.module(functions)
    local ok, err = pcall(pl.passes.Inline(), mod)
    assert.is_false(ok)
    assert.matches("more than 4194304 nodes", tostring(err))
  end)
end)
