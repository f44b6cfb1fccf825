-- What a schedule is asked: blocks by name, loops around a block, blocks that depend on another,
-- and random decisions.

local core = require "perilune.core"
core.internal()

local checks = require "perilune.tir.schedule.checks"
local sampling = require "perilune.tir.schedule.sampling"
local tree = require "perilune.tir.schedule.tree"

local query = {}

local function ids(stmts)
  local out = {}
  for i, stmt in ipairs(stmts) do out[i] = stmt.id end
  return out
end

local function names_of(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

function query.get_block(s, name, func_name)
  local func, found, names = s.funcs[func_name], {}, {}
  if not func then
    s:fail("there is no PrimFunc '%s'%s", func_name, core.suggest(func_name, names_of(s.funcs)))
  end
  tree.visit(func.body, function(stmt)
    if stmt.kind ~= "Block" then return end
    names[stmt.name] = true
    if stmt.name == name then found[#found + 1] = stmt end
  end)
  if #found == 0 then
    s:fail("function '%s' has no block '%s'%s", func_name, name,
      core.suggest(name, names_of(names)))
  elseif #found > 1 then
    s:fail("function '%s' has %d blocks '%s'", func_name, #found, name)
  end
  return found[1].id
end

function query.get_loops(s, block) return ids(s:loops(block)) end

function query.get_child_blocks(s, stmt) return ids(s:child_blocks(stmt)) end

function query.get_producers(s, block) return ids(checks.producers(s, block)) end

function query.get_consumers(s, block) return ids(checks.consumers(s, block)) end

function query.get_output_blocks(s, scope)
  local out = {}
  for _, block in ipairs(s:child_blocks(scope)) do
    if checks.is_output(s, block) then out[#out + 1] = block.id end
  end
  return out
end

-- The number of one of the candidates that have a probability above 0.
local function chosen_candidate(probs, choose)
  local list = {}
  for i, prob in ipairs(probs) do
    if prob > 0 then list[#list + 1] = i - 1 end
  end
  return list[choose(#list)]
end

--- One of the candidates. A decision is its number, from 0.
function query.sample_categorical(s, candidates, probs)
  if #candidates == 0 or #candidates ~= #probs then
    s:fail("%d candidates have %d probabilities", #candidates, #probs)
  end
  local any = false
  for _, prob in ipairs(probs) do
    if prob < 0 or prob ~= prob or prob == math.huge then
      s:fail("probability %s is negative or no number", prob)
    end
    any = any or prob > 0
  end
  if not any then s:fail("no candidate has a probability above 0") end
  local decision = s.decision
  if s.refit and math.type(decision) == "integer" and not candidates[decision + 1] then
    decision = nil
  end
  if decision == nil then decision = sampling.categorical(s.random, probs) end
  if type(decision) == "function" then decision = chosen_candidate(probs, decision) end
  if math.type(decision) ~= "integer" or not candidates[decision + 1] then
    s:fail("there is no candidate %s", tostring(decision))
  end
  s.decided = decision
  return candidates[decision + 1]
end

local function check_tile(s, tile, n, extent)
  local product = 1
  if type(tile) ~= "table" or #tile ~= n then s:fail("a decision has %d factors", n) end
  for i = 1, n do
    if math.type(tile[i]) ~= "integer" or tile[i] < 1 then
      s:fail("factor %s is no positive integer", tostring(tile[i]))
    end
    product = product * tile[i]
  end
  if product ~= extent then s:fail("the factors of a decision have the product %d", product) end
  return tile
end

local function is_tile(tile, n, extent)
  local product = 1
  for _, factor in ipairs(tile) do product = product * factor end
  return #tile == n and product == extent
end

-- n factors whose product is the extent of the loop: a decision that is one, else what `choice`
-- gives by chance, or as the k-th of `count`. A loop of unknown extent is not divided.
local function sampled_tile(s, loop, n, extent, choice)
  local tile = s.decision
  if s.refit and type(tile) == "table" and not (is_tile(tile, n, extent) and choice.fits(tile)) then
    tile = nil
  end
  if extent == nil then
    tile = { -1 }
    for i = 2, n do tile[i] = 1 end
  elseif tile == nil or type(tile) == "function" then
    if extent < 1 or extent > 1 << 40 then
      s:fail("%s: an extent of %d has no factors", s:describe(loop), extent)
    end
    local choose, count = tile, choice.count()
    if count == 0 then
      s:fail("%s: there are no %d factors %s", s:describe(loop), n, choice.what)
    end
    tile = choose and choice.at(choose(count)) or choice.any()
  else
    check_tile(s, tile, n, extent)
    if not choice.fits(tile) then s:fail("the factors of a decision are none %s", choice.what) end
  end
  s.decided = tile
  return tile
end

local function check_count(s, n)
  if n < 1 or n > 32 then s:fail("1 to 32 factors expected, got %d", n) end
end

--- n factors whose product is the extent of the loop. A decision is their list.
function query.sample_perfect_tile(s, loop, n, max_innermost_factor)
  check_count(s, n)
  local extent = s.terms:constant(loop.extent)
  local most = max_innermost_factor == -1 and extent or max_innermost_factor
  return sampled_tile(s, loop, n, extent, {
    what = ("whose last is at most %d"):format(most or -1),
    fits = function() return true end,
    count = function() return sampling.count_tiles(extent, n, most) end,
    at = function(k) return sampling.tile_at(extent, n, most, k) end,
    any = function() return sampling.perfect_tile(s.random, extent, n, most) end,
  })
end

--- The same, where the product of the factors from partition_pos on (from 0 on) is a multiple of
-- innerpart_factor. A loop whose extent is none is not divided.
function query.sample_partitioned_tile(s, loop, n, partition_pos, innerpart_factor)
  check_count(s, n)
  local at, factor, extent = partition_pos, innerpart_factor, s.terms:constant(loop.extent)
  if factor < 1 then s:fail("innerpart_factor %d is not positive", factor) end
  if at < 0 or at > n or at == n and factor > 1 then
    s:fail("partition_pos is from 0 to %d, got %d", n - (factor > 1 and 1 or 0), at)
  elseif n < 2 and not (at == 0 and factor == 1) then
    s:fail("a loop is not divided into %d part of two", n)
  end
  if extent and extent % factor ~= 0 then extent = nil end
  local function fits(tile)
    local product = 1
    for i = at + 1, n do product = product * tile[i] end
    return product % factor == 0
  end
  return sampled_tile(s, loop, n, extent, {
    what = ("whose product from number %d on is a multiple of %d"):format(at, factor),
    fits = fits,
    count = function() return sampling.count_partitioned(extent, n, at, factor) end,
    at = function(k) return sampling.partitioned_at(extent, n, at, factor, k) end,
    any = function() return sampling.partitioned(s.random, extent, n, at, factor) end,
  })
end

return query
