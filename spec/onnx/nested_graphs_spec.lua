-- What is exported when graphs in graphs are dissolved or change: the file is
-- read again and computes what the model before did; names are of one value or
-- node each. Models at random: PERILUNE_MODELS, PERILUNE_SEED.

local pl = require "perilune"
local onnx = require "spec.onnx.bytes"
local seeded_random = require "spec.random.seeded"

local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local count = tonumber(os.getenv "PERILUNE_MODELS" or 60)
local first = tonumber(os.getenv "PERILUNE_SEED" or 1)

local function default_pipeline() return require "perilune.pipelines.default" end

local function read_again(module) return assert(pl.onnx.parse(assert(pl.onnx.tostring(module)))) end

local function optimised(bytes, pipeline)
  local before = assert(pl.onnx.parse(bytes))
  local context = pl.context { opt_level = 3 }
  return before, read_again(pl.with(context, pipeline or default_pipeline(), before))
end

-- How often each name of a node or value stands in the bytes of a module that
-- is written: a model is searched, not decoded.
local function occurrences(module, text)
  local bytes, n, at = assert(pl.onnx.tostring(module)), 0, 1
  while true do
    local from, to = bytes:find(text, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

local function x() return onnx.value("x", 1, { 2 }) end
local function y(name) return onnx.value(name or "y", 1, { 2 }) end
local function float(name, a, b) return onnx.tensor(name, 1, { 2 }, { a, b }) end
local function bool(name, value) return onnx.tensor(name, 9, {}, { value }) end

local function branches(yes, no)
  return { onnx.subgraph("then_branch", yes), onnx.subgraph("else_branch", no) }
end

local function neg(name)
  return onnx.graph { nodes = { onnx.node("Neg", "x", name) }, outputs = { y(name) } }
end

describe("a defect that was", function()
  for _, name in ipairs { "if-branch-initializer", "nested-if-stale-bytes",
    "if-dissolved-node-names", "softmax-ref-axis" } do
    it("is none: " .. name, function()
      local file = io.open(("%s/conformance/own-defects/%s/model.onnx"):format(shared, name), "rb")
      if not file then pending "the model is not there" return end
      local bytes = file:read "a"
      file:close()
      local before, after = optimised(bytes)
      assert(pl.check(before, after))
      assert.is_true(bytes == pl.onnx.tostring(before))
    end)
  end
end)

describe("a branch that is taken", function()
  it("leaves its initializers to the graph around it", function()
    local yes = onnx.graph { initializers = { float("w", 1, 2) },
      nodes = { onnx.node("Add", "x w", "t") }, outputs = { y "t" } }
    local before, after = optimised(onnx.model { graph = onnx.graph { inputs = { x() },
      initializers = { bool("c", 1) }, outputs = { y() },
      nodes = { onnx.node("If", "c", "y", branches(yes, neg "e")) } } })
    assert(pl.check(before, after))
  end)

  it("gives what it names like others new names", function()
    local yes = onnx.graph { initializers = { float("w", 1, 2) }, outputs = { y "t" },
      nodes = { onnx.node("Add", "x w", "a", nil, { name = "first_node" }),
        onnx.node("Relu", "a", "t", nil, { name = "other_node" }) } }
    local before, after = optimised(onnx.model { graph = onnx.graph { inputs = { x() },
      initializers = { bool("c", 1), float("w2", 5, 5) }, outputs = { y "y", y "z" },
      nodes = { onnx.node("If", "c", "y", branches(yes, neg "e"), { name = "if" }),
        onnx.node("Sub", "x w2", "a", nil, { name = "first_node" }),
        onnx.node("Abs", "a", "z", nil, { name = "last_node" }) } } })
    assert(pl.check(before, after))
    assert.equal(1, occurrences(after, "other_node"))
    assert.equal(2, occurrences(after, "first_node")) -- and first_node_N
    assert.is_truthy(assert(pl.onnx.tostring(after)):find "first_node_%d")
  end)
end)

describe("a sparse initializer", function()
  local function sparse(name)
    local protobuf = require "spec.onnx.protobuf"
    local indices = onnx.tensor("", 7, { 1 }, { 1 })
    local values = onnx.tensor(name, 1, { 1 }, { 7 })
    return protobuf.field(1, values) .. protobuf.field(2, indices) .. "\24\2"
  end
  local function with(graph, tensor) return graph .. require "spec.onnx.protobuf".field(15, tensor) end

  it("has the name that the file gives it", function()
    local graph = with(onnx.graph { inputs = { x() }, outputs = { y() }, nodes = {
      onnx.node("Add", "x sparse_w", "a"), onnx.node("Identity", "a", "i"),
      onnx.node("Relu", "i", "y") } }, sparse "sparse_w")
    local _, after = optimised(onnx.model { graph = graph })
    assert.equal(2, occurrences(after, "sparse_w"))
  end)

  it("leaves a branch, and is called otherwise where its name is taken", function()
    local function model(other)
      local add = onnx.node("Add", "x sparse_w", "t")
      local yes = with(onnx.graph { outputs = { y "t" }, nodes = { add } }, sparse "sparse_w")
      return onnx.model { graph = onnx.graph { inputs = { x() }, outputs = { y "y", y "z" },
        initializers = { bool("c", 1) }, nodes = {
          onnx.node("If", "c", "y", branches(yes, neg "e")),
          onnx.node("Abs", "x", other), onnx.node("Relu", other, "z") } } }
    end
    local _, after = optimised(model "b")
    assert.equal(2, occurrences(after, "sparse_w"))
    _, after = optimised(model "sparse_w")
    assert.is_truthy(assert(pl.onnx.tostring(after)):find "sparse_w_%d")
  end)
end)

-- -------------------------------------------------------------------- random

-- Numbers from 1 to the one that is asked for.
local function seeded(seed)
  local random = seeded_random(seed)
  return function(most) return random(1, most) end
end

local NAMES = {}
for i = 1, 12 do NAMES[i] = "v" .. i end

-- A graph of a few nodes; `outer` are values that it may use, `taken` names that
-- it may not give.
local function random_graph(rng, outer, taken, depth)
  local values, own, nodes, initializers, names = { table.unpack(outer) }, {}, {}, {}, {}
  for name in pairs(taken) do names[name] = true end
  local function name()
    local free = {}
    for _, each in ipairs(NAMES) do if not names[each] then free[#free + 1] = each end end
    local given = #free > 0 and free[rng(#free)] or ("w%d_%d"):format(depth, #values)
    while names[given] do given = given .. "_" end
    names[given] = true
    return given
  end
  local function pick() return values[rng(#values)] end
  local function add(op, inputs, attributes)
    local result = name()
    nodes[#nodes + 1] = onnx.node(op, inputs, result, attributes, { name = "n" .. rng(6) })
    values[#values + 1], own[#own + 1] = result, result
  end
  local function put()
    local r = rng(10)
    if r <= 3 and depth < 3 then
      local condition = name()
      initializers[#initializers + 1] = bool(condition, rng(2) - 1)
      if rng(4) == 1 then condition = "c" end
      local yes = random_graph(rng, values, names, depth + 1)
      local no = random_graph(rng, values, names, depth + 1)
      add("If", condition, branches(onnx.graph(yes), onnx.graph(no)))
    elseif r <= 5 then
      local weight = name()
      initializers[#initializers + 1] = float(weight, rng(3) - 1, rng(3) - 1)
      values[#values + 1] = weight
    elseif r <= 7 then add(({ "Neg", "Relu", "Identity", "Abs" })[rng(4)], pick())
    else add(({ "Add", "Mul", "Sub" })[rng(3)], pick() .. " " .. pick())
    end
  end
  for _ = 1, rng(5) do put() end
  add("Identity", pick())
  return { nodes = nodes, initializers = initializers, outputs = { y(own[#own]) }, own = own }
end

local function random_model(seed)
  local rng = seeded(seed)
  local graph = random_graph(rng, { "x" }, { x = true, c = true }, 0)
  graph.inputs = { x(), onnx.value("c", 9, {}) }
  graph.value_info = {}
  for i, name in ipairs(graph.own) do
    if i < #graph.own and rng(2) == 1 then graph.value_info[#graph.value_info + 1] = y(name) end
  end
  return onnx.model { graph = onnx.graph(graph) }
end

local PASSES = { "SimplifyExpr", "FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination",
  'FoldConstant{fold="all"}' }

describe("a random model of graphs in graphs", function()
  for seed = first, first + count - 1 do
    it("computes the same when it is written and read: seed " .. seed, function()
      local bytes, rng = random_model(seed), seeded(seed)
      assert.is_true(bytes == pl.onnx.tostring(assert(pl.onnx.parse(bytes))))
      local list = {}
      for i = 1, rng(4) do list[i] = PASSES[rng(#PASSES)] end
      for _, pipeline in ipairs { default_pipeline(), pl.pipeline(table.concat(list, ",")) } do
        local before, after = optimised(bytes, pipeline)
        assert(pl.check(before, after, { rounds = 2 }))
      end
    end)
  end
end)
