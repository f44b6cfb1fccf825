--- pl.reduce: a module and a pipeline made small while what is wrong stays wrong.
--
--     local small, diag = pl.reduce(model, "oracle", { pipeline = pipeline, seconds = 60 })
--     print(small, small.pipeline)
--     print(small.module)
--
-- What is wrong is that the pipeline fails, or that the predicate does not hold for
-- what it makes (without a pipeline: for the module itself). What is tried is kept
-- when the same is wrong with it: a failure of the same code in the same pass, or
-- the predicate. The same arguments give the same result, unless time runs out.

local core = require "perilune.core"
local argument = require "perilune.argument"
local failure = require "perilune.debug.failure"
local ir = require "perilune.ir"
local pass = require "perilune.pass"
local predicate = require "perilune.debug.predicate"
local run_record = require "perilune.debug.run_record"
core.internal()

-- -------------------------------------------------------------- what is wrong

-- A failure is told from others by its code and the pass that failed.
local function kind_of_failure(diag)
  return ("%s in %s"):format(diag.code, diag.message:match "pass '([^']*)'" or "?")
end

-- What is wrong, in a few words that are compared, and how to tell it; nil: nothing.
local function wrong(job, module, pipeline)
  local result = module
  if pipeline then
    local ok, made = failure.catch(pass.with, job.context, pipeline, module)
    if not ok then
      local diag = failure.diag(made)
      return kind_of_failure(diag), diag.message
    end
    result = made
  end
  if not job.predicate then return nil end
  local question = job.predicate:against(module)
  local good, message = pass.with(job.context, question.holds, question, result)
  if not good then return "predicate", message end
end

-- ----------------------------------------------------------------------- tries

local job_class = {}
job_class.__index = job_class

function job_class.over(self)
  if self.stopped then return true end
  if core.interrupted() then self.stopped = "interrupted" end
  if core.clock() >= self.deadline then self.stopped = "time" end
  return self.stopped ~= nil
end

-- Whether the same is wrong. A predicate that cannot tell says no.
local function still_wrong(self, module, pipeline)
  self.tries = self.tries + 1
  local ok, what, message = failure.catch(wrong, self, module, pipeline)
  if not ok or what ~= self.what then return false end
  self.message, self.kept = message, self.kept + 1
  if self.progress then self.progress(self) end
  return true
end

--- Keeps the module that build() makes when it is a new one, in order, and just as
-- wrong. Whether it is kept.
function job_class.try(self, build)
  if self:over() then return false end
  local ok, module = failure.catch(build)
  if not ok or module == self.module or not core.verify_module(module) then return false end
  local hash = core.module_hash(module)
  if self.seen[hash] then return false end
  self.seen[hash] = true
  if not still_wrong(self, module, self.pipeline) then return false end
  self.module = module
  return true
end

--- The same for a pipeline.
function job_class.try_pipeline(self, pipeline)
  if self:over() or not still_wrong(self, self.module, pipeline) then return false end
  self.pipeline, self.seen = pipeline, {}
  return true
end

-- --------------------------------------------------------------------- answers

local class = { __name = "reduction" }
class.__index = class

local function count_passes(pipeline)
  if pipeline.form == "primitive" then return 1 end
  local n = 0
  for _, list in ipairs { pipeline.passes, pipeline.otherwise or {} } do
    for _, each in ipairs(list) do n = n + count_passes(each) end
  end
  return n
end

class.__tostring = function(self)
  local lines = { ("%d of %d nodes"):format(self.nodes, self.nodes_before) }
  if self.pipeline then
    lines[1] = ("%s, %d of %d passes"):format(lines[1], self.passes, self.passes_before)
  end
  lines[1] = ("%s, in %d tries and %.1f s"):format(lines[1], self.tries, self.seconds)
  if self.stopped then
    lines[1] = ("%s; not as small as can be: %s"):format(lines[1],
      self.stopped == "time" and "the time is over" or self.stopped)
  end
  lines[2] = self.message
  return table.concat(lines, "\n")
end

local function answer(job, module, pipeline)
  return setmetatable({
    module = job.module, pipeline = job.pipeline, message = job.message, stopped = job.stopped,
    tries = job.tries, seconds = core.clock() - job.started,
    nodes = core.module_nodes(job.module), nodes_before = core.module_nodes(module),
    passes = pipeline and count_passes(job.pipeline),
    passes_before = pipeline and count_passes(pipeline),
  }, class)
end

-- -------------------------------------------------------------------- starting

local known_options = { "pipeline", "context", "seconds", "progress" }

local function check_arguments(module, options)
  if ir.kind_of(module) ~= "Module" then
    argument.fail(("pl.reduce: a module expected, got %s"):format(ir.kind_of(module)))
  end
  argument.options(options, "pl.reduce", known_options)
end

local function pipeline_of(options)
  local given = options.pipeline
  if given == nil or ir.kind_of(given) == "Pass" then return given end
  return pass.sequential { given }
end

-- Passes first: the fewer there are, the faster all that follows.
local function make_small(job)
  if job.pipeline then require "perilune.debug.reduce.pipeline" (job) end
  require "perilune.debug.reduce.module" (job)
  if job.pipeline then require "perilune.debug.reduce.pipeline" (job) end
end

--- { module, pipeline, message, nodes, nodes_before, passes, passes_before, tries,
-- seconds, stopped }, or nil and a diagnostic when nothing is wrong with the module.
-- `question`: a predicate, as pl.predicate takes it; nil: the pipeline fails. options:
-- pipeline; context, what it runs in (the current one); seconds, after which the best
-- so far is given, as it is after Ctrl-C (`stopped` is "time" or "interrupted");
-- progress(job), called when something is kept, with job.module and job.tries.
return function(module, question, options)
  options = options or {}
  check_arguments(module, options)
  local pipeline, started = pipeline_of(options), core.clock()
  local job = setmetatable({
    module = module, pipeline = pipeline, predicate = question and predicate.make(question),
    context = run_record.inside(options.context or core.current(), {}), seen = {},
    started = started, deadline = started + (options.seconds or math.huge),
    progress = options.progress, tries = 0, kept = 0,
  }, job_class)
  job.what, job.message = wrong(job, module, pipeline)
  if not job.what then
    return nil, core.diag("invalid", "the predicate does not fail for the module to reduce")
  end
  local ok, err = pcall(make_small, job)
  if not ok and not (failure.stops(err) and err.code == "interrupted") then core.raise(err) end
  if not ok then job.stopped = "interrupted" end
  return answer(job, module, pipeline)
end
