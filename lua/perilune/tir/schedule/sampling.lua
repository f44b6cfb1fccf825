-- Random decisions of a schedule. A schedule has its own generator, so that a seed decides them
-- all; what was decided is recorded in the trace.
local core = require "perilune.core"
core.internal()

local sampling = {}

-- The minimal standard generator (Park and Miller, 48271), as TVM's LinearCongruentialEngine.
local MULTIPLIER, MODULUS = 48271, 2147483647

--- The state that a seed gives.
function sampling.seed(seed)
  local state = seed % MODULUS
  return state == 0 and 1 or state
end

local function next_state(state) return state * MULTIPLIER % MODULUS end

-- An integer of [0, n).
local function below(random, n)
  random.state = next_state(random.state)
  return random.state % n
end

sampling.below = below

--- The number (from 0) of one of the candidates, with its probability.
function sampling.categorical(random, probs)
  local total, at = 0.0, nil
  for _, prob in ipairs(probs) do total = total + prob end
  random.state = next_state(random.state)
  local left = random.state / MODULUS * total
  for i, prob in ipairs(probs) do
    if prob > 0 then at = i - 1 end
    left = left - prob
    if left < 0 and prob > 0 then break end
  end
  return at
end

local function divisors(n)
  local small, large = {}, {}
  for d = 1, math.floor(math.sqrt(n)) do
    if n % d == 0 then
      small[#small + 1] = d
      if d * d ~= n then table.insert(large, 1, n // d) end
    end
  end
  return table.move(large, 1, #large, #small + 1, small)
end

-- How many lists of `parts` factors have the product n, the last of them at most `most`.
local function counter(most)
  local known = {}
  local function count(n, parts, is_last)
    if parts == 1 then return (not is_last or n <= most) and 1 or 0 end
    local key = (n * 64 + parts) * 2 + (is_last and 1 or 0)
    if known[key] then return known[key] end
    local sum = 0
    for _, d in ipairs(divisors(n)) do
      if not is_last or d <= most then sum = sum + count(n // d, parts - 1, false) end
    end
    known[key] = sum
    return sum
  end
  return count
end

--- `parts` factors with the product n, the last at most `most`: each such list as likely as
-- another. nil: there is none.
function sampling.perfect_tile(random, n, parts, most)
  local count, tile, is_last = counter(most), {}, true
  if count(n, parts, true) == 0 then return nil end
  for i = parts, 2, -1 do
    local pick = below(random, count(n, i, is_last))
    for _, d in ipairs(divisors(n)) do
      if not is_last or d <= most then
        local ways = count(n // d, i - 1, false)
        if pick < ways then
          tile[i], n = d, n // d
          break
        end
        pick = pick - ways
      end
    end
    is_last = false
  end
  tile[1] = n
  return tile
end

--- How many lists of `parts` factors with the product n there are, the last at most `most`.
function sampling.count_tiles(n, parts, most) return counter(most)(n, parts, true) end

--- The k-th of them, from 1 on.
function sampling.tile_at(n, parts, most, k)
  local count, tile, is_last = counter(most), {}, true
  for i = parts, 2, -1 do
    for _, d in ipairs(divisors(n)) do
      if not is_last or d <= most then
        local ways = count(n // d, i - 1, false)
        if k <= ways then
          tile[i], n = d, n // d
          break
        end
        k = k - ways
      end
    end
    is_last = false
  end
  tile[1] = n
  return tile
end

-- The products that the factors from `at` on (from 0 on) may have, which are multiples of `factor`,
-- each with how many lists of `parts` factors with the product n have it; and how many these are.
local function partitions(n, parts, at, factor)
  local rows, total = {}, 0
  local count = counter(n)
  local function ways(product, k)
    if k == 0 then return product == 1 and 1 or 0 end
    return count(product, k, false)
  end
  for _, inner in ipairs(divisors(n)) do
    local outside = inner % factor == 0 and ways(n // inner, at) or 0
    local inside = outside > 0 and ways(inner, parts - at) or 0
    if inside > 0 then
      rows[#rows + 1] = { inner = inner, inside = inside, ways = outside * inside }
      total = total + outside * inside
    end
  end
  return rows, total
end

--- How many lists of `parts` factors with the product n there are in which the product of those
-- from `at` on (from 0 on) is a multiple of `factor`.
function sampling.count_partitioned(n, parts, at, factor)
  return select(2, partitions(n, parts, at, factor))
end

--- The k-th of them, from 1 on.
function sampling.partitioned_at(n, parts, at, factor, k)
  for _, row in ipairs((partitions(n, parts, at, factor))) do
    if k <= row.ways then
      local outer = at > 0
        and sampling.tile_at(n // row.inner, at, n, (k - 1) // row.inside + 1) or {}
      local inner = at < parts
        and sampling.tile_at(row.inner, parts - at, n, (k - 1) % row.inside + 1) or {}
      return table.move(inner, 1, #inner, #outer + 1, outer)
    end
    k = k - row.ways
  end
end

--- One of them, each as likely as another.
function sampling.partitioned(random, n, parts, at, factor)
  local total = sampling.count_partitioned(n, parts, at, factor)
  return sampling.partitioned_at(n, parts, at, factor, below(random, total) + 1)
end

return sampling
