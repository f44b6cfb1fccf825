-- ONNX models from and to Lua: pl.onnx.

local pl = require "perilune"
local zoo = require "perilune.zoo.model"

local function tiny()
  local m = zoo.new { name = "tiny", opset = 17 }
  local x = m:input("x", "float32", { "N", 3 })
  local w = m:initializer("w", "float32", { 3 }, string.pack("<fff", 1, 2, 3))
  m:output(m:node("Relu", { m:node("Add", { x, w }) }, {}, "y"), "float32", { "N", 3 })
  return m:tostring()
end

describe("a model", function()
  local path = os.tmpname()
  teardown(function()
    os.remove(path)
    os.remove(path .. ".data")
  end)

  it("is a module whose main is the graph", function()
    local mod = assert(pl.onnx.parse(tiny()))
    local main = mod.functions.main
    assert.equal("x", main.params[1].name)
    assert.equal(pl.op.nn.relu, main.body.op)
    assert.equal(pl.op.add, main.body[1].op)
    assert.equal("Tensor[(N, 3), float32]", tostring(main.ret_type))
    assert.same({ 1, 2, 3 }, main.body[1][2].data:to_table())
    assert.same({ { 2, 0, 4 } }, pl.eval(mod, { { 1, -2, 1 } }):to_table())
  end)

  it("comes back byte by byte when nothing changed", function()
    local bytes = tiny()
    assert.equal(bytes, assert(pl.onnx.tostring(assert(pl.onnx.parse(bytes)))))
  end)

  it("is saved and loaded", function()
    local mod = assert(pl.onnx.parse(tiny()))
    assert.is_true(pl.onnx.save(mod, path))
    local again = assert(pl.onnx.load(path))
    assert.is_true(pl.equal(mod, again))
    assert.is_true(pl.onnx.save(mod, path, { external_data = true, external_threshold = 1 }))
    assert.is_true(pl.equal(mod, assert(pl.load(path))))
    local counts = assert(pl.onnx.count(path))
    assert.equal(2, counts.nodes)
    assert.equal(1, counts.operators.Relu)
  end)

  it("may be built by hand", function()
    local x = pl.var("x", "Tensor[(N, 3), float32]")
    local mod = pl.module { main = pl.func({ x }, pl.op.nn.relu(x * 2 + 1)) }
    local bytes = assert(pl.onnx.tostring(mod))
    local again = assert(pl.onnx.parse(bytes))
    assert.same({ { 3, 0, 1 } }, pl.eval(again, { { 1, -1, 0 } }):to_table())
    assert(pl.check(mod, again))
  end)

  it("built by hand has its loops and its numbers when it is read again", function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local row = pl.type "Tensor[(3), float32]"
    local sum, each = pl.var("sum", row), pl.var("each", row)
    local body = pl.func({ sum, each }, pl.tuple { sum + each })
    local total = pl.op.scan(pl.const { 0.0, 0.0, 0.0 }, x, body,
      { num_scan_inputs = 1, n_results = 1 }):get(0)
    local mod = pl.module { main = pl.func({ x }, pl.op.nn.elu(total, { alpha = 0.1 })) }
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(mod))))
    local given = { { 1, 2, -3 }, { 4, 5, -6 } }
    assert.same({ 5, 7 }, table.move(pl.eval(again, given):to_table(), 1, 2, 1, {}))
    assert.is_true(pl.eval(mod, given):equal(pl.eval(again, given)))
  end)

  it("gets a number for a symbolic dim", function()
    local mod = assert(assert(pl.onnx.parse(tiny())):fix_dim("N", 4))
    assert.equal("Tensor[(4, 3), float32]", tostring(mod.main.ret_type))
    local none, diag = mod:fix_dim("M", 4)
    assert.is_nil(none)
    assert.equal("name", diag.code)
  end)

  it("has other Vars where a dim became a number: those of before stay what they were", function()
    local x = pl.var("x", "Tensor[(N, 3), float32]")
    local mod = pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
    local four = assert(mod:fix_dim("N", 4))
    local param = four.main.params[1]
    assert.is_false(param == x)
    assert.equal("Tensor[(4, 3), float32]", tostring(pl.func({ param }, param + param).ret_type))
    assert.equal("Tensor[(N, 3), float32]", tostring(pl.func({ x }, x + x).ret_type))
  end)

  it("that is broken, or missing, gives a diagnostic", function()
    local mod, diag = pl.onnx.load "/nowhere/x.onnx"
    assert.is_nil(mod)
    assert.equal("io", diag.code)
    assert.is_truthy(tostring(diag):find("/nowhere/x.onnx", 1, true))
    local bytes = tiny()
    for _, bad in ipairs { bytes:sub(1, -3), "hello", ("\255"):rep(100) } do
      mod, diag = pl.onnx.parse(bad)
      assert.is_nil(mod)
      assert.equal("format", diag.code)
    end
    assert.has_error(function() pl.onnx.load() end)
    local ok
    ok, diag = pl.onnx.save(assert(pl.onnx.parse(bytes)), "/nowhere/x.onnx")
    assert.is_nil(ok)
    assert.equal("io", diag.code)
  end)
end)
