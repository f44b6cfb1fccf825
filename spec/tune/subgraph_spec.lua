-- pl.tune.extract_subgraph and pl.tune.substitute.

local pl = require "perilune"
local tune = pl.tune

local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.relu(%0);
  %2 = tanh(%1);
  %3 = add(%1, 1f);
  %4 = split(%3, indices_or_sections=2, axis=1);
  %5 = %4.1;
  %6 = exp(%2);
  (%6, %5)
}]])

-- The nodes of @main by the names of their operators.
local function nodes(...)
  local wanted, list = {}, {}
  for _, name in ipairs { ... } do wanted[name] = true end
  for node in mod.functions.main:nodes() do
    if wanted[node.op and node.op.name or node.kind] then list[#list + 1] = node end
  end
  return list
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("a subgraph", function()
  it("is a module that runs alone", function()
    local part = tune.extract_subgraph(mod, nodes("nn.relu", "tanh"))
    assert.equal(1, #part.inputs)
    assert.equal("nn.dense", part.inputs[1].op.name)
    assert.equal(2, #part.outputs)
    local relu, tanh = pl.eval(part.mod, pl.tensor({ { -1, 2, 0, 0, 0, 0, 0, 0 },
      { 0, 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0, 0 } },
      "float32"))
    assert.equal(2, relu:to_table()[1][2])
    assert.is_true(math.abs(tanh:to_table()[1][2] - 0.9640276) < 1e-6)
  end)

  it("put back gives the same", function()
    for _, names in ipairs { { "nn.relu" }, { "nn.relu", "tanh", "exp" }, { "add", "split",
      "TupleGetItem" }, { "nn.dense", "nn.relu", "tanh", "add", "split", "TupleGetItem", "exp",
      "Tuple" }, { "tanh", "exp" } } do
      local part = tune.extract_subgraph(mod, nodes(table.unpack(names)))
      assert(pl.verify(part.mod))
      local out = tune.substitute(mod, part, part.mod)
      assert(pl.verify(out))
      assert(pl.check(mod, out))
      local same = pl.with(pl.context { opt_level = 3 }, pl.passes.EliminateCommonSubexpr(), out)
      assert(pl.equal(mod, same), tostring(same))
    end
  end)

  it("is replaced by what computes the same in another way", function()
    local part = tune.extract_subgraph(mod, nodes "add")
    local x = pl.var("a", "Tensor[(4, 8), float32]")
    local other = pl.module { main = pl.func({ x }, pl.op.subtract(x, pl.const(-1.0))) }
    local out = tune.substitute(mod, part, other)
    assert(pl.check(mod, out))
    assert(tostring(out):find "subtract")
    assert(not tostring(out):find "add%(")
  end)

  it("that equals another one is the same workload", function()
    local x = pl.var("x", "Tensor[(4), float32]")
    local two = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.nn.relu(pl.op.tanh(x)))) }
    local parts = {}
    for node in two.functions.main:nodes() do
      if node.op and node.op.name == "tanh" then
        parts[#parts + 1] = tune.extract_subgraph(two, { node })
      end
    end
    assert.equal(2, #parts)
    local db = tune.database()
    assert.equal(db:commit_workload(parts[1].mod), db:commit_workload(parts[2].mod))
  end)

  it("is refused where it is none", function()
    assert(message(tune.extract_subgraph, mod, nodes("nn.relu", "exp")):find
      "tanh lies between two of them")
    assert(message(tune.extract_subgraph, mod, {}):find "list is empty")
    assert(message(tune.extract_subgraph, mod, { pl.const(1) }):find "none of the function's")
    assert(message(tune.extract_subgraph, mod, nodes "tanh", "other"):find "no function @other")
    local part = tune.extract_subgraph(mod, nodes "tanh")
    local x = pl.var("x", "Tensor[(4, 9), float32]")
    assert(message(tune.substitute, mod, part, pl.module { main = pl.func({ x }, pl.op.tanh(x)) })
      :find "parameter 1 of the replacement")
    assert(message(tune.substitute, mod, part, pl.module { main = pl.func({}, pl.const(1.0)) })
      :find "has 0 parameters")
    assert(message(tune.substitute, pl.module { main = mod.functions.main }
      :with { main = pl.func({ x }, x) }, part, part.mod):find "not the function")
    assert(message(tune.substitute, mod, {}, mod):find "extract_subgraph makes")
    local y = pl.var("y", "Tensor[(4), float32]")
    local c = pl.var("c", "Tensor[(), bool]")
    local branch = pl.module { main = pl.func({ c, y }, pl.if_(c, y, y)) }
    local list = {}
    for node in branch.functions.main:nodes() do
      if node.kind == "If" then list[1] = node end
    end
    assert(message(tune.extract_subgraph, branch, list):find "no If")
  end)
end)

describe("subgraphs by pattern", function()
  local df = pl.dataflow_pattern
  local is_op, wildcard = df.is_op, df.wildcard

  -- relu(dense) three times, two of them with the same weights, and a tanh between.
  local function network()
    local x = pl.var("x", "Tensor[(4, 8), float32]")
    local w, v = pl.tensor.random({ 8, 8 }, "float32", { seed = 1 }), pl.tensor.random({ 8, 8 },
      "float32", { seed = 2 })
    local function layer(y, weights) return pl.op.nn.relu(pl.op.nn.dense(y, pl.const(weights))) end
    local y = layer(pl.op.tanh(layer(x, w)), v)
    return pl.module { main = pl.func({ x }, layer(y, w)) }
  end

  local function layers() return is_op "nn.relu" (is_op "nn.dense" (wildcard(), wildcard())) end

  it("are all of its matches, each of which runs alone and goes back", function()
    local whole = network()
    local parts = tune.extract_subgraphs(whole, layers())
    assert.equal(3, #parts)
    for _, part in ipairs(parts) do
      assert.equal(1, #part.inputs)
      assert.equal(2, #part.nodes)
      assert.equal(2, tune.measure.nodes(part.mod))
      assert(pl.verify(part.mod))
    end
    -- In order: the first has the parameter, the second the tanh as its input.
    assert.equal("Var", parts[1].inputs[1].kind)
    assert.equal("tanh", parts[2].inputs[1].op.name)
    assert.is_true(pl.equal(parts[1].mod, parts[3].mod))
    assert.is_false(pl.equal(parts[1].mod, parts[2].mod))
    local first = tune.extract_subgraph(whole, layers())
    assert.is_true(pl.equal(parts[1].mod, first.mod))
    assert.is_nil(tune.extract_subgraph(whole, is_op "exp" (wildcard())))
    assert.same({}, tune.extract_subgraphs(whole, is_op "exp" (wildcard())))
    local list = {}
    for i, part in ipairs(parts) do list[i] = part.mod end
    local out = tune.substitute(whole, parts, list)
    assert.is_true(pl.equal(whole, out))
    assert.equal(whole, tune.substitute(whole, {}, {}))
  end)

  it("have no node in common, and nothing between their nodes", function()
    local x = pl.var("x", "Tensor[(4), float32]")
    local y = x
    for _ = 1, 5 do y = pl.op.tanh(y) end
    local chain = pl.module { main = pl.func({ x }, y) }
    local parts = tune.extract_subgraphs(chain, is_op "tanh" (is_op "tanh" (wildcard())))
    assert.equal(2, #parts)
    local r = pl.op.nn.relu(x)
    local split = pl.module { main = pl.func({ x }, pl.op.add(r, pl.op.exp(r))) }
    local pattern = is_op "add" (is_op "nn.relu" (wildcard()), wildcard())
    assert.same({}, tune.extract_subgraphs(split, pattern))
    assert.equal(1, #tune.extract_subgraphs(split, is_op "add" (wildcard(), wildcard())))
  end)

  it("are tuned once where they are equal", function()
    pl.passes.SubgraphSpecGelu = { kind = "function", doc = "For a spec.",
      run = pl.rules { "nn.relu(?x) => maximum(?x, 0)" } }
    local whole, searched = network(), {}
    local function cost(m) return 1 + (pl.list_op_freqs(m)["nn.relu"] or 0) end
    local tuned = tune.tune_subgraphs(whole, layers(), { base = "DeadCodeElimination",
      pool = { "SubgraphSpecGelu" }, strategy = "exhaustive", trials = 6,
      metrics = { { cost, name = "cost" } },
      on_trial = function(search) searched[search.mod] = true end })
    pl.passes.SubgraphSpecGelu = nil
    assert.equal(2, #tuned.groups)
    assert.equal(2, tuned.groups[1].count)
    assert.equal(1, tuned.groups[2].count)
    assert.equal("faster", tuned.groups[1].result.verdict)
    local n = 0
    for _ in pairs(searched) do n = n + 1 end
    assert.equal(2, n)
    assert.is_nil(pl.list_op_freqs(tuned.mod)["nn.relu"])
    assert.equal(3, pl.list_op_freqs(tuned.mod).maximum)
    assert(pl.check(whole, tuned.mod))
  end)

  it("stay where what is found cannot be put back", function()
    local function cost(m) return tostring(m):find "Primitive" and 1 or 2 end
    local tuned = tune.tune_subgraphs(network(), layers(), { base = "FuseOps", strategy = "random",
      trials = 1, metrics = { { cost, name = "cost" } } })
    assert.equal("a Function", tuned.groups[1].reason)
    assert.is_true(pl.equal(network(), tuned.mod))
  end)

  it("are checked", function()
    local whole = network()
    local parts = tune.extract_subgraphs(whole, layers())
    assert(message(tune.extract_subgraphs, whole, {}):find "a dataflow pattern expected")
    assert(message(tune.substitute, whole, parts, { parts[1].mod }):find "3 parts and 1 replace")
    assert(message(tune.substitute, whole, { parts[1], parts[1] }, { parts[1].mod, parts[1].mod })
      :find "two parts have a node in common")
    assert(message(tune.substitute, whole, { 1 }, { 1 }):find "extract_subgraph makes")
    assert(message(tune.tune_subgraphs, whole, parts, { mod = 1 }):find "a module expected")
  end)

  it("of a long function take linear time", function()
    local function seconds(n)
      local x = pl.var("x", "Tensor[(4), float32]")
      local y = x
      for _ = 1, n do y = pl.op.exp(pl.op.tanh(y)) end
      local chain = pl.module { main = pl.func({ x }, y) }
      local begun = os.clock()
      local parts = tune.extract_subgraphs(chain, is_op "exp" (is_op "tanh" (wildcard())))
      assert.equal(n, #parts)
      return os.clock() - begun
    end
    seconds(200)
    local short, long = seconds(500), seconds(4000)
    assert.is_true(long < 24 * short, ("%g %g"):format(short, long))
  end)
end)
