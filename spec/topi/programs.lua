-- Programs of one operator for specs of pl.topi: arguments of random values, and the same program
-- by the evaluator's kernels and by loops.

local pl = require "perilune"

local programs = {}

--- A generator of numbers of a seed: next(n) is an integer below n, next() a number in [-2, 2).
function programs.random(seed)
  local state = seed & 0x7fffffff
  return function(n)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    local high = state >> 8
    if n then return high % n end
    return high / (1 << 23) * 4 - 2
  end
end

--- The text of a tensor type, of float32 or of another dtype: float(2, 3), typed("int8", 2, 3).
function programs.float(...) return programs.typed("float32", ...) end

function programs.typed(dtype, ...)
  return ("Tensor[(%s), %s]"):format(table.concat({ ... }, ", "), dtype)
end

--- A list of cases, and what adds one: case(op, types, attrs, options).
function programs.cases()
  local cases = {}
  return cases, function(op, types, attrs, options)
    options = options or {}
    options.op, options.types, options.attrs = op, types, attrs
    cases[#cases + 1] = options
  end
end

local special = { 0 / 0, math.huge, -math.huge, -0.0, 0.0, 0.5, -0.5, 1.5, -1.5, 2.5 }

local function element(dtype, next, options)
  if dtype == "bool" then return next(2) == 1 end
  if dtype:find "^u?int" then
    local low, high = options.low or (dtype:find "^u" and 0 or -5), options.high or 6
    return low + next(high - low)
  end
  if options.special and next(4) == 0 then return special[next(#special) + 1] end
  local value = next()
  return options.positive and math.abs(value) + 0.1 or value
end

--- A tensor of a type such as "Tensor[(2, 3), float32]".
function programs.tensor(type_, next, options)
  local shape = type_.shape
  local function rows(i)
    if i > #shape then return element(type_.dtype, next, options) end
    local row = {}
    for k = 1, shape[i] do row[k] = rows(i + 1) end
    return row
  end
  return pl.tensor(rows(1), type_.dtype)
end

--- The function of a case { op, types, attrs, constants = { [i] = tensor }, tuple = whether the
-- operator takes its operands as one, ... }.
function programs.build(case)
  local params, args = {}, {}
  for i, spec in ipairs(case.types) do
    if case.constants and case.constants[i] then
      args[i] = pl.const(case.constants[i])
    else
      params[#params + 1] = pl.var("x" .. i, spec)
      args[i] = params[#params]
    end
  end
  if case.tuple then args = { pl.ir.Tuple(args) } end
  return pl.module { main = pl.func(params, pl.ir.Call(case.op, args, case.attrs or {})) }
end

function programs.arguments(mod, next, options)
  local list = {}
  for i, param in ipairs(mod.functions.main.params) do
    list[i] = programs.tensor(param.type, next, options)
  end
  return list
end

local lowering = pl.sequential { "InferType", "FuseOps", "LowerTE" }

--- The module with loops in the place of operators.
function programs.lower(mod) return lowering(mod) end

local function kind_counts(fn)
  local lowered, others = 0, 0
  for node in fn:nodes() do
    if node.kind == "Call" then
      if node.op and node.op.name == "call_lowered" then
        lowered = lowered + 1
      else
        others = others + 1
      end
    end
  end
  return lowered, others
end

--- Whether all calls of the main function are those of loops.
function programs.is_lowered(mod)
  local lowered, others = kind_counts(mod.functions.main)
  return lowered > 0 and others == 0
end

local function name_of(one, i)
  local shapes = {}
  for k, text in ipairs(one.types) do shapes[k] = text:match "%((.-)%)" end
  return ("%s of (%s) #%d"):format(one.op, table.concat(shapes, "), ("), i)
end

-- A case gives the same by loops as by the evaluator's kernel.
local function agrees(one, seed)
  local mod = programs.build(one)
  local args = programs.arguments(mod, programs.random(seed), one)
  if one.shift then args[1] = pl.eval(pl.op.add(args[1], pl.const(1.0))) end
  local lowered = programs.lower(mod)
  assert(programs.is_lowered(lowered))
  local expected = table.pack(pl.eval(mod, table.unpack(args)))
  local results = table.pack(pl.eval(lowered, table.unpack(args)))
  assert(expected.n == results.n, "the number of results")
  for k = 1, expected.n do
    local same, how = results[k]:compare(expected[k],
      { rtol = one.tolerance or 1e-4, atol = one.tolerance or 1e-5 })
    assert(same, ("seed %d, result %d: %s"):format(seed, k, how and ("got %s, expected %s"):format(
      tostring(how.got), tostring(how.expected)) or "differs"))
  end
  return true
end

--- Calls f(name, agrees) for each case: agrees() raises where loops and kernel differ.
function programs.each(cases, f)
  local seed = tonumber(os.getenv "PERILUNE_SEED") or 11
  for i, one in ipairs(cases) do
    f(name_of(one, i), function() return agrees(one, seed + 7919 * i) end)
  end
end

return programs
