--- The application of a rule that breaks a module, within the run of a pass that is
-- known to: the second half of what bisect.lua does.

local core = require "perilune.core"
local run_record = require "perilune.debug.run_record"
core.internal()

-- What the run does when no more than `k` of its applications may happen (nil: any):
-- { good, module, rules, asked }.
local function run_limited(job, run, k)
  job.pipelines = job.pipelines + 1
  local module, _, rules, asked = run_record.first(job.pipeline, job.module, job.context, run, k)
  local good = module ~= nil and job.holds(job, module)
  return { good = good, module = module, rules = rules, asked = asked }
end

-- How often the pass asked in all of its runs whether a rule may be applied: no fewer
-- than in one that failed.
local function asked_for(rules, pass)
  local sum = 0
  for _, row in ipairs(rules) do
    if row.pass == pass then sum = sum + row.applied + row.refused end
  end
  return sum
end

-- The rule that was applied once more.
local function rule_between(low, high, pass)
  local before = {}
  for _, row in ipairs(low.rules) do
    if row.pass == pass then before[row.rule] = row.applied end
  end
  for _, row in ipairs(high.rules) do
    if row.pass == pass and row.applied > (before[row.rule] or 0) then return row.rule end
  end
end

-- A node as one line: the last of its text, where its operands stand by name.
local function line_of(node)
  if not node then return nil end
  local line = node:text { metadata = false }:match "([^\n]*)\n*$"
  return line:find "^%s*}" and node.kind or line
end

local function describe(low, high, pass, k)
  local found = { rule = rule_between(low, high, pass), application = k,
    applications = high.asked, good = low.module, bad = high.module }
  if high.module then
    local _, x, y = core.module_mismatch(low.module, high.module)
    found.node_before, found.node_after = line_of(x), line_of(y)
  end
  return found
end

--- { rule, application, applications, good, bad, node_before, node_after }: so many
-- applications the run asks for, the nearest modules that are well and not, and
-- where they differ first; when the pass fails there is neither that number nor
-- `bad`. Nil when it is not an application of a rule that breaks it, or when the
-- pass names none.
return function(job, run, pass)
  local high = run_limited(job, run)
  local most = high.asked or asked_for(high.rules, pass)
  if high.good or most == 0 then return nil end
  local low, first, last = run_limited(job, run, 0), 0, most
  if not low.good then return nil end
  while last - first > 1 do
    local middle = (first + last) // 2
    local one = run_limited(job, run, middle)
    if one.good then low, first = one, middle else high, last = one, middle end
  end
  return describe(low, high, pass, last)
end
