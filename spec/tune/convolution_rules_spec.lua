-- The rules of graph substitution for convolutions: each is applied where it holds, computes the
-- same, and is not applied where it does not.

local pl = require "perilune"

local op = pl.op
local rules = require "perilune.tune.search.convolution_rules"

local function rule_of(name)
  for _, text in ipairs(rules) do
    if text:match "^[%w_]+" == name then return text end
  end
  error("there is no rule " .. name)
end

local function weights(seed, ...)
  return pl.const(pl.tensor.random({ ... }, "float32", { seed = seed, low = -0.5, high = 0.5 }))
end

local x = pl.var("x", "Tensor[(1, 8, 9, 9), float32]")
local y = pl.var("y", "Tensor[(1, 12, 9, 9), float32]")

-- { group =, stride =, bias = } besides the extent of the kernel.
local function conv(image, out, k, options)
  options = options or {}
  local group, stride, pad = options.group or 1, options.stride or 1, k // 2
  local seed = out + 7 * k
  return op.nn.conv(image, weights(seed, out, image.type.shape[2] // group, k, k),
    options.bias and weights(seed + 1, out) or nil, { kernel_shape = { k, k }, group = group,
      pads = { pad, pad, pad, pad }, strides = { stride, stride } })
end

local function average(image, included, stride)
  return op.nn.avg_pool(image, { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 },
    strides = { stride or 1, stride or 1 }, count_include_pad = included })
end

-- What the rule makes of a program, or nil.
local function applied(name, body)
  local mod = pl.module { main = pl.func({ x, y }, body) }
  local out = pl.passes.GraphSubstitution { rules = rule_of(name), generated_rules = false,
    shipped_rules = false } (mod)
  if out == mod then return nil end
  assert(pl.check(mod, out, { rounds = 2, rtol = 1e-4, atol = 1e-4, scaled = true }))
  return pl.passes.FoldConstant { fold = "all" } (out)
end

local function count(mod, name) return pl.list_op_freqs(mod)[name] end

describe("the rules of convolutions", function()
  it("put two convolutions that are added together, and take them apart", function()
    local out = applied("join_conv_inputs", op.add(conv(x, 6, 3, { stride = 2 }),
      conv(y, 6, 3, { stride = 2 })))
    assert.equal(1, count(out, "nn.conv"))
    assert.is_nil(applied("join_conv_inputs", op.add(conv(x, 6, 3), conv(y, 6, 1))))
    local both = op.concatenate({ x, y }, { axis = 1 })
    for name, bias in pairs { split_conv_inputs = false, split_conv_inputs_bias = true } do
      out = applied(name, conv(both, 6, 3, { bias = bias }))
      assert.equal(2, count(out, "nn.conv"))
      assert.is_nil(count(out, "concatenate"))
      assert.is_nil(count(out, "split"))
      assert.is_nil(applied(name, conv(both, 20, 3, { bias = bias, group = 4 })))
    end
  end)

  it("exchange an average and a convolution of 1x1", function()
    for _, stride in ipairs { 1, 2 } do
      for _, included in ipairs { 0, 1 } do
        local out = applied("conv_of_average", conv(average(x, included, stride), 4, 1))
        assert.equal("nn.avg_pool", out.main.body.op.name)
        out = applied("average_of_conv", average(conv(x, 4, 1), included, stride))
        assert.equal("nn.conv", out.main.body.op.name)
      end
    end
    assert.is_nil(applied("conv_of_average", conv(average(x, 0), 4, 3)))
    assert.is_nil(applied("average_of_conv", average(conv(x, 4, 1, { stride = 2 }), 0)))
  end)

  it("exchange them with a bias only where the border counts less", function()
    local options = { bias = true }
    assert.truthy(applied("conv_of_average_bias", conv(average(x, 0), 4, 1, options)))
    assert.is_nil(applied("conv_of_average_bias", conv(average(x, 1), 4, 1, options)))
    assert.truthy(applied("average_of_conv_bias", average(conv(x, 4, 1, options), 0)))
    assert.is_nil(applied("average_of_conv_bias", average(conv(x, 4, 1, options), 1)))
  end)

  it("halve the number of groups", function()
    for name, bias in pairs { halve_groups = false, halve_groups_bias = true } do
      local out = applied(name, conv(y, 24, 3, { group = 6, stride = 2, bias = bias }))
      assert.equal(3, out.main.body.attrs.group)
      assert.equal("Tensor[(24, 4, 3, 3), float32]", tostring(out.main.body.args[2].type))
      assert.is_nil(applied(name, conv(y, 12, 3, { group = 3, bias = bias })))
      assert.is_nil(applied(name, conv(y, 12, 3, { bias = bias })))
    end
  end)

  it("merge separable convolutions of one image that are added", function()
    local function separable(image, k)
      local c = image.type.shape[2]
      return conv(conv(image, c, k, { group = c }), 6, 1)
    end
    local other = op.nn.conv(op.nn.conv(x, weights(99, 8, 1, 3, 3), { group = 8,
      pads = { 1, 1, 1, 1 } }), weights(98, 6, 8, 1, 1))
    local out = applied("merge_separable_conv", op.add(separable(x, 3), other))
    assert.equal(2, count(out, "nn.conv"))
    assert.is_nil(count(out, "add"))
    assert.is_nil(applied("merge_separable_conv", op.add(separable(x, 5), other)))
    assert.is_nil(applied("merge_separable_conv", op.add(separable(y, 3), other)))
  end)
end)
