--- The shipped rules as perilune.rule.check takes them. Those whose replacement is in C run
-- as the pass that has them runs them, with all others left out (config key rules.only).

local check = require "perilune.rule.check"
local core = require "perilune.core"
local examples = require "perilune.rule.check.examples"
local pass = require "perilune.pass"
core.internal()

local shipped = {}

-- The examples by the texts of rules, which the compiled table lacks.
local function examples_of(file)
  local found = {}
  for _, rule in ipairs(require("perilune.rules." .. file:gsub("/", "."))) do
    found[rule[1]] = rule.example
  end
  return found
end

-- Applies one rule by the pass that runs it.
local function apply_by_pass(row)
  local run = core.make(row.pass)
  local context = pass.context { opt_level = 3, config = { ["rules.only"] = { row.name } } }
  return function(fn)
    local module = core.module { main = fn }
    local new = pass.with(context, run, module)
    for _, report in ipairs(core.report()) do
      if (report.counts[row.name] or 0) > 0 then return new.functions.main, true end
    end
    return fn, false
  end
end

-- A pattern without replacement stands for one in C: Lua's has none either.
local function compile(row)
  local copy = {}
  for key, value in pairs(row) do copy[key] = value end
  if row.native then copy.replace = function() end end
  return core.rule_set(row.file, { copy })
end

--- The rules of those rows (perilune.rule.library), prepared.
function shipped.prepare(rows)
  local files, rules = {}, {}
  for i, row in ipairs(rows) do
    files[row.file] = files[row.file] or examples_of(row.file)
    local set = compile(row)
    local apply = row.native and apply_by_pass(row) or check.apply_with(set, row, true)
    local example = files[row.file][row.text] or examples[row.name]
    rules[i] = check.prepare(row, set, 1, example, apply)
  end
  return rules
end

return shipped
