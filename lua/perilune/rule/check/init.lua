--- Checks rewrite rules by evaluation: programs that a rule matches are generated, the
-- rule alone is applied to each, and both programs are evaluated on the same numbers.
--
-- A rule of proof `exact` must give the same results bit by bit, except for the sign of
-- zero and the bits of NaN, on numbers of all kinds; others within values.tolerance, on
-- tame numbers. A rule for which no program was made that it applies to is unchecked,
-- which is no success.

local argument = require "perilune.argument"
local core = require "perilune.core"
local choices = require "perilune.rule.check.choices"
local difference = require "perilune.check.tensor_difference"
local failure = require "perilune.debug.failure"
local ir = require "perilune.ir"
local program = require "perilune.rule.check.program"
local values = require "perilune.rule.check.values"
core.internal()

local check = {}

-- Programs tried for each comparison that is wanted, and at least.
local TRIES, LEAST_TRIES = 60, 3000
-- Runs spent on making a counterexample smaller.
local MOST_SHRINKS = 400
-- Programs between collections of garbage.
local COLLECT_EVERY = 500
-- Elements of a tensor that are shown.
local SHOWN = 24

-- ------------------------------------------------------------------ evaluating

-- Raises what stops a check rather than failing a rule. That a rule does not come to an
-- end is a limit, too, but of the rule's own.
local function pass_on(err)
  local limit = getmetatable(err) == "perilune.Diag" and err.code == "limit"
    and not err.message:find "do not come to an end"
  if limit or failure.stops(err) then error(err, 0) end
end

local function message(err)
  return type(err) == "string" and err or err.message or tostring(err)
end

local function evaluate(fn, inputs)
  local results = table.pack(pcall(core.eval, fn, table.unpack(inputs)))
  if results[1] then return results end
  pass_on(results[2])
  return nil, message(results[2])
end

local function tolerance_of(rule, tensor)
  local most = values.tolerance[rule.proof][tensor.dtype] or 0
  return { rtol = most, atol = most, scaled = not rule.exact }
end

-- Whether the first difference is where the original overflows, which numbers that are
-- not tame any more do: a rule that is not exact may do better there.
local function overflows(rule, after, before)
  if rule.exact then return false end
  local _, how = after:compare(before, tolerance_of(rule, before))
  return how.what == "elements" and how.expected:find "[in][na][fn]" ~= nil
end

-- How results differ, or nil, and how many elements were compared; nil, nil where the
-- original overflows.
local function compare(rule, before, after)
  local elements = 0
  if before.n ~= after.n then return "the number of results differs" end
  for i = 2, before.n do
    local how = difference(after[i], before[i], tolerance_of(rule, before[i]))
    if how and overflows(rule, after[i], before[i]) then return nil end
    if how then
      return (before.n > 2 and ("result %d"):format(i - 1) or "the result") .. " differs" .. how
    end
    elements = elements + before[i].size
  end
  return nil, elements
end

-- ------------------------------------------------------------------- one program

local function results_text(results)
  local list = {}
  for i = 2, results.n do list[i - 1] = check.tensor_text(results[i]) end
  return table.concat(list, "\n")
end

--- A tensor with its elements, of which the first are shown.
function check.tensor_text(tensor)
  local list, size = {}, math.min(tensor.size, SHOWN)
  for i = 1, size do list[i] = core.element_text(tensor, i) end
  if size < tensor.size then list[size + 1] = "..." end
  return ("%s: %s"):format(tostring(tensor), table.concat(list, ", "))
end

-- Relay text without the comments that have types, which parsing finds again.
local function text_of(fn) return (tostring(fn):gsub(" /%*.-%*/", "")) end

-- The constants that the text of a function refers to by number.
local function constants_of(fn)
  local list = {}
  for node in fn:nodes() do
    local text = node.kind == "Constant" and node:text { metadata = false } or ""
    if text:find("meta[relay.Constant]", 1, true) then
      list[#list + 1] = { name = ("meta[relay.Constant][%d]"):format(#list),
        text = check.tensor_text(node.data), tensor = node.data }
    end
  end
  return list
end

local function failed(one, difference_text, rewritten, before, after)
  local inputs = {}
  for i, param in ipairs(one.fn.params) do
    inputs[i] = { name = param.name, text = check.tensor_text(one.inputs[i]),
      tensor = one.inputs[i] }
  end
  return { status = "failed", difference = difference_text, counterexample = {
    program = text_of(one.fn), rewritten = rewritten and text_of(rewritten),
    inputs = inputs, constants = constants_of(one.fn), before = before and results_text(before),
    after = after and results_text(after), difference = difference_text } }
end

-- What the rule makes of one program: { status = "rejected", "unmatched", "refused",
-- "passed" (and elements) or "failed" (and counterexample) }.
local function run(rule, c)
  local one = program.generate(rule.source, c)
  if not one then return { status = "rejected" } end
  local ok, new, fired = pcall(rule.apply, one.fn)
  if not ok then
    pass_on(new)
    return failed(one, "the rule cannot be applied: " .. message(new))
  end
  if not fired then return { status = "unmatched" } end
  local before = evaluate(one.fn, one.inputs)
  if not before then return { status = "refused" } end
  local after, reason = evaluate(new, one.inputs)
  if not after then
    return failed(one, "the result cannot be evaluated: " .. reason, new, before)
  end
  local how, elements = compare(rule, before, after)
  if how then return failed(one, how, new, before, after) end
  if not elements then return { status = "refused" } end
  return { status = "passed", elements = elements }
end

-- ------------------------------------------------------------------- shrinking

local function total(list)
  local sum = 0
  for _, value in ipairs(list) do sum = sum + value end
  return sum
end

-- Whether the recorded choices are simpler.
local function simpler(a, b)
  if #a ~= #b then return #a < #b end
  return total(a) < total(b)
end

-- Lists that are simpler than this one: without its end, with a choice of 0, half, less 1.
local function candidates(list)
  return coroutine.wrap(function()
    local n = #list
    local cut = n // 2
    while cut >= 1 do
      coroutine.yield(table.move(list, 1, n - cut, 1, {}))
      cut = cut // 2
    end
    for i = 1, n do
      for _, value in ipairs { 0, list[i] // 2, list[i] - 1 } do
        if list[i] > 0 and value < list[i] then
          local other = table.move(list, 1, n, 1, {})
          other[i] = value
          coroutine.yield(other)
        end
      end
    end
  end)
end

-- Replays simpler choices while the rule fails (greedy, from the start after a success).
local function shrink(rule, list, found)
  local left, again = MOST_SHRINKS, true
  while again do
    again = false
    for candidate in candidates(list) do
      if left == 0 then return found end
      left = left - 1
      local c = choices.replay(candidate)
      local other = run(rule, c)
      if other.status == "failed" and simpler(c, list) then
        list, found, again = c, other, true
        break
      end
    end
  end
  return found
end

-- -------------------------------------------------------------------- one rule

local function verdict(rule, counts)
  local result = { name = rule.name, proof = rule.proof, cases = counts.cases,
    fired = counts.fired, status = "passed" }
  if counts.elements > 0 then return result end
  result.status = "unchecked"
  if counts.cases == 0 then
    result.reason = "was not checked: no program was generated for its pattern"
  elseif counts.fired == 0 and counts.refused > 0 then
    result.reason = ("was not checked: no program that it applies to can be evaluated (%d tried)")
      :format(counts.refused)
  elseif counts.fired == 0 then
    result.reason = ("was not checked: it applied to none of %d programs"):format(counts.cases)
  else
    result.reason = "was not checked: no result had elements"
  end
  return result
end

local function failed_result(rule, counts, found, seed)
  found.counterexample.seed = seed
  return { name = rule.name, proof = rule.proof, cases = counts.cases, fired = counts.fired + 1,
    status = "failed", reason = found.difference, counterexample = found.counterexample }
end

-- Checks one rule: { name, proof, exact, source, apply }.
local function check_rule(rule, wanted, seed)
  local counts = { cases = 0, fired = 0, refused = 0, elements = 0 }
  for try = 1, math.max(TRIES * wanted, wanted > 1 and LEAST_TRIES or 1) do
    if counts.fired >= wanted then break end
    if try % COLLECT_EVERY == 0 then collectgarbage() end
    local c = choices.random(seed + try - 1)
    local found = run(rule, c)
    if found.status ~= "rejected" then counts.cases = counts.cases + 1 end
    if found.status == "refused" then counts.refused = counts.refused + 1 end
    if found.status == "failed" then
      return failed_result(rule, counts, shrink(rule, c, found), seed + try - 1)
    elseif found.status == "passed" then
      counts.fired, counts.elements = counts.fired + 1, counts.elements + found.elements
    end
  end
  return verdict(rule, counts)
end

-- --------------------------------------------------------------------- sources

local header = '#[version = "0.0.5"]\n'

local function example_error(rule, reason)
  core.raise(core.diag("invalid", ("the example of rule '%s': %s"):format(rule.name, reason)))
end

-- The functions of an example: Relay text of a function or of definitions, a function
-- that makes an expression, or a list of those.
local function read_examples(rule, example, list)
  list = list or {}
  if type(example) == "table" then
    for _, one in ipairs(example) do read_examples(rule, one, list) end
  elseif type(example) == "function" then
    list[#list + 1] = example
  elseif type(example) == "string" and example:find "^%s*def" then
    local mod, diag = core.text_parse(header .. example)
    if not mod then example_error(rule, diag.message) end
    for _, fn in pairs(mod.functions) do list[#list + 1] = fn end
  elseif example ~= nil then
    local fn, diag = core.text_parse_expr(example)
    if not fn then example_error(rule, diag.message) end
    if ir.kind_of(fn) ~= "Node" or fn.kind ~= "Function" then
      example_error(rule, "a function expected")
    end
    list[#list + 1] = fn
  end
  return list
end

-- An opset for conditions: newer than any, unless the rule asks for an older one.
local NEWEST = 99

local function opset_of(info)
  local opset = NEWEST
  for limit in info.text:gmatch "opset%s*<%s*(%d+)" do
    opset = math.min(opset, math.tointeger(limit) - 1)
  end
  return opset
end

--- A rule to be checked: `set` is compiled and has it as number `i` (nil: it has no
-- pattern, only the example); `info` is what is known of it, `example` its example,
-- apply(fn) gives a program and whether the rule was applied.
function check.prepare(info, set, i, example, apply)
  local variants = set and core.rule_patterns(set, i) or {}
  for k, variant in ipairs(variants) do variants[k] = program.prepare(variant) end
  local exact = info.proof == "exact"
  return { name = info.name, proof = info.proof, exact = exact, apply = apply,
    source = { variants = variants, examples = read_examples(info, example),
      kinds = exact and values.all or values.tame } }
end

--- The apply of a set of one rule.
function check.apply_with(set, info, lenient)
  local options = { opset = opset_of(info), lenient = lenient, finite_math = true,
    associative_math = true, microsoft = not info.text:find("not microsoft", 1, true) }
  return function(fn)
    local new, counts = set:apply(fn, options)
    return new, counts[1] ~= nil and counts[1].applied > 0
  end
end

-- ------------------------------------------------------------------------- all

local class = { __name = "rule check" }
class.__index = class

local function indented(text) return "    " .. text:gsub("\n", "\n    ") end

local function counterexample_text(one)
  local lines = { "  program:", indented(one.program) }
  for _, constant in ipairs(one.constants) do
    lines[#lines + 1] = ("  %s = %s"):format(constant.name, constant.text)
  end
  for _, input in ipairs(one.inputs) do
    lines[#lines + 1] = ("  %%%s = %s"):format(input.name, input.text)
  end
  if one.rewritten then
    table.move({ "  rewritten:", indented(one.rewritten) }, 1, 2, #lines + 1, lines)
  end
  if one.before then lines[#lines + 1] = "  before: " .. one.before end
  if one.after then lines[#lines + 1] = "  after: " .. one.after end
  lines[#lines + 1] = ("  seed: %d"):format(one.seed)
  return table.concat(lines, "\n")
end

--- One result as text.
function check.text(result)
  local line = ("%s: %s (%s, %d programs, %d comparisons)"):format(result.name, result.status,
    result.proof, result.cases, result.fired)
  if result.reason then line = line .. "\n  " .. result.reason end
  if not result.counterexample then return line end
  return line .. "\n" .. counterexample_text(result.counterexample)
end

function class:__tostring()
  local lines = {}
  for i, result in ipairs(self) do lines[i] = check.text(result) end
  return table.concat(lines, "\n")
end

-- f(...) without automatic garbage collection, which every error that is caught would
-- begin anew: check_rule collects now and then.
local function without_collector(f, ...)
  if not collectgarbage "isrunning" then return f(...) end
  local scope <close> = setmetatable({}, { __close = function() collectgarbage "restart" end })
  collectgarbage "stop"
  return f(...)
end

--- Checks rules, made by check.prepare, one after the other: a list of { name, proof,
-- cases, fired, status, reason, counterexample }, and whether all passed. Options: cases
-- (100 comparisons a rule), seed (1), progress (called with a result).
function check.all(rules, options)
  local results, passed = setmetatable({}, class), true
  for i, rule in ipairs(rules) do
    results[i] = without_collector(check_rule, rule, options.cases or 100, options.seed or 1)
    passed = passed and results[i].status == "passed"
    if options.progress then options.progress(results[i]) end
  end
  return results, passed
end

-- The rules whose names are listed; nil: all.
local function chosen(rules, only)
  if not only then return rules end
  local list, wanted = {}, {}
  for _, name in ipairs(only) do wanted[name] = true end
  for _, rule in ipairs(rules) do
    if wanted[rule.name] then list[#list + 1] = rule end
  end
  return list
end

local function check_integer(options, name, least)
  local value = options[name]
  if value ~= nil and (math.type(value) ~= "integer" or value < least) then
    argument.fail(("rules:check: %s is an integer%s, got %s"):format(name,
      least > math.mininteger and " from " .. least .. " on" or "", tostring(value)))
  end
end

--- The rules of a set (pl.rules), prepared.
function check.rules(set)
  local rules = {}
  for i, row in ipairs(set.rows) do
    local one = core.rule_set(set.name, { row })
    rules[i] = check.prepare(set.rules[i], one, 1, row.example, check.apply_with(one, set.rules[i]))
  end
  return rules
end

--- Checks the rules of a set; see check.all. Options: also only, names of rules.
function check.set(set, options)
  check_integer(options, "cases", 1)
  check_integer(options, "seed", math.mininteger)
  return check.all(chosen(check.rules(set), options.only), options)
end

return check
