-- Models in their published sizes through generated C: ResNet-18, MobileNetV2 and BERT-tiny of the
-- zoo, and ONNX's light set from ../shared.

local pl = require "perilune"
local models = dofile "spec/topi/models.lua"

local sizes = {
  { "resnet18", { batch = 1 } },
  { "mobilenetv2", { batch = 1 } },
  { "bert", { layers = 2, hidden = 128, heads = 2, intermediate = 512, batch = 1,
    sequence = 128 } },
}

describe("built models", function()
  for _, row in ipairs(sizes) do
    it("of the zoo give what the evaluator gives: " .. row[1], function()
      assert.is_table(models.agrees(models.from_zoo(row[1], row[2])))
    end)
  end

  for _, name in ipairs { "squeezenet", "shufflenet", "bvlc_alexnet", "resnet50" } do
    it("of ONNX's light set give what the evaluator gives: " .. name, function()
      local shared = os.getenv "PERILUNE_SHARED" or "../shared"
      local mod = pl.onnx.load(("%s/models/light_%s/model.onnx"):format(shared, name))
      if not mod then return pending(name .. " is not there") end
      assert.is_table(models.agrees(pl.pipelines.default(mod)))
    end)
  end
end)
