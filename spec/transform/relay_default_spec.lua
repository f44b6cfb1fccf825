-- The pipeline relay.default: TVM's passes for every Relay module, by the levels of the context.

local pl = require "perilune"
local command = require "spec.cli.command"
local golden = require "spec.transform.golden"

local function run_at(level, mod)
  local names = {}
  local log = { name = "log", before = function(_, info) names[#names + 1] = info.name end }
  local context = pl.context { opt_level = level, instruments = { log } }
  local scope <close> = context:enter() -- luacheck: ignore scope
  return pl.pipelines["relay.default"](mod), names
end

local function position(names, name)
  for i, one in ipairs(names) do if one == name then return i end end
end

local network = [[
def @unused(%x: float32) { exp(%x) }
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, meta[relay.Constant][0]);
  %2 = nn.dropout(nn.relu(%1));
  nn.softmax(reshape(reshape(%2.0, newshape=[4, 64]), newshape=[-1]), axis=0)
}
]]

local function module()
  return assert(pl.parse('#[version = "0.0.5"]\n' .. network, { name = "network",
    init_meta = { ["relay.Constant"] = { pl.tensor({ 1, 2, 3, 4 }, "float32") } } }))
end

describe("relay.default", function()
  it("is a pipeline by name, in Lua and in text", function()
    assert.equal("relay.default", pl.pipelines["relay.default"].info.name)
    assert.equal("relay.default", pl.pipeline "relay.default,FuseOps".passes[1].info.name)
    assert.is_nil(pl.pipelines["relay.nothing"])
    local found
    for _, row in ipairs(pl.pipelines) do found = found or row.name == "relay.default" end
    assert.is_true(found)
  end)

  it("runs the passes that the level of the context enables, in TVM's order", function()
    local _, low = run_at(0, module())
    assert.is_nil(position(low, "RemoveUnusedFunctions"))
    assert.is_nil(position(low, "FoldConstant"))
    assert.truthy(position(low, "SimplifyInference"))
    local _, middle = run_at(2, module())
    assert.is_nil(position(middle, "CanonicalizeOps"))
    assert.is_true(position(middle, "RemoveUnusedFunctions") < position(middle, "FoldConstant"))
    assert.is_true(position(middle, "qnn.Legalize") < position(middle, "qnn.CanonicalizeOps"))
    assert.is_true(position(middle, "qnn.CanonicalizeOps") < position(middle, "SimplifyInference"))
    local _, high = run_at(4, module())
    assert.is_true(position(high, "SimplifyInference") < position(high, "EliminateCommonSubexpr"))
    assert.is_true(position(high, "SimplifyExpr") < position(high, "CanonicalizeCast"))
    assert.is_true(position(high, "CanonicalizeOps") < position(high, "FastMath"))
    local after = position(high, "SimplifyExprPostAlterOp")
    assert.equal("AlterOpLayout", high[after - 1])
    assert.equal("FastMath", high[after + 1])
    assert.equal("FoldConstant", high[#high])
  end)

  it("simplifies a network, which computes the same at each level", function()
    local mod = module()
    for level = 0, 3 do
      local out = run_at(level, mod)
      assert(pl.verify(out))
      assert.equal(level == 0, out.functions.unused ~= nil)
      assert.is_nil(tostring(out):find("nn.dropout", 1, true))
      assert.equal(level < 3, tostring(out):find("nn.bias_add", 1, true) ~= nil)
      assert.is_nil(tostring(out):find("nn.fast_softmax", 1, true))
      assert(pl.equal(out, (run_at(level, out))))
    end
    assert.truthy(tostring((run_at(4, mod))):find("nn.fast_softmax", 1, true))
  end)

  it("runs from the command line, at a level", function()
    local folder = command.folder()
    local input, output = folder .. "/in.relay", folder .. "/out.relay"
    assert(pl.save(module(), input))
    for level, expected in pairs { [0] = false, [3] = false, [4] = true } do
      local arguments = ("opt %s -o %s -q -p relay.default --opt-level %d"):format(input, output,
        level)
      assert.equal(0, (command.run(folder, arguments)))
      assert.equal(expected, command.read(output):find("fast_softmax", 1, true) ~= nil)
    end
    local status, _, err = command.run(folder, ("opt %s -o %s --opt-level 5"):format(input, output))
    assert.equal(2, status)
    assert.truthy(err:find("'5' is not a level from 0 to 4", 1, true))
    os.execute("rm -rf " .. folder)
  end)

  it("needs main", function()
    assert.has_error(function()
      run_at(1, golden.module "def @other(%x: float32) { exp(%x) }")
    end)
  end)

  it("gives ONNX what ONNX can express", function()
    local x = pl.var("x", "Tensor[(2, 3, 4, 4), float32]")
    local vectors = {}
    for i = 1, 4 do vectors[i] = pl.const(pl.tensor({ i, i + 1, i + 2 }, "float32")) end
    local mod = pl.module { main = pl.func({ x },
      pl.op.nn.softmax(pl.op.nn.batch_norm(pl.op.exp(x), table.unpack(vectors)))) }
    local path = os.tmpname() .. ".onnx"
    assert(pl.onnx.save(mod, path))
    local model = assert(pl.onnx.load(path))
    for level = 0, 4 do
      local out = run_at(level, model)
      assert(pl.check(model, out))
      assert(pl.onnx.save(out, path))
      assert(pl.check(model, (assert(pl.onnx.load(path)))))
    end
    os.remove(path)
  end)
end)

describe("SimplifyExpr on Relay's floats", function()
  local pass = pl.passes.SimplifyExpr()
  local close = { rtol = 1e-4, atol = 1e-4 }

  it("merges constants, and moves factors in front of sums", function()
    golden.becomes(pass, [[
def @main(%x: Tensor[(2, 3), float32]) {
  (add(add(%x, 2f), 3f), multiply(4f, multiply(2f, %x)), multiply(add(%x, 2f), 3f))
}]], [[
def @main(%x: Tensor[(2, 3), float32]) {
  (add(%x, 5f), multiply(%x, 8f), add(multiply(%x, 3f), 6f))
}]], close)
  end)

  it("multiplies by reciprocal square roots", function()
    golden.becomes(pass, [[
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  (divide(%x, sqrt(%y)), divide(1f, sqrt(%y)))
}]], [[
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  (multiply(%x, rsqrt(%y)), rsqrt(%y))
}]], close)
  end)

  it("keeps a root and a sum that others use", function()
    golden.stays(pass, [[
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = sqrt(%x);
  %1 = add(%x, 2f);
  (divide(%x, %0), %0, multiply(%1, 3f), %1)
}]])
  end)

  it("keeps roundings if the rules must be exact", function()
    local mod = golden.module "def @main(%x: float32) { divide(add(add(%x, 2f), 3f), sqrt(%x)) }"
    local exact = pl.context { config = { ["rules.exact"] = true } }
    assert.equal(mod, pl.with(exact, pass, mod))
  end)
end)
