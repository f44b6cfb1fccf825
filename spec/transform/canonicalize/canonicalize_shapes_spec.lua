-- CanonicalizeShapes: what is computed of extents is computed with fewer operators, from
-- the parameters that have them.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op

local var, ints, calls = simplified.var, simplified.ints, simplified.calls
local number = function(i) return pl.const(pl.tensor(i, "int64")) end

local function module(vars, body, opset)
  return pl.module { main = pl.func(vars, body) }
    :with_attrs { opset_import = { ["ai.onnx"] = opset or 17 } }
end

local function count(mod)
  local n = 0
  for node in mod.main:nodes() do if node.kind == "Call" then n = n + 1 end end
  return n
end

-- The result is valid, final, computes the same and has fewer calls, if any.
local function canonical(vars, body, opset)
  local pass = pl.pipeline "CanonicalizeShapes,EliminateCommonSubexpr,DeadCodeElimination"
  local before = pl.pipeline "EliminateCommonSubexpr" (module(vars, body, opset))
  local after = pass(before)
  assert(pl.verify(after))
  assert.equal(after, pass(after))
  if after ~= before then assert.is_true(count(after) < count(before)) end
  for n = 1, 17, 4 do
    assert(pl.check(before, after, { dims = { N = n, H = 2 * n + 7, W = n + 7 }, rounds = 1 }))
  end
  return after
end

local x = var("x", { "N", 3, "H", "W" })
local image = op.nn.max_pool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })

local function extent(of, i) return op.take(op.shape_of(of), number(i), { axis = 0 }) end
local function vector(scalar) return op.reshape(scalar, ints(-1)) end

describe("CanonicalizeShapes reads", function()
  it("extents of a parameter instead of those of a computed tensor", function()
    local shape = op.concatenate(vector(extent(op.nn.relu(x), 2)), vector(extent(x, 3)),
      { axis = 0 })
    local out = canonical({ x }, shape)
    assert.equal("shape_of", calls(out))
    assert.equal(2, out.main.body.attrs.start)
  end)

  it("extents of a tensor that is needed anyway, where that takes fewer operators", function()
    local pooled = op.nn.max_pool(image, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
    local window = op.concatenate(vector(extent(pooled, 2)), vector(extent(pooled, 3)), ints(3),
      { axis = 0 })
    assert.not_matches("nn.max_pool", calls(canonical({ x }, window)))
    local out = canonical({ x }, pl.tuple(pooled, window))
    assert.equal("nn.max_pool nn.max_pool shape_of concatenate", calls(out))
  end)

  it("neighbouring extents at once before opset 15 too", function()
    local shape = op.concatenate(vector(extent(x, 2)), vector(extent(x, 3)), { axis = 0 })
    assert.equal("shape_of take", calls(canonical({ x }, shape, 13)))
  end)

  it("what a Where selects", function()
    local shape = op.concatenate(vector(extent(x, 0)), ints(-1), ints(-1), { axis = 0 })
    local flags = pl.const(pl.tensor({ false, true, true }, "bool"))
    local chosen = op.where(flags, ints(1, 1, 1), shape)
    local half = pl.const(pl.tensor({ 0.5 }, "float32"))
    local out = canonical({ x }, op.broadcast_to(half, chosen))
    assert.equal("shape_of concatenate broadcast_to", calls(out))
  end)

  it("scalars from a shape that is read as a whole", function()
    local whole = op.shape_of(op.nn.relu(x))
    local scalars = op.add(op.arange(number(0), extent(x, 2), number(1)),
      op.add(extent(x, 3), op.subtract(extent(x, 3), extent(op.nn.relu(x), 3))))
    local out = canonical({ x }, pl.tuple { whole, scalars })
    assert.equal("shape_of take arange take add", calls(out))
  end)
end)

describe("CanonicalizeShapes computes", function()
  -- Half of the difference of two extents before and behind, as a model pads an image.
  local function pads(of, like)
    local function half(axis)
      local rest = op.subtract(extent(like, axis), extent(of, axis))
      local before = op.divide(rest, number(2))
      return op.expand_dims(before, ints(0)), op.expand_dims(op.subtract(rest, before), ints(0))
    end
    local top, bottom = half(2)
    local left, right = half(3)
    return op.concatenate(ints(0, 0), top, left, ints(0, 0), bottom, right, { axis = 0 })
  end

  it("two extents at once", function()
    local pooled = op.nn.max_pool(image, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
    local large = op.image.resize(pooled, nil,
      pl.const(pl.tensor({ 1, 1, 2, 2 }, "float32")), nil, { mode = "nearest",
        coordinate_transformation_mode = "asymmetric", nearest_mode = "floor" })
    local out = canonical({ x }, op.nn.pad(large, pads(large, image)))
    local list = calls(out)
    assert.is_nil(list:find "take")
    assert.is_nil(list:find "subtract") -- of an extent and the even number below: a remainder
    local _, n_mod = list:gsub(" mod ", "")
    assert.equal(1, n_mod)
  end)

  it("sums, products, divisions and remainders", function()
    local names = { "add", "subtract", "multiply", "divide", "mod", "minimum", "maximum" }
    for _, name in ipairs(names) do
      for _, k in ipairs { 1, 2, 3, 7 } do
        local a = op[name](extent(op.nn.relu(x), 2), number(k))
        local b = op[name](op.multiply(extent(x, 3), extent(op.nn.relu(x), 0)), number(k))
        local both = op.concatenate(vector(a), vector(b), ints(5), { axis = 0 })
        canonical({ x }, both)
        canonical({ x }, op.add(a, b))
      end
    end
  end)

  it("nothing anew where nothing is saved", function()
    local mod = module({ x }, op.add(extent(x, 2), extent(x, 3)))
    assert.equal(mod, pl.passes.CanonicalizeShapes()(mod))
    local other = pl.module { main = mod.main }
    assert.equal(other, pl.passes.CanonicalizeShapes()(other)) -- no ONNX model
  end)

  it("nothing of values that depend on data", function()
    local n = extent(op.argwhere(op.greater(x, pl.const(pl.tensor(0, "float32")))), 1)
    canonical({ x }, op.add(op.multiply(n, extent(op.nn.relu(x), 2)), extent(op.nn.relu(x), 2)))
  end)
end)

-- Arithmetic on extents, made at random.
describe("CanonicalizeShapes keeps the values of", function()
  local y = var("y", { "N", "W" })
  local binary = { "add", "subtract", "multiply", "divide", "mod", "minimum", "maximum" }

  local function grow(random, scalars, tensors)
    local function pick(list) return list[random(#list)] end
    local kind = random(8)
    if kind <= 2 then
      local of = pick(tensors)
      return extent(of, random(#of.type.shape) - 1)
    elseif kind == 3 then
      return op.where(op.greater(pick(scalars), number(random(9))), pick(scalars), pick(scalars))
    elseif kind == 4 then
      local both = op.concatenate(vector(pick(scalars)), ints(random(5)), vector(pick(scalars)),
        { axis = 0 })
      return op.take(op[pick(binary)](both, ints(2, 3, random(4))), number(random(3) - 1),
        { axis = 0 })
    end
    local by = random(2) == 1 and number(random(7)) or op.add(op.abs(pick(scalars)), number(1))
    return op[pick(binary)](pick(scalars), by)
  end

  it("random programs", function()
    local seed = tonumber(os.getenv "PERILUNE_SEED") or 1
    local programs = tonumber(os.getenv "PERILUNE_GRAPHS") or 100
    local state = seed
    local function random(n)
      state = (state * 6364136223846793005 + 1442695040888963407)
      return (state >> 33) % n + 1
    end
    local changed = 0
    for i = 1, programs do
      local tensors = { x, y, op.nn.relu(x), op.nn.max_pool(x, { kernel_shape = { 2, 2 },
        strides = { 2, 2 } }), op.transpose(x, { axes = { 3, 0, 2, 1 } }) }
      local scalars = { extent(x, 2), extent(op.nn.relu(x), 3), extent(y, 0) }
      for _ = 1, 8 do scalars[#scalars + 1] = grow(random, scalars, tensors) end
      local n = #scalars
      local body = pl.tuple { scalars[n], op.concatenate(vector(scalars[n - 1]),
        vector(scalars[n - 2]), vector(scalars[random(n)]), { axis = 0 }), scalars[n - 3] }
      local before = module({ x, y }, body, random(2) == 1 and 13 or 17)
      local after = pl.passes.CanonicalizeShapes()(before)
      local where = ("seed %d, program %d:\n%s"):format(seed, i, tostring(before))
      assert(pl.verify(after))
      for h = 7, 12 do
        assert(pl.check(before, after, { dims = { N = h % 3 + 1, H = h, W = 2 * h - 5 },
          rounds = 1 }), where)
      end
      if after ~= before then changed = changed + 1 end
    end
    assert.is_true(changed > programs // 4, ("seed %d: %d of %d"):format(seed, changed, programs))
  end)
end)
