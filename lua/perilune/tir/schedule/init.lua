--- pl.tir.Schedule: schedules of PrimFuncs with blocks, by TVM's names.
--
--     local sch = pl.tir.Schedule(mod)
--     local block = sch:get_block "C"
--     local i, j, k = table.unpack(sch:get_loops(block))
--     local outer, inner = table.unpack(sch:split(i, { nil, 8, n = 2 }))
--     sch:reorder(outer, j, k, inner)
--     print(sch.mod)
--     print(sch.trace)
--
-- A primitive gives variables (of blocks, loops and numbers), which stay valid while what they
-- stand for is there. A refused primitive leaves the schedule as it was. sch:undo() takes the last
-- step back, sch:copy() is another schedule with the same variables.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local instructions = require "perilune.tir.schedule.instructions"
local IndexMap = require "perilune.tir.index_map"
local ir = require "perilune.ir"
local sampling = require "perilune.tir.schedule.sampling"
local State = require "perilune.tir.schedule.state"
local Terms = require "perilune.tir.schedule.terms"
local trace = require "perilune.tir.schedule.trace"
local tree = require "perilune.tir.schedule.tree"

local Schedule = { __name = "perilune.tir.Schedule" }
local methods = {}

local function is_schedule(value) return getmetatable(value) == Schedule end

-- ------------------------------------------------------------------ steps
--
-- A step is { before, count, entry, funcs, random, sampled }: how many steps there are, the trees
-- behind it, the state of the generator and how many decisions there are. Steps form a list that
-- shares its beginning with that of copies.

local function wrap(fields) return setmetatable(fields, Schedule) end

local function entries_of(sch)
  local out, step = {}, sch.step
  while step.before do
    out[step.count] = step.entry
    step = step.before
  end
  return out
end

-- What a variable stands for now: a statement.
local function statement(sch, state, where, variable, role)
  if not trace.is_variable(variable) or sch.values[variable] == nil then
    argument.fail(("%s: a %s of this schedule expected, got %s"):format(where,
      role:gsub("_", " "), trace.is_variable(variable) and "that of another one"
        or argument.kind_of(variable)))
  elseif not role:find(variable.class, 1, true) then
    argument.fail(("%s: a %s expected, got %s"):format(where, role:gsub("_", " "),
      tostring(variable)))
  end
  local stmt = state.by_id[sch.values[variable]]
  if not stmt and type(sch.values[variable]) == "string" then
    argument.fail(("%s: a loop expected, got the place '%s' that was sampled"):format(where,
      sch.values[variable]))
  elseif not stmt then
    argument.fail(("%s: the %s is no longer in the program"):format(where, variable.class))
  end
  return stmt
end

-- A loop, or the name of a place that was sampled instead of one.
local function location(sch, state, where, variable)
  local value = trace.is_variable(variable) and sch.values[variable]
  if type(value) == "string" then return value end
  return statement(sch, state, where, variable, "loop")
end

local function number_of(sch, where, value)
  if trace.is_variable(value) and value.class == "value" and sch.values[value] then
    return sch.values[value]
  elseif value == nil or value == -1 then
    return -1
  elseif math.type(value) ~= "integer" then
    argument.fail(("%s: a factor is an integer or nil, got %s"):format(where,
      argument.kind_of(value)))
  end
  return value
end

local checkers = {
  string = function(value) return type(value) == "string" end,
  boolean = function(value) return type(value) == "boolean" end,
  integer = function(value) return math.type(value) == "integer" end,
}

local list_checkers = { integers = "integer", numbers = "number" }

local function check_list(value, where, what, kind)
  for _, item in ipairs(argument.table(value, where, what)) do
    if type(item) ~= "number" or kind == "integer" and math.type(item) ~= "integer" then
      argument.fail(("%s: %s: a list of %ss expected"):format(where, what, kind))
    end
  end
  return value
end

local function check_value(value, where, depth)
  local kind = type(value)
  if kind == "string" or kind == "number" or kind == "boolean" then return value end
  if kind ~= "table" or getmetatable(value) ~= nil or depth > 8 then
    argument.fail(where .. ": an annotation is a string, a number, a boolean or a list of them")
  end
  for _, item in ipairs(value) do check_value(item, where, depth + 1) end
  return value
end

local function check_buffer(value, where)
  if type(value) ~= "table" or value[1] ~= "read" and value[1] ~= "write"
      or math.type(value[2]) ~= "integer" then
    argument.fail(where .. ": a buffer is { \"read\" or \"write\", its number from 0 }")
  end
  return value
end

local function check_map(value, where)
  if type(value) ~= "table" or type(value.initial_indices) ~= "table" then
    argument.fail(("%s: a function or an IndexMap expected, got %s"):format(where,
      argument.kind_of(value)))
  end
  return value
end

-- An argument as the primitive takes it, of one as the trace keeps it.
local function resolved(sch, state, where, parameter, value)
  local role = parameter.role
  if role == "block" or role == "loop" or role == "loop_or_block" then
    return statement(sch, state, where, value, role)
  elseif role == "location" then
    return location(sch, state, where, value)
  elseif role == "blocks" or role == "loops" then
    local out = {}
    for i, one in ipairs(argument.table(value, where, parameter.name)) do
      out[i] = statement(sch, state, where, one, role:sub(1, -2))
    end
    return out
  elseif role == "factors" then
    local out = {}
    for i = 1, #value do out[i] = number_of(sch, where, value[i]) end
    return out
  elseif list_checkers[role] then
    return check_list(value, where, parameter.name, list_checkers[role])
  elseif role == "value" then
    return check_value(value, where, 1)
  elseif role == "buffer" then
    return check_buffer(value, where)
  elseif role == "index_map" then
    return check_map(value, where)
  elseif not checkers[role](value) then
    argument.fail(("%s: %s: a%s %s expected, got %s"):format(where, parameter.name,
      role == "integer" and "n" or "", role, argument.kind_of(value)))
  end
  return value
end

-- Variables of what a primitive gave.
local function results_of(sch, row, given)
  local out, values = {}, {}
  if row.results == nil then return out, values end
  local class = row.results:gsub("s$", "")
  for i, value in ipairs(type(given) == "table" and given or { given }) do
    out[i] = trace.variable(class)
    values[out[i]] = value
  end
  for variable, value in pairs(sch.values) do values[variable] = value end
  return out, values
end

--- Runs an instruction: `args` by name. Gives the variables of its results.
local function apply(sch, row, args, decision)
  local state, where, list = State.new(sch.terms, sch.step.funcs), "tir.Schedule." .. row.name, {}
  state.primitive, state.decision = row.name, decision
  state.random, state.refit = { state = sch.step.random }, sch.refit
  for i, parameter in ipairs(row.arguments) do
    list[i] = resolved(sch, state, where, parameter, args[parameter.name])
  end
  local given = row.run(state, table.unpack(list, 1, #row.arguments))
  local results, values = results_of(sch, row, given)
  if row.results then sch.values = values end
  sch.step = { before = sch.step, count = sch.step.count + 1, funcs = state.funcs,
    random = state.random.state, sampled = sch.step.sampled + (row.samples and 1 or 0),
    entry = { row = row, args = args, results = results, decision = state.decided } }
  return results
end

-- -------------------------------------------------------------- construction

local function prim_funcs(program)
  if ir.kind_of(program) == "Node" and program.kind == "PrimFunc" then
    local name = program.attrs.global_symbol
    return { [type(name) == "string" and name or "main"] = program }
  elseif ir.kind_of(program) ~= "Module" then
    argument.fail(("tir.Schedule: a module or PrimFunc expected, got %s"):format(
      argument.kind_of(program)))
  end
  local funcs = {}
  for name, fn in pairs(program) do
    if fn.kind == "PrimFunc" then funcs[name] = fn end
  end
  if next(funcs) == nil then argument.fail "tir.Schedule: the module has no PrimFunc" end
  return funcs
end

--- A schedule of the PrimFuncs of a module, or of one. Options: seed (1), an integer from 0;
-- decisions: what sample_* primitives decide, in order (false, and those behind the last one: as
-- the seed has it), or a function of the number of a decision and of how many alternatives it has,
-- which gives the number of one of these, both from 1 on; refit: a decision of the list that the
-- program does not have is as the seed has it.
local function new(_, program, options)
  options = argument.options(options, "tir.Schedule", { "seed", "decisions", "refit" })
  local decisions = options.decisions or {}
  if type(decisions) ~= "function" then
    argument.table(decisions, "tir.Schedule", "decisions")
    decisions = table.move(decisions, 1, #decisions, 1, {})
  end
  local seed, terms, funcs = options.seed or 1, Terms.new(), {}
  if math.type(seed) ~= "integer" or seed < 0 then
    argument.fail "tir.Schedule: the seed is an integer from 0 on"
  end
  for name, fn in pairs(prim_funcs(program)) do funcs[name] = tree.read_func(terms, fn) end
  local module = ir.kind_of(program) == "Module" and program or core.module {}
  return wrap { terms = terms, values = {}, module = module,
    decisions = decisions, refit = options.refit and true or false,
    step = { count = 0, sampled = 0, funcs = funcs, random = sampling.seed(seed) } }
end

--- Another schedule with the same steps and variables; `seed` begins its decisions anew.
function methods.copy(sch, seed)
  local step = sch.step
  if seed ~= nil then
    if math.type(seed) ~= "integer" or seed < 0 then
      argument.fail "tir.Schedule.copy: the seed is an integer from 0 on"
    end
    step = tree.with(step, { random = sampling.seed(seed) })
  end
  return wrap { terms = sch.terms, values = sch.values, module = sch.module, step = step,
    decisions = seed == nil and sch.decisions or {}, refit = sch.refit }
end

--- Takes back the last step.
function methods.undo(sch)
  if not sch.step.before then argument.fail "tir.Schedule.undo: there is no step" end
  local values = tree.with(sch.values, {})
  for _, variable in ipairs(sch.step.entry.results) do values[variable] = nil end
  sch.values, sch.step = values, sch.step.before
  return sch
end

function methods.n_steps(sch) return sch.step.count end

-- ---------------------------------------------------------------- primitives

-- The only function, or "main".
local function default_func(sch)
  local name = next(sch.step.funcs)
  return next(sch.step.funcs, name) == nil and name or "main"
end

-- Arguments by position as the trace has them: variadic rows take variables until an option.
local function positional(sch, row, ...)
  local args, given = {}, table.pack(...)
  if row.variadic then
    local list, n = {}, 0
    while trace.is_variable(given[n + 1]) do
      n = n + 1
      list[n] = given[n]
    end
    if n < given.n and (type(given[n + 1]) ~= "table" or trace.is_variable(given[n + 1])
        or n + 1 < given.n) then
      argument.fail(("tir.Schedule.%s: a loop of this schedule expected, got %s"):format(row.name,
        argument.kind_of(given[n + 1])))
    end
    args[row.variadic] = list
    for key, value in pairs(given[n + 1] or {}) do args[key] = value end
  else
    for i, parameter in ipairs(row.arguments) do args[parameter.name] = given[i] end
  end
  for _, parameter in ipairs(row.arguments) do
    if args[parameter.name] == nil then args[parameter.name] = parameter.default end
  end
  if row.name == "get_block" and args.func_name == nil then args.func_name = default_func(sch) end
  return args
end

-- Factors with nil in them: the count is that of `n`, or of the last one.
local function normal_factors(factors)
  argument.table(factors, "tir.Schedule.split", "factors")
  local out, n = {}, factors.n or 0
  for key in pairs(factors) do
    if math.type(key) == "integer" and key > n and key <= 64 then n = key end
  end
  if math.type(n) ~= "integer" or n < 1 or n > 64 then
    argument.fail "tir.Schedule.split: 1 to 64 factors expected"
  end
  for i = 1, n do out[i] = factors[i] == nil and -1 or factors[i] end
  return out
end

-- What the options of the schedule say of its i-th decision; nil: as the seed has it.
local function decision_of(sch, i)
  local decisions = sch.decisions
  if type(decisions) == "table" then return decisions[i] or nil end
  return function(n) return decisions(i, n) end
end

-- A map of a Lua function, and the separators among its results, which only transform_layout takes.
local function map_of(row, mapping)
  local ndim = debug.getinfo(mapping, "u").nparams
  if row.name == "transform_layout" then
    return IndexMap.from_func_with_separators(mapping, ndim)
  end
  return IndexMap.from_func(mapping, ndim), {}
end

-- transform_layout by a map with separators: the second step of two, both or none.
local function with_separators(sch, row, args, separators)
  local whole = sch:copy()
  apply(whole, row, args)
  apply(whole, instructions.set_axis_separator, { block = args.block, buffer = args.buffer,
    axis_separators = separators })
  sch.values, sch.step = whole.values, whole.step
end

local function run(sch, row, ...)
  local args, separators = positional(sch, row, ...), {}
  if row.name == "split" then args.factors = normal_factors(args.factors) end
  if type(args.index_map) == "function" then
    args.index_map, separators = map_of(row, args.index_map)
  end
  local decision
  if row.samples then
    decision = select(#row.arguments + 1, ...)
    if decision == nil then decision = decision_of(sch, sch.step.sampled + 1) end
  end
  if #separators > 0 then return with_separators(sch, row, args, separators) end
  return apply(sch, row, args, decision)
end

for _, row in ipairs(instructions) do
  local single = row.results == "block" or row.results == "loop" or row.results == "value"
  methods[row.name] = function(sch, ...)
    if not is_schedule(sch) then
      argument.fail(("tir.Schedule.%s: a schedule expected"):format(row.name))
    end
    local results = run(sch, row, ...)
    if single then return results[1] end
    if row.results then return results end
  end
end

--- Whether decompose_padding of a block, in front of a loop, would be done.
function methods.can_decompose_padding(sch, block, loop)
  local row, state = instructions.decompose_padding, State.new(sch.terms, sch.step.funcs)
  local where = "tir.Schedule.can_decompose_padding"
  statement(sch, state, where, block, "block")
  statement(sch, state, where, loop, "loop")
  return (pcall(apply, sch:copy(), row, { block = block, loop = loop }))
end

--- What a variable stands for: a number, or the For, or the Block, as a node; of a sampled place
-- that is no loop, "root" or "inline".
function methods.get(sch, variable)
  local value = trace.is_variable(variable) and sch.values[variable]
  if value and (variable.class == "value" or type(value) == "string") then return value end
  local state = State.new(sch.terms, sch.step.funcs)
  local stmt = statement(sch, state, "tir.Schedule.get", variable, "loop_or_block")
  local node = core.seal(tree.write(sch.terms, stmt))
  return stmt.kind == "Block" and node.block or node
end

-- ------------------------------------------------------------------- trace

--- Applies the steps of a trace (or of another schedule) behind those that there are; decisions are
-- taken as they were. When one is refused, none of them stays.
function methods.apply_trace(sch, other)
  local entries = is_schedule(other) and entries_of(other)
    or trace.is(other) and other.entries
    or argument.fail "tir.Schedule.apply_trace: a trace or a schedule expected"
  local whole = sch:copy()
  trace.each_entry(entries, function(row, args, decision)
    return apply(whole, row, args, decision)
  end)
  sch.values, sch.step = whole.values, whole.step
  return sch
end

--- The same of a text that trace:as_json made.
function methods.apply_json(sch, text)
  argument.string(text, "tir.Schedule.apply_json", "text")
  local whole = sch:copy()
  trace.each_json(text, function(row, args, decision) return apply(whole, row, args, decision) end)
  sch.values, sch.step = whole.values, whole.step
  return sch
end

trace.Trace.apply_to_schedule = function(self, sch)
  if not is_schedule(sch) then
    argument.fail "trace:apply_to_schedule: a schedule expected"
  end
  return sch:apply_trace(self)
end

-- ------------------------------------------------------------------ fields

-- The module of a step is made when it is asked for.
local function module_of(sch)
  local step = sch.step
  if not step.module then
    local funcs = {}
    for name, func in pairs(step.funcs) do
      funcs[name] = core.seal(tree.write_func(sch.terms, func))
    end
    step.module = sch.module:with(funcs)
  end
  return step.module
end

local fields = { mod = module_of, trace = function(sch) return trace.new(entries_of(sch)) end }

function Schedule.__index(sch, key)
  if fields[key] then return fields[key](sch) end
  return methods[key]
end

function Schedule.__tostring(sch) return tostring(sch.trace) end

return setmetatable({ methods = methods }, { __call = new })
