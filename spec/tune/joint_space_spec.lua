-- Spaces of layouts, of parallel operators, and several spaces at once.

local pl = require "perilune"
local layout_space = require "perilune.tune.search.layout_space"
local pipeline_space = require "perilune.tune.search.pipeline_space"
local random = require "perilune.tune.random"
local tune = pl.tune

local function parse(text, constants)
  return assert(pl.parse('#[version = "0.0.5"]\n' .. text, constants))
end

-- Three convolutions of images with channels last: 8 filters, 5 filters (no blocks), one a channel.
local function network()
  return parse [[
def @main(%x: Tensor[(1, 10, 10, 8), float32], %w: Tensor[(3, 3, 8, 16), float32],
          %v: Tensor[(1, 1, 16, 5), float32], %u: Tensor[(3, 3, 5, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3], data_layout="NHWC",
    kernel_layout="HWIO");
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %v, channels=5, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  %3 = nn.conv2d(%2, %u, channels=5, groups=5, kernel_size=[3, 3], data_layout="NHWC",
    kernel_layout="HWOI");
  nn.relu(%3)
}]]
end

local function parallel()
  return parse [[
def @main(%x: Tensor[(4, 8), float32], %a: Tensor[(6, 8), float32], %b: Tensor[(6, 8), float32],
          %c: Tensor[(6, 8), float32]) {
  (nn.dense(%x, %a, units=None), nn.dense(%x, %b, units=None), nn.dense(%x, %c, units=None))
}]]
end

local function count(mod, name) return pl.list_op_freqs(mod)[name] or 0 end

local function transforms(mod) return count(mod, "layout_transform") end

local function layouts(mod)
  local list = {}
  for node in mod.main:nodes() do
    if node.op and node.op.name:find "conv2d" then
      list[#list + 1] = node.attrs.data_layout or "NCHW"
    end
  end
  return table.concat(list, " ")
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("the space of layouts", function()
  local mod = network()
  local space = layout_space.new(mod, false, "spec")

  local function made(...)
    return pipeline_space.apply(mod, space:text(space:of_decisions { ... }))
  end

  it("has a decision for each convolution and one for the model", function()
    assert.same({ 5, 5, 5, 3 }, space:choices())
    assert.equal(mod, made(1, 1, 1, 1))
    assert.equal("NCHW NCHW NCHW", layouts(made(1, 1, 1, 2)))
    assert.equal("NCHW8c NHWC NHWC", layouts(made(1, 1, 1, 3)))
    -- Eight channels are no block of 16.
    assert.equal(mod, made(5, 1, 1, 1))
  end)

  it("gives convolutions layouts of their own", function()
    assert.equal("NCHW NHWC NHWC", layouts(made(2, 1, 1, 1)))
    assert.equal("NHWC NCHW NHWC", layouts(made(1, 2, 1, 1)))
    assert.equal("NHWC NHWC NCHW", layouts(made(1, 1, 2, 1)))
    assert.equal("NCHW8c NHWC NCHW", layouts(made(4, 1, 2, 1)))
    assert.equal("NCHW NHWC NCHW", layouts(made(1, 3, 1, 2)))
  end)

  it("keeps what the program computes, whatever is decided", function()
    local rng, seen = random(5), {}
    for _ = 1, 25 do
      local point = space:random(rng)
      local out = pipeline_space.apply(mod, point.text)
      seen[layouts(out)] = true
      assert(pl.check(mod, out, { rtol = 1e-4, atol = 1e-5 }), point.text)
    end
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.is_true(n >= 6, tostring(n))
  end)

  -- Of ONNX's convolutions: 32 channels, 24, 20 and 16.
  local function onnx_network()
    local x = pl.var("x", "Tensor[(1, 3, 9, 9), float32]")
    local y, channels = x, 3
    for i, n in ipairs { 32, 24, 20, 16, 8 } do
      local w = pl.const(pl.tensor.random({ n, channels, 3, 3 }, "float32",
        { seed = i, low = -0.2, high = 0.2 }))
      y, channels = pl.op.nn.relu(pl.op.nn.conv(y, w, { pads = { 1, 1, 1, 1 } })), n
    end
    return pl.module { main = pl.func({ x }, y) }
  end

  it("has one for each convolution of ONNX where C is generated", function()
    local onnx = onnx_network()
    local compiled = layout_space.new(onnx, true, "spec")
    -- 20 channels are no blocks; the last result leaves the model.
    assert.same({ 4, 3, 3, 1 }, compiled:choices())
    local names = {}
    for i, row in ipairs(compiled.memory) do
      names[i] = row.name .. "=" .. table.concat(row.candidates, "|")
    end
    assert.same({ "conv0=16|8|plain|NHWC", "conv1=8|plain|NHWC", "conv2=16|8|plain" }, names)
    local point = compiled:of_decisions { 3, 1, 2, 1 }
    assert.equal('AnnotateSchedules{decisions="layout: conv0=plain conv2=8"}', point.text)
    assert.equal("", compiled:of_decisions({ 1, 1, 1, 1 }).text)
    local x = pl.tensor.random({ 1, 3, 9, 9 }, "float32", { seed = 9 })
    local expected, sources = pl.eval(onnx, x), {}
    for _, decisions in ipairs { { 1, 1, 1, 1 }, { 3, 1, 2, 1 }, { 2, 2, 3, 1 },
      { 4, 3, 1, 1 } } do
      local text = compiled:text(compiled:of_decisions(decisions))
      local built = pl.build(pipeline_space.apply(onnx, text))
      assert.is_true((built.main(x)[1]:compare(expected, { rtol = 1e-4, atol = 1e-4 })), text)
      sources[built:source() or text] = true
    end
    local n = 0
    for _ in pairs(sources) do n = n + 1 end
    assert.equal(4, n)
  end)

  -- Parallel branches, windows, a bias that is a parameter, padding by auto_pad.
  local function onnx_branches()
    local op = pl.op
    local x = pl.var("x", "Tensor[(1, 3, 11, 11), float32]")
    local bias = pl.var("bias", "Tensor[(16), float32]")
    local function weights(n, channels, size, seed)
      return pl.const(pl.tensor.random({ n, channels, size, size }, "float32",
        { seed = seed, low = -0.3, high = 0.3 }))
    end
    local y = op.nn.relu(op.nn.conv(x, weights(16, 3, 3, 1), bias, { auto_pad = "SAME_UPPER",
      strides = { 2, 2 } }))
    y = op.nn.max_pool(y, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })
    local a = op.nn.conv(y, weights(16, 1, 3, 2), { group = 16, pads = { 1, 1, 1, 1 } })
    local b = op.nn.conv(y, weights(16, 16, 3, 3), { pads = { 2, 2, 2, 2 }, dilations = { 2, 2 } })
    local c = op.nn.avg_pool(y, { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 } })
    y = op.nn.conv(pl.op.add(pl.op.add(a, b), c), weights(8, 16, 1, 4))
    return pl.module { main = pl.func({ x, bias }, op.nn.global_avg_pool(y)) }
  end

  it("writes convolutions of ONNX as Relay's and back where the evaluator measures", function()
    local onnx = onnx_branches()
    local layers = layout_space.new(onnx, false, "spec")
    assert.same({ 5, 5, 5, 5, 4 }, layers:choices())
    local points = layers:start()
    assert.equal("", layers:text(points[1]))
    table.insert(points, layers:of_decisions { 3, 1, 1, 1, 1 })
    table.insert(points, layers:of_decisions { 3, 2, 4, 5, 1 })
    for i = 2, #points do
      local out = pipeline_space.apply(onnx, layers:text(points[i]))
      assert(pl.check(onnx, out, { rtol = 1e-4, atol = 1e-4 }))
      -- What is blocked before each convolution and plain in it is plain.
      assert.equal(i == 3 or i == 4, count(out, "transpose") == 0, layers:text(points[i]))
      assert.same({ 4, 0, 0, 0 }, { count(out, "nn.conv"), count(out, "nn.conv2d"),
        transforms(out), count(out, "nn.contrib_conv2d_NCHWc") })
      local path = os.tmpname()
      assert(pl.onnx.save(out, path))
      assert(pl.check(onnx, assert(pl.onnx.load(path)), { rtol = 1e-4, atol = 1e-4 }))
      os.remove(path)
    end
  end)

  -- Operators in ONNX's form between two layouts.
  local between = {
    batch_norm = function(x, vec) return pl.op.nn.batch_norm(x, vec, vec, vec, vec) end,
    instance_norm = function(x, vec) return pl.op.nn.instance_norm(x, vec, vec) end,
    layer_norm = function(x, _, row) return pl.op.nn.layer_norm(x, row, row, { axis = -1 }) end,
    argmax = function(x)
      return pl.op.cast(pl.op.argmax(x, { axis = 1, keepdims = 1 }), { dtype = "float32" })
    end,
    clip = function(x) return pl.op.clip(x, pl.const(0.0), pl.const(0.5)) end,
    mean = function(x) return pl.op.mean(x, { axes = { 2, 3 }, keepdims = 1 }) end,
    concatenate = function(x) return pl.op.concatenate(x, x, { axis = 1 }) end,
    softmax = function(x) return pl.op.nn.softmax(x, { axis = 1 }) end,
    add_n = function(x) return pl.op.add_n(x, x, x) end,
    pad = function(x)
      return pl.op.nn.pad(x, pl.const(pl.tensor({ 0, 0, 1, 1, 0, 0, 2, 2 }, "int64")))
    end,
  }

  for name, f in pairs(between) do
    it("keeps what ONNX's form of an operator computes: " .. name, function()
      local function weights(shape, seed)
        return pl.const(pl.tensor.random(shape, "float32", { seed = seed, low = 0.2, high = 0.9 }))
      end
      local x = pl.var("x", "Tensor[(1, 3, 8, 10), float32]")
      local y = pl.op.nn.conv(x, weights({ 16, 3, 3, 3 }, 1))
      y = pl.op.nn.relu(f(y, weights({ 16 }, 2), weights({ 8 }, 3)))
      local onnx = pl.module { main = pl.func({ x }, y) }
      local layers = layout_space.new(onnx, false, "spec")
      for _, point in ipairs(layers:start()) do
        local out = pipeline_space.apply(onnx, layers:text(point))
        assert(pl.check(onnx, out, { rtol = 1e-4, atol = 1e-4 }))
        assert.equal(0, count(out, "nn.conv2d"))
      end
    end)
  end

  it("is searched and replayed for a model of ONNX", function()
    local db, onnx = tune.database(), onnx_branches()
    local metric = { function(m) return 100 - count(m, "transpose") end, name = "transposes" }
    local function run(replay)
      return tune.search { mod = onnx, base = "FoldConstant", space = "layout",
        trials = 6, strategy = "random", database = db, replay = replay,
        metrics = { metric }, target = "spec" }
    end
    local first = run()
    assert.equal("faster", first.verdict)
    assert.equal(0, first.failed)
    local second = run(true)
    assert.equal(first.text, second.text)
    local brief = { constants = "brief", hash_references = true }
    assert.equal(first.mod:text(brief), second.mod:text(brief))
    assert(pl.check(onnx, second.mod, { rtol = 1e-4, atol = 1e-4 }))
  end)

  it("is searched by measuring generated C", function()
    local result = tune.search { mod = onnx_network(), base = "FoldConstant", space = "layout",
      builder = tune.builder "c", runner = tune.runner { pairs = 4, rounds = 1 },
      strategy = "random", trials = 5 }
    assert.is_true(result.measured >= 3, tostring(result.measured))
    assert.equal(0, result.failed)
  end)

  it("begins with the layouts of whole models", function()
    local texts = {}
    for i, point in ipairs(space:start()) do texts[i] = point.text end
    assert.same({ "", 'ConvertLayout{desired_layouts={"nn.conv2d"=["NCHW","default"]}},'
      .. 'FoldConstant{fold="all"}', 'ConvertLayout{desired_layouts={"nn.conv2d"=["NCHW8c",'
      .. '"OIHW8i8o"]},skip_layers=[1,2]},FoldConstant{fold="all"}' },
      { texts[1], texts[2], texts[3] })
  end)

  it("is searched behind the base pipeline", function()
    local result = tune.search { mod = mod, base = "DeadCodeElimination", space = "layout",
      metrics = { { function(m) return (layouts(m):gsub("NHWC", "")):len() + transforms(m) end,
        name = "cost" } }, strategy = "beam", trials = 60 }
    assert.equal("undecided", result.verdict)
    result = tune.search { mod = mod, base = "DeadCodeElimination", space = "layout",
      metrics = { { function(m) return 1 + select(2, layouts(m):gsub("NHWC", "")) end,
        name = "cost" } }, strategy = "exhaustive", trials = 10 }
    assert.equal("faster", result.verdict)
    assert.equal("NCHW NCHW NCHW", layouts(result.mod))
    assert(result.text:find("^DeadCodeElimination,ConvertLayout"), result.text)
    -- What is found is a pipeline.
    local again = pl.with(pl.context { opt_level = 3 }, pl.pipeline(result.text), mod)
    assert.is_true(pl.equal(result.mod, again))
  end)

  it("is refused where there is nothing to decide", function()
    local x = pl.var("x", "Tensor[(4), float32]")
    local none = pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
    assert.matches("no convolution whose layout can be changed", message(tune.search, { mod = none,
      space = "layout" }))
    assert.matches("no two convolutions", message(tune.search, { mod = none, space = "combine" }))
    assert.matches("there is no space 'layouts'; did you mean 'layout'", message(tune.search,
      { mod = none, space = "layouts" }))
    assert.matches("'pipeline' stands there twice", message(tune.search, { mod = none,
      space = "pipeline+pipeline" }))
    assert.matches("the option knobs has them", message(tune.search, { mod = none,
      space = "knobs" }))
    assert.matches("schedule: the space 'pipeline' has none", message(tune.search, { mod = none,
      space = "pipeline", schedule = true }))
  end)
end)

describe("the space of parallel operators", function()
  it("finds what is worth being combined, at any opt_level", function()
    local mod = parallel()
    local result = tune.search { mod = mod, base = "DeadCodeElimination", space = "combine",
      metrics = { { function(m) return count(m, "nn.dense") + 2 * count(m, "nn.batch_matmul") end,
        name = "products" } }, strategy = "exhaustive", trials = 20 }
    assert.equal("faster", result.verdict)
    assert.equal(1, count(result.mod, "nn.dense"))
    assert.equal('DeadCodeElimination,CombineParallelDense{min_num_branches=2,to_batch=false},'
      .. 'FoldConstant{fold="all"}', result.text)
    assert(pl.check(mod, result.mod, { rtol = 1e-5 }))
  end)

  it("does not run what the context disables", function()
    local result = pl.with(pl.context { disabled = { "CombineParallelDense" } }, tune.search,
      { mod = parallel(), base = "DeadCodeElimination", space = "combine", metrics = { "nodes" },
        strategy = "exhaustive", trials = 20 })
    assert.equal("undecided", result.verdict)
    assert.equal(3, count(result.mod, "nn.dense"))
  end)
end)

describe("a joint space", function()
  local function cost(m) return 1 + select(2, layouts(m):gsub("NHWC", "")) + count(m, "tanh") end

  -- A tanh that a pass takes away, and a layout.
  pl.passes.JointSpecDrop = { kind = "function", doc = "Drops tanh.",
    run = pl.rules { "tanh(?x) => ?x" } }

  local mod
  setup(function()
    local base = network()
    mod = base:with { main = pl.func(base.main.params, pl.op.tanh(base.main.body)) }
  end)

  local function search(options)
    local spec = { mod = mod, original = network(), base = "DeadCodeElimination",
      pool = { "JointSpecDrop" }, space = "pipeline+layout", trials = 40,
      metrics = { { cost, name = "cost" } } }
    for name, value in pairs(options) do spec[name] = value end
    return tune.search(spec)
  end

  for strategy, trials in pairs { random = 60, evolutionary = 60, halving = 160, bandit = 60 } do
    it("is searched by strategies: " .. strategy, function()
      local result = search { strategy = strategy, trials = trials }
      assert.equal("faster", result.verdict)
      assert.equal(1, cost(result.mod), result.text)
      assert(result.text:find "JointSpecDrop" and result.text:find "ConvertLayout", result.text)
    end)
  end

  it("is replayed and applied from records", function()
    local db = tune.database()
    local result = search { database = db, strategy = "beam" }
    local again = search { database = db, strategy = "beam", replay = true }
    assert.equal(0, again.measured)
    assert.equal(result.text, again.text)
    local out = tune.apply_best(mod, { database = db, space = "pipeline+layout", check = false,
      metrics = { { cost, name = "cost" } } })
    assert.is_true(pl.equal(result.mod, out))
  end)

  it("numbers the layers of what the pipeline makes", function()
    -- The pass drops the first convolution: the second is then layer 0.
    local x = pl.var("x", "Tensor[(1, 6, 6, 8), float32]")
    local w = pl.var("w", "Tensor[(1, 1, 8, 8), float32]")
    local attrs = { channels = 8, kernel_size = { 1, 1 }, data_layout = "NHWC",
      kernel_layout = "HWIO" }
    local one = pl.op.nn.conv2d(x, w, attrs)
    local two = pl.module { main = pl.func({ x, w }, pl.op.nn.conv2d(pl.op.tanh(one), w, attrs)) }
    pl.passes.JointSpecFirst = { kind = "function", doc = "Drops a convolution.",
      run = pl.rules { "tanh(nn.conv2d(?x, ?w, data_layout=?a, kernel_layout=?b)) => ?x" } }
    local result = tune.search { mod = two, original = two, base = "DeadCodeElimination",
      pool = { "JointSpecFirst" }, space = "pipeline+layout", strategy = "random", trials = 60,
      metrics = { { function(m) return 1 + #layouts(m) end, name = "cost" } } }
    -- The pass computes something else: that is all that is wrong with its candidates.
    for _, trial in ipairs(result.list) do
      assert.is_true(trial.failure == nil or trial.failure:find "^wrong result" ~= nil, trial.text)
    end
    pl.passes.JointSpecFirst = nil
  end)

  it("has knobs before a schedule", function()
    local function product(n)
      local a = pl.te.placeholder({ 16, 16 }, "float32", "A")
      local b = pl.te.compute({ 16, 16 }, function(i, j) return a[{ i, j }] * n end, "B")
      return pl.module { main = pl.te.create_prim_func { a, b } }
    end
    tune.functions["joint_space_spec.other"] = function() return product(2) end
    local knob = tune.knob("program", { tune.choice {},
      tune.choice { transform = "joint_space_spec.other" } })
    local function vectors(m)
      local text = m:text()
      local _, n = text:gsub("vectorized", "")
      return (text:find("T.float32(2)", 1, true) and 1 or 2) + (n > 0 and 0 or 2)
    end
    local result = tune.search { mod = product(3), original = product(2), knobs = { knob },
      schedule = true, strategy = "random", trials = 20, metrics = { { vectors, name = "cost" } },
      runner = tune.runner { rounds = 1 } }
    assert.equal("faster", result.verdict, result.reason)
    assert.equal(1, vectors(result.mod))
    -- All of both, once each.
    local function rule(sch)
      local loop = sch:get_loops(sch:get_block "B")[1]
      sch:split(loop, { n = 2, table.unpack(sch:sample_perfect_tile(loop, 2, -1)) })
    end
    local all = tune.search { mod = product(3), original = product(2), knobs = { knob },
      schedule = rule, strategy = "exhaustive", metrics = { { vectors, name = "cost" } },
      runner = tune.runner { rounds = 1 } }
    assert.equal("exhausted", all.state)
    assert.equal(10, all.trials)
  end)

  it("has passes of the loop level behind a schedule", function()
    local a = pl.te.placeholder({ 16, 16 }, "float32", "A")
    local b = pl.te.compute({ 16, 16 }, function(i, j) return a[{ i, j }] + 1 end, "B")
    local program = pl.module { main = pl.te.create_prim_func { a, b } }
    local db = tune.database()
    local spec = { mod = program, space = "schedule+pipeline", strategy = "random", trials = 12,
      base = "tir.Simplify", database = db, runner = tune.runner { rounds = 1 },
      metrics = { { function(m) return m:text():find "vectorized" and 1 or 2 end, name = "c" } } }
    local result = tune.search(spec)
    assert.equal("faster", result.verdict, result.reason)
    local best = tune.apply_best(program, { database = db, space = "schedule+pipeline",
      check = false, metrics = spec.metrics })
    assert.equal(result.mod:text(), best:text())
  end)
end)
