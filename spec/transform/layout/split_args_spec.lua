-- SplitArgs: golden pairs of Relay text, and the limit.

local golden = require "spec.transform.golden"
local pl = require "perilune"

local function split(n) return pl.passes.SplitArgs { max_function_args = n } end

local params = {}
for i = 0, 6 do params[#params + 1] = ("%%x%d: Tensor[(1, 2), float32]"):format(i) end
local head = "def @main(" .. table.concat(params, ", ") .. ") {\n"
local seven = head .. "concatenate((%x0, %x1, %x2, %x3, %x4, %x5, %x6), axis=1) }"

describe("SplitArgs", function()
  it("concatenates in steps that each take the one before", function()
    golden.becomes(split(4), seven, head .. [[
  %0 = concatenate(annotation.stop_fusion((%x0, %x1, %x2)), axis=1);
  %1 = concatenate(annotation.stop_fusion((%0, %x3, %x4)), axis=1);
  %2 = concatenate(annotation.stop_fusion((%1, %x5, %x6)), axis=1);
  %2
}]])
  end)

  it("splits every concatenate of a chain of them", function()
    golden.becomes(split(4), head .. [[
  %0 = concatenate((%x0, %x1, %x2, %x3), axis=1);
  concatenate((%0, %x4, %x5, %x6), axis=1)
}]], head .. [[
  %0 = concatenate(annotation.stop_fusion((%x0, %x1, %x2)), axis=1);
  %1 = concatenate(annotation.stop_fusion((%0, %x3)), axis=1);
  %2 = concatenate(annotation.stop_fusion((%1, %x4, %x5)), axis=1);
  concatenate(annotation.stop_fusion((%2, %x6)), axis=1)
}]])
  end)

  it("counts unknown extents and the strides of such tensors", function()
    golden.becomes(split(9), [[
def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(?, 2), float32],
    %z: Tensor[(?, 2), float32]) {
  concatenate((%x, %y, %z))
}]], [[
def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(?, 2), float32],
    %z: Tensor[(?, 2), float32]) {
  %0 = concatenate(annotation.stop_fusion((%x,)));
  %1 = concatenate(annotation.stop_fusion((%0, %y)));
  concatenate(annotation.stop_fusion((%1, %z)))
}]], false)
  end)

  it("leaves what is within the limit, other operators, and everything without a limit", function()
    golden.stays(split(9), seven)
    golden.stays(split(0), seven)
    golden.stays(pl.passes.SplitArgs(), seven)
    golden.stays(split(3), head .. "stack((%x0, %x1, %x2, %x3)) }")
    golden.stays(split(3), [[
def @main(%x: (Tensor[(1, 2), float32], Tensor[(1, 2), float32], Tensor[(1, 2), float32])) {
  concatenate(%x)
}]])
  end)

  it("keeps the limit when FuseOps follows", function()
    local mod = pl.sequential { split(4), pl.passes.FuseOps() } (golden.module(seven))
    for node in mod.main:nodes() do
      if node.kind == "Function" then assert.truthy(#node.params <= 3) end
    end
    assert(pl.check(golden.module(seven), mod))
  end)

  it("takes the limit of the target when it is given none", function()
    local mod = golden.module(seven)
    local context = pl.context { target = "cuda -max_function_args=4" }
    pl.assert_equal(split(4)(mod), pl.with(context, pl.passes.SplitArgs(), mod))
    pl.assert_equal(split(6)(mod), pl.with(context, split(6), mod))
    assert.equal(mod, pl.passes.SplitArgs()(mod))
  end)

  it("refuses a limit that leaves nothing to concatenate", function()
    local mod = golden.module(seven)
    local ok, diag = pcall(split(1), mod)
    assert.is_false(ok)
    assert.truthy(tostring(diag):find("max_function_args=1 leaves no arguments", 1, true))
    assert.has_error(function() split(-1) end)
  end)
end)
