-- Rewriting by functions: pl.mutator.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

describe("a mutator", function()
  local x = pl.var("x", f32(2))
  local tanh, relu = pl.op.tanh, pl.op.nn.relu

  it("that answers nil gives the very same function and module", function()
    local mod = pl.module { main = pl.func({ x }, tanh(x) + 1) }
    local calls = 0
    local m = pl.mutator { Call = function() calls = calls + 1 end }
    assert.is_true(rawequal(mod.main, m(mod.main)))
    assert.equal(mod, m(mod))
    assert.equal(4, calls)
  end)

  it("replaces nodes", function()
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then return relu(call.args[1]) end
    end }
    local f = m(pl.func({ x }, tanh(tanh(x) + 1)))
    assert.is_true(pl.equal(f, pl.func({ x }, relu(relu(x) + 1))))
    assert(pl.verify(f))
  end)

  it("may drop nodes, in chains", function()
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then return call.args[1] end
    end }
    local f = m(pl.func({ x }, tanh(tanh(tanh(x)))))
    assert.equal("Var", f.body.kind)
    assert.is_true(pl.equal(f, pl.func({ x }, x)))
  end)

  it("gives the rewritten node through rebuild", function()
    local seen = {}
    local m = pl.mutator { Call = function(call, rebuild)
      local new = rebuild()
      seen[#seen + 1] = new.op.name .. "/" .. (new[1].op and new[1].op.name or new[1].kind)
      if call.op == tanh then return relu(call[1]) end
      if new[1].op == relu then return new * 2 end
    end }
    local f = m(pl.func({ x }, tanh(x) + 1))
    assert.same({ "tanh/Var", "add/nn.relu" }, seen)
    assert.is_true(pl.equal(f, pl.func({ x }, (relu(x) + 1) * 2)))
  end)

  it("takes numbers, and nodes built before", function()
    local two = pl.const(2.0)
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then return call[1] * two end
    end, Constant = function(c)
      if c.data:to_table() == 1.0 then return 3.0 end
    end }
    local f = m(pl.func({ x }, tanh(x) + 1))
    assert.is_true(pl.equal(f, pl.func({ x }, x * 2 + 3)))
  end)

  it("goes into branches", function()
    local c = pl.var("c", "bool")
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then return relu(call[1]) end
    end }
    local f = m(pl.func({ c, x }, pl.if_(c, tanh(x), x + 1)))
    assert.is_true(pl.equal(f, pl.func({ c, x }, pl.if_(c, relu(x), x + 1))))
    assert(pl.verify(f))
  end)

  it("is the body of a pass", function()
    local pass = pl.function_pass { name = "m", run = pl.mutator { Call = function(call)
      if call.op == tanh then return relu(call[1]) end
    end } }
    local mod = pl.module { main = pl.func({ x }, tanh(x)) }
    assert.equal(relu, pass(mod).main.body.op)
    local rest = pl.module { main = pl.func({ x }, relu(x)) }
    assert.equal(rest, pass(rest))
  end)

  it("that raises leaves everything as it was", function()
    local mod = pl.module { main = pl.func({ x }, tanh(x) + 1) }
    local text = tostring(mod)
    local mine = {}
    local ok, got = pcall(pl.mutator { Call = function() error(mine) end }, mod)
    assert.is_false(ok)
    assert.is_true(rawequal(mine, got))
    ok, got = pcall(pl.mutator { Call = function() error "oops" end }, mod.main)
    assert.is_false(ok)
    assert.is_truthy(tostring(got):find("mutator_spec.lua:%d+: oops"))
    assert.equal(text, tostring(mod))
    assert.has_error(function() pl.mutator { Call = function() return "x" end }(mod) end)
    assert.has_error(function() pl.mutator { Call = function() return mod end }(mod) end)
  end)

  it("may rewrite inside a rewrite", function()
    local other = pl.func({ x }, tanh(x))
    local swap = pl.mutator { Call = function(call) return relu(call[1]) end }
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then
        local inner = swap(other)
        assert.equal(relu, inner.body.op)
        return relu(call[1])
      end
    end }
    local f = pl.func({ x }, tanh(x) + 1)
    assert.is_true(pl.equal(m(f), pl.func({ x }, relu(x) + 1)))
    -- the same graph, from inside its own rewrite
    local again = pl.mutator { Call = function(call)
      assert.equal(f.body.op, pl.op.add)
      swap(f)
      return nil, call
    end }
    assert.is_true(rawequal(f, again(f)))
  end)

  it("takes functions built inside, from nodes as they are rewritten", function()
    local m = pl.mutator {
      Call = function(call) if call.op == tanh then return relu(call[1]) end end,
      Function = function(fn)
        return pl.func(fn.params, fn.body * 2, nil, { Marked = 1 })
      end,
    }
    local f = m(pl.func({ x }, tanh(x) + 1))
    assert.equal(1, f.attrs.Marked)
    assert.is_true(pl.equal(f, pl.func({ x }, (relu(x) + 1) * 2, nil, { Marked = 1 })))
    assert(pl.verify(f))
  end)

  it("refuses unknown kinds, and nodes that come later", function()
    local ok, message = pcall(pl.mutator, { Cal = function() end })
    assert.is_false(ok)
    assert.is_truthy(message:find("did you mean 'Call'", 1, true))
    local f = pl.module({ main = pl.func({ x }, tanh(x) + 1) }).main
    local later = f.body
    local m = pl.mutator { Call = function(call)
      if call.op == tanh then return later end
    end }
    assert.has_error(function() m(f) end)
  end)

  it("refuses nodes of a scope that is left out", function()
    local c = pl.var("c", "bool")
    local f = pl.func({ c, x }, pl.if_(c, tanh(x), relu(x)))
    local function take(answer)
      return select(2, pcall(pl.mutator { If = answer }, f)).message
    end
    assert.matches("^node %d+ is used, but its scope was left out$", take(function(node)
      return node.true_branch
    end))
    assert.matches("^node %d+ is used, but its scope was left out$", take(function(node)
      return tanh(node.false_branch)
    end))
  end)

  it("may change a copy of what has lets inside: they stay", function()
    local y, c = pl.var("y", f32(2)), pl.var("c", "bool")
    local body = pl.let(y, tanh(x), y * y)
    local fn = pl.module { main = pl.func({ x, c }, body) }.main
    local function inlined(node) return node:with { attrs = { Inline = 1 } } end
    local wanted = pl.func({ x, c }, body, { Inline = 1 })
    pl.assert_equal(pl.mutator { Function = inlined } (fn), wanted)
    pl.assert_equal(pl.rewrite(fn, { Function = function(_, post) return inlined(post) end }),
      wanted)
    local choice = pl.func({ x, c }, pl.if_(c, body, x))
    pl.assert_equal(pl.rewrite(choice, { If = function(_, post)
      return post:with { cond = pl.op.logical_not(post.cond) }
    end }), pl.func({ x, c }, pl.if_(pl.op.logical_not(c), body, x)))
    assert(pl.verify(pl.rewrite(choice, { If = function(_, post)
      return post:with { true_branch = post.false_branch }
    end })))
  end)

  it("may give a let another value; what follows stays", function()
    local y, z = pl.var("y", f32(2)), pl.var("z", f32(2))
    local function lets(f, g)
      return pl.module { main = pl.func({ x }, pl.let(y, f(x), pl.let(z, g(y), z + y))) }
    end
    local function wrapped(e) return relu(tanh(e)) end
    local out = pl.mutator { Let = function(let)
      return let:with { value = relu(let.value) }
    end } (lets(tanh, tanh))
    pl.assert_equal(out, lets(wrapped, wrapped))
    assert(pl.verify(out))
    local mod = lets(tanh, tanh)
    assert.equal(mod, pl.mutator { Let = function(let) return let end } (mod))
    assert.error_matches(function()
      pl.mutator { Let = function(let) return pl.tuple { let } end } (mod)
    end, "the rest of this Let's block is not yet known")
  end)

  it("may change a copy of a Match, arms with lets among them", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%l: List[int32]) -> int32 {
  match? (%l) { Cons(%h, _) => { let %a = %h + 1; %a * 2 }, Nil => 1 }
}]])
    local out = pl.rewrite(mod, { Match = function(_, post)
      assert.equal("Let", post.clauses[1].rhs.kind)
      return post:with { complete = true }
    end })
    assert.is_true(out.main.body.complete)
    pl.assert_equal(pl.rewrite(out, { Match = function(_, post)
      return post:with { complete = false }
    end }), mod)
  end)

  it("cannot yield", function()
    local f = pl.func({ x }, tanh(x))
    local m = pl.mutator { Call = function() coroutine.yield() end }
    local ok = coroutine.resume(coroutine.create(function() m(f) end))
    assert.is_false(ok)
  end)
end)

describe("the answer of a rule", function()
  local x = pl.var("x", pl.type { shape = { 2 }, dtype = "int32" })
  local fn = pl.func({ x }, x + pl.op.abs(x))

  local function refused(what, rules, rewrite)
    local ok, err = pcall(rewrite or pl.rewrite, fn, rules)
    assert.is_false(ok)
    assert.matches("spec/ir/mutator_spec.lua:%d+: rule '" .. what, tostring(err))
    return tostring(err)
  end

  it("that is no node is refused, with the rule and its place", function()
    local function raises(answer, got)
      refused("Call': a node, a number, a tensor or nil expected as its answer, got " .. got,
        { Call = function() return answer end })
    end
    raises(true, "boolean")
    raises(false, "boolean")
    raises("add(%x, %x)", "string")
    raises({ 1, 2 }, "table")
    raises(print, "function")
    raises(pl.type "int32", "perilune.Type")
    raises(pl.op.abs, "perilune.Op")
  end)

  it("is named by the name that the rules have together", function()
    refused("tidy': a node", { name = "tidy", Call = function() return true end })
    local pass = pl.function_pass { name = "Tidy", run = pl.mutator {
      name = "tidy", Call = function(call) return call.op == pl.op.abs end } }
    local mod = pl.module { main = fn }
    local text = refused("tidy': a node", mod, function(_, m) return pass(m) end)
    assert.matches("pass 'Tidy', function @main: ", text, 1, true)
    assert.is_true(pl.equal(mod.main, fn))
  end)

  it("in place of a type is refused likewise", function()
    refused("TensorType': a type, the text of one or nil expected as its answer, got number",
      { TensorType = function() return 1 end })
  end)

  it("in TIR is refused likewise", function()
    local tir = pl.tir
    local i, A = tir.Var("i", "int32"), tir.decl_buffer({ 4 }, "int32", "A")
    local prim = tir.PrimFunc({ A }, tir.For(i, 0, 4, "serial", A:store(i + 1, i)))
    for _, rules in ipairs { { For = function() return true end },
      { For = function() end, Add = function() return "x" end } } do
      refused("%a+': a node, a number or nil expected as its answer, got ", rules,
        function(_, functions) return pl.rewrite(prim, functions) end)
    end
    local out = pl.rewrite(prim, { For = function() end, Add = function() return 7 end })
    assert.matches("= 7", tostring(out), 1, true)
  end)

  it("may be a number, of the dtype of what it replaces, or a tensor", function()
    local function body(answer)
      return pl.rewrite(fn, { Call = function(call)
        if call.op == pl.op.abs then return answer end
      end }).body
    end
    assert.is_true(pl.equal(body(3), x + 3))
    assert.equal(pl.type "int32", body(3).args[2].type)
    assert.is_true(pl.equal(body(pl.tensor({ 1, 2 }, "int32")), x + pl.const({ 1, 2 }, "int32")))
  end)

  it("is for functions only", function()
    assert.has_error(function() pl.mutator { Call = 1 } end,
      "pl.mutator: Call: a function expected, got number")
  end)
end)

describe("a rule for variables", function()
  local x, y = pl.var("x", f32(2)), pl.var("y", f32(2))
  local tanh = pl.op.tanh

  it("reaches parameters, in the body and in the list", function()
    local out = pl.mutator { Var = function(v) if v == x then return y end end } (
      pl.func({ x }, tanh(x) + x))
    assert.equal(y, out.params[1])
    assert.is_true(pl.equal(out, pl.func({ y }, tanh(y) + y)))
    assert.same({}, pl.free_vars(out))
    local mod = pl.module { main = out }
    assert.is_true(pl.verify(mod))
  end)

  it("may give parameters another type, from which the function is typed", function()
    local wide = pl.var("wide", f32(4, 2))
    local rule = pl.mutator { Var = function() return wide end }
    local out = rule(pl.func({ x }, tanh(x)))
    assert.equal(pl.type "fn (Tensor[(4, 2), float32]) -> Tensor[(4, 2), float32]", out.type)
    local mod = pl.module { main = pl.func({ x }, tanh(x)) }
    out = pl.function_pass { name = "Widen", run = rule } (mod)
    assert.equal(f32(4, 2), out.main.body.type)
    assert.is_true(pl.verify(out))
  end)

  it("may make a variable for each, and use it in other rules", function()
    local seen = {}
    local out = pl.mutator {
      Var = function(v)
        seen[v.name] = pl.var(v.name .. "_", v.type)
        return seen[v.name]
      end,
      Call = function(call) if call.op == tanh then return seen.x + seen.y end end,
    } (pl.func({ y }, pl.func({ x }, tanh(x) * y)(y)))
    assert.same({}, pl.free_vars(out))
    assert.equal("y_", out.params[1].name)
    assert.is_true(pl.verify(pl.module { main = out }))
  end)

  it("may put another expression in the place of a parameter, which stays", function()
    local out = pl.mutator { Var = function(v) if v == x then return y + y end end } (
      pl.func({ x, y }, tanh(x)))
    assert.equal(2, #out.params)
    assert.equal(x, out.params[1])
    assert.equal(0, #pl.free_vars(out))
  end)
end)

describe("a variable that is free in a function of a module", function()
  local x, y = pl.var("x", f32(2)), pl.var("y", f32(2))

  it("is an error of the verifier", function()
    local ok, diag = pl.verify(pl.module { main = pl.func({ x }, x + y) })
    assert.is_nil(ok)
    assert.matches("the variable 'y' is free in a function of a module", tostring(diag), 1, true)
    assert.is_true(pl.verify(pl.func({ x }, x + y)))
  end)

  it("is an error of the pass that leaves it", function()
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
    local pass = pl.function_pass { name = "Leak", run = pl.mutator { Call = function(call)
      return call.args[1] + y
    end } }
    local ok, err = pcall(pass, mod)
    assert.is_false(ok)
    assert.matches("pass 'Leak', function @main: invalid IR at node %d %(Var%): the variable 'y' "
      .. "is free", tostring(err))
  end)

  it("is bound by lets, arms and functions inside", function()
    local v, z = pl.var("v", f32(2)), pl.var("z", f32(2))
    local f = pl.func({ y }, y + x)
    assert.is_true(pl.verify(pl.module {
      main = pl.func({ x }, pl.let(v, f(x), pl.ir.Match(pl.tuple(v, v), { { { z, "_" }, z } }))) }))
  end)
end)
