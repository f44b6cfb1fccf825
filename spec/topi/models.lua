-- Models for specs of pl.build: from the zoo, and compared with the evaluator.

local pl = require "perilune"
local zoo = require "perilune.zoo"

local models = {}

--- A model of the zoo, optimised.
function models.from_zoo(name, values)
  local path = os.tmpname()
  assert(assert(zoo.build(name, values)):save(path))
  local mod = assert(pl.onnx.load(path))
  os.remove(path)
  return pl.pipelines.default(mod)
end

-- Tokens are small integers.
local function arguments(mod)
  local args = {}
  for i, param in ipairs(mod.functions.main.params) do
    local float = param.type.dtype == "float32"
    args[i] = pl.tensor.random(param.type.shape, "float32", { seed = i, low = float and -1 or 0,
      high = float and 1 or 2 })
    if not float then
      args[i] = pl.eval(pl.op.cast(pl.const(args[i]), { dtype = param.type.dtype }))
    end
  end
  return args
end

--- Builds a model, and compares what it gives with what the evaluator gives.
function models.agrees(mod, options)
  local built = pl.build(mod, options)
  local args = arguments(mod)
  local expected = table.pack(pl.eval(mod, table.unpack(args)))
  local results = built.main(table.unpack(args))
  assert(expected.n == #results, "the number of results")
  for i, result in ipairs(results) do
    local same, how = result:compare(expected[i], { rtol = 1e-4, atol = 1e-4, scaled = true })
    assert(same, ("result %d: %s, expected %s"):format(i, tostring(how.got),
      tostring(how.expected)))
  end
  return built
end

return models
