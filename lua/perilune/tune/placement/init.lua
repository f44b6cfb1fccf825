--- pl.tune.placement: which backend computes which part of a function, after Collage (Jeon et al.,
-- PACT 2022).
--
--     local result = pl.tune.placement { mod = model, backends = { "evaluator", "c" } }
--     print(result.cost, result.base_cost)
--     for _, part in ipairs(result.parts) do print(part.backend, part.seconds, #part.nodes) end
--
-- A backend takes parts of the function: what its patterns match, or groups of calls. Each part is
-- extracted and measured alone, equal ones once for each backend, where that can be in turn with
-- the host. Dynamic programming over the
-- calls in order then covers the function by parts of the least sum, with what it costs to move
-- values from one backend to another one. Where the result can run as a whole, it is compared with
-- the original and with covers that do without one of the backends: sums of parts are estimates.
-- Parts of backends with a
-- compiler become functions of the module with the attribute Compiler, as PartitionGraph makes
-- them; those of backends with a transform are replaced by what it makes.

local argument = require "perilune.argument"
local backends = require "perilune.tune.placement.backends"
local builder = require "perilune.tune.run.builder"
local boundary = require "perilune.tune.placement.boundary"
local core = require "perilune.core"
local cover = require "perilune.tune.placement.cover"
local ir = require "perilune.ir"
local runner = require "perilune.tune.run.runner"
local sizes = require "perilune.tune.placement.sizes"
local subgraph = require "perilune.tune.subgraph"
core.internal()

local where = "pl.tune.placement"

local names = { "mod", "backends", "name", "runner", "measure", "boundary", "max_states",
  "check", "dims", "seconds" }

-- The share of the seconds until the end of measuring parts: the whole is compared after that.
local SHARE_OF_PARTS = 0.7

local function seconds_option(seconds)
  if seconds == nil then return math.huge end
  if type(seconds) ~= "number" or seconds ~= seconds or seconds <= 0 then
    argument.fail(where .. ": seconds: a number above 0 expected")
  end
  return seconds
end

local function checked(options)
  options = argument.options(options, where, names)
  if argument.kind_of(options.mod) ~= "Module" then
    argument.fail(("%s: mod: a module expected, got %s"):format(where,
      argument.kind_of(options.mod)))
  end
  if options.measure ~= nil then argument.callable(options.measure, where, "measure") end
  if options.runner ~= nil and not runner.is(options.runner) then
    argument.fail(where .. ": runner: pl.tune.runner makes one")
  end
  local most = options.max_states or 4096
  if math.type(most) ~= "integer" or most < 1 then
    argument.fail(where .. ": max_states: an integer from 1 on expected")
  end
  return { given = options.mod, dims = sizes.check(options.dims, where),
    seconds = seconds_option(options.seconds), unmeasured = 0,
    name = argument.string(options.name or "main", where, "name"),
    backends = backends.list(options.backends, where), measure = options.measure,
    boundary = boundary.cost(options.boundary, options.measure == nil, where),
    runner = options.runner or runner.new { pairs = 10 }, max_states = most,
    check = options.check ~= false, known = {}, reasons = {}, measured = 0, host_seconds = {} }
end

-- -------------------------------------------------------------------- measuring

-- What a backend runs for a part; nil where its transform changes nothing. Transforms see the
-- attributes of the module, which say what its opset is.
local function program_of(self, backend, part)
  if not backend.transform then return part.mod end
  local before = part.mod.functions.main
  local out = backend.transform(core.module({ main = before }, self.mod.attrs))
  local after = out.functions.main
  if after.body.type ~= before.body.type then
    return error(("its result is %s instead of %s"):format(tostring(after.body.type),
      tostring(before.body.type)), 0)
  end
  local program = core.module { main = after }
  return not core.module_equal(program, part.mod) and program or nil
end

local function run(self, backend, mod)
  if self.measure then return self.measure(mod, backend.name) end
  local before = backend.blas and core.blas()
  if backend.blas then core.blas(backend.blas) end
  local ok, seconds, why = pcall(function()
    local runnable, reason = backend.builder:before(self.deadline):build(mod)
    if not runnable then return nil, reason end
    local result, wrong = self.runner:run(runnable)
    return result and result.min, wrong
  end)
  if before then core.blas(before) end
  if not ok then return nil, seconds end
  return seconds, why
end

-- Whether programs of a backend and of the host can alternate in one process.
local function is_comparable(self, backend)
  local host = self.backends[1]
  local in_process = { evaluator = true, c = true }
  return backend ~= host and not self.measure and backend.blas == host.blas
    and in_process[backend.builder.kind] and in_process[host.builder.kind]
end

-- What the host takes for the calls of a part, one by one; nil where one was not measured.
local function host_seconds(self, part)
  local sum = 0
  for _, node in ipairs(part.nodes) do
    if node.kind == "Call" then
      if not self.host_seconds[node] then return nil end
      sum = sum + self.host_seconds[node]
    end
  end
  return sum
end

-- The comparison of two modules, which alternate: nil and a failure.
local function compare(self, backend, mod, original)
  local candidate, why = backend.builder:before(self.deadline):build(mod)
  if not candidate then return nil, why end
  local incumbent, reason = self.backends[1].builder:before(self.deadline):build(original)
  if not incumbent then return nil, reason end
  return self.comparing:compare(candidate, incumbent)
end

-- The seconds of a part: what the host takes for it, times a ratio that other work on the machine
-- changes little; false where the backend is not faster with confidence.
local function seconds_of(self, backend, mod, part)
  local base = is_comparable(self, backend) and host_seconds(self, part)
  if not base then return run(self, backend, mod) end
  local result, why = compare(self, backend, mod, part.mod)
  if not result then return nil, why end
  return result.verdict == "faster" and base * result.ratio
end

-- { mod =, seconds = } or { reason = } of a backend and a part's module.
local function measure_module(self, backend, part)
  local ok, mod = pcall(program_of, self, backend, part)
  if ok and not mod then return {} end
  local seconds, why
  if ok then seconds, why = seconds_of(self, backend, mod, part) else why = mod end
  if seconds == false then
    self.measured = self.measured + 1
    return {}
  end
  self.measured = self.measured + 1
  if type(seconds) == "number" and seconds >= 0 and seconds < math.huge then
    return { mod = mod, seconds = seconds }
  end
  if require "perilune.tune.run.failure".is_interrupt(why) then error(why, 0) end
  return { reason = tostring(why or seconds) }
end

local function measure_part(self, backend, part)
  local key = backend.name .. "/" .. core.module_hash(part.mod)
  for _, known in ipairs(self.known[key] or {}) do
    if core.module_equal(known.of, part.mod) then return known.result end
  end
  local result = measure_module(self, backend, part)
  self.known[key] = self.known[key] or {}
  table.insert(self.known[key], { of = part.mod, result = result })
  if result.reason and not self.reasons[key] then
    self.reasons[key] = ("%s: %s"):format(backend.name, result.reason)
    table.insert(self.reasons, self.reasons[key])
  end
  return result
end

-- ------------------------------------------------------------------- candidates

local function add_candidate(self, candidates, backend, part)
  local result = measure_part(self, backend, part)
  if not result.seconds then return end
  local places = {}
  for _, node in ipairs(part.nodes) do
    if node.kind == "Call" then places[#places + 1] = self.index.place[node] end
  end
  if #places == 0 then return end
  table.sort(places)
  local list = candidates[places[1]] or {}
  candidates[places[1]] = list
  if backend == self.backends[1] and #places == 1 then
    for _, node in ipairs(part.nodes) do self.host_seconds[node] = result.seconds end
  end
  local one = { backend = backend, part = part, places = places, cost = result.seconds,
    mod = result.mod }
  if self.boundaries then boundary.describe(self.boundaries, one) end
  list[#list + 1] = one
end

-- Parts of a backend; those that take the host the longest come first.
local function parts_of(self, backend)
  local list, rows = backends.parts(backend, self.index, self.name), {}
  if backend == self.backends[1] then return list end
  for i, part in ipairs(list) do
    rows[i] = { part = part, seconds = host_seconds(self, part) or 0, index = i }
  end
  table.sort(rows, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.index < b.index
  end)
  for i, row in ipairs(rows) do list[i] = row.part end
  return list
end

-- Whether the time for parts is spent; what the host takes has to be known.
local function is_spent(self, backend)
  if core.interrupted() then core.raise(core.diag("interrupted", "interrupted")) end
  if core.clock() < self.end_of_parts then return false end
  if backend ~= self.backends[1] then return true end
  return core.raise(core.diag("unsupported", ("%s: %g s are less than what it takes to measure the "
    .. "parts by the host, '%s'"):format(where, self.seconds, backend.name)))
end

-- By the first place of each.
local function candidates_of(self)
  local candidates = {}
  for _, backend in ipairs(self.backends) do
    for _, part in ipairs(parts_of(self, backend)) do
      if is_spent(self, backend) then
        self.unmeasured = self.unmeasured + 1
      else
        add_candidate(self, candidates, backend, part)
      end
    end
  end
  return candidates
end

-- -------------------------------------------------------------------- the result

-- The part with annotations for its compiler around it.
local function annotated(part, compiler)
  local fn = part.mod.functions.main
  local params, image, value = {}, {}, {}
  local attrs = { compiler = compiler }
  for i, param in ipairs(fn.params) do
    params[i] = ir.Var(("p%d"):format(i - 1), param.type)
    value[param] = params[i]
  end
  -- Constants belong to the part: what a type depends on (the shape of a reshape) is known inside.
  local function begin(operand)
    if operand.kind == "Constant" then return operand end
    return image[operand]
      or ir.Call("annotation.compiler_begin", { value[operand] or operand }, attrs)
  end
  for node in fn:nodes() do
    if node.kind == "Call" then
      local args = {}
      for i, operand in ipairs(node.args) do args[i] = begin(operand) end
      image[node] = node:with { args = args }
    end
  end
  local body = ir.Call("annotation.compiler_end", { image[fn.body] }, attrs)
  return core.module { main = ir.Function(params, body) }
end

-- A function without calls has no parts; one of which no part can be measured has no placement.
local function check_candidates(self, candidates)
  if next(candidates) == nil and self.reasons[1] then
    core.raise(core.diag("unsupported", ("%s: no part can be measured: %s"):format(where,
      self.reasons[1])))
  end
  return candidates
end

local function replace_parts(mod, chosen)
  local parts, replacements, compiles = {}, {}, false
  for _, one in ipairs(chosen) do
    local compiler = one.backend.compiler
    if compiler or one.backend.transform then
      parts[#parts + 1] = one.part
      replacements[#parts] = compiler and annotated(one.part, compiler) or one.mod
      compiles = compiles or compiler ~= nil
    end
  end
  local out = subgraph.substitute(mod, parts, replacements)
  return compiles and core.make("PartitionGraph", {})(out) or out
end

local function describe(chosen)
  local list = {}
  for i, one in ipairs(chosen) do
    list[i] = { backend = one.backend.name, seconds = one.cost, nodes = one.part.nodes,
      mod = one.part.mod }
  end
  return list
end

-- ---------------------------------------------------------------------- the whole

-- What a user's C computes of the result: the option external of pl.build.
local function external_of(backends_used)
  local external = {}
  for _, backend in ipairs(backends_used) do
    if backend.builder.kind == "function" then external[backend.compiler] = backend.builder end
  end
  return external
end

-- The comparison of two modules as C, with what a user's C computes linked.
local function compare_compiled(self, external, mod, original)
  local compiled = builder.new { kind = "c", external = external }:before(self.deadline)
  local candidate, why = compiled:build(mod)
  if not candidate then return nil, why end
  local incumbent, reason = compiled:build(original)
  if not incumbent then return nil, reason end
  return self.comparing:compare(candidate, incumbent)
end

-- Candidates of all backends but one.
local function without(candidates, backend)
  local out = {}
  for place, list in pairs(candidates) do
    out[place] = {}
    for _, one in ipairs(list) do
      if one.backend ~= backend then table.insert(out[place], one) end
    end
  end
  return out
end

local function cover_of(self, candidates)
  return cover(self.index.order, candidates, self.max_states, self.backends[1], self.boundaries)
end

-- Kinds of builders whose parts are in C that pl.build makes.
local linked = { c = true, ["function"] = true }

-- The backends that a cover has, but the host, in order; how all of it can run as a whole: by the
-- host ("host"), as C with a user's functions ("compiled"), or not (nil).
local function used(self, found)
  local list, seen, runs, compiled = {}, {}, true, false
  for _, one in ipairs(found.chosen) do
    local backend = one.backend
    if backend ~= self.backends[1] and not seen[backend] then
      list[#list + 1], seen[backend] = backend, true
      runs = runs and not backend.compiler and is_comparable(self, backend)
      compiled = compiled or backend.builder.kind == "function"
    end
  end
  if self.measure or #list == 0 then return list, nil end
  for _, backend in ipairs(list) do
    compiled = compiled and backend.compiler and linked[backend.builder.kind]
  end
  return list, runs and "host" or compiled and "compiled" or nil
end

-- The covers that are compared as a whole: all backends, and without one of several.
local function covers_of(self, candidates, found, backends_used)
  local list = { found }
  for _, backend in ipairs(#backends_used > 1 and backends_used or {}) do
    list[#list + 1] = cover_of(self, without(candidates, backend))
  end
  return list
end

-- The fastest of the covers as a whole, and how it compares with the original: nil where none is
-- faster with confidence.
local function fastest(self, covers, compare_whole)
  local best, incumbent, ratio = nil, self.mod, 1
  for _, found in ipairs(covers) do
    local out = replace_parts(self.mod, found.chosen)
    local result, why
    if out ~= self.mod then result, why = compare_whole(out, incumbent) end
    if why then table.insert(self.reasons, "the whole: " .. tostring(why)) end
    if result and result.verdict == "faster" then
      ratio, incumbent = ratio * result.ratio, out
      best = { found = found, mod = out, verdict = "faster", ratio = ratio,
        confidence = result.confidence }
    end
  end
  return best
end

-- What is taken: of the sums, or of the comparison as a whole where that can be.
local function decide(self, candidates)
  local found = cover_of(self, candidates)
  local backends_used, runs = used(self, found)
  if #backends_used == 0 or not runs then
    return { found = found, mod = replace_parts(self.mod, found.chosen) }
  end
  local external = runs == "compiled" and external_of(backends_used)
  local best = fastest(self, covers_of(self, candidates, found, backends_used),
    function(mod, original)
      if external then return compare_compiled(self, external, mod, original) end
      return compare(self, self.backends[1], mod, original)
    end)
  if best then return best end
  for i = 2, #self.backends do candidates = without(candidates, self.backends[i]) end
  return { found = cover_of(self, candidates), mod = self.mod, verdict = "undecided", ratio = 1,
    confidence = 0 }
end

-- The given module with what was decided for the one that was measured.
local function result_module(self, best)
  if self.given == self.mod or best.mod == self.mod then
    return best.mod == self.mod and self.given or best.mod
  end
  return replace_parts(self.given, sizes.unbound(self.given, best.found.chosen, self.index,
    self.name, function(backend, part) return program_of(self, backend, part) end, where))
end

local function checked_result(self, out)
  if not self.check or out == self.given then return out end
  local ok, diag = require "perilune.check"(self.given, out, { rounds = 2, rtol = 1e-3,
    atol = 1e-4, scaled = true, dims = self.dims })
  if not ok then core.raise(core.diag("unsupported", where .. ": " .. tostring(diag))) end
  return out
end

--- Places { mod =, backends = names ("evaluator", "own", "openblas", "c", "com.microsoft") or
-- tables (see perilune.tune.placement.backends), name = "main", runner =, measure = a function of
-- a module and a backend's name that gives seconds, boundary = what it costs that a value goes
-- from one backend to another: { seconds =, bandwidth = } where one of them has a compiler, or a
-- function of bytes and both names (by default a copy on this machine, nothing with `measure`;
-- false: nothing), max_states = states of the dynamic programming that are kept for each call
-- (4096), check = true: the result is compared with mod, dims = sizes by name that open sizes have
-- while parts are measured: the result keeps them open, seconds = the budget }. The first backend
-- is the host, which computes what no other one does. The result: mod, cost, base_cost (all by the
-- host), boundary_cost (what of the cost is moving values), parts ({ backend =, seconds =, nodes =,
-- mod = }), measured, unmeasured (parts, for want of time), exact (no state was dropped), reasons
-- (of parts that could not be measured); and, where no part has a compiler, or parts of a user's C
-- functions are linked to generated C (pl.build), verdict, ratio and confidence of the result as a
-- whole against mod, which is the result where nothing is faster.
return function(options)
  local self = checked(options)
  self.deadline = core.clock() + self.seconds
  self.end_of_parts = core.clock() + self.seconds * SHARE_OF_PARTS
  self.mod, self.index = sizes.bind(self.given, self.dims, self.name, not self.measure, where)
  self.boundaries = boundary.new(self.index, self.boundary)
  self.runner = self.runner:before(self.deadline)
  self.comparing = self.runner:with { pairs = math.max(self.runner.pairs, 40) }
  local best = decide(self, check_candidates(self, candidates_of(self)))
  local found = best.found
  return { mod = checked_result(self, result_module(self, best)), verdict = best.verdict,
    ratio = best.ratio, confidence = best.confidence, cost = found.cost,
    base_cost = found.base_cost, boundary_cost = found.moved, parts = describe(found.chosen),
    measured = self.measured, unmeasured = self.unmeasured, exact = found.exact,
    reasons = self.reasons }
end
