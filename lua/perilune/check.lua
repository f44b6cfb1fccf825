--- pl.check: whether two functions or modules compute the same, on inputs that
-- are made for them.
--
--     assert(pl.check(model, optimised))
--     assert(pl.check(f, g, { rounds = 6, dims = { N = 3 }, rtol = 1e-4 }))
--
-- Each round has other sizes for symbolic dims, 1 and 0 among them (`dims` fixes
-- some; others are looked for when all are refused), and other numbers: ordinary
-- ones with zeros of both signs, small ones that may be indices, and NaN,
-- infinities and extremes. Floats may differ by atol + rtol * |expected|, both
-- 1e-5 where they are not given. atol is multiplied by the largest magnitude
-- expected, at least 1, as errors of rounding are where sums cancel; `scaled =
-- false` does without. `units` (0) says that both are no less than so many units
-- in the last place of 1 in the result's dtype, for rewrites that round weights of
-- float16 once more. Everything else is equal bit by bit. A round that one of the
-- two refuses is a difference; one that both refuse, such as an index out of
-- range, counts for nothing, and so does one with sizes of 0 that `a` refuses: it
-- does not allow them. A check all of whose rounds are such has failed.

local argument = require "perilune.argument"
local core = require "perilune.core"
local difference = require "perilune.difference"
local failure = require "perilune.failure"
local ir = require "perilune.ir"
local sample = require "perilune.sample"
local sorted_keys = require "perilune.sorted_keys"
core.internal()

local function main_of(subject)
  if ir.kind_of(subject) == "Module" then return subject.functions.main end
  return argument.node(subject, "pl.check", "what is compared")
end

local function is_module(subject) return ir.kind_of(subject) == "Module" end

-- ------------------------------------------------------------------- matching

-- A function to be run: its parameters by name, and which result is which.
local function side(subject)
  local fn = main_of(subject)
  local one = { subject = subject, fn = fn, params = fn.kind == "Function" and fn.params or {} }
  one.names = is_module(subject) and fn.scope_attrs.output_names or {}
  one.by_name, one.distinct = {}, true
  for i, param in ipairs(one.params) do
    if one.by_name[param.name] then one.distinct = false end
    one.by_name[param.name] = i
  end
  return one
end

-- Whether the names of `a` stand for those of `b`: all that both have.
local function share_names(a, b)
  for name in pairs(a.by_name) do
    if not b.by_name[name] then return false end
  end
  return true
end

-- For each parameter of `b` the one of `a` that it is given what of: by place, in
-- modules by name.
local function match(a, b)
  local from = {}
  local named = is_module(a.subject) and is_module(b.subject) and a.distinct and b.distinct
    and (share_names(a, b) or share_names(b, a))
  for i, param in ipairs(b.params) do
    if named then from[i] = a.by_name[param.name] else from[i] = i end
  end
  return from, named
end

-- What an input that the other model does not have stands for.
local function default_of(one, i)
  local name = one.params[i].name
  local value = is_module(one.subject) and core.onnx_default(one.subject, name)
  if value then return value end
  return nil, core.diag("invalid", ("only one of them has an input '%s'"):format(name))
end

-- -------------------------------------------------------------------- running

local function run(one, list)
  local results
  if is_module(one.subject) then
    results = table.pack(pcall(core.eval_in, one.subject, one.fn, table.unpack(list, 1, list.n)))
  else
    results = table.pack(pcall(core.eval, one.fn, table.unpack(list, 1, list.n)))
  end
  if results[1] then return results end
  if type(results[2]) == "string" or failure.stops(results[2]) then core.raise(results[2]) end
  return nil, results[2]
end

-- Arguments for `a`: one a parameter.
local function make(job, round, seed)
  local list = { n = #job.a.params }
  for i, param in ipairs(job.a.params) do
    local diag
    if job.named and not job.b.by_name[param.name] then
      list[i], diag = default_of(job.a, i)
    else
      list[i], diag = sample.value(param.type, round, seed * 1000003 + i)
    end
    if diag then return nil, diag end
  end
  return list
end

-- The same arguments for `b`.
local function hand_over(job, list)
  local other = { n = #job.b.params }
  for i in ipairs(job.b.params) do
    local from, diag = job.from[i], nil
    if from then other[i] = list[from] else other[i], diag = default_of(job.b, i) end
    if diag then return nil, diag end
  end
  return other
end

-- ------------------------------------------------------------------ comparing

local function result_name(job, i)
  local name = job.a.names[i]
  return name and ("result %d '%s'"):format(i, name) or ("result %d"):format(i)
end

-- The unit in the last place of 1.
local unit = {
  float64 = 2.0 ^ -52, float32 = 2.0 ^ -23, float16 = 2.0 ^ -10, bfloat16 = 2.0 ^ -7,
}

local function tolerance_of(job, value)
  local least = job.units * (type(value) == "userdata" and unit[value.dtype] or 0)
  local given = job.tolerance
  return { rtol = math.max(given.rtol, least), atol = math.max(given.atol, least),
    scaled = given.scaled }
end

-- How the results of a round differ, or nil.
local function compare(job, a, b)
  if a.n ~= b.n then return ("one gives %d results, the other %d"):format(a.n - 1, b.n - 1) end
  for i = 2, a.n do
    local how = difference(b[i], a[i], tolerance_of(job, a[i]))
    if how then return ("%s differs%s"):format(result_name(job, i - 1), how) end
  end
end

local function refusal(which, diag)
  return ("only the %s refuses: %s"):format(which, diag.message)
end

-- One round: whether it says anything, and what differs.
local function try(job, list, round)
  local other, diag = hand_over(job, list)
  if not other then return nil, diag end
  local a, b, refused, other_refused
  a, refused = run(job.a, list)
  b, other_refused = run(job.b, other)
  if not a and (not b or round.empty) then
    job.refused = refused
    return false
  end
  if not a then return true, refusal("first", refused) end
  if not b then return true, refusal("second", other_refused) end
  return true, compare(job, a, b)
end

local function describe(number, round, seed)
  local parts = { ("seed %d"):format(seed) }
  for _, name in ipairs(sorted_keys(round.sizes)) do
    parts[#parts + 1] = ("%s=%d"):format(name, round.sizes[name])
  end
  return ("round %d (%s numbers, %s)"):format(number, round.kind, table.concat(parts, ", "))
end

local function prepare(a, b, options)
  local job = { a = side(a), b = side(b), units = options.units or 0 }
  job.tolerance = { rtol = options.rtol or 1e-5, atol = options.atol or 1e-5,
    scaled = options.scaled ~= false }
  job.from, job.named = match(job.a, job.b)
  if #job.a.params ~= #job.b.params and not job.named then
    return nil, core.diag("invalid", ("one takes %d arguments, the other %d"):format(
      #job.a.params, #job.b.params))
  end
  local types = {}
  for i, param in ipairs(job.a.params) do types[i] = param.type end
  job.dims = options.dims or {}
  job.symbols = sample.symbols(types, job.dims)
  return job
end

-- Looks, once, for sizes with which `a` runs: the sizes, or nil.
local function search(job, seed)
  if job.searched or #job.symbols == 0 then return job.base end
  job.searched = true
  for other in sample.others({ kind = "small" }, job.symbols, job.dims) do
    local list = make(job, other, seed)
    if list and run(job.a, list) then
      job.base = other
      break
    end
  end
  return job.base
end

-- One round with these sizes: whether it compared anything, or nil and what
-- differs.
local function attempt(job, number, round, seed)
  local list, diag = make(job, round, seed)
  if not list then return nil, diag end
  local compared, how = try(job, list, round)
  if compared == nil then return nil, how end
  if how then
    return nil, core.diag("invalid", describe(number, round, seed) .. ": " .. how)
  end
  return compared
end

-- The round as planned; when it is refused, with sizes that are not.
local function run_round(job, number, first_seed)
  local seed = first_seed + number - 1
  local round = sample.round(number, job.symbols, job.dims)
  local compared, diag = attempt(job, number, round, seed)
  if compared ~= false or round.empty then return compared, diag end
  local base = search(job, seed)
  if not base then return false end
  return attempt(job, number, { kind = round.kind, sizes = base.sizes, rest = base.rest }, seed)
end

local function refused_text(job)
  local text = "no round could be compared: both refuse, the first: "
    .. (job.refused and job.refused.message or "there was none")
  if not job.searched then return text end
  return ("%s; sizes that were tried%s: %s"):format(text,
    #job.symbols > 0 and " for " .. table.concat(job.symbols, ", ") or "", sample.tried)
end

local known = { "rounds", "seed", "dims", "rtol", "atol", "scaled", "units" }

--- true and { rounds, compared }, or nil and a diagnostic. options: rounds (6),
-- seed (1: that of the first round), dims, rtol, atol, scaled, units.
return function(a, b, options)
  options = options or {}
  argument.options(options, "pl.check", known)
  if not main_of(a) or not main_of(b) then
    argument.fail("pl.check: a module without a function 'main'")
  end
  local job, diag = prepare(a, b, options)
  if not job then return nil, diag end
  local report = { rounds = options.rounds or 6, compared = 0 }
  for number = 1, report.rounds do
    local compared
    compared, diag = run_round(job, number, options.seed or 1)
    if compared == nil then return nil, diag end
    if compared then report.compared = report.compared + 1 end
  end
  if report.compared == 0 then
    return nil, core.diag("invalid", refused_text(job))
  end
  return true, report
end
