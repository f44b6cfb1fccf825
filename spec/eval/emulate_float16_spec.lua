-- The pipeline emulate_float16: arithmetic in float32, rounded where elements
-- are moved or leave.

local pl = require "perilune"
local emulate = require "perilune.pipelines.emulate_float16"

local function half(...) return pl.type { shape = { ... }, dtype = "float16" } end
local function single(...) return pl.type { shape = { ... }, dtype = "float32" } end

local function run(fn, ...)
  local module = pl.module { main = fn }
  local after = emulate(module)
  assert(pl.verify(after))
  assert.equal(tostring(fn.ret_type), tostring(after.main.ret_type))
  return pl.eval(after.main, ...), pl.eval(fn, ...)
end

describe("emulate_float16", function()
  local x = pl.var("x", half(2))
  local one = pl.tensor({ 1, 2 }, "float16")
  local tiny = 2 ^ -12 -- is lost beside 1 in float16

  it("rounds the result only", function()
    local wide, narrow = run(pl.func({ x }, (x + tiny) - 1), one)
    assert.same({ tiny, 1 }, wide:to_table())
    assert.same({ 0, 1 }, narrow:to_table())
    assert.equal("float16", wide.dtype)
  end)

  it("rounds where elements are moved", function()
    local wide = run(pl.func({ x }, pl.op.reshape(x + tiny, { newshape = { 1, 2 } }) - 1), one)
    assert.same({ { 0, 1 } }, wide:to_table())
  end)

  it("leaves what functions of a Scan get as it is, whatever types they know", function()
    local state, element = pl.var("state", single()), pl.var("element")
    local body = pl.func({ state, element }, pl.tuple { state, pl.op.cast_like(state, element) })
    local scan = pl.op.scan(pl.tensor(0.5, "float32"), x, body,
      { num_scan_inputs = 1, n_results = 2 })
    local module = pl.module { main = pl.func({ x }, scan:get(1)) }
    local after = emulate(module)
    assert(pl.verify(after))
    assert.equal("float16", pl.eval(after.main, one).dtype)
  end)

  it("passes over casts there and back", function()
    local y = pl.var("y", single(2))
    local there = pl.op.cast(y, { to = 10 })
    local fn = pl.func({ y }, pl.op.cast(there * 1, { to = 1 }) - 1)
    local wide, narrow = run(fn, pl.tensor({ 1 + tiny, 2 }, "float32"))
    assert.same({ tiny, 1 }, wide:to_table())
    assert.same({ 0, 1 }, narrow:to_table())
  end)

  it("goes through several results, and into branches", function()
    local scale = pl.const { 1.0, 1.0 }
    local cond = pl.var("c", "bool")
    local many = pl.op.nn.layer_norm(x + tiny, pl.op.cast(scale, { to = 10 }),
      { n_results = 3, epsilon = 0.0 })
    local fn = pl.func({ cond, x }, pl.if_(cond, many:get(0) - 1, (x + tiny) - 1))
    local yes, no = pl.tensor(true, "bool"), pl.tensor(false, "bool")
    assert.same({ -2, 0 }, (run(fn, yes, one)):to_table())
    assert.same({ tiny, 1 }, (run(fn, no, one)):to_table())
  end)

  it("leaves functions without float16 as they are", function()
    local y = pl.var("y", single(2))
    local module = pl.module { main = pl.func({ y }, pl.op.tanh(y) + 1) }
    assert.equal(module, emulate(module))
  end)
end)
