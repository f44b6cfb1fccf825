-- What the passes that give a program another form cost, a let or an operator.
-- TVM 0.14 takes 1.7 ms a let at 10,000 lets; these are linear.
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/forms.lua

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path

local pl = require "perilune"
local clock = require "perilune.core".clock
local op, ir = pl.op, pl.ir

local n = 100000
local x = pl.var("x", "float32")

local function module(body) return pl.module { main = pl.func({ x }, body) } end

local function let_chain(first, type)
  local vars = { [0] = first }
  for i = 1, n do vars[i] = pl.var("v", type) end
  local body = vars[n]
  for i = n, 1, -1 do body = ir.Let(vars[i], op.tanh(vars[i - 1]), body) end
  return body
end

local function lets() return module(let_chain(x, "float32")) end

-- No type is known but that of the argument.
local function untyped()
  local a = pl.var "a"
  return module(pl.func({ a }, let_chain(a))(x))
end

local function chain()
  local body = x
  for _ = 1, n // 2 do body = op.exp(op.tanh(body)) end
  return module(body)
end

local function closures()
  local body = x
  for i = 1, n // 10 do
    local a = pl.var("a", "float32")
    body = pl.func({ a }, op.add(op.multiply(a, x), pl.const(i + 0.5)))(body)
  end
  return module(body)
end

local function show(pass, what, mod, count)
  local best, out = math.huge, nil
  for _ = 1, 5 do
    local start = clock()
    out = pl.passes[pass]()(mod)
    best = math.min(best, clock() - start)
  end
  print(("%-24s %-22s %8.1f ns"):format(pass, what, best / count * 1e9))
  return out
end

local found = show("InferType", "an untyped let", untyped(), n)
show("InferType", "a typed let", found, n)
local bound, plain = lets(), chain()
show("ToGraphNormalForm", "a let", bound, n)
show("ToANormalForm", "an operator", plain, n)
show("ToBasicBlockNormalForm", "an operator", plain, n)
local fused = show("FuseOps", "an operator", plain, n)
show("DefuseOps", "an operator", fused, n)
show("LambdaLift", "a closure", closures(), n // 10)
