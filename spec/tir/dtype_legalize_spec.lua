-- Narrow floating-point dtypes: tir.BF16ComputeLegalize and the like.

local pl = require "perilune"

local function module_of(body, dtype)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "%s"), B: T.Buffer((64,), "%s")):
%s
]]):format(dtype, dtype, body:gsub("[^\n]+", "    %0"))))
end

local sum = "for i in range(64):\n    B[i] = A[i] + A[63 - i]"

describe("bfloat16", function()
  it("is widened where it is used and rounded where it is stored", function()
    local out = pl.passes["tir.BF16ComputeLegalize"]()(module_of(sum, "bfloat16"))
    local text = tostring(out)
    assert.is_truthy(text:find('T.reinterpret("float32", T.shift_left(T.Cast("uint32", '
      .. 'T.reinterpret("uint16", A[i])), T.uint32(16)))', 1, true), text)
    assert.is_truthy(text:find('B[i] = T.reinterpret("bfloat16", T.Cast("uint16", T.shift_right(',
      1, true), text)
    assert.is_true(rawequal(out, pl.passes["tir.BF16ComputeLegalize"]()(out)))
  end)

  it("is memory of integers in the end", function()
    local out = pl.sequential { "tir.BF16ComputeLegalize", "tir.BF16StorageLegalize" }(
      module_of(sum, "bfloat16"))
    local text = tostring(out)
    assert.is_nil(text:find("bfloat16", 1, true), text)
    assert.is_truthy(text:find('A: T.Buffer((64,), "uint16")', 1, true), text)
  end)

  it("is copied as it is", function()
    local mod = module_of("for i in range(64):\n    B[i] = A[i]", "bfloat16")
    assert.is_true(rawequal(mod, pl.passes["tir.BF16ComputeLegalize"]()(mod)))
  end)

  it("is computed before its memory changes", function()
    assert.error_matches(function()
      pl.passes["tir.BF16StorageLegalize"]()(module_of(sum, "bfloat16"))
    end, "computes in a narrow dtype")
  end)

  it("widens memory of the function's own", function()
    local out = pl.passes["tir.BF16ComputeLegalize"]()(module_of([[
C = T.allocate([64], "bfloat16", "global")
C_1 = T.Buffer((64,), "bfloat16", data=C)
for i in range(64):
    C_1[i] = A[i] + A[i]
for i in range(64):
    B[i] = C_1[i] ]], "bfloat16"))
    assert.is_truthy(tostring(out):find('T.allocate([64], "float32", "global")', 1, true),
      tostring(out))
  end)
end)

describe("the dtypes of 8 bits", function()
  it("are computed in float32, or in float16", function()
    for _, wide in ipairs { "float32", "float16" } do
      for _, dtype in ipairs { "e4m3_float8", "e5m2_float8" } do
        local out = pl.sequential {
          pl.passes["tir.FP8ComputeLegalize"] { promote_dtype = wide },
          "tir.FP8StorageLegalize" }(module_of(sum, dtype))
        local text = tostring(out)
        assert.is_nil(text:find("float8", 1, true), text)
        assert.is_truthy(text:find('T.reinterpret("' .. wide, 1, true), text)
      end
    end
  end)
end)
