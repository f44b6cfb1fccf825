-- Random tensor programs of symbolic shapes, for the random schedules of random_schedule.lua.

local pl = require "perilune"
local schedules = require "spec.te.random_schedule"

local te, tir = pl.te, pl.tir
local F = "float32"

local programs = {}

local function pick(random, list) return list[random(1, #list)] end

local function add(program, tensor, kind)
  table.insert(program[kind], tensor)
  table.insert(program.tensors, tensor)
  table.insert(program.stages, { tensor = tensor })
end

-- An element of a tensor of the program at (i, j), which run over n and m.
local function element(random, program, i, j)
  local kind = random(1, 6)
  if kind == 1 then return pick(random, program.rows)[{ i }] end
  if kind == 2 then return pick(random, program.columns)[{ j }] end
  if kind == 3 then return pick(random, program.turned)[{ j, i }] end
  local x = pick(random, program.matrices)
  if kind == 4 then return te.if_then_else(tir.GE(i, 1), x[{ i - 1, j }], te.const(0, F)) end
  if kind == 5 then return x[{ program.n - 1 - i, j }] end
  return x[{ i, j }]
end

local function value(random, program, i, j)
  local x, kind = element(random, program, i, j), random(1, 5)
  if kind == 1 then return x + element(random, program, i, j) end
  if kind == 2 then return te.max(x, element(random, program, i, j)) end
  if kind == 3 then return x * random(-2, 2) end
  return x - random(0, 3)
end

local makers = {}

function makers.matrix(random, program, name)
  add(program, te.compute({ program.n, program.m }, function(i, j)
    return value(random, program, i, j)
  end, name), "matrices")
end

function makers.turned(random, program, name)
  add(program, te.compute({ program.m, program.n }, function(j, i)
    return value(random, program, i, j)
  end, name), "turned")
end

function makers.row_reduction(random, program, name)
  local k = te.reduce_axis({ 0, program.m }, name .. "k")
  add(program, te.compute({ program.n }, function(i)
    return te[pick(random, { "sum", "max", "min" })](value(random, program, i, k.var), k)
  end, name), "rows")
end

function makers.column_reduction(random, program, name)
  local k = te.reduce_axis({ 0, program.n }, name .. "k")
  add(program, te.compute({ program.m }, function(j)
    return te[pick(random, { "sum", "max" })](value(random, program, k.var, j), k)
  end, name), "columns")
end

function makers.product(random, program, name)
  local a, b = pick(random, program.matrices), pick(random, program.turned)
  local k = te.reduce_axis({ 0, program.m }, name .. "k")
  local square = te.compute({ program.n, program.n }, function(i, j)
    return te.sum(a[{ i, k }] * b[{ k, j }], k)
  end, name)
  table.insert(program.tensors, square)
  table.insert(program.stages, { tensor = square })
  local l = te.reduce_axis({ 0, program.n }, name .. "l")
  add(program, te.compute({ program.n }, function(i) return te.max(square[{ i, l }], l) end,
    name .. "_row"), "rows")
end

local names = { "matrix", "turned", "row_reduction", "column_reduction", "product" }

--- A program over dimensions n and m: its inputs are (n, m), (m, n), (n) and (m).
function programs.make(random)
  local dim = pick(random, { te.var, te.size_var })
  local n, m = dim "n", dim "m"
  local A, B = te.placeholder({ n, m }, F, "A"), te.placeholder({ m, n }, F, "B")
  local V, W = te.placeholder({ n }, F, "V"), te.placeholder({ m }, F, "W")
  local program = { n = n, m = m, inputs = { A, B, V, W }, tensors = { A, B, V, W }, stages = {},
    matrices = { A }, turned = { B }, rows = { V }, columns = { W } }
  for i = 1, random(1, 4) do makers[pick(random, names)](random, program, "S" .. i) end
  local out = program.stages[#program.stages].tensor
  program.op = out.op
  local found = schedules.reached(out.op)
  for _, field in ipairs { "tensors", "stages" } do
    program[field] = schedules.kept(program[field], found)
  end
  program.args = { table.unpack(program.inputs) }
  program.args[#program.args + 1] = out
  return program
end

--- Tables of values for the arguments, with sizes of n and m.
function programs.values(program, random, n, m)
  local function row(size)
    local out = {}
    for i = 1, size do out[i] = random(-4, 4) * 1.0 end
    return out
  end
  local values = {}
  for i, tensor in ipairs(program.args) do
    local sizes = {}
    for k, dim in ipairs(tensor.shape) do sizes[k] = dim == program.n and n or m end
    if #sizes == 1 then
      values[i] = row(sizes[1])
    else
      values[i] = {}
      for k = 1, sizes[1] do values[i][k] = row(sizes[2]) end
    end
  end
  return values
end

return programs
