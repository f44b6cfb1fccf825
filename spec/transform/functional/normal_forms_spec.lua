-- The passes that give a program another form: what goes in, what comes out, in
-- Relay text without the types; and that both compute the same.

local pl = require "perilune"

local op, ir = pl.op, pl.ir

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end
local bool = pl.type { shape = {}, dtype = "bool" }
local function module(vars, body) return pl.module { main = pl.func(vars, body) } end

-- Without comments, version and the names' types.
local function text(mod)
  return (tostring(mod):gsub("#%[version[^\n]*\n", ""):gsub(" /%*.-%*/", ""):gsub("\n+$", "\n"))
end

-- The result of a pass: valid, final, and computes the same.
local function run(pass, mod)
  local out = type(pass) == "string" and pl.passes[pass]()(mod) or pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  assert.equal(out, type(pass) == "string" and pl.passes[pass]()(out) or pass(out))
  return out
end

local function becomes(pass, mod, expected)
  assert.equal(expected, text(run(pass, mod)))
end

local function stays(pass, mod) assert.equal(mod, run(pass, mod)) end

-- A chain of lets, each of the one before.
local function chain(n, x)
  local vars = { [0] = x }
  for i = 1, n do vars[i] = pl.var("v", f32()) end
  local body = vars[n]
  for i = n, 1, -1 do body = ir.Let(vars[i], op.tanh(vars[i - 1]), body) end
  return body
end

-- Seconds that a pass takes.
local function seconds(pass, mod)
  local start = os.clock()
  assert(pl.verify(pl.passes[pass]()(mod)))
  return os.clock() - start
end

-- make(n) is a module of size n.
local function check_linear(pass, n, make)
  assert.is_true(seconds(pass, make(n)) < 30 * seconds(pass, make(n // 10)) + 0.02)
end

describe("ToANormalForm", function()
  local x, p = pl.var("x", f32()), pl.var("p", bool)

  it("binds each computation, what branches share around them", function()
    local e = op.exp(x)
    becomes("ToANormalForm", module({ p, x }, op.add(ir.If(p, op.add(e, e), op.tanh(x)), e)), [[
def @main(%p: bool, %x: float32) -> float32 {
  let %x1: float32 = exp(%x);
  let %x2: float32 = if (%p) {
    let %x3: float32 = add(%x1, %x1);
    %x3
  } else {
    let %x4: float32 = tanh(%x);
    %x4
  };
  let %x5: float32 = add(%x2, %x1);
  %x5
}
]])
  end)

  it("binds the value of each let once more, behind the run", function()
    local a, b = pl.var("a", f32()), pl.var("b", f32())
    local lets = ir.Let(a, op.exp(x), ir.Let(b, op.add(a, a), op.abs(b)))
    becomes("ToANormalForm", module({ x }, lets), [[
def @main(%x: float32) -> float32 {
  let %a: float32 = exp(%x);
  let %b: float32 = add(%a, %a);
  let %x1: float32 = abs(%b);
  let %x2: float32 = %x1;
  let %x3: float32 = %x2;
  %x3
}
]])
  end)

  it("takes the lets of a value before it", function()
    local a, b = pl.var("a", f32()), pl.var("b", f32())
    local lets = ir.Let(a, ir.Let(b, op.exp(x), op.tanh(b)), op.abs(a))
    becomes("ToANormalForm", module({ x }, lets), [[
def @main(%x: float32) -> float32 {
  let %b: float32 = exp(%x);
  let %x1: float32 = tanh(%b);
  let %a: float32 = %x1;
  let %x2: float32 = abs(%a);
  let %x3: float32 = %x2;
  %x3
}
]])
  end)

  it("binds functions, and forms their bodies", function()
    local y = pl.var("y", f32())
    local f = pl.func({ y }, op.add(op.exp(y), x))
    becomes("ToANormalForm", module({ x }, f(x)), [[
def @main(%x: float32) -> float32 {
  let %x1: fn (float32) -> float32 = fn (%y: float32) -> float32 {
    let %x2: float32 = exp(%y);
    let %x3: float32 = add(%x2, %x);
    %x3
  };
  let %x4: float32 = %x1(%x);
  %x4
}
]])
  end)

  it("keeps primitive functions whole", function()
    local y = pl.var("y", f32())
    local f = ir.Function({ y }, op.tanh(op.exp(y)), nil, { Primitive = 1 })
    becomes("ToANormalForm", module({ x }, f(x)), [[
def @main(%x: float32) -> float32 {
  let %x1: fn (float32) -> float32 = fn (%y: float32, Primitive=1) -> float32 {
    %0 = exp(%y);
    tanh(%0)
  };
  let %x2: float32 = %x1(%x);
  %x2
}
]])
  end)

  it("keeps the order of effects", function()
    local r = pl.var("r", "ref(float32)")
    local write = ir.RefWrite(r, op.exp(x))
    local before, after = ir.RefRead(r), ir.RefRead(r)
    becomes("ToANormalForm",
      module({ x }, ir.Let(r, ir.RefCreate(x), pl.tuple { before, write, after })), [[
def @main(%x: float32) -> (float32, (), float32) {
  let %r: ref(float32) = ref(%x);
  let %x1: float32 = ref_read(%r);
  let %x2: float32 = exp(%x);
  let %x3: () = ref_write(%r, %x2);
  let %x4: float32 = ref_read(%r);
  let %x5: (float32, (), float32) = (%x1, %x3, %x4);
  let %x6: (float32, (), float32) = %x5;
  %x6
}
]])
  end)

  it("leaves alone what has the form", function()
    stays("ToANormalForm", module({ x }, chain(10, x)))
    stays("ToANormalForm", module({ x }, x))
  end)

  it("is linear: 100,000 computations, blocks 20,000 deep", function()
    check_linear("ToANormalForm", 100000, function(n)
      local body = x
      for _ = 1, n do body = op.tanh(body) end
      return module({ x }, body)
    end)
    check_linear("ToANormalForm", 20000, function(n)
      local body = x
      for _ = 1, n do body = ir.If(p, op.tanh(body), x) end
      return module({ p, x }, body)
    end)
  end)
end)

describe("ToGraphNormalForm", function()
  local x = pl.var("x", f32())

  it("puts values where their variables were", function()
    local a, b = pl.var("a", f32()), pl.var("b", f32())
    becomes("ToGraphNormalForm",
      module({ x }, ir.Let(a, op.exp(x), ir.Let(b, op.add(a, a), op.multiply(b, a)))), [[
def @main(%x: float32) -> float32 {
  %0 = exp(%x);
  %1 = add(%0, %0);
  multiply(%1, %0)
}
]])
  end)

  it("takes lets out of values", function()
    local a, b = pl.var("a", f32()), pl.var("b", f32())
    becomes("ToGraphNormalForm",
      module({ x }, ir.Let(a, ir.Let(b, op.exp(x), op.tanh(b)), op.abs(a))), [[
def @main(%x: float32) -> float32 {
  %0 = exp(%x);
  %1 = tanh(%0);
  abs(%1)
}
]])
  end)

  it("keeps the effects of values that nobody uses", function()
    local r, u = pl.var("r"), pl.var("u")
    local out = run("ToGraphNormalForm", module({ x },
      ir.Let(r, ir.RefCreate(x), ir.Let(u, ir.RefWrite(r, op.exp(x)), ir.RefRead(r)))))
    local kinds = {}
    for node in out.main:nodes() do kinds[#kinds + 1] = node.kind end
    assert.equal("Var RefCreate Call RefWrite RefRead", table.concat(kinds, " "))
  end)

  it("keeps the let of a function that calls itself", function()
    local f, n = pl.var("f", "fn (int32) -> int32"), pl.var("n", "int32")
    local stop = op.less_equal(n, pl.const(pl.tensor(0, "int32")))
    local again = op.subtract(n, pl.const(pl.tensor(1, "int32")))
    local k = pl.var("k", "int32")
    stays("ToGraphNormalForm",
      module({ k }, ir.Let(f, pl.func({ n }, ir.If(stop, k, f(again))), f(k))))
  end)

  it("drops calls that nobody uses, once it is seen that they have no effect", function()
    local f, a, b, u, g = pl.var "f", pl.var("a", f32()), pl.var("b", f32()), pl.var "u", pl.var "g"
    local block = ir.Let(f, pl.func({ a }, a), pl.func({ b }, x))
    local mod = module({ x }, ir.Let(g, block, ir.Let(u, g(x), op.exp(x))))
    becomes("ToGraphNormalForm", mod, [[
def @main(%x: float32) -> float32 {
  exp(%x)
}
]])
  end)

  it("drops the let of a function that only a function nobody needs calls", function()
    local mod = assert(pl.parse [[
      #[version = "0.0.5"]
      def @main(%x: int32) -> int32 {
        let %f = fn (%n: int32) -> int32 {
          let %unused = fn (%m: int32) -> int32 { %f(%m) };
          add(%n, %x)
        };
        7
      }]])
    becomes("ToGraphNormalForm", mod, [[
def @main(%x: int32) -> int32 {
  7
}
]])
  end)

  it("undoes ToANormalForm", function()
    local p = pl.var("p", bool)
    local e = op.exp(x)
    local mod = module({ p, x }, op.add(ir.If(p, op.add(e, e), op.tanh(x)), e))
    assert.is_true(pl.equal(mod, run("ToGraphNormalForm", pl.passes.ToANormalForm()(mod))))
  end)

  it("is linear: 100,000 lets", function()
    check_linear("ToGraphNormalForm", 100000, function(n) return module({ x }, chain(n, x)) end)
  end)
end)

describe("ToBasicBlockNormalForm", function()
  local x, p, q = pl.var("x", f32()), pl.var("p", bool), pl.var("q", bool)

  it("binds what several blocks need, and nothing else", function()
    local e = op.exp(x)
    becomes("ToBasicBlockNormalForm",
      module({ p, x }, op.add(ir.If(p, op.add(e, e), op.tanh(op.abs(x))), e)), [[
def @main(%p: bool, %x: float32) -> float32 {
  let %x1: float32 = exp(%x);
  %1 = if (%p) {
    add(%x1, %x1)
  } else {
    %0 = abs(%x);
    tanh(%0)
  };
  add(%1, %x1)
}
]])
  end)

  it("binds around the nearest common block", function()
    local e = op.exp(x)
    local t = op.tanh(e)
    becomes("ToBasicBlockNormalForm", module({ p, q, x },
      ir.If(p, ir.If(q, op.add(t, e), t), ir.If(q, op.abs(x), x))), [[
def @main(%p: bool, %q: bool, %x: float32) -> float32 {
  if (%p) {
    %0 = exp(%x);
    let %x1: float32 = tanh(%0);
    if (%q) {
      add(%x1, %0)
    } else {
      %x1
    }
  } else {
    if (%q) {
      abs(%x)
    } else {
      %x
    }
  }
}
]])
  end)

  it("leaves one block alone", function()
    local e = op.exp(x)
    stays("ToBasicBlockNormalForm", module({ x }, op.add(op.tanh(e), e)))
    stays("ToBasicBlockNormalForm", module({ x }, chain(3, x)))
  end)

  it("is what the check asks for", function()
    local e = op.exp(x)
    local mod = module({ p, x }, ir.If(p, op.add(e, e), op.tanh(e)))
    local holds, node = pl.is_basic_block_normal_form(mod)
    assert.is_false(holds)
    assert.equal("exp", node.op.name)
    assert.is_true(pl.is_basic_block_normal_form(run("ToBasicBlockNormalForm", mod)))
  end)

  it("is linear: branches 20,000 deep that share 20,000 values", function()
    check_linear("ToBasicBlockNormalForm", 20000, function(n)
      local body = x
      for _ = 1, n do
        local shared = op.tanh(body)
        body = ir.If(p, op.exp(shared), shared)
      end
      return module({ p, x }, body)
    end)
  end)
end)

-- TVM's cases of check_basic_block_normal_form.
describe("the check of basic block normal form", function()
  local function holds(a) return (pl.is_basic_block_normal_form(a)) end

  it("takes one block", function()
    local x = pl.var "x"
    assert.is_true(holds(op.add(x, op.add(x, x))))
  end)

  it("takes a let", function()
    local x, y = pl.var "x", pl.var "y"
    assert.is_true(holds(ir.Let(y, x, y)))
  end)

  it("refuses a free variable of two branches, and takes a bound one", function()
    local cond, shared, bound = pl.var("cond", bool), pl.var "shared", pl.var("b", f32(1))
    local body = ir.If(cond, shared, op.add(shared, shared))
    local ok, node = pl.is_basic_block_normal_form(body)
    assert.is_false(ok)
    assert.equal("shared", node.name)
    assert.is_true(holds(ir.Let(shared, bound, body)))
  end)

  it("refuses a value of two branches, and takes a bound one", function()
    local x, v = pl.var("x", f32()), pl.var "v"
    local sum = op.add(x, pl.const(1.0))
    local function branches(value)
      return ir.If(op.equal(x, pl.const(2.0)), op.multiply(value, pl.const(2.0)),
        op.multiply(value, pl.const(1.0)))
    end
    assert.is_false(holds(pl.func({ x }, branches(sum))))
    assert.is_true(holds(pl.func({ x }, ir.Let(v, sum, branches(v)))))
    assert.is_false(holds(branches(sum)))
  end)

  it("refuses a value of two functions", function()
    local x, y, z = pl.var("x", f32(1)), pl.var("y", f32(1)), pl.var("z", f32(1))
    local sum = op.add(x, x)
    local pair = pl.tuple { pl.func({ y }, op.add(sum, y)), pl.func({ z }, op.add(sum, z)) }
    assert.is_false(holds(pl.func({ x }, pair)))
    local mod = pl.module { main = pl.func({ x }, pair) }
    assert.is_true(holds(pl.passes.ToBasicBlockNormalForm()(mod)))
  end)

  it("raises at what is no program", function()
    assert.has_error(function() pl.is_basic_block_normal_form "x" end)
  end)
end)

describe("ToANormalForm after FuseOps", function()
  it("binds constants in the order of the arguments", function()
    local mod = assert(pl.parse([[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  add(meta[relay.Constant][0], multiply(%x, meta[relay.Constant][1]))
}]], { init_meta = { ["relay.Constant"] = { pl.tensor({ 1, 2 }, "float32"),
      pl.tensor({ 3, 4 }, "float32") } } }))
    -- Like TVM's FuseMutator, FuseOps takes the operands of operands first.
    local out = pl.sequential { "FuseOps", "ToANormalForm" } (mod)
    assert(pl.verify(out))
    assert(pl.check(mod, out))
    local bound = {}
    for node in out.main:nodes() do
      if node.kind == "Let" and node.value.kind == "Constant" then
        bound[#bound + 1] = node.value.data:to_table()[1]
      end
    end
    assert.same({ 3, 1 }, bound)
  end)

  it("binds an operand before the effect of the next one", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @f(%x: int32) -> int32 { @f(%x) }
def @main(%x: int32) -> int32 { subtract(0, @f(%x)) }]])
    local kinds = {}
    for node in pl.passes.ToANormalForm()(mod).main:nodes() do
      if node.kind == "Let" then kinds[#kinds + 1] = node.value.kind end
    end
    assert.same({ "Constant", "Call", "Call" }, kinds)
  end)
end)
