-- Modules as pictures for Graphviz and as JSON: golden files in spec/golden
-- (PERILUNE_GOLDEN=write makes them anew), sizes, Graphviz where it is installed.

local pl = require "perilune"
local command = require "spec.cli.command"

local folder
setup(function() folder = command.folder() end)
teardown(function() os.execute("rm -rf " .. folder) end)

-- A function in each other's branch, a let, constants, a tuple.
local function sample()
  local t = "Tensor[(4), float32]"
  local x, p, y, a = pl.var("x", t), pl.var("p", "bool"), pl.var("y", t), pl.var('the "sum"', t)
  local twice = pl.func({ y }, pl.op.nn.relu(y * 2))
  local block = pl.let(a, x + pl.const({ 1, 2, 3, 4 }, "float32"),
    pl.op.concatenate(a, a, { axis = 0 }))
  local fn = pl.func({ x, p }, pl.tuple { pl.if_(p, twice(x), x), block })
  return pl.module { main = fn, other = twice }
end

local function check_golden(name, text)
  local path = "spec/golden/" .. name
  if os.getenv "PERILUNE_GOLDEN" == "write" then command.write(path, text) end
  assert.equal(command.read(path), text)
end

local function count(text, pattern)
  return select(2, text:gsub(pattern, ""))
end

-- The value of a JSON text as a Lua table; null is nil.
local function decode(text)
  local parts = { "local null; return " }
  for plain, quoted in text:gsub('\\"', "\1"):gmatch '([^"]*)("?[^"]*"?)' do
    plain = plain:gsub("^:", "]="):gsub("%[", "{"):gsub("%]([^=])", "}%1"):gsub("%]$", "}")
    parts[#parts + 1] = plain .. quoted
  end
  local source = table.concat(parts):gsub('("[^"]*")%]=', "[%1]=")
  return assert(load(source))()
end

describe("A picture", function()
  it("has clusters for functions and scopes", function()
    local text = sample():dot()
    check_golden("module.dot", text)
    assert.equal(2, count(text, "label=\"@%w+\";"))
    assert.equal(1, count(text, 'label="true_branch";'))
  end)

  it("is drawn by Graphviz", function()
    if not os.execute "command -v dot >/dev/null 2>&1" then pending "no Graphviz" return end
    local path = command.write(folder .. "/module.dot", sample():dot())
    local draw = ("dot -Tsvg -o %s/module.svg %s 2>%s/warnings"):format(folder, path, folder)
    assert.is_true(os.execute(draw))
    assert.equal("", command.read(folder .. "/warnings"))
    local svg = command.read(folder .. "/module.svg")
    assert.matches("<svg", svg, 1, true)
    assert.matches(">@main<", svg, 1, true)
    assert.matches("the &quot;sum&quot;", svg, 1, true)
  end)

  it("can be of an expression, with what it uses", function()
    local x = pl.var("x", "bool")
    assert.equal(3, count(pl.op.logical_not(pl.op.logical_not(x)):dot(), "f0_n%d %[label"))
  end)

  it("grows as the graph does", function()
    local function size(n)
      local x = pl.var("x", "Tensor[(4), float32]")
      local y = x
      for _ = 1, n do y = pl.op.exp(y) end
      return #pl.func({ x }, y):dot()
    end
    local small, large = size(1000), size(10000)
    assert.is_true(large < 11 * small)
  end)
end)

describe("JSON", function()
  it("has nodes, scopes, types and attributes", function()
    local text = sample():json()
    check_golden("module.json", text)
    local main = decode(text).functions[1]
    assert.equal("main", main.name)
    assert.equal("Function", main.nodes[main.root + 1].kind)
    for _, node in ipairs(main.nodes) do
      for _, operand in ipairs(node.operands or {}) do
        assert.is_truthy(main.nodes[operand + 1])
      end
    end
  end)

  it("keeps names of any bytes within JSON", function()
    local x = pl.var("a\"\\\n\1\xff\u{e9}", "bool")
    assert.matches([["name": "a\"\\\n\u0001\u00ff]] .. "\u{e9}\"", x:json(), 1, true)
  end)

  it("is what the command prints", function()
    local model = folder .. "/model.onnx"
    local x = pl.var("x", "Tensor[(4), float32]")
    assert(pl.onnx.save(pl.module { main = pl.func({ x }, pl.op.exp(x)) }, model))
    local status, out = command.run(folder, "info --json --graph " .. model)
    assert.equal(0, status)
    assert.matches('^{"file":', out)
    assert.matches('"graph":{"attrs": ', out, 1, true)
    assert.matches('{"kind": "Call", "op": "exp", "operands": [0]', out, 1, true)
    status, out = command.run(folder, "info --dot " .. model)
    assert.equal(0, status)
    assert.matches("^digraph perilune {", out)
  end)
end)
