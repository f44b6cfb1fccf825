-- Networks of convolutions made at random compute the same after ConvertLayout gave each of them a
-- layout, one layout after the other. PERILUNE_GRAPHS says how many, PERILUNE_SEED which come
-- first; a seed that fails is named.

local pl = require "perilune"
local seeded = require "spec.random.seeded"
local op = pl.op

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local graphs = tonumber(os.getenv "PERILUNE_GRAPHS") or 100

local layouts = { { "NHWC", "default" }, { "NCHW8c", "OIHW8i8o" }, { "NCHW16c", "OIHW16i16o" } }

local function pick(random, list) return list[random(1, #list)] end

local function weights(shape, seed)
  return pl.const(pl.tensor.random(shape, "float32", { seed = seed, low = -0.3, high = 0.3 }))
end

-- An operator between two convolutions, of `channels` channels.
local between = {
  function(x) return op.nn.relu(x) end,
  function(x, channels) return op.add(x, weights({ channels, 1, 1 }, channels)) end,
  function(x, channels) return op.multiply(weights({ 1, channels, 1, 1 }, channels), x) end,
  function(x) return op.add(x, x) end,
  function(x) return op.clip(x, pl.const(-0.5, "float32"), pl.const(0.5, "float32")) end,
  function(x) return op.nn.max_pool(x, { kernel_shape = { 2, 2 } }) end,
  function(x, channels)
    local function vector(seed)
      local random = { seed = seed, low = 0.3, high = 1 }
      return pl.const(pl.tensor.random({ channels }, "float32", random))
    end
    return op.nn.batch_norm(x, vector(1), vector(2), vector(3), vector(4), {})
  end,
}

local function convolution(random, x, channels, result)
  local size = pick(random, { 1, 3 })
  local args = { x, weights({ result, channels, size, size }, random(1, 1000)) }
  if random() < 0.6 then args[3] = weights({ result }, random(1, 1000)) end
  args[#args + 1] = { pads = { size // 2, size // 2, size // 2, size // 2 } }
  return op.nn.conv(table.unpack(args))
end

-- A module in the form of ONNX, and how many convolutions it has.
local function network(random)
  local batch = pick(random, { "1", "2", "n" })
  local x = pl.var("x", ("Tensor[(%s, 16, 9, 10), float32]"):format(batch))
  local y, channels, n = x, 16, random(2, 4)
  for _ = 1, n do
    local result, before = pick(random, { 5, 8, 16, 32 }), y
    y = convolution(random, y, channels, result)
    if result == channels and random() < 0.5 then y = op.add(y, before) end
    channels = result
    if random() < 0.7 then y = pick(random, between)(y, channels) end
  end
  if random() < 0.3 then y = op.nn.global_avg_pool(y) end
  return pl.module { main = pl.func({ x }, y) }, n
end

-- The layout of each convolution, or false, and the text of the passes. What is in blocks is no
-- nn.conv2d that the next pass counts.
local function pipeline(random, n)
  local chosen, gone, texts = {}, {}, { "OnnxToRelay" }
  for i = 1, n do chosen[i] = random(0, #layouts) end
  for k, layout in ipairs(layouts) do
    local skipped, counted = {}, 0
    for i = 1, n do
      if chosen[i] ~= k and not gone[i] then skipped[#skipped + 1] = counted end
      if not gone[i] then counted = counted + 1 end
      gone[i] = gone[i] or (chosen[i] == k and layout[1] ~= "NHWC")
    end
    texts[#texts + 1] = ('ConvertLayout{desired_layouts={"nn.conv2d"=["%s","%s"]},'
      .. "skip_layers=[%s]}"):format(layout[1], layout[2], table.concat(skipped, ","))
  end
  return table.concat(texts, ",")
end

describe("ConvertLayout of random networks", function()
  it("keeps what they compute, and ONNX's form can be had again", function()
    local changed = 0
    for seed = first, first + graphs - 1 do
      local random = seeded(seed)
      local mod, n = network(random)
      local text = pipeline(random, n)
      for _, passes in ipairs { text, text .. ",RelayToOnnx" } do
        local out
        local ok, message = pcall(function()
          out = pl.with(pl.context { opt_level = 3 }, pl.pipeline(passes), mod)
          assert(pl.verify(out))
          assert(pl.check(mod, out, { rounds = 1 }))
        end)
        if not ok then error(("seed %d: %s\n%s"):format(seed, passes, message), 0) end
        changed = changed + (tostring(out):find("NCHW%d+c") and 1 or 0)
      end
    end
    assert.is_true(changed > graphs / 4, changed)
  end)
end)
