--- What is done when an outermost application of a pass failed, in a context whose
-- config has the key `reproducer`: called by the core with the error, the pass that
-- failed, the module it was given, the context, the whole pipeline and its input.

local core = require "perilune.core"
local reproducer = require "perilune.debug.reproducer"
core.internal()

-- Occurrences are counted from the beginning of a run.
local function without_selectors(names)
  local out = {}
  for _, name in ipairs(names) do
    if not name:find ":%d+$" then out[#out + 1] = name end
  end
  return out
end

local function ran()
  local names = {}
  for i, row in ipairs(core.report()) do
    names[i] = row.name .. (row.changed and " (changed)" or "")
  end
  return table.concat(names, ", ")
end

-- Runs and applications are counted from there, too: what was allowed to the run
-- that failed is allowed to the only one.
local function config_for_one(config)
  local out = {}
  for key, value in pairs(config) do
    if not key:find "^bisect%." then out[key] = value end
  end
  if config["bisect.passes"] == #core.report() + 1 then
    out["bisect.applications"] = config["bisect.applications"]
  end
  return out
end

-- The context that the pass by itself runs in.
local function context_for_one(context)
  return { opt_level = context.opt_level, config = config_for_one(context.config),
    instruments = context.instruments, required = without_selectors(context.required),
    disabled = without_selectors(context.disabled) }
end

local function note(failure, message)
  if getmetatable(failure) ~= "perilune.Diag" or type(failure.notes) ~= "table" then return end
  table.insert(failure.notes,
    { severity = "note", message = message, text = "note: " .. message })
end

local function spec_of(failure, pass, module, context, pipeline, input)
  local config = context.config
  local spec = { failure = failure, module = module, pipeline = pass, whole = pipeline,
    ran = ran(), context = context_for_one(context),
    embed = (config["reproducer.embed"] or 0) ~= 0 }
  if config["reproducer.from"] == "input" then
    spec.module, spec.pipeline, spec.whole, spec.context = input, pipeline, nil, context
  elseif pass == pipeline then
    spec.whole = nil
  end
  return spec
end

-- The path is a word of a command line.
local function quoted(path)
  if not path:find "[^%w_./+-]" then return path end
  return "'" .. path:gsub("'", "'\\''") .. "'"
end

--- Writes the reproducer that the context wants, and adds a note to the failure.
return function(failure, ...)
  local _, _, context = ...
  local path = context.config.reproducer
  local ok, written, diag = pcall(function(...)
    return reproducer.write(path, spec_of(failure, ...))
  end, ...)
  if ok and written then
    return note(failure, ("`perilune replay %s` runs it again"):format(quoted(path)))
  end
  note(failure, "no reproducer: " .. (ok and diag.message or tostring(written)))
end
