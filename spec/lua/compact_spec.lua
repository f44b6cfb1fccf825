-- A script that keeps one handle does not keep all that it ever built: what floats and no
-- handle leads to is dropped, and handles stay what they are.

local pl = require "perilune"

local op, ir = pl.op, pl.ir

local function collect()
  collectgarbage()
  collectgarbage()
end

-- Builds n nodes that nobody keeps.
local function rubbish(n)
  local x = pl.var("rubbish", "float32")
  for _ = 1, n // 100 do
    local y = x
    for _ = 1, 100 do y = op.tanh(y) end
  end
end

describe("what floats", function()
  it("is dropped when no handle leads to it, while another handle is kept", function()
    local kept = op.tanh(pl.var("x", "float32"))
    local most = {}
    for round = 1, 4 do
      rubbish(30000)
      collect()
      most[round] = pl.memory()
    end
    assert.is_true(most[4] < 1.05 * most[1])
    assert.is_true(most[4] < 8000000)
    assert.equal("nn.relu", op.nn.relu(kept).op.name)
  end)

  it("stays what it was where a handle leads to it", function()
    local x, p = pl.var("x", "float32"), pl.var("p", "bool")
    local shared = op.exp(op.add(x, 1.5))
    local v = pl.var("v", "float32")
    local a, b = pl.var("a", "float32"), pl.var("b", "float32")
    local body = ir.Let(v, op.tanh(shared), pl.if_(p, op.add(v, shared),
      pl.match(pl.tuple { shared, v }, { { { a, b }, op.multiply(a, b) } })))
    local c = pl.var("c", "float32")
    local inner = pl.func({ c }, op.add(c, shared))
    local fn = pl.func({ p, x }, op.add(body, inner(x)))
    local text, uses = tostring(pl.module { main = fn }), fn.body.args[2].args[1]
    local copy = assert(pl.parse(text)).main.body -- imported into what floats
    local grown = op.tanh(copy)
    local keys = { [shared] = "shared", [x] = "x", [fn] = "fn" }
    for _ = 1, 3 do
      rubbish(20000)
      collect()
      assert.equal(text, tostring(pl.module { main = fn }))
      assert.is_true(rawequal(uses, fn.body.args[2].args[1]))
      assert.equal("shared", keys[inner.body.args[2]])
      assert.equal("x", keys[shared.args[1].args[1]])
      assert.is_true(pl.equal(copy, grown.args[1]))
      assert.is_true(rawequal(grown.args[1], grown.args[1]))
      local again = pl.func({ p, x }, op.add(body, inner(x)))
      assert.is_true(pl.equal(fn, again))
      assert(pl.verify(pl.module { main = again }))
    end
  end)

  it("is shared with what is built later", function()
    local sealed = assert(pl.parse '#[version = "0.0.5"]\ndef @main(%x: float32) { exp(tanh(%x)) }')
    local node = sealed.main.body
    local first = op.abs(node)
    rubbish(20000)
    collect()
    local both = op.add(first, op.sqrt(node))
    assert.is_true(rawequal(both.args[1].args[1], both.args[2].args[1]))
  end)

  it("is left alone while a pass or a builder is at work", function()
    local pass = pl.function_pass { name = "Rubbish", run = function(fn)
      rubbish(20000)
      collect()
      return pl.func(fn.params, op.tanh(fn.body))
    end }
    local x = pl.var("x", "float32")
    local out = pass(pl.module { main = pl.func({ x }, op.exp(x)) })
    assert.equal("tanh", out.main.body.op.name)
  end)

  it("is right when finalizers build", function()
    local built = 0
    local function finalized()
      return setmetatable({}, { __gc = function()
        local y = pl.var("y", "float32")
        for _ = 1, 50 do y = op.exp(y) end
        built = built + (pl.func({}, y) and 1 or 0)
      end })
    end
    local x = pl.var("x", "float32")
    local kept = op.tanh(x)
    for _ = 1, 40 do
      finalized()
      rubbish(1000)
    end
    collect()
    assert.is_true(built > 10)
    assert.equal("tanh", kept.op.name)
    assert(pl.verify(pl.module { main = pl.func({ x }, kept) }))
  end)

  it("keeps a Buffer one Buffer when it is built in again", function()
    local tir = pl.tir
    local A = tir.decl_buffer({ 4 }, "float32", "A")
    local analyzer = pl.arith.Analyzer()
    local load = analyzer:term(A:load(0))
    local stores = {}
    for i = 1, 4 do
      stores[i] = A:store(analyzer.core:export(load), i - 1)
      rubbish(30000)
      collect()
    end
    local text = tostring(tir.PrimFunc({ A }, tir.SeqStmt(stores)))
    assert.is_nil(text:find "A_1", text)
  end)
end)
