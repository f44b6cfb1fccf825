-- sample_compute_location: a random place at which a block may be computed.

local core = require "perilune.core"
core.internal()

local checks = require "perilune.tir.schedule.checks"
local compute_at = require "perilune.tir.schedule.compute_at"
local inline = require "perilune.tir.schedule.inline"
local sampling = require "perilune.tir.schedule.sampling"
local State = require "perilune.tir.schedule.state"
local tree = require "perilune.tir.schedule.tree"

-- Decisions that are no number of a loop, and what the variable stands for then.
local ROOT, INLINE = -1, -2

local compute_location = { ROOT = "root", INLINE = "inline" }

-- Whether a primitive is done, on a state of its own.
local function is_possible(s, name, primitive, ...)
  local trial = State.new(s.terms, s.funcs)
  trial.primitive = name
  return (pcall(primitive, trial, ...))
end

-- The loops around the first consumer that hold all of them, outermost first.
local function loops_of_consumers(s, consumers)
  local out = {}
  for i, loop in ipairs(consumers[1] and s:loops(consumers[1]) or {}) do
    for _, consumer in ipairs(consumers) do
      if not s:contains(loop, consumer) then return out end
    end
    out[i] = loop
  end
  return out
end

-- Whether the bindings of the blocks in a loop use it in spatial iterators only, or not at all.
local function is_data_parallel(s, loop)
  for _, block in ipairs(s:child_blocks(loop)) do
    for i, iter in ipairs(block.iters) do
      if iter.type ~= tree.SPATIAL and s.terms:uses(block.values[i], { [loop.var] = true }) then
        return false
      end
    end
  end
  return true
end

-- How many of the loops are tried: those behind the last data-parallel one are not, nor is what
-- follows a data-parallel loop behind another kind.
local function n_tried(s, loops)
  local last, other = 0, false
  for i, loop in ipairs(loops) do
    local parallel = is_data_parallel(s, loop)
    if parallel and other and s.terms:constant(loop.extent) ~= 1 then return i - 1 end
    if parallel then last = i end
    other = other or not parallel and s.terms:constant(loop.extent) ~= 1
  end
  return last
end

-- Decisions in ascending order, and what each stands for. A loop's decision is its number from 0.
local function candidates(s, block)
  local decisions, places = {}, {}
  local function add(decision, place)
    decisions[#decisions + 1], places[decision] = decision, place
  end
  local consumers = checks.consumers(s, block)
  if #consumers > 0 and is_possible(s, "compute_inline", inline.compute_inline, block) then
    add(INLINE, compute_location.INLINE)
  end
  add(ROOT, compute_location.ROOT)
  local loops = loops_of_consumers(s, consumers)
  for i = 1, n_tried(s, loops) do
    local loop = loops[i]
    if s.terms:constant(loop.extent) ~= 1
        and is_possible(s, "compute_at", compute_at.compute_at, block, loop, false, -1) then
      add(i - 1, loop.id)
    end
  end
  return decisions, places
end

-- The last of the decisions that is not above a number; the first one if all are.
local function nearest(decisions, number)
  local found = decisions[1]
  for _, decision in ipairs(decisions) do
    if decision <= number then found = decision end
  end
  return found
end

--- A loop at which compute_at may compute a block, or none (compute_at then does nothing), or
-- inline. A decision is the number of the loop around its consumers, from 0, or -1, or -2; the
-- next lower one that is possible is taken.
function compute_location.sample(s, block)
  s:scope(block)
  local decision = s.decision
  local decisions, places = candidates(s, block)
  if decision == nil then
    decision = decisions[1 + sampling.below(s.random, #decisions)]
  elseif type(decision) == "function" then
    decision = decisions[decision(#decisions)]
  elseif math.type(decision) ~= "integer" then
    s:fail("a decision is the number of a loop, -1 or -2, got %s", tostring(decision))
  end
  s.decided = nearest(decisions, decision)
  return places[s.decided]
end

-- ----------------------------------------------------- compute_at at a place

-- What a primitive does at a loop, or at what was sampled instead of one.
local function at_location(primitive, inlined)
  return function(s, block, location, ...)
    if location == compute_location.ROOT then
      return nil
    elseif location == compute_location.INLINE then
      return inlined(s, block)
    end
    return primitive(s, block, location, ...)
  end
end

compute_location.compute_at = at_location(compute_at.compute_at, inline.compute_inline)
compute_location.reverse_compute_at = at_location(compute_at.reverse_compute_at,
  inline.reverse_compute_inline)

return compute_location
