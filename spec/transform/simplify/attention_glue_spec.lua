-- Reshapes, transposes and takes around the products of attention, as exporters write them:
-- SimplifyExpr leaves fewer calls, which compute the same for static and symbolic sizes.

local pl = require "perilune"

local op = pl.op
local simplify = pl.passes.SimplifyExpr()
local tidy = pl.sequential { "SimplifyExpr", "EliminateCommonSubexpr", "DeadCodeElimination" }

local function weight(rows, columns)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for k = 1, columns do list[i][k] = ((i * 5 + k * 3) % 7 - 3) / 2 end
  end
  return pl.const(pl.tensor(list, "float32"))
end

local function bias(n)
  local list = {}
  for i = 1, n do list[i] = i % 4 - 1 end
  return pl.const(pl.tensor(list, "float32"))
end

local function operators(fn)
  local names = {}
  for node in fn:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op.name end
  end
  return table.concat(names, " ")
end

local function simplified(vars, body, pass)
  local mod = pl.module { main = pl.func(vars, body) }
  local out = pl.with(pl.context { opt_level = 3 }, pass or simplify, mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { rtol = 1e-6, atol = 1e-6, scaled = true, rounds = 3 }))
  return operators(out.main)
end

for what, first in pairs { static = "2", symbolic = "B" } do
  describe("SimplifyExpr, with a " .. what .. " batch,", function()
    local x = pl.var("x", ("Tensor[(%s, 3, 8), float32]"):format(first))

    it("makes a product between reshapes one on the batch", function()
      for _, transposed in ipairs { 0, 1 } do
        local w = transposed == 0 and weight(8, 6) or weight(6, 8)
        local flat = op.reshape(x, { newshape = { -1, 8 } })
        local y = op.nn.gemm(flat, w, bias(6), { transB = transposed })
        assert.equal("nn.matmul add",
          simplified({ x }, op.reshape(y, { newshape = { -1, 3, 6 } })))
      end
    end)

    it("keeps a product whose reshape behind it splits another axis", function()
      local y = op.nn.gemm(op.reshape(x, { newshape = { -1, 8 } }), weight(8, 6), bias(6))
      assert.matches("nn.gemm reshape$",
        simplified({ x }, op.reshape(y, { newshape = { -1, 3, 3, 2 } })))
    end)

    it("splits axes once, before takes", function()
      local packed = op.reshape(x, { newshape = { 0, 3, 2, 4 } })
      local parts = {}
      for i = 0, 1 do
        local part = op.take(packed, pl.const(pl.tensor(i, "int64")), { axis = 2 })
        parts[i + 1] = op.reshape(part, { newshape = { 0, 3, 2, 2 } })
      end
      assert.equal("reshape take take", simplified({ x }, pl.tuple(parts), tidy))
    end)
  end)
end

describe("SimplifyExpr", function()
  it("changes the places of batch axes before a product", function()
    local y = pl.var("y", "Tensor[(2, 4, 3, 2), float32]")
    local heads = op.transpose(y, { axes = { 2, 0, 1, 3 } })
    local z = op.nn.matmul(op.reshape(heads, { newshape = { 3, 2, 8 } }), weight(8, 8)) + bias(8)
    assert.equal("transpose reshape nn.matmul add",
      simplified({ y }, op.transpose(z, { axes = { 1, 0, 2 } })))
  end)
end)
