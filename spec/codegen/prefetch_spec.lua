-- T.prefetch in C: a hint to compilers that have one, and nothing to others.

local pl = require "perilune"

local function program(hint)
  return assert(pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        %s
        B[i] = A[i] + T.float32(1)
]]):format(hint)))
end

local function source(hint) return pl.build(program(hint)):source() end

describe("prefetches in C", function()
  it("are hints with what they are for and how long data is kept", function()
    local text = source "T.prefetch(T.address_of(A[T.min(i + 16, 63)]), 0, 2, 1)"
    assert.truthy(text:find("__builtin_prefetch(at, write, locality)", 1, true))
    assert.truthy(text:find "pl_prefetch%(.-, 0, 2%);")
    assert.truthy(source "T.prefetch(T.address_of(B[i]), 1, 3, 1)":find "pl_prefetch%(.-, 1, 3%);")
  end)

  it("do not write what they name", function()
    local header = pl.build(program "T.prefetch(T.address_of(A[i]), 0, 2, 1)"):header()
    assert.truthy(header:find("const float *restrict A", 1, true))
  end)

  it("are left out where they are none of data, or not known", function()
    for _, hint in ipairs { "T.prefetch(T.address_of(A[i]), 0, 2, 0)",
      "T.prefetch(T.address_of(A[i]), 2, 2, 1)", "T.prefetch(T.address_of(A[i]), 0, 4, 1)",
      "T.prefetch(T.address_of(A[i]), i, 2, 1)", "T.prefetch(T.address_of(A[i]), 0, -1, 1)",
      "T.prefetch(T.address_of(A[i]))", "T.prefetch(i, 0, 2, 1)" } do
      assert.falsy(source(hint):find("pl_prefetch", 1, true), hint)
    end
  end)

  local a = pl.tensor.random({ 64 }, "float32", { seed = 1 })
  local zeros = pl.tensor.random({ 64 }, "float32", { seed = 2 })
  for _, cc in ipairs { "gcc", "clang", "tcc" } do
    it("compile and change nothing with " .. cc, function()
      if not os.execute(("command -v %s > /dev/null 2>&1"):format(cc)) then
        return pending("without " .. cc)
      end
      local options = { cc = cc, flags = "-std=c11 -Wall -Wextra -Werror" }
      local hinted = pl.build(program "T.prefetch(T.address_of(A[i]), 0, 2, 1)", options)
      local plain = pl.build(program "T.evaluate(0)", options)
      assert.is_true((hinted.main(a, zeros)[2]:compare(plain.main(a, zeros)[2])))
    end)
  end
end)
