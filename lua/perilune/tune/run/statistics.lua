--- Which of two programs is faster, from short blocks of runs that alternate.
--
-- A block is the seconds of one run, from runs that last 200 us or more. Both programs are
-- measured in pairs of blocks, in random order within a pair, so that what else the machine
-- does hits both alike. Wilcoxon's signed-rank test (1945) of the logarithms of the ratios says
-- how sure the difference is; it is taken at a few numbers of pairs, among which the
-- error is divided (Bonferroni). A candidate whose shortest block is 1.3 times the middle one of
-- the incumbent after three pairs is dropped (racing). One all of whose blocks are that much
-- shorter than all of the incumbent's after six pairs is faster: of 924 orders of the blocks of
-- equal programs one is such. A comparison ends after 20 pairs if nothing speaks for a difference.

local random = require "perilune.tune.random"
require "perilune.core".internal() -- errors name the scripts of others

local statistics = {}

statistics.defaults = {
  pairs = 80,        -- the most pairs of blocks
  seconds = 10,      -- what a comparison may take
  error = 0.01,      -- the probability of calling equal programs different
  difference = 0.03, -- what is less is no difference
  drop = 1.3,        -- racing; math.huge: never
  warm_up = 1,       -- blocks of each that do not count
  seed = 1,
  patient = false,   -- true: it does not end because nothing speaks for a difference
}

-- The numbers of pairs after which the test is taken.
local looks = { 10, 20, 40, 80, 160, 320 }

local function sorted(list)
  local out = table.move(list, 1, #list, 1, {})
  table.sort(out)
  return out
end

--- The middle of a list of numbers.
function statistics.median(list)
  local s = sorted(list)
  local n = #s
  if n == 0 then return 0 / 0 end
  return n % 2 == 1 and s[(n + 1) // 2] or (s[n // 2] + s[n // 2 + 1]) / 2
end

-- The tail of the normal distribution, by the continued fraction of erfc as Numerical Recipes
-- approximate it; relative error below 1.2e-7.
local function erfc(x)
  local z = math.abs(x)
  local t = 1 / (1 + 0.5 * z)
  local coefficients = { 0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
    -0.18628806, 0.09678418, 0.37409196, 1.00002368 }
  local sum = 0
  for _, c in ipairs(coefficients) do sum = (sum + c) * t end
  local value = t * math.exp(-z * z - 1.26551223 + sum)
  return x >= 0 and value or 2 - value
end

-- Ranks of magnitudes, the mean rank for ties; and the sum of t^3 - t over ties.
local function ranks_of(list)
  table.sort(list, function(a, b) return math.abs(a) < math.abs(b) end)
  local ranks, ties, i = {}, 0, 1
  while i <= #list do
    local k = i
    while k < #list and math.abs(list[k + 1]) == math.abs(list[i]) do k = k + 1 end
    for j = i, k do ranks[j] = (i + k) / 2 end
    local t = k - i + 1
    ties, i = ties + t * t * t - t, k + 1
  end
  return ranks, ties
end

--- The probability that numbers which are symmetric about 0 are as far to one side as these
-- (Wilcoxon's signed-rank test, two-sided, by the normal distribution).
function statistics.signed_rank(differences)
  local list, sum = {}, 0
  for _, x in ipairs(differences) do
    if x ~= 0 then list[#list + 1] = x end
  end
  local n = #list
  if n < 6 then return 1 end
  local ranks, ties = ranks_of(list)
  for i, x in ipairs(list) do
    if x > 0 then sum = sum + ranks[i] end
  end
  local mean = n * (n + 1) / 4
  local variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
  local distance = math.max(0, math.abs(sum - mean) - 0.5)
  return math.min(1, erfc(distance / math.sqrt(variance) / math.sqrt(2)))
end

-- ----------------------------------------------------------------- a comparison

local function least(list)
  local min = math.huge
  for _, x in ipairs(list) do if x < min then min = x end end
  return min
end

local function greatest(list) return math.max(table.unpack(list)) end

-- The seconds that a block lasted.
local function checked(x)
  if type(x) ~= "number" or not (x > 0 and x < math.huge) then
    error(("a block lasted %s seconds, and a positive number is expected"):format(tostring(x)), 0)
  end
  return x
end

local function measure_pair(state, block)
  local first = state.random:chance(0.5) and 1 or 2
  local seconds = {}
  seconds[first] = block(first)
  seconds[3 - first] = block(3 - first)
  for side = 1, 2 do table.insert(state.blocks[side], checked(seconds[side])) end
  table.insert(state.logs, math.log(seconds[1] / seconds[2]))
end

local function looks_within(most)
  local n = 0
  for _, at in ipairs(looks) do if at <= most then n = n + 1 end end
  return math.max(n, 1) + 1 -- is_separate looks, too
end

-- "faster" or "slower" when the test and the size of the difference say so.
local function decide(state)
  local p, middle = statistics.signed_rank(state.logs), statistics.median(state.logs)
  state.p = p
  if p > state.options.error / state.n_looks then return nil end
  local threshold = math.log(1 + state.options.difference)
  local shortest = math.log(least(state.blocks[1]) / least(state.blocks[2]))
  if middle < -threshold and shortest < 0 then return "faster" end
  if middle > threshold and shortest > 0 then return "slower" end
end

local function is_look(n, most)
  if n == most then return true end
  for _, at in ipairs(looks) do if at == n then return true end end
  return false
end

-- Whether the candidate is so much slower that no more pairs are wanted.
local function is_dropped(state, n)
  return n >= 3
    and least(state.blocks[1]) > state.options.drop * statistics.median(state.blocks[2])
end

-- Whether each block of the candidate is so much shorter than each of the incumbent that no more
-- pairs are wanted: of 2 n blocks in any order, n are the least with a chance of n! n! / (2 n)!.
local SEPARATE_PAIRS, SEPARATE_CHANCE = 6, 1 / 924

local function is_separate(state, n)
  return n == SEPARATE_PAIRS and SEPARATE_CHANCE <= state.options.error / state.n_looks
    and state.options.drop * greatest(state.blocks[1]) < least(state.blocks[2])
end

-- Whether nothing so far speaks for a difference: more pairs would hardly find one.
local function is_hopeless(state, n)
  return n >= 20 and state.p > 0.5 and not state.options.patient
end

local function next_verdict(state, n)
  if is_dropped(state, n) then
    state.dropped = true
    return "slower"
  end
  if is_separate(state, n) then
    state.chance = SEPARATE_CHANCE
    return "faster"
  end
  if not is_look(n, state.options.pairs) then return nil end
  local verdict = decide(state)
  if not verdict and is_hopeless(state, n) then return "undecided" end
  return verdict
end

local function summary(list)
  return { min = least(list), median = statistics.median(list), n = #list }
end

local function result_of(state, verdict)
  local blocks = state.blocks
  return {
    verdict = verdict or "undecided",
    confidence = 1 - (state.chance or statistics.signed_rank(state.logs)),
    ratio = least(blocks[1]) / least(blocks[2]),
    median_ratio = math.exp(statistics.median(state.logs)),
    pairs = #state.logs, dropped = state.dropped,
    candidate = summary(blocks[1]), incumbent = summary(blocks[2]),
  }
end

--- Compares two programs. `block(side)` gives the seconds of one run, from a block of runs, of the
-- candidate (1) or of the incumbent (2); `clock` tells the seconds that pass. The
-- result: verdict ("faster", "slower", "undecided": of the candidate), confidence, ratio (of the
-- shortest blocks, candidate to incumbent), median_ratio, pairs, dropped, candidate and
-- incumbent { min, median, n }.
function statistics.race(block, clock, options)
  options = setmetatable(options or {}, { __index = statistics.defaults })
  local state = { options = options, blocks = { {}, {} }, logs = {}, dropped = false,
    random = random(options.seed), n_looks = looks_within(options.pairs) }
  local begun, verdict = clock(), nil
  for _ = 1, options.warm_up do block(1) block(2) end
  for n = 1, options.pairs do
    measure_pair(state, block)
    verdict = next_verdict(state, n)
    if verdict or clock() - begun > options.seconds then break end
  end
  return result_of(state, verdict)
end

--- The blocks of one program: { min, median, n }.
function statistics.repeated(block, clock, options)
  options = setmetatable(options or {}, { __index = statistics.defaults })
  local begun, list = clock(), {}
  for _ = 1, options.warm_up do block() end
  repeat
    list[#list + 1] = checked(block())
  until #list >= options.pairs or clock() - begun > options.seconds
  return summary(list)
end

return statistics
