-- Misuse of the public functions: whatever is called with whatever comes to hand,
-- handles that are stale or closed, tables that contain themselves, numbers that
-- are none, either works or raises what tells what was wanted: never a crash, never
-- an error from the inside of the library, and the library works afterwards.
--
-- PERILUNE_CALLS says how many calls of each function, PERILUNE_SEED which; the
-- seed is told with what fails.

local pl = require "perilune"

local calls = tonumber(os.getenv "PERILUNE_CALLS") or 60
local seed = tonumber(os.getenv "PERILUNE_SEED") or 1

local state = seed
local function random(n)
  state = (state * 1664525 + 1013904223) % 4294967296
  return (state >> 8) % n + 1
end

-- -------------------------------------------------------------------- values

local function gone_objects()
  local stale
  local x = pl.var("x", "Tensor[(N, 3), float32]")
  local mod = pl.module { main = pl.func({ x }, x + 1) }
  pl.function_pass { name = "stale", run = function(fn) stale = fn.params[1] + 1 end } (mod)
  local closed, gone = pl.tensor { 1 }, pl.module {}
  closed:close()
  gone:close()
  local cyclic = {}
  cyclic[1], cyclic.a, cyclic[cyclic] = cyclic, cyclic, cyclic
  return { stale, closed, gone, cyclic }
end

local LIST = [[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%l: List[int32]) { match (%l) { Cons(%h, _) => { %h }, Nil => { 0 } } }]]

local function relay_objects()
  local x = pl.var("x", "Tensor[(N, 3), float32]")
  local f = pl.func({ x }, pl.op.nn.relu(x + 1))
  local mod = pl.module { main = f }
  local list = assert(pl.parse(LIST))
  local match = list.main.body
  return { x, f, f.body, mod, mod.main, mod.main.body, list, match, match.clauses[1],
    match.clauses[1].lhs, pl.const(1.5), pl.tuple(x, x), pl.global "main", pl.ir.RefCreate(x),
    pl.var "y", { [x] = x }, { [f] = 1 }, { x }, { x, x }, { main = f }, { { x, f } } }
end

local function loop_objects()
  local buffer, i = pl.tir.decl_buffer({ 16 }, "float32", "A"), pl.tir.Var("i", "int32")
  local store = buffer:store(buffer:load(i) + 2, i)
  local loop = pl.tir.For(i, 0, 16, "serial", store)
  return { buffer, i, buffer:load(i), store, loop, pl.tir.PrimFunc({ buffer }, loop),
    pl.tir.IntImm("int32", 3), pl.tir.IterVar({ 0, 4 }, "j", 0), { i }, { [i] = 2 } }
end

local function other_objects()
  return { pl.tensor { { 1, 2 }, { 3, 4 } }, pl.type "float32", pl.op.add, pl.context {},
    pl.passes.DeadCodeElimination(), pl.passes.FoldConstant, pl.builder(), pl.ir.TypeVar "T",
    pl.type "fn (int32) -> int32", pl.type "List[int32]",
    pl.func({}, pl.const(1), nil, { a = 1 }).attrs, coroutine.create(function() end), io.stdout,
    pl.mutator {}, pl.visitor {} }
end

local plain = { 0, 1, -1, 3, 1.5, math.huge, -0.0, 0 / 0, math.mininteger, math.maxinteger,
  2 ^ 53, "", "x", "main", "float32", "add", "Tensor[(1), int8]", "\0", ("y"):rep(300), "axis",
  "serial", true, false, {}, { axis = 1 }, { 1, 2, 3 }, { {} }, { { 1 }, { 2 } }, { "a", "b" },
  { main = 1 }, { name = "n", run = function() end }, { name = "m", default = 1 },
  { [1] = 1, [3] = 3 }, { [1.5] = 2 }, { n = -1 }, { n = math.maxinteger }, { n_results = 2 },
  { n_results = "x" },
  { opt_level = 99 }, { instruments = { {} } }, function() end, function() return 1 end }

local function pool()
  local values = table.move(plain, 1, #plain, 1, {})
  for _, make in ipairs { gone_objects, relay_objects, loop_objects, other_objects } do
    for _, value in pairs(make()) do values[#values + 1] = value end
  end
  return values
end

-- ----------------------------------------------------------------- functions

-- They write files, start other programs, search for minutes, or change what the
-- specs run in; and what is the library's own among the public tables.
local skipped = { ["pl.save"] = true, ["pl.onnx.save"] = true, ["pl.onnx.save_value"] = true,
  ["pl.tune.generate_rules"] = true,
  ["pl.reproducer.write"] = true, ["pl.reproducer.replay"] = true, ["pl.bisect"] = true,
  ["pl.reduce"] = true, ["pl.guard_coroutines"] = true, ["Tensor:save_npy"] = true }
local own = { from = true, build = true }

local function add_functions(list, of, prefix, met)
  met[of] = true
  for name, value in pairs(of) do
    local path = type(name) == "string" and prefix .. name
    if path and type(value) == "function" and not skipped[path] and not own[name] then
      list[#list + 1] = { path, value }
    elseif path and type(value) == "table" and not met[value] then
      add_functions(list, value, path .. ".", met)
    end
  end
end

-- The methods that editors are told of.
local function add_methods(list)
  local file = assert(io.open "lua/types/perilune.lua")
  local types = file:read "a"
  file:close()
  for class, name in types:gmatch "\nfunction (%w+):([%w_]+)" do
    local path = ("%s:%s"):format(class, name)
    if not skipped[path] then
      list[#list + 1] = { path, function(object, ...)
        local ok, method = pcall(function() return object[name] end)
        if ok and type(method) == "function" then return method(object, ...) end
      end }
    end
  end
end

local function functions()
  local list = {}
  add_functions(list, pl, "pl.", {})
  add_methods(list)
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- ---------------------------------------------------------------------- spec

-- What Lua says of the library's own code.
local inside = { "attempt to %a+ ", "'for iterator'", "argument #%-", "stack overflow",
  "to 'ipairs'", "to 'pairs'", "to 'unpack'", "to 'format'", "to 'insert'", "to 'concat'",
  "to 'move'", "to 'rep'", "to 'sub'", "to 'gsub'", "to 'open'", "to 'sort'" }

-- Where it is told to be wrong is where the library was called, never a line of its own.
local function complaint(message)
  local place = message:match "^([^\n]-perilune/[%w_/]+%.lua:%d+):"
  if place then return place end
  for _, pattern in ipairs(inside) do
    if message:find(pattern) then return pattern end
  end
end

describe("a public function that is called with anything", function()
  local list = functions()

  it("is one of many", function()
    assert.is_true(#list > 400)
  end)

  it("works, or tells what it wants", function()
    local values, failures = pool(), {}
    for _, row in ipairs(list) do
      for _ = 1, calls do
        local args = { n = random(5) }
        for i = 1, args.n do args[i] = values[random(#values + 3)] end
        local ok, why = pcall(row[2], table.unpack(args, 1, args.n))
        local text = not ok and tostring(why)
        if text and complaint(text) and not failures[row[1]] then
          failures[row[1]] = true
          failures[#failures + 1] = ("%s: %s"):format(row[1], text)
        end
      end
    end
    assert.equal("", table.concat(failures, "\n"), "seed " .. seed)
  end)

  it("leaves the library as it was", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local mod = pl.module { main = pl.func({ x }, x + 1) }
    assert(pl.verify(mod))
    assert.same({ 2, 3 }, pl.eval(mod, { 1, 2 }):to_table())
  end)

  it("is told at the line that called it", function()
    local function message(f, ...) return (select(2, pcall(f, ...)):gsub("^.-:%d+: ", "")) end
    local x, i = pl.var("x", "int32"), pl.tir.Var("i", "int32")
    local cyclic = {}
    cyclic[1] = cyclic
    local ok, text = pcall(function() return pl.bind(x, 3) end)
    assert.is_false(ok)
    assert.matches("^spec/lua/api_fuzz_spec.lua:%d+: pl.bind: values: "
      .. "a table expected, got number$",
      text)
    assert.equal("ir.Match: arms: a table expected, got nil", message(function()
      return pl.match(x)
    end))
    assert.equal("ir.Match: a pattern has itself as a field", message(function()
      return pl.match(x, { { cyclic, x } })
    end))
    assert.equal("ir.Call: n is an integer from 0 to 900000", message(function()
      return pl.call("tanh", { x, n = math.maxinteger })
    end))
    assert.equal("a sequential is an element of itself", message(function()
      return pl.sequential(cyclic)
    end))
    assert.equal("tir.For: loop_var: a node expected, got nil", message(function()
      return pl.tir.For(nil, 0, 1)
    end))
    assert.equal("floordiv: a PrimExpr expected, got nil", message(function()
      local q = pl.tir.floordiv(i, nil)
      return q
    end))
    assert.equal("node:with: changes: a table expected, got boolean", message(function()
      return x:with(true)
    end))
  end)
end)
