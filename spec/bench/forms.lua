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

-- ------------------------------------------------- how the cost of a node grows

local p = pl.var("p", "bool")

-- Programs of about `size` nodes.
local shapes = {
  { "lets", function(size)
    local vars = { [0] = x }
    for i = 1, size // 3 do vars[i] = pl.var("v", "float32") end
    local body = vars[size // 3]
    for i = size // 3, 1, -1 do body = ir.Let(vars[i], op.tanh(vars[i - 1]), body) end
    return body
  end },
  { "nested branches", function(size)
    local body = x
    for _ = 1, size // 2 do body = ir.If(p, op.tanh(body), x) end
    return body
  end },
  { "branches that share", function(size)
    local body = x
    for _ = 1, size // 3 do
      local shared = op.tanh(body)
      body = ir.If(p, op.exp(shared), shared)
    end
    return body
  end },
  { "nested functions", function(size)
    local body = x
    for _ = 1, size // 4 do
      local a = pl.var("a", "float32")
      body = pl.func({ a }, op.add(a, body))(x)
    end
    return body
  end },
  { "functions in a row", function(size)
    local body = x
    for _ = 1, size // 4 do
      local a = pl.var("a", "float32")
      body = pl.func({ a }, op.multiply(a, x))(body)
    end
    return body
  end },
  { "wide tuples", function(size)
    local fields = {}
    for i = 1, size // 2 do fields[i] = op.tanh(x) end
    return pl.tuple(fields)
  end },
  { "ladders", function(size)
    local a, b = op.tanh(x), op.exp(x)
    for _ = 1, size // 2 do a, b = op.add(a, b), op.multiply(a, b) end
    return op.add(a, b)
  end },
  { "nested matches", function(size)
    local body = x
    for _ = 1, size // 5 do
      local a, b = pl.var("a", "float32"), pl.var("b", "float32")
      body = pl.match(pl.tuple { x, body }, { { { a, b }, op.add(a, b) } })
    end
    return body
  end },
  { "references", function(size)
    local r = pl.var("r", "ref(float32)")
    local body = ir.RefRead(r)
    for _ = 1, size // 4 do
      body = ir.Let(pl.var "u", ir.RefWrite(r, op.add(ir.RefRead(r), x)), body)
    end
    return ir.Let(r, ir.RefCreate(x), body)
  end },
}

local forms = { "ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm", "LambdaLift",
  "Inline", "EtaExpand{expand_global_var=true}", "FuseOps", "DefuseOps" }

-- Of the processor, so that other programs at work matter less.
local function seconds(pass, mod)
  local start = os.clock()
  pass(mod)
  return os.clock() - start
end

print "\nns a node                    10,000  100,000  1,000,000 nodes"
for _, shape in ipairs(shapes) do
  local mods = {}
  for i, size in ipairs { 10000, 100000, 1000000 } do
    mods[i] = pl.module { main = pl.func({ p, x }, shape[2](size)) }
  end
  print(shape[1])
  for _, form in ipairs(forms) do
    local row, pass = {}, pl.sequential { opt_level = 0, form }
    for i, mod in ipairs(mods) do
      local scope <close> = pl.context { opt_level = 4 }:enter() -- luacheck: ignore scope
      row[i] = ("%10.1f"):format(seconds(pass, mod) / 10 ^ (3 + i) * 1e9)
    end
    print(("  %-22s %s"):format(form:match "%w+", table.concat(row)))
  end
end
