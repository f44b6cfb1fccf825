--- Random programs of the loop level, the same for the same seed.

-- A generator: math.random with a state of its own.
local Program = {}
Program.__index = Program

local function pick(list) return list[math.random(#list)] end

-- An integer expression of the loop variables.
function Program:index(depth)
  if depth == 0 or math.random() < 0.3 then
    if #self.vars > 0 and math.random() < 0.7 then return pick(self.vars) end
    return tostring(math.random(0, 9))
  end
  local a = self:index(depth - 1)
  local op = math.random(6)
  if op == 1 then return ("(%s + %s)"):format(a, self:index(depth - 1)) end
  if op == 2 then return ("(%s - %s)"):format(a, self:index(depth - 1)) end
  if op == 3 then return ("(%s * %d)"):format(a, math.random(1, 5)) end
  if op == 4 then return ("(%s // %d)"):format(a, math.random(1, 6)) end
  if op == 5 then return ("(%s %% %d)"):format(a, math.random(1, 12)) end
  return ("T.%s(%s, %s)"):format(pick { "min", "max" }, a, self:index(depth - 1))
end

function Program:place() return ("%s %% 64"):format(self:index(2)) end

function Program:load() return ("%s[%s]"):format(pick(self.readable), self:place()) end

function Program:condition()
  local text = ("%s %s %s"):format(self:index(1), pick { "<", "<=", ">", "!=" },
    self:index(1))
  return math.random() < 0.4 and ("T.likely(%s)"):format(text) or text
end

function Program:value()
  local kind = math.random(5)
  if kind == 1 then return ("T.float32(%d)"):format(math.random(-3, 3)) end
  if kind == 2 then return ("%s + %s"):format(self:load(), self:load()) end
  if kind == 3 then return ("%s * T.float32(2)"):format(self:load()) end
  if kind == 4 then
    return ("T.Select(%s %% 3 < 2, %s, %s)"):format(self:index(1), self:load(), self:load())
  end
  return self:load()
end

function Program:line(text) self.lines[#self.lines + 1] = ("    "):rep(self.level) .. text end

function Program:inside(depth, var)
  self.level = self.level + 1
  if var then table.insert(self.vars, var) end
  self:statements(depth - 1)
  if var then table.remove(self.vars) end
  self.level = self.level - 1
end

function Program:fresh(stem)
  self.count = self.count + 1
  return stem .. self.count
end

-- The rounds of a vectorised loop do not depend on one another: each stores one element, of
-- what no round writes.
function Program:vectorized_loop()
  local var = self:fresh "i"
  self:line(("for %s in T.vectorized(%d):"):format(var, math.random(2, 5)))
  self.level = self.level + 1
  table.insert(self.vars, var)
  if math.random() < 0.3 then
    self:line(("if %s:"):format(self:condition()))
    self.level = self.level + 1
    self:line(("B[%s + %d] = A[%s] + A[%s]"):format(var, math.random(0, 59), self:place(),
      self:place()))
    self.level = self.level - 1
  else
    self:line(("B[%s + %d] = A[%s] * T.float32(3)"):format(var, math.random(0, 59), self:place()))
  end
  table.remove(self.vars)
  self.level = self.level - 1
end

function Program:loop(depth)
  local var = self:fresh "i"
  if math.random() < 0.25 then return self:vectorized_loop() end
  self:line(("for %s in %s(%d):"):format(var, pick { "range", "range", "T.unroll" },
    math.random(2, 5)))
  self:inside(depth, var)
end

function Program:statement(depth)
  local kind = depth == 0 and 1 or math.random(6)
  if kind <= 2 then
    self:line(("%s[%s] = %s"):format(pick(self.writable), self:place(), self:value()))
  elseif kind <= 4 then
    self:loop(depth)
  elseif kind == 5 then
    self:line(("if %s:"):format(self:condition()))
    self:inside(depth)
    if math.random() < 0.5 then
      self:line "else:"
      self:inside(depth)
    end
  else
    local var = self:fresh "v"
    self:line(("%s: T.int32 = %s"):format(var, self:index(2)))
    table.insert(self.vars, var)
    self:statements(depth - 1)
    table.remove(self.vars)
  end
end

function Program:statements(depth)
  for _ = 1, math.random(2) do self:statement(math.max(depth, 0)) end
end

-- Memory of the program's own, all of it written before it is read.
function Program:temporaries()
  for i = 1, math.random(0, 2) do
    local name = "C" .. i
    self:line(('%s = T.decl_buffer((64,), "float32")'):format(name))
    local var = self:fresh "k"
    self:line(("for %s in range(64):"):format(var))
    self:line(("    %s[%s] = %s[%s]"):format(name, var, pick(self.readable), var))
    table.insert(self.readable, name)
    table.insert(self.writable, name)
  end
end

local random = {}

--- A PrimFunc over A and B, two buffers of 64 floats, as text without its imports.
function random.body(seed, name)
  math.randomseed(seed)
  local p = setmetatable({ lines = {}, level = 1, vars = {}, count = 0,
    readable = { "A", "B" }, writable = { "B" } }, Program)
  p:temporaries()
  for _ = 1, 3 do p:statement(3) end
  return ([[
@T.prim_func
def %s(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
]]):format(name) .. table.concat(p.lines, "\n") .. "\n"
end

function random.text(seed)
  return "from tvm.script import tir as T\n\n" .. random.body(seed, "main")
end

return random
