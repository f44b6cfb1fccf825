-- The language of rules: what patterns match, what replacements build, what is refused.

local pl = require "perilune"

local rewriting = require "spec.rule.rewriting"
local message, program = rewriting.message, rewriting.program

-- The body of @main of `body` after the rules, as text without types.
local function rewritten(rules, body, params)
  return rewriting.body_of(pl.rules(rules)(program(body, params)))
end

describe("a pattern", function()
  it("binds variables, and the same variable to the same node", function()
    local double = { "add(?x, ?x) => multiply(?x, 2)" }
    assert.equal("multiply(%x, 2f)", rewritten(double, "add(%x, %x)"))
    assert.equal("add(%x, %y)", rewritten(double, "add(%x, %y)"))
  end)

  it("tries both orders of a commutative operator", function()
    local silu = { "multiply(?x, sigmoid(?x)) => nn.silu(?x)" }
    assert.equal("nn.silu(%x)", rewritten(silu, "multiply(%x, sigmoid(%x))"))
    assert.equal("nn.silu(%x)", rewritten(silu, "multiply(sigmoid(%x), %x)"))
    local order = { "subtract(?x, tanh(?x)) => ?x" }
    assert.matches("subtract", rewritten(order, "subtract(tanh(%x), %x)"))
  end)

  it("groups the operands of an associative operator in any way", function()
    local rules = { "add(?x, tanh(?y), negative(?z)) => subtract(add(?x, tanh(?y)), ?z)" }
    for _, sum in ipairs { "add(add(%x, tanh(%y)), negative(%x))",
      "add(%x, add(tanh(%y), negative(%x)))", "add(add(negative(%x), tanh(%y)), %x)",
      "add(tanh(%y), add(%x, negative(%x)))" } do
      local text = rewritten(rules, sum)
      assert.matches("subtract%(%%1, %%x%)", text, nil, sum)
    end
    local order = { "add(negative(?x), sigmoid(?y), tanh(?z)) => add(?x, ?y, ?z)" }
    assert.matches("add%(%%x, %%x%).*add%(%%0, %%y%)",
      rewritten(order, "add(add(sigmoid(%x), tanh(%y)), negative(%x))"))
  end)

  it("is refused when no call has as many operands", function()
    assert.matches("no call of add has 1 operands", message { "add(?x) => ?x" }, 1, true)
    assert.matches("no call of nn.relu has 2 operands", message { "nn.relu(?x, ?y) => ?x" }, 1,
      true)
    assert.matches("no call of subtract has 3 operands", message { "subtract(?a, ?b, ?c) => ?a" },
      1, true)
    assert.matches("no call of add has 5 operands; a pattern groups at most 4",
      message { "add(?a, ?b, ?c, ?d, ?e) => ?a" }, 1, true)
  end)

  it("matches numbers as constants of equal elements", function()
    local zero = { "add(?x, 0) => ?x" }
    assert.equal("%x", rewritten(zero, "add(%x, 0f)"))
    assert.equal("add(%x, 1f)", rewritten(zero, "add(%x, 1f)"))
  end)

  it("takes no constant for a number that broadcasts the other operand", function()
    local x, s = pl.var("x", "Tensor[(2, 3), float32]"), pl.var("s", "float32")
    local zeros = pl.tensor({ { 0, 0, 0 }, { 0, 0, 0 } }, "float32")
    local rules = pl.rules { "add(?x, 0) => ?x" }
    assert.equal("Var", rules(pl.func({ x }, x + zeros)).body.kind)
    assert.equal("Call", rules(pl.func({ s }, s + zeros)).body.kind)
  end)

  it("binds and compares attributes, defaults too", function()
    local rules = { "nn.softmax(?x, axis=-1) => ?x" }
    assert.equal("%x", rewritten(rules, "nn.softmax(%x)"))
    assert.matches("softmax", rewritten(rules, "nn.softmax(%x, axis=0)"))
    local transposes = { "transpose(transpose(?x, axes=?p), axes=?q) => transpose(?x, "
      .. "axes=compose(?p, ?q))" }
    assert.equal("transpose(%x, axes=[0, 1])", rewritten(transposes,
      "transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])"))
  end)

  it("compares numbers with attributes as float32, which attributes are", function()
    local rules = { "nn.hard_sigmoid(?x, alpha=0.16666667, beta=0.5) => ?x" }
    assert.equal("%x", rewritten(rules, "nn.hard_sigmoid(%x, alpha=0.16666667f, beta=0.5f)"))
    local other = "nn.hard_sigmoid(%x, alpha=0.1666f, beta=0.5f)"
    assert.matches("hard_sigmoid", rewritten(rules, other))
  end)

  it("takes alternatives in order", function()
    local rules = { "nn.relu(nn.relu(?x) | tanh(?x)) => ?x" }
    assert.equal("%x", rewritten(rules, "nn.relu(tanh(%x))"))
    assert.equal("%x", rewritten(rules, "nn.relu(nn.relu(%x))"))
    assert.equal("nn.relu(%0)", rewritten(rules, "nn.relu(exp(%x))"):match "[^\n]+$")
  end)

  it("takes sets and classes of operators, and calls the one it found", function()
    local rules = { "?f{elementwise}(transpose(?x, axes=?p)) => transpose(?f(?x), axes=?p)" }
    assert.equal("%0 = tanh(%x);\ntranspose(%0, axes=[1, 0])",
      rewritten(rules, "tanh(transpose(%x, axes=[1, 0]))"))
    assert.equal("%x", rewritten({ "{abs|nn.relu}(?x) => ?x" }, "abs(nn.relu(%x))"))
  end)

  it("takes the rest of the operands", function()
    local rules = { "concatenate(?x) => ?x", "concatenate(?a, ?rest...) => concatenate(?rest) "
      .. "where ?a.shape[0] == 0 and len(?rest) > 0" }
    local params = "%x: Tensor[(2, 3), float32], %e: Tensor[(0, 3), float32]"
    assert.equal("%x", rewritten(rules, "concatenate((%e, %x), axis=0)", params))
    assert.equal("%0 = (%x, %x);\nconcatenate(%0)",
      rewritten(rules, "concatenate((%e, %x, %x), axis=0)", params))
  end)

  it("takes tuples, fields and names of subpatterns", function()
    assert.equal("%y", rewritten({ "(?a, ?b).1 => ?b" }, "(%x, %y).1"))
    assert.equal("nn.relu(%x)", rewritten({ "nn.relu(?r@nn.relu(_)) => ?r" },
      "nn.relu(nn.relu(%x))"))
  end)

  it("takes constraints", function()
    assert.equal("%x", rewritten({ "add(?x:dynamic, ?c:const) => ?x" }, "add(1f, %x)"))
    assert.matches("^add", rewritten({ "add(?x:int, ?y) => ?x" }, "add(%x, %y)"))
    local once = { "negative(?a:once@negative(?x)) => ?x" }
    assert.equal("%x", rewritten(once, "negative(negative(%x))"))
    assert.matches("negative", rewritten(once, "%0 = negative(%x); (negative(%0), %0)"))
  end)

  it("takes arithmetic as operators", function()
    assert.equal("multiply(%x, %y)", rewritten({ "-?x * -?y => ?x * ?y" },
      "multiply(negative(%x), negative(%y))"))
  end)
end)

describe("a condition", function()
  local function holds(where, body, params)
    return rewritten({ "nn.relu(?x) => ?x where " .. where }, body or "nn.relu(%x)", params)
      == "%x"
  end

  it("compares shapes, ranks and dtypes", function()
    assert.is_true(holds "?x.rank == 2 and ?x.shape == [2, 3] and ?x.dtype == float32")
    assert.is_false(holds "?x.rank == 3")
    assert.is_true(holds "?x.shape[-1] == 3 and ?x.size == 6")
    assert.is_true(holds "2 in ?x.shape and not (5 in ?x.shape)")
    assert.is_true(holds "product(?x.shape) // 4 == 1 and ?x.size % 4 == 2")
  end)

  it("fails where something is not known", function()
    local dynamic = "%x: Tensor[(?, N), float32]"
    assert.is_false(holds("?x.shape[0] == 2", nil, dynamic))
    assert.is_false(holds("?x.shape[0] ~= 2", nil, dynamic))
    assert.is_true(holds("?x.shape[1] == ?x.shape[1]", nil, dynamic))
    assert.is_true(holds("?x.shape[0] == 2 or ?x.rank == 2", nil, dynamic))
  end)

  it("has functions of lists", function()
    assert.is_true(holds "inverse([2, 0, 1]) == [1, 2, 0]")
    assert.is_true(holds "compose([5, 6, 7], [2, 0]) == [7, 5]")
    assert.is_true(holds "normalize([-1, 0], 2) == [1, 0] and normalize(-2, 2) == 0")
    assert.is_true(holds "sorted([3, 1, 2]) == [1, 2, 3] and iota(3) == [0, 1, 2]")
    assert.is_true(holds "sublist([1, 2, 3], 1, 3) == [2, 3] and without([4, 5], [0]) == [5]")
    assert.is_true(holds "[1] + [2] == [1, 2] and every([1, 1], 1) and len([1, 2]) == 2")
    assert.is_true(holds "broadcasts([1, 3], ?x.shape) and not broadcasts([2], ?x.shape)")
    assert.is_true(holds "reduced(?x.shape, [0]) == [1, 3] and list(2, 7) == [7, 7]")
    assert.is_true(holds "contains(float64, ?x.dtype) and not contains(int8, int16)")
    assert.is_true(holds "larger(2, 3) == 3 and smaller(2, 3) == 2")
    assert.is_true(holds "ones([1, 2, 1]) == [0, 2] and ones([]) == []")
  end)

  it("gives lists as operands of a replacement", function()
    local ints = function(...) return pl.const(pl.tensor({ ... }, "int64")) end
    local x = pl.var("x", "Tensor[(4, 6), float32]")
    local sliced = pl.op.strided_slice(pl.op.tanh(x), ints(1), ints(3), ints(0), ints(1))
    local mod = pl.module { main = pl.func({ x }, sliced) }
    local out, counts = pl.rules { "strided_slice(tanh(?x), ?b, ?e, axes=?a, strides=?t) => "
      .. "tanh(strided_slice(?x, ?b, ?e, ?a, ?t))" }:apply(mod)
    assert.equal(1, counts[1].applied)
    assert(pl.verify(out))
    assert(pl.check(mod, out))
  end)

  it("has a function for positions that are constant", function()
    local table = pl.const(pl.tensor({ { 1, 2 }, { 3, 4 } }, "float32"))
    local function taken(i, condition)
      local rules = { "take(?w, ?i, axis=0) => ?w where " .. condition }
      local x = pl.op.take(table, i, { axis = 0 })
      local _, counts = pl.rules(rules):apply(pl.module { main = pl.func({}, x) }, {})
      return counts[1].applied == 1
    end
    local ints = pl.const(pl.tensor({ 0, 1 }, "int64"))
    assert.is_true(taken(ints, "in_range(?i, 0, 2)"))
    assert.is_true(taken(ints, "in_range(?i, 0, ?w.shape[0])"))
    assert.is_false(taken(ints, "in_range(?i, 1, 2)"))
    assert.is_false(taken(ints, "in_range(?i, 0, 1)"))
    assert.is_false(taken(ints, "in_range(?w, 0, 9)"))
  end)

  it("of an attribute that is left out is its default", function()
    local function applied(rule, body)
      local mod = assert(pl.parse([[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  ]] .. body .. "}"))
      local _, counts = pl.rules { rule }:apply(mod)
      return counts[1].applied
    end
    local onnx = "nn.relu(nn.conv(?x, ?w, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], "
      .. "kernel_shape=[3, 3])) => nn.conv(?x, ?w)"
    assert.equal(1, applied(onnx, "nn.relu(nn.conv(%x, %w))"))
    assert.equal(1, applied(onnx, "nn.relu(nn.conv(%x, %w, strides=[1, 1]))"))
    assert.equal(0, applied(onnx, "nn.relu(nn.conv(%x, %w, strides=[2, 2]))"))
    assert.equal(0, applied(onnx, 'nn.relu(nn.conv(%x, %w, auto_pad="SAME_UPPER"))'))
    assert.equal(1, applied("nn.relu(nn.conv(?x, ?w, strides=none)) => nn.conv(?x, ?w)",
      "nn.relu(nn.conv(%x, %w))"))
    local relay = "nn.relu(nn.conv2d(?x, ?w, strides=[1, 1], padding=[0, 0])) => "
      .. "nn.conv2d(?x, ?w)"
    assert.equal(1, applied(relay, "nn.relu(nn.conv2d(%x, %w))"))
    assert.equal(0, applied(relay, "nn.relu(nn.conv2d(%x, %w, strides=[2, 2]))"))
  end)

  it("may be a Lua function, with the match", function()
    local seen
    local rules = { { "nn.softmax(?x, axis=?a) => ?x", where = function(m)
      seen = { m.x.kind, m.a, m.root.op.name }
      return m.a == 0
    end } }
    assert.equal("%x", rewritten(rules, "nn.softmax(%x, axis=0)"))
    assert.same({ "Var", 0, "nn.softmax" }, seen)
    assert.matches("softmax", rewritten(rules, "nn.softmax(%x, axis=1)"))
  end)
end)

describe("a replacement", function()
  it("may be a Lua function: a node, a number, nil", function()
    local rules = { { "nn.relu(?x)", function(m) return pl.op.tanh(m.x) end } }
    assert.equal("tanh(%x)", rewritten(rules, "nn.relu(%x)"))
    assert.equal("nn.relu(%x)", rewritten({ { "nn.relu(?x)", function() end } }, "nn.relu(%x)"))
    assert.equal("add(%x, 0f)", rewritten({ { "nn.relu(?c)", function() return 0 end } },
      "add(%x, nn.relu(%s))", "%x: Tensor[(2, 3), float32], %s: float32"):match "[^\n]+$")
  end)

  it("copies attributes, and computes them", function()
    assert.equal("nn.softmax(%x, axis=0)",
      rewritten({ "tanh(?s@nn.softmax(?x)) => nn.softmax(?x, **?s)" },
        "tanh(nn.softmax(%x, axis=0))"))
    assert.equal("reshape(%x, newshape=[3, 2])",
      rewritten({ "?r@transpose(?x) => reshape(?x, newshape=?r.shape)" },
        "transpose(%x, axes=[1, 0])"))
  end)

  it("folds constants", function()
    assert.equal("%0 = multiply(%x, 3f);\nadd(%0, 6f)",
      rewritten({ "multiply(add(?x, ?a:const), ?b:const) => add(multiply(?x, ?b), "
        .. "multiply(?a, ?b))" }, "multiply(add(%x, 2f), 3f)"))
  end)

  it("is refused where it would make the graph larger", function()
    local rules = { "multiply(add(?x, ?a), ?b) => add(multiply(?x, ?b), multiply(?a, ?b))" }
    assert.matches("^%%0 = add", rewritten(rules, "multiply(add(%x, %y), %y)"))
    local grows = { { rules[1], grows = true } }
    assert.matches("^%%0 = multiply", rewritten(grows, "multiply(add(%x, %y), %y)"))
  end)

  it("means ONNX's form of an operator, unless it says that it holds for Relay's", function()
    local text = "argmax(nn.relu(?x)) => argmax(?x)"
    assert.matches("nn.relu", rewritten({ text }, "argmax(nn.relu(%x), axis=[1])"))
    local relay = { { "?r@argmax(nn.relu(?x)) => argmax(?x, **?r)", relay = true } }
    assert.equal("argmax(%x, axis=[1])", rewritten(relay, "argmax(nn.relu(%x), axis=[1])"))
  end)

  it("of another type is an error with rule, place and both types", function()
    local rules = pl.rules { "wrong: nn.relu(?x) => transpose(?x, axes=[1, 0])" }
    local ok, err = pcall(rules, program "nn.relu(%x)")
    assert.is_false(ok)
    assert.matches("language_spec.lua:%d+: error: rule 'wrong' replaces a node of type "
      .. "Tensor%[%(2, 3%), float32%] by one of type Tensor%[%(3, 2%), float32%]", tostring(err))
  end)

  it("that another rule undoes is an error that names a rule", function()
    local rules = pl.rules { "ab: add(?x, ?y) => subtract(?x, ?y)",
      "ba: subtract(?x, ?y) => add(?x, ?y)" }
    local ok, err = pcall(rules, program "add(%x, %y)")
    assert.is_false(ok)
    assert.matches("do not come to an end: one node was replaced 64 times, the last time by rule",
      tostring(err))
  end)

  it("that never ends is stopped by limit.seconds, in a pass or without, and named", function()
    local mod = program "tanh(%x)"
    local text = tostring(mod)
    local function forever() while true do end end
    local function protected() while true do pcall(forever) end end
    local function handled() while true do xpcall(error, forever) end end
    local context = pl.context { config = { ["limit.seconds"] = 0.05 } }
    for _, rule in ipairs { { "tanh(?x)", forever, name = "mine" },
      { "tanh(?x)", "?x", where = forever, name = "mine" },
      { "tanh(?x)", protected, name = "mine" }, { "tanh(?x)", handled, name = "mine" },
      { "tanh(?x)", "?x", where = handled, name = "mine" } } do
      local set = pl.rules { rule }
      for _, run in ipairs { set, pl.function_pass { name = "P", run = set } } do
        local ok, err = pcall(pl.with, context, run, mod)
        assert.is_false(ok)
        assert.matches("it took longer than limit.seconds = 0.05", tostring(err), 1, true)
        assert.matches("language_spec.lua:%d+: note: in rule 'mine'", tostring(err))
        assert.equal(text, tostring(mod))
      end
    end
  end)

  it("of another function's nodes is an error, of a function of its own is not", function()
    local mod, T = program "tanh(%x)", "Tensor[(2, 3), float32]"
    local other = assert(pl.parse('#[version = "0.0.5"]\ndef @f(%q: ' .. T .. ") { exp(%q) }"))
    local function made(make)
      return pl.rules { { "tanh(?x)", make, name = "mine" } }(mod)
    end
    for _, foreign in ipairs { other.f.body, other.f.params[1], pl.var("q", T) } do
      local ok, err = pcall(made, function() return foreign end)
      assert.is_false(ok)
      assert.matches("language_spec.lua:%d+: error: rule 'mine': its replacement has the variable "
        .. "'q', which the function does not have", tostring(err))
    end
    local v = pl.var("v", T)
    for _, make in ipairs {
      function(m) return pl.let(v, m.x, pl.op.exp(v)) end,
      function(m) return pl.call(pl.func({ v }, pl.op.exp(v)), { m.x }) end,
      function(m) return pl.call(other.f, { m.x }) end,
    } do
      assert(pl.verify(made(make)))
    end
    -- an expression may have any variable
    assert.equal("q", pl.rules { { "tanh(?x)", function() return pl.var("q", T) end } }
      (pl.op.tanh(v)).name)
  end)

  it("of a callback that raises, yields or gives something else is an error", function()
    local function fails(replacement, wanted)
      local rules = pl.rules { { "nn.relu(?x)", replacement, name = "mine" } }
      local mod = program "nn.relu(%x)"
      local ok, err = pcall(rules, mod)
      assert.is_false(ok)
      assert.matches(wanted, tostring(err))
      assert.matches("rule 'mine'", tostring(err))
      assert.equal("nn.relu", mod.main.body.op.name)
    end
    fails(function() error "boom" end, "boom")
    fails(function() coroutine.yield() end, "yield")
    fails(function() return "text" end, "got string")
    fails(function() return {} end, "got table")
  end)

  it("or a condition that raises an object is an error with the rule and the object", function()
    local mod = program "nn.relu(%x)"
    local text = tostring(mod)
    local named = setmetatable({}, { __tostring = function() return "named" end })
    local broken = setmetatable({}, { __tostring = function() error {} end })
    for _, case in ipairs { { { code = 7 }, "an error object %(a table%)" },
      { { message = "no luck" }, "no luck" }, { named, "named" },
      { broken, "an error object %(a table%)" }, { 42, "42" },
      { false, "an error without a message" } } do
      local object, wanted = table.unpack(case)
      local function raise() error(object) end
      for _, rule in ipairs { { "nn.relu(?x)", raise, name = "mine" },
        { "nn.relu(?x)", "?x", where = raise, name = "mine" } } do
        local set = pl.rules { rule }
        for _, run in ipairs { set, pl.function_pass { name = "P", run = set } } do
          local ok, err = pcall(run, mod)
          assert.is_false(ok)
          assert.matches("error: .*" .. wanted .. "\n.*language_spec.lua:%d+: note: in rule 'mine'",
            tostring(err))
          if object and object ~= broken then assert.equal(object, err.cause) end
          assert.equal(text, tostring(mod))
        end
      end
    end
  end)
end)

describe("the least number", function()
  it("is -inf in patterns and replacements", function()
    local mod = program "maximum(%x, -inff)"
    assert.equal("Var", pl.rules { "maximum(?x, -inf) => ?x" } (mod).main.body.kind)
    assert.equal(mod, pl.rules { "maximum(?x, inf) => ?x" } (mod))
    assert.equal("maximum", pl.rules { "tanh(?x) => maximum(?x, -inf)" }
      (program "tanh(%x)").main.body.op.name)
  end)
end)

describe("a condition that is neither true nor false", function()
  it("is an error", function()
    assert.matches("a condition expected, found a node", message { "tanh(?x) => ?x where ?x" })
    assert.matches("a condition expected, found a node",
      message { "tanh(?x) => ?x where ?x.rank == 2 and not ?x" })
    assert.matches("a condition expected, found a number", message { "tanh(?x) => ?x where 1" })
    assert.matches("a condition expected, found a list",
      message { "tanh(?x) => ?x where ?x.rank == 2 or [1, 2]" })
  end)
end)

describe("a pattern as Relay writes it", function()
  it("compares dtypes that are attributes by name", function()
    local function reached(rule)
      local mod = program "cast(cast(%x, dtype=\"float16\"), dtype=\"float32\")"
      return pl.rules { rule } (mod) ~= mod
    end
    assert.is_true(reached "cast(cast(?x, dtype=float16), dtype=float32) => ?x")
    assert.is_true(reached "cast(cast(?x, dtype='float16'), dtype=?d) => ?x where ?d == float32")
    assert.is_false(reached "cast(cast(?x, dtype=float64), dtype=float32) => ?x")
    assert.is_false(reached "cast(cast(?x, dtype=float16), dtype=?d) => ?x where ?d == int32")
  end)

  it("refuses a dtype that does not exist", function()
    assert.matches("there is no dtype 'flaot16'; did you mean 'float16'?",
      message { "cast(?x, dtype=flaot16) => ?x" }, 1, true)
    assert.matches("there is no dtype 'flot32'; did you mean 'float32'?",
      message { "tanh(?x) => cast(?x, dtype='flot32')" }, 1, true)
    assert.matches("there is no dtype 'nothing'", message { "nn.softmax(?x, axis=nothing) => ?x" })
  end)

  it("takes the tuple of an operator that joins one", function()
    local function body_of(rule)
      local mod = program "concatenate((%x, %y, tanh(%x)), axis=1)"
      return (tostring(pl.rules { rule } (mod).main.body):gsub(" */%*.-%*/", ""))
    end
    local swapped =
      body_of "concatenate(?x, ?y, tanh(?z), axis=1) => concatenate(?y, ?x, ?z, axis=1)"
    assert.matches("(%y, %x, %x)", swapped, 1, true)
    for _, rule in ipairs {
      "concatenate((?x, ?y, tanh(?z)), axis=1) => concatenate(?y, ?x, ?z, axis=1)",
      "concatenate(?x, ?y, tanh(?z), axis=1) => concatenate((?y, ?x, ?z), axis=1)",
      "concatenate((?x, ?y, tanh(?z)), axis=1) => concatenate((?y, ?x, ?z), axis=1)",
    } do assert.equal(swapped, body_of(rule)) end
    local set = pl.rules {
      "wrong: concatenate((?x, exp(?y)), axis=0) => concatenate((?x, ?y), axis=0)" }
    assert.equal("failed", set:check()[1].status)
  end)
end)

describe("an integer of 64 bits", function()
  local function body_of(dtype, body, rule)
    local mod = assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%x: Tensor[(2, 3), %s]) {
  %s
}
]]):format(dtype, body)))
    return (tostring(pl.rules { rule } (mod).main.body):gsub("^free_var[^\n]*\n", "")
      :gsub(" */%*.-%*/", ""):gsub("%s+$", ""))
  end

  it("is compared exactly in a pattern", function()
    local numbers = { "9223372036854775807", "9223372036854775806", "-9223372036854775808",
      "-9223372036854775807", "9007199254740993", "9007199254740992", "4611686018427387904" }
    for _, have in ipairs(numbers) do
      for _, wanted in ipairs(numbers) do
        local body = body_of("int64", ("add(%%x, %si64)"):format(have),
          ("add(?x, %s) => ?x"):format(wanted))
        assert.equal(have == wanted, body == "%x", have .. " " .. wanted)
      end
    end
    assert.equal("%x", body_of("int64", "add(%x, 4611686018427387904i64)",
      "add(?x, ?c:splat) => ?x"))
  end)

  it("is built exactly", function()
    for _, n in ipairs { "9223372036854775807", "-9223372036854775808", "9007199254740993",
      "-9223372032559808512" } do
      local wanted = ("add(%%x, %si64)"):format(n)
      assert.equal(wanted, body_of("int64", "abs(%x)", ("abs(?x) => add(?x, %s)"):format(n)))
      assert.equal(wanted, body_of("int64", "abs(%x)",
        ("abs(?x) => add(?x, constant(%s))"):format(n)))
    end
    assert.equal("add(%x, 9223372036854775807i64)", body_of("int64",
      "add(%x, 9223372036854775806i64)",
      "add(?x, ?c:scalar) => add(?x, constant(?c.value + 1)) where ?c.value % 2 == 0"))
  end)

  it("is compared exactly in a condition", function()
    local function holds(number, condition)
      return body_of("int64", ("add(%%x, %si64)"):format(number),
        "add(?x, ?c:const) => ?x where " .. condition) == "%x"
    end
    assert.is_true(holds("9223372036854775807", "?c.value == 9223372036854775807"))
    assert.is_false(holds("9223372036854775806", "?c.value == 9223372036854775807"))
    assert.is_true(holds("9223372036854775806", "?c.value < 9223372036854775807"))
    assert.is_false(holds("9223372036854775807", "?c.value == 9223372036854775808.0"))
    assert.is_true(holds("-9223372036854775808", "?c.value == -9223372036854775808"))
    assert.is_false(holds("-9223372036854775807", "?c.value == -9223372036854775808"))
    assert.is_true(holds("9007199254740993", "scalar(?c) == 9007199254740993"))
  end)

  it("with more bits, or a number beyond floats, is an error", function()
    for _, n in ipairs { "9223372036854775808", "-9223372036854775809", "18446744073709551616" } do
      assert.matches("an integer is from %-9223372036854775808 to 9223372036854775807",
        message { ("add(?x, %s) => ?x"):format(n) })
    end
    assert.matches("infinity is written inf", message { "add(?x, 1e400) => ?x" })
    assert.matches("an integer outside of a pattern is",
      message { "abs(?x) => add(?x, -9223372036854775807)" })
  end)
end)

describe("a condition in Lua", function()
  local function answer(value)
    local set = pl.rules { { "nn.relu(?x)", "?x", name = "mine",
      where = function() return value end } }
    local mod = program "nn.relu(%x)"
    local ok, out = pcall(set, mod)
    if ok then return true, out ~= mod end
    return false, out
  end

  it("answers true, or false or nil", function()
    assert.same({ true, true }, { answer(true) })
    assert.same({ true, false }, { answer(false) })
    assert.same({ true, false }, { answer(nil) })
  end)

  it("that answers anything else is an error with the rule and its place", function()
    for _, value in ipairs { "no", 0, {}, print, pl.var("x", "float32") } do
      local ok, err = answer(value)
      assert.is_false(ok)
      assert.matches("language_spec.lua:%d+: rule 'mine': its condition answers true or false "
        .. "%(or nil%), got " .. (type(value) == "userdata" and "perilune.Node" or type(value)),
        tostring(err))
    end
  end)
end)

describe("a wrong rule", function()
  it("is refused with its place", function()
    assert.matches("language_spec.lua:%d+:1: error: there is no operator 'nn.rulu'; "
      .. "did you mean 'nn.relu'?", tostring(select(2, pcall(pl.rules, { "nn.rulu(?x) => ?x" }))))
    assert.matches("the pattern does not bind ?y", message { "nn.relu(?x) => ?y" }, 1, true)
    assert.matches("'transpose' has no attribute 'axs'; did you mean 'axes'?",
      message { "transpose(?x, axs=?p) => ?x" }, 1, true)
    assert.matches("there is no constraint 'cnst'; did you mean 'const'?",
      message { "add(?x:cnst, 0) => ?x" }, 1, true)
    assert.matches("there is no function 'lenn'; did you mean 'len'?",
      message { "add(?x, 0) => ?x where lenn(?x.shape) == 1" }, 1, true)
    assert.matches("a rule needs a replacement", message { "add(?x, 0)" })
    assert.matches("matches any node", message { "?x => ?x" })
    assert.matches("')' expected", message { "add(?x, 0 => ?x" }, 1, true)
  end)

  it("is refused for values that nothing has", function()
    for _, case in ipairs {
      { "?x.type == 1", "'type' is no property (shape, rank, dtype, size, value, uses, op)" },
      { "?x.shap == [1]", "'shap' is no property and no attribute of an operator; did you mean "
        .. "'shape'?" },
      { "?s.axs == 1", "'axs' is no property (shape, rank, dtype, size, value, uses, op) and no "
        .. "attribute of nn.softmax" },
      { "?x.axis == 1", "write the call's operator in the pattern: ?x@op(...)" },
      { "?x.shape.rank == 1", "'.rank': only a node has properties" },
      { "?a.rank == 1", "?a is the value of an attribute, which has no properties" },
      { "?x.dtype == float23", "there is no dtype 'float23'; did you mean 'float32'?" },
      { "'floot32' == ?x.dtype", "there is no dtype 'floot32'; did you mean 'float32'?" },
      { "?x.dtype in [float32, float16]", "the elements of a list are integers" },
      { "opse >= 13", "there is no value 'opse'; a variable is written ?opse; did you mean "
        .. "'opset'?" },
      { "onyx", "there is no value 'onyx'" },
      { "not 'text'", "a number or a condition expected, found a text" },
      { "?x.rank == 1 && true", "'&&' is written 'and'" },
      { "?x.rank == 1 || true", "'||' is written 'or'" },
      { "?x.rank = 1", "'=' compares nothing; '==' expected" },
      { "!onnx", "'!' is written 'not'" },
      { "%x.rank == 1", "a variable is written ?x" },
    } do
      local text = message { "?s@nn.softmax(?x, axis=?a) => ?x where " .. case[1] }
      assert.matches(case[2], text, 1, true)
    end
    assert.matches("?x stands for several operands", message { "concatenate(?x...) => concatenate"
      .. "(?x...) where ?x.rank == 1" }, 1, true)
    assert.matches("the arrow is written '=>'", message { "tanh(?x) -> ?x" }, 1, true)
    assert.matches("a condition begins with 'where'", message { "tanh(?x) => ?x if onnx" }, 1, true)
    assert.matches("no operator 'Relu'; did you mean 'nn.relu'?", message { "Relu(?x) => ?x" }, 1,
      true)
    assert.equal(1, #pl.rules { "?s@{nn.softmax|nn.log_softmax}(?x, axis=?a) => ?s where "
      .. "?s.axis == ?a and ?a == -1 and 'float32' == ?x.dtype and 3 in [1, 2]" })
  end)

  it("is refused when its replacement always has another type", function()
    for text, what in pairs {
      ["equal(?x, ?y) => cast(?x, dtype='int8')"] = "of type Tensor[(1, 1), bool] by one of type "
        .. "Tensor[(1, 1), int8]",
      ["nn.relu(?x:int) => (?x, ?x)"] = "Tensor[(1, 1), int64] by one of type (Tensor[(1, 1), int64"
        .. "]",
      ["(?x, tanh(?y)).1 => (?x, ?y)"] = "by one of type (Tensor[(1, 1), float32],",
      ["negative(?x) => add(?x)"] = "'add' takes at least 2 arguments, got 1",
    } do
      local said = message { text }
      assert.matches(what, said, 1, true)
      assert.matches("rewriting.lua:%d+: ", said)
      assert.matches("no dtype and no rank of the rule's variables", said, 1, true)
    end
    -- there are operands for which these fit, or their conditions may say so
    for _, text in ipairs { "cast(?x, dtype='int64') => ?x",
      "nn.relu(?x) => transpose(?x, axes=[1, 0])",
      "nn.relu(?x) => transpose(transpose(?x, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])",
      "equal(?x, ?y) => add(?x, ?y)", "nn.relu(?x) => 3", "add(?x, 0) => ?x" } do
      assert.equal(1, #pl.rules { text })
    end
  end)

  it("is refused when its pattern matches its replacement", function()
    for _, text in ipairs { "add(?x, ?y) => add(?y, ?x)", "tanh(?x) => negative(tanh(?x))",
      "sum(?x, axis=?a) => sum(exp(?x), axis=?a)", "?f{add|multiply}(?x, ?y) => ?f(?y, ?x)",
      "minimum(?x, 1) => negative(minimum(1, ?x))" } do
      assert.matches("the rule would be applied for ever", message { text }, 1, true)
    end
    for _, text in ipairs { "subtract(?x:const, ?y) => subtract(?y, ?x)",
      "minimum(?x, ?x) => minimum(?x, 1)",
      "add(?x, ?y) => add(?y, ?x) where ?x.rank < ?y.rank", "sum(?x, axis=1) => sum(?x, axis=0)",
      "multiply(?x, add(?y, ?z)) => add(multiply(?x, ?y), multiply(?x, ?z))" } do
      assert.equal(1, #pl.rules { text })
    end
  end)

  it("is reported when an earlier rule matches whatever it matches", function()
    local function warnings(rules)
      local text = {}
      pl.rules(rules)
      for i, diag in ipairs(pl.diagnostics()) do text[i] = diag.message end
      return table.concat(text, "\n")
    end
    assert.equal("rule 'add(?x:float, 0)' is never applied: rule 'add(?x, 0)', which is tried "
      .. "before it, matches whatever it matches",
      warnings { "add(?x, 0) => ?x", "add(?x:float, 0) => ?x" })
    assert.matches("rule 'tanh%(exp%(%?x%)%)' is never",
      warnings { "tanh(?x) => ?x", "tanh(exp(?x)) => ?x" })
    assert.matches("rule 'add%(%?x, %?x%)' is never",
      warnings { "add(?x, ?y) => ?x", "add(?x, ?x) => ?x" })
    assert.equal("", warnings { "add(?x, ?x) => ?x", "add(?x, ?y) => ?x" })
    assert.equal("", warnings { "add(?x, ?y) => ?x where x.uses == 1", "add(?x, ?x) => ?x" })
    assert.equal("", warnings { "sum(?x, axis=0) => ?x", "sum(?x, axis=1) => ?x" })
    assert.equal("", warnings { { "tanh(?x) => ?x", proof = "approximates" },
      "tanh(exp(?x)) => ?x" })
  end)

  it("is refused for its fields", function()
    assert.matches("rule 1 of 'rules': a rule has no field 'reson'; did you mean 'reason'?",
      message { { "add(?x, 0) => ?x", reson = "" } }, 1, true)
    assert.matches("proof is 'exact', 'reassociates' or 'approximates'",
      message { { "add(?x, 0) => ?x", proof = "sure" } }, 1, true)
    assert.matches("the replacement: a function expected, got number",
      message { { "add(?x, 0)", 1 } }, 1, true)
  end)
end)

describe("finite_math", function()
  it("is known to conditions when the run allows it", function()
    local rules = pl.rules { "where(isnan(?s@nn.softmax(?x)), 0, ?s) => ?s where finite_math" }
    local mod = program "%0 = nn.softmax(%x); where(isnan(%0), 0f, %0)"
    assert.equal(mod, (rules:apply(mod)))
    assert.equal("nn.softmax", rules:apply(mod, { finite_math = true }).main.body.op.name)
  end)
end)

describe("uses", function()
  it("of what a replacement keeps do not end", function()
    local rules = { "add(?x, 0) => ?x", "exp(?y:once) => sin(?y)" }
    assert.matches("exp", rewritten(rules, "%0 = tanh(%x); (add(sigmoid(%0), 0f), exp(%0))"))
  end)

  it("that end let nodes match that were looked at before", function()
    local rules = { "exp(?y:once) => sin(?y)", "multiply(?x, sigmoid(?y)) => negative(?x)" }
    assert.matches("sin", rewritten(rules,
      "%0 = tanh(%x); %1 = exp(%0); multiply(%1, sigmoid(%0))"))
  end)
end)

describe("a set", function()
  it("counts what its rules did", function()
    local rules = pl.rules "algebra" { { "add(?x, 0) => ?x", name = "zero" },
      { "multiply(?x, 1) => ?x", name = "one" } }
    local mod = program "add(multiply(add(%x, 0f), 2f), 0f)"
    local _, counts = rules:apply(mod)
    assert.same({ name = "zero", tried = 2, matches = 2, refused = 0, applied = 2,
      last = "text:3:1" }, counts[1])
    assert.same({ name = "one", tried = 1, matches = 0, refused = 0, applied = 0 }, counts[2])
    assert.matches("one +1 +0 +0 +0 +never applied", tostring(counts))
    assert.equal(2, #rules)
  end)

  it("refuses names in the option only that no rule has", function()
    local set = pl.rules { "add_zero: add(?x, 0) => ?x" }
    local mod = program "add(%x, 0f)"
    assert.equal(1, select(2, set:apply(mod, { only = { "add_zero" } }))[1].applied)
    local ok, err = pcall(set.apply, set, mod, { only = { "add_zer" } })
    assert.is_false(ok)
    assert.matches("rules:apply: only: no rule is called 'add_zer'; did you mean 'add_zero'?",
      tostring(err), 1, true)
  end)

  it("gives back what it does not change", function()
    local mod = program "nn.relu(%x)"
    assert.equal(mod, pl.rules { "add(?x, 0) => ?x" }(mod))
  end)

  it("runs as a pass", function()
    pl.passes.Algebra = { kind = "function", run = pl.rules { "add(?x, 0) => ?x" } }
    local out = pl.sequential { "Algebra" }(program "add(%x, 0f)")
    pl.passes.Algebra = nil
    assert.equal("Var", out.main.body.kind)
  end)

  it("makes equal computations one node when asked", function()
    local rules = pl.rules { "tanh(tanh(?x)) => tanh(?x)" }
    local mod = program "add(exp(%x), exp(%x))"
    local shared = rules:apply(mod, { share = true }).main.body
    assert.equal(shared.args[1], shared.args[2])
    assert.equal(mod, (rules:apply(mod)))
  end)
end)
