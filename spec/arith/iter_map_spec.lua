-- Iterator maps: what detection says of a map is true of its values, by brute force over small
-- extents; TVM's errors; conversions.

local pl = require "perilune"
local tir, arith = pl.tir, pl.arith

local seed = tonumber(os.getenv "PERILUNE_SEED") or 20

-- ------------------------------------------------------------------ expressions

-- Trees of tables, so that an expression is at once a PrimExpr and a function of Lua.
local function var(i) return { op = "var", i = i } end
local function const(c) return { op = "const", c = c } end
local function binary(op, x, y) return { op = op, x = x, y = y } end

local build = { ["+"] = tir.Add, ["-"] = tir.Sub, ["*"] = tir.Mul, ["//"] = tir.FloorDiv,
  ["%"] = tir.FloorMod }

local function to_expr(e, vars)
  if e.op == "var" then return vars[e.i] end
  if e.op == "const" then return tir.IntImm("int32", e.c) end
  return build[e.op](to_expr(e.x, vars), to_expr(e.y, vars))
end

local function to_lua(e)
  if e.op == "var" then return "v[" .. e.i .. "]" end
  if e.op == "const" then return ("(%d)"):format(e.c) end
  return ("(%s %s %s)"):format(to_lua(e.x), e.op, to_lua(e.y))
end

local function compile(text)
  return assert(load("local v = ... return " .. text))
end

-- A function of the values of `vars` from a PrimExpr that detection made.
local function value_text(node, vars)
  if node.kind == "Var" then
    for i, v in ipairs(vars) do if v == node then return "v[" .. i .. "]" end end
  elseif node.dtype == "bool" and node.kind == "IntImm" then return tostring(node.value ~= 0)
  elseif node.kind == "IntImm" then return ("(%d)"):format(node.value) end
  local ops = { Add = "+", Sub = "-", Mul = "*", FloorDiv = "//", FloorMod = "%", And = "and",
    Or = "or", LT = "<", GE = ">=", EQ = "==", LE = "<=", GT = ">", NE = "~=" }
  return ("(%s %s %s)"):format(value_text(node[1], vars), assert(ops[node.kind], node.kind),
    value_text(node[2], vars))
end

local function points(extents, body, at, v)
  at, v = at or 1, v or {}
  if at > #extents then return body(v) end
  for i = 0, extents[at] - 1 do
    v[at] = i
    points(extents, body, at + 1, v)
  end
end

-- ---------------------------------------------------------------- random maps

local function random_index(random, extents, depth)
  if depth == 0 then return var(random(#extents)) end
  local pick = random(6)
  local x = random_index(random, extents, depth - 1)
  if pick == 1 then return binary("//", x, const(random(4))) end
  if pick == 2 then return binary("%", x, const(random(6))) end
  if pick == 3 then return binary("+", x, const(random(5) - 2)) end
  if pick == 4 then return binary("*", x, const(random(3))) end
  local i = random(#extents)
  return binary("+", binary("*", x, const(extents[i])), var(i))
end

-- The fusion of all variables, split in factors, with noise: what schedules make.
local function random_split(random, extents)
  local all = var(1)
  for i = 2, #extents do all = binary("+", binary("*", all, const(extents[i])), var(i)) end
  if random(3) == 1 then all = binary("+", all, const(random(7))) end
  local a, b = random(4), random(4)
  local out = { binary("%", all, const(a)), binary("%", binary("//", all, const(a)), const(b)),
    binary("//", all, const(a * b)) }
  for _ = 1, random(3) - 1 do table.remove(out, random(#out)) end
  return out
end

local function random_map(random)
  local extents, indices = {}, {}
  for i = 1, random(3) do extents[i] = random(5) + 1 end
  if random(2) == 1 then return extents, random_split(random, extents) end
  for i = 1, random(2) do indices[i] = random_index(random, extents, random(3)) end
  return extents, indices
end

local function describe_map(extents, indices)
  local texts = {}
  for i, index in ipairs(indices) do texts[i] = to_lua(index) end
  return ("%s over %s"):format(table.concat(texts, "; "), table.concat(extents, " x "))
end

-- Where the values of a detected map lie: base + scale * [0, extent).
local function box_of(indices)
  local box = {}
  for i, sum in ipairs(indices) do
    assert.is_true(#sum.args <= 1)
    local split = sum.args[1]
    box[i] = { base = sum.base.value, scale = split and split.scale.value or 1,
      extent = split and split.extent.value or 1 }
  end
  return box
end

local function check_map(extents, indices, level)
  local vars, ranges, exprs, functions = {}, {}, {}, {}
  for i, extent in ipairs(extents) do
    vars[i] = tir.Var("v" .. i, "int32")
    ranges[vars[i]] = tir.Range(0, extent)
  end
  for i, index in ipairs(indices) do
    exprs[i] = to_expr(index, vars)
    functions[i] = compile(to_lua(index))
  end
  local result = arith.detect_iter_map(exprs, ranges, true, level)
  local what = level .. ": " .. describe_map(extents, indices)
  if #result.indices == 0 then
    assert.is_true(#result.errors > 0, what)
    return false
  end
  local box, seen, count, total = box_of(result.indices), {}, 0, 0
  local rotated = arith.iter_map_simplify(exprs, ranges, true, level)
  local simple, padding = {}, compile(value_text(result.padding_predicate, vars))
  for i, node in ipairs(rotated) do simple[i] = compile(value_text(node, vars)) end
  points(extents, function(v)
    local key = {}
    for i, f in ipairs(functions) do
      local value = f(v)
      assert.are.equal(value, simple[i](v), what)
      key[i] = value
      local place = value - box[i].base
      if level == "bijective" then
        assert.is_true(place % box[i].scale == 0 and place // box[i].scale >= 0
          and place // box[i].scale < box[i].extent, what)
      end
    end
    assert.is_false(padding(v), what)
    key = table.concat(key, ",")
    if not seen[key] then count = count + 1 end
    seen[key] = true
    total = total + 1
  end)
  local size = 1
  for _, side in ipairs(box) do size = size * side.extent end
  assert.is_true(count >= size, what .. (": %d of %d"):format(count, size))
  if level == "bijective" then
    assert.are.equal(total, count, what)
    assert.are.equal(total, size, what)
  end
  return true, result, vars, functions
end

describe("iterator maps", function()
  it("are what detection says, for random maps (seed " .. seed .. ")", function()
    math.randomseed(seed)
    local found = { surjective = 0, bijective = 0 }
    for _ = 1, 600 do
      local extents, indices = random_map(math.random)
      for level in pairs(found) do
        if check_map(extents, indices, level) then found[level] = found[level] + 1 end
      end
    end
    assert.is_true(found.surjective > 60 and found.bijective > 20,
      found.surjective .. " " .. found.bijective)
  end)

  it("have an inverse if they are bijective", function()
    math.randomseed(seed + 1)
    local inverted = 0
    for _ = 1, 300 do
      local extents, indices = random_map(math.random)
      local ok, result, vars, functions = check_map(extents, indices, "bijective")
      local plain = ok
      for _, sum in ipairs(result and result.indices or {}) do
        plain = plain and sum.args[1] and sum.args[1].scale.value == 1
      end
      if plain then
        local outputs, inverse = {}, nil
        for i in ipairs(indices) do outputs[i] = tir.Var("output_" .. i, "int32") end
        inverse = arith.inverse_affine_iter_map(result.indices, outputs)
        inverted = inverted + 1
        points(extents, function(v)
          local values = {}
          for i, f in ipairs(functions) do values[i] = f(v) end
          for i, one in ipairs(vars) do
            if extents[i] > 1 then
              assert.are.equal(v[i], compile(value_text(inverse[one], outputs))(values),
                describe_map(extents, indices))
            end
          end
        end)
      end
    end
    assert.is_true(inverted > 10)
  end)
end)

describe("detect_iter_map", function()
  local x, y, z = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("z", "int32")

  local function errors_of(indices, predicate, level)
    local result = arith.detect_iter_map(indices,
      { [x] = tir.Range(0, 24), [y] = tir.Range(0, 8) }, predicate, level)
    assert.are.same({}, result.indices)
    return result.errors
  end

  it("says why there is no map, as TVM does", function()
    assert.are.same({ "Product of two iterators cannot be represented as an IterMap, occurs in "
      .. "x * y" }, errors_of { x * y })
    assert.are.same({ "Cannot represent as an IterMap: the divisor in x // y may not be an "
      .. "iterator" }, errors_of { x // y })
    assert.are.same({ "Cannot represent as IterMap: the numerator's scaling factor, 2 and the "
      .. "divisor 3 cannot be simplified to remove the scaling factor." }, errors_of { x * 2 // 3 })
    assert.are.same({ "Mapped indices are not independent." }, errors_of { x, x })
    assert.are.same({ "Could not parse predicate as constraints on the input iterators." },
      errors_of({ x }, tir.EQ(x, 3)))
    assert.are.same({ "The iterations do not traverse full iter space",
      "Index mapping does not form a bijective transform." },
      errors_of({ x % 4, y }, true, "bijective"))
    assert.are.same({ "Invalid iterators.  Iterators may not be expressions of each other." },
      arith.detect_iter_map({ x }, { [x] = tir.Range(0, y), [y] = tir.Range(0, 3) }).errors)
  end)

  it("keeps a padding that TVM loses, and refuses one that moves values", function()
    local indices, ranges = { (x + 10) % 3, (x + 10) // 3 }, { [x] = tir.Range(0, 24) }
    local result = arith.detect_iter_map({ (x + 10) // 3 }, ranges)
    assert.are.equal(1, #result.indices)
    assert.are.equal(0, #arith.detect_iter_map(indices, ranges, true, "bijective").indices)
  end)

  it("divides no iterator that counts down", function()
    local ranges = { [x] = tir.Range(0, 24) }
    local up = arith.detect_iter_map({ x * -2 // -8, x * -2 % -8 }, ranges)
    assert.are.equal(2, #up.indices)
    assert.are.equal("x // 4", tostring(arith.normalize_iter_map_to_expr(up.indices[1])))
    for _, index in ipairs { x // -4, x * -2 // 8, tir.FloorMod(x * -2, 4), tir.FloorMod(x, -4) } do
      assert.are.equal(0, #arith.detect_iter_map({ index }, ranges).indices)
      assert.are.equal(tostring(index), tostring(arith.normalize_iter_map_to_expr(
        arith.normalize_to_iter_sum(index, ranges))))
    end
  end)

  it("takes chains of 20,000 operations", function()
    local index = x
    for _ = 1, 10000 do index = (index * 2) // 2 end
    local result = arith.detect_iter_map({ index }, { [x] = tir.Range(0, 24) })
    assert.are.equal(24, result.indices[1].args[1].extent.value)
  end)

  it("tells what it refuses in a text of bounded size", function()
    local index = x
    for i = 1, 5000 do index = tir.Div(index + y, tir.const(2 + i % 5)) end
    local result = arith.detect_iter_map({ index }, { [x] = tir.Range(0, 24),
      [y] = tir.Range(0, 8) })
    assert.are.equal(0, #result.indices)
    assert.is_true(#result.errors > 0 and #table.concat(result.errors) < 1 << 20)
  end)

  it("names wrong arguments at the caller's line", function()
    assert.has_error(function() arith.detect_iter_map({ x }, { [x] = 3 }) end)
    assert.has_error(function() arith.detect_iter_map({ x }, { [x] = tir.Range(0, 3) }, nil,
      "best") end)
    assert.has_error(function() arith.IterSumExpr({ x }, 0) end)
  end)

  it("divides a map into outer and inner iterators", function()
    local result = arith.subspace_divide({ z * 12 + y * 3 + x },
      { [x] = tir.Range(0, 3), [y] = tir.Range(0, 4), [z] = tir.Range(0, 5) }, { y, x })
    local outer, inner = result[1][1], result[1][2]
    assert.are.equal("z", tostring(arith.normalize_iter_map_to_expr(outer.source)))
    assert.are.equal("y * 3 + x", tostring(arith.normalize_iter_map_to_expr(inner.source)))
    assert.are.equal(12, inner.extent.value)
    assert.are.equal(true, result[2][1].extent.value ~= 0)
    assert.are.same({}, arith.subspace_divide({ z * 12 + y * 3 + x },
      { [x] = tir.Range(0, 3), [y] = tir.Range(0, 4), [z] = tir.Range(0, 5) }, { z, x }))
  end)

  it("divides parts of a fused iterator, but no padded ones", function()
    local fused = y * 4 + x
    local ranges = { [x] = tir.Range(0, 4), [y] = tir.Range(0, 8) }
    local result = arith.subspace_divide({ fused // 8 % 2 }, ranges, { x, y }, nil, "no_check")
    local inner = arith.normalize_iter_map_to_expr(result[1][2].source)
    assert.are.equal("(y * 4 + x) % 16 // 8", tostring(inner))
    assert.are.same({}, arith.subspace_divide({ fused // 8 % 2 }, ranges, { x }, nil, "no_check"))
    assert.are.same({}, arith.subspace_divide({ (fused + 3) // 16, (fused + 3) % 16 }, ranges, {},
      nil, "no_check"))
  end)

  it("writes an index as a sum of splits, the largest scale first", function()
    local n = tir.SizeVar("n", "int32")
    local sum = arith.normalize_to_iter_sum(z + ((y + x * 4 + 2) * n) + 3,
      { [x] = tir.Range(0, 4), [y] = tir.Range(0, 4), [z] = tir.Range(0, n) })
    assert.are.equal(3, #sum.args)
    local scales = {}
    for i, split in ipairs(sum.args) do scales[i] = tostring(split.scale) end
    assert.are.same({ "n * 4", "n", "1" }, scales)
    assert.are.equal("2 * n + 3", tostring(sum.base))
  end)
end)

describe("the text of iterator maps", function()
  local mark = arith.IterMark(pl.tir.Var("x", "int32"), 4)

  local function nested(depth, n)
    local object = mark
    for _ = 1, depth do
      local args = {}
      for i = 1, n do args[i] = arith.IterSplitExpr(object) end
      object = arith.IterMark(arith.IterSumExpr(args, 0), 4)
    end
    return tostring(object)
  end

  it("has all parts", function()
    assert.are.equal("IterMark(IterSum([IterSplit(IterMark(x, extent=4), lower_factor=1, "
      .. "extent=4, scale=1), IterSplit(IterMark(x, extent=4), lower_factor=1, extent=4, "
      .. "scale=1)], 0), extent=4)", nested(1, 2))
  end)

  it("is made of deep marks, and cut where sharing makes it too long", function()
    local text = nested(5000, 1)
    assert.are.equal(5001, select(2, text:gsub("IterMark", "")))
    text = nested(40, 2)
    assert.is_true(#text < 1 << 21)
    assert.are.equal("...", text:sub(-3))
  end)
end)

describe("errors of detect_iter_map", function()
  it("are the first ones where each term of a deep index is one", function()
    local vars, ranges = {}, {}
    for i = 1, 10 do
      vars[i] = tir.Var("v" .. i, "int32")
      ranges[vars[i]] = tir.Range(0, 16)
    end
    local index = vars[1]
    for i = 1, 300 do
      local other = tir.Min(index, tir.Add(vars[i % 10 + 1], i))
      index = tir.FloorDiv(tir.Max(other, i), 3)
    end
    local result = arith.detect_iter_map({ index }, ranges)
    assert.are.equal(0, #result.indices)
    assert.are.equal(65, #result.errors)
    assert.matches("^%.%.%. and %d+ more$", result.errors[65])
  end)
end)
