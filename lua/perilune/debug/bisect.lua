--- pl.bisect: the run of a pass that breaks a module, and the application of a rule.
--
--     local found, diag = pl.bisect(pipeline, model, "oracle")
--     print(found)                      -- which pass, and what it changed
--
-- A pipeline is a row of runs of passes, numbered from 1. The predicate holds for
-- the module that comes in and not for what comes out (or the pipeline fails), so
-- there is a run before which it holds and after which it does not: that one is
-- looked for by halving, which asks the predicate as often as the logarithm of the
-- runs that changed something. All modules on the way are kept, so the pipeline
-- runs once, unless a `try` failed or functions went through it one by one. Within the
-- run, the application of a rule is looked for in the same way: there the pipeline
-- runs again for each question.

local application = require "perilune.debug.bisect_rule"
local changed_functions = require "perilune.debug.changed_functions"
local core = require "perilune.core"
local argument = require "perilune.argument"
local diff = require "perilune.text_diff"
local ir = require "perilune.ir"
local pass = require "perilune.pass"
local predicate = require "perilune.debug.predicate"
local run_record = require "perilune.debug.run_record"
core.internal()

-- ---------------------------------------------------------------- questions

-- Whether the predicate holds; a module is asked for once.
local function holds(job, module)
  if not job.predicate then return true end
  local known = job.known[module]
  if known == nil then
    if core.interrupted() then core.raise(core.diag("interrupted", "interrupted")) end
    job.asked = job.asked + 1
    local good, message = pass.with(job.limits, job.predicate.holds, job.predicate, module)
    known = good or message
    job.known[module] = known
  end
  return known == true, known ~= true and known or nil
end

-- What there is behind a run: a module, or nil and why it failed.
local function state_behind(job, i)
  if i == 0 then return job.module end
  local run = job.run_record.runs[i]
  if job.run_record.straight then return run.after, job.run_record.failure end
  if not job.states[i] then
    job.pipelines = job.pipelines + 1
    job.states[i] = table.pack(run_record.first(job.pipeline, job.module, job.context, i))
  end
  return job.states[i][1], job.states[i][2]
end

-- Whether all is well behind a run; a failure of the pipeline is not.
local function is_good(job, i)
  local module, failure = state_behind(job, i)
  if not module then return false, failure.message end
  return holds(job, module)
end

-- ------------------------------------------------------------------ searching

-- The runs behind which something is different.
local function turns(job)
  local list = {}
  for i, run in ipairs(job.run_record.runs) do
    if not job.run_record.straight or run.before ~= run.after then list[#list + 1] = i end
  end
  return list
end

-- Of a list of runs whose last is bad, the first that is bad behind one that is
-- not.
local function halve(job, list)
  local low, high = 0, #list
  while high - low > 1 do
    local middle = (low + high) // 2
    if is_good(job, list[middle]) then low = middle else high = middle end
  end
  return list[high], list[low] or 0
end

-- The first bad one of all of them, and the first good one after it.
local function scan(job, list)
  local bad, before
  for k, i in ipairs(list) do
    local good = is_good(job, i)
    if not good and not bad then bad, before = i, list[k - 1] or 0 end
    if good and bad then return bad, before, i end
  end
  return bad, before
end

local function refuse(format, ...)
  return nil, core.diag("invalid", format:format(...))
end

-- The run to blame, the one before it, and with `every` the one that mends it.
local function search(job, every)
  local list = turns(job)
  local good, message = holds(job, job.module)
  if not good then return refuse("the predicate fails before any pass runs: %s", message) end
  if every then
    local bad, before, mended = scan(job, list)
    if bad then return bad, before, mended end
  elseif #list > 0 and not is_good(job, list[#list]) then
    return halve(job, list)
  end
  return refuse("%s%s runs of passes", job.predicate and "the predicate holds after all of "
    or "no pass fails in ", #job.run_record.runs)
end

-- -------------------------------------------------------------------- answers

-- Functions of two runs may be copies of each other.
local function same(a, b) return core.node_equal(a, b, false) end

local function nth_text(n)
  local suffix = { "st", "nd", "rd" }
  local small = n % 100 >= 11 and n % 100 <= 13
  return n .. (not small and suffix[n % 10] or "th")
end

local function times(n) return n == 1 and "once" or n .. " times" end

local class = { __name = "bisection" }
class.__index = class

-- "pass 'FoldConstant' breaks it, in its 2nd run: run 7 of 23", and the place.
local function headline(self)
  local text = ("pass '%s' breaks it, in its %s run: run %d of %d"):format(self.pass,
    nth_text(self.nth), self.run, self.runs)
  return self.place and ("%s\n%s"):format(text, (self.place.text:gsub("^note: ", ""))) or text
end

-- "rule 'fold', application 3 of the 14 of that run", and what it made of what.
local function rule_lines(self, lines)
  if not self.rule then return end
  lines[#lines + 1] = ("rule '%s', application %d of %sthat run"):format(self.rule,
    self.application, self.applications and ("the %d of "):format(self.applications) or "")
  if self.node_before then lines[#lines + 1] = "  before: " .. self.node_before end
  if self.node_after then lines[#lines + 1] = "  after:  " .. self.node_after end
end

--- The answer for people; `options.colour` for a terminal.
function class.describe(self, options)
  local lines = { headline(self) }
  rule_lines(self, lines)
  lines[#lines + 1] = self.message
  if self.mended then
    lines[#lines + 1] = ("the predicate holds again after run %d, pass '%s'"):format(self.mended,
      self.mended_by)
  end
  lines[#lines + 1] = ("asked the predicate %s, ran the pipeline %s"):format(times(self.asked),
    times(self.pipelines))
  local text = self.bad and diff(self.good, self.bad, options) or ""
  if text ~= "" then lines[#lines + 1] = text end
  return table.concat(lines, "\n")
end

class.__tostring = class.describe

local function answer(job, bad, before, mended)
  local run = job.run_record.runs[bad]
  local module, failure = state_behind(job, bad)
  local _, message = is_good(job, bad)
  local found = { pass = run.name, nth = run.nth, run = bad,
    runs = #job.run_record.runs, before = state_behind(job, before), after = module,
    place = run_record.place(job.pipeline, job.module, job.context, bad),
    failure = not module and failure or nil, message = message,
    mended = mended, mended_by = mended and job.run_record.runs[mended].name }
  for name, value in pairs(application(job, bad, run.name) or {}) do found[name] = value end
  if not found.rule then found.good, found.bad = found.before, found.after end
  found.functions = found.bad and changed_functions(found.good, found.bad, same) or {}
  found.asked, found.pipelines = job.asked, job.pipelines
  return setmetatable(found, class)
end

-- ------------------------------------------------------------------- starting

local known_options = { "context", "every" }

local function check_arguments(module, options)
  if ir.kind_of(module) ~= "Module" then
    argument.fail(("pl.bisect: a module expected, got %s"):format(ir.kind_of(module)))
  end
  argument.options(options, "pl.bisect", known_options)
end

--- The run that breaks the module: { pass, nth, place, run, runs, before, after,
-- message, failure }, the application of a rule in it, where there is one: { rule,
-- application, applications, node_before, node_after }, and the nearest modules that
-- are well and not: { good, bad, functions }. Nil and a diagnostic when the predicate
-- fails from the start, or never. Without a predicate the run is looked for that fails.
-- `options`: context, what to run in (the current one); every: ask after each run,
-- for what is broken and mended again.
return function(pipeline, module, question, options)
  options = options or {}
  check_arguments(module, options)
  local context = options.context or core.current()
  local job = {
    pipeline = ir.kind_of(pipeline) == "Pass" and pipeline or pass.sequential { pipeline },
    module = module, context = context, limits = run_record.inside(context, {}),
    predicate = question and predicate.make(question):against(module),
    holds = holds, known = {}, states = {}, asked = 0, pipelines = 1,
  }
  job.run_record = run_record.record(job.pipeline, module, job.context)
  local bad, before, mended = search(job, options.every)
  if not bad then return nil, before end
  return answer(job, bad, before, mended)
end
