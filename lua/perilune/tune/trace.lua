--- pl.tune.trace: a module and the decisions that were taken for it, in order.
--
--     local trace = pl.tune.trace(mod)
--     trace:add(knob, "NHWC")               -- applies the choice, gives the new module
--     print(trace)                          -- Trace length: 1
--                                           -- [1] layout: NHWC
--     local again = pl.tune.trace_from_json(trace:as_json())
--
-- Fields: in_mod, out_mod, knobs, decisions, size, and perf, the measured cost (-1 when it was
-- not measured; lower is better). Decisions form a list that grows at its end and shares
-- its beginning with the traces it was copied from: a copy costs a table, one decision more
-- costs one step.

local argument = require "perilune.argument"
local core = require "perilune.core"
local functions = require "perilune.tune.functions"
local choice = require "perilune.tune.choice"
local json = require "perilune.json"
local knob = require "perilune.tune.knob"
core.internal()

local trace = {}

local VERSION = 1
-- What stands for the cost of a trace that was not measured.
trace.UNMEASURED = -1

local methods = {}
local class = { __name = "trace" }

-- The choice of a pass that ran by itself: it is made anew from its text. `conditions` of a
-- context decide which elements of a composed pass run; a primitive pass runs in any.
functions.registry["perilune.apply_pass"] = function(mod, text, conditions)
  local pass = core.pipeline(text)
  if #pass.passes == 0 then argument.fail "perilune.apply_pass: the text has no pass" end
  if not conditions then return pass.passes[1](mod) end
  local scope <close> = core.context(conditions):enter()
  return pass(mod)
end

local applying = 0

--- Whether a decision is being applied: passes that run then are part of it.
function trace.is_applying() return applying > 0 end

local function apply(one, mod, decision)
  applying = applying + 1
  local ok, out = pcall(one.apply, one, mod, decision)
  applying = applying - 1
  if not ok then error(out, 0) end
  return out
end

-- ------------------------------------------------------------------ decisions

local function steps_of(self)
  local list = {}
  local step = self.last
  while step do
    list[step.index] = step
    step = step.before
  end
  return list
end

local function append(self, one, name, out)
  local before = rawget(self, "last") or nil
  self.last = { before = before, index = (before and before.index or 0) + 1, knob = one,
    decision = name, out_mod = out }
  self.perf = trace.UNMEASURED
  return out
end

--- Takes a decision: applies the choice to out_mod and gives what it makes. Raises, and
-- leaves the trace as it was, when the knob has no such choice or the choice fails.
function methods.add(self, one, decision)
  if not knob.is(one) then
    argument.fail("trace:add: a knob expected, got " .. argument.kind_of(one))
  end
  local name = one:decision(decision)
  return append(self, one, name, apply(one, self.out_mod, name))
end

--- Notes that a pass was applied, and what it made of out_mod. `how.text` is its pipeline text;
-- without one (`how.refusal` says why) the trace cannot be replayed. `how.context`: the fields of
-- a context in which its elements ran.
function methods.add_pass(self, name, how, out)
  local one = choice.new { transform = "perilune.apply_pass",
    args = { how.text or "", how.context } }
  append(self, knob.new(name, { Applied = one }), "Applied", out)
  self.last.refusal = how.refusal
end

--- Whether every decision is one that its knob has.
function methods.verify(self)
  for _, step in ipairs(steps_of(self)) do
    if not step.knob:verify(step.decision) then return false end
  end
  return true
end

--- Says that out_mod is another module now, as a pass that is not recorded makes it. The
-- trace cannot be replayed then.
function methods.set_out_mod(self, mod)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail("trace:set_out_mod: a module expected, got " .. argument.kind_of(mod))
  end
  local last = self.last
  if not last then self.in_mod = mod return end
  self.last = { before = last.before, index = last.index, knob = last.knob,
    decision = last.decision, out_mod = mod, refusal =
    "passes that the trace does not record changed the module behind it" }
end

--- The cost that was measured of out_mod.
function methods.set_perf(self, perf)
  if type(perf) ~= "number" then
    argument.fail("trace:set_perf: a number expected, got " .. type(perf))
  end
  self.perf = perf
end

--- A trace of its own with the same decisions.
function methods.copy(self)
  return setmetatable({ in_mod = self.in_mod, last = self.last or false, perf = self.perf }, class)
end

--- Goes back to where out_mod was `mod`; false when it never was. For passes that failed
-- and were undone.
function methods.rewind(self, mod)
  local step = self.last
  while step and step.out_mod ~= mod do step = step.before end
  if not step and self.in_mod ~= mod then return false end
  if step ~= self.last then
    self.last, self.perf = step or false, trace.UNMEASURED
  end
  return true
end

-- --------------------------------------------------------------------- fields

local getters = {
  size = function(self) return self.last and self.last.index or 0 end,
  out_mod = function(self) return self.last and self.last.out_mod or self.in_mod end,
  knobs = function(self)
    local list = steps_of(self)
    for i, step in ipairs(list) do list[i] = step.knob end
    return list
  end,
  decisions = function(self)
    local list = steps_of(self)
    for i, step in ipairs(list) do list[i] = step.decision end
    return list
  end,
}

function class.__index(self, key)
  local getter = getters[key]
  if getter then return getter(self) end
  return methods[key]
end

function class.__tostring(self)
  local lines = { ("Trace length: %d"):format(self.size) }
  for i, step in ipairs(steps_of(self)) do
    lines[i + 1] = ("[%d] %s: %s"):format(i, step.knob.name, step.decision)
  end
  return table.concat(lines, "\n")
end

-- ----------------------------------------------------------------------- JSON

--- The trace as JSON; `include_in_mod` (true unless it is false): with the text of in_mod.
-- A knob that several decisions share is written once. Raises when an argument of a
-- choice has no JSON.
function methods.as_json(self, include_in_mod)
  local knobs, number, decisions = {}, {}, {}
  for i, step in ipairs(steps_of(self)) do
    local one = step.knob
    if not number[one] then
      knobs[#knobs + 1] = one:as_table()
      number[one] = #knobs
    end
    decisions[i] = json.object { { "knob", number[one] }, { "decision", step.decision },
      { "refusal", step.refusal } }
  end
  local rows = { { "version", VERSION }, { "knobs", json.list(knobs) },
    { "decisions", json.list(decisions) } }
  if include_in_mod ~= false then rows[#rows + 1] = { "module", self.in_mod:text() } end
  return json.encode(json.object(rows))
end

local function malformed(what) argument.fail("malformed trace: " .. what) end

-- An object has keys that are no numbers: what is behind them would not be read.
local function check_list(row, name)
  if type(row[name]) ~= "table" then malformed(("it has no list of %s"):format(name)) end
  for key in pairs(row[name]) do
    if math.type(key) ~= "integer" then malformed(name .. ": a list is expected") end
  end
end

local function read_header(text)
  argument.string(text, "pl.tune.trace_from_json", "text")
  local row, message = json.decode(text)
  if type(row) ~= "table" then malformed(message or "an object is expected") end
  if row.version ~= VERSION then
    malformed(("version %s, and this library reads version %d"):format(tostring(row.version),
      VERSION))
  end
  for _, name in ipairs { "knobs", "decisions" } do check_list(row, name) end
  return row
end

local function first_module(row, mod)
  if mod then return mod end
  if type(row.module) ~= "string" then
    malformed "it was written without its module; give it as the second argument"
  end
  local parsed, diag = core.text_parse(row.module)
  if not parsed then core.raise(diag) end
  return parsed
end

local function replay_step(self, one, step)
  if step.refusal then error(step.refusal, 0) end
  self:add(one, step.decision)
end

--- The trace that as_json wrote: its decisions are taken anew, for `mod` when it is given,
-- else for the module in the text. Raises with the number of the step, its knob and its
-- decision when one cannot be taken.
function trace.from_json(text, mod)
  local row = read_header(text)
  local knobs = {}
  for i, one in ipairs(row.knobs) do knobs[i] = knob.from_table(one) end
  local self = trace.new(first_module(row, mod))
  for i, step in ipairs(row.decisions) do
    if type(step) ~= "table" then malformed(("step %d is no object"):format(i)) end
    local one = knobs[step.knob]
    if not one then malformed(("step %d has no knob"):format(i)) end
    local ok, message = pcall(replay_step, self, one, step)
    if not ok then
      argument.fail(("step %d, knob '%s', decision '%s': %s"):format(i, one.name,
        tostring(step.decision), tostring(message)))
    end
  end
  return self
end

-- ---------------------------------------------------------------- constructors

--- A trace of a module, with the decisions for the knobs when they are given.
function trace.new(mod, knobs, decisions)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail("pl.tune.trace: a module expected, got " .. argument.kind_of(mod))
  end
  knobs = argument.table(knobs or {}, "pl.tune.trace", "knobs")
  decisions = argument.table(decisions or {}, "pl.tune.trace", "decisions")
  if #knobs ~= #decisions then
    argument.fail(("pl.tune.trace: %d knobs and %d decisions"):format(#knobs, #decisions))
  end
  local self = setmetatable({ in_mod = mod, last = false, perf = trace.UNMEASURED }, class)
  for i, one in ipairs(knobs) do self:add(one, decisions[i]) end
  return self
end

--- Whether a value is a trace.
function trace.is(x) return getmetatable(x) == class end

--- The trace itself, or that of a module, or of a function as the module's @main.
function trace.get(x)
  if trace.is(x) then return x end
  local kind = argument.kind_of(x)
  if kind == "Module" then return trace.new(x) end
  if kind == "Node" and (x.kind == "Function" or x.kind == "PrimFunc") then
    return trace.new(core.module { main = x })
  end
  argument.fail("pl.tune.get_trace: a trace, module or function expected, got " .. kind)
end

return trace
