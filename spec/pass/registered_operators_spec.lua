-- Registered operators in passes: merged, fused and rewritten as their traits say, on threads and
-- with the cache of results.

local pl = require "perilune"

local count = 0

local function register(spec)
  count = count + 1
  local name = "spec_pass.op" .. count
  spec.args = spec.args or { "x" }
  spec.infer = spec.infer or "same"
  pl.ops[name] = spec
  return pl.op[name], name
end

local function var(name) return pl.var(name, "Tensor[(2, 3), float32]") end

local function module_of(params, body) return pl.module { main = pl.func(params, body) } end

local function number_of(module, op)
  local n = 0
  pl.post_order(module.main, function(node)
    if node.kind == "Call" and node.op == op then n = n + 1 end
  end)
  return n
end

describe("traits of a registered operator", function()
  it("decide what is merged and what is dropped", function()
    for traits, left in pairs { pure = 1, stateful = 2, random = 2 } do
      local op = register { traits = { traits } }
      local x = var "x"
      local module = module_of({ x }, pl.op.add(op(x), op(x)))
      local merged = pl.passes.EliminateCommonSubexpr()(module)
      assert.equal(left, number_of(merged, op), traits)
      local y, unused = var "y", var "unused"
      module = module_of({ y }, pl.let(unused, op(y), y))
      local dead = pl.passes.DeadCodeElimination()(module)
      assert.equal(traits == "pure" and 0 or 1, number_of(dead, op), traits)
    end
  end)

  it("are patterns of FuseOps", function()
    for trait, pattern in pairs {
      elementwise = 0, broadcast = 1, injective = 2, reduce = 3, opaque = 8,
    } do
      local op = register { traits = { trait } }
      assert.equal(pattern, pl.op_attr(op, "TOpPattern"))
    end
    local op, opaque = register { traits = { "elementwise" } }, register {}
    local x = var "x"
    local fused = pl.passes.FuseOps()(module_of({ x }, pl.op.nn.relu(op(pl.op.abs(x)))))
    assert.equal("Function", fused.main.body.callee.kind)
    assert.equal("Var", fused.main.body.args[1].kind)
    local apart = pl.passes.FuseOps()(module_of({ x }, pl.op.nn.relu(opaque(pl.op.abs(x)))))
    assert.equal("Call", apart.main.body.args[1].kind)
  end)

  it("hold for rules: commutative operands match in either order", function()
    local op, name = register { args = { "a", "b" }, traits = { "commutative" } }
    local set = pl.rules { ("%s(abs(?x), ?y) => subtract(?x, ?y)"):format(name) }
    local x, y = var "x", var "y"
    for _, body in ipairs { op(pl.op.abs(x), y), op(y, pl.op.abs(x)) } do
      assert.equal(pl.op.subtract, set:apply(module_of({ x, y }, body)).main.body.op)
    end
  end)
end)

describe("rules with registered operators", function()
  it("match and make calls with attributes", function()
    local op, name = register { attrs = { axis = -1, scale = 1.0 } }
    local other, made = register { attrs = { axis = 0 }, results = 1 }
    local set = pl.rules {
      ("%s(nn.relu(?x), axis=?a) => %s(?x, axis=?a)"):format(name, made),
    }
    local x = var "x"
    local result = set:apply(module_of({ x }, op(pl.op.nn.relu(x), { axis = 1 }))).main.body
    assert.equal(other, result.op)
    assert.equal(1, result.attrs.axis)
    -- a default is matched as if it were said
    result = set:apply(module_of({ x }, op(pl.op.nn.relu(x)))).main.body
    assert.equal(-1, result.attrs.axis)
  end)

  it("are refused when an attribute is none of the operator's", function()
    local _, name = register { attrs = { axis = -1 } }
    local ok, why = pcall(pl.rules, { ("%s(?x, axes=?a) => ?x"):format(name) })
    assert.is_false(ok)
    assert.truthy(tostring(why):find("axes", 1, true), tostring(why))
  end)

  it("can be replaced in Lua, and by patterns", function()
    local op, name = register {}
    local x = var "x"
    local module = module_of({ x }, op(x))
    local set = pl.rules { { name .. "(?x)", function(m) return pl.op.abs(m.x) end } }
    assert.equal(pl.op.abs, set:apply(module).main.body.op)
    local dfp = pl.dataflow_pattern
    assert.is_true(dfp.is_op(name)(dfp.wildcard()):match(module.main.body))
  end)

  it("has attributes of operators", function()
    local op = register {}
    assert.is_true(pl.op_attr(op, "target.spec", 3))
    assert.equal(3, (pl.op_attr(op, "target.spec")))
    pl.op_attr(op, "target.spec", nil)
  end)
end)

-- Many functions, large enough for threads; every second one calls the operator.
local function many(op)
  local functions = {}
  for i = 1, 8 do
    local x = var "x"
    local y = x
    for k = 1, 1500 do
      y = k % 3 == 0 and pl.op.add(y, pl.const(0.0)) or pl.op.tanh(y)
      if i % 2 == 0 and k % 500 == 0 then y = op(y) end
    end
    functions["f" .. i] = pl.func({ x }, y)
  end
  return pl.module(functions)
end

local function run(pass, module, config)
  return pl.with(pl.context { config = config }, pass, module)
end

describe("a pass on threads", function()
  it("types calls of registered operators in the script's thread", function()
    local op = register { infer = function(types) return types.x end }
    local module = many(op)
    local alone = run(pl.passes.SimplifyExpr(), module, { threads = 1 })
    local shared = run(pl.passes.SimplifyExpr(), module, { threads = 4 })
    assert.not_equal(tostring(module), tostring(alone))
    assert.equal(tostring(alone), tostring(shared))
  end)

  it("is done again in the script's thread when a rule makes such calls there", function()
    local calls = 0
    local _, name = register { infer = function(types)
      calls = calls + 1
      return types.x
    end }
    local set = pl.rules("spec_threads" .. count) { ("tanh(tanh(?x)) => %s(?x)"):format(name) }
    local pass = pl.sequential { set }
    local module = many(pl.op.abs)
    local alone = run(pass, module, { threads = 1 })
    local once = calls
    local shared = run(pass, module, { threads = 4 })
    assert.is_true(once > 0)
    assert.equal(2 * once, calls)
    assert.equal(tostring(alone), tostring(shared))
    assert.truthy(tostring(alone):find(name, 1, true))
  end)
end)

describe("the cache of results", function()
  it("keeps nothing for which a function of an operator ran", function()
    local calls = 0
    local op = register { eval = function(inputs)
      calls = calls + 1
      return inputs.x
    end }
    local module = module_of({}, op(pl.const(pl.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } })))
    for i = 1, 3 do
      run(pl.passes.FoldConstant(), module, { cache = 1000000 })
      assert.equal(i, calls)
    end
  end)
end)

describe("an operator whose function fails in a pass", function()
  it("leaves the module as it was", function()
    local broken = false
    local op, name = register { infer = function(types)
      if broken then error "broken" end
      return types.x
    end }
    local x = var "x"
    local module = module_of({ x }, op(pl.op.abs(pl.op.nn.relu(x))))
    local before = tostring(module)
    local set = pl.rules { ("nn.relu(?x) => %s(?x)"):format(name) }
    broken = true
    local ok, why = pcall(pl.sequential { "SimplifyExpr", set }, module)
    assert.is_false(ok)
    assert.truthy(tostring(why):find(name, 1, true), tostring(why))
    assert.equal(before, tostring(module))
  end)
end)
