-- Matches, patterns and constructors, built and taken apart by scripts.

local pl = require "perilune"
local ir = pl.ir

local vector = pl.type "Tensor[(2), float32]"
local lists = pl.parse '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil }'

-- match (l) { Cons(h, t) => h, Nil => x, _ => x }
local function sample(complete)
  local l, x = pl.var "l", pl.var("x", vector)
  local h, t = pl.var("h", vector), pl.var "t"
  local cons = ir.PatternConstructor("Cons", { ir.PatternVar(h), ir.PatternVar(t) })
  return pl.func({ l, x }, pl.match(l, {
    { cons, pl.op.tanh(h) },
    { ir.PatternConstructor "Nil", x },
    { "_", x },
  }, { complete = complete }))
end

describe("a match", function()
  it("has data, clauses and whether they are complete", function()
    local match = sample(false).body
    assert.equal("Match", match.kind)
    assert.equal("l", match.data.name)
    assert.is_false(match.complete)
    assert.is_true(sample().body.complete)
    assert.equal(3, #match.clauses)
    local first = match.clauses[1]
    assert.equal("Clause", first.kind)
    assert.equal("Cons", first.lhs.constructor)
    assert.equal(2, #first.lhs.patterns)
    assert.equal("h", first.lhs.patterns[1].var.name)
    assert.equal(pl.op.tanh, first.rhs.op)
    assert.equal("PatternWildcard", match.clauses[3].lhs.kind)
  end)

  it("is the same when it is sealed", function()
    local mod = lists:with { main = sample(false) }
    local match = mod.main.body
    assert.equal(3, #match.clauses)
    assert.equal("h", match.clauses[1].lhs.patterns[1].var.name)
    assert.is_true(match.clauses[1].rhs[1] == match.clauses[1].lhs.patterns[1].var)
    assert.is_false(match.complete)
    assert.equal("x", match.clauses[2].rhs.name)
    assert(pl.verify(mod))
  end)

  it("takes patterns as they are written: variables, lists, _", function()
    local p, a = pl.var "p", pl.var "a"
    local match = pl.match(p, { { { a, "_", {} }, a } })
    local tuple = match.clauses[1].lhs
    assert.equal("PatternTuple", tuple.kind)
    assert.equal("PatternVar PatternWildcard PatternTuple",
      tuple[1].kind .. " " .. tuple[2].kind .. " " .. tuple[3].kind)
    assert.equal(0, #tuple[3].patterns)
    assert.is_true(tuple[1].var == a)
  end)

  it("takes the clauses of another", function()
    local f = sample()
    local match = f.body
    local fewer = pl.match(match.data, { match.clauses[1], match.clauses[3] })
    assert.equal(2, #fewer.clauses)
    assert(pl.verify(pl.func(f.params, fewer)))
  end)

  it("binds the variables of its patterns", function()
    local names = {}
    for i, var in ipairs(pl.bound_vars(sample().body)) do names[i] = var.name end
    assert.same({ "h", "t" }, names)
    names = {}
    for i, var in ipairs(pl.free_vars(sample().body)) do names[i] = var.name end
    assert.same({ "l", "x" }, names)
  end)

  it("is gone into by visitors: data, then arm by arm: variables, pattern, body", function()
    local seen = {}
    pl.visitor { leave = function(node) seen[#seen + 1] = node.kind end } (sample().body)
    assert.equal("Var Var Var PatternVar PatternVar PatternConstructor Clause Call " ..
      "PatternConstructor Clause Var PatternWildcard Clause Match", table.concat(seen, " "))
  end)

  it("keeps complete, patterns and the rest through a rewrite", function()
    for _, complete in ipairs { true, false } do
      local f = sample(complete)
      local same = pl.rewrite(f, { Call = function(_, post) return post end })
      assert.is_true(pl.equal(f, same))
      local out = pl.rewrite(f, { Call = function(_, post) return pl.op.nn.relu(post[1]) end })
      assert.equal(complete, out.body.complete)
      assert.equal(pl.op.nn.relu, out.body.clauses[1].rhs.op)
      assert.equal("Cons", out.body.clauses[1].lhs.constructor)
      assert(pl.verify(out))
    end
  end)

  it("has patterns that are rewritten", function()
    local out = pl.rewrite(sample(), {
      PatternConstructor = function(pre)
        if pre.constructor == "Nil" then return ir.PatternWildcard() end
      end,
    })
    assert.equal("PatternWildcard", out.body.clauses[2].lhs.kind)
    assert.equal("PatternConstructor", out.body.clauses[1].lhs.kind)
    assert(pl.verify(out))
  end)

  it("refuses what is no pattern", function()
    local x = pl.var("x", vector)
    assert.has_error(function() pl.match(x, { { x + 1, x } }) end)
    assert.has_error(function() ir.PatternTuple { x } end)
    assert.has_error(function() ir.PatternVar(x + 1) end)
    assert.has_error(function() pl.match(x, { { "_" } , 1 }) end)
  end)
end)

describe("a constructor", function()
  it("has a name and is called", function()
    local cons = ir.Constructor "Cons"
    assert.equal("Constructor", cons.kind)
    assert.equal("Cons", cons.name)
    local x = pl.var("x", vector)
    local call = cons(x, ir.Constructor("Nil")())
    assert.equal("Cons", call.callee.name)
    assert.equal(0, #call.args[2].args)
    assert.equal("Cons", ir.PatternConstructor(cons).constructor)
  end)
end)

describe("with", function()
  local x, y = pl.var("x", vector), pl.var("y", vector)

  it("gives the node itself when nothing changes", function()
    local f = pl.func({ x }, pl.op.nn.softmax(x, { axis = 0 }), nil, { Inline = 1 })
    local nodes = { f, f.body, x, pl.tuple(x, y), pl.ir.RefCreate(x), sample().body, pl.const(1) }
    for _, node in ipairs(nodes) do assert.is_true(rawequal(node, node:with {})) end
    assert.is_true(rawequal(f, f:with { params = f.params, body = f.body, attrs = { Inline = 1 } }))
    assert.is_true(rawequal(f.body, f.body:with { op = "nn.softmax", args = { x },
      attrs = { axis = 0 } }))
    assert.is_true(rawequal(x, x:with { name = "x", type = "Tensor[(2), float32]" }))
    local tuple = pl.tuple(x, y)
    assert.is_true(rawequal(tuple, tuple:with { fields = { x, y } }))
  end)

  it("changes a match and its patterns", function()
    local match = sample().body
    local other = match:with { complete = false }
    assert.is_false(other.complete)
    assert.equal(3, #other.clauses)
    assert.equal(2, #match:with { clauses = { match.clauses[1], match.clauses[2] } }.clauses)
    local pattern = match.clauses[1].lhs
    assert.equal("Snoc", pattern:with { constructor = "Snoc" }.constructor)
    assert.is_true(rawequal(pattern, pattern:with { patterns = pattern.patterns }))
    local var = ir.PatternVar(x)
    assert.is_true(var:with { var = y }.var == y)
  end)

  it("turns a call of an operator into one of an expression, and back", function()
    local g = pl.global("g", "fn (Tensor[(2), float32]) -> Tensor[(2), float32]")
    local call = pl.op.tanh(x):with { callee = g }
    assert.is_nil(call.op)
    assert.equal("g", call.callee.name)
    assert.equal(pl.op.tanh, call:with { op = "tanh" }.op)
  end)

  it("refuses fields that there are not", function()
    assert.has_error(function() x:with { body = y } end)
    assert.has_error(function() pl.tuple(x):with { x } end)
    assert.has_error(function() pl.ir.Absent():with {} end)
  end)
end)

describe("a generic function", function()
  it("has type parameters", function()
    local a = ir.TypeVar "A"
    local v = pl.var("v", a)
    local f = pl.func({ v }, v, nil, nil, { a })
    assert.same({ a }, f.type_params)
    assert.same({}, pl.func({ v }, v).type_params)
    assert.same({ a }, pl.bound_type_vars(f))
    assert.same({}, pl.free_type_vars(f))
    assert.same({ a }, pl.free_type_vars(pl.func({ v }, v)))
    assert.same({ a }, f:with { body = pl.tuple(v, v) }.type_params)
    assert.is_true(rawequal(f, f:with { type_params = { a } }))
    assert.has_error(function() pl.func({ v }, v, nil, nil, { vector }) end)
  end)
end)
