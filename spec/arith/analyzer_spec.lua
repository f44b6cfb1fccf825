-- The analyzer of integer expressions: contexts, analyses, deep expressions, bad input.

local pl = require "perilune"
local tir = pl.tir

local x, y, n = tir.Var "x", tir.Var "y", tir.SizeVar "n"
local names = { x = x, y = y, n = n }

local function expr(text) return assert(pl.tir.parse_expr(text, "expr", names)) end

local function simplified(method, text, analyzer)
  analyzer = analyzer or pl.arith.Analyzer()
  return tostring(analyzer[method](analyzer, expr(text)))
end

describe("const_int_bound", function()
  it("combines the bounds of operands, with infinities", function()
    local analyzer = pl.arith.Analyzer()
    analyzer:bind(x, tir.Range(0, 16))
    local bound = analyzer:const_int_bound(expr "x * 8 + 7")
    assert.are.same({ min_value = 7, max_value = 127 }, bound)
    assert.are.equal(0, analyzer:const_int_bound(n).min_value)
    local wide = tir.Var("w", "int64")
    assert.are.same({ min_value = -math.maxinteger, max_value = math.maxinteger },
      analyzer:const_int_bound(wide * wide))
  end)

  it("is exact for a divisor that does not overflow", function()
    local analyzer = pl.arith.Analyzer()
    local w = tir.Var("w", "int64")
    analyzer:update(w, { min_value = -math.maxinteger, max_value = -math.maxinteger + 1 })
    local bound = analyzer:const_int_bound(tir.FloorDiv(w, tir.IntImm("int64", -1)))
    assert.is_true(bound.max_value >= math.maxinteger - 1)
  end)

  it("uses conditions while their scope is open", function()
    local analyzer = pl.arith.Analyzer()
    local inside = analyzer:constraint_scope(expr "x + y < 10", function(a)
      return a:const_int_bound(expr "x + y").max_value
    end)
    assert.are.equal(9, inside)
    assert.is_true(analyzer:const_int_bound(expr "x + y").max_value > 1000)
  end)
end)

describe("modular_set", function()
  it("keeps remainders through arithmetic", function()
    local analyzer = pl.arith.Analyzer()
    assert.are.same({ coeff = 6, base = 5 }, analyzer:modular_set(expr "x * 6 - y * 12 + 5"))
    analyzer:update(x, { coeff = 4, base = 2 })
    assert.are.same({ coeff = 4, base = 3 }, analyzer:modular_set(expr "x + 1"))
    assert.are.same({ coeff = 2, base = 1 }, analyzer:modular_set(expr "x // 2"))
  end)
end)

describe("simplification", function()
  it("by rules", function()
    assert.are.equal("x", simplified("rewrite_simplify", "x - (y + 1) + (y + 1)"))
    assert.are.equal("T.max(x, 3) * 3", simplified("rewrite_simplify", "T.max(x * 3, 9)"))
    assert.are.equal("25 <= x", simplified("rewrite_simplify", "x * 2 >= 50"))
  end)

  it("to normal form", function()
    assert.are.equal("x", simplified("canonical_simplify", "x // 6 * 6 + x // 3 % 2 * 3 + x % 3"))
    assert.are.equal("1 - x", simplified("canonical_simplify", "x * 3 - 4 * x + 1"))
  end)

  it("with the ranges of variables", function()
    local analyzer = pl.arith.Analyzer()
    analyzer:bind(y, tir.Range(0, 8))
    assert.are.equal("x", simplified("simplify", "(x * 8 + y) // 8", analyzer))
    assert.are.equal("x < 16", simplified("simplify", "x * 8 + y < 128", analyzer))
  end)

  it("leaves what overflows and what divides by zero", function()
    assert.are.equal("T.FloorDiv(x, 0)", tostring(pl.arith.Analyzer():simplify(tir.FloorDiv(x, 0))))
    local most = tir.IntImm("int32", 0x7fffffff)
    local sum = pl.arith.Analyzer():simplify(tir.Add(most, tir.Add(x, most)))
    assert.is_truthy(tostring(sum):find "x")
  end)

  it("combines known inequalities when asked to", function()
    local z = tir.Var "z"
    local condition = tir.And(tir.LE(x, y), tir.LT(y, z))
    local analyzer = pl.arith.Analyzer()
    local function proves()
      return analyzer:constraint_scope(condition, function(a) return a:can_prove(tir.LT(x, z)) end)
    end
    assert.is_false(proves())
    analyzer:set_enabled_extensions "transitively_prove_inequalities"
    assert.is_true(proves())
  end)
end)

describe("conditions of several parts", function()
  local i, j = tir.Var "i", tir.Var "j"

  local function with(extensions, condition)
    local analyzer = pl.arith.Analyzer()
    analyzer:set_enabled_extensions(table.unpack(extensions))
    return tostring(analyzer:simplify(condition))
  end

  -- The value of a condition over i and j, for small numbers.
  local function table_of(condition)
    local out = {}
    for _, a in ipairs { -1, 0, 2, 3, 5, 10, 11 } do
      for _, b in ipairs { -1, 0, 2, 3, 5, 10, 11 } do
        out[#out + 1] = tostring(pl.arith.Analyzer():simplify(
          tir.substitute(condition, { [i] = a, [j] = b })))
      end
    end
    return table.concat(out, " ")
  end

  it("are simplified where the other part holds, or does not, when asked to", function()
    local name = "apply_constraints_to_boolean_branches"
    local both = tir.And(tir.LT(i, 5), tir.LT(i, 10))
    assert.are.equal("i < 5", with({ name }, both))
    assert.are.equal("i < 5 and i < 10", with({}, both))
    assert.are.equal("i < 10", with({ name }, tir.Or(tir.LT(i, 10), tir.LT(i, 5))))
    assert.are.equal("i < j + 10", with(
      { name, "transitively_prove_inequalities" }, tir.Or(tir.LT(i, j + 5), tir.LT(i, j + 10))))
  end)

  it("of 100 parts are simplified under each other in bounded time", function()
    local analyzer, chain = pl.arith.Analyzer(), tir.LT(x, 3)
    analyzer:set_enabled_extensions "apply_constraints_to_boolean_branches"
    for k = 1, 100 do chain = tir.And(chain, tir.LT(tir.Var("v" .. k, "int32"), k)) end
    local start = os.clock()
    analyzer:rewrite_simplify(chain)
    assert.is_true(os.clock() - start < 2)
  end)

  it("become a conjunction of disjunctions when asked to", function()
    local name = "convert_boolean_to_and_of_ors"
    assert.are.equal("(i == 0 or j == 10) and i == 2", with({ name },
      tir.And(tir.EQ(i, 2), tir.And(tir.Or(tir.EQ(i, 0), tir.EQ(j, 10)), tir.NE(i, 3)))))
    assert.are.equal("j == 0 or i != 3",
      with({ name }, tir.Or(tir.Or(tir.EQ(i, 2), tir.EQ(j, 0)), tir.NE(i, 3))))
  end)

  it("stay as they are where that would be too large", function()
    local any
    for k = 1, 12 do
      local both = tir.And(tir.EQ(tir.Var("p" .. k), 0), tir.EQ(tir.Var("q" .. k), 0))
      any = any and tir.Or(any, both) or both
    end
    assert.are.equal(with({}, any), with({ "convert_boolean_to_and_of_ors" }, any))
  end)

  it("keep their values", function()
    local state = 7
    local function random(most)
      state = (state * 75 + 74) % 65537
      return state % most
    end
    local compare = { tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE }
    local function condition(depth)
      if depth == 0 or random(4) == 0 then
        return compare[random(6) + 1](random(2) == 0 and i or j, random(2) == 0
          and random(11) or (random(2) == 0 and i or j) + random(5))
      end
      return (random(2) == 0 and tir.And or tir.Or)(condition(depth - 1), condition(depth - 1))
    end
    for _ = 1, 40 do
      local before = condition(3)
      for _, extensions in ipairs {
        { "apply_constraints_to_boolean_branches" }, { "convert_boolean_to_and_of_ors" },
        { "apply_constraints_to_boolean_branches", "convert_boolean_to_and_of_ors",
          "transitively_prove_inequalities" },
      } do
        local analyzer = pl.arith.Analyzer()
        analyzer:set_enabled_extensions(table.unpack(extensions))
        local after = analyzer:simplify(before)
        assert.are.equal(table_of(before), table_of(after),
          tostring(before) .. " became " .. tostring(after))
      end
    end
  end)
end)

describe("reductions in normal form", function()
  local A = pl.te.placeholder({ 10 }, "float32", "A")
  local k = pl.te.reduce_axis({ 0, 10 }, "k")
  local choice = tir.Var "choice"

  local function constants(a, b)
    return function() return { tir.const(a, "float32"), tir.const(b, "float32") } end
  end

  local function same(expected, before, bound)
    local analyzer = pl.arith.Analyzer()
    if bound then analyzer:update(choice, { min_value = bound[1], max_value = bound[2] }) end
    local after = analyzer:canonical_simplify(before)
    assert.is_true(pl.equal(expected, after, { map_free_vars = true }), tostring(after))
  end

  it("have the values of a combiner that the result depends on", function()
    local both = tir.comm_reducer(function(u, v) return { u[1] + v[1], u[2] * v[2] } end,
      constants(0.0, 1.0))
    local first, second = both({ A[{ k }], A[{ 9 - k.var }] }, k)
    same(tir.sum(A[{ k }], k), first)
    same(tir.prod(A[{ 9 - k.var }], k), second)
    local chained = tir.comm_reducer(
      function(u, v) return { u[1] + v[1], u[1] * v[2] + u[2] } end, constants(0.0, 0.0))
    first, second = chained({ A[{ k }], A[{ k }] }, k)
    same(tir.sum(A[{ k }], k), first)
    same(second, second)
  end)

  it("keep a value whose source is computed for its effect", function()
    local both = tir.comm_reducer(function(u, v) return { u[1] + v[1], u[2] * v[2] } end,
      constants(0.0, 1.0))
    local write = tir.call_extern("float32", "write", A[{ k }])
    local first, second = both({ A[{ k }], write }, k)
    same(first, first)
    same(tir.comm_reducer(function(u, v) return u * v end, function()
      return tir.const(1.0, "float32") end)(write, k), second)
  end)

  it("have a combiner that is simplified", function()
    local chosen = tir.comm_reducer(
      function(u, v) return tir.Select(tir.LT(choice, 0), u + v, u * v) end,
      function()
        return tir.Select(tir.LT(choice, 0), tir.const(0.0, "float32"), tir.const(1.0, "float32"))
      end)
    same(tir.sum(A[{ k }], k), chosen(A[{ k }], k), { -9, -1 })
    same(tir.prod(A[{ k }], k), chosen(A[{ k }], k), { 0, 5 })
  end)
end)

describe("remainders towards zero", function()
  local function bound(text, low, high)
    local analyzer = pl.arith.Analyzer()
    analyzer:update(x, { min_value = low, max_value = high })
    local found = analyzer:const_int_bound(expr(text))
    return { found.min_value, found.max_value }
  end

  it("are congruent to what is divided", function()
    assert.are.same({ -8, 8 }, bound("T.truncmod(x * 8, 12)", -100, 100))
    assert.are.same({ -11, 9 }, bound("T.truncmod(x * 4 + 1, 12)", -100, 100))
    assert.are.same({ 1, 9 }, bound("T.truncmod(x * 4 + 1, 12)", 0, 100))
  end)

  it("are what is divided where it is small", function()
    assert.are.same({ -4, -2 }, bound("T.truncmod(x, 5)", -4, -2))
    local analyzer = pl.arith.Analyzer()
    analyzer:update(x, { min_value = -4, max_value = 4 })
    assert.are.equal("x", tostring(analyzer:canonical_simplify(expr "T.truncmod(x, 5)")))
    assert.are.equal("0", tostring(analyzer:canonical_simplify(expr "T.Div(x, 5)")))
  end)

  it("of remainders less a multiple are taken at once, where nothing is negative", function()
    local text = "T.truncmod(T.truncmod(x + y - 466036, 24528) - 24512, 16)"
    local analyzer = pl.arith.Analyzer()
    assert.are.equal(text, tostring(analyzer:canonical_simplify(expr(text))))
    local inside = analyzer:constraint_scope(expr "x + y >= 466036", function(a)
      return a:constraint_scope(expr "24512 <= T.truncmod(x + y - 4, 24528)", function(b)
        return tostring(b:canonical_simplify(expr(text)))
      end)
    end)
    assert.are.equal("T.truncmod(x + y - 4, 16)", inside)
    analyzer:update(x, { min_value = 0, max_value = 200 })
    assert.are.equal("x % 16", tostring(analyzer:constraint_scope(expr "x % 64 >= 48",
      function(a) return a:canonical_simplify(expr "T.FloorMod(x % 64 - 48, 16)") end)))
    for value = -64, 130 do
      local known = pl.arith.Analyzer()
      known:bind(x, value)
      assert.are.equal(tostring(math.fmod(math.fmod(value, 64) - 48, 16)),
        simplified("canonical_simplify", "T.truncmod(T.truncmod(x, 64) - 48, 16)", known))
    end
  end)

  it("and quotients have common factors cancelled", function()
    assert.are.equal("(x + 1) // 16",
      tostring(pl.arith.Analyzer():simplify(expr "(x * 2 + 3) // 32")))
  end)
end)

describe("casts of sums in normal form", function()
  local function canonical(text, vars, bounds)
    local analyzer = pl.arith.Analyzer()
    for name, bound in pairs(bounds or {}) do
      analyzer:update(vars[name], { min_value = bound[1], max_value = bound[2] })
    end
    return tostring(analyzer:canonical_simplify(assert(tir.parse_expr(text, "text", vars))))
  end

  local narrow = { i = tir.Var("i", "int32"), j = tir.Var("j", "int32") }
  local wide = { i = tir.Var("i", "int64"), j = tir.Var("j", "int64") }

  it("are sums of casts where the dtype is wider", function()
    assert.are.equal('T.Cast("int64", j) + T.int64(1)',
      canonical('T.Cast("int64", i + j + 1) - T.Cast("int64", i)', narrow))
  end)

  it("are sums of casts where all values fit", function()
    local text = 'T.Cast("int32", i + j + T.int64(1)) - T.Cast("int32", i)'
    assert.are.equal('T.Cast("int32", j) + 1',
      canonical(text, wide, { i = { 0, 10 }, j = { 0, 10 } }))
    assert.are.equal(text, canonical(text, wide, { i = { 0, 2 ^ 31 | 0 }, j = { 0, 10 } }))
    local remainder = 'T.Cast("int32", i % T.int64(7) * T.int64(2) + T.int64(1)) + 1'
      .. ' - T.Cast("int32", i % T.int64(7) * T.int64(2))'
    assert.are.equal("2", canonical(remainder, wide, { i = { 0, 42 } }))
  end)

  it("stay where a sum on the way overflows", function()
    local text = 'T.Cast("int32", i + j - T.int64(100))'
    assert.are.equal(text,
      canonical(text, wide, { i = { 0, (1 << 31) - 1 }, j = { 0, 10 } }))
  end)

  it("compare a negated variable with the least integer", function()
    assert.are.equal("i == -2147483648", canonical("i * -1 + -2147483648 == 0", narrow))
  end)
end)

describe("branches", function()
  it("that a known condition takes are simplified", function()
    local analyzer = pl.arith.Analyzer()
    analyzer:bind(x, tir.Range(0, 4))
    local inner = tir.Select(tir.GE(x, -5), y + 0, n)
    for _, name in ipairs { "rewrite_simplify", "canonical_simplify" } do
      assert.are.equal("y", tostring(analyzer[name](analyzer,
        tir.Select(tir.LT(tir.FloorMod(y, 3), 3), inner, n))))
    end
  end)
end)

describe("shifts to the left", function()
  it("stay in their dtype", function()
    local bound = pl.arith.Analyzer():const_int_bound(x << 2)
    assert.are.same({ -(1 << 31), (1 << 31) - 1 }, { bound.min_value, bound.max_value })
  end)
end)

describe("proofs and sets", function()
  it("use symbolic bounds with strength symbolic_bound", function()
    local analyzer = pl.arith.Analyzer()
    local i = tir.Var "i"
    analyzer:bind(i, tir.Range(0, n))
    assert.is_true(analyzer:can_prove(tir.LT(i, n), "symbolic_bound"))
  end)

  it("evaluate intervals of expressions", function()
    local set = pl.arith.Analyzer():int_set(expr "x - y",
      { [x] = { min_value = 0, max_value = 10 }, [y] = { min_value = 1, max_value = 11 } })
    assert.are.equal("-11 9", tostring(set.min_value) .. " " .. tostring(set.max_value))
  end)

  it("deduce the bound of a variable", function()
    local set = pl.arith.deduce_bound(x, expr "x * 4 + y < 17", {},
      { [y] = { min_value = 0, max_value = 4 } })
    assert.are.equal("neg_inf", set.min_value)
    assert.are.equal("3", tostring(set.max_value))
  end)

  it("deduce nothing from what is no comparison", function()
    for _, condition in ipairs { x, tir.IntImm("int32", 1 << 30), expr "x + y" } do
      local set = pl.arith.deduce_bound(x, condition, {}, {})
      assert.same({ "pos_inf", "neg_inf" }, { set.min_value, set.max_value })
    end
  end)

  it("know the remainders of what is a multiple, and those of negative divisors", function()
    local function set(text)
      local found = pl.arith.Analyzer():int_set(expr(text), { [x] = tir.Range(0, 10) })
      return ("%s %s"):format(found.min_value, found.max_value)
    end
    assert.are.equal("0 0", set "x * 16 % 2")
    assert.are.equal("2 6", set "(x * 4 + 2) % 8")
    assert.are.equal("-2 0", set "x % -3")
  end)

  it("clip a variable with any factor to the inside", function()
    local function clip(text)
      local found = pl.arith.detect_clip_bound(expr(text), { x })
      return ("%s %s"):format(found[1], found[2])
    end
    assert.are.equal("false 1", clip "x * 16 + 2 < 19")
    assert.are.equal("7 false", clip "16 - x * 2 < 4")
    assert.are.equal("-1 false", clip "-3 - x * 4 < 2")
  end)

  it("find coefficients, clip bounds and narrower conditions", function()
    local list = pl.arith.detect_linear_equation(expr "x * 4 + (x + 1) + y * 6 + 7", { x })
    assert.are.equal("5", tostring(list[1]))
    assert.are.same({}, pl.arith.detect_linear_equation(expr "x * x", { x }))
    local clip = pl.arith.detect_clip_bound(expr "x > 3 and x <= y", { x })
    assert.are.equal("4 y", tostring(clip[1]) .. " " .. tostring(clip[2]))
    local narrow = pl.arith.narrow_predicate_expression(expr "y + x < 10",
      { [x] = tir.Range(0, 8) })
    assert.are.equal("y + 7 < 10", tostring(narrow))
  end)

  it("refuse to narrow what is no condition", function()
    local ok, message = pcall(pl.arith.narrow_predicate_expression, x, { [x] = tir.Range(0, 8) })
    assert.is_false(ok)
    assert.matches("a constraint is a condition, not of dtype int32", tostring(message), 1, true)
  end)

  it("solve linear equations", function()
    local solved = pl.arith.solve_linear_equations({ expr "x + y == 20", expr "x - y == 10" },
      { x, y })
    assert.are.equal("15 5", ("%s %s"):format(solved.src_to_dst[x], solved.src_to_dst[y]))
    assert.is_nil(pl.arith.solve_linear_equations({ expr "x * 2 == 5" }, { x }))
  end)
end)

describe("deep and large expressions", function()
  it("take time linear in their size", function()
    local makes = {
      function(e, i) return tir.FloorDiv(tir.Add(e, i), 3) end,
      function(e) return tir.Add(e, e) end,
      function(e, i) return tir.Min(tir.Add(e, i), x) end,
      function(e, i) return tir.Select(tir.LT(x, i), e, tir.Add(e, 1)) end,
    }
    for _, make in ipairs(makes) do
      local e = x
      for i = 1, 20000 do e = make(e, i) end
      local analyzer = pl.arith.Analyzer()
      local term = analyzer:term(e)
      assert.is_true(analyzer.core:rewrite_simplify(term) > 0)
      assert.is_true(analyzer.core:canonical_simplify(term) > 0)
      assert.is_true(select("#", analyzer.core:const_int_bound(term)) == 2)
    end
  end)
end)

describe("bad input", function()
  it("is refused with a message", function()
    local analyzer = pl.arith.Analyzer()
    assert.has_error(function() analyzer:simplify {} end)
    assert.has_error(function() analyzer:bind(expr "x + 1", 3) end)
    assert.has_error(function() analyzer:bind(x, expr "x + 1") end)
    assert.has_error(function() analyzer:update(x, { min_value = 3, max_value = 2 }) end)
    assert.has_error(function() analyzer:enter(expr "x + 1") end)
    assert.has_error(function() analyzer.core:simplify(0) end)
    assert.has_error(function() analyzer.core:simplify(1 << 31) end)
    assert.has_error(function() analyzer:set_enabled_extensions "none" end)
  end)

  it("is named: what is no node, no function, no known key", function()
    local analyzer, arith = pl.arith.Analyzer(), pl.arith
    local function refuses(text, ...)
      local ok, message = pcall(...)
      assert.is_false(ok, text)
      assert.is_truthy(tostring(message):find(text, 1, true), message)
      assert.is_nil(tostring(message):find("attempt to", 1, true), message)
    end
    refuses("bind: var: a node expected", analyzer.bind, analyzer, 3, 4)
    refuses("update: var: a node expected", analyzer.update, analyzer, "x", { min_value = 1 })
    refuses("no option 'min'", analyzer.update, analyzer, x, { min = 3 })
    refuses("got {}", analyzer.update, analyzer, x, {})
    refuses("base without coeff", analyzer.update, analyzer, x, { base = 3 })
    refuses("expr: a node expected", analyzer.can_prove_less, analyzer, nil, 3)
    refuses("expr: a node expected", analyzer.can_prove_greater_equal, analyzer, 1, 3)
    refuses("body: a function expected", analyzer.constraint_scope, analyzer, expr "x < y", 3)
    refuses("no option 'min'", analyzer.int_set, analyzer, x, { [x] = { min = 3 } })
    refuses("min_value and max_value", analyzer.int_set, analyzer, x, { [x] = { min_value = 3 } })
    refuses("a node expected, got string", analyzer.int_set, analyzer, x, { x = 3 })
    refuses("min_value and max_value", arith.union, { { min_value = 3 } })
    refuses("min_value and max_value", arith.narrow_predicate_expression, expr "x < y",
      { [x] = {} })
    refuses("a Var expected", arith.detect_linear_equation, x, { expr "x + 1" })
    refuses("a Var expected", arith.detect_clip_bound, expr "x < y", { expr "x + 1" })
    refuses("a Var expected", arith.solve_linear_equations, {}, { expr "x + 1" })
    refuses("a Var expected", arith.solve_linear_inequalities, {}, { expr "x + 1" })
    refuses("the variables of a system are integers; one is a handle",
      arith.solve_linear_inequalities, {}, { tir.Var("h", "handle") })
    refuses("the variables of a system are integers; one is float32",
      arith.solve_linear_equations, {}, { tir.Var("f", "float32") })
    refuses("a Var expected", arith.subspace_divide, { x }, { [x] = { 0, 4 } }, { expr "x + 1" })
    refuses("a Range expected", arith.estimate_region_lower_bound, { x }, { [x] = { 0, 4 } })
    refuses("of dtype int32", arith.inverse_affine_iter_map,
      arith.detect_iter_map({ x }, { [x] = { 0, 8 } }).indices, { tir.Var("f", "float32") })
  end)

  it("leaves a scope whose body is refused", function()
    local analyzer = pl.arith.Analyzer()
    pcall(analyzer.constraint_scope, analyzer, expr "x < 3", 3)
    assert.is_false(analyzer:can_prove(expr "x < 3"))
  end)

  it("a binding is not replaced silently", function()
    local analyzer = pl.arith.Analyzer()
    analyzer:bind(x, tir.Range(0, 4))
    assert.has_error(function() analyzer:bind(x, tir.Range(0, 5)) end)
    analyzer:bind(x, tir.Range(0, 5), true)
    assert.are.equal(4, analyzer:const_int_bound(x).max_value)
  end)
end)

describe("the reader of expressions", function()
  it("reads what the printer prints", function()
    for _, text in ipairs { "x + y * 2", "(x + y) // 3 % 4", "T.min(x, y) - -5", "not x < y",
      "x == 1 and y != 2 or x < 3", "T.Select(x < y, x, 0)", "T.truncmod(x, 3)" } do
      assert.are.equal(tostring(expr(text)), tostring(expr(tostring(expr(text)))))
    end
    assert.has_error(function() expr "x +" end)
    assert.has_error(function() expr "z" end)
    assert.has_error(function() expr "(x" end)
    assert.has_error(function() expr "x $ y" end)
  end)
end)

describe("a quotient that does not fit in its dtype", function()
  it("stays as it is", function()
    for _, kind in ipairs { "FloorDiv", "Div" } do
      for dtype, least in pairs { int8 = -128, int32 = -1 << 31, int64 = math.mininteger } do
        local quotient = tir[kind](tir.IntImm(dtype, least), tir.IntImm(dtype, -1))
        for _, how in ipairs { "simplify", "rewrite_simplify", "canonical_simplify" } do
          local analyzer = pl.arith.Analyzer()
          assert.are.equal(tostring(quotient), tostring(analyzer[how](analyzer, quotient)))
        end
      end
    end
  end)
end)

describe("a quotient of a negated expression", function()
  it("is one by a negative number", function()
    assert.are.equal("x // -3", simplified("canonical_simplify", "x * -2 // 6"))
    assert.are.equal("T.Div(x, -3)", simplified("canonical_simplify", "T.Div(x * -1, 3)"))
    assert.are.equal("x // 2 // -3", simplified("canonical_simplify", "x // 2 * -1 // 3"))
  end)

  it("keeps its value", function()
    local analyzer = pl.arith.Analyzer()
    for _, text in ipairs { "x * -2 // 6", "T.Div(x * -2, 6)", "x // 2 * -1 // 3",
      "x % 5 * -1 // 3", "x * -1 // 3 // 2", "T.Div(T.Div(x * -1, 3), 2)", "x * -1 // 3 % 4",
      "(x * -1 // 4 * 2 + y) % 6", "T.truncmod(T.Div(x * -1, 3), 4)" } do
      local before = expr(text)
      local after = analyzer:simplify(before)
      for i = -128, 127 do
        local values = { [x] = tir.IntImm("int32", i), [y] = tir.IntImm("int32", i % 7) }
        assert.are.equal(tostring(analyzer:simplify(tir.substitute(before, values))),
          tostring(analyzer:simplify(tir.substitute(after, values))), text)
      end
    end
  end)
end)

describe("a product by a constant and that constant", function()
  it("stay a sum that like terms join", function()
    assert.are.equal("x * -3 + 5", simplified("rewrite_simplify", "5 + x * 5 + x * -8"))
    assert.are.equal("(x + 1) // 4", simplified("rewrite_simplify", "(x + x + 2) // 8"))
    assert.are.equal("x * (y + 1)", simplified("rewrite_simplify", "x * y + x"))
  end)
end)

describe("a comparison of a sum with a remainder", function()
  it("is divided by what divides the rest", function()
    assert.are.equal("x * 22 + y % 22 < 43",
      simplified("canonical_simplify", "x * 44 + y * 2 % 44 < 86"))
    assert.are.equal("x * 22 + y % 44 // 2 < 43",
      simplified("canonical_simplify", "x * 44 + y % 44 < 86"))
  end)

  it("keeps its value", function()
    local analyzer = pl.arith.Analyzer()
    local texts = { "x * %d + y %% %d < %d", "y %% %d + %d <= x * %d", "x * %d - y %% %d < %d",
      "x * %d + y %% %d // 2 < %d" }
    for _, text in ipairs(texts) do
      for _, row in ipairs { { 4, 8, 6 }, { 6, 12, -18 }, { 8, 4, 2 }, { 4, 12, 10 } } do
        local before = expr(text:format(table.unpack(row)))
        local after = analyzer:canonical_simplify(before)
        for i = -5, 5 do
          for k = -25, 25 do
            local values = { [x] = tir.IntImm("int32", i), [y] = tir.IntImm("int32", k) }
            assert.are.equal(tostring(analyzer:simplify(tir.substitute(before, values))),
              tostring(analyzer:simplify(tir.substitute(after, values))))
          end
        end
      end
    end
  end)
end)
