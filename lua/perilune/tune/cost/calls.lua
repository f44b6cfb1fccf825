--- pl.tune.call_costs: what calls cost, by measuring each distinct one once: its operator,
-- attributes, and the types of its operands. As TASO's and Tensat's cost model: the cost of a
-- program is the sum over its calls, and calls of constants alone cost nothing.
--
--     local costs = pl.tune.call_costs { database = pl.tune.database { path = "calls.db" } }
--     print(costs:of_module(mod), costs.count.measured)
--     local scope <close> = costs:enter()
--     mod = pl.passes.EqualitySaturation { cost = "measured" } (mod)
--
-- A call is measured as a module of its own: operands that are computed of constants are constants
-- of random elements, the others are parameters. What a run of no call takes is subtracted. Of a
-- large result that the evaluator computes one element is returned, so that its memory is used
-- again by the next run, as that of a value inside of a program: fresh pages may take several times
-- as long as the call. A call that reads constants above all is measured with several of them, one
-- after the other, because a program has read other weights before it reads the same again.
-- Seconds are kept in the database as measurement records, so that a second run measures nothing
-- and decides the same. The workload is the module with parameters in place of random constants;
-- the target names the builder, the processor, and which operands are such constants.

local argument = require "perilune.argument"
local builder = require "perilune.tune.run.builder"
local bytes_of = require "perilune.tune.cost.tensor_bytes"
local core = require "perilune.core"
local database = require "perilune.tune.database"
local failure = require "perilune.tune.run.failure"
local ir = require "perilune.ir"
local runner = require "perilune.tune.run.runner"
core.internal()

local calls = {}

local methods = {}
local class = { __name = "call costs", __index = methods }

local where = "pl.tune.call_costs"

local KEY = "perilune.call_cost"

-- Calls in a chain, of which one less gives the time of one.
local CHAIN = 17

-- ---------------------------------------------------------------------- modules

local formats = { int64 = "<i8", int32 = "<i4", int16 = "<i2", int8 = "<i1", uint8 = "<I1",
  bool = "<I1", uint16 = "<I2", uint32 = "<I4", uint64 = "<i8" }

local function constant_of(type_, elements, seed)
  local format, parts = formats[type_.dtype], {}
  if type(elements) ~= "table" then
    return core.generate_input(type_.dtype, type_.shape, "ordinary", seed)
  end
  for i, x in ipairs(elements) do parts[i] = format:pack(x) end
  return core.tensor_bytes(table.concat(parts), type_.shape, type_.dtype)
end

-- Whether all sizes are known.
local function is_static(type_)
  if type_.kind == "tuple" then
    for _, field in ipairs(type_.parts) do
      if not is_static(field) then return false end
    end
    return true
  end
  for _, dim in ipairs(type_.shape or { false }) do
    if math.type(dim) ~= "integer" then return false end
  end
  return type_.dtype ~= nil
end

-- A parameter or a constant of that type; a tuple is one of them.
local function operand(type_, constant, params, seed)
  if type_.kind == "tuple" then
    local fields = {}
    for i, field in ipairs(type_.parts) do fields[i] = operand(field, constant, params, seed) end
    return ir.Tuple(fields)
  elseif constant and formats[type_.dtype] == nil or type(constant) == "table" then
    return ir.Constant(constant_of(type_, constant, seed))
  end
  params[#params + 1] = ir.Var("p" .. #params, type_)
  return params[#params]
end

local function attrs_of(attrs, n_results)
  local out = {}
  for name, value in pairs(attrs) do out[name] = value end
  if n_results > 0 then out.n_results = n_results end
  return out
end

-- Results of more bytes are not returned.
local MOST_BYTES = 65536

-- Whether a result is so large, and has an element.
local function is_large(type_)
  local first = type_.kind == "tuple" and type_.parts[1] or type_
  local n = is_static(type_) and bytes_of(type_)
  return n and n > MOST_BYTES and first.kind == "tensor" and #first.shape > 0
    and bytes_of(first) > 0
end

-- The first element of a tensor, or of the first tensor of a tuple.
local function first_element(call)
  local x = call.type.kind == "tuple" and ir.TupleGetItem(call, 0) or call
  local starts, ends, axes = {}, {}, {}
  for i = 1, #x.type.shape do starts[i], ends[i], axes[i] = 0, 1, i - 1 end
  return ir.Call("strided_slice", { x }, { starts = starts, ends = ends, axes = axes })
end

-- Constants of fewer bytes stay in a cache; those of the copies of a call are no more than
-- MOST_READ, and the copies no more than MOST_COPIES.
local LEAST_READ, MOST_READ, MOST_COPIES = 1 << 18, 1 << 26, 64

-- How many calls with constants of their own are measured together.
local function n_copies(question, result)
  local constants, others = 0, bytes_of(result) or math.huge
  for i, type_ in ipairs(question.types) do
    local n = bytes_of(type_) or math.huge
    if question.constants[i] == true then constants = constants + n else others = others + n end
  end
  if constants < math.max(LEAST_READ, 2 * others) or constants == math.huge then return 1 end
  return math.max(1, math.min(MOST_COPIES, MOST_READ // constants))
end

local function call_of(question, params, shared, recorded, seed)
  local args = {}
  for i, type_ in ipairs(question.types) do
    local constant = question.constants[i]
    if constant == true then
      args[i] = operand(type_, not recorded, params, seed)
    else
      shared[i] = shared[i] or operand(type_, constant, params, seed)
      args[i] = shared[i]
    end
  end
  return ir.Call(question.op, args, attrs_of(question.attrs, question.n_results))
end

-- The module of a call; `recorded`: that which stands for it in the database, where constants that
-- are random are parameters. And whether it has one element of the result only, and how often it
-- has the call.
local function module_of(self, question, recorded)
  local params, shared, results = {}, {}, {}
  local call = call_of(question, params, shared, recorded, 1)
  local n = n_copies(question, call.type)
  -- Compiled, only that element might be computed.
  local short = self.builder.kind == "evaluator" and is_large(call.type)
  for i = 1, n do
    if i > 1 then call = call_of(question, params, shared, recorded, i) end
    results[i] = short and first_element(call) or call
  end
  local body = n > 1 and ir.Tuple(results) or results[1]
  return core.module { main = ir.Function(params, body) }, short, n
end

-- -------------------------------------------------------------------- measuring

-- A text of all that the cost depends on.
local function key_of(question)
  local parts = { question.op, question.n_results, tostring(question.attrs) }
  for i, type_ in ipairs(question.types) do
    local constant = question.constants[i]
    local flag = type(constant) == "table" and table.concat(constant, ",") or tostring(constant)
    parts[#parts + 1] = flag .. " " .. tostring(type_)
  end
  return table.concat(parts, ";")
end

local function measure(self, mod)
  local runnable, why = self.builder:build(mod)
  local result
  if runnable then result, why = self.runner:run(runnable) end
  if why and failure.is_interrupt(why) then error(why, 0) end
  return result and result.min
end

-- A text of the operands that are random constants.
local function constants_text(question)
  local parts = {}
  for i, constant in ipairs(question.constants) do
    if constant == true then parts[#parts + 1] = i end
  end
  return #parts > 0 and ", constant operands " .. table.concat(parts, " ") or ""
end

-- What the database has of a workload, or nil.
local function recorded_seconds(self, workload, target)
  local known = self.database:get_measurement_record(workload, target)[1]
  if known then self.count.recorded = self.count.recorded + 1 end
  return known
end

-- The seconds of a run of what make() makes; nil: they cannot be had.
local function measured_seconds(self, make)
  local seconds = measure(self, make())
  local outcome = seconds and "measured" or "failed"
  self.count[outcome] = self.count[outcome] + 1
  return seconds
end

-- The seconds of a run, from records or measured; `mod` stands for what make() makes in the
-- database. nil: they cannot be had.
local function seconds_of(self, mod, target, make)
  local is_over = core.clock() >= self.deadline
  -- A file that is only read gets no workloads.
  local workload = (not is_over or self.database:has_workload(mod))
    and self.database:commit_workload(mod)
  local known = workload and recorded_seconds(self, workload, target)
  if known then return known end
  if is_over then
    self.count.unmeasured = self.count.unmeasured + 1
    return nil
  end
  local seconds = measured_seconds(self, make)
  if seconds then self.database:commit_measurement_record(workload, target, { seconds }) end
  return seconds
end

local function chain(n)
  local x = ir.Var("p0", "Tensor[(4), float32]")
  local y = x
  for _ = 1, n do y = ir.Call("add", { y, x }) end
  return core.module { main = ir.Function({ x }, y) }
end

--- What a call takes at least, and a run of no call, in seconds: { call =, run = }.
function methods.overhead(self)
  if not self.known_overhead then
    local function seconds(n)
      local mod = chain(n)
      return seconds_of(self, mod, self.target, function() return mod end) or 0
    end
    local one, many = seconds(1), seconds(CHAIN)
    local call = math.max((many - one) / (CHAIN - 1), 0)
    self.known_overhead = { call = call, run = math.max(one - call, 0) }
  end
  return self.known_overhead
end

local function is_measurable(question)
  for _, type_ in ipairs(question.types) do
    if not is_static(type_) then return false end
  end
  return true
end

local function cost_of(self, question)
  if not is_measurable(question) then return math.huge end
  local ok, mod, short, n = pcall(module_of, self, question, true)
  local seconds = ok and seconds_of(self, mod, self.target .. constants_text(question),
    function() return (module_of(self, question)) end)
  if not seconds then return math.huge end
  local overhead = self:overhead()
  return math.max((seconds - overhead.run) / n - (short and overhead.call or 0), overhead.call)
end

--- The seconds of a call of { op =, attrs =, types =, constants =, n_results = }, as the attribute
-- perilune.call_cost gets them; math.huge where they are not known.
function methods.ask(self, question)
  local key = key_of(question)
  local cost = self.known[key]
  if not cost then
    cost = cost_of(self, question)
    self.known[key] = cost
  end
  return cost
end

-- ---------------------------------------------------------------------- programs

-- Small constants of integers, which the engine tells by their elements.
local MOST_ELEMENTS = 64

local function count_of(shape)
  local n = 1
  for _, extent in ipairs(shape) do n = n * extent end
  return n
end

local function elements_of(tensor)
  local n = count_of(tensor.shape)
  if not formats[tensor.dtype] or n == 0 or n > MOST_ELEMENTS then return nil end
  local format, bytes, list, at = formats[tensor.dtype], tensor:to_bytes(), {}, 1
  for i = 1, n do list[i], at = format:unpack(bytes, at) end
  return list
end

-- What the attribute's function is asked of a call; `constant`: the set of nodes that are computed
-- of constants.
local function question_of(call, constant)
  local types, constants = {}, {}
  for i, arg in ipairs(call.args) do
    types[i] = arg.type
    constants[i] = arg.kind == "Constant" and elements_of(arg.data) or constant[arg] or false
  end
  return { op = call.op.name, attrs = call.attrs, types = types, constants = constants,
    n_results = call.n_results }
end

--- The seconds of a call of a program, whose `constant` nodes are known; math.huge where they
-- cannot be measured.
function methods.of_call(self, call, constant)
  return self:ask(question_of(call, constant))
end

--- The seconds of a module: the sum over its calls, each with what it takes by itself. The
-- analytic estimate stands for those that cannot be measured.
function methods.of_module(self, mod)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail("of_module: a module expected, got " .. argument.kind_of(mod))
  end
  return require "perilune.tune.cost.estimate".measured(mod, self)
end

-- ------------------------------------------------------------------------- use

-- The one in use is the last.
local in_use = {}
local registered = false

local function register()
  for _, op in ipairs(core.ops()) do
    core.op_attr_set(op, KEY, function(attrs, types, constants, n_results)
      local self = in_use[#in_use]
      if not self then
        argument.fail "cost 'measured': no pl.tune.call_costs is in use"
      end
      return self:ask { op = op, attrs = attrs, types = types, constants = constants,
        n_results = n_results }
    end)
  end
  registered = true
end

local function leave(self)
  for i = #in_use, 1, -1 do
    if in_use[i] == self.costs then
      table.remove(in_use, i)
      break
    end
  end
  self.costs = nil
end

local scope_class = { __close = leave }

--- Takes it into use, for passes with cost="measured", until what it returns is closed.
function methods.enter(self)
  if not registered then register() end
  in_use[#in_use + 1] = self
  return setmetatable({ costs = self }, scope_class)
end

-- ----------------------------------------------------------------- constructor

-- A call's shortest of a few blocks is kept: calls are many, and the program as a whole is compared
-- with the original afterwards.
local BLOCKS, CALL_SECONDS, RUN_SECONDS = 5, 0.05, 30

local function check(options)
  if not builder.is(options.builder) or options.builder.kind == "command" then
    argument.fail(where .. ": builder: one of 'evaluator' or 'c' is expected")
  elseif not runner.is(options.runner) then
    argument.fail(where .. ": runner: pl.tune.runner makes one")
  elseif not database.is(options.database) then
    argument.fail(where .. ": database: what pl.tune.database() makes is expected")
  elseif type(options.seconds) ~= "number" or options.seconds ~= options.seconds
    or options.seconds < 0 then
    argument.fail(where .. ": seconds: a number from 0 on expected")
  end
end

local function copy_of(options)
  local out = {}
  for name, value in pairs(options) do out[name] = value end
  return out
end

--- Costs of { builder = ("evaluator" or "c"), runner =, database = (in memory), seconds = (that
-- measuring may take together; calls after that have no cost of their own) }.
function calls.new(options)
  local self = copy_of(argument.options(options or {}, where, { "builder", "runner", "database",
    "seconds" }))
  self.builder = self.builder or builder.new()
  self.runner = self.runner or runner.new { pairs = BLOCKS, seconds = RUN_SECONDS,
    comparison_seconds = CALL_SECONDS }
  self.database, self.seconds = self.database or database.new(), self.seconds or math.huge
  check(self)
  self.target = ("time of a call: %s on %s"):format(self.builder:target(),
    require "perilune.tune.processor".text())
  self.deadline, self.known = core.clock() + self.seconds, {}
  self.count = { measured = 0, recorded = 0, failed = 0, unmeasured = 0 }
  return setmetatable(self, class)
end

--- Whether a value is such.
function calls.is(x) return getmetatable(x) == class end

return calls
