--- random_program(seed): a module of Relay's expressions made at random, the same
-- for the same seed: lets, branches, matches, references, closures, functions that
-- call themselves and each other, values of data types, shared nodes.
--
-- All numbers are int32, so that results are equal bit for bit. Functions that may
-- call themselves count their first parameter down; no reference holds a function:
-- each program ends. @main takes two numbers and a truth and gives a tuple of
-- numbers: the last is what `trace` holds, to which effects are written in order.

local pl = require "perilune"
local seeded_random = require "spec.random.seeded"

local op, ir = pl.op, pl.ir

local program = {} -- state of one generation
program.__index = program

local base = assert(pl.parse [[
#[version = "0.0.5"]
type List { Cons(int32, List[]), Nil }
type Box { Full(fn (int32) -> int32), Empty }
]])

-- What programs compute with, and its type in Relay's text.
local texts = { int = "int32", bool = "bool", vec = "Tensor[(3), int32]", pair = "(int32, int32)",
  fn = "fn (int32) -> int32", list = "List[]", box = "Box[]", ref = "ref(int32)" }
local types = {}
for name, text in pairs(texts) do types[name] = pl.type(text) end
local step = pl.type "fn (int32, int32) -> int32" -- of functions that count down
local names = { "int", "bool", "vec", "pair", "fn", "list", "box" }

local function int(i) return pl.const(pl.tensor(i, "int32")) end

function program:below(n) return self.random(1, n) end
function program:pick(list) return list[self.random(1, #list)] end
function program:chance(p) return self.random() < p end

-- ------------------------------------------------------------ what can be seen

-- A scope inside of another; what it adds is seen in it only.
local function inner(env, changes)
  local new = { outer = env, fuel = env and env.fuel, steps = env and env.steps }
  for name, value in pairs(changes or {}) do new[name] = value end
  return new
end

local function see(env, what, node)
  env[what] = env[what] or {}
  table.insert(env[what], node)
  return node
end

-- One of the nodes of a kind that `env` can see, or nil.
function program:seen(env, what)
  local all = {}
  while env do
    for _, node in ipairs(env[what] or {}) do all[#all + 1] = node end
    env = env.outer
  end
  return #all > 0 and self:pick(all) or nil
end

function program:var(env, what)
  self.n_vars = self.n_vars + 1
  return see(env, what, pl.var(what .. self.n_vars, types[what]))
end

-- ---------------------------------------------------------------- leaves

local leaves = {
  int = function(self) return int(self.random(-4, 9)) end,
  bool = function(self) return pl.const(pl.tensor(self:chance(0.5), "bool")) end,
  vec = function(self)
    return pl.const(pl.tensor({ self:below(9), -self:below(9), 1 }, "int32"))
  end,
  pair = function(self, env) return pl.tuple { self:leaf(env, "int"), self:leaf(env, "int") } end,
  fn = function(self, env)
    local own = inner(env)
    local x = self:var(own, "int")
    return pl.func({ x }, self:leaf(own, "int"))
  end,
  list = function() return ir.Call(ir.Constructor("Nil", pl.type "fn () -> List[]"), {}) end,
  box = function() return ir.Call(ir.Constructor("Empty", pl.type "fn () -> Box[]"), {}) end,
}

function program:leaf(env, what)
  local seen = self:chance(0.8) and self:seen(env, what)
  return seen or leaves[what](self, env)
end

-- ----------------------------------------------------------- any kind of value

local function let(self, env, what, depth)
  local named = self:pick(names)
  local value = self:value(env, named, depth - 1)
  local own = inner(env)
  local var = self:var(own, named)
  return ir.Let(var, value, self:value(own, what, depth - 1))
end

local function branch(self, env, what, depth)
  return ir.If(self:value(env, "bool", depth - 1), self:value(inner(env), what, depth - 1),
    self:value(inner(env), what, depth - 1))
end

local function match_list(self, env, what, depth)
  local data, own = self:value(env, "list", depth - 1), inner(env)
  local head, tail = self:var(own, "int"), self:var(own, "list")
  local full = ir.PatternConstructor("Cons", {
    self:chance(0.8) and ir.PatternVar(head) or ir.PatternWildcard(), ir.PatternVar(tail) })
  if full.patterns[1].kind == "PatternWildcard" then own.int = nil end
  local arm = { full, self:value(own, what, depth - 1) }
  local rest = self:value(inner(env), what, depth - 1)
  if self:chance(0.5) then return pl.match(data, { arm, { "_", rest } }) end
  return pl.match(data, { { ir.PatternConstructor "Nil", rest }, arm })
end

local function match_pair(self, env, what, depth)
  local data, own = self:value(env, "pair", depth - 1), inner(env)
  local a, b = self:var(own, "int"), self:var(own, "int")
  return pl.match(data, { { { a, b }, self:value(own, what, depth - 1) } })
end

local function match_box(self, env, what, depth)
  local data, own = self:value(env, "box", depth - 1), inner(env)
  local f = self:var(own, "fn")
  return pl.match(data, {
    { ir.PatternConstructor("Full", { ir.PatternVar(f) }), self:value(own, what, depth - 1) },
    { "_", self:value(inner(env), what, depth - 1) },
  })
end

local function new_ref(self, env, what, depth)
  local value, own = self:value(env, "int", depth - 1), inner(env)
  return ir.Let(self:var(own, "ref"), ir.RefCreate(value), self:value(own, what, depth - 1))
end

local function write(self, env, what, depth)
  local ref = self:seen(env, "ref")
  if not ref then return new_ref(self, env, what, depth) end
  local value = op.add(op.multiply(ir.RefRead(ref), int(3)), self:value(env, "int", depth - 1))
  self.n_vars = self.n_vars + 1
  local unit = pl.var("u" .. self.n_vars)
  return ir.Let(unit, ir.RefWrite(ref, value), self:value(inner(env), what, depth - 1))
end

-- (write, value).1
local function write_beside(self, env, what, depth)
  local ref = self:seen(env, "ref")
  if not ref then return self:leaf(env, what) end
  local wrote = ir.RefWrite(ref, self:value(env, "int", depth - 1))
  return ir.TupleGetItem(pl.tuple { wrote, self:value(env, what, depth - 1) }, 1)
end

-- What a call counts down from: less than what the function around it was given.
function program:fewer(env)
  return env.fuel and op.subtract(env.fuel, int(1)) or int(self:below(2))
end

-- The body of a function that counts `fuel` down.
function program:counted(env, fuel, f, depth)
  local own = inner(env, { fuel = fuel, steps = { outer = env.steps, f = f } })
  local x = self:var(own, "int")
  return x, ir.If(op.less(fuel, int(1)), self:leaf(own, "int"),
    self:value(inner(own), "int", depth - 1))
end

local function recursion(self, env, what, depth)
  self.n_vars = self.n_vars + 1
  local f = pl.var("f" .. self.n_vars, step)
  local fuel = pl.var("n" .. self.n_vars, types.int)
  local x, body = self:counted(env, fuel, f, depth)
  local own = inner(env)
  local result = ir.Call(f, { self:fewer(env), self:value(own, "int", depth - 1) })
  see(own, "int", result)
  return ir.Let(f, ir.Function({ fuel, x }, body, types.int), self:value(own, what, depth - 1))
end

local anywhere = { let, let, let, branch, match_list, match_pair, match_box, new_ref, write, write,
  write_beside, recursion }

-- ------------------------------------------------------------- kinds of values

local function binary(name)
  return function(self, env, depth)
    return op[name](self:value(env, "int", depth - 1), self:value(env, "int", depth - 1))
  end
end

-- A call of a function that counts down: of one around, or of the module.
local function count_down(self, env, depth)
  local list, at = {}, env.steps
  while at do
    list[#list + 1] = at.f
    at = at.outer
  end
  if #list == 0 or self.calls >= 3 then return self:leaf(env, "int") end
  self.calls = self.calls + 1
  return ir.Call(self:pick(list), { self:fewer(env), self:value(env, "int", depth - 1) })
end

local makers = {
  int = { binary "add", binary "subtract", binary "multiply", binary "maximum", binary "add",
    function(self, env, depth) return op.negative(self:value(env, "int", depth - 1)) end,
    function(self, env, depth)
      return ir.Call(self:value(env, "fn", depth - 1), { self:value(env, "int", depth - 1) })
    end,
    function(self, env, depth)
      return ir.TupleGetItem(self:value(env, "pair", depth - 1), self.random(0, 1))
    end,
    function(self, env, depth)
      return op.sum(self:value(env, "vec", depth - 1), nil, { keepdims = 0 })
    end,
    function(self, env)
      local ref = self:seen(env, "ref")
      return ref and ir.RefRead(ref) or self:leaf(env, "int")
    end,
    count_down, count_down },
  bool = { function(self, env, depth)
    return op.less(self:value(env, "int", depth - 1), self:value(env, "int", depth - 1))
  end },
  vec = { function(self, env, depth)
    return op.add(self:value(env, "vec", depth - 1), self:value(env, "int", depth - 1))
  end, function(self, env, depth)
    return op.multiply(self:value(env, "vec", depth - 1), self:value(env, "vec", depth - 1))
  end, function(self, env, depth) return op.negative(self:value(env, "vec", depth - 1)) end },
  pair = { function(self, env, depth)
    return pl.tuple { self:value(env, "int", depth - 1), self:value(env, "int", depth - 1) }
  end },
  fn = { function(self, env, depth)
    local own = inner(env)
    local x = self:var(own, "int")
    return ir.Function({ x }, self:value(own, "int", depth - 1), types.int)
  end },
  list = { function(self, env, depth)
    return ir.Call(ir.Constructor("Cons", pl.type "fn (int32, List[]) -> List[]"),
      { self:value(env, "int", depth - 1), self:value(env, "list", depth - 1) })
  end },
  box = { function(self, env, depth)
    return ir.Call(ir.Constructor("Full", pl.type "fn (fn (int32) -> int32) -> Box[]"),
      { self:value(env, "fn", depth - 1) })
  end },
}

-- An expression; others of the scope, and of scopes in it, may share it.
function program:value(env, what, depth)
  self.left = self.left - 1
  if depth <= 0 or self.left <= 0 then return self:leaf(env, what) end
  local shared = self:chance(0.15) and self:seen(env, "made_" .. what)
  if shared then return shared end
  local node
  if self:chance(0.35) then
    node = self:pick(anywhere)(self, env, what, depth)
  else
    node = self:pick(makers[what])(self, env, depth)
  end
  return see(env, "made_" .. what, node)
end

-- ------------------------------------------------------------------- modules

-- Function `f` of the module, which may call those of `steps`.
function program:global(f, steps)
  local fuel = pl.var("n", types.int)
  local top = inner(nil, { steps = steps })
  local inlined = self:chance(0.4)
  self.calls, self.left = 0, 25
  local x, body = self:counted(top, fuel, f, 4)
  return ir.Function({ fuel, x }, body, types.int, inlined and { Inline = 1 } or nil)
end

function program:main(steps)
  local top = inner(nil, { steps = steps })
  local params = { self:var(top, "int"), self:var(top, "int"), self:var(top, "bool") }
  local own = inner(top)
  local trace = self:var(own, "ref")
  local results = {}
  self.calls, self.left = 0, 60
  for i = 1, self:below(2) do results[i] = self:value(own, "int", 7) end
  results[#results + 1] = ir.RefRead(trace)
  return pl.func(params, ir.Let(trace, ir.RefCreate(params[1]), pl.tuple(results)))
end

local function new(seed)
  local random = seeded_random(seed)
  local self = setmetatable({ random = random, n_vars = 0, left = 0, calls = 0 }, program)
  for _ = 1, 3 do random() end
  return self
end

return function(seed)
  local self = new(seed)
  local functions, steps = {}, nil
  for i = 1, self.random(0, 3) do
    steps = { outer = steps, f = pl.global("g" .. i, step) }
  end
  local at = steps
  while at do
    functions[at.f.name] = self:global(at.f, steps)
    at = at.outer
  end
  functions.main = self:main(steps)
  return base:with(functions)
end
