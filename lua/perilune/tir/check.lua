--- pl.tir.check: whether two programs of the loop level compute the same, on inputs that are made
-- for them.
--
--     assert(pl.tir.check(before, after))
--     assert(pl.tir.check(before, after, { rounds = 8, rtol = 0, atol = 0, sizes = { n = 12 } }))
--
-- Functions of modules are matched by name; two modules of one PrimFunc each are matched whatever
-- its name. Each round has other numbers, and other sizes for the variables of shapes and for the
-- integers among the parameters. Floats may
-- differ by atol + rtol * |expected|, both 1e-4 where they are not given, atol times the largest
-- magnitude expected; everything else is equal bit by bit. A round that the first program refuses
-- is tried with other sizes and with integers that may be indices, and then not counted. When the
-- second one faults where the first does not, they differ. A check that compared no element has
-- failed, and says why; its code is then "unsupported".

local core = require "perilune.core"
core.internal()

local analyzers = require "perilune.arith.analyzer"
local argument = require "perilune.argument"
local difference = require "perilune.check.tensor_difference"
local ir = require "perilune.ir"
local operand = require "perilune.tir.operand"
local runner = require "perilune.tir.run"
local walks = require "perilune.tir.walk"

local check = {}

local option_names = { "rounds", "seed", "rtol", "atol", "sizes", "uninitialized", "externs" }

-- Sizes of the first, second, ... variable of shapes; the last goes for all that follow.
local size_plans = { { 8, 6, 4 }, { 5, 7, 3 }, { 1 }, { 16 }, { 13, 2, 9 }, { 32 }, { 64 }, { 2 } }

-- An argument of more elements is not made.
local MOST = 1 << 27

-- ---------------------------------------------------------------- signatures

-- The parameters of a PrimFunc, each with its buffer or without; the variables of shapes.
local function signature(fn)
  local list, vars, seen, by_param = {}, {}, {}, {}
  for _, stmt in ipairs(fn.stmts) do
    if stmt.kind == "BufferBind" then by_param[stmt.param] = stmt.buffer end
  end
  for i, param in ipairs(fn.params) do
    local buffer = by_param[param]
    list[i] = { param = param, buffer = buffer, name = buffer and buffer.name or param.name }
    for _, dim in ipairs(buffer and buffer.shape or {}) do
      if dim.kind == "Var" and not seen[dim] then
        seen[dim] = true
        vars[#vars + 1] = dim
      end
    end
  end
  return { fn = fn, params = list, vars = vars }
end

local function unsupported(text, ...) return nil, core.diag("unsupported", text:format(...)) end

-- The value of a dim for given sizes of variables, or nil.
local function dim_value(dim, values)
  if dim.kind == "IntImm" then return dim.value end
  if values[dim] then return values[dim].value end
  local known = analyzers():simplify(walks.substitute(dim, values))
  return known.kind == "IntImm" and known.value or nil
end

-- Splits "float32x4" into the dtype and the lanes.
local function vector_dtype(dtype)
  local base, lanes = dtype:match "^(.-%d)x(%d+)$"
  return base or dtype, tonumber(lanes or 1)
end

local function shape_of(one, values)
  local dtype, lanes = vector_dtype(one.buffer.dtype)
  local shape, count = {}, 1.0
  for axis, dim in ipairs(one.buffer.shape) do
    local size = dim_value(dim, values)
    if not size or size < 0 then
      return unsupported("dimension %d of '%s' is not known", axis - 1, one.name)
    end
    shape[axis], count = size, count * size
  end
  if lanes > 1 then shape[#shape + 1] = lanes end
  if count > MOST then return unsupported("'%s' has too many elements", one.name) end
  return shape, dtype
end

-- An argument of a round.
local function make_argument(one, values, round, k)
  local seed, shape, dtype = round.seed * 1000003 + k, {}, one.param.dtype
  if one.buffer then
    shape, dtype = shape_of(one, values)
    if not shape then return nil, dtype end
  elseif dtype == "handle" then
    return unsupported("no argument can be made of the handle '%s'", one.name)
  end
  local integer = dtype:match "^u?int" ~= nil
  if integer and not one.buffer then return core.tensor(round.size(one.param), dtype) end
  local kind = integer and round.indices and "small" or "ordinary"
  return core.generate_input(dtype, shape, kind, seed)
end

local function make_arguments(job, round)
  local plan, values, list = size_plans[(round.plan - 1) % #size_plans + 1], {}, {}
  local function size_of(var, i) return job.sizes[var.name] or plan[math.min(i, #plan)] end
  for i, var in ipairs(job.signature.vars) do
    values[var] = operand.IntImm(var.dtype, size_of(var, i))
  end
  round.size = function(param)
    return values[param] and values[param].value or size_of(param, #plan)
  end
  for i, one in ipairs(job.signature.params) do
    local diag
    list[i], diag = make_argument(one, values, round, i)
    if not list[i] then return nil, diag end
  end
  return list
end

-- -------------------------------------------------------------------- rounds

local function run(fn, list, options)
  local ok, result = pcall(core.loop_run, fn, list, options)
  if ok then return result end
  if type(result) == "string" or result.code == "interrupted" or result.code == "nomem" then
    core.raise(result)
  end
  return nil, result
end

-- Whether a program cannot be run, as opposed to one that faults.
local function is_refusal(diag) return diag.code == "unsupported" or diag.code == "limit" end

local function compare(job, a, b)
  if #a ~= #b then return ("one has %d buffers, the other %d"):format(#a, #b) end
  for i, tensor in ipairs(a) do
    local how = difference(b[i], tensor, job.tolerance)
    if how then return ("buffer %d differs%s"):format(i, how) end
    job.elements = job.elements + tensor.size
  end
end

local function describe(round, how)
  return core.diag("invalid", ("round %d (seed %d): %s"):format(round.number, round.seed, how))
end

-- True when the round compared, false when the first program refuses, nil and what differs.
local function try(job, round)
  local list, diag = make_arguments(job, round)
  if not list then
    job.refused = diag
    return false
  end
  local a, refused = run(job.before, list, job.options)
  if not a then
    job.refused = refused
    return false
  end
  local b, fault = run(job.after, list, job.options)
  if not b and is_refusal(fault) then return nil, fault end
  if not b then return nil, describe(round, "only the second faults: " .. fault.message) end
  local how = compare(job, a, b)
  if how then return nil, describe(round, how) end
  return true
end

-- Whether other sizes or indices could help.
local function may_help(job)
  return not is_refusal(job.refused) and job.refused.code ~= "type"
    or #job.signature.vars > 0 and job.refused.code ~= "unsupported"
end

local function run_round(job, number, seed)
  for retry = 0, #job.signature.vars > 0 and #size_plans - 1 or 0 do
    for _, indices in ipairs { false, true } do
      local round = { number = number, seed = seed, plan = number + retry, indices = indices }
      local done, diag = try(job, round)
      if done or diag then return done, diag end
      if not may_help(job) then return false end
    end
  end
  return false
end

local function check_functions(before, after, options)
  local job = { before = before, after = after, elements = 0, sizes = options.sizes or {},
    signature = signature(before) }
  job.tolerance = { rtol = options.rtol or 1e-4, atol = options.atol or 1e-4, scaled = true }
  job.options = runner.options({ uninitialized = options.uninitialized,
    externs = options.externs }, "tir.check")
  local seed = math.tointeger(options.seed or 0) or 0
  for number = 1, options.rounds or 3 do
    local _, diag = run_round(job, number, seed + number)
    if diag then return nil, diag end
  end
  if job.elements > 0 then return true end
  if not job.refused then return unsupported "no element was compared: no buffer has one" end
  return nil, core.diag("unsupported", "no element was compared: " .. job.refused.message)
end

-- ------------------------------------------------------------------- modules

local function prim_funcs(program)
  if ir.kind_of(program) ~= "Module" then
    return { [1] = runner.prim_func(program, "tir.check") }, 1
  end
  local found, count = {}, 0
  for name, fn in pairs(program) do
    if fn.kind == "PrimFunc" then found[name], count = fn, count + 1 end
  end
  return found, count
end

-- Pairs of functions to compare; nil and a diagnostic when one lacks its counterpart.
local function pairs_of(before, after)
  local a, n_a = prim_funcs(before)
  local b, n_b = prim_funcs(after)
  if n_a == 1 and n_b == 1 then return { { select(2, next(a)), select(2, next(b)) } } end
  local names, list = {}, {}
  for name in pairs(a) do names[#names + 1] = name end
  table.sort(names, function(x, y) return tostring(x) < tostring(y) end)
  for _, name in ipairs(names) do
    if not b[name] then
      return nil, core.diag("invalid", ("the second has no function '%s'"):format(name))
    end
    list[#list + 1] = { a[name], b[name] }
  end
  if #list == 0 then return unsupported "there is no PrimFunc to compare" end
  return list
end

local function check_number(value, name)
  if value ~= nil and math.type(value) == nil then
    argument.fail(("tir.check: %s: a number expected, got %s"):format(name,
      argument.kind_of(value)))
  end
end

local function check_options(options)
  options = argument.options(options, "tir.check", option_names)
  for _, name in ipairs { "rounds", "seed", "rtol", "atol" } do
    check_number(options[name], name)
  end
  for name, size in pairs(argument.options(options.sizes, "tir.check")) do
    if math.type(size) ~= "integer" or size < 0 then
      argument.fail(("tir.check: the size of '%s' is no integer of 0 or more"):format(
        tostring(name)))
    end
  end
  runner.options({ uninitialized = options.uninitialized, externs = options.externs }, "tir.check")
  return options
end

--- Whether all functions of a module are PrimFuncs.
function check.is_loop_level(mod)
  local any = false
  for _, fn in pairs(mod) do
    if fn.kind ~= "PrimFunc" then return false end
    any = true
  end
  return any
end

--- Those options of pl.check that go for PrimFuncs too.
function check.options_of(options)
  return { rounds = options.rounds, seed = options.seed, rtol = options.rtol,
    atol = options.atol, sizes = options.dims }
end

--- True, or nil and a diagnostic.
function check.check(before, after, options)
  options = check_options(options)
  local list, diag = pairs_of(before, after)
  if not list then return nil, diag end
  for _, pair in ipairs(list) do
    local same
    same, diag = check_functions(pair[1], pair[2], options)
    if not same then return nil, diag end
  end
  return true
end

return check
