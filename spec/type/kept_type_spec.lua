-- What is known of a node's type stays known when another node takes its
-- place, of a field of a tuple as well; and text tells it.

local pl = require "perilune"

local function simplified(text)
  return pl.passes.SimplifyExpr()(assert(pl.parse('#[version = "0.0.5"]\n' .. text)))
end

local function is_read_as_printed(module)
  local text = tostring(module)
  assert.are.equal(text, tostring(assert(pl.parse(text))))
  return text
end

describe("a type that is kept", function()
  it("is known of the tuple when the node is a field of a call", function()
    local text = is_read_as_printed(simplified [[
def @main(%x: Tensor[*, float32], %k: Tensor[(1), int64]) {
  %0 = topk(%x, %k);
  %1 = %0.0;
  %2: Tensor[(2, 4), float32] = cast(%1, dtype="float32");
  (%2, %0.1)
}]])
    assert.is_truthy(
      text:find("%0: (Tensor[(2, 4), float32], Tensor[*, int32]) = topk(%x, %k)", 1, true)
    )
    assert.is_nil(text:find("cast", 1, true))
  end)

  it("is told of a field of a parameter, whose own type stays", function()
    local text = is_read_as_printed(simplified [[
def @main(%p: (Tensor[*, float32], Tensor[(1), int64])) {
  %0 = %p.0;
  %1: Tensor[(2, 4), float32] = cast(%0, dtype="float32");
  nn.relu(%1)
}]])
    assert.is_truthy(text:find("%0: Tensor[(2, 4), float32] = %p.0", 1, true))
    assert.is_truthy(text:find("%p: (Tensor[*, float32], Tensor[(1), int64])", 1, true))
  end)

  it("is found in tuples of tuples", function()
    is_read_as_printed(simplified [[
def @main(%c: bool, %p: ((Tensor[*, float32], bool), bool)) {
  %0 = if (%c) { %p } else { %p };
  %1 = %0.0;
  %2 = %1.0;
  %3: Tensor[(2, 4), float32] = cast(%2, dtype="float32");
  nn.relu(%3)
}]])
  end)
end)

describe("a type that an ONNX model declares", function()
  local function text(attrs)
    return '#[version = "0.0.5"]\n'
      .. "def @main(%x: Tensor[(4), float32]) {\n"
      .. "  %0: Tensor[(2), float32] = tanh(%x);\n  %0\n}\n"
      .. '#[metadata]\n{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", '
      .. '"keys": ["IRModule"], "data": [2]}, {"type_key": "Array", "data": [3]}, '
      .. '{"type_key": "runtime.String", "repr_str": "' .. attrs .. '"}], '
      .. '"b64ndarrays": [], "attrs": {"tvm_version": "0.14.0"}}\n'
  end

  it("and that inference contradicts is warned of, and does not count", function()
    local module = assert(pl.parse(text "ir_version=10, opset_import={ai.onnx=18}", "m.relay"))
    local warnings = pl.diagnostics()
    assert.equal(1, #warnings)
    assert.matches(
      "m.relay:3:3: warning: the declared type Tensor[(2), float32] contradicts the inferred "
        .. "type Tensor[(4), float32], which is used",
      tostring(warnings[1]), 1, true
    )
    assert.equal(pl.type "Tensor[(4), float32]", module.main.body.type)
    is_read_as_printed(module)
  end)

  it("does not stand in another text", function()
    local module, problem = pl.parse(text "level=10", "m.relay")
    assert.is_nil(module)
    assert.matches(
      "m.relay:3:3: error: declared as Tensor%[%(2%), float32%], "
        .. "but inferred as Tensor%[%(4%), float32%]",
      tostring(problem)
    )
  end)
end)
