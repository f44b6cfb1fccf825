-- Patterns of rules for nodes that are no calls of operators: If, Function, Let, Call, Var,
-- Constant.

local pl = require "perilune"

local rewriting = require "spec.rule.rewriting"
local message = rewriting.message

local function program(body, params)
  return rewriting.program(body,
    params or "%c: bool, %x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]")
end

-- The body of @main after the rules, as text without types. It computes what it did.
local function rewritten(rules, body, params)
  local mod = program(body, params)
  local out = pl.rules(rules)(mod)
  assert.is_true(out.main:verify())
  assert.is_true(pl.check(mod, out))
  return rewriting.body_of(out)
end

describe("a rule matches", function()
  it("an If by its condition and the results of its branches", function()
    local same = { "If(?c, ?x, ?x) => ?x" }
    assert.equal("%x", rewritten(same, "if (%c) { %x } else { %x }"))
    assert.equal("%0 = tanh(%x);\nexp(%0)",
      rewritten(same, "%0 = tanh(%x); %1 = if (%c) { %0 } else { %0 }; exp(%1)"))
    assert.matches("if", rewritten(same, "if (%c) { %x } else { %y }"))
    assert.equal("%y", rewritten({ "If(true, ?x, ?y) => ?y", "If(false, ?x, ?y) => ?y" },
      "if (False) { %x } else { %y }"))
    local taken = { "If(true, ?x, _) => ?x" }
    assert.equal("%0 = exp(%x);\n%1 = tanh(%0);\nnn.relu(%1)", rewritten(taken,
      "nn.relu(if (True) { tanh(exp(%x)) } else { sqrt(%y) })"))
  end)

  it("what branches compute, which is copied out of them", function()
    local select = { { "If(?c, tanh(?x), exp(?y)) => add(tanh(?x), exp(?y))", grows = true } }
    local mod = program "if (%c) { tanh(nn.relu(%x)) } else { exp(%y) }"
    local out = pl.rules(select)(mod)
    assert.is_true(out.main:verify())
    assert.equal("add", out.main.body.op.name)
    assert.equal("nn.relu", out.main.body.args[1].args[1].op.name)
    assert.equal("sqrt", pl.rules { "If(_, ?t@tanh(_), _) => sqrt(?t)" }(mod).main.body.op.name)
  end)

  it("no branch with lets, and no If with an effect", function()
    local any = { "If(?c, ?x, ?y) => ?y" }
    for _, text in ipairs {
      "if (%c) { let %v = tanh(%x); add(%v, %v) } else { %y }",
      "let %r = ref(%x); if (%c) { ref_write(%r, %y) } else { () }",
    } do
      local mod = program(text)
      assert.equal(mod, pl.rules(any)(mod))
    end
  end)

  it("functions and calls of them", function()
    local constant = { "Call(Function(?p..., ?k:const), ?args...) => ?k" }
    assert.equal("add(%x, 1f)", rewritten(constant,
      "%0 = fn (%a: Tensor[(2, 3), float32]) { 1f }; add(%x, %0(%y))"))
    local twice = { "Call(Function(?a, ?b, tanh(?a)), ?x, ?y) => tanh(?x)" }
    assert.equal("tanh(%x)", rewritten(twice, [[
      %0 = fn (%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32]) { tanh(%a) };
      %0(%x, %y)]]))
    assert.matches("fn", rewritten(twice, [[
      %0 = fn (%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32]) { tanh(%b) };
      %0(%x, %y)]]))
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @f(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { tanh(%x) }
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { @f(%x) }
]])
    assert.equal("exp", pl.rules { "Call(GlobalVar, ?x) => exp(?x)" }(mod).main.body.op.name)
  end)

  it("variables by their names, and constants", function()
    local named = { 'add(Var("x"), ?y) => ?y' }
    local mod = program "add(%x, %y)"
    assert.equal("y", pl.rules(named)(mod).main.body.name)
    mod = program "add(%c, %c)"
    assert.equal(mod, pl.rules(named)(mod))
    mod = program "multiply(%x, 2f)"
    local tanh = pl.rules { "multiply(?v@Var, Constant) => tanh(?v)" }
    assert.equal("tanh", tanh(mod).main.body.op.name)
    assert.equal("x", pl.rules { "multiply(?x@Var, Constant) => ?x" }(mod).main.body.name)
  end)

  it("the same with and without the decision tree", function()
    local rules = pl.rules { "If(?c, ?x, ?x) => ?x", "add(?x, If(?c, ?y, _)) => ?x",
      "Call(Function(?a, ?a), ?x) => ?x", "add(?x, 0) => ?x" }
    local mod = program [[
      %0 = if (%c) { %x } else { %x };
      %1 = add(%y, if (%c) { %0 } else { %y });
      %2 = fn (%a: Tensor[(2, 3), float32]) { %a };
      add(%2(%1), 0f)]]
    local fast, slow = rules:apply(mod), rules:apply(mod, { naive = true })
    assert.equal("y", fast.main.body.name)
    assert.is_true(pl.equal(fast, slow))
  end)
end)

describe("a pattern of a kind", function()
  it("is refused where it makes no sense", function()
    assert.matches("a pattern If has three parts", message { "If(?c, ?x) => ?x" })
    assert.matches("a pattern Function has at least one part", message { "Function() => 1" })
    assert.matches("a pattern Constant has no parts", message { "add(Constant(?x), 1) => ?x" })
    assert.matches("a pattern Var has no parts", message { "add(Var(?x), 1) => ?x" })
    assert.matches("an operand after '...'", message { "Call(?f, ?r..., ?x) => ?x" })
    assert.matches("a pattern Let has three parts", message { "Let(?v, ?x) => ?x" })
    assert.matches("there is no operator 'Let'", message { "tanh(?x) => Let(?v, ?x, ?v)" })
    assert.matches("there is no operator 'LetBlock'", message { "LetBlock(?v, ?x, ?v) => ?x" })
    assert.matches("does not replace variables", message { "Var => 1" })
    assert.matches("does not replace variables", message { 'Constant => 1' })
    assert.matches("there is no operator 'If'", message { "tanh(?x) => If(?x, ?x, ?x)" })
  end)

  it("is explained", function()
    local mod = program "if (%c) { %x } else { %y }"
    local why = pl.why_not(pl.rules { "If(?c, ?x, ?x) => ?x" }, mod.main.body)
    assert.matches("is another node than before", tostring(why))
  end)
end)

describe("a rule matches a let", function()
  it("by its variable, value and body", function()
    assert.equal("%0 = tanh(%x);\nadd(%0, %y)", rewritten({ "Let(?v, ?x, ?v) => ?x" },
      "add((let %v = tanh(%x); %v), %y)"))
    local inlined = { "Let(?v, ?x, tanh(?v)) => tanh(?x)" }
    assert.equal("%0 = exp(%x);\n%1 = tanh(%0);\nadd(%1, %y)", rewritten(inlined,
      "add((let %v = exp(%x); tanh(%v)), %y)"))
    assert.matches("let", rewritten(inlined, "add((let %v = exp(%x); tanh(%x)), %y)"))
    assert.matches("let", rewritten(inlined, "add((let %v = exp(%x); exp(%v)), %y)"))
  end)

  it("whose variable is not used", function()
    local dead = { "Let(?v, _, ?body) => ?body where ?v.uses == 1" }
    assert.equal("%0 = tanh(%x);\nadd(%0, %y)", rewritten(dead,
      "add((let %v = exp(%x); tanh(%x)), %y)"))
    assert.matches("let", rewritten(dead, "add((let %v = exp(%x); tanh(%v)), %y)"))
  end)

  it("whose body is a let, and nothing else for it", function()
    local two = "add((let %a = exp(%x); let %b = tanh(%a); nn.relu(%b)), %y)"
    assert.equal("%0 = exp(%x);\n%1 = tanh(%0);\n%2 = nn.relu(%1);\nadd(%2, %y)", rewritten(
      { "Let(?a, ?x, Let(?b, tanh(?a), nn.relu(?b))) => nn.relu(tanh(?x))" }, two))
    assert.matches("let", rewritten({ "Let(?a, ?x, ?body) => ?x" }, two))
    assert.matches("let", rewritten({ "Let(?a, ?x, Let(?b, ?y, Let(?c, ?z, ?w))) => ?x" }, two))
  end)

  it("in a branch or a function", function()
    assert.equal("%x", rewritten({ "If(?c, Let(?v, ?x, ?v), ?x) => ?x" },
      "if (%c) { let %v = %x; %v } else { %x }"))
    local called = { "Call(Function(?a, Let(?v, tanh(?a), exp(?v))), ?x) => exp(tanh(?x))" }
    assert.equal("%0 = tanh(%x);\nexp(%0)", rewritten(called, [[
      %0 = fn (%a: Tensor[(2, 3), float32]) { let %v = tanh(%a); exp(%v) };
      %0(%x)]]))
  end)

  it("that is a node of its own and has no effect", function()
    local any = { "Let(?v, ?x, ?body) => ?body" }
    for _, text in ipairs {
      "let %v = tanh(%x); %y",
      "let %r = ref(%x); add((let %v = ref_write(%r, %y); %x), %y)",
    } do
      local mod = program(text)
      assert.equal(mod, pl.rules(any)(mod))
    end
  end)

  it("behind nested lets, with and without the decision tree", function()
    local rules = pl.rules { "add(?x, Let(_, _, ?y)) => add(?y, ?x)", "Let(?v, ?x, ?v) => ?x",
      "Let(?v, _, tanh(?x)) => tanh(?x) where ?v.uses == 1" }
    local mod = program [[
      %0 = (let %a = (let %b = (let %d = exp(%x); %d); %b); %a);
      %1 = add(%y, (let %e = exp(%0); nn.relu(%0)));
      let %f = (let %g = abs(%1); tanh(%1));
      add(%f, %0)]]
    local fast, counts = rules:apply(mod)
    local slow, slow_counts = rules:apply(mod, { naive = true })
    assert.is_true(pl.equal(fast, slow))
    assert.is_true(pl.check(mod, fast))
    for i = 1, 3 do
      assert.equal(slow_counts[i].applied, counts[i].applied)
      assert.is_true(counts[i].applied > 0)
    end
  end)

  it("that explains why it does not", function()
    local mod = program "add((let %v = exp(%x); sqrt(%v)), %y)"
    local why = pl.why_not(pl.rules { "Let(?v, ?x, tanh(?v)) => tanh(?x)" }, mod.main.body.args[1])
    assert.matches("is a call of another operator", tostring(why))
    mod = program "add((let %v = exp(%x); let %w = %v; %w), %y)"
    why = pl.why_not(pl.rules { "Let(?v, ?x, ?body) => ?x" }, mod.main.body.args[1])
    assert.matches("is a let", tostring(why))
  end)

  it("in linear time where they are nested deeply", function()
    local rules = pl.rules { "Let(?v, ?x, exp(?v)) => exp(?x)", "If(?c, ?x, ?x) => ?x" }
    local function seconds(n)
      local x = pl.var("x", "Tensor[(2, 3), float32]")
      local value = x
      for i = 1, n do
        local v = pl.var("v" .. i, "Tensor[(2, 3), float32]")
        value = pl.op.abs(pl.let(v, value, pl.op.tanh(v)))
      end
      local mod = pl.module { main = pl.func({ x }, value) }
      local began = os.clock()
      assert.equal(mod, rules(mod))
      return os.clock() - began
    end
    assert.is_true(seconds(20000) < 30 * seconds(2000) + 0.01)
  end)
end)

describe("a rule whose pattern is a dataflow pattern", function()
  local df = pl.dataflow_pattern
  local x, y = df.wildcard(), df.wildcard()

  it("is matched as its text", function()
    local silu = { x * df.is_op "sigmoid"(x), function(m) return pl.op.nn.silu(m[x]) end }
    assert.equal("nn.silu(%x)", rewritten({ silu }, "multiply(sigmoid(%x), %x)"))
    assert.equal("multiply(?p1, sigmoid(?p1))",
      pl.rules { silu }.rules[1].text:gsub("%?p%d@(%w+%()", "%1"))
    local scaled = df.is_op "nn.leaky_relu"(x):has_attr { alpha = 0.5 }
    local either = (df.is_op "abs" | df.is_op "nn.relu")(scaled)
    local rules = { { either, function(m)
      assert(m[scaled].op.name == "nn.leaky_relu" and m.root.op.name == "nn.relu")
      return pl.op.nn.relu(m[x])
    end, where = function(m) return m[x].kind == "Var" end } }
    assert.equal("nn.relu(%x)", rewritten(rules, "nn.relu(nn.leaky_relu(%x, alpha=0.5f))"))
    assert.matches("leaky", rewritten(rules, "nn.relu(nn.leaky_relu(%x, alpha=0.25f))"))
    assert.matches("leaky", rewritten(rules, "nn.relu(nn.leaky_relu(tanh(%x), alpha=0.5f))"))
  end)

  it("takes tuples, branches, functions, constants and alternatives", function()
    local same = df.is_if(df.is_var "c", x, x)
    assert.equal("%x", rewritten({ { same, function(m) return m[x] end } },
      "if (%c) { %x } else { %x }"))
    local field = df.is_tuple_get_item(df.is_tuple { x, y }, 1)
    assert.equal("%y", rewritten({ { field, function(m) return m[y] end } }, "(%x, %y).1"))
    local zero = x + df.is_expr(pl.const(0.0))
    assert.equal("%x", rewritten({ { zero, function(m) return m[x] end } }, "add(%x, 0f)"))
    local inline = df.is_function({ x }, df.is_op "tanh"(x))(y)
    assert.equal("tanh(%x)", rewritten({ { inline, function(m) return pl.op.tanh(m[y]) end } },
      "%0 = fn (%a: Tensor[(2, 3), float32]) { tanh(%a) }; %0(%x)"))
    local k = df.is_constant() | df.is_var "y"
    local found = {}
    rewritten({ { x * k, function(m) found[#found + 1] = m[k].kind end } },
      "add(multiply(%x, %y), multiply(2f, %x))")
    assert.same({ "Var", "Constant" }, found)
    local sum = x + y
    local optional = sum:optional(df.is_op "nn.relu")
    local rules = { { df.is_op "tanh"(optional), function(m)
      assert.equal("add", m[sum].op.name)
      return pl.op.tanh(m[x] + m[y])
    end, where = function(m) return m[optional].op.name == "nn.relu" end } }
    assert.equal("%0 = add(%x, %y);\ntanh(%0)", rewritten({ { df.is_op "tanh"(optional),
      function(m) return m[optional].op.name == "nn.relu" and pl.op.tanh(m[sum]) end } },
      "tanh(add(%x, %y))"))
    local mod = program "tanh(nn.relu(add(%x, %y)))"
    assert.equal("add", pl.rules(rules)(mod).main.body.args[1].op.name)
    mod = program "tanh(nn.relu(multiply(%x, %y)))"
    assert.equal(mod, pl.rules(rules)(mod))
  end)

  it("is refused where the language of rules has nothing for it", function()
    local rest = df.wildcard()
    local loop = df.is_op "tanh"(rest)
    rest:redirect_to(loop | df.is_var())
    for why, pattern in pairs { ["a redirected wildcard"] = loop,
      ["a DominatorPattern"] = df.dominates(df.is_op "exp"(x), df.is_op "tanh"(y), x + y),
      ["a LetPattern"] = df.is_let(x, y, x), ["a DataTypePattern"] = df.has_dtype "float32",
      ["a TuplePattern of any fields"] = df.is_op "concatenate"(df.is_tuple()) } do
      assert.matches(("rule 1 of 'rules': %s has no form in the language of rules"):format(why),
        message { { pattern, function() end } })
    end
  end)
end)
