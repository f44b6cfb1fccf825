--- pl.rules: sets of rewrite rules, matched in C.
--
--     local silu = pl.rules { "multiply(?x, sigmoid(?x)) => nn.silu(?x)" }
--     local algebra = pl.rules "algebra" {
--       "add(?x, 0) => ?x",
--       { "nn.relu(nn.relu(?x))", "nn.relu(?x)", reason = "relu is idempotent" },
--       { "reshape(?x, newshape=?s)", function(m)
--           if m.x.type == m.root.type then return m.x end
--         end },
--     }
--     local fn, counts = algebra(mod.main)
--     pl.passes.Algebra = { kind = "function", run = algebra }
--
-- A rule is a text `[name:] pattern => replacement [where condition]`, or a
-- table of it: { pattern, replacement }, where the replacement may be a function
-- that gets the match and gives a node, a number, a tensor, or nil for no
-- replacement. Fields: name, where (a text, or a function of the match), reason,
-- source, proof ("exact", "reassociates" or "approximates"), grows (it may
-- build more calls than it removes), relay (it holds for calls in Relay's form,
-- too) and example (see check). A match has the
-- nodes and values of the pattern's variables by their names, and the matched
-- node as `root`.
--
-- The pattern may be an object of pl.dataflow_pattern, too, as far as the language of rules
-- has what it consists of; functions then find in the match what each object matched:
-- match[object].
--
-- Pattern and replacement may be expressions of Lua: perilune.rule.expression.
--
-- engine/rule/README.md has the language of rules.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local opset_of = require "perilune.rule.opset"
local lazy = require "perilune.lazy"
local rule_names = require "perilune.rule.names"

local dataflow = lazy "perilune.dataflow_pattern.pattern"
local expression = lazy "perilune.rule.expression"

local fields = { name = true, where = true, reason = true, source = true, proof = true,
  grows = true, relay = true, example = true }
local proofs = { exact = true, reassociates = true, approximates = true }

local rule = {}

local function join(pattern, replacement, where)
  local text = pattern
  if replacement then text = text .. " => " .. replacement end
  return where and text .. " where " .. where or text
end

local function check_fields(given, place)
  for key in pairs(given) do
    if math.type(key) == "integer" and key <= 2 and key >= 1 then goto continue end
    if not fields[key] then
      argument.fail(("%s: a rule has no field '%s'%s"):format(place, tostring(key),
        argument.near(tostring(key), fields)))
    end
    ::continue::
  end
  if given.proof and not proofs[given.proof] then
    argument.fail(("%s: proof is 'exact', 'reassociates' or 'approximates', not '%s'"):format(place,
      tostring(given.proof)))
  end
end

-- A function of a match, which has what pattern objects matched by the objects, too.
local function by_object(f, variables)
  return function(match)
    for object, names in pairs(variables) do
      for _, name in ipairs(names) do
        if match[object] == nil then match[object] = match[name] end
      end
    end
    return f(match)
  end
end

-- A rule whose pattern is a dataflow pattern, with the pattern as text.
local function with_text(given, place)
  local text, variables = dataflow.rule_text(given[1], place)
  local copy = {}
  for key, value in pairs(given) do copy[key] = value end
  copy[1] = text
  for _, key in ipairs { 2, "where" } do
    if type(given[key]) == "function" then copy[key] = by_object(given[key], variables) end
  end
  return copy
end

-- A rule whose pattern or replacement is an expression (expression.lua), with texts.
local function without_expressions(given)
  local is_expression = expression.is_expression
  if not is_expression(given[1]) and not is_expression(given[2]) then return given end
  local copy = {}
  for key, value in pairs(given) do copy[key] = value end
  if is_expression(given[1]) then copy[1] = expression.pattern_text(given[1]) end
  local replacement = given[2]
  if is_expression(replacement) then
    copy[2] = expression.replacement_text(replacement)
  elseif type(replacement) == "number" and math.type(replacement) == "integer" then
    copy[2] = tostring(replacement)
  end
  return copy
end

-- The row that core.rule_set takes.
local function row_of(given, place, file, line)
  if type(given) == "string" then given = { given } end
  argument.table(given, "pl.rules", place)
  given = without_expressions(given)
  check_fields(given, place)
  local info = type(given[2]) == "function" and debug.getinfo(given[2], "S")
  if dataflow.is_pattern(given[1]) then given = with_text(given, place) end
  local pattern, replacement, where = given[1], given[2], given.where
  argument.string(pattern, "pl.rules", place .. ": the pattern")
  if replacement ~= nil and type(replacement) ~= "string" then
    argument.callable(replacement, "pl.rules", place .. ": the replacement")
  end
  if where ~= nil and type(where) ~= "string" then
    argument.callable(where, "pl.rules", place .. ": where")
  end
  return {
    text = join(pattern, type(replacement) == "string" and replacement or nil,
      type(where) == "string" and where or nil),
    name = given.name, reason = given.reason, source = given.source, proof = given.proof,
    grows = given.grows, relay = given.relay, example = given.example,
    file = info and info.short_src or file, row = info and info.linedefined or line,
    where = type(where) ~= "string" and where or nil,
    replace = type(replacement) ~= "string" and replacement or nil,
  }
end

-- The file that rule.load runs, for sets made by `return pl.rules { ... }`: a tail call
-- leaves no frame of the script's.
local loading

-- The innermost line of a user's script: { file =, line =, source = }.
local function caller()
  local level = 3
  local info = debug.getinfo(level, "Sl")
  while info and (info.what == "C" or core.is_internal(info.source)) do
    level = level + 1
    info = debug.getinfo(level, "Sl")
  end
  if info then return { file = info.short_src, line = info.currentline, source = info.source } end
  return {}
end

-- The lines of rules in the file that has their texts: { [i] = line, file =, source = }.
local function places_in(path, list)
  local places = { file = path, source = "@" .. path }
  local source = require "perilune.read_file"(path) or ""
  for i, given in ipairs(list) do
    local text = type(given) == "table" and given[1] or given
    local at = type(text) == "string" and source:find(text, 1, true)
    places[i] = at and select(2, source:sub(1, at):gsub("\n", "")) + 1 or nil
  end
  return places
end

local class = { __name = "rules" }
class.__index = class

local counts_class = { __name = "rule counts" }

-- A line a rule, with "never applied" where that is so.
function counts_class:__tostring()
  local rows = { { "RULE", "TRIED", "MATCHED", "REFUSED", "APPLIED", "LAST" } }
  for _, count in ipairs(self) do
    rows[#rows + 1] = { count.name, tostring(count.tried), tostring(count.matches),
      tostring(count.refused), tostring(count.applied),
      count.last or count.applied == 0 and "never applied" or "" }
  end
  return (require "perilune.columns"(rows):gsub("\n$", ""))
end

-- The counts of all rules, from those of the rules that were tried.
local function named_counts(rules, counts, timed)
  local named = {}
  for i, info in ipairs(rules.rules) do
    named[i] = counts[i] or { tried = 0, matches = 0, refused = 0, applied = 0,
      seconds = timed and 0 or nil }
    named[i].name = info.name
  end
  return setmetatable(named, counts_class)
end

-- Adds counts of a function to those of others.
local function add_counts(total, counts)
  for i, count in pairs(counts) do
    local sum = total[i] or {}
    total[i] = sum
    for key, value in pairs(count) do
      sum[key] = type(value) == "number" and (sum[key] or 0) + value or value
    end
  end
end

-- The options with the opset of the module, unless they have one.
local function with_opset(options, module)
  local opset = opset_of(module)
  if not opset or options and options.opset then return options end
  local copy = { opset = opset }
  for key, value in pairs(options or {}) do copy[key] = value end
  return copy
end

-- The rewritten program, and what was counted of the rules that were tried, by number.
local function rewrite(self, program, options)
  if getmetatable(program) ~= "perilune.Module" then return self.set:apply(program, options) end
  options = with_opset(options, program)
  local changed, total = {}, {}
  for name, fn in pairs(program) do
    local new, counts = self.set:apply(fn, options)
    if new ~= fn then changed[name] = new end
    add_counts(total, counts)
  end
  return next(changed) and program:with(changed) or program, total
end

-- The option `only` names rules of the set.
local function check_only(rules, only)
  local known, own = {}, {}
  for i, info in ipairs(rules) do known[info.name], own[i] = true, info.name end
  for _, name in ipairs(only or {}) do
    if not known[name] then
      argument.fail(("rules:apply: only: no rule is called '%s'%s"):format(tostring(name),
        core.suggest(tostring(name), own)))
    end
  end
end

--- Applies the rules to a function or module until none applies. Gives the rewritten
-- program, the same one if nothing changed, and by rule what was counted: { name =, tried =
-- (nodes that it was compared with), matches = (those that its pattern matched), refused =
-- (those that its condition refused), applied =, last = (where it was applied last),
-- seconds = }; as text a table. Options: exact (only rules of that proof), timed (seconds),
-- share (equal computations become one node), lets (patterns match through variables of
-- lets whose values have no effect: true by default), naive (every rule is tried on every node,
-- without the decision tree, which gives the same result), opset (the version of ai.onnx
-- that conditions see; by default the module's), only (a list of names: no other rule
-- runs), finite_math (conditions may take it that no value is infinite or NaN),
-- associative_math (that sums and products of floats may be computed in any order),
-- microsoft (that operators of com.microsoft are wanted).
function class:apply(program, options)
  argument.options(options, "rules:apply", { "exact", "share", "lets", "naive", "timed", "opset",
    "only", "finite_math", "associative_math", "microsoft" })
  check_only(self.rules, options and options.only)
  local new, counts = rewrite(self, program, options)
  return new, named_counts(self, counts, options and options.timed)
end

-- As the body of a pass: the context's config says which rules run, and what they did is
-- noted.
local function run_as_pass(self, program, module, context)
  local options = with_opset({ exact = context:get "rules.exact",
    only = context:get "rules.only", lets = context:get "rules.lets" }, module)
  local new, counts = rewrite(self, program, options)
  for i, info in ipairs(self.rules) do
    if counts[i] and counts[i].applied > 0 then context:note(info.name, counts[i].applied) end
  end
  return new
end

function class:__call(program, module, context)
  if context then return run_as_pass(self, program, module, context) end
  return (rewrite(self, program))
end

--- Checks each rule by evaluation: programs that its pattern matches are generated, of
-- several dtypes, ranks and shapes, the rule alone is applied, and both programs are
-- evaluated on the same numbers. Rules of proof "exact" must give the same bit by bit, but
-- for the sign of zero, also on infinities, NaN and limits of the dtype; others nearly the
-- same on tame numbers. Gives a list of { name, proof, cases, fired, status, reason,
-- counterexample } and whether all passed. status: "passed", "failed", or "unchecked"
-- where no program was made that the rule applies to. The rule's field `example` helps
-- there: Relay text of a function, "fn (%x: Tensor[(N, 3), float32]) { ... }", a Lua
-- function that makes an expression of what its argument g gives (g:var(dtype, shape),
-- g:constant(dtype, shape), g:number(value, dtype), g:ints(...), g:extent(), g:size(),
-- g:shape(rank), g:below(n), g:pick(list), g.op), or a list of those. Options: cases (100
-- comparisons a rule), seed (1), only (names of rules), progress (called with each result).
-- A rule that failed with a seed fails at the first case with it.
function class:check(options)
  argument.options(options, "rules:check", { "cases", "seed", "only", "progress" })
  return require "perilune.rule.check".set(self, options or {})
end

function class:__len() return #self.set end

function class:__tostring()
  local lines = {}
  for i, info in ipairs(self.rules) do lines[i] = "  " .. info.text end
  return ("rules '%s':\n%s"):format(self.name, table.concat(lines, "\n"))
end

-- The name that a rule was given, or nil: by default it is the pattern.
local function given_name(row) return row.name or row.text:match "^%s*([%a_][%w_]*)%s*:" end

local function check_names(rows, name)
  local seen = {}
  for i, row in ipairs(rows) do
    local own = given_name(row)
    if own and seen[own] then
      argument.fail(("rules %d and %d of '%s' are both called '%s'"):format(seen[own], i, name,
        own))
    elseif own then
      seen[own] = i
    end
  end
end

-- A set; `place`: { file =, source =, [i] = line of rule i, or line = }.
local function make(name, list, place)
  argument.table(list, "pl.rules", "rules")
  local rows = {}
  for i, given in ipairs(list) do
    rows[i] = row_of(given, ("rule %d of '%s'"):format(i, name), place.file, place[i] or place.line)
  end
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 or key > #rows then
      argument.fail(("pl.rules: rules are a list; there is a key '%s'"):format(tostring(key)))
    end
  end
  check_names(rows, name)
  local set = core.rule_set(name, rows)
  local made = setmetatable({ name = name, set = set, rules = set:rules(), rows = rows,
    source = place.source }, class)
  rule_names.add(made)
  return made
end

-- The same where the caller is, or in the file that is being loaded.
local function make_at(name, list, place)
  if not place.file and loading and type(list) == "table" then place = places_in(loading, list) end
  return make(name, list, place)
end

--- pl.rules(list), or pl.rules "name" (list).
function rule.rules(first)
  local place = caller()
  if type(first) == "string" then
    return function(list) return make_at(first, list, place) end
  end
  return make_at("rules", first, place)
end

--- Whether a value is a set.
function rule.is_set(value) return getmetatable(value) == class end

--- The set of the rules that a file returns as a list.
function rule.of_file(name, list, path) return make(name, list, places_in(path, list)) end

--- chunk(...), the script of a file.
function rule.load(path, chunk, ...)
  local outer = loading
  local scope <close> = setmetatable({}, { __close = function() loading = outer end })
  loading = path
  return chunk(...)
end

return rule
