-- The sizes that pl.check draws: such as the operators admit; and what is said when
-- none fit.

local pl = require "perilune"
local sizes = require "perilune.check.input_shapes"

local op = pl.op

local function var(name, dims, dtype)
  return pl.var(name, ("Tensor[%s, %s]"):format(dims and "(" .. dims .. ")" or "*",
    dtype or "float32"))
end

local function weight(shape) return pl.const(pl.tensor.random("float32", shape, { seed = 1 })) end

-- The shapes that the search finds, as texts.
local function found(fn)
  local types = {}
  for i, param in ipairs(fn.params) do types[i] = param.type end
  local search = sizes.new(types, fn)
  local base, reason = search:base()
  if not base then return nil, reason end
  local texts = {}
  for i, shape in ipairs(search:shapes(base)) do texts[i] = table.concat(shape, ",") end
  return texts
end

-- All rounds run, and none is empty.
local function runs(fn, rounds)
  local ok, report = pl.check(fn, fn)
  assert(ok, tostring(report))
  assert.equal(rounds or 6, report.compared)
  assert.is_true(report.elements > 0)
end

-- A valid window of 5, pooling by 3, then a matrix for 3 x 3 of them: 29 pixels.
local function convolution(dims)
  local x = var("x", dims)
  local y = op.nn.conv2d(x, weight { 4, 3, 5, 5 }, { kernel_size = { 5, 5 } })
  y = op.nn.max_pool2d(y, { pool_size = { 3, 3 }, strides = { 3, 3 } })
  y = op.nn.conv2d(y, weight { 2, 4, 6, 6 }, { kernel_size = { 6, 6 } })
  return pl.func({ x }, op.nn.dense(op.nn.batch_flatten(y), weight { 7, 18 }))
end

describe("sizes", function()
  it("of images follow from channels, windows and matrices", function()
    for _, dims in ipairs { "N, 3, H, W", "?, ?, ?, ?", "N, C, H, H" } do
      local fn = convolution(dims)
      local shape = assert(found(fn))[1]
      local n, c, h, w = shape:match "^(%d+),(%d+),(%d+),(%d+)$"
      assert.same({ "2", "3" }, { n, c })
      assert.is_true(tonumber(h) >= 22 and tonumber(w) >= 22, shape)
      runs(fn)
    end
  end)

  it("are those of the other operand, and of what a Reshape asks for", function()
    local x, y = var("x", "?, ?"), var("y", "?, ?")
    assert.same({ "2,2", "2,64" }, found(pl.func({ x, y }, op.nn.dense(op.nn.relu(x),
      op.transpose(op.nn.dense(y, weight { 2, 64 }))))))
    local r = pl.func({ x }, op.reshape(x, pl.const(pl.tensor { -1, 6, 11 })))
    local shape = found(r)[1]
    local a, b = shape:match "^(%d+),(%d+)$"
    assert.equal(0, a * b % 66, shape)
    runs(r)
  end)

  it("divide where blocks of them become channels", function()
    local x = var("x", "N, 1, H, W")
    local fn = pl.func({ x }, op.nn.space_to_depth(x, { block_size = 7 }))
    local _, h, w = found(fn)[1]:match "^(%d+),1,(%d+),(%d+)$"
    assert.same({ 0, 0 }, { h % 7, w % 7 })
    runs(fn)
  end)

  it("of a tensor of unknown rank have a rank that fits", function()
    local x = var("x")
    local fn = pl.func({ x }, op.nn.conv2d(x, weight { 4, 3, 5, 5 }, { kernel_size = { 5, 5 } }))
    assert.matches("^%d+,3,%d+,%d+$", found(fn)[1])
    runs(fn)
  end)

  it("are 0 only where that is admitted", function()
    local function without_elements(fn)
      local search = sizes.new({ fn.params[1].type }, fn)
      local x = search:empty(search:base())
      return x and table.concat(search:shapes(x)[1], ",")
    end
    local x, image = var("x", "N, M"), var("x", "N, 3, H, W")
    assert.equal("0,0", without_elements(pl.func({ x }, op.nn.relu(x))))
    assert.equal("0,3,16,16", without_elements(pl.func({ image }, op.nn.conv2d(image,
      weight { 4, 3, 5, 5 }, { kernel_size = { 5, 5 } }))))
    assert.is_nil(without_elements(pl.func({ x }, op.reshape(x, pl.const(pl.tensor { 4 })))))
  end)

  it("are not looked for among elements: what an input holds is not known", function()
    local x, n = var("x", "?"), var("n", "1", "int64")
    local ok, diag = pl.check(pl.func({ x, n }, op.reshape(x, n)), pl.func({ x, n }, x))
    assert.is_nil(ok)
    assert.matches("only the first refuses", diag.message)
  end)

  it("of a mask are the sum of two others, where indices ask for it", function()
    local mask, past, new = var("mask", "?"), var("past", "?"), var("new", "?")
    local length = op.shape_of(op.concatenate(pl.tuple { past, new }, { axis = 0 }),
      { dtype = "int64" })
    runs(pl.func({ mask, past, new }, op.take(mask, length - 1, { axis = 0, mode = "fast" })))
  end)

  it("begin at an example", function()
    local x = var("x", "?, ?")
    local options = { example = { x = { 5, 9 } }, rounds = 1 }
    local ok, diag = pl.check(pl.func({ x }, x), pl.func({ x }, x + 1), options)
    assert.is_nil(ok)
    assert.matches("x=%(2, 2%)", diag.message) -- nothing asks for 5 by 9
    local fn = pl.func({ x }, op.reshape(x, pl.const(pl.tensor { 45 })))
    ok, diag = pl.check(fn, pl.func({ x }, fn.body + 1), options)
    assert.is_nil(ok)
    assert.matches("x=%(5, 9%)", diag.message)
  end)

  it("that are given are kept", function()
    local x = var("x", "N, ?, 2*N")
    local fn, other = pl.func({ x }, x), pl.func({ x }, x + 1)
    local function told(options)
      local _, diag = pl.check(fn, other, options)
      return diag.message
    end
    assert.matches("N=3, x=%(3, 5, 6%)", told { shapes = { x = { 3, 5, "?" } } })
    assert.matches("N=3, x=%(3, 5, 6%)",
      told { dims = { N = 3 }, shapes = { x = { "?", 5, "?" } } })
    assert.matches("input 'x' is Tensor.*, which cannot have the shape %(3, 5%)",
      told { shapes = { x = { 3, 5 } } })
  end)

  it("that fit nowhere are told, with the operator", function()
    local x = var("x", "?, 4")
    local fn = pl.func({ x }, op.add(op.reshape(x, pl.const(pl.tensor { -1 })), weight { 7 }))
    local ok, diag = pl.check(fn, fn)
    assert.is_nil(ok)
    assert.equal("unsupported", diag.code)
    assert.matches("no round could run: .*; no sizes fit: .*'add'.*; fix sizes with %-%-dim",
      diag.message)
  end)

  it("are found without delay, and the same each time", function()
    local x = var("x", "?, ?, ?, ?")
    local y = op.nn.relu(x)
    for i = 1, 200 do y = i % 2 == 0 and op.nn.max_pool2d(y, { pool_size = { 3, 3 },
      padding = { 1, 1 } }) or op.nn.relu(y) end
    local fn = pl.func({ x }, op.nn.conv2d(y, weight { 4, 3, 31, 31 },
      { kernel_size = { 31, 31 } }))
    local before = os.clock()
    local shape = found(fn)
    assert.same(shape, found(fn))
    assert.is_true(os.clock() - before < 1)
    assert.matches("^%d+,3,31,31$", shape[1])
  end)
end)

describe("pl.check on given data", function()
  local x, y = var("x", "N, 3"), var("y", "N, 3")
  local a = pl.tensor({ { 1, 2, 3 } }, "float32")

  it("runs it, by name or position, and makes up what is missing", function()
    local same = pl.func({ x, y }, x + y)
    for _, set in ipairs { { x = a, y = a }, { a, a }, { x = a } } do
      local ok, report = pl.check(same, same, { data = { set } })
      assert.is_true(ok)
      assert.same({ rounds = 1, compared = 1, refused = 0, elements = 3 }, report)
    end
    local _, report = pl.check(same, same, { data = { { x = a }, { a } }, rounds = 3 })
    assert.equal(5, report.compared)
  end)

  it("finds what only that data tells, and says which set", function()
    local big = pl.tensor({ { 1, 1, 500000 } }, "float32")
    local one, other = pl.func({ x }, x), pl.func({ x }, op.minimum(x, 400000))
    assert(pl.check(one, other, { rounds = 1 }))
    local ok, diag = pl.check(one, other, { data = { { a }, { big } } })
    assert.is_nil(ok)
    assert.matches("^round 2 %(data set 2, N=1%): result 1 differs at %[0, 2%]", diag.message)
  end)

  it("refuses names that are none", function()
    local one = pl.func({ x }, x)
    for _, options in ipairs { { data = { { xx = a } } }, { shapes = { xx = { 1, 3 } } },
      { data = { { a, a } } }, { example = { xx = { 1, 3 } } } } do
      local ok, diag = pl.check(one, one, options)
      assert.is_nil(ok)
      assert.equal("name", diag.code)
      assert.matches("no input is called '", diag.message, 1, true)
    end
  end)

  it("fails when the data does not fit", function()
    local one = pl.func({ x }, x)
    for _, fixed in ipairs { { dims = { N = 2 } }, { shapes = { x = { 2, "?" } } } } do
      fixed.data = { { a } }
      local ok, diag = pl.check(one, one, fixed)
      assert.is_nil(ok)
      assert.equal("input 'x' has the shape (1, 3), but dimension 0 is fixed at 2", diag.message)
    end
    local ok, diag = pl.check(one, one, { data = { { pl.tensor { 1 } } } })
    assert.is_nil(ok)
    assert.matches("^no round could run: ", diag.message)
  end)
end)
