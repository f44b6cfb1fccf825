-- What is said of wrong usage of the library: where it was called, what there is instead.

local pl = require "perilune"

local x = pl.var("x", "Tensor[(2), float32]")

--- What f raises, without the place; that must be this file's.
local function message(f)
  local ok, err = pcall(f)
  assert.is_false(ok)
  local text = tostring(err)
  local rest, n = text:gsub("^spec/lua/misuse_spec.lua:%d+: ", "")
  assert.equal(1, n, text)
  return (rest:gsub("^error: ", ""))
end

describe("a mistake in a call", function()
  it("is told at the line of the script, with the name of what was called", function()
    local rows = {
      { "pl.func: params: a table expected, got Node", function() return (pl.func(x, x)) end },
      { "pl.func: a body expected, got nil", function() return (pl.func({ x })) end },
      { "pl.save: path: a string expected, got nil", function() return (pl.save(x)) end },
      { "verify: perilune.Node expected, got number", function() return (pl.verify(3)) end },
      { "pl.bisect: a module expected, got string",
        function() return (pl.bisect("SimplifyExpr", "x")) end },
      { "an element of dtype int64 is an integer, got a table",
        function() return (pl.tensor { 1, { 2 } }) end },
      { "pl.with: a context expected, got Node", function() return (pl.with(x)) end },
    }
    for _, row in ipairs(rows) do
      assert.equal(row[1], (message(row[2]):gsub(" table: 0x%x+", " a table")))
    end
  end)

  it("names what is nearly called so", function()
    local mod = pl.module { main = pl.func({ x }, x) }
    local rows = {
      { "'retype'; did you mean 'ret_type'?",
        function() return (pl.func({ x }, x, { retype = "int32" })) end },
      { "'type_param'; did you mean 'type_params'?",
        function() return (pl.func({ x }, x, { attrs = {}, type_param = {} })) end },
      { "'Primitiv'; did you mean 'Primitive'?",
        function() return (pl.func({ x }, x, { Primitiv = 1 })) end },
      { "save has no option 'external'", function() pl.save(mod, "x.onnx", { external = 1 }) end },
      { "'content'; did you mean 'contents'?",
        function() return pl.equal(mod, mod, { content = true }) end },
      { "'evry'; did you mean 'every'?",
        function() return (pl.bisect("SimplifyExpr", mod, nil, { evry = true })) end },
      { "'pipelin'; did you mean 'pipeline'?",
        function() return (pl.reduce(mod, nil, { pipelin = "x" })) end },
      { "'sed'; did you mean 'seed'?",
        function() return (pl.tensor.random({ 2 }, "float32", { sed = 1 })) end },
      { "no dtype is called 'flot32'; did you mean 'float32'?",
        function() return (pl.tensor({ 1 }, "flot32")) end },
      { "'axs'; did you mean 'axis'?",
        function() return (pl.op.nn.softmax(x, { axs = 1 })) end },
      { "'rum'; did you mean 'run'?",
        function() pl.passes.X = { kind = "function", rum = print } end },
      { "'opt_levl'; did you mean 'opt_level'?",
        function() return (pl.context { opt_levl = 3 }) end },
      { "'nam'; did you mean 'name'?", function() return (pl.parse("x", { nam = "x" })) end },
      { "'colur'; did you mean 'colour'?",
        function() return (pl.instruments.diff { colur = true }) end },
    }
    for _, row in ipairs(rows) do assert.matches(row[1], message(row[2]), 1, true) end
  end)

  it("says what cannot be assigned to", function()
    local mod = pl.module { main = pl.func({ x }, x + 1) }
    local views = {
      Module = function() mod.main = 1 end,
      Functions = function() mod.functions.main = 1 end,
      Node = function() mod.functions.main.body = x end,
      Attrs = function() mod.functions.main.attrs.Inline = 1 end,
      Type = function() x.type.shape = {} end,
      Op = function() pl.op.add.doc = "" end,
    }
    for class, assign in pairs(views) do
      assert.matches(("^perilune.%s has no writable field"):format(class), message(assign))
    end
    assert.equal("operators cannot be assigned", message(function() pl.op.mine = 1 end))
  end)

  it("takes a function's type, attributes and type variables from one table", function()
    local fn = pl.func({ x }, x, { ret_type = x.type, attrs = { mine = 1 } })
    assert.equal(1, fn.attrs.mine)
    assert.equal(2, pl.func({ x }, x, { attrs = { other = 2 } }).attrs.other)
    for _, name in ipairs { "Primitive", "Compiler", "Composite", "global_symbol",
      "relay.reshape_only", "__params__", "target", "MyAttribute" } do
      assert.equal("1", pl.func({ x }, x, { [name] = "1" }).attrs[name])
    end
    fn = pl.func({ x }, x, { ret_type = x.type, Compiler = "dnnl", global_symbol = "f" })
    assert.equal("Tensor[(2), float32]", tostring(fn.ret_type))
    assert.same({ "dnnl", "f" }, { fn.attrs.Compiler, fn.attrs.global_symbol })
  end)

  it("takes attributes of other names only as attrs", function()
    local function says(what, options)
      assert.equal("pl.func: " .. what, message(function() return (pl.func({ x }, x, options)) end))
    end
    local hint = " Attributes of any name are given as { attrs = { ... } }"
    says("there is no option 'other'." .. hint, { other = 2 })
    says("there is no option 'return_type'; did you mean 'ret_type'?" .. hint,
      { return_type = x.type })
    says("there is no option '1'." .. hint, { "int32" })
    says("there is no option 'Composit'; did you mean 'Composite'?" .. hint, { Composit = "x" })
    says("the attribute 'Inline' belongs into attrs, which are given too",
      { Inline = 1, attrs = { other = 1 } })
  end)
end)

describe("the name of an operator", function()
  it("may be what ONNX calls it, for a message", function()
    assert.equal("no operator is called 'MatMul'; ONNX's MatMul is 'nn.matmul' here",
      message(function() return (pl.op.MatMul) end))
    assert.equal("no operator is called 'Softmaxx'; did you mean 'Softmax' (ONNX), "
      .. "'nn.softmax' here?", message(function() return (pl.call("Softmaxx", { x })) end))
  end)

  it("may be the domain and type of an ONNX node", function()
    assert.equal(pl.op.nn.relu, pl.op["ai.onnx::Relu"])
    assert.equal("microsoft.quick_gelu", pl.op["com.microsoft::QuickGelu"].name)
    assert.equal("nn.relu(%x)", (tostring(pl.call("ai.onnx::Relu", { x })):match "nn.relu%(%%x%)"))
  end)

  it("may be of a domain that nobody here knows", function()
    local op = pl.op["com.example::NeverSeen"]
    assert.equal("com.example::NeverSeen", op.name)
    assert.equal(op, pl.call("com.example::NeverSeen", { x }).op)
    local mod = pl.module { main = pl.func({ x }, op(x, { alpha = 1.5 })) }
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(mod))))
    assert.same({ "com.example::NeverSeen", 1.5 },
      { again.main.body.op.name, again.main.body.attrs.alpha })
    assert.error_matches(function() return (pl.op["no operator"]) end, "no operator is called")
  end)
end)
