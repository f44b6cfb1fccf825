-- Weights are read where they lie in a file, at any address.

local pl = require "perilune"
local model = require "perilune.zoo.model"

-- A node with weights as its other operands, in a model whose weights begin
-- `pad` bytes later than those of pad 0.
local function module_of(case, dtype, pad)
  local m = model.new { name = ("n"):rep(1 + pad) }
  local inputs = { m:input("x", case.x_dtype or dtype, case.x) }
  for i, dims in ipairs(case.weights) do
    local bytes = pl.tensor.random(dtype, dims, { seed = i }):to_bytes()
    inputs[i + 1] = m:initializer("w" .. i, dtype, dims, bytes)
  end
  if case.weights_first then inputs = { inputs[2], inputs[1] } end
  if case.weights_only then table.remove(inputs, 1) end
  m:output(m:node(case.op, inputs, case.attributes, "y"), dtype, nil)
  return assert(pl.onnx.parse(m:tostring()))
end

local cases = {
  { op = "MatMul", x = { 1, 37 }, weights = { { 37, 65 } } },
  { op = "MatMul", x = { 3, 20, 37 }, weights = { { 37, 65 } } },
  { op = "MatMul", x = { 2, 5, 37 }, weights = { { 2, 37, 9 } } },
  { op = "MatMul", x = { 300 }, weights = { { 300 } } },
  { op = "MatMul", x = { 40, 20 }, weights = { { 30, 40 } }, weights_first = true },
  { op = "Gemm", x = { 1, 37 }, weights = { { 65, 37 }, { 65 } }, attributes = { transB = 1 } },
  { op = "Gemm", x = { 20, 37 }, weights = { { 65, 37 }, { 65 } }, attributes = { transB = 1 } },
  { op = "Gemm", x = { 20, 37 }, weights = { { 37, 65 }, { 20, 65 } },
    attributes = { beta = 2.0 } },
  { op = "Conv", x = { 1, 9, 12, 11 }, weights = { { 17, 9, 1, 1 }, { 17 } } },
  { op = "Conv", x = { 1, 9, 12, 11 }, weights = { { 17, 9, 3, 3 }, { 17 } },
    attributes = { pads = { 1, 1, 1, 1 }, strides = { 2, 2 } } },
  { op = "Conv", x = { 2, 9, 12, 11 }, weights = { { 9, 1, 3, 3 }, { 9 } },
    attributes = { group = 9 } },
  -- An image that is a weight, filtered by an input.
  { op = "Conv", x = { 1, 3, 3, 3 }, weights = { { 1, 3, 19, 19 } }, weights_first = true,
    attributes = { strides = { 2, 2 } } },
  { op = "ConvTranspose", x = { 1, 9, 6, 5 }, weights = { { 9, 7, 4, 4 }, { 7 } },
    attributes = { strides = { 2, 2 } } },
  { op = "Einsum", x = { 3, 5 }, weights = { { 5, 7 } }, attributes = { equation = "ij,jk->ki" } },
  { op = "Einsum", x = { 5 }, weights = { { 5 } }, attributes = { equation = "i,i->i" } },
  { op = "Einsum", x = { 7, 5 }, weights = { { 5, 3, 7 } },
    attributes = { equation = "ij,jki->" } },
  { op = "Gather", x = { 5 }, x_dtype = "int64", weights = { { 3, 30 } }, weights_first = true },
  { op = "Transpose", x = { 1 }, weights = { { 33, 34 } }, weights_only = true },
}

describe("weights at odd addresses", function()
  for i, case in ipairs(cases) do
    it(("are the same to %s (%d)"):format(case.op, i), function()
      for _, dtype in ipairs { "float32", "float64" } do
        local x = pl.tensor.random(case.x_dtype or dtype, case.x,
          case.x_dtype and { low = 0, high = 2 } or { seed = 9 })
        local wanted
        for pad = 0, 7 do
          local got = pl.eval(module_of(case, dtype, pad), x)
          wanted = wanted or got
          assert.equal(wanted:to_bytes(), got:to_bytes())
        end
      end
    end)
  end
end)
