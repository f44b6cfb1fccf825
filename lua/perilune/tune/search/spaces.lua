--- Which space a search has: the options that name spaces, and what each of them is made of.

local argument = require "perilune.argument"
local core = require "perilune.core"
local joint_space = require "perilune.tune.search.joint_space"
local knob_space = require "perilune.tune.search.knob_space"
local pipeline_space = require "perilune.tune.search.pipeline_space"
local schedule_space = require "perilune.tune.search.schedule_space"
core.internal()

local spaces = {}

local function knobs_of(knobs, where)
  if #argument.table(knobs, where, "knobs") == 0 then
    argument.fail(where .. ": knobs: the list is empty")
  end
  return knob_space.new(knobs, where)
end

local function base_of(options, where)
  local base = options.base or require "perilune.pipelines".public.default
  if type(base) == "string" then base = core.pipeline(base) end
  if argument.kind_of(base) ~= "Pass" then
    argument.fail(("%s: base: a pass or the text of a pipeline expected, got %s"):format(where,
      argument.kind_of(base)))
  end
  return base
end

local function pipeline_space_of(options, base, where)
  if options.pool ~= nil then argument.table(options.pool, where, "pool") end
  for _, text in ipairs(options.pool or {}) do
    if not argument.string(text, where, "a pass of pool"):find "%S" then
      argument.fail(where .. ": pool: a pass is an empty text")
    end
  end
  return pipeline_space.new(options.mod, base, options.pool)
end

-- Spaces that change what a pipeline made.
local behind_pipeline = { layout = true, combine = true, substitution = true, kernels = true }

-- Whether `metrics` have the time.
local function minimises_time(metrics)
  if metrics == nil or metrics == "time" then return true end
  for _, metric in ipairs(type(metrics) == "table" and metrics or {}) do
    if metric == "time" or type(metric) == "table" and metric[1] == "time" then return true end
  end
  return false
end

--- Whether a search of these options can ask what calls take: it minimises the time, by the
-- evaluator or by generated C, of this machine.
function spaces.measures_calls(options)
  local kind = options.builder and options.builder.kind or "evaluator"
  return options.queue == nil and (kind == "evaluator" or kind == "c")
    and minimises_time(options.metrics)
end

--- Takes costs of calls into use for texts of those spaces, until what it returns is closed.
-- `seconds`: what measuring them may take.
function spaces.enter_costs(kind, options, seconds)
  if not ("+" .. kind .. "+"):find("+substitution+", 1, true)
    or not spaces.measures_calls(options) then return nil end
  return require "perilune.tune.cost.calls".new { builder = options.builder,
    database = options.database, seconds = seconds }:enter()
end

local constructors = {
  pipeline = function(options, made) return pipeline_space_of(options, made.pass, made.where) end,
  knobs = function(options, made) return knobs_of(options.knobs, made.where) end,
  schedule = function(options, made)
    return schedule_space.new(options.mod, options.schedule or true, made.threads, made.where)
  end,
  layout = function(options, made)
    local compiled = options.builder ~= nil and options.builder.kind == "c"
    return require "perilune.tune.search.layout_space".new(made.mod, compiled, made.where)
  end,
  combine = function(_, made)
    return require "perilune.tune.search.combine_space".new(made.mod, made.where)
  end,
  substitution = function(options, made)
    return require "perilune.tune.search.substitution_space".new(options.substitution, made.where,
      made.pipelines, spaces.measures_calls(options))
  end,
  kernels = function(_, made)
    return require "perilune.tune.search.kernel_space".new(made.mod, made.where)
  end,
}

--- The names of the spaces in a text: "pipeline+layout". Raises when there is none of that name.
function spaces.names(text, place)
  local names, seen = {}, {}
  for name in (argument.string(text, place, "space") .. "+"):gmatch "(.-)%+" do
    if not constructors[name] then
      argument.fail(("%s: there is no space '%s'%s"):format(place, name,
        argument.near(name, constructors)))
    elseif seen[name] then
      argument.fail(("%s: space: '%s' stands there twice"):format(place, name))
    end
    names[#names + 1], seen[name] = name, true
  end
  return names, seen
end

-- The names of the spaces that the options are for.
local function names_of(options, where)
  local default = {}
  if options.knobs ~= nil then default[1] = "knobs" end
  if options.schedule then default[#default + 1] = "schedule" end
  if options.substitution then default[#default + 1] = "substitution" end
  if #default == 0 then default[1] = "pipeline" end
  local names, seen = spaces.names(options.space or table.concat(default, "+"), where)
  for _, name in ipairs { "knobs", "schedule", "substitution" } do
    if options[name] and not seen[name] then
      argument.fail(("%s: %s: the space '%s' has none"):format(where, name, options.space))
    end
  end
  if seen.knobs and options.knobs == nil then
    argument.fail(where .. ": space: knobs: the option knobs has them")
  end
  return names, seen
end

-- Parts of a joint space, and what each of them is made for: what the base pipeline makes, for
-- those behind it. Without the pipelines' space that pipeline comes first.
local function parts_of(options, names, seen, made)
  local behind, parts = false, {}
  made.pipelines = not seen.knobs and not seen.schedule
  for _, name in ipairs(names) do behind = behind or behind_pipeline[name] end
  if seen.pipeline or behind then made.pass = base_of(options, made.where) end
  if behind and not seen.pipeline then
    parts[1] = joint_space.fixed(tostring(made.pass))
    made.mod = made.pass(options.mod)
  end
  for _, name in ipairs(names) do
    parts[#parts + 1] = constructors[name](options, made)
    if behind and name == "pipeline" then made.mod = made.pass(options.mod) end
  end
  return parts
end

--- The space of the options of pl.tune.search; `threads`: of the builder.
function spaces.of(options, threads, where)
  local substitution = require "perilune.tune.search.substitution_space"
  if substitution.is(options.space) then
    local copy = {}
    for name, value in pairs(options) do copy[name] = value end
    copy.space, copy.substitution = "substitution", options.space
    options = copy
  end
  local names, seen = names_of(options, where)
  local parts = parts_of(options, names, seen, { mod = options.mod, threads = threads,
    where = where })
  if #parts == 1 then return parts[1] end
  return joint_space.new(options.mod, parts, table.concat(names, "+"))
end

--- Raises where a space cannot be searched by a strategy, or with what a builder makes.
function spaces.check(space, strategy, builder, where)
  if strategy == "separate" and not (space.separate and space:last_is_separate()) then
    argument.fail(("%s: strategy 'separate' needs a space whose last part is kernels, not %s")
      :format(where, space.kind))
  elseif space.kind:find "kernels" and builder.kind ~= "c" then
    argument.fail(("%s: space: kernels are those of generated C; the builder is '%s'"):format(where,
      builder.kind))
  end
end

--- The module that the text of a point makes; `kinds`: the names of its spaces.
function spaces.apply(mod, text, kinds)
  local has_schedule = false
  for _, kind in ipairs(kinds) do has_schedule = has_schedule or kind == "schedule" end
  if not has_schedule then return pipeline_space.apply(mod, text) end
  if #kinds == 1 then return schedule_space.apply(mod, text) end
  return joint_space.apply(mod, text, kinds)
end

return spaces
