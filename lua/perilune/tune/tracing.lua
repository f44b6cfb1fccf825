--- pl.tune.tracing: the instrument that records what passes did in the trace of a context,
-- and holds the stack of traces that tuning passes work on.
--
--     local tracing = pl.tune.tracing { trace = pl.tune.trace(mod) }
--     pl.with(pl.context { instruments = { tracing } }, pl.sequential { "SimplifyExpr" }, mod)
--     print(tracing:get_current_trace())    -- Trace length: 1
--                                           -- [1] SimplifyExpr: Applied
--
-- `pl.context { trace = ... }` makes one by itself. Recorded is each pass by itself, with its
-- options: a sequential is what its elements are. Passes that are traceable (tuning passes)
-- record themselves. A pass that runs on another module than the trace's is not recorded.

local argument = require "perilune.argument"
local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
local trace = require "perilune.tune.trace"
core.internal()

local tracing = {}

local methods = {}
local class = { __name = "tracing", __index = methods }

local fields = { "trace", "trace_stack", "make_traceable", "tuning_api_database" }

-- ------------------------------------------------------------------ the stack

local function check_trace(x, where)
  if not trace.is(x) then
    argument.fail(("%s: a trace expected, got %s"):format(where, argument.kind_of(x)))
  end
  return x
end

function methods.push_trace(self, one)
  self.stack[#self.stack + 1] = check_trace(one, "push_trace")
end

local function check_not_empty(self)
  if #self.stack == 0 then argument.fail "the stack of traces is empty" end
end

--- Takes the topmost trace away and gives it.
function methods.pop_trace(self)
  check_not_empty(self)
  return table.remove(self.stack)
end

function methods.get_current_trace(self)
  check_not_empty(self)
  return self.stack[#self.stack]
end

function methods.get_trace_stack(self) return table.move(self.stack, 1, #self.stack, 1, {}) end

function methods.get_trace_stack_size(self) return #self.stack end

--- Measurements that were made; those that were found in the database are counted in
-- num_cache_hits.
function methods.inc_num_evals(self, n) self.num_evals = self.num_evals + n end

function methods.set_num_evals(self, n) self.num_evals = n end

--- What a measure gives of a module; `compute` tells it, once. Tuning passes compare their
-- candidates with it. It is not counted.
function methods.base_value(self, mod, measure, compute)
  local known = self.bases[mod] or {}
  self.bases[mod] = known
  known[measure] = known[measure] or compute()
  return known[measure]
end

-- ------------------------------------------------------------------ recording

-- The options of a pass, those that the context gives as "Pass.option" among them.
local function options_of(pass)
  local options, config = {}, core.current().config
  for _, row in ipairs(pass.option_rows) do
    local value = pass.options[row.name]
    if value == nil then value = config[pass.name .. "." .. row.name] end
    options[row.name] = value
  end
  return options
end

local function primitive_text(pass)
  if not core.registered(pass.name) then
    return nil, ("the pass '%s' is not registered, so that it cannot be made anew"):format(
      pass.name)
  end
  return tostring(core.make(pass.name, options_of(pass)))
end

-- What the elements of a composed pass depend on, besides their options.
local function conditions()
  local now = core.current()
  return { opt_level = now.opt_level, required = now.required, disabled = now.disabled,
    only = #now.only > 0 and now.only or nil }
end

-- What is made of passes has its options in its text; those of the context are not there.
local function composed_text(pass)
  for key in pairs(core.current().config) do
    if key:find(".", 1, true) then
      return nil, ("'%s' took the option '%s' from the context"):format(pass.name, key)
    end
  end
  return tostring(pass)
end

-- The text that makes the pass anew, or nil and why there is none.
local function text_of(pass, info)
  local text, reason = (info.form == "primitive" and primitive_text or composed_text)(pass)
  if not text then return nil, reason end
  local ok, message = pcall(core.pipeline, text)
  if not ok then return nil, tostring(message) end
  return text
end

-- The pass began at `begun`, and gave `mod`. What ran inside of it is part of it.
local function note_primitive(self, one, begun, mod, info, pass)
  one:rewind(begun)
  if not self.only or self.only[info.name] then
    local text, reason = text_of(pass, info)
    one:add_pass(info.name, { text = text, refusal = reason,
      context = info.form ~= "primitive" and conditions() or nil }, mod)
  elseif mod ~= begun then
    one:set_out_mod(mod)
  end
end

-- Elements are recorded one by one, but those that a try undid, and those that work on
-- one function at a time.
local function note_composed(self, one, begun, mod, info, pass)
  if one.out_mod == mod or one:rewind(mod) then return end
  note_primitive(self, one, begun, mod, info, pass)
end

local function note(self, kept, mod, info, pass)
  local top = self.stack[#self.stack]
  if top ~= kept.trace then
    if top and top.out_mod ~= mod then top:set_out_mod(mod) end
  elseif info.form == "primitive" then
    note_primitive(self, top, kept.begun, mod, info, pass)
  else
    note_composed(self, top, kept.begun, mod, info, pass)
  end
end

-- Of a pass that runs now: the trace that it works on, at the state that it starts from.
local function open(self, mod)
  local top = self.stack[#self.stack]
  if not top or trace.is_applying() or not top:rewind(mod) then return {} end
  return { trace = top, begun = mod }
end

local function add_hooks(self)
  nesting(self)
  function self.open(mod) return open(self, mod) end
  function self.close(kept, mod, info, _, pass)
    if kept.trace and not info.traceable then note(self, kept, mod, info, pass) end
  end
end

--- The instrument. `trace` or `trace_stack`: what it begins with; `make_traceable`: the names
-- of passes that are recorded, all unless it is given; `tuning_api_database`: where
-- measurements are kept (pl.tune.database).
function tracing.new(options)
  options = argument.options(options, "pl.tune.tracing", fields)
  local self = setmetatable({ name = "tracing", stack = {}, searches = 0, num_evals = 0,
    num_cache_hits = 0, bases = setmetatable({}, { __mode = "k" }),
    database = options.tuning_api_database }, class)
  for _, one in ipairs(options.trace_stack or { options.trace }) do
    self:push_trace(trace.get(one))
  end
  if options.make_traceable then
    self.only = {}
    for _, name in ipairs(argument.table(options.make_traceable, "pl.tune.tracing",
      "make_traceable")) do self.only[name] = true end
  end
  add_hooks(self)
  return self
end

--- The tracing of the current context, or nil.
function tracing.current()
  for _, instrument in ipairs(core.current().instruments) do
    if getmetatable(instrument) == class then return instrument end
  end
end

--- Calls f(...) in the current context with `one` among its instruments.
function tracing.with(one, f, ...)
  local now, settings = core.current(), {}
  for key, value in pairs(now.config) do settings[key] = value end
  local instruments = now.instruments
  instruments[#instruments + 1] = one
  local context = core.context { opt_level = now.opt_level, required = now.required,
    disabled = now.disabled, only = #now.only > 0 and now.only or nil, instruments = instruments,
    config = settings }
  local scope <close> = context:enter()
  return f(...)
end

return tracing
