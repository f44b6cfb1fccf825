--- pl.instruments.statistics: what passes and their rules did, summed up over all
-- runs in the context.
--
--     local statistics = pl.instruments.statistics()
--     pl.with(pl.context { instruments = { statistics } }, pipeline, mod)
--     print(statistics)
--     for _, row in ipairs(statistics:unused()) do print(row.pass, row.rule) end

local core = require "perilune.core"
local argument = require "perilune.argument"
local nesting = require "perilune.instruments.nesting"
core.internal()

local methods = {}

-- The row of `key`, made when it is not there.
local function sum_of(list, by_key, key, new)
  local sum = by_key[key]
  if not sum then
    sum = new
    by_key[key], list[#list + 1] = sum, sum
  end
  return sum
end

local function key_of(row) return row.pass .. "\0" .. row.rule end

local function add_pass(self, row)
  local sum = sum_of(self.passes, self.by_pass, row.name,
    { name = row.name, runs = 0, changed = 0, seconds = 0, counts = {} })
  sum.runs, sum.seconds = sum.runs + 1, sum.seconds + row.seconds
  if row.changed then sum.changed = sum.changed + 1 end
  for key, n in pairs(row.counts) do sum.counts[key] = (sum.counts[key] or 0) + n end
end

local fields = { "tried", "applied", "refused", "seconds" }

-- `before` is what the row said when this was called last, or nil.
local function add_rule(self, row, before)
  local sum = sum_of(self.rules, self.by_rule, key_of(row),
    { pass = row.pass, rule = row.rule, tried = 0, applied = 0, refused = 0, seconds = 0 })
  for _, field in ipairs(fields) do
    sum[field] = sum[field] + row[field] - (before and before[field] or 0)
  end
end

local function rules_by_key()
  local rows = {}
  for _, row in ipairs(core.rule_report()) do rows[key_of(row)] = row end
  return rows
end

--- The rules that were never applied, of passes that ran.
function methods.unused(self)
  local list = {}
  for _, row in ipairs(self.rules) do
    if row.applied == 0 then list[#list + 1] = row end
  end
  return list
end

local function counts_text(counts)
  local parts = {}
  for key, n in pairs(counts) do parts[#parts + 1] = ("%s %d"):format(key, n) end
  table.sort(parts)
  return #parts > 0 and " (" .. table.concat(parts, ", ") .. ")" or ""
end

local function rule_line(row)
  return ("  %s: %d tried, %d applied%s, %.3f ms"):format(row.rule, row.tried, row.applied,
    row.refused > 0 and (", %d refused"):format(row.refused) or "", 1000 * row.seconds)
end

local function unused_line(self, pass)
  local names = {}
  for _, row in ipairs(self:unused()) do
    if row.pass == pass then names[#names + 1] = row.rule end
  end
  return #names > 0 and "  never applied: " .. table.concat(names, ", ") or nil
end

local function text(self)
  local lines = {}
  for _, sum in ipairs(self.passes) do
    lines[#lines + 1] = ("%s: %d run%s, %d changed, %.3f ms%s"):format(sum.name, sum.runs,
      sum.runs == 1 and "" or "s", sum.changed, 1000 * sum.seconds, counts_text(sum.counts))
    for _, row in ipairs(self.rules) do
      if row.pass == sum.name and row.applied > 0 then lines[#lines + 1] = rule_line(row) end
    end
    if self.all then lines[#lines + 1] = unused_line(self, sum.name) end
  end
  return table.concat(lines, "\n")
end

local class = { __index = methods, __name = "statistics", __tostring = text }

--- Sums up: `passes` of { name, runs, changed, seconds, counts } and `rules` of
-- { pass, rule, tried, applied, refused, seconds }, in order of first appearance.
-- tostring shows both; with `unused` in the options also the rules that were
-- never applied.
return function(options)
  argument.options(options, "instruments.statistics", { "unused" })
  local self = nesting(setmetatable({ name = "statistics", passes = {}, rules = {}, by_pass = {},
    by_rule = {}, all = options and options.unused or false }, class))
  local read, before = 0, {}

  -- The report is complete when the outermost pass ends.
  function self.open()
    if self.depth > 0 then return end
    core.rule_watch()
    read, before = #core.report(), rules_by_key()
  end

  function self.close()
    local report = core.report()
    for i = read + 1, #report do add_pass(self, report[i]) end
    read = #report
    if self.depth > 0 then return end
    for _, row in ipairs(core.rule_report()) do add_rule(self, row, before[key_of(row)]) end
    before = rules_by_key()
  end

  return self
end
