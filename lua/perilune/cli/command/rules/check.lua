--- perilune rules check: whether rewrite rules keep what programs compute.

local library = require "perilune.rule.library"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
local core = require "perilune.core"
core.internal() -- errors name the scripts of others

local rules_check = {
  description = "Checks rewrite rules: for each rule, programs that its pattern matches are "
    .. "generated (dtypes, ranks, shapes with axes of 0, 1 and unknown extents), the rule alone is "
    .. "applied, and both programs are evaluated on the same numbers (zeros of both signs, "
    .. "infinities, NaN, subnormals, limits of the dtype). Results of a rule of proof 'exact' are "
    .. "compared bit by bit, except for the sign of zero; those of 'reassociates' and "
    .. "'approximates' within a tolerance of the dtype, on tame numbers. A failure is shown as a "
    .. "small program with its inputs and the seed. A rule that no program was made for is not "
    .. "checked, which is a failure, too; its field 'example' can give one. Exit status: 0 all "
    .. "passed, 1 not, 2 wrong usage.",
}

function rules_check.arguments(parser)
  parser:argument("set", "What to check: a file of rules FILE.lua, which returns a set "
    .. "(pl.rules), a list of sets or a list of rules; a pass such as SimplifyExpr or "
    .. "FoldConvBias; a file of shipped rules such as arithmetic. By default all shipped rules "
    .. "and passes."):argname "SET|FILE.lua":args "?"
  parser:argument("name", "The only rule to check."):argname "NAME":args "?"
  parser:option("--cases", "The number of comparisons for each rule."):argname "N":default "100"
    :convert(numbers.count)
  parser:option("--seed", "The seed of the first program; each further one has the next seed.")
    :argname "N":default "1":convert(numbers.seed)
  parser:mutex(
    parser:flag("-q --quiet", "Prints failures only."),
    parser:flag("-v --verbose", "Prints a line for each rule that passed, too."))
end

-- The prepared rules of a file.
local function rules_of_file(path)
  local check = require "perilune.rule.check"
  local sets, reason = require "perilune.rule.file".load(path)
  if not sets then stop.failure("%s", reason) end
  local rules = {}
  for _, set in ipairs(sets) do
    local prepared = check.rules(set)
    table.move(prepared, 1, #prepared, #rules + 1, rules)
  end
  return rules
end

local function unknown_set(name)
  local names = require "perilune.rule.check.passes".names()
  for _, row in ipairs(library.rules()) do
    names[#names + 1], names[#names + 2] = row.pass, row.file
  end
  stop.usage("no rules are called '%s'%s", name, core.suggest(name, names))
end

-- Rules of sets, then passes whose rewrites are functions in C.
local function shipped_rules(name)
  local rows = library.rules()
  if name then rows = library.set(name) or {} end
  local rules = require "perilune.rule.check.shipped".prepare(rows)
  local passes = require "perilune.rule.check.passes".prepare(name)
  table.move(passes, 1, #passes, #rules + 1, rules)
  if #rules == 0 then unknown_set(name) end
  return rules
end

local function only(rules, name, set)
  local names = {}
  for i, rule in ipairs(rules) do
    if rule.name == name then return { rule } end
    names[i] = rule.name
  end
  stop.usage("no rule of '%s' is called '%s'%s", set, name, core.suggest(name, names))
end

-- Shows results as they come, and what is being checked on a terminal.
local function reporter(options, rules)
  local check = require "perilune.rule.check"
  local progress = require "perilune.instruments".progress()
  local done = 0
  local function show(result)
    done = done + 1
    progress.clear()
    if result.status ~= "passed" or options.verbose then print(check.text(result)) end
    if not options.quiet then progress.show(("%d of %d rules"):format(done, #rules)) end
  end
  return show, progress.clear
end

local function summary(results, options, seconds)
  local counts = { passed = 0, failed = 0, unchecked = 0 }
  local cases, fired = 0, 0
  for _, result in ipairs(results) do
    counts[result.status] = counts[result.status] + 1
    cases, fired = cases + result.cases, fired + result.fired
  end
  return ("%d passed, %d failed, %d not checked; %d programs, %d comparisons, seed %d, %.1f s")
    :format(counts.passed, counts.failed, counts.unchecked, cases, fired, options.seed, seconds)
end

function rules_check.run(options)
  local host = require "perilune.cli.host"
  require "perilune"
  local is_file = options.set and options.set:find "%.lua$"
  local rules = is_file and rules_of_file(options.set) or shipped_rules(options.set)
  if options.name then rules = only(rules, options.name, options.set) end
  local show, clear = reporter(options, rules)
  local started = host.clock()
  local results, passed = require "perilune.rule.check".all(rules,
    { cases = options.cases, seed = options.seed, progress = show })
  clear()
  if not options.quiet then print(summary(results, options, host.clock() - started)) end
  return passed and 0 or 1
end

return rules_check
