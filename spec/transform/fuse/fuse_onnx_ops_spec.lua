-- FuseOnnxOps: computations become the operators that the model's opset has for them.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"
local pl = require "perilune"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

-- The numbers of calls by operator after the passes.
local function counts_of(mod)
  local counts = {}
  for node in mod.main:nodes() do
    local name = node.kind == "Call" and node.op.name
    if name then counts[name] = (counts[name] or 0) + 1 end
  end
  return counts
end

local function fused(mod, options)
  local out = pl.sequential { pl.passes.FuseOnnxOps(options or {}), "SimplifyExpr",
    "DeadCodeElimination" } (mod)
  assert(pl.check(mod, out, { rounds = options and 1 or 6 })) -- the first has no NaN
  return counts_of(out)
end

local function program(body, opset)
  return assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%%q: Tensor[(2, 4, 5, 8), float32], %%k: Tensor[(2, 4, 6, 8), float32],
          %%v: Tensor[(2, 4, 6, 3), float32], %%m: Tensor[(2, 1, 5, 6), float32]) {
  %%0 = transpose(%%k, axes=[0, 1, 3, 2]);
  %%1 = multiply(nn.matmul(%%q, %%0), 0.5f);
  %s
}
]]):format(body))):with_attrs { opset_import = { ["ai.onnx"] = opset } }
end

describe("FuseOnnxOps", function()
  it("makes Attention from opset 23 on, with a mask or without", function()
    for _, body in ipairs { "nn.matmul(nn.softmax(%1), %v)",
      "nn.matmul(nn.softmax(add(%1, %m)), %v)" } do
      local counts = fused(program(body, 23))
      assert.equal(1, counts.attention, body)
      assert.is_nil(counts["nn.softmax"])
      assert.is_nil(counts.transpose)
      assert.is_nil(fused(program(body, 22)).attention)
    end
  end)

  it("leaves guards against NaN unless finite_math says that there is none", function()
    local body = "%2 = nn.softmax(%1); nn.matmul(where(isnan(%2), 0f, %2), %v)"
    assert.equal(1, fused(program(body, 17)).isnan)
    assert.is_nil(fused(program(body, 17), { finite_math = true }).isnan)
  end)
end)

describe("a constant row before or behind a tensor", function()
  local op = pl.op
  local function tensor(shape, seed)
    return pl.const(pl.tensor.random(shape, "float32", { seed = seed }))
  end
  local x = pl.var("x", "Tensor[(N, 4, 3), float32]")
  local function sum(n, first, opset, added)
    local shape = op.concatenate({ op.shape_of(x, { start = 0, ["end"] = 1 }),
      pl.const(pl.tensor({ n, 3 }, "int64")) }, { axis = 0 })
    local row = op.broadcast_to(tensor({ 1, 1, 3 }, 1), shape)
    local joined = op.concatenate(first and { row, x } or { x, row }, { axis = 1 })
    return fused(pl.module { main = pl.func({ x }, op.add(joined, added)) }
      :with_attrs { opset_import = { ["ai.onnx"] = opset } })
  end

  it("is part of the constant that is added behind it", function()
    for _, first in ipairs { true, false } do
      assert.same({ ["nn.pad"] = 1, add = 1 }, sum(1, first, 17, tensor({ 1, 5, 3 }, 2)))
    end
  end)

  it("stays where opsets have no Pad of that form, or it is broadcast along the axis", function()
    assert.is_nil(sum(1, true, 12, tensor({ 1, 5, 3 }, 2))["nn.pad"])
    assert.is_nil(sum(2, true, 17, tensor({ 1, 6, 3 }, 2))["nn.pad"])
  end)
end)

describe("constants of floats", function()
  it("are merged with associative_math", function()
    local body = "add(add(multiply(%m, 2f), multiply(%m, 3f)), 1f)"
    local function mod(text) return program(text, 17) end
    assert.equal(2, fused(mod(body)).multiply)
    assert.equal(1, fused(mod(body), { associative_math = true }).multiply)
    local any_order = { associative_math = true }
    assert.equal(1, fused(mod "multiply(multiply(%m, 2f), 3f)", any_order).multiply)
    local linear = fused(mod "multiply(add(multiply(%m, 2f), 1f), 3f)", any_order)
    assert.equal(1, linear.multiply)
    assert.equal(1, linear.add)
  end)
end)

describe("opt --opset", function()
  it("converts to a newer opset before the passes, to an older one behind them", function()
    local m = model.new { name = "gelu", opset = 17 }
    local x = m:input("x", "float32", { 2, 3 })
    local function scalar(name, value)
      return m:initializer(name, "float32", {}, string.pack("<f", value))
    end
    local half = m:node("Mul", { x, scalar("half", 0.5) })
    local scaled = m:node("Div", { x, scalar("root", math.sqrt(2)) })
    local erf = m:node("Add", { m:node("Erf", { scaled }), scalar("one", 1) })
    m:output(m:node("Mul", { half, erf }), "float32", { 2, 3 })
    m:save(folder .. "/in.onnx")
    local function operators(opset)
      local status, _, err = command.run(folder,
        ("opt %s/in.onnx -o %s/out.onnx --check --opset %d"):format(folder, folder, opset))
      assert.equal(0, status, err)
      return counts_of(assert(pl.load(folder .. "/out.onnx")))
    end
    assert.equal(1, operators(20)["nn.gelu"])
    assert.is_nil(operators(18)["nn.gelu"])
    assert.is_nil(operators(13)["nn.gelu"])
  end)

  it("makes the RotaryEmbedding of com.microsoft when asked", function()
    local op = pl.op
    local function vector(list, dtype) return pl.const(pl.tensor(list, dtype or "float32")) end
    -- x * cos + (x with its halves exchanged) * sin, at positions of shape (n, S, 1)
    local function rotation(n, opset)
      local x = pl.var("x", "Tensor[(2, 3, S, 4), float32]")
      local t = pl.var("t", ("Tensor[(%s, S, 1), float32]"):format(n))
      local angles = op.multiply(t, vector { 1, 0.5, 1, 0.5 })
      local axes = vector({ 1 }, "int64")
      local function table_of(name) return op.expand_dims(op[name](angles), axes) end
      local y = op.add(op.multiply(x, table_of "cos"), op.multiply(
        op.take(x, vector({ 2, 3, 0, 1 }, "int64"), { axis = 3 }),
        op.multiply(table_of "sin", vector { -1, -1, 1, 1 })))
      return pl.module { main = pl.func({ x, t }, y) }
        :with_attrs { opset_import = { ["ai.onnx"] = opset } }
    end
    local function rotated(mod, fusions)
      local passes = pl.sequential { "SimplifyExpr", "EliminateCommonSubexpr", "SimplifyExpr",
        pl.passes.FuseOnnxOps { fusions = fusions } }
      local out = pl.with(pl.context { opt_level = 3 }, passes, mod)
      assert(pl.check(mod, out, { dims = { S = 5 }, rtol = 1e-5, atol = 1e-6, scaled = true }))
      return counts_of(out)["microsoft.rotary_embedding"]
    end
    assert.equal(1, rotated(rotation(1, 17), "com.microsoft"))
    assert.is_nil(rotated(rotation(1, 17)))
    assert.is_nil(rotated(rotation(2, 17), "com.microsoft")) -- one table for all
    assert.is_nil(rotated(rotation(1, 23), "com.microsoft")) -- ONNX has it
  end)
end)
