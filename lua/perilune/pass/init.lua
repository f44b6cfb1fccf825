--- Passes, sequentials and contexts made from tables.

local added_pass = require "perilune.pass.added_pass"
local argument = require "perilune.argument"
local core = require "perilune.core"
local config = require "perilune.pass.config"
local option = require "perilune.pass.option"
local rule = require "perilune.rule"
local rule_names = require "perilune.rule.names"
local target = require "perilune.target"
local source_text = require "perilune.pass.function_source"
core.internal()

local pass = {}

-- Loaded when it is wanted.
core.on_failure(function(...) require "perilune.debug.reproducer.on_failure" (...) end)

-- ------------------------------------------------------------- one's own pass

local known = { name = true, kind = true, opt_level = true, required = true, traceable = true,
  parallel = true, doc = true, options = true, run = true, cache = true,
  changes_spans = true, handles = true, unhandled = true }

local function place_of(run)
  if type(run) ~= "function" then return "anonymous" end
  local info = debug.getinfo(run, "S")
  return ("%s:%d"):format(info.short_src, info.linedefined)
end

-- Where a body comes from: the chunk of the first function in it that is not
-- the library's. A mutator, say, is a function of the library around a table.
local MOST_VALUES = 1000

local function parts_of(value, add)
  if type(value) == "table" then
    for key, part in next, value do add(part); add(key) end
    add(debug.getmetatable(value))
  elseif type(value) == "function" then
    local i = 1
    while debug.getupvalue(value, i) do
      add((select(2, debug.getupvalue(value, i))))
      i = i + 1
    end
  end
end

local function source_of(body)
  local queue, seen = {}, { [_G] = true, [package.loaded] = true }
  local function add(value)
    local kind = type(value)
    if (kind == "function" or kind == "table") and not seen[value] and #queue < MOST_VALUES then
      seen[value], queue[#queue + 1] = true, value
    end
  end
  add(body)
  for at = 1, math.huge do
    local value = queue[at]
    if value == nil then return nil end
    local info = type(value) == "function" and debug.getinfo(value, "S")
    if info and info.what ~= "C" and not core.is_internal(info.source) then return info.source end
    parts_of(value, add)
  end
end

-- A list of names, as a table; `what` has it.
local function check_list(what, field, list)
  if list ~= nil and type(list) ~= "table" then
    argument.fail(("%s's '%s' is a list of names, got a %s"):format(what, field, type(list)))
  end
end

local function check_field(what, spec, field, wanted)
  local kind = type(spec[field])
  if kind ~= "nil" and kind ~= wanted then
    argument.fail(("%s's '%s' is a %s, got a %s"):format(what, field, wanted, kind))
  end
end

-- Whether a program with a feature that the pass does not handle is skipped, not refused.
local function skips_unhandled(spec)
  local what = spec.unhandled
  if what == nil or what == "refuse" then return false end
  if what ~= "skip" then
    argument.fail(("a pass's 'unhandled' is 'refuse' or 'skip', got %s"):format(tostring(what)))
  elseif spec.handles == nil then
    argument.fail "a pass with 'unhandled' says what it 'handles'"
  end
  return true
end

--- What the core registers: a checked copy of `spec`.
function pass.spec(spec, kind, name)
  if type(spec) ~= "table" then
    argument.fail(("a pass is described by a table, got a %s"):format(type(spec)))
  end
  check_list("a pass", "required", spec.required)
  local copy = {}
  for field, value in pairs(spec) do
    if not known[field] then
      argument.fail(("a pass has no field '%s'%s"):format(tostring(field),
        argument.near(field, known)))
    end
    copy[field] = value
  end
  check_list("a pass", "handles", spec.handles)
  copy.skips_unhandled = skips_unhandled(spec)
  copy.kind = kind or copy.kind
  copy.name = name or copy.name or place_of(copy.run)
  copy.options = option.rows(copy.options or {})
  copy.source = source_of(copy.run) or rule.is_set(copy.run) and copy.run.source or nil
  copy.identity = copy.cache and source_text(copy.run) or nil
  return copy
end

--- A pass over each function by itself: run(fn, mod, ctx) gives the changed
-- function, or nil.
function pass.function_pass(spec) return core.pass(pass.spec(spec, "function")) end

--- A pass over the module: run(mod, ctx) gives the changed module, or nil.
function pass.module_pass(spec) return core.pass(pass.spec(spec, "module")) end

--- A pass over each PrimFunc: nil removes it from the module.
function pass.prim_func_pass(spec) return core.pass(pass.spec(spec, "prim_func")) end

--- A pass over each function that applies a set of rules (pl.rules).
function pass.rule_pass(set)
  return pass.function_pass { name = set.name, run = set,
    doc = ("Apply the rules of '%s'."):format(set.name) }
end

-- ------------------------------------------------------------------- classes

local class_meta = { __name = "pass class" }
pass.class_meta = class_meta

-- What runs is an instance: it has the class's methods, and state of its own.
local function instance_of(class)
  return setmetatable({}, {
    __index = class, __call = function(self, ...) return class.run(self, ...) end,
  })
end

function class_meta.__call(self, ...)
  local class = self.class
  local instance, spec = instance_of(class), {}
  for field in pairs(known) do spec[field] = class[field] end
  if class.heuristic ~= nil then spec.traceable = not class.heuristic end
  spec.run = instance
  if class.init then class.init(instance, ...) end
  return core.pass(pass.spec(spec))
end

function class_meta.__index(self, key) return rawget(self, "class")[key] end
function class_meta.__tostring(self) return "pass class " .. self.class.name end

--- A class of passes: calling it makes a pass. Arguments go to init(self, ...),
-- run(self, fn, mod, ctx) is the body, other fields are methods and state:
--
--     local Scale = pl.pass_class { name = "Scale", kind = "function",
--       init = function(self, by) self.by = by end,
--       run = function(self, fn) return pl.func(fn.params, fn.body * self.by) end }
--     local twice = Scale(2)
--
-- What the pass itself has not (twice.by) is its instance's. `heuristic = true` says that the
-- pass decides without measuring: a trace notes it by its name (pl.tune).
function pass.pass_class(class)
  if type(class) ~= "table" then
    argument.fail(("a class of passes is made from a table, got a %s"):format(type(class)))
  end
  if type(class.name) ~= "string" then argument.fail("a class of passes has a name") end
  for _, method in ipairs { "init", "run" } do
    local f = class[method]
    if type(f) ~= "function" and not (f == nil and method == "init") then
      argument.fail(("class '%s': '%s' is a %s, no function"):format(class.name, method, type(f)))
    end
  end
  return setmetatable({ class = class }, class_meta)
end

-- --------------------------------------------------------------- sequentials

local sequential

-- An element: a pass, a constructor, a name or a pipeline's text, a function
-- over modules, a set of rules, or a list of such; `within`: the lists that it stands in.
local function element(value, i, within)
  local kind = type(value)
  if argument.kind_of(value) == "Pass" then return value end
  if kind == "string" then
    return value:find "^[%w_.]+$" and core.make(value) or core.pipeline(value)
  end
  if kind == "function" then return pass.module_pass { run = value } end
  if kind == "table" then
    local meta = getmetatable(value)
    if meta == pass.constructor_class or meta == class_meta then return value() end
    if rule.is_set(value) then return pass.rule_pass(value) end
    return sequential(value, within)
  end
  argument.fail(("element %d of a sequential: a pass, a name or a function expected, got a %s")
    :format(i, argument.kind_of(value)))
end

-- The elements of `spec`; other fields than those in `fields` are refused.
local function elements(what, spec, fields, within)
  if type(spec) ~= "table" then
    argument.fail(("%s is made from a table, got a %s%s"):format(what, type(spec),
      type(spec) == "string" and "; pl.pipeline reads text" or ""))
  end
  local outer = within
  while outer do
    if rawequal(outer.spec, spec) then argument.fail(what .. " is an element of itself") end
    outer = outer.within
  end
  within = { spec = spec, within = within }
  local passes = {}
  for i, value in ipairs(spec) do passes[i] = element(value, i, within) end
  for field in pairs(spec) do
    if math.type(field) ~= "integer" and not fields[field] then
      argument.fail(("%s has no field '%s'%s"):format(what, tostring(field),
        argument.near(field, fields)))
    end
  end
  return passes
end

--- Runs passes again and again until they change nothing, `rounds` (100) times
-- at most: { rounds =, ... }. Passes that undo each other end it with a warning
-- that names them.
function pass.fixpoint(spec)
  local passes = elements("a fixpoint", spec, { rounds = true })
  check_field("a fixpoint", spec, "rounds", "number")
  return core.form("fixpoint", spec.rounds or 100, 0, passes)
end

--- Runs passes that may fail: a failure undoes what they did, is told as a
-- warning, and the passes of `otherwise` run: { otherwise = { ... }, ... }.
function pass.try(spec)
  local passes = elements("a try", spec, { otherwise = true })
  local otherwise = elements("otherwise", spec.otherwise or {}, {})
  table.move(otherwise, 1, #otherwise, #passes + 1, passes)
  return core.form("try", 0, #otherwise, passes)
end

--- Runs passes only when the element before it changed the module.
function pass.if_changed(spec)
  return core.form("if_changed", 0, 0, elements("if_changed", spec, {}))
end

--- Takes each function through all of the passes before the next one.
function pass.functions(spec)
  return core.form("functions", 0, 0, elements("functions", spec, {}))
end

function sequential(spec, within)
  local passes = elements("a sequential", spec,
    { name = true, opt_level = true, required = true }, within)
  check_list("a sequential", "required", spec.required)
  check_field("a sequential", spec, "name", "string")
  check_field("a sequential", spec, "opt_level", "number")
  return core.sequential(spec.name or "sequential", spec.opt_level or 0, spec.required or {},
    passes)
end

--- Runs passes one after the other: { name =, opt_level =, required =, ... }.
function pass.sequential(spec) return sequential(spec) end

-- ------------------------------------------------------------------ contexts

-- Names from a list of names, passes and constructors.
local function names_of(field, list)
  check_list("a context", field, list)
  local names = {}
  for i, value in ipairs(list or {}) do
    local kind = type(value)
    if kind ~= "string" and kind ~= "userdata" and kind ~= "table" then
      argument.fail(("a context's '%s' is a list of names; entry %d is a %s"):format(field, i,
        kind))
    end
    names[i] = kind == "string" and value or value.name
  end
  return names
end

-- Options of a pass may be given in a table of its own: Pass = { option = v }.
local function flat(settings)
  if settings ~= nil and type(settings) ~= "table" then
    argument.fail(("a context's config is a table, got a %s"):format(type(settings)))
  end
  local out = {}
  for key, value in pairs(settings or {}) do
    if type(value) == "table" and not config[key] and core.registered(key) then
      for name, inner in pairs(value) do out[key .. "." .. name] = inner end
    else
      out[key] = value
    end
  end
  return out
end

local context_fields = { opt_level = true, required = true, disabled = true, only = true,
  instruments = true, config = true, target = true }
-- What a context's tracing is made of (pl.tune.tracing).
local tracing_fields = { "trace", "trace_stack", "make_traceable", "tuning_api_database" }
for _, field in ipairs(tracing_fields) do context_fields[field] = true end

-- The config of a context, with the text of its target.
local function config_of(spec)
  local settings = flat(spec.config)
  if settings["tir.add_lower_pass"] ~= nil then
    settings["tir.add_lower_pass"] = added_pass(settings["tir.add_lower_pass"],
      function(value) return element(value, 1) end)
  end
  if settings["rules.only"] ~= nil then rule_names.check(settings["rules.only"], "rules.only") end
  if spec.target ~= nil then settings.target = target(spec.target):complete_text() end
  return settings
end

-- The instruments of a context, and its tracing when the context has a trace.
local function instruments_of(spec)
  local options, list = {}, spec.instruments
  for _, field in ipairs(tracing_fields) do options[field] = spec[field] end
  if next(options) == nil or type(list or {}) ~= "table" then return list end
  list = table.move(list or {}, 1, #(list or {}), 1, {})
  list[#list + 1] = require "perilune.tune.tracing".new(options)
  return list
end

--- What passes run in: { opt_level = 2, required =, disabled =, only =, instruments =,
-- config =, target = }. Entered with ctx:enter(), left with ctx:exit() or <close>.
-- `trace` or `trace_stack`, `make_traceable` and `tuning_api_database` are those of
-- pl.tune.tracing, which becomes the last of the instruments.
function pass.context(spec)
  spec = spec or {}
  if type(spec) ~= "table" then
    argument.fail(("a context is made from a table, got a %s"):format(type(spec)))
  end
  for field in pairs(spec) do
    if not context_fields[field] then
      argument.fail(("a context has no field '%s'%s"):format(tostring(field),
        argument.near(field, context_fields)))
    end
  end
  return core.context {
    opt_level = spec.opt_level, required = names_of("required", spec.required),
    disabled = names_of("disabled", spec.disabled),
    only = spec.only and names_of("only", spec.only), instruments = instruments_of(spec),
    config = config_of(spec),
  }
end

--- The current context, in which ConvertLayout leaves the layers `skip_layers` as they are:
-- numbers, from 0 in each function. A scope: it is entered, and <close> leaves it.
function pass.layout_config(spec)
  if type(spec) ~= "table" or type(spec.skip_layers) ~= "table" then
    argument.fail("pl.layout_config: { skip_layers = { numbers } } expected")
  end
  local now, settings = core.current(), {}
  for key, value in pairs(now.config) do settings[key] = value end
  settings["ConvertLayout.skip_layers"] = spec.skip_layers
  return core.context { opt_level = now.opt_level, required = now.required,
    disabled = now.disabled, only = #now.only > 0 and now.only or nil,
    instruments = now.instruments, config = settings }:enter()
end

--- Calls f(...) inside the context, and leaves it again whatever happens.
function pass.with(context, f, ...)
  if getmetatable(context) ~= "perilune.Context" then
    argument.fail(("pl.with: a context expected, got %s"):format(argument.kind_of(context)))
  end
  local meta = debug.getmetatable(f)
  if type(f) ~= "function" and not (meta and meta.__call) then
    argument.fail(("pl.with: a function expected, got %s"):format(argument.kind_of(f)))
  end
  local scope <close> = context:enter()
  return f(...)
end

return pass
