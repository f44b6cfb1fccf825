-- Programs of many statements inside of each other, and large expressions: each pass, the
-- interpreter, the printer, the parser and the C writer take them.
-- luacheck: no max line length
local pl = require "perilune"
local tir = pl.tir

local A, a = tir.decl_buffer({ 16 }, "float32", "A"), tir.Var("a", "handle")

local function int(value) return tir.const(value, "int32") end

local function load(i) return tir.BufferLoad(A, { int(i % 16) }) end

local function store(value) return tir.BufferStore(A, value or tir.const(1, "float32"), { int(0) }) end

local function nest(n, around)
  local stmt = store()
  for i = 1, n do stmt = around(stmt, i) end
  return stmt
end

local function expression(n, combine)
  local value = load(0)
  for i = 1, n do value = combine(value, load(i)) end
  return store(value)
end

-- Bodies by their size. Those marked `wide` are indented by their nesting as text, those marked
-- `lowered_first` have statements that C has not.
local programs = {
  loops = { function(n)
    return nest(n, function(s, i) return tir.For(tir.Var("i" .. i % 7), 0, 1, 0, s) end)
  end },
  branches = { wide = true, function(n)
    return nest(n, function(s, i) return tir.IfThenElse(tir.lt(load(i), tir.const(i, "float32")), s) end)
  end },
  other_branches = { wide = true, function(n)
    return nest(n, function(s, i)
      return tir.IfThenElse(tir.gt(load(i), tir.const(i, "float32")), store(), s)
    end)
  end },
  sequences = { function(n) return nest(n, function(s) return tir.SeqStmt { store(), s } end) end },
  attributes = { function(n)
    return nest(n, function(s, i) return tir.AttrStmt(a, "pragma_x", int(i), s) end)
  end },
  lets = { function(n)
    return nest(n, function(s, i) return tir.LetStmt(tir.Var("x" .. i % 7), int(i), s) end)
  end },
  blocks = { wide = true, lowered_first = true, function(n)
    local body = nest(n, function(s, i)
      local v, l = tir.Var "v", tir.Var "l"
      local iter = tir.IterVar(tir.Range(0, 1), v, 0)
      return tir.For(l, 0, 1, 0, tir.BlockRealize({ l }, true, tir.Block({ iter }, {}, {}, "b" .. i, s)))
    end)
    return tir.BlockRealize({}, true, tir.Block({}, {}, {}, "root", body))
  end },
  realizes = { lowered_first = true, function(n)
    return nest(n, function(s)
      local B = tir.decl_buffer({ 4 }, "float32", "B")
      return tir.BufferRealize(B, { tir.Range(0, 4) }, true, s)
    end)
  end },
  sum = { function(n)
    return expression(n, function(x, y) return x + y end)
  end },
  sum_from_the_right = { function(n)
    return expression(n, function(x, y) return y + x end)
  end },
  indices = { function(n)
    local i = tir.Var "i"
    local index = i
    for k = 1, n do
      index = k % 3 == 0 and tir.floordiv(index, 3) or k % 3 == 1 and index * 3 + k or tir.max(index, k)
    end
    return tir.For(i, 0, 2, 0, tir.BufferStore(A, tir.const(1, "float32"), { tir.floormod(index, 16) }))
  end },
}

local function module_of(body)
  return pl.module { main = tir.PrimFunc({ a }, body, nil, { [a] = A }, { global_symbol = "main" }) }
end

local zeros = {}
for i = 1, 16 do zeros[i] = 0 end

local function result_of(mod) return tir.run(mod, { zeros })[1]:to_table() end

local passes = {}
for name in pairs(pl.passes) do
  if name:find "^tir%." and name ~= "tir.LowerOpaqueBlock" then passes[#passes + 1] = name end
end
table.sort(passes)

local options = { ["tir.LiftAttrScope"] = { attr_key = "pragma_x" }, ["tir.BindTarget"] = { target = "c" } }

for name, program in pairs(programs) do
  describe("a program of " .. name:gsub("_", " "), function()
    local mod, expected

    setup(function()
      mod = module_of(program[1](1000))
      expected = result_of(mod)
    end)

    it("is taken by each pass", function()
      local bound = pl.passes["tir.BindTarget"] { target = "c" }(mod)
      for _, pass in ipairs(passes) do
        local needs_target = pass == "tir.LowerIntrin" or pass:find "API"
        local out = pl.passes[pass](options[pass])(needs_target and bound or mod)
        if not pass:find "API" then assert.same(expected, result_of(out), pass) end
      end
    end)

    it("is lowered and written as C", function()
      local lowered = pl.lower(mod)
      assert.same(expected, result_of(lowered))
      assert.is_truthy(pl.build(lowered):source():find("main", 1, true))
      if not program.lowered_first then assert.is_truthy(pl.build(mod):source():find("main", 1, true)) end
    end)

    it("is printed and read", function()
      local one = program.wide and module_of(program[1](500)) or mod
      assert.is_true(pl.equal(one, assert(tir.parse(tostring(one))), { map_free_vars = true }))
    end)
  end)
end

-- A loop around scopes of double buffers that are nested in each other, each in a loop of its own if
-- `loops`.
local function double_buffers(n, loops)
  local buffers, i = {}, tir.Var "i"
  local stmt = tir.BufferStore(A, tir.const(1, "float32"), { i })
  for k = 1, n do
    local B = tir.decl_buffer({ 4 }, "float32", "B" .. k)
    buffers[k] = B
    stmt = tir.AttrStmt(B.data, "double_buffer_scope", int(1), tir.SeqStmt {
      tir.BufferStore(B, tir.Cast("float32", i), { int(0) }), stmt,
    })
    if loops then stmt, i = tir.For(i, 0, 2, 0, stmt), tir.Var "i" end
  end
  if not loops then stmt = tir.For(i, 0, 2, 0, stmt) end
  for k = n, 1, -1 do
    stmt = tir.Allocate(buffers[k].data, "float32", { int(4) }, tir.const(true, "bool"), stmt)
  end
  return module_of(stmt)
end

describe("a program of many double buffers inside of each other", function()
  for _, loops in ipairs { false, true } do
    it("grows within bounds" .. (loops and ", in loops" or ""), function()
      local inject = pl.passes["tir.InjectDoubleBuffer"]()
      local mod = double_buffers(4, loops)
      assert.same(result_of(mod), result_of(inject(mod)))
      local out = inject(double_buffers(100, loops))
      local n = 0
      tir.post_order(out.functions.main.body, function(node)
        if node.kind == "BufferStore" then n = n + 1 end
      end)
      assert.is_true(n > 100 and n < 10000)
    end)
  end
end)

describe("a program of many statements inside of each other", function()
  for name, n in pairs { loops = 20000, branches = 6000, blocks = 4000, attributes = 30000, lets = 30000,
    realizes = 8000 } do
    it("runs and is lowered: " .. name, function()
      local mod = module_of(programs[name][1](n))
      assert.same(result_of(mod), result_of(pl.lower(mod)))
    end)
  end
end)

describe("a tensor expression of a million nodes", function()
  it("is described, lowered and written as C", function()
    local te, n = pl.te, 250000
    local X = te.placeholder({ 4 }, "float32", "X")
    local Y = te.compute({ 4 }, function(i)
      local sum = X[{ i }]
      for _ = 1, n do sum = sum * 0.5 + X[{ i }] end
      return sum
    end, "Y")
    local lowered = pl.lower(te.create_schedule(Y.op), { args = { X, Y } })
    assert.is_true(#pl.build(lowered):source() > 10 * n)
    local out = tir.run(lowered, { { 1, 2, 3, 4 }, { 0, 0, 0, 0 } })[2]:to_table()
    assert.same({ 2, 4, 6, 8 }, out)
  end)
end)
