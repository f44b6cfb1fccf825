-- The entries of value_info that export writes: what is known, and nothing that
-- is no longer so.

local pl = require "perilune"
local command = require "spec.cli.command"
local onnx = require "spec.onnx.bytes"
local protobuf = require "spec.onnx.protobuf"

local function shape_of(value)
  local tensor = protobuf.values(protobuf.values(value, 2)[1] or "", 1)[1] or ""
  local dims = {}
  for i, dim in ipairs(protobuf.values(protobuf.values(tensor, 2)[1] or "", 1)) do
    dims[i] = tostring(protobuf.values(dim, 1)[1] or protobuf.values(dim, 2)[1] or "?")
  end
  return table.concat(dims, "x")
end

-- "name:2x3" of each entry of a graph (or function), sorted.
local function entries_of(message, number)
  local list = {}
  for i, value in ipairs(protobuf.values(message, number)) do
    list[i] = protobuf.values(value, 1)[1] .. ":" .. shape_of(value)
  end
  table.sort(list)
  return list
end

local function graph_of(bytes) return protobuf.values(bytes, 7)[1] end
local function entries(bytes) return entries_of(graph_of(bytes), 13) end

-- The graphs in the nodes of a graph.
local function inner_graphs(graph)
  local list = {}
  for _, node in ipairs(protobuf.values(graph, 1)) do
    for _, attribute in ipairs(protobuf.values(node, 5)) do
      for _, inner in ipairs(protobuf.values(attribute, 6)) do list[#list + 1] = inner end
    end
  end
  return list
end

local function x(...) return onnx.value("x", 1, { ... }) end

-- y = Relu(Neg(Identity(Abs x))), in which `told` are in value_info.
local function chain(told, ...)
  return onnx.model { graph = onnx.graph { inputs = { x(...) }, value_info = told,
    outputs = { onnx.value("y", 1, { ... }) }, nodes = { onnx.node("Abs", "x", "a"),
      onnx.node("Identity", "a", "i"), onnx.node("Neg", "i", "n"), onnx.node("Relu", "n", "y") } } }
end

local function simplified(bytes)
  return pl.passes.SimplifyExpr()(assert(pl.onnx.parse(bytes)))
end

local function written(module, options) return assert(pl.onnx.tostring(module, options)) end

describe("value_info", function()
  local told = { onnx.value("a", 1, { 2 }), onnx.value("i", 1, { 2 }) }

  it("stays as it is in a graph that did not change", function()
    local bytes = chain(told, 2)
    assert.is_true(bytes == written(assert(pl.onnx.parse(bytes))))
    bytes = chain({}, 2)
    assert.is_true(bytes == written(assert(pl.onnx.parse(bytes))))
  end)

  it("tells all that is known where a graph had any and changed", function()
    assert.same({ "a:2", "n:2" }, entries(written(simplified(chain(told, 2)))))
    local list = entries(written(simplified(chain({ onnx.value("a", 1) }, 2, "N"))))
    assert.same({ "a:2xN", "n:2xN" }, list)
  end)

  it("is not added where there was none, or where that is said", function()
    assert.same({}, entries(written(simplified(chain({}, 2)))))
    assert.same({ "a:2" }, entries(written(simplified(chain(told, 2)), { value_info = false })))
  end)

  it("is written of all values when that is said", function()
    local all = written(simplified(chain({}, 2, "N")), { value_info = true })
    assert.same({ "a:2xN", "n:2xN" }, entries(all))
    local unchanged = assert(pl.onnx.parse(chain({}, 2)))
    assert.same({ "a:2", "i:2", "n:2" }, entries(written(unchanged, { value_info = true })))
  end)

  it("makes the outputs' dims as exact as what inference found, when that is said", function()
    local function outputs(options)
      local graph = onnx.graph { inputs = { x("N", 4) }, nodes = { onnx.node("Abs", "x", "y") },
        outputs = { onnx.value("y", 1, { "A", "B" }) } }
      local bytes = onnx.model { graph = graph }
      return entries_of(graph_of(written(assert(pl.onnx.parse(bytes)), options)), 12)
    end
    assert.same({ "y:AxB" }, outputs())
    assert.same({ "y:Ax4" }, outputs { value_info = true })
  end)

  it("tells of inner graphs", function()
    local function branch(op)
      return onnx.graph { value_info = { onnx.value("t", 1, { 2 }) },
        outputs = { onnx.value("r", 1, { 2 }) }, nodes = { onnx.node(op, "x", "t"),
          onnx.node("Identity", "t", "u"), onnx.node("Neg", "u", "s"),
          onnx.node("Relu", "s", "r") } }
    end
    local branches = { onnx.subgraph("then_branch", branch "Abs"),
      onnx.subgraph("else_branch", branch "Exp") }
    local bytes = onnx.model { graph = onnx.graph { inputs = { x(2), onnx.value("c", 9, {}) },
      outputs = { onnx.value("y", 1, { 2 }) }, nodes = { onnx.node("If", "c", "y", branches) } } }
    local after = written(simplified(bytes))
    local graphs = inner_graphs(graph_of(after))
    assert.equal(2, #graphs)
    for _, graph in ipairs(graphs) do assert.same({ "s:2", "t:2" }, entries_of(graph, 13)) end
    assert.same({}, entries(after))
  end)

  it("tells of local functions, where the IR version has it", function()
    local function model(ir)
      local k = onnx.tensor("", 1, { 2 }, { 1, 2 })
      local f = onnx.func { name = "F", domain = "local", inputs = "x", outputs = "y", nodes = {
        onnx.node("Constant", "", "k", { onnx.tensor_attr("value", k) }),
        onnx.node("Neg", "k", "n"), onnx.node("Add", "x n", "y") } }
      return onnx.model { ir = ir, functions = { f }, domains = { ["local"] = 1 },
        graph = onnx.graph { inputs = { x(2) }, outputs = { onnx.value("y", 1, { 2 }) },
        nodes = { onnx.node("F", "x", "y", nil, { domain = "local" }) } } }
    end
    for ir, expected in pairs { [8] = 0, [10] = 1 } do
      local bytes = written(assert(pl.onnx.parse(model(ir))), { value_info = true })
      local found = 0
      for _, entry in ipairs(entries_of(protobuf.values(bytes, 25)[1], 12)) do
        if entry == "n:2" then found = found + 1 end
      end
      assert.equal(expected, found)
    end
  end)
end)

describe("opt --value-info", function()
  local folder = command.folder()
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("writes the types of all values", function()
    local path = command.write(folder .. "/in.onnx", chain({}, 2))
    local out = folder .. "/out.onnx"
    assert.equal(0, (command.run(folder, ("opt -q %s -o %s --value-info"):format(path, out))))
    assert.same({ "a:2", "n:2" }, entries(command.read(out)))
    assert.equal(0, (command.run(folder, ("opt -q %s -o %s"):format(path, out))))
    assert.same({}, entries(command.read(out)))
  end)

  it("has no part in what --dim makes of the entries of a file", function()
    local told = { onnx.value("a", 1, { "N" }), onnx.value("n", 1, { "N" }) }
    local path, out = command.write(folder .. "/n.onnx", chain(told, "N")), folder .. "/out.onnx"
    assert.equal(0, (command.run(folder, ("opt -q %s -o %s --dim N=4"):format(path, out))))
    assert.same({ "a:4", "n:4" }, entries(command.read(out)))
  end)
end)

describe("an input or output without a rank", function()
  local core = require "perilune.core"

  local function warnings(fn)
    assert(pl.onnx.tostring(pl.module { main = fn }))
    local list = {}
    for i, diag in ipairs(core.diags()) do list[i] = diag.message end
    return table.concat(list, "\n")
  end

  it("is warned of", function()
    local any, two = pl.var("any", "Tensor[*, float32]"), pl.var("two", "Tensor[(2), float32]")
    local said = warnings(pl.func({ any }, pl.op.abs(any)))
    for _, what in ipairs { "input 'any'", "output 'output_0'" } do
      assert.matches(("the %s of the model has unknown rank"):format(what), said, 1, true)
    end
    assert.equal("", warnings(pl.func({ two }, pl.op.abs(two))))
  end)

  it("is not where the file has it so", function()
    local bytes = chain({})
    local model = assert(pl.onnx.parse(bytes))
    assert.equal(bytes, pl.onnx.tostring(model))
    assert.same({}, core.diags())
  end)
end)

describe("opt --check", function()
  local folder = command.folder()
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("compares what will be read", function()
    local path = command.write(folder .. "/in.onnx", chain({}, 2))
    for _, out in ipairs { "out.onnx", "out.relay" } do
      local arguments = ("opt --check %s -o %s/%s"):format(path, folder, out)
      local status, said = command.run(folder, arguments)
      assert.equal(0, status)
      assert.is_truthy(said:find "equal")
    end
  end)
end)
