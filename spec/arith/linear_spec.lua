-- Linear inequalities and regions: solutions have exactly the points of the problem, by brute
-- force.

local pl = require "perilune"
local tir, arith = pl.tir, pl.arith

local seed = tonumber(os.getenv "PERILUNE_SEED") or 40
local names = { "x", "y", "z" }

-- A value of an expression; `env`: numbers by the name of the variable.
local binary = {
  Add = function(x, y) return x + y end, Sub = function(x, y) return x - y end,
  Mul = function(x, y) return x * y end, FloorDiv = function(x, y) return x // y end,
  FloorMod = function(x, y) return x % y end, Min = math.min, Max = math.max,
  LE = function(x, y) return x <= y end, LT = function(x, y) return x < y end,
  GE = function(x, y) return x >= y end, GT = function(x, y) return x > y end,
  EQ = function(x, y) return x == y end, NE = function(x, y) return x ~= y end,
  And = function(x, y) return x and y end, Or = function(x, y) return x or y end,
}

local function eval(node, env)
  if node.kind == "IntImm" then
    if node.dtype == "bool" then return node.value ~= 0 end
    return node.value
  elseif node.kind == "Var" then return assert(env[node.name], node.name)
  elseif node.kind == "Not" then return not eval(node[1], env) end
  return assert(binary[node.kind], node.kind)(eval(node[1], env), eval(node[2], env))
end

local function all_hold(list, env)
  for _, node in ipairs(list) do if not eval(node, env) then return false end end
  return true
end

local function in_ranges(ranges, env)
  for var, range in pairs(ranges) do
    local min = eval(range[1], env)
    if env[var.name] < min or env[var.name] >= min + eval(range[2], env) then return false end
  end
  return true
end

local function points(n, low, high, body, env, at)
  env, at = env or {}, at or 1
  if at > n then return body(env) end
  for value = low, high do
    env[names[at]] = value
    points(n, low, high, body, env, at + 1)
  end
end

local compare = { tir.LE, tir.LT, tir.GE, tir.GT, tir.EQ }

local function random_system(n)
  local vars, ranges, relations = {}, {}, {}
  for i = 1, n do
    vars[i] = tir.Var(names[i], "int32")
    local low = math.random(-4, 2)
    ranges[vars[i]] = tir.Range(low, low + math.random(1, 6))
  end
  for i = 1, math.random(4) do
    local sum = tir.IntImm("int32", math.random(-6, 6))
    for k = 1, n do sum = sum + vars[k] * math.random(-3, 3) end
    relations[i] = compare[math.random(8) == 1 and 5 or math.random(4)](sum,
      tir.IntImm("int32", math.random(-6, 6)))
  end
  return vars, ranges, relations
end

local function describe_system(ranges, relations)
  local texts = {}
  for i, node in ipairs(relations) do texts[i] = tostring(node) end
  for var, range in pairs(ranges) do texts[#texts + 1] = ("%s in %s"):format(var, range) end
  return table.concat(texts, ", ")
end

describe("linear inequalities", function()
  it("have the same solutions as ranges and relations (seed " .. seed .. ")", function()
    math.randomseed(seed)
    local solved = 0
    for _ = 1, 120 do
      local n = math.random(3)
      local vars, ranges, relations = random_system(n)
      local found = arith.solve_linear_inequalities(relations, vars, ranges)
      local what = describe_system(ranges, relations)
      points(n, -5, 7, function(env)
        local wanted = in_ranges(ranges, env) and all_hold(relations, env)
        local ours = all_hold(found.relations, env) and in_ranges(found.ranges, env)
        if wanted ~= ours then error(what) end
        if wanted then solved = solved + 1 end
      end)
    end
    assert.is_true(solved > 200, solved)
  end)

  it("have the same solutions in new variables that begin with 0", function()
    math.randomseed(seed + 1)
    for _ = 1, 80 do
      local n = math.random(3)
      local vars, ranges, relations = random_system(n)
      local found = arith.solve_linear_inequalities(relations, vars, ranges, true)
      local what = describe_system(ranges, relations)
      points(n, -5, 7, function(env)
        if not (in_ranges(ranges, env) and all_hold(relations, env)) then return end
        local new = {}
        for name, value in pairs(env) do new[name] = value end
        for var, node in pairs(found.dst_to_src) do new[var.name] = eval(node, env) end
        for _, range in pairs(found.dst.ranges) do assert.are.equal(0, range[1].value) end
        assert.is_true(in_ranges(found.dst.ranges, new), what)
        assert.is_true(all_hold(found.dst.relations, new), what)
        for var, node in pairs(found.src_to_dst) do
          assert.are.equal(env[var.name], eval(node, new), what)
        end
      end)
    end
  end)

  it("know the value of a variable that has one", function()
    local x, y, z = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("z", "int32")
    local ranges = { [x] = tir.Range(0, 8), [y] = tir.Range(2, 3) }
    local found = arith.solve_linear_inequalities({ tir.LT(y * 3 - z, x) }, { x, y, z }, ranges)
    for _, node in ipairs(found.relations) do
      assert.is_nil(tostring(node):find "y", tostring(node))
    end
    found = arith.solve_linear_inequalities({ tir.EQ(x * 2 - y - z, 0), tir.LT(z, 9),
      tir.GE(z, -2) }, { x, y, z }, ranges)
    for _, node in ipairs(found.relations) do
      assert.is_nil(tostring(node):find "y", tostring(node))
    end
  end)

  it("are bounds of each variable", function()
    local x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    local bounds, rest = arith.solve_inequalities_as_bounds({ tir.LE(x * 2 + y, 20),
      tir.GE(x * 3, y) }, { x, y }, { [y] = tir.Range(0, 9) })
    assert.are.same({}, rest)
    assert.are.equal(6, bounds[x].coef.value)
    assert.are.equal("y * 2", tostring(bounds[x].lower[1]))
    assert.are.equal("60 + y * -3", tostring(bounds[x].upper[1]))
    assert.are.equal(0, bounds[y].lower[1].value)
    assert.are.equal(8, bounds[y].upper[1].value)
  end)

  it("take IntConstraints, and refuse a variable that comes twice", function()
    local x = tir.Var("x", "int32")
    local system = arith.IntConstraints({ x }, { [x] = tir.Range(0, 9) }, { tir.LT(x, 4) })
    assert.are.equal("T.Range(0, 4)", tostring(arith.solve_linear_inequalities(system).ranges[x]))
    assert.has_error(function() arith.solve_linear_inequalities({ tir.LT(x, 4) }, { x, x }, {}) end)
    assert.has_error(function() arith.solve_linear_inequalities({ x }, { x }, {}) end)
  end)
end)

describe("regions", function()
  it("lie in their upper bounds, and are equal to strict ones (seed " .. seed .. ")", function()
    math.randomseed(seed + 2)
    local strict = 0
    for _ = 1, 300 do
      local n = math.random(2)
      local vars, ranges = {}, {}
      local index, size = tir.IntImm("int32", math.random(-3, 3)), math.random(4)
      for i = 1, n do
        vars[i] = tir.Var(names[i], "int32")
        ranges[vars[i]] = tir.Range(0, math.random(5))
        index = index + vars[i] * (math.random(7) - 3)
      end
      local kind = math.random(6)
      if kind == 1 then index = index // math.random(3) end
      if kind == 2 then index = tir.FloorMod(index, tir.IntImm("int32", math.random(4))) end
      if kind == 3 then index = index // -math.random(3) end
      local region = { tir.range_from(index, tir.IntImm("int32", size)) }
      local sum = vars[1]
      for i = 2, n do sum = sum + vars[i] * ranges[vars[1]].extent end
      local predicate = math.random(2) == 1 and tir.LT(sum, ranges[vars[1]].extent) or true
      local upper = arith.estimate_region_upper_bound(region, ranges, predicate)[1]
      local exact = arith.estimate_region_strict_bound(region, ranges, predicate)
      local seen, low, high = {}, math.huge, -math.huge
      points(n, 0, 5, function(env)
        if not in_ranges(ranges, env) or predicate ~= true and not eval(predicate, env) then
          return
        end
        for value = eval(index, env), eval(index, env) + size - 1 do
          seen[value] = true
          low, high = math.min(low, value), math.max(high, value)
        end
      end)
      local what = ("%s %d %s"):format(index, size, predicate)
      assert.is_true(upper.min_value.value <= low and upper.max_value.value >= high, what)
      if exact then
        strict = strict + 1
        assert.are.equal(low, exact[1].min_value.value, what)
        assert.are.equal(high, exact[1].max_value.value, what)
        for value = low, high do assert.is_true(seen[value], what) end
      end
    end
    assert.is_true(strict > 20, strict)
  end)

  it("have the value of an iterator that has one", function()
    local x = tir.Var("x", "int32")
    local function upper(index, low, high, predicate)
      local set = arith.estimate_region_upper_bound({ tir.range_from(index, tir.const(1)) },
        { [x] = tir.Range(low, high) }, predicate)[1]
      return ("%s %s"):format(set.min_value, set.max_value)
    end
    assert.are.equal("3 3", upper(x * 4 // 4, 3, 5, tir.LT(x, 4)))
    assert.are.equal("0 0", upper(tir.FloorMod(tir.Sub(x, x), tir.const(3)), 0, 4))
  end)

  it("are not known of a part of what a predicate bounds", function()
    local x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    local ranges = { [x] = tir.Range(0, 24), [y] = tir.Range(0, 8) }
    local predicate = tir.LT(x * 8 + y, 22)
    local function strict(index)
      return arith.estimate_region_strict_bound({ tir.range_from(index, tir.const(1)) }, ranges,
        predicate)
    end
    assert.are.equal(21, strict(x * 8 + y)[1].max_value.value)
    assert.is_nil(strict(x))
  end)

  it("are empty where the predicate leaves no value", function()
    local x = tir.Var("x", "int32")
    local set = arith.estimate_region_lower_bound({ tir.range_from(x + 4, tir.const(4)) },
      { [x] = tir.Range(0, 9) }, tir.GE(x, 9))[1]
    assert.are.equal("pos_inf neg_inf", ("%s %s"):format(set.min_value, set.max_value))
  end)

  it("of a buffer that a statement reads or writes", function()
    local mod = assert(tir.parse [[
# from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((100,), "float32")):
    for i in range(10):
        A[i + 20] = A[i * 2] + T.float32(1)
]])
    local body = mod["main"].body
    local buffer
    tir.post_order(body, function(node)
      if node.kind == "BufferLoad" then buffer = node.buffer end
    end)
    local function touched(...) return tostring(arith.domain_touched(body, buffer, ...)[1]) end
    assert.are.equal("T.Range(0, 19)", touched(true, false))
    assert.are.equal("T.Range(20, 10)", touched(false, true))
    assert.are.equal("T.Range(0, 30)", touched())
  end)
end)

describe("sets", function()
  it("are united and intersected", function()
    local n = tir.Var("n", "int32")
    local function text(set) return ("%s %s"):format(set.min_value, set.max_value) end
    assert.are.equal("0 9", text(arith.union { { min_value = 0, max_value = 3 },
      { min_value = 5, max_value = 9 } }))
    assert.are.equal("0 3", text(arith.union_lower_bound { { min_value = 0, max_value = 3 },
      { min_value = 5, max_value = 9 } }))
    assert.are.equal("3 n", text(arith.intersect { { min_value = 3, max_value = "pos_inf" },
      { min_value = "neg_inf", max_value = n } }))
    assert.are.equal("pos_inf neg_inf", text(arith.intersect { { min_value = 0, max_value = 3 },
      { min_value = 5, max_value = 9 } }))
    assert.are.equal("pos_inf neg_inf", text(arith.union {}))
  end)

  it("are those of expressions and ranges", function()
    local x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    local doms = { [x] = tir.Range(0, 10) }
    local sets = arith.eval_set({ x * 2 + y, tir.range_from(x + y, tir.IntImm("int32", 4)) }, doms)
    local function text(set) return ("%s, %s"):format(set.min_value, set.max_value) end
    assert.are.equal("y, y + 18", text(sets[1]))
    assert.are.equal("y, y + 12", text(sets[2]))
  end)

  it("subexpressions are counted as a tree has them", function()
    local x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    local sum = x + y
    local found = arith.detect_common_subexpr(sum * sum + (sum * sum) // 2, 2)
    assert.are.equal("(x + y) * (x + y) 2", ("%s %d"):format(found[1].expr, found[1].count))
    assert.are.equal("x + y 4", ("%s %d"):format(found[2].expr, found[2].count))
    assert.are.equal(2, #found)
  end)
end)
