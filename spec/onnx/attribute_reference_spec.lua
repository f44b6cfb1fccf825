-- Attributes of a local function that its nodes refer to: written as they were
-- read for each operator and attribute, never computed with, and resolved where
-- the function is called.

local pl = require "perilune"
local command = require "spec.cli.command"
local onnx = require "spec.onnx.bytes"

-- domain, type, the opset from which it is read, core operator of each row.
local function onnx_operators()
  local list = {}
  for domain, op, from, core in command.read "engine/onnx/ops.def"
    :gmatch 'ONNX%("([^"]*)",%s*"(%w+)",%s*(%d+),%s*%d+,%s*([%w_]+)' do
    list[#list + 1] = { domain = domain, type = op, from = tonumber(from), core = core }
  end
  return list
end

-- "CORE.core name" -> ONNX's name of the attributes that have two.
local function onnx_names()
  local names = {}
  for id, onnx_name, name in command.read "engine/onnx/attr_names.def"
    :gmatch '\nATTR_NAME%(([%w_]+),%s*"([^"]+)",%s*"([^"]+)"' do
    names[id .. "." .. name] = onnx_name
  end
  return names
end

-- Least operands and attributes ("name:kind ...", ONNX's names) of each core operator.
local function core_operators()
  local by_name, renamed = {}, onnx_names()
  for name, least, attributes in command.read "engine/op/ops.def"
    :gmatch '\nOP%(([%w_]+),%s*"[^"]*",%s*(%d+),%s*%-?%w+,%s*"([^"]*)"' do
    local onnx_form = attributes:gsub("([%w_]+):", function(attribute)
      return (renamed[name .. "." .. attribute] or attribute) .. ":"
    end)
    by_name[name] = { least = tonumber(least), attributes = onnx_form }
  end
  return by_name
end

-- A node for each attribute of an operator, which refers to the function's
-- attribute of that name; `inputs` of them are called `input`.
local function add_nodes(nodes, row, core, input)
  for name, kind in core.attributes:gmatch "([%w_]+):(%w+)" do
    if onnx.kinds[kind] then
      nodes[#nodes + 1] = onnx.node(row.type, (input .. " "):rep(core.least), "v" .. #nodes,
        { onnx.reference(name, "of_" .. name, kind) }, { domain = row.domain })
    end
  end
end

local function model_of(opset, input)
  local nodes, core = {}, core_operators()
  if input ~= "x" then nodes[1] = onnx.node("Identity", "x", input) end
  for _, row in ipairs(onnx_operators()) do
    if row.type ~= "If" and row.from <= opset then add_nodes(nodes, row, core[row.core], input) end
  end
  nodes[#nodes + 1] = onnx.node("Relu", input, "y")
  return onnx.model { opset = opset, domains = { ["local"] = 1, ["ai.onnx.ml"] = 3 },
    functions = { onnx.func { name = "F", domain = "local", inputs = "x", outputs = "y",
      attributes = "axis", nodes = nodes, opset = opset } },
    graph = onnx.graph { inputs = { onnx.value("x", 1, { 2, 3 }) },
      nodes = { onnx.node("F", "x", "y", nil, { domain = "local" }) },
      outputs = { onnx.value("y", 1, { 2, 3 }) } } }, #nodes
end

local function references(fn)
  local list = {}
  for node in fn:nodes() do
    for name, value in pairs(node.kind == "Call" and node.attrs or {}) do
      if type(value) == "table" and value.ref then list[#list + 1] = name .. "=" .. value.ref end
    end
  end
  table.sort(list)
  return list
end

describe("an attribute reference", function()
  for _, opset in ipairs { 8, 12, 13, 18, 23 } do
    it("is written as it was read at opset " .. opset, function()
      local bytes, n = model_of(opset, "x")
      assert.is_true(n > 300)
      assert.is_true(bytes == pl.onnx.tostring(assert(pl.onnx.parse(bytes))))
    end)

    it("stays when the node's operands change at opset " .. opset, function()
      local module = assert(pl.onnx.parse(model_of(opset, "i")))
      local before = references(module.functions["local::F"])
      local moved = pl.passes.SimplifyExpr()(module)
      assert.not_equal(module, moved)
      local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(moved))))
      assert.same(before, references(again.functions["local::F"]))
    end)
  end

  it("is written as it was read from Relay text", function()
    local module = assert(pl.onnx.parse(model_of(18, "x")))
    local text = assert(pl.parse(tostring(module)))
    assert.same(references(module.functions["local::F"]), references(text.functions["local::F"]))
  end)
end)

-- F(x; axis, perm = [0, 2, 1]): Concat(x, Softmax(Transpose(k))).
local function branches(given)
  local k = onnx.tensor("", 1, { 1, 2, 3 }, { 1, 2, 3, 4, 5, 6 })
  local f = onnx.func { name = "F", domain = "local", inputs = "x", outputs = "y",
    attributes = "axis", defaults = { onnx.ints("perm", { 0, 2, 1 }) }, nodes = {
      onnx.node("Constant", "", "k", { onnx.tensor_attr("value", k) }),
      onnx.node("Transpose", "k", "t", { onnx.reference("perm", "perm", "ints") }),
      onnx.node("Softmax", "t", "s", { onnx.reference("axis", "axis", "int") }),
      onnx.node("Concat", "x s", "y", { onnx.reference("axis", "axis", "int") }) } }
  return onnx.model { functions = { f }, domains = { ["local"] = 1 }, graph = onnx.graph {
    inputs = { onnx.value("x", 1, { "A", "B", "C" }) }, outputs = { onnx.value("y", 1) },
    nodes = { onnx.node("F", "x", "y", given, { domain = "local" }) } } }
end

local function near(expected, tensor)
  local pos = 0
  local function walk(value)
    if type(value) == "table" then for _, v in ipairs(value) do walk(v) end return end
    pos = pos + 1
    assert.near(expected[pos], value, 1e-5)
  end
  walk(tensor:to_table())
  assert.equal(#expected, pos)
end

describe("a function with attributes", function()
  local low, high = 0.047425874, 0.95257413
  local by_two = { 0, 0, low, high, 0, 0, low, high, 0, 0, low, high }
  local x = { { { 0.0, 0.0 }, { 0.0, 0.0 }, { 0.0, 0.0 } } }

  it("computes with what the call gives, and its defaults", function()
    near(by_two, pl.eval(assert(pl.onnx.parse(branches { onnx.int("axis", 2) })), x))
    local other = { onnx.int("axis", 1), onnx.ints("perm", { 0, 1, 2 }) }
    local result = pl.eval(assert(pl.onnx.parse(branches(other))), { { { 0.0, 0.0, 0.0 } } })
    near({ 0, 0, 0, low, low, low, high, high, high }, result)
  end)

  it("is not folded, and has no type that a default would give", function()
    local module = assert(pl.onnx.parse(branches { onnx.int("axis", 2) }))
    local after = pl.sequential { "SimplifyExpr", pl.passes.FoldConstant { fold = "all" },
      "EliminateCommonSubexpr", "DeadCodeElimination" } (module)
    for node in after.functions["local::F"]:nodes() do
      if node.kind == "Call" then assert.is_nil(tostring(node.type):match "%(3, 2, 1%)") end
    end
    near(by_two, pl.eval(after, x))
    near(by_two, pl.eval(assert(pl.onnx.parse(assert(pl.onnx.tostring(after)))), x))
  end)

  it("keeps names and defaults of its attributes through Relay text", function()
    local module = assert(pl.onnx.parse(branches { onnx.int("axis", 2) }))
    local text = assert(pl.parse(tostring(module)))
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(text))))
    assert.same({ "axis" }, again.functions["local::F"].scope_attrs.attributes)
    near(by_two, pl.eval(text, x))
    near(by_two, pl.eval(again, x))
  end)

  it("is inlined with what the call gives", function()
    local text = tostring(assert(pl.onnx.parse(branches { onnx.int("axis", 2) })))
    local marked = assert(pl.parse((text:gsub("scope.attributes", "Inline=1, %0", 1))))
    local inlined = pl.passes.Inline()(marked)
    assert.is_nil(inlined.functions["local::F"])
    assert.same({}, references(inlined.functions.main))
    near(by_two, pl.eval(inlined, x))
    near(by_two, pl.eval(assert(pl.onnx.parse(assert(pl.onnx.tostring(inlined)))), x))
  end)
end)
