-- LowerTE{layout="NCHWc"}: blocks of channels in memory between the functions of a model.

local pl = require "perilune"

local op = pl.op
local lowering = pl.sequential { "InferType", "FuseOps", 'LowerTE{layout="NCHWc"}' }

local function constant(shape, seed)
  return pl.const(pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 }))
end

local function input(text) return pl.var("x", text) end

local function conv(x, out, channels, kernel, attrs)
  attrs = attrs or {}
  attrs.kernel_shape = { kernel, kernel }
  return op.nn.conv(x, constant({ out, channels // (attrs.group or 1), kernel, kernel },
    out * 31 + kernel), constant({ out }, out + kernel), attrs)
end

-- The types of the results of calls, in order, after comparing what is computed.
local function types_of(params, body)
  local mod = pl.module { main = pl.func(params, body) }
  local lowered = lowering(mod)
  local args = {}
  for i, param in ipairs(params) do
    args[i] = pl.tensor.random(param.type.shape, "float32", { seed = i, low = -1, high = 1 })
  end
  local expected = table.pack(pl.eval(mod, table.unpack(args)))
  for i, result in ipairs(table.pack(pl.eval(lowered, table.unpack(args)))) do
    local same, how = result:compare(expected[i], { rtol = 1e-4, atol = 1e-4, scaled = true })
    assert(same, how and ("result %d: %s, expected %s"):format(i, how.got, how.expected))
  end
  local types = {}
  for node in lowered.functions.main:nodes() do
    if node.kind == "Call" then
      assert.equal("call_lowered", node.op.name)
      types[#types + 1] = table.concat(node.type.shape, " ")
    end
  end
  return types
end

describe("blocked layouts", function()
  it("are between convolutions; the result of the model is plain", function()
    local x = input "Tensor[(1, 3, 8, 8), float32]"
    local a = op.nn.relu(conv(x, 32, 3, 3, { pads = { 1, 1, 1, 1 }, strides = { 2, 2 } }))
    assert.same({ "1 2 4 4 16", "1 16 4 4" }, types_of({ x }, conv(a, 16, 32, 1)))
  end)

  it("are of 8 channels where 16 do not divide them, and of none else", function()
    local x = input "Tensor[(2, 4, 6, 5), float32]"
    local a = conv(x, 24, 4, 3, { pads = { 1, 0, 1, 2 } })
    local b = conv(a, 20, 24, 1)
    assert.same({ "2 3 6 5 8", "2 20 6 5", "2 32 6 5" }, types_of({ x }, conv(b, 32, 20, 1)))
  end)

  it("go through depthwise convolutions, shortcuts and maps", function()
    local x = input "Tensor[(1, 16, 7, 7), float32]"
    local a = conv(x, 32, 16, 1)
    local b = op.nn.relu(conv(a, 32, 32, 3, { group = 32, pads = { 1, 1, 1, 1 } }))
    local c = op.add(conv(b, 32, 32, 1), a)
    assert.same({ "1 2 7 7 16", "1 2 7 7 16", "1 2 7 7 16", "1 48 5 5" },
      types_of({ x }, conv(c, 48, 32, 3)))
  end)

  it("are cut in tiles that leave a rest of a row, or go on in the next one", function()
    local x = input "Tensor[(1, 16, 5, 11), float32]"
    local a = op.nn.relu(conv(x, 32, 16, 1))
    local b = op.add(conv(conv(a, 512, 32, 1), 16, 512, 1), x)
    local c = conv(b, 24, 16, 1, { strides = { 2, 3 } })
    assert.same({ "1 2 5 11 16", "1 32 5 11 16", "1 1 5 11 16", "1 3 3 4 8", "1 16 3 4" },
      types_of({ x }, conv(c, 16, 24, 1)))
  end)

  it("go through pools", function()
    local x = input "Tensor[(1, 8, 9, 9), float32]"
    local a = conv(x, 16, 8, 3)
    local b = op.nn.max_pool(a, { kernel_shape = { 3, 3 }, strides = { 2, 2 },
      pads = { 1, 1, 1, 1 } })
    local c = op.nn.avg_pool(b, { kernel_shape = { 2, 2 }, pads = { 1, 0, 0, 1 } })
    local d = op.nn.global_avg_pool(conv(c, 16, 16, 1))
    local types = types_of({ x }, op.nn.batch_flatten(d))
    assert.same({ "1 1 7 7 16", "1 1 4 4 16", "1 1 4 4 16", "1 1 4 4 16", "1 1 1 1 16", "1 16" },
      types)
  end)

  it("of a pool or depthwise convolution that is a result are plain", function()
    local x = input "Tensor[(1, 8, 6, 6), float32]"
    local a = conv(x, 16, 8, 1)
    local pool = op.nn.max_pool(a, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
    local depthwise = conv(a, 16, 16, 3, { group = 16 })
    assert.same({ "1 1 6 6 16", "1 16 3 3", "1 16 4 4" },
      types_of({ x }, pl.tuple { pool, depthwise }))
  end)

  it("are not of values that a tuple or a result needs as they are", function()
    local x = input "Tensor[(1, 8, 4, 4), float32]"
    local a = conv(x, 16, 8, 1)
    assert.same({ "1 16 4 4", "1 16 4 4" }, types_of({ x }, pl.tuple { a, conv(a, 16, 16, 1) }))
  end)

  it("are not of convolutions in other layouts, of groups or without constant weights", function()
    local x = input "Tensor[(1, 16, 5, 5), float32]"
    local w = pl.var("w", "Tensor[(16, 16, 1, 1), float32]")
    local a = op.nn.conv(x, w, { kernel_shape = { 1, 1 } })
    local b = conv(a, 16, 16, 1, { group = 2 })
    local c = conv(b, 16, 16, 1)
    assert.equal(3, #types_of({ x, w }, op.nn.relu(c)))
    local nhwc = op.nn.conv2d(op.transpose(conv(x, 16, 16, 1), { axes = { 0, 2, 3, 1 } }),
      constant({ 1, 1, 16, 8 }, 5), { data_layout = "NHWC", kernel_layout = "HWIO", channels = 8,
        kernel_size = { 1, 1 } })
    local types = types_of({ x }, nhwc)
    assert.equal("1 5 5 8", types[#types])
  end)

  it("are of Relay's convolutions too", function()
    local x = input "Tensor[(1, 3, 8, 8), float32]"
    local a = op.nn.conv2d(x, constant({ 16, 3, 3, 3 }, 1), { padding = { 1, 1, 1, 1 },
      channels = 16, kernel_size = { 3, 3 } })
    local b = op.nn.conv2d(op.nn.relu(a), constant({ 16, 1, 3, 3 }, 2), { groups = 16,
      padding = { 1, 1 }, channels = 16, kernel_size = { 3, 3 }, strides = { 2, 2 } })
    local c = op.nn.conv2d(b, constant({ 8, 16, 1, 1 }, 3), { channels = 8,
      kernel_size = { 1, 1 } })
    assert.same({ "1 1 8 8 16", "1 1 4 4 16", "1 8 4 4" }, types_of({ x }, c))
  end)

  it("are built", function()
    local x = input "Tensor[(1, 3, 9, 9), float32]"
    local a = op.nn.relu(conv(x, 32, 3, 3, { pads = { 1, 1, 1, 1 } }))
    local b = conv(a, 32, 32, 3, { group = 32, pads = { 1, 1, 1, 1 } })
    local mod = pl.module { main = pl.func({ x }, op.nn.relu(conv(b, 10, 32, 1))) }
    local arg = pl.tensor.random({ 1, 3, 9, 9 }, "float32", { seed = 1, low = -1, high = 1 })
    for _, options in ipairs { {}, { vector_bytes = 16 }, { threads = 2 } } do
      local got = pl.build(mod, options).main(arg)[1]
      assert.is_true((got:compare(pl.eval(mod, arg), { rtol = 1e-4, atol = 1e-5 })))
    end
  end)
end)

describe("C of a model with blocked layouts", function()
  local x = input "Tensor[(1, 3, 16, 16), float32]"
  local border = { 1, 1, 1, 1 }
  local a = op.nn.relu(conv(x, 32, 3, 3, { pads = border }))
  local b = conv(conv(a, 32, 32, 3, { pads = border }), 32, 32, 3, { group = 32, pads = border })
  local pool = op.nn.max_pool(b, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
  local mod = pl.module { main = pl.func({ x }, op.nn.softmax(op.nn.dense(
    op.nn.batch_flatten(pool), constant({ 37, 2048 }, 7), { units = 37 }))) }
  local arg = pl.tensor.random({ 1, 3, 16, 16 }, "float32", { seed = 9 })

  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("is compiled without warnings by " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      local built = pl.build(mod, { cc = cc, flags = cc == "tcc" and "-std=c11 -Wall -Werror"
        or "-std=c11 -O1 -march=native -Wall -Wextra -Werror" })
      assert.is_true((built.main(arg)[1]:compare(pl.eval(mod, arg), { rtol = 1e-4,
        atol = 1e-5 })))
    end)
  end
end)

describe("transformed convolutions", function()
  -- x -> 1 x 1 convolution -> the convolution that is transformed.
  local function model(case)
    local x = input(("Tensor[(%d, 4, %d, %d), float32]"):format(case.batch or 1, case.height,
      case.width))
    local a = conv(x, case.inputs, 4, 1)
    local b = conv(a, case.outputs, case.inputs, 3, { pads = case.pads, strides = case.strides })
    return pl.module { main = pl.func({ x }, op.nn.relu(b)) }, x.type.shape
  end

  -- The number of weights of a pair of channels; false: they are as they were.
  local function weights_of(mod, case, options)
    local pass = ('LowerTE{layout="NCHWc",winograd="%s"}'):format(options or "on")
    local lowered = pl.sequential { "InferType", "FuseOps", pass } (mod)
    local rows = tostring(lowered):match(("Tensor%%[%%((%%d+), %d, 16%%), float32%%]"):format(
      case.inputs))
    return rows and rows // (case.outputs // 16) or false
  end

  local border, two = { 1, 1, 1, 1 }, { 2, 2 }
  local cases = {
    { inputs = 32, outputs = 32, height = 8, width = 8, pads = border, weights = 36 },
    { inputs = 32, outputs = 48, height = 15, width = 13, pads = border, weights = 36 },
    { inputs = 48, outputs = 32, height = 16, width = 14, weights = 36 },
    { inputs = 32, outputs = 32, height = 13, width = 19, pads = { 2, 0, 1, 3 }, batch = 2,
      weights = 36 },
    { inputs = 64, outputs = 48, height = 7, width = 7, pads = border, weights = 24 },
    { inputs = 64, outputs = 48, height = 6, width = 12, pads = border, weights = 24 },
    { inputs = 32, outputs = 48, height = 33, width = 34, weights = 36, strides = two },
    { inputs = 32, outputs = 64, height = 32, width = 31, pads = border, weights = 36,
      strides = two, batch = 2 },
    { inputs = 64, outputs = 32, height = 24, width = 25, pads = { 0, 1, 1, 0 }, strides = two },
    { inputs = 64, outputs = 32, height = 20, width = 9, pads = border, strides = { 2, 1 } },
    { inputs = 32, outputs = 64, height = 10, width = 21, pads = border, strides = { 1, 2 } },
  }
  for i, case in ipairs(cases) do
    it(("give what their definition gives, case %d"):format(i), function()
      local mod, shape = model(case)
      local arg = pl.tensor.random(shape, "float32", { seed = i, low = -1, high = 1 })
      local weights = weights_of(mod, case)
      assert.equal(case.weights or weights, weights)
      assert.is_number(weights)
      local expected = pl.eval(mod, arg)
      for _, options in ipairs { {}, { threads = 2, vector_bytes = 16 }, { winograd = false } } do
        local got = pl.build(mod, options).main(arg)[1]
        local same, how = got:compare(expected, { rtol = 1e-4, atol = 1e-4, scaled = true })
        assert(same, how and ("%s, expected %s"):format(how.got, how.expected))
      end
    end)
  end

  it("are as defined where that is asked for, and for other strides, few channels and pixels",
    function()
      assert.is_false(weights_of(model(cases[1]), cases[1], "off"))
      for _, change in ipairs { { strides = { 3, 3 } }, { inputs = 16 }, { outputs = 16 },
        { height = 2, width = 2 } } do
        local case = { inputs = 32, outputs = 32, height = 8, width = 8, pads = border }
        for key, value in pairs(change) do case[key] = value end
        assert.is_false(weights_of(model(case), case))
      end
    end)

  it("compute nothing of NaN that is not in their window", function()
    local mod, shape = model(cases[1])
    local rows = pl.tensor.random(shape, "float32", { seed = 1 }):to_table()
    rows[1][1][1][1] = 0 / 0
    local arg = pl.tensor(rows, "float32")
    local got = pl.build(mod).main(arg)[1]:to_table()
    local last = got[1][1][8][8]
    assert.equal(last, last)
    assert.is_true(got[1][1][1][1] ~= got[1][1][1][1])
  end)
end)
