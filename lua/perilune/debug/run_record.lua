--- The modules that a pipeline goes through, a run of a pass each, for those who
-- look for the run that went wrong. Modules never change, so keeping all of them
-- costs little more than what passes make.

local core = require "perilune.core"
local failure = require "perilune.debug.failure"
local pass = require "perilune.pass"
core.internal()

local run_record = {}

-- Runs are told from forms made of passes, which have no bodies.
local function is_run(info) return info.form == "primitive" end

local function innermost_run(open)
  for i = #open, 1, -1 do
    if open[i].run then return open[i].run end
  end
end

-- Those above the one that ends have failed.
local function close(open, name)
  for i = #open, 1, -1 do
    if open[i].name == name then
      local frame = open[i]
      for k = #open, i, -1 do open[k] = nil end
      return frame
    end
  end
end

--- An instrument that keeps `runs`: of { name, nth (of that name), before, after }, in
-- the order they begin; after is nil for those that failed. `straight`: each began
-- with what the one before it had made.
local function recorder(module)
  local self = { name = "trail", runs = {}, straight = true }
  local open, times, last = {}, {}, module

  local function begin(mod, info)
    times[info.name] = (times[info.name] or 0) + 1
    local run = { name = info.name, nth = times[info.name], before = mod }
    if mod ~= last or innermost_run(open) then self.straight = false end
    self.runs[#self.runs + 1] = run
    return run
  end

  function self.before(mod, info)
    open[#open + 1] = { name = info.name, run = is_run(info) and begin(mod, info) or nil }
  end

  function self.after(mod, info)
    local frame = close(open, info.name)
    if not frame or not frame.run then return end
    frame.run.after, last = mod, mod
  end

  return self
end

-- Vetoes of an instrument count, what else it does is not asked for.
local function vetoes(instruments)
  local list = {}
  for i, each in ipairs(instruments) do
    list[i] = { name = each.name, should_run = each.should_run }
  end
  return list
end

--- A context as the given one, with these instruments in place of its own, and more
-- config.
function run_record.inside(context, instruments, config)
  local keys = {}
  for key, value in pairs(context.config) do
    if not key:find "^reproducer" then keys[key] = value end -- failures are looked for here
  end
  for key, value in pairs(config or {}) do keys[key] = value end
  table.move(vetoes(context.instruments), 1, #context.instruments, #instruments + 1, instruments)
  return pass.context {
    opt_level = context.opt_level, required = context.required, disabled = context.disabled,
    only = #context.only > 0 and context.only or nil, instruments = instruments, config = keys,
  }
end

local function run(context, pipeline, module)
  local ok, result = failure.catch(pass.with, context, pipeline, module)
  if ok then return result end
  return nil, failure.diag(result)
end

--- Runs the pipeline in a context as the given one: { runs =, straight =, result = }, or
-- { runs =, straight =, failure = diag } when it fails.
function run_record.record(pipeline, module, context)
  local seen = recorder(module)
  local result, diag = run(run_record.inside(context, { seen }), pipeline, module)
  return { runs = seen.runs, straight = seen.straight, result = result, failure = diag }
end

local HERE = "here is the run that is looked for"

-- The note with the pipeline's text that follows on what was raised there.
local function place_in(diags)
  local seen = false
  for _, diag in ipairs(diags) do
    if seen and diag.severity == "note" and diag.span and diag.span.line then return diag end
    seen = seen or diag.message:find(HERE, 1, true) ~= nil
  end
end

--- Where in the pipeline the nth run is: a note that a run which ends there leaves; nil
-- when it is the pipeline itself.
function run_record.place(pipeline, module, context, n)
  local count = 0
  local stop = { name = "place", before = function(_, info)
    count = count + (is_run(info) and 1 or 0)
    if count == n and is_run(info) then error(HERE, 0) end
  end }
  local _, diag = run(run_record.inside(context, { stop }), pipeline, module)
  if not diag then return place_in(core.diags()) end
  return place_in { diag, table.unpack(diag.notes) }
end

-- How many applications of rules the nth run asked for.
local function applications_of(n)
  for _, row in ipairs(core.report()) do
    if row.run == n then return row.applications end
  end
end

--- The result when no runs but the first `n` happen, and of the last of these no more
-- than `k` applications of rules (nil: all), or nil; the failure; what rules did; how
-- many applications that run asked for, when it did not fail.
function run_record.first(pipeline, module, context, n, k)
  local result, diag = run(run_record.inside(context, {}, { ["bisect.passes"] = n,
    ["bisect.applications"] = k }), pipeline, module)
  return result, diag, core.rule_report(), applications_of(n)
end

return run_record
