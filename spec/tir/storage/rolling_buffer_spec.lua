-- tir.InjectRollingBuffer: what it makes of schedules computes the same, by the interpreter.

local pl = require "perilune"

local te, tir = pl.te, pl.tir

local function parse(body)
  return assert(pl.tir.parse(([[
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True)})
%s]]):format(body:gsub("[^\n]+", "    %0"))))
end

local function roll(mod) return pl.passes["tir.InjectRollingBuffer"]()(mod) end

-- Stores of the buffers that are not outputs, while a program runs.
local function count(mod, word)
  local n = 0
  for _ in mod:text():gmatch(word) do n = n + 1 end
  return n
end

-- A chain of sums over windows, tiled by the last one.
local function chain(windows, tile, n)
  local last = te.placeholder({ n }, "float32", "A")
  local input, stages = last, {}
  for i, w in ipairs(windows) do
    local k, from = te.reduce_axis({ 0, w }, "k" .. i), last
    n = n - w + 1
    last = te.compute({ n }, function(x) return te.sum(from[{ x + k }], k) end, "S" .. i)
    stages[i] = last
  end
  local s = te.create_schedule(last.op)
  local outer = s[last]:split(last.op.axis[1], tile)
  for i = 1, #stages - 1 do
    s[stages[i]]:compute_at(s[last], outer)
    s[stages[i]]:rolling_buffer()
  end
  return s:to_module({ input, last }, "main"), input, last
end

describe("tir.InjectRollingBuffer", function()
  it("keeps what the round before computed", function()
    local out = roll(parse [[
for i in range(4):
    B = T.Buffer((9,))
    T.realize(B[i * 2:i * 2 + 3])
    T.attr(B, "rolling_buffer_scope", T.bool(True))
    for j in range(3):
        B[i * 2 + j] = A[i * 2 + j]
    C[i] = B[i * 2] + B[i * 2 + 2] ]])
    assert.is_true(pl.equal(parse [[
B = T.Buffer((9,))
T.realize(B[0:3])
for i in range(4):
    for j in range(3):
        if T.likely(i < 1 or j >= 1):
            B[(i * 2 + j) % 3] = A[i * 2 + j]
    C[i] = B[i * 2 % 3] + B[(i * 2 + 2) % 3] ]], out, { map_free_vars = true }), tostring(out))
  end)

  it("changes no result of chains of windows", function()
    for _, case in ipairs {
      { { 3, 2 }, 2, 12 }, { { 3, 3 }, 3, 14 }, { { 2, 4, 3 }, 2, 16 }, { { 5, 2, 2 }, 4, 20 },
      { { 2, 2, 2, 2 }, 1, 9 }, { { 3, 3 }, 5, 17 },
    } do
      local before = chain(table.unpack(case))
      local after = roll(before)
      assert.is_true(count(after, "%%") > 0, after:text())
      local same, diag = tir.check(before, after, { rounds = 2, rtol = 0, atol = 0 })
      assert.is_true(same ~= nil, tostring(diag) .. after:text())
    end
  end)

  it("leaves functions without such buffers alone", function()
    local mod = parse "C[0] = A[0]"
    assert.is_true(rawequal(mod, roll(mod)))
  end)

  it("names a buffer that cannot roll", function()
    for region, message in pairs {
      ["0:3"] = "no loop moves its region", ["i + 1:i + 4"] = "does not begin at a multiple",
      ["i:i + i"] = "its region is not constant",
    } do
      local mod = parse(([[
for i in range(4):
    B = T.Buffer((9,))
    T.realize(B[%s])
    T.attr(B, "rolling_buffer_scope", T.bool(True))
    B[i] = A[i]
    C[i] = B[i] ]]):format(region))
      assert.error_matches(function() roll(mod) end, "the buffer 'B' cannot roll: .*" .. message)
    end
  end)
end)
