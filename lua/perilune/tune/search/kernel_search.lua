--- The search of kernels, each by itself: a kernel is compiled alone and compared with what is
-- known to be the best for it, in a cache without its operands, as within a model. What was found
-- for all of them together is a point, which is then measured as those of other searches are.
--
-- Kernels that lose the most (kernel_loss.lua) come first; of each one decision after the other is
-- tried. A trial of a kernel is a trial of the search, and a record. Ctrl-C ends the trials of
-- kernels; what they found is measured together once.

local c_compiler = require "perilune.codegen.c_compiler"
local core = require "perilune.core"
local decision = require "perilune.topi.decision"
local failure = require "perilune.tune.run.failure"
local kernel_loss = require "perilune.tune.search.kernel_loss"
local time_limit = require "perilune.tune.run.time_limit"
core.internal()

local kernel_search = {}

-- The share of the budget until the end of trials of kernels, at most, and for these at least of
-- what the base leaves; the rest is for what was found together, whose functions are compiled
-- already: it takes as long as the base without compiling, and somewhat more.
local MOST_SHARE, LEAST_SHARE, OF_BASE = 0.85, 0.4, 1.5

-- The effort of measuring what was found for all kernels: small differences are to be told.
local TOGETHER = 2

-- After so many kernels, those that lose the most, what was found is put together once: who
-- ends a search early has a result.
local FIRST_KERNELS = 4

-- Bytes that are written before a call: those of a model at the most, and more than a second cache
-- has. Within a model operands come from the third one, which has the results of the calls before;
-- were that written anew, kernels would wait for memory, and what they gain is not seen in a model.
local MOST_EVICTED = 1 << 20

-- A comparison of kernels is one of short programs: small differences count, as they add up.
local COMPARISON = { difference = 0.01, drop = 1.15, pairs = 60 }

-- The blocks of a kernel that is timed alone: that only says which kernels come first.
local BLOCKS_ALONE = 8

-- What is spent of the budget, from 0 to 1.
local function spent(search)
  local by_trials = search.count.trials / search.trials
  if search.replay or search.seconds == math.huge then return by_trials end
  return math.max(by_trials, (core.clock() - search.begun) / search.seconds)
end

-- The share of the budget for kernels. Trials alone decide in a replay.
local function share_of(search)
  if search.replay or search.seconds == math.huge then return MOST_SHARE end
  local base = (core.clock() - search.begun) / search.seconds
  local together = search.rebuild_seconds / search.seconds
  return math.max(MOST_SHARE - OF_BASE * together, base + LEAST_SHARE * (1 - base))
end

-- ------------------------------------------------------------------------ trials

local function runnable_of(self, one)
  if not one.runnable then
    local why
    local mod = require "perilune".module { [one.kernel.name] = one.kernel.fn }
    one.runnable, why = self.builder:build(mod)
    if not one.runnable then return nil, why end
  end
  return one.runnable
end

-- The trial of `one` against `best`; without `best` it is timed alone.
local function measure(self, one, best)
  local runnable, why = runnable_of(self, one)
  if not runnable then return { failure = tostring(why), checked = false } end
  local other, reason
  if best then
    other, reason = runnable_of(self, best)
    if not other then return { failure = tostring(reason), checked = false } end
  end
  local result, wrong
  if best then
    result, wrong = self.runner:compare(runnable, other)
  else
    result, wrong = self.timer:run(runnable)
  end
  if not result then return { failure = tostring(wrong), checked = false } end
  if not best then return { cost = 1, checked = false, verdict = "undecided", seconds = result } end
  return { cost = best.cost * result.ratio, checked = false, verdict = result.verdict,
    confidence = result.confidence, seconds = result.candidate }
end

-- The same, from the records if they have it; nil: the budget for kernels is spent, or a replay is
-- where the recorded search went on with something else.
local function trial_of(self, one, best)
  local search = self.search
  local text = decision.text { [one.kernel.key] = one.chosen }
  if text == "" then text = one.kernel.key .. ":" end
  local trial = search:recorded_part(text)
  if not trial then
    if search.replay or search.unrecorded or spent(search) > self.share then return nil end
    trial = measure(self, one, best)
    if trial.failure and core.clock() >= search.deadline then return nil end
    search:commit_part(text, trial)
  end
  search:note_part(text, trial)
  return trial
end

-- ------------------------------------------------------------------------ kernels

-- Candidates of a decision for the best so far, but the one that it has.
local function candidates_of(best, row)
  local list = {}
  for _, text in ipairs(row.candidates) do
    if text ~= row.chosen then
      local chosen = {}
      -- What is decided after this one may be asked for no more.
      for _, before in ipairs(best.kernel.decisions) do
        if before.name == row.name then break end
        chosen[before.name] = best.chosen[before.name]
      end
      chosen[row.name] = text
      list[#list + 1] = chosen
    end
  end
  return list
end

-- Whether the user says how C is compiled, so that this is not decided here.
local function has_compiler(self) return self.builder.cc ~= nil or self.builder.flags ~= nil end

-- The first decision that was not tried yet.
local function next_row(self, state)
  for _, row in ipairs(state.best.kernel.decisions) do
    local is_given = row.name == c_compiler.DECISION and has_compiler(self)
    if not state.done[row.name] and not is_given then return row end
  end
end

local function made(self, key, chosen)
  local ok, kernel = time_limit(self.search.deadline, self.space.lower, self.space, key, chosen)
  if ok then return kernel and { kernel = kernel, chosen = chosen } end
  if failure.is_interrupt(kernel) then error(kernel, 0) end
  return nil
end

-- Tries all candidates of one decision. false: the budget is spent.
local function try_row(self, state, row)
  local before = state.best
  for _, chosen in ipairs(candidates_of(before, row)) do
    local text = decision.text { [before.kernel.key] = chosen }
    local one = not state.tried[text] and made(self, before.kernel.key, chosen)
    state.tried[text] = true
    if one and not core.node_equal(one.kernel.fn, state.best.kernel.fn, false) then
      local trial = trial_of(self, one, state.best)
      if not trial then return false end
      if trial.verdict == "faster" then
        one.cost = trial.cost
        state.best = one
      end
    end
  end
  return true
end

-- Goes on with a kernel; false: the budget is spent.
local function tune(self, state)
  local row = next_row(self, state)
  while row do
    if not try_row(self, state, row) then return false end
    state.done[row.name] = true
    row = next_row(self, state)
  end
  return true
end

-- The state of a kernel of which no decision was tried yet, that takes so many seconds.
local function new_state(best, seconds, index)
  local kernel = best.kernel
  local mod = require "perilune".module { [kernel.name] = kernel.fn }
  return { best = best, done = {}, tried = {}, seconds = seconds, calls = kernel.calls,
    index = index, operations = kernel_loss.operations(mod),
    free = kernel_loss.is_free(kernel.decisions) }
end

-- The states of kernels that have decisions, those that lose the most first.
local function states_of(self)
  local list = {}
  for i, kernel in ipairs(self.space.kernels) do
    if next_row(self, { best = { kernel = kernel }, done = {} }) then
      local best = made(self, kernel.key, {})
      if not best then break end
      best.cost = 1
      local trial = trial_of(self, best)
      if not trial then break end
      list[#list + 1] = new_state(best, trial.seconds and trial.seconds.min or 0, i)
    end
  end
  kernel_loss.set(list)
  table.sort(list, function(a, b)
    if a.loss ~= b.loss then return a.loss > b.loss end
    return a.index < b.index
  end)
  return list
end

local function schedules_of(states)
  local out = {}
  for _, state in ipairs(states) do
    if next(state.best.chosen) then out[state.best.kernel.key] = state.best.chosen end
  end
  return out
end

-- Measures what is known together.
local function measure_together(states, found)
  local schedules = schedules_of(states)
  if next(schedules) then found(schedules, TOGETHER) end
end

local function tune_all(self, states, found)
  for i, state in ipairs(states) do
    if not tune(self, state) then break end
    if i == FIRST_KERNELS then measure_together(states, found) end
  end
  measure_together(states, found)
end

--- Tunes the kernels of a space; calls found(schedules, effort) with what is known after some
-- kernels and at the end.
function kernel_search.run(search, space, found)
  local objective = search.objective
  local self = { search = search, space = space, share = share_of(search),
    builder = objective.builder:with { evict = math.min(space.bytes, MOST_EVICTED) },
    runner = objective.runner:with(COMPARISON),
    timer = objective.runner:with { pairs = BLOCKS_ALONE } }
  local states = states_of(self)
  local stopped, ok, why = core.until_stopped(tune_all, self, states, found)
  if ok then return end
  if stopped == "interrupted" or search:is_interrupted(why) then
    search:end_interrupted(measure_together, states, found)
  end
  error(why, 0)
end

return kernel_search
