--- pl.check: whether two functions or modules compute the same, on inputs that
-- are made for them, or on given ones.
--
--     assert(pl.check(model, optimised))
--     assert(pl.check(f, g, { rounds = 6, dims = { N = 3 }, rtol = 1e-4 }))
--     assert(pl.check(model, optimised, { data = { { image = tensor } } }))
--
-- Each round has other sizes for open dims, and other numbers: ordinary ones with
-- zeros of both signs, small ones that may be indices, and NaN, infinities and
-- extremes. Sizes are such as the operators of `a` admit (perilune.sizes), 1 and 0
-- among them where they may be; `dims` and `shapes` fix some, and the search begins
-- at `example`, the shapes of some inputs by name. `data` is a list of sets, each
-- the values of inputs by name or position; rounds on them come first, and what a
-- set does not name is made up. With `data` no other rounds run unless `rounds` says
-- so.
--
-- Floats may differ by atol + rtol * |expected|, both
-- 1e-5 where they are not given. atol is multiplied by the largest magnitude
-- expected, at least 1, as errors of rounding are where sums cancel; `scaled =
-- false` does without. `units` (0) says that both are no less than so many units
-- in the last place of 1 in the result's dtype, for rewrites that round weights of
-- float16 once more. Everything else is equal bit by bit. A round that one of the
-- two refuses is a difference; one that both refuse, such as an index out of
-- range, is tried once more with other sizes and with integers that may be indices,
-- and then counts as refused. Sizes of 0 that `a` refuses are not allowed by it. A
-- check none of whose rounds compared an element has failed, and says so. The
-- limits of the current context (limit.seconds, limit.memory) hold for all of it.

local argument = require "perilune.argument"
local core = require "perilune.core"
local difference = require "perilune.check.tensor_difference"
local failure = require "perilune.debug.failure"
local ir = require "perilune.ir"
local generator = require "perilune.check.input_generator"
local sizes = require "perilune.check.input_shapes"
core.internal()

-- Runs on a search for sizes that inference alone does not find.
local MOST_RUNS = 100

local function main_of(program)
  if ir.kind_of(program) == "Module" then return program.functions.main end
  return argument.node(program, "pl.check", "what is compared")
end

local function is_module(program) return ir.kind_of(program) == "Module" end

-- ------------------------------------------------------------------- matching

-- A function to be run: its parameters by name, and which result is which.
local function side(program)
  local fn = main_of(program)
  local one = { program = program, fn = fn, params = fn.kind == "Function" and fn.params or {} }
  one.names = is_module(program) and fn.scope_attrs.output_names or {}
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
  local named = is_module(a.program) and is_module(b.program) and a.distinct and b.distinct
    and (share_names(a, b) or share_names(b, a))
  for i, param in ipairs(b.params) do
    if named then from[i] = a.by_name[param.name] else from[i] = i end
  end
  return from, named
end

-- What an input that the other model does not have stands for.
local function default_of(one, i)
  local name = one.params[i].name
  if is_module(one.program) and not one.defaults then
    one.defaults = core.onnx_defaults(one.program) or {}
  end
  local value = one.defaults and one.defaults[name]
  if value then return value end
  return nil, core.diag("invalid", ("only one of them has an input '%s'"):format(name))
end

-- -------------------------------------------------------------------- running

local function run(one, list)
  local results
  if is_module(one.program) then
    results = table.pack(pcall(core.eval_in, one.program, one.fn, table.unpack(list, 1, list.n)))
  else
    results = table.pack(pcall(core.eval, one.fn, table.unpack(list, 1, list.n)))
  end
  if results[1] then return results end
  local err = results[2]
  if type(err) == "string" or failure.stops(err) or err.code == "limit" then core.raise(err) end
  return nil, results[2]
end

-- The value of parameter `i` in a set of data, or nil.
local function from_set(job, set, i)
  if not set then return nil end
  local value = set[i]
  if value == nil and set[job.a.params[i].name] ~= nil then value = set[job.a.params[i].name] end
  return value
end

-- Arguments for `a`: one a parameter.
local function make(job, round)
  local list, shapes = { n = #job.a.params }, job.search:shapes(round.sizes)
  for i, param in ipairs(job.a.params) do
    local diag
    list[i] = from_set(job, round.set, i)
    if list[i] == nil and job.named and not job.b.by_name[param.name] then
      list[i], diag = default_of(job.a, i)
    elseif list[i] == nil then
      list[i], diag = generator.value(param.type, shapes[i], round, round.seed * 1000003 + i)
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

local function count_elements(value)
  if type(value) == "userdata" then return value.size end
  if type(value) ~= "table" then return value == nil and 0 or 1 end
  local total = 0
  for _, item in pairs(value) do total = total + count_elements(item) end
  return total
end

-- How the results of a round differ, or nil, and how many elements there are.
local function compare(job, a, b)
  if a.n ~= b.n then return ("one gives %d results, the other %d"):format(a.n - 1, b.n - 1) end
  local elements = 0
  for i = 2, a.n do
    local how = difference(b[i], a[i], tolerance_of(job, a[i]))
    if how then return ("%s differs%s"):format(result_name(job, i - 1), how) end
    elements = elements + count_elements(a[i])
  end
  return nil, elements
end

local function refusal(which, diag)
  return ("only the %s refuses: %s"):format(which, diag.message)
end

-- One round: the elements that it compared, or false when it says nothing; nil and
-- what differs.
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
  local how, elements
  if not a then
    how = refusal("first", refused)
  elseif not b then
    how = refusal("second", other_refused)
  else
    how, elements = compare(job, a, b)
  end
  if not how then return elements end
  return nil, core.diag("invalid", job.describe(round) .. ": " .. how)
end

-- --------------------------------------------------------------------- rounds

local function describe(job, round)
  local names, parts = {}, {}
  if round.set then
    parts[1] = ("round %d (data set %d"):format(round.number, round.number)
  else
    parts[1] = ("round %d (%s numbers, seed %d"):format(round.number, round.kind, round.seed)
  end
  for i, param in ipairs(job.a.params) do names[i] = param.name or ("argument %d"):format(i) end
  for _, text in ipairs(job.search:describe(round.sizes, names)) do parts[#parts + 1] = text end
  return table.concat(parts, ", ") .. ")"
end

-- The elements compared in a round of those sizes and numbers, false when it is
-- refused, nil and what differs.
local function compare_round(job, round)
  local list, diag = make(job, round)
  if not list then return nil, diag end
  return try(job, list, round)
end

local function variant(round, changes)
  local other = {}
  for name, value in pairs(round) do other[name] = value end
  for name, value in pairs(changes) do other[name] = value end
  return other
end

-- The first of these sizes with which `a` runs, or nil; so many are tried.
local function first_that_runs(job, round, candidates)
  local left = MOST_RUNS
  for x in candidates do
    local list = make(job, variant(round, { kind = "small", sizes = x, search = true }))
    if list and run(job.a, list) then return x end
    left = left - 1
    if left == 0 then return nil end
  end
end

-- Whether it is for want of a kernel that nothing runs: sizes do not matter then.
local function lacks_kernel(diag)
  return diag.code == "unsupported" and diag.message:find "cannot be evaluated$" ~= nil
end

-- Looks, once, for sizes with which `a` runs: the sizes, or nil.
local function search_by_running(job, round)
  if job.searched or job.ran or #job.search.vars == 0 or lacks_kernel(job.refused) then
    return job.running
  end
  job.searched = true
  job.running = job.base and first_that_runs(job, round, job.search:sums(job.base))
  if job.running then job.base = job.running end -- rounds to come begin here
  job.running = job.running or first_that_runs(job, round, generator.others(job.search))
  return job.running
end

-- The sizes that the round begins with.
local function sizes_of(job, number)
  local wanted, empty = generator.wanted(job.search, number)
  if not job.base then return wanted, empty end
  if not empty or #wanted == 0 then return job.search:near(job.base, wanted), false end
  local none = job.search:empty(job.base)
  return none or job.base, none ~= nil
end

-- The round as planned; when it is refused, with sizes and integers that may not be.
local function run_round(job, number, seed)
  local x, empty = sizes_of(job, number)
  local round = { number = number, kind = generator.kind(number), seed = seed, sizes = x,
    empty = empty }
  local elements, diag = compare_round(job, round)
  local base = job.base or x
  for _, indices in ipairs { false, true } do
    if elements ~= false then return elements, diag end
    if indices or base ~= x then
      elements, diag = compare_round(job, variant(round, { sizes = base, empty = false,
        indices = indices }))
    end
  end
  local running = elements == false and search_by_running(job, round)
  if not running then return elements, diag end
  return compare_round(job, variant(round, { sizes = running, empty = false, indices = true }))
end

-- The shapes by parameter that a table by name or position gives values of.
local function shapes_of(job, set, shape_of)
  local shapes = {}
  for i in ipairs(job.a.params) do
    local value = from_set(job, set, i)
    if value ~= nil then shapes[i] = shape_of(value) end
  end
  return shapes
end

local function shape_of_value(value)
  if type(value) == "table" then value = value[1] end
  return type(value) == "userdata" and value.shape or nil
end

-- The shape of a value that contradicts a size that is fixed: a diagnostic, or nil.
local function contradiction(job, shapes)
  for i, shape in pairs(shapes) do
    local names, given = core.type_symbols(job.types[i]) or {}, job.search.given[i] or {}
    for axis, size in ipairs(shape) do
      local fixed = names[axis] and job.search.fixed[names[axis]] or given[axis]
      if type(fixed) == "number" and fixed ~= size then
        return core.diag("type", ("input '%s' has the shape (%s), but dimension %d is fixed at %d")
          :format(job.a.params[i].name, table.concat(shape, ", "), axis - 1, fixed))
      end
    end
  end
end

local function run_set(job, number, set, seed)
  local shapes = shapes_of(job, set, shape_of_value)
  local diag = contradiction(job, shapes)
  if diag then return nil, diag end
  return compare_round(job, { number = number, kind = "ordinary", seed = seed, set = set,
    indices = true, sizes = job.search:of_shapes(shapes, job.base) })
end

-- ------------------------------------------------------------------- starting

local function cannot_be(param, shape)
  return core.diag("type", ("input '%s' is %s, which cannot have the shape (%s)"):format(
    param.name, tostring(param.type), table.concat(shape, ", ")))
end

-- Whether a type allows such a shape, "?" for any dim.
local function allows(type_, shape)
  local own = type_.shape
  if own and #own ~= #shape then return false end
  for axis, dim in ipairs(own or {}) do
    if type(dim) == "number" and type(shape[axis]) == "number" and dim ~= shape[axis] then
      return false
    end
  end
  return type_.kind == "tensor"
end

-- The sizes of named dims that stay, and those of others.
local function fixed_sizes(job, options)
  local dims = {}
  for name, size in pairs(options.dims or {}) do dims[name] = size end
  local shapes = shapes_of(job, options.shapes, function(shape) return shape end)
  for i, shape in pairs(shapes) do
    local param = job.a.params[i]
    if not allows(param.type, shape) then return nil, cannot_be(param, shape) end
    for axis, name in ipairs(core.type_symbols(job.types[i]) or {}) do
      if name and type(shape[axis]) == "number" then dims[name] = shape[axis] end
    end
  end
  return dims, shapes
end

-- Whether a table by name or position names inputs only: nil, or a diagnostic.
local function unknown_input(job, what, given)
  for name in pairs(given or {}) do
    if not job.a.by_name[name] and not job.a.params[name] then
      local names = {}
      for i, param in ipairs(job.a.params) do names[i] = param.name end
      return core.diag("name", ("%s: no input is called '%s'%s"):format(what, tostring(name),
        core.suggest(tostring(name), names)))
    end
  end
end

local function check_names(job, options)
  for number, set in ipairs(options.data or {}) do
    local diag = unknown_input(job, ("data set %d"):format(number), set)
    if diag then return diag end
  end
  return unknown_input(job, "shapes", options.shapes)
    or unknown_input(job, "example", options.example)
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
  job.types = {}
  for i, param in ipairs(job.a.params) do job.types[i] = param.type end
  job.describe = function(round) return describe(job, round) end
  local unknown = check_names(job, options)
  if unknown then return nil, unknown end
  local dims, shapes = fixed_sizes(job, options)
  if not dims then return nil, shapes end
  local fn = job.a.fn.kind == "Function" and job.a.fn or nil
  job.search = sizes.new(job.types, fn, is_module(a) and a or nil, { dims = dims,
    shapes = shapes })
  return job
end

-- Where the search for sizes begins: at an example, else at the data.
local function find_base(job, options)
  local example = options.example and shapes_of(job, options.example, function(s) return s end)
  if not example and options.data and options.data[1] then
    example = shapes_of(job, options.data[1], shape_of_value)
  end
  job.base, job.unfit = job.search:base(example)
end

-- ------------------------------------------------------------------- answering

local function open_names(job)
  local names, search = {}, job.search
  for _, name in ipairs(search:names()) do names[#names + 1] = name end
  for i, param in ipairs(job.a.params) do
    if next(search.at[i]) then
      names[#names + 1] = ("the dims of '%s' %s"):format(param.name or i, tostring(param.type))
    end
  end
  return table.concat(names, ", ")
end

local hint = "fix sizes with --dim NAME=SIZE or --shape INPUT=D0,D1 (dims, shapes), or give "
  .. "inputs with --data DIR (data)"

-- Why nothing was compared.
local function vacuous_text(job, report)
  local parts = { report.compared == 0 and "no round could run"
    or "every round that ran gave results without elements" }
  local refused = job.refused
  if refused then
    parts[1] = ("%s: both refuse%s: %s"):format(parts[1], report.compared > 0 and " the others"
      or "", refused.message)
  end
  if job.unfit then parts[#parts + 1] = "no sizes fit: " .. job.unfit end
  if job.searched then
    parts[#parts + 1] = ("sizes that were tried for %s: %s")
      :format(open_names(job), generator.tried)
  end
  if not (refused and lacks_kernel(refused)) then parts[#parts + 1] = hint end
  return table.concat(parts, "; ")
end

local known = { "rounds", "seed", "dims", "shapes", "example", "data", "rtol", "atol", "scaled",
  "units" }

local function count(report, elements)
  report.rounds = report.rounds + 1
  if not elements then
    report.refused = report.refused + 1
    return
  end
  report.compared, report.elements = report.compared + 1, report.elements + elements
end

-- All rounds: the report, or nil and what differs.
local function run_all(job, options)
  local report = { rounds = 0, compared = 0, refused = 0, elements = 0 }
  local seed, sets = options.seed or 1, options.data or {}
  for number, set in ipairs(sets) do
    local elements, diag = run_set(job, number, set, seed + number - 1)
    if elements == nil then return nil, diag end
    count(report, elements)
  end
  for number = 1, options.rounds or (#sets > 0 and 0 or 6) do
    local elements, diag = run_round(job, number, seed + number - 1)
    if elements == nil then return nil, diag end
    if elements then job.ran = true end
    count(report, elements)
  end
  report.reason = job.refused and job.refused.message
  return report
end

local function compare_all(a, b, options)
  local job, diag = prepare(a, b, options)
  if not job then return nil, diag end
  find_base(job, options)
  local report
  report, diag = run_all(job, options)
  if not report then return nil, diag end
  -- Where nothing is refused, results without elements are what it computes.
  if report.compared == 0 or report.elements == 0 and report.refused > 0 then
    return nil, core.diag("unsupported", vacuous_text(job, report))
  end
  return true, report
end

--- true and { rounds, compared, refused, elements, reason }, or nil and a diagnostic:
-- its code is "invalid" for a difference, "unsupported" when nothing could be
-- compared, "limit" when a limit ended it. options: rounds (6), seed (1: that of the
-- first round), dims, shapes, example, data, rtol, atol, scaled, units.
return function(a, b, options)
  options = options or {}
  argument.options(options, "pl.check", known)
  if not main_of(a) or not main_of(b) then
    argument.fail("pl.check: the module has no function 'main'")
  end
  local answer = table.pack(pcall(core.limited, compare_all, a, b, options))
  if answer[1] then return table.unpack(answer, 2, answer.n) end
  local err = answer[2]
  if getmetatable(err) == "perilune.Diag" and err.code == "limit" then return nil, err end
  error(err, 0)
end
