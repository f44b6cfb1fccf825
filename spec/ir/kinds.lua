-- One program for each kind of node, built from Lua: data of kinds_spec.lua.
--
-- A row is by name of the kind:
--   build(change)  a program that has a node of the kind; with `change` another
--                  one, in which that node differs
--   text           what its text has in it
--   unread         why its text is not read back, when it is not
--
-- A kind without a row, and a row without a kind, are failures.

local pl = require "perilune"

local ir = pl.ir
local f32 = "Tensor[(2), float32]"

local rows = {}

local function func(params, body) return pl.func(params, body) end

-- ------------------------------------------------------------ Relay's kinds

rows.Var = { text = "%x", build = function(change)
  local x, y = pl.var("x", f32), pl.var("y", f32)
  return func({ x, y }, change and y or x)
end }

rows.Constant = { text = "2f", build = function(change)
  return func({}, pl.const(change and 3 or 2, "float32"))
end }

rows.Absent = { text = "clip", build = function(change)
  local x, limit = pl.var("x", f32), pl.const(1.0)
  if change then return func({ x }, ir.Call("clip", { x, limit, n = 3 })) end
  return func({ x }, ir.Call("clip", { x, nil, limit, n = 3 }))
end }

rows.GlobalVar = { text = "@f", build = function(change)
  return func({}, pl.global(change and "g" or "f"))
end, unread = "the module of this text has no other function" }

rows.Op = { text = "tanh", build = function(change)
  return func({}, pl.tuple { ir.Op(change and "exp" or "tanh") })
end }

rows.Tuple = { text = "(%x,", build = function(change)
  local x = pl.var("x", f32)
  return func({ x }, pl.tuple(change and { x, x } or { x }))
end }

rows.TupleGetItem = { text = "%p.0", build = function(change)
  local p = pl.var("p", "(float32, float32)")
  return func({ p }, ir.TupleGetItem(p, change and 1 or 0))
end }

rows.Call = { text = "tanh(%x)", build = function(change)
  local x = pl.var("x", f32)
  return func({ x }, change and pl.op.exp(x) or pl.op.tanh(x))
end }

rows.Function = { text = "fn (%y", build = function(change)
  local y = pl.var("y", f32)
  return func({}, pl.func({ y }, change and y + 1 or y))
end }

rows.Let = { text = "let %v", build = function(change)
  local v = pl.var("v", "int64")
  return func({}, pl.let(v, change and 2 or 1, v))
end }

rows.LetBlock = { text = "let %v", build = function(change)
  local v = pl.var("v", "int64")
  return func({}, pl.tuple { pl.let(v, change and 2 or 1, v) })
end }

rows.If = { text = "if (%c)", build = function(change)
  local c, x = pl.var("c", "bool"), pl.var("x", f32)
  return func({ c, x }, pl.if_(c, x, change and x + 2 or x + 1))
end }

rows.RefCreate = { text = "ref(%x)", build = function(change)
  local x, y = pl.var("x", f32), pl.var("y", f32)
  return func({ x, y }, ir.RefCreate(change and y or x))
end }

rows.RefRead = { text = "ref_read(%r)", build = function(change)
  local r, s = pl.var("r", "ref(float32)"), pl.var("s", "ref(float32)")
  return func({ r, s }, ir.RefRead(change and s or r))
end }

rows.RefWrite = { text = "ref_write(%r, %x)", build = function(change)
  local r = pl.var("r", "ref(float32)")
  local x, y = pl.var("x", "float32"), pl.var("y", "float32")
  return func({ r, x, y }, ir.RefWrite(r, change and y or x))
end }

-- ------------------------------------------------ data types and their patterns

-- A module that defines List, and a function of one and of a pair.
local function list_module(body)
  local list = pl.type "List[int32]"
  local l, p = pl.var("l", list), pl.var("p", "(int32, int32)")
  local mod = assert(pl.parse [[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
]])
  return mod:with { main = func({ l, p }, body(l, p)) }
end

-- Arms of a Match on the list, or on the pair when `pair`.
local function matching(pair, arms)
  return function(change)
    return list_module(function(l, p)
      local x = pl.var("x", "int32")
      return ir.Match(pair and p or l, arms(x, change), { complete = false })
    end)
  end
end

rows.Constructor = { text = "Cons(", build = function(change)
  return list_module(function(l)
    local type = pl.type "fn [A](A, List[A]) -> List[A]"
    return ir.Call(ir.Constructor("Cons", type), { pl.const(change and 2 or 1, "int32"), l })
  end)
end }

rows.Match = { text = "match? (%p)", build = matching(true, function(_, change)
  return { { "_", pl.const(change and 2 or 1, "int32") } }
end) }

rows.Clause = { text = "(%x: int32", build = matching(true, function(x, change)
  return { { change and { "_", x } or { x, "_" }, x } }
end) }

rows.PatternWildcard = { text = "_ => {", build = matching(true, function(_, change)
  return { { change and { "_", "_" } or "_", pl.const(1, "int32") } }
end) }

rows.PatternVar = { text = "(%x: int32", build = rows.Clause.build }

rows.PatternConstructor = { text = "Cons(_, _) => {",
  build = matching(false, function(_, change)
    local any = ir.PatternWildcard()
    local cons, empty = ir.PatternConstructor("Cons", { any, any }), ir.PatternConstructor "Nil"
    return { { change and empty or cons, pl.const(1, "int32") } }
  end) }

rows.PatternTuple = { text = "(_, _) => {", build = matching(true, function(_, change)
  return { { change and "_" or { "_", "_" }, pl.const(1, "int32") } }
end) }

-- ------------------------------------------------------------ the loop level

rows.PrimFunc = { text = "T.prim_func", build = function(change)
  local a, i = pl.tir.decl_buffer({ 16 }, "float32", "A"), pl.tir.Var("i", "int32")
  local store = a:store(a:load(i) + (change and 2 or 1), i)
  return pl.tir.PrimFunc({ a }, pl.tir.For(i, 0, 16, "serial", store))
end }

return rows
