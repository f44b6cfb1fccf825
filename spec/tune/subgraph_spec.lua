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
