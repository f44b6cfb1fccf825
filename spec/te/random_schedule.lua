-- Random tensor programs and random schedules of them.
--
-- make(random) gives { outputs, args, stages }, where a stage is { tensor, intrin }: what
-- schedule(random, program) may tensorize. Values are integers that single precision holds.

local pl = require "perilune"

local te, tir = pl.te, pl.tir
local F = "float32"

local programs = {}

local function dims_of(tensor)
  local dims = {}
  for i, dim in ipairs(tensor.shape) do dims[i] = dim.value end
  return dims
end

local function pick(random, list) return list[random(1, #list)] end

-- An index inside of a dimension, from one of the axes { var, extent }.
local function index_in(random, axes, extent)
  local var, size = table.unpack(pick(random, axes))
  local kind = random(1, 6)
  if kind == 1 then return tir.const(random(0, extent - 1), "int32") end
  if size > extent then return te.floormod(var, extent) end
  if kind == 2 then return extent - 1 - var end
  if kind == 3 and 2 * size - 1 <= extent then return var * 2 end
  return var + random(0, extent - size)
end

-- An element of the tensor, at the axes as they are where shapes agree.
local function element(random, tensor, axes)
  local indices, dims = {}, dims_of(tensor)
  local same = #dims <= #axes and random(1, 3) > 1
  for i, extent in ipairs(dims) do
    if same and axes[i][2] == extent then
      indices[i] = axes[i][1]
    else
      indices[i] = index_in(random, axes, extent)
    end
  end
  return tensor:load(table.unpack(indices))
end

local function value(random, program, axes)
  local tensor = pick(random, program.tensors)
  local x = element(random, tensor, axes)
  local kind = random(1, 7)
  if kind == 1 then return x + element(random, pick(random, program.tensors), axes) end
  if kind == 2 then return te.max(x, element(random, pick(random, program.tensors), axes)) end
  if kind == 3 then return x * random(-2, 2) end
  if kind == 4 then return x - element(random, pick(random, program.inputs), axes) end
  if kind == 5 then
    local var, extent = table.unpack(pick(random, axes))
    return te.if_then_else(te.all(tir.GE(var, random(0, extent)), tir.LT(var, extent)), x, 1.0)
  end
  return x + 1
end

local function shape(random, most)
  local dims = {}
  for i = 1, random(1, most) do dims[i] = random(1, 9) end
  return dims
end

local function with_extents(vars, dims)
  local axes = {}
  for i, var in ipairs(vars) do axes[i] = { var, dims[i] } end
  return axes
end

local function add(program, tensor, intrin)
  program.tensors[#program.tensors + 1] = tensor
  program.stages[#program.stages + 1] = { tensor = tensor, intrin = intrin }
end

local makers = {}

function makers.elementwise(random, program, name)
  local dims = shape(random, 3)
  add(program, te.compute(dims, function(...)
    return value(random, program, with_extents({ ... }, dims))
  end, name))
end

function makers.reduction(random, program, name)
  local dims = shape(random, 2)
  local reduce = {}
  for i = 1, random(1, 2) do reduce[i] = te.reduce_axis({ 0, random(1, 5) }, name .. "k" .. i) end
  local reducer = pick(random, { "sum", "max", "min" })
  add(program, te.compute(dims, function(...)
    local axes = with_extents({ ... }, dims)
    for _, axis in ipairs(reduce) do
      axes[#axes + 1] = { axis.var, axis.dom[1].extent.value }
    end
    local where = random(1, 4) == 1 and tir.GE(axes[#axes][1], 1) or nil
    return te[reducer](value(random, program, axes), reduce, where)
  end, name))
end

function makers.outputs(random, program, name)
  local dims = shape(random, 2)
  local one, two = te.compute(dims, function(...)
    local axes = with_extents({ ... }, dims)
    return value(random, program, axes), value(random, program, axes)
  end, name)
  add(program, one)
  program.tensors[#program.tensors + 1] = two
end

function makers.tuple_reduction(random, program, name)
  local reducer = te.comm_reducer(function(x, y)
    return { x[1] + y[1], te.max(x[2], y[2]) }
  end, function(t0, t1) return { tir.const(0, t0), te.min_value(t1) } end)
  local dims, extent = shape(random, 2), random(1, 5)
  local k = te.reduce_axis({ 0, extent }, name .. "k")
  local one, two = te.compute(dims, function(...)
    local axes = with_extents({ ... }, dims)
    axes[#axes + 1] = { k.var, extent }
    return reducer({ value(random, program, axes), value(random, program, axes) }, k)
  end, name)
  add(program, one)
  program.tensors[#program.tensors + 1] = two
end

function makers.scan(random, program, name)
  local n, m = random(2, 5), random(1, 4)
  local state = te.placeholder({ n, m }, F, name .. "_state")
  local first = te.compute({ 1, m }, function(_, i)
    return value(random, program, { { i, m } })
  end, name .. "_init")
  local next_ = te.compute({ n, m }, function(t, i)
    return state[{ t - 1, i }] + element(random, pick(random, program.inputs),
      { { t, n }, { i, m } })
  end, name .. "_update")
  add(program, te.scan(first, next_, state, { name = name }))
  program.stages[#program.stages + 1] = { tensor = next_, in_scan = true }
end

-- Two states, each of which reads both.
function makers.scan_outputs(random, program, name)
  local n, m = random(2, 4), random(1, 4)
  local s1 = te.placeholder({ n, m }, F, name .. "_s1")
  local s2 = te.placeholder({ n, m }, F, name .. "_s2")
  local function first(suffix)
    return te.compute({ 1, m }, function(_, i)
      return value(random, program, { { i, m } })
    end, name .. suffix)
  end
  local i1, i2 = first "_init1", first "_init2"
  local step = te.compute({ n, m }, function(t, i)
    return s1[{ t - 1, i }] - s2[{ t - 1, m - 1 - i }]
  end, name .. "_step")
  local u1 = te.compute({ n, m }, function(t, i) return step[{ t, i }] + 1 end, name .. "_update1")
  local u2 = te.compute({ n, m }, function(t, i)
    return s2[{ t - 1, i }] + element(random, pick(random, program.inputs), { { t, n }, { i, m } })
  end, name .. "_update2")
  local one, two = te.scan({ i1, i2 }, { u1, u2 }, { s1, s2 }, { name = name })
  add(program, one)
  program.tensors[#program.tensors + 1] = two
  for _, tensor in ipairs { step, u1, u2 } do
    program.stages[#program.stages + 1] = { tensor = tensor, in_scan = true }
  end
end

function makers.extern(random, program, name)
  local from = pick(random, program.tensors)
  local n = dims_of(from)[1]
  local at = {}
  for i = 2, from.ndim do at[i - 1] = tir.const(0, "int32") end
  add(program, te.extern({ n }, { from }, function(ins, outs)
    local i = tir.Var "i"
    return tir.For(i, 0, n, "serial", outs[1]:store(ins[1]:load(i, table.unpack(at)) * 2, i))
  end, { name = name, dtype = F }))
end

-- Loops of a Lua function, whose rounds do not depend on each other: a nest of all elements, and
-- one of a part of them, with memory of its own and a range that depends on the loop around it.
function makers.hybrid(random, program, name)
  local from = pick(random, program.tensors)
  local n, m = random(1, 9), random(1, 9)
  local first, partial = random(0, n - 1), random(1, 2) == 1
  add(program, te.hybrid.script(function(h, x)
    local out = h.output_tensor({ n, m }, F)
    local at = {}
    for i in h.range(n, name .. "i") do
      for j in h.range(m, name .. "j") do
        for d, dim in ipairs(x.shape) do
          at[d] = te.floormod(d % 2 == 1 and i or j, dim)
        end
        out[{ i, j }] = x[at] * 2
      end
    end
    if not partial then return out end
    for i in h.range(first, n, name .. "p") do
      local t = h.allocate({ 1 }, F)
      t[0] = tir.Cast(F, i)
      for j in h.range(te.min(i + 1, m), name .. "q") do
        out[{ i, j }] = out[{ i, j }] - t[0]
      end
    end
    return out
  end, { name = name })(from))
end

-- A window over a padded tensor.
function makers.stencil(random, program, name)
  local from = pick(random, program.tensors)
  local dims = dims_of(from)
  local width, last = random(2, 3), dims[#dims]
  local padded = table.move(dims, 1, #dims, 1, {})
  padded[#dims] = last + width - 1
  local pad = te.compute(padded, function(...)
    local at = { ... }
    local x = at[#dims]
    at[#dims] = x - 1
    return te.if_then_else(te.all(tir.GE(x, 1), tir.LT(x, last + 1)),
      from:load(table.unpack(at, 1, #dims)), 0.0)
  end, name .. "_pad")
  add(program, pad)
  local k = te.reduce_axis({ 0, width }, name .. "k")
  add(program, te.compute(dims, function(...)
    local at = { ... }
    at[#dims] = at[#dims] + k.var
    return te.sum(pad:load(table.unpack(at, 1, #dims)), k)
  end, name))
end

-- Through another dtype and back, which holds these integers too.
function makers.other_dtype(random, program, name)
  local dtype = pick(random, { "int32", "int64", "float64" })
  local dims = shape(random, 2)
  local inner = te.compute(dims, function(...)
    return tir.Cast(dtype, value(random, program, with_extents({ ... }, dims)))
  end, name .. "_" .. dtype)
  program.stages[#program.stages + 1] = { tensor = inner }
  add(program, te.compute(dims, function(...)
    return tir.Cast(F, inner:load(...) + te.const(1, dtype))
  end, name))
end

-- A sum of the part of a row that begins at the row's number.
function makers.triangle(random, program, name)
  local n, m = random(2, 5), random(1, 4)
  local from = te.compute({ n + m }, function(i)
    return value(random, program, { { i, n + m } })
  end, name .. "_row")
  add(program, from)
  add(program, te.compute({ n }, function(i)
    local k = te.reduce_axis({ i, i + m }, name .. "k")
    return te.sum(from[{ k }], k)
  end, name))
end

-- The sum of two tensors over `n` elements, for loops that are tensorized.
local function sum_intrin(n)
  local x, y = te.placeholder({ n }, F, "px"), te.placeholder({ n }, F, "py")
  local z = te.compute({ n }, function(i) return x[{ i }] + y[{ i }] end, "pz")
  return te.decl_tensor_intrin(z.op, function(ins, outs)
    local i = tir.Var "i"
    return tir.For(i, 0, n, "serial", outs[1]:store(ins[1]:load(i) + ins[2]:load(i), i))
  end, { name = "plus" .. n })
end

-- c[i] = sum of a[i, k] * b[i, k] over n rows of l elements.
local function dot_intrin(n, l, reset)
  local a, b = te.placeholder({ n, l }, F, "pa"), te.placeholder({ n, l }, F, "pb")
  local k = te.reduce_axis({ 0, l }, "k")
  local c = te.compute({ n }, function(i) return te.sum(a[{ i, k }] * b[{ i, k }], k) end, "pc")
  local binds = {}
  for _, x in ipairs { a, b } do
    binds[x] = tir.decl_buffer(x.shape, F, x.name,
      { offset_factor = 1, strides = { tir.Var "ld", 1 } })
  end
  return te.decl_tensor_intrin(c.op, function(ins, outs)
    local function zero()
      local i = tir.Var "i"
      return tir.For(i, 0, n, "serial", outs[1]:store(0.0, i))
    end
    local function update()
      local i, j = tir.Var "i", tir.Var "j"
      return tir.For(i, 0, n, "serial", tir.For(j, 0, l, "serial",
        outs[1]:store(outs[1]:load(i) + ins[1]:load(i, j) * ins[2]:load(i, j), i)))
    end
    return tir.SeqStmt { zero(), update() }, reset and zero() or nil, update()
  end, { name = ("dot%d_%d%s"):format(n, l, reset and "r" or ""), binds = binds })
end

function makers.sum_of_two(random, program, name)
  local A, B = te.placeholder({ 4, 8 }, F, name .. "a"), te.placeholder({ 4, 8 }, F, name .. "b")
  for _, x in ipairs { A, B } do
    table.insert(program.inputs, x)
    table.insert(program.tensors, x)
  end
  local n = pick(random, { 2, 4, 8 })
  add(program, te.compute({ 4, 8 }, function(i, j) return A[{ i, j }] + B[{ i, j }] end, name),
    function(s, tensor)
      local _, inner = s[tensor]:split(s[tensor].op.axis[2], n)
      local intrin = sum_intrin(n)
      s[tensor]:tensorize(inner, intrin)
      return intrin
    end)
end

function makers.dot(random, program, name)
  local A, B = te.placeholder({ 6, 8 }, F, name .. "a"), te.placeholder({ 6, 8 }, F, name .. "b")
  for _, x in ipairs { A, B } do
    table.insert(program.inputs, x)
    table.insert(program.tensors, x)
  end
  local k = te.reduce_axis({ 0, 8 }, name .. "k")
  local n, l, reset = pick(random, { 1, 2, 3, 6 }), pick(random, { 1, 2, 4, 8 }), random(1, 2) == 1
  add(program, te.compute({ 6 }, function(i)
    return te.sum(A[{ i, k }] * B[{ i, k }], k)
  end, name), function(s, tensor)
    local stage = s[tensor]
    local io, ii = stage:split(stage.op.axis[1], n)
    local ko, ki = stage:split(stage.op.reduce_axis[1], l)
    if random(1, 2) == 1 then stage:reorder(io, ko, ii, ki) else stage:reorder(ko, io, ii, ki) end
    local intrin = dot_intrin(n, l, reset)
    stage:tensorize(ii, intrin)
    return intrin
  end)
end

local kinds = { "elementwise", "elementwise", "elementwise", "reduction", "reduction", "outputs",
  "tuple_reduction", "scan", "scan_outputs", "extern", "hybrid", "sum_of_two", "dot", "stencil",
  "other_dtype", "triangle" }

--- The operations that one reads, itself among them: a set.
function programs.reached(op)
  local found, stack = { [op] = true }, { op }
  while #stack > 0 do
    for _, input in ipairs(table.remove(stack).inputs) do
      if not found[input] then
        found[input] = true
        stack[#stack + 1] = input
      end
    end
  end
  return found
end

--- The tensors and stages of a list whose operations are found.
function programs.kept(list, found)
  local out = {}
  for _, item in ipairs(list) do
    if found[(item.tensor or item).op] then out[#out + 1] = item end
  end
  return out
end

--- A program of some stages.
function programs.make(random)
  local program = { tensors = {}, inputs = {}, stages = {} }
  for i = 1, random(1, 2) do
    local input = te.placeholder(shape(random, 3), F, "A" .. i)
    program.tensors[i], program.inputs[i] = input, input
  end
  for i = 1, random(1, 4) do makers[pick(random, kinds)](random, program, "S" .. i) end
  -- The updates of a scan are listed behind it.
  local last = #program.stages
  while program.stages[last].in_scan do last = last - 1 end
  local out = program.stages[last].tensor
  program.op = out.op
  local found = programs.reached(out.op)
  for _, field in ipairs { "inputs", "tensors", "stages" } do
    program[field] = programs.kept(program[field], found)
  end
  program.args = { table.unpack(program.inputs) }
  for _, tensor in ipairs(out.op.outputs) do program.args[#program.args + 1] = tensor end
  return program
end

-- ----------------------------------------------------------------- schedules

local moves = {}

local function leaf(random, stage) return pick(random, stage.leaf_iter_vars) end

function moves.split(random, stage) stage:split(leaf(random, stage), random(1, 5)) end
function moves.split_parts(random, stage)
  stage:split(leaf(random, stage), { nparts = random(1, 4) })
end
function moves.fuse(random, stage)
  local leaves = stage.leaf_iter_vars
  local at = random(1, math.max(1, #leaves - 1))
  if leaves[at + 1] then stage:fuse(leaves[at], leaves[at + 1]) end
end
function moves.reorder(random, stage)
  local x, y = leaf(random, stage), leaf(random, stage)
  if x ~= y then stage:reorder(x, y) end
end
function moves.tile(random, stage)
  local axes = stage.op.axis
  if #axes > 1 then stage:tile(axes[1], axes[2], random(1, 4), random(1, 4)) end
end
function moves.unroll(random, stage) stage:unroll(leaf(random, stage)) end
function moves.vectorize(_, stage) stage:vectorize(stage.leaf_iter_vars[#stage.leaf_iter_vars]) end
function moves.parallel(_, stage) stage:parallel(stage.leaf_iter_vars[1]) end
-- Not of a reduction, which threads cannot do without a target.
function moves.virtual_thread(random, stage)
  local axis = leaf(random, stage)
  if axis and axis.iter_type == 0 then stage:bind(axis, te.thread_axis "vthread") end
end
function moves.compute_inline(_, stage) stage:compute_inline() end
function moves.compute_at(random, stage, s)
  local other = pick(random, s.stages)
  if #other.leaf_iter_vars > 0 then stage:compute_at(other, leaf(random, other)) end
end
function moves.storage_align(random, stage)
  stage:storage_align(stage.op.axis[1], random(1, 4), random(0, 1))
end
function moves.double_buffer(_, stage) stage:double_buffer() end
function moves.predicate(random, stage)
  stage:pragma(leaf(random, stage), "auto_unroll_max_step", random(0, 8))
end
function moves.cache_read(random, _, s, program)
  local tensor = pick(random, program.tensors)
  s:cache_read(tensor, pick(random, { "local", "shared", "global" }),
    { pick(random, s.stages).op:output(0) })
end
function moves.cache_write(_, stage, s)
  local all = {}
  for i = 1, stage.op.num_outputs do all[i] = stage.op:output(i - 1) end
  s:cache_write(#all == 1 and all[1] or all, "local")
end
function moves.rfactor(random, stage, s)
  local tensor = stage.op:output(0)
  for _, axis in ipairs(stage.leaf_iter_vars) do
    if axis.iter_type == 2 then
      s:rfactor(tensor, axis, random(0, 1))
      return
    end
  end
end
function moves.group(random, _, s, program)
  s:create_group(pick(random, program.stages).tensor, pick(random, program.tensors),
    random(1, 2) == 1)
end

-- The intrinsics that it has tensorized with are listed in `used`.
local function tensorize(one, s, program)
  table.insert(program.used, (one.intrin(s, one.tensor)))
end

function moves.tensorize(random, _, s, program)
  local one = pick(random, program.stages)
  if one.intrin then tensorize(one, s, program) end
end
function moves.compute_root(_, stage) stage:compute_root() end
function moves.set_scope(random, stage)
  stage:set_scope(pick(random, { "local", "shared", "global" }))
end
function moves.rolling_buffer(_, stage) stage:rolling_buffer() end
function moves.unroll_pragma(random, stage)
  stage:pragma(leaf(random, stage), pick(random, { "unroll", "vectorize" }))
end
function moves.prefetch(random, stage, s, program)
  local tensor = pick(random, program.tensors)
  if s[tensor].name ~= stage.name then stage:prefetch(tensor, leaf(random, stage), random(1, 2)) end
end
-- Of a condition that holds wherever there is an element.
function moves.store_predicate(_, stage)
  local axis = stage.op.axis and stage.op.axis[1]
  if axis then stage:set_store_predicate(tir.GE(axis.var, 0)) end
end
-- A consumer's loop for a stage that it reads: most others are refused.
function moves.compute_at_consumer(random, stage, s)
  local readers = {}
  for _, other in ipairs(s.stages) do
    if other.name ~= stage.name and #other.leaf_iter_vars > 0 then
      readers[#readers + 1] = other
    end
  end
  if #readers == 0 then return end
  local other = readers[#readers]
  if random(1, 3) == 1 then other = pick(random, readers) end
  stage:compute_at(other, leaf(random, other))
end


-- Not of arguments, whose shapes it would change.
function moves.transform_layout(random, stage)
  local extents = {}
  for i, dim in ipairs(stage.op:output(0).shape) do extents[i] = dim.value end
  if stage.is_output or #stage.leaf_iter_vars == 0 then return end
  local kind, n = random(1, 3), random(2, 4)
  stage:transform_layout(function(...)
    local indices, out = { ... }, {}
    if kind == 1 then
      for i = #indices, 1, -1 do out[#out + 1] = indices[i] end
    elseif kind == 2 then
      out[1] = indices[1]
      for i = 2, #indices do out[1] = out[1] * (extents[i] or 1) + indices[i] end
    else
      out = { indices[1] // n, te.AXIS_SEPARATOR, indices[1] % n, table.unpack(indices, 2) }
    end
    return out
  end)
end

local names = {}
for name in pairs(moves) do names[#names + 1] = name end
table.sort(names)

--- A schedule of the program, and how many moves were taken. A refused one changes nothing.
function programs.schedule(random, program, refused)
  local s, taken = te.create_schedule(program.op), 0
  program.used = {}
  for _, one in ipairs(program.stages) do
    if one.intrin and random(1, 2) == 1 and pcall(tensorize, one, s, program) then
      taken = taken + 1
    end
  end
  for _ = 1, random(1, 12) do
    local before = s:n_steps()
    local name, stage = pick(random, names), pick(random, s.stages)
    local ok, err = pcall(moves[name], random, stage, s, program)
    if ok then taken = taken + 1 else refused(name, tostring(err), before, s) end
  end
  return s, taken
end

return programs
