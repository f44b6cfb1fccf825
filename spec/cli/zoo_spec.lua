-- Models that are made here: perilune.zoo, perilune zoo.

local pl = require "perilune"
local zoo = require "perilune.zoo"

local build = os.getenv "PERILUNE_BUILD" or "build"

-- Small enough to be computed in a moment.
local small = {
  resnet = { depth = 18, width = 8, image = 32, classes = 10 },
  mobilenetv2 = { width = 0.25, image = 32, classes = 10 },
  bert = { layers = 2, hidden = 32, heads = 4, intermediate = 64, vocabulary = 50 },
  gpt2 = { layers = 2, hidden = 32, heads = 4, vocabulary = 50 },
  vit = { layers = 2, hidden = 32, heads = 4, mlp = 64, image = 32, patch = 8, classes = 10 },
  lstm = { hidden = 16, vocabulary = 50 },
}

-- Of the papers' models, in millions.
local parameters = {
  resnet18 = 11.7, resnet50 = 25.6, resnet152 = 60.3, mobilenetv2 = 3.54, ["bert-base"] = 109.5,
  ["bert-large"] = 335.1, gpt2 = 124.4, ["vit-b-16"] = 86.6, ["vit-l-16"] = 304.3, lstm = 19.8,
}

local function small_model(name, more)
  local options = {}
  for key, value in pairs(small[name]) do options[key] = value end
  for key, value in pairs(more or {}) do options[key] = value end
  return assert(zoo.build(name, options)):tostring()
end

local function inputs_of(fn)
  local inputs = {}
  for i, param in ipairs(fn.params) do
    local shape = {}
    for k, dim in ipairs(param.type.shape) do
      shape[k] = type(dim) == "number" and dim or ({ N = 2, S = 7 })[dim]
    end
    inputs[i] = pl.tensor.random(shape, param.type.dtype,
      param.type.dtype == "int64" and { low = 0, high = 1 } or nil)
  end
  return inputs
end

describe("every model of the zoo", function()
  for _, family in ipairs(zoo.families) do
    it(family.name .. " is typed throughout, and computed with finite results", function()
      local mod = assert(pl.onnx.parse(small_model(family.name)))
      for node in mod.main:nodes() do
        if node.kind == "Call" then assert.not_equal("incomplete", node.type.kind) end
      end
      for _, result in ipairs { pl.eval(mod, table.unpack(inputs_of(mod.main))) } do
        assert.equal(2, result.shape[1])
        for _, x in ipairs(pl.tensor(result:to_bytes(), "float32", { result.size }):to_table()) do
          assert.is_true(x == x and x > -1000 and x < 1000)
        end
      end
    end)

    it(family.name .. " is the same of one seed, another of another", function()
      local one = small_model(family.name, { seed = 1 })
      assert.equal(one, small_model(family.name, { seed = 1 }))
      assert.not_equal(one, small_model(family.name, { seed = 2 }))
    end)

    it(family.name .. " has fixed dims where numbers are given", function()
      local fixed = { batch = 3 }
      for _, row in ipairs(family.parameters) do
        if row.name == "sequence" then fixed.sequence = 5 end
      end
      local mod = assert(pl.onnx.parse(small_model(family.name, fixed)))
      for _, param in ipairs(mod.main.params) do
        for _, dim in ipairs(param.type.shape) do assert.equal("integer", math.type(dim)) end
      end
    end)
  end
end)

describe("the zoo", function()
  it("has the papers' sizes", function()
    for name, millions in pairs(parameters) do
      local bytes = assert(zoo.build(name)):size()
      assert.near(millions, bytes / 4e6, millions / 100, name)
    end
  end)

  it("takes every opset that it says", function()
    for opset = 14, 22 do
      for name in pairs(small) do
        assert(pl.onnx.parse(small_model(name, { opset = opset })))
      end
    end
  end)

  it("knows a name however it is spelled", function()
    for spelling, name in pairs { ["GPT-2"] = "gpt2", ViT = "vit", vit_b_16 = "vit-b-16",
      ["ViT-B/16"] = "vit-b-16", ["ResNet-50"] = "resnet50", BERT_large = "bert-large",
      ["MobileNet V2"] = "mobilenetv2" } do
      local options = { batch = 2 }
      assert.equal(assert(zoo.build(name, options)):size(),
        assert(zoo.build(spelling, options)):size())
    end
  end)

  it("says what it has when it has not what is asked for", function()
    local function reason(...) return select(2, zoo.build(...)) end
    assert.equal("no model 'brt' in the zoo; did you mean 'bert'?", reason "brt")
    assert.matches("no model 'xyzzy' in the zoo; there is: resnet, resnet18", reason "xyzzy", 1,
      true)
    assert.equal("bert has no parameter 'layer'; did you mean 'layers'?",
      reason("bert", { layer = 1 }))
    assert.equal("layers=0: from 1 to 1000000 is expected", reason("bert", { layers = 0 }))
    assert.equal("layers=1.5: an integer is expected", reason("bert", { layers = 1.5 }))
    assert.equal("layers=x: a number is expected", reason("bert", { layers = "x" }))
    assert.equal("batch=a b: a number, or a name as of a variable is expected",
      reason("bert", { batch = "a b" }))
    assert.equal("depth=51: one of 18, 34, 50, 101, 152 is expected",
      reason("resnet", { depth = 51 }))
    assert.equal("hidden=10 is not a multiple of heads=4",
      reason("gpt2", { hidden = 10, heads = 4 }))
  end)

  it("writes no file of more than 2 GB", function()
    local path = os.tmpname()
    local ok, reason = assert(zoo.build("gpt2", { layers = 100, hidden = 1536 })):save(path)
    assert.is_nil(ok)
    assert.matches("an ONNX file has at most 2", reason, 1, true)
    assert.is_nil(io.open(path .. ".part"))
    os.remove(path)
  end)
end)

describe("perilune zoo", function()
  local function run(arguments)
    local pipe = io.popen(("%s/bin/perilune zoo %s 2>&1"):format(build, arguments))
    local text = pipe:read "a"
    local _, _, status = pipe:close()
    return status, text
  end

  it("lists families, presets and parameters with their defaults", function()
    local status, text = run ""
    assert.equal(0, status)
    for _, name in ipairs(zoo.names()) do
      assert.matches("\n *" .. name:gsub("%-", "%%-") .. "[:\n]", "\n" .. text)
    end
    assert.matches("\n    hidden=768 +width of a token", text)
    assert.matches("\n    depth=50 +weighted layers: 18, 34, 50, 101, 152\n", text)
    assert.matches("\n    seed=0 ", text)
  end)

  it("makes a model as its parameters say", function()
    local path = os.tmpname()
    local settings = {}
    for name, value in pairs(small.vit) do
      settings[#settings + 1] = ("--set %s=%s"):format(name, value)
    end
    assert.same({ 0, "" }, { run(("vit -o %s %s"):format(path, table.concat(settings, " "))) })
    local file = assert(io.open(path, "rb"))
    assert.is_true(file:read "a" == small_model "vit")
    file:close()
    os.remove(path)
  end)

  it("calls wrong usage what makes no sense", function()
    for _, arguments in ipairs { "bert --set layer=1 -o x", "bert --set layers -o x", "bert",
      "brt -o x", "--set layers=1", "-o x" } do
      assert.equal(2, (run(arguments)), arguments)
    end
  end)
end)
