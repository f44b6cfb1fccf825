local pl = require "perilune"

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), n: T.int32):
%s
]]):format(body:gsub("[^\n]+", "        %0"))))
end

local function unrolled(body, config)
  local pass = pl.passes["tir.UnrollLoop"]()
  return pl.with(pl.context { config = config or {} }, pass, module_of(body))
end

describe("tir.UnrollLoop", function()
  it("writes out a loop that is marked", function()
    local out = unrolled [[
for i in T.unroll(3):
    A[i, 0] = T.float32(1)]]
    assert.is_true(pl.equal(module_of [[
A[0, 0] = T.float32(1)
A[1, 0] = T.float32(1)
A[2, 0] = T.float32(1)]], out))
  end)

  it("writes out loops inside of each other, and begins at their minimum", function()
    local out = unrolled [[
for i in T.unroll(2, 4):
    for j in T.unroll(2):
        A[i, j] = T.float32(1)]]
    assert.is_true(pl.equal(module_of [[
A[2, 0] = T.float32(1)
A[2, 1] = T.float32(1)
A[3, 0] = T.float32(1)
A[3, 1] = T.float32(1)]], out))
  end)

  it("leaves serial loops alone unless they are short enough", function()
    local body = [[
for i in range(4):
    A[i, 0] = T.float32(1)]]
    local mod = module_of(body)
    assert.is_true(rawequal(mod, pl.passes["tir.UnrollLoop"]()(mod)))
    local out = unrolled(body, { ["tir.UnrollLoop.auto_max_step"] = 4 })
    assert.is_nil(tostring(out):find "range")
    out = unrolled(body, { ["tir.UnrollLoop.auto_max_step"] = 3 })
    assert.is_truthy(tostring(out):find "range")
  end)

  it("marks loops when they are not to be written out", function()
    local out = unrolled([[
for i in range(4):
    A[i, 0] = T.float32(1)]], { ["tir.UnrollLoop.auto_max_step"] = 4,
      ["tir.UnrollLoop.explicit_unroll"] = false })
    assert.is_truthy(tostring(out):find "T.unroll%(4%)")
  end)

  it("obeys pragmas", function()
    local out = unrolled [[
with T.attr(0, "pragma_auto_unroll_max_step", 4):
    for i in range(4):
        A[i, 0] = T.float32(1)]]
    assert.is_nil(tostring(out):find "range")
  end)

  it("refuses a marked loop whose extent is not constant, and names it", function()
    assert.error_matches(function()
      unrolled [[
for i in T.unroll(n):
    A[i, 0] = T.float32(1)]]
    end, "the loop over 'i' is marked unrolled, but its extent is not constant")
  end)

  it("removes loops without a round", function()
    local out = unrolled [[
for i in T.unroll(0):
    A[i, 0] = T.float32(1)
A[0, 0] = T.float32(2)]]
    assert.is_nil(tostring(out):find "float32%(1%)")
  end)
end)
