-- Operators that scripts register with a node of a custom domain: import gives the core call,
-- export writes the node.

local pl = require "perilune"

local DOMAIN = "com.example.spec"
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir -p " .. folder)

local count = 0

-- Registers an operator whose node has a new type.
local function register(spec)
  count = count + 1
  local name = "spec_onnx.op" .. count
  spec.args = spec.args or { "x" }
  spec.infer = spec.infer or "same"
  spec.onnx = spec.onnx or {}
  spec.onnx.domain = spec.onnx.domain or DOMAIN
  spec.onnx.op_type = spec.onnx.op_type or "Type" .. count
  pl.ops[name] = spec
  return pl.op[name], spec.onnx.op_type
end

local function var(name) return pl.var(name, "Tensor[(2), float32]") end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

-- Writes a function to a file; the module that the file holds, and its bytes.
local function round_trip(fn)
  local path = folder .. "/model.onnx"
  assert(pl.onnx.save(pl.module { main = fn }, path))
  return assert(pl.onnx.load(path)), read(path), path
end

local function calls_of(module, op)
  local list = {}
  pl.post_order(module.main, function(node)
    if node.kind == "Call" and node.op == op then list[#list + 1] = node end
  end)
  return list
end

describe("an operator with a node in ONNX", function()
  it("is written as the node and read back", function()
    local op = register { attrs = { axis = -1, scale = 1.0, mode = { kind = "string" } },
      onnx = { since_version = 3, attributes = { axis = "dim" } } }
    local x = var "x"
    local module, bytes = round_trip(pl.func({ x }, op(x, { axis = 2, mode = "fast" })))
    local call = calls_of(module, op)[1]
    assert.equal(2, call.attrs.axis)
    assert.equal("fast", call.attrs.mode)
    assert.equal("Tensor[(2), float32]", tostring(call.type))
    assert.equal(3, module.attrs.opset_import[DOMAIN])
    assert.truthy(bytes:find("dim", 1, true))
    assert.is_nil(bytes:find("axis", 1, true))
  end)

  it("keeps its bytes when nothing changes", function()
    local op = register { args = { "x", "y", "z?" }, attrs = { axis = -1 },
      onnx = { inputs = { "z", "y", "x" } } }
    local x, y = var "x", var "y"
    local module, bytes = round_trip(pl.func({ x, y }, op(x, op(y, x, y))))
    local again = folder .. "/again.onnx"
    assert(pl.onnx.save(module, again))
    assert.equal(bytes, read(again))
    local calls = calls_of(module, op)
    assert.equal(2, #calls)
    assert.equal(3, #calls[1].args)
    assert.equal(2, #calls[2].args)
    assert.equal("y", calls[1].args[1].name)
    assert.equal("x", calls[2].args[1].name)
  end)

  it("is computed and folded after import", function()
    local op = register { args = { "x", "y" }, onnx = { inputs = { "y", "x" } },
      eval = function(inputs) return inputs.y end }
    local x = var "x"
    local three = pl.const(pl.tensor { 3.0, 4.0 })
    local one = pl.const(pl.tensor { 1.0, 2.0 })
    local module = round_trip(pl.func({ x }, pl.op.add(x, op(one, three))))
    assert.same({ 3, 4 }, pl.eval(module, pl.tensor { 0.0, 0.0 }):to_table())
    local folded = pl.passes.FoldConstant()(module)
    assert.same({}, calls_of(folded, op))
    assert.same({ 3, 4 }, pl.eval(folded, pl.tensor { 0.0, 0.0 }):to_table())
  end)

  it("is chosen by the version of the domain", function()
    local old, type_ = register {}
    local new = register { onnx = { op_type = type_, since_version = 5 } }
    local x = var "x"
    assert.equal(1, #calls_of(round_trip(pl.func({ x }, old(x))), old))
    assert.equal(1, #calls_of(round_trip(pl.func({ x }, new(x))), new))
    local later = register { onnx = { since_version = 7 } }
    local opaque = pl.op[DOMAIN .. "::Unknown" .. count]
    local module = round_trip(pl.func({ x }, opaque(x)))
    assert.equal(0, #calls_of(module, later))
  end)

  it("has a name under which ONNX knows it", function()
    local _, type_ = register {}
    assert.equal(pl.op["spec_onnx.op" .. count], pl.op[DOMAIN .. "::" .. type_])
    local ok, why = pcall(function() return pl.op[type_] end)
    assert.is_false(ok)
    assert.truthy(tostring(why):find("is 'spec_onnx.op" .. count .. "' here", 1, true), why)
  end)

  it("is refused without a node, or with one that is taken", function()
    pl.ops["spec_onnx.no_node"] = { args = { "x" }, infer = "same" }
    local x = var "x"
    local module = pl.module { main = pl.func({ x }, pl.op.spec_onnx.no_node(x)) }
    local saved, why = pl.onnx.save(module, folder .. "/none.onnx")
    assert.is_nil(saved)
    assert.truthy(tostring(why):find("operator 'spec_onnx.no_node' is no node of ONNX", 1, true),
      tostring(why))
    local _, type_ = register {}
    for wanted, onnx in pairs {
      ["from version 1 on is 'spec_onnx.op"] = { op_type = type_ },
      ["must be one of its own"] = { domain = "ai.onnx" },
      ["since_version counts from 1"] = { since_version = 0 },
      ["ONNX input 'y' is no operand"] = { inputs = { "y" } },
      ["ONNX attribute 'axis' is none of its attributes"] = { attributes = { axis = "dim" } },
      ["onnx has no field 'version'"] = { version = 3 },
    } do
      local ok, reason = pcall(register, { onnx = onnx })
      assert.is_false(ok)
      assert.truthy(tostring(reason):find(wanted, 1, true), tostring(reason))
    end
  end)
end)

describe("a wrong node of a registered operator", function()
  -- A file with a node that nobody knows yet; then the operator is registered.
  local function load_as(spec, attrs, ...)
    local type_ = "Late" .. count
    local x = var "x"
    local opaque = pl.op[DOMAIN .. "::" .. type_]
    local _, _, path = round_trip(pl.func({ x }, opaque(x, ..., attrs)))
    spec.onnx = { op_type = type_ }
    local op = register(spec)
    return assert(pl.onnx.load(path)), op, path
  end

  it("is untyped, and is written as it was", function()
    for wanted, case in pairs {
      ["has no attribute 'foo'"] = { attrs = {} },
      ["attribute 'foo' takes a string"] = { attrs = { foo = "a" } },
      ["attribute 'bar' is missing"] =
        { attrs = { foo = 1, bar = { kind = "int", required = true } } },
    } do
      case.eval = function(inputs) return inputs.x end
      local module, op, path = load_as(case, { foo = 3 })
      assert.equal(1, #calls_of(module, op))
      local again = folder .. "/again.onnx"
      assert(pl.onnx.save(module, again))
      assert.equal(read(path), read(again))
      local ok, why = pcall(pl.eval, module, pl.tensor { 1.0, 2.0 })
      assert.is_false(ok)
      assert.truthy(tostring(why):find(wanted, 1, true), tostring(why))
      assert.truthy(tostring(why):find(op.name, 1, true), tostring(why))
    end
  end)

  it("is named when its function computes something else, and nothing changes", function()
    for wanted, eval in pairs {
      ["computed a Tensor[(1), float32], but the call has type Tensor[(2), float32]"] =
        function() return { 1.0 } end,
      ["computed a Tensor[(2), int64]"] = function() return pl.tensor { 1, 2 } end,
      ["1 result expected, got 2"] = function(inputs) return inputs.x, inputs.x end,
    } do
      local op = register { eval = eval }
      local x = var "x"
      local module = round_trip(pl.func({ x }, pl.op.add(op(x), x)))
      local ok, why = pcall(pl.eval, module, pl.tensor { 1.0, 2.0 })
      assert.is_false(ok)
      why = tostring(why)
      assert.truthy(why:find(wanted, 1, true), why)
      assert.truthy(why:find(op.name, 1, true), why)
      assert.truthy(why:find("node", 1, true), why)
      local constant = pl.const(pl.tensor { 1.0, 2.0 })
      module = round_trip(pl.func({ x }, pl.op.add(op(constant), x)))
      local before = tostring(module)
      ok, why = pcall(pl.passes.FoldConstant(), module)
      assert.is_false(ok)
      assert.truthy(tostring(why):find(wanted, 1, true), tostring(why))
      assert.equal(before, tostring(module))
    end
  end)
end)
