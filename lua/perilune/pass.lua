--- Passes, sequentials and contexts made from tables.

local core = require "perilune.core"
local config = require "perilune.config"
local option = require "perilune.option"
core.internal()

local pass = {}

-- Loaded when it is wanted.
core.on_failure(function(...) require "perilune.reproducer.on_failure" (...) end)

-- ------------------------------------------------------------- one's own pass

local known = { name = true, kind = true, opt_level = true, required = true, traceable = true,
  doc = true, options = true, run = true }

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

--- What the core registers: a checked copy of `spec`.
function pass.spec(spec, kind, name)
  if type(spec) ~= "table" then
    error(("a pass is described by a table, got a %s"):format(type(spec)), 3)
  end
  local copy = {}
  for field, value in pairs(spec) do
    if not known[field] then
      error(("a pass has no field '%s'"):format(tostring(field)), 3)
    end
    copy[field] = value
  end
  copy.kind = kind or copy.kind
  copy.name = name or copy.name or place_of(copy.run)
  copy.options = option.rows(copy.options or {})
  copy.source = source_of(copy.run)
  return copy
end

--- A pass over each function by itself: run(fn, mod, ctx) gives the changed
-- function, or nil.
function pass.function_pass(spec) return core.pass(pass.spec(spec, "function")) end

--- A pass over the module: run(mod, ctx) gives the changed module, or nil.
function pass.module_pass(spec) return core.pass(pass.spec(spec, "module")) end

--- A pass over each loop-level function.
function pass.prim_func_pass(spec) return core.pass(pass.spec(spec, "prim_func")) end

-- --------------------------------------------------------------- sequentials

-- An element: a pass, a constructor, a name or a pipeline's text, a function
-- over modules, or a list of such.
local function element(value, i)
  local kind = type(value)
  if kind == "userdata" then return value end
  if kind == "string" then
    return value:find "^[%w_.]+$" and core.make(value) or core.pipeline(value)
  end
  if kind == "function" then return pass.module_pass { run = value } end
  if kind == "table" then
    if getmetatable(value) == pass.constructor_class then return value() end
    return pass.sequential(value)
  end
  error(("element %d of a sequential: a pass, a name or a function expected, got a %s")
    :format(i, kind), 3)
end

-- The elements of `spec`; other fields than those in `fields` are refused.
local function elements(what, spec, fields)
  if type(spec) ~= "table" then
    error(("%s is made from a table, got a %s"):format(what, type(spec)), 3)
  end
  local passes = {}
  for i, value in ipairs(spec) do passes[i] = element(value, i) end
  for field in pairs(spec) do
    if math.type(field) ~= "integer" and not fields[field] then
      error(("%s has no field '%s'"):format(what, tostring(field)), 3)
    end
  end
  return passes
end

--- Runs passes again and again until they change nothing, `rounds` (100) times
-- at most: { rounds =, ... }. Passes that undo each other end it with a warning
-- that names them.
function pass.fixpoint(spec)
  local passes = elements("a fixpoint", spec, { rounds = true })
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

--- Runs passes one after the other: { name =, opt_level =, required =, ... }.
function pass.sequential(spec)
  local passes = elements("a sequential", spec,
    { name = true, opt_level = true, required = true })
  return core.sequential(spec.name or "sequential", spec.opt_level or 0, spec.required or {},
    passes)
end

-- ------------------------------------------------------------------ contexts

local function names_of(list)
  local names = {}
  for i, value in ipairs(list or {}) do
    names[i] = type(value) == "string" and value or value.name
  end
  return names
end

-- Options of a pass may be given in a table of its own: Pass = { option = v }.
local function flat(settings)
  if settings ~= nil and type(settings) ~= "table" then
    error(("a context's config is a table, got a %s"):format(type(settings)), 3)
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
  instruments = true, config = true }

--- What passes run in: { opt_level = 2, required =, disabled =, only =, instruments =,
-- config = }. Entered with ctx:enter(), left with ctx:exit() or <close>.
function pass.context(spec)
  spec = spec or {}
  for field in pairs(spec) do
    if not context_fields[field] then
      error(("a context has no field '%s'"):format(tostring(field)), 2)
    end
  end
  return core.context {
    opt_level = spec.opt_level, required = names_of(spec.required),
    disabled = names_of(spec.disabled),
    only = spec.only and names_of(spec.only), instruments = spec.instruments,
    config = flat(spec.config),
  }
end

--- Calls f(...) inside the context, and leaves it again whatever happens.
function pass.with(context, f, ...)
  local scope <close> = context:enter()
  return f(...)
end

return pass
