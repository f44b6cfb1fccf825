--- pl.why_not: why a rule does not replace a node.
--
--     print(pl.why_not("multiply(?x, sigmoid(?x)) => nn.silu(?x)", fn))
--
-- Each rule is matched against the node without changing anything. Of the ways to match
-- it, the one that gets furthest is told: the part of the rule's text that fails,
-- the node of the program there, and why.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local lazy = require "perilune.lazy"
local library = require "perilune.rule.library"
local opset_of = require "perilune.rule.opset"

local dataflow = lazy "perilune.dataflow_pattern.pattern"

local option_names = { "rule", "limit", "opset", "lets" }

local stages = { structure = 1, attributes = 2, condition = 3, replacement = 4, applies = 5 }

-- ---------------------------------------------------------------- the rules

-- The shipped rules of that name, of a pass or of a file.
local function named(name)
  local list, hint = library.set(name)
  if list then return list end
  local rule, rule_hint = library.find(name)
  if rule then return { rule } end
  argument.fail(("pl.why_not: there is no rule and no set of rules '%s'%s"):format(name,
    hint ~= "" and hint or rule_hint))
end

-- The set of the pass that runs them, and their numbers in it.
local function shipped(name)
  local list, wanted, numbers = named(name), {}, {}
  for _, row in ipairs(list) do wanted[row.name] = true end
  local set = core.rule_library_set(list[1].pass)
  local infos = set:rules()
  for i, info in ipairs(infos) do
    if wanted[info.name] then numbers[#numbers + 1] = i end
  end
  return set, infos, numbers
end

-- A set of one rule, of that text. A pattern alone has a replacement that is never one.
local function set_of(text, alone)
  local row = { text = text, file = alone and "pattern" or "rule", row = 1 }
  if alone then row.replace = function() end end
  local set = core.rule_set(row.file, { row })
  return set, set:rules()
end

-- The compiled set, what is known of its rules, and the numbers of those that are meant;
-- nil: all.
local function compiled(rules)
  if dataflow.is_pattern(rules) then
    return set_of((dataflow.rule_text(rules, "pl.why_not")), true)
  end
  if type(rules) ~= "string" then
    if type(rules) ~= "table" or type(rules.set) ~= "userdata" then
      argument.expected("pl.why_not: rules: a set of rules, the text of a rule or of a pattern, "
        .. "a dataflow pattern or a name", rules)
    end
    return rules.set, rules.rules
  end
  if not rules:find "[(?]" then return shipped(rules) end
  return set_of(rules, not rules:find "=>")
end

local function number_of(infos, name)
  local names = {}
  for i, info in ipairs(infos) do
    if info.name == name then return i end
    names[i] = info.name
  end
  argument.fail(("pl.why_not: no rule is called '%s'%s"):format(name, core.suggest(name, names)))
end

-- ---------------------------------------------------------- what is said of it

-- Of a call the operator, else the kind; its type; where it is from.
local function describe(node)
  local op = node.kind == "Call" and node.op
  local text = op and op.name or node.kind
  if node.kind == "Var" then text = "%" .. node.name end
  if node.kind == "Constant" then text = "a Constant" end
  local history = node:history()
  local source = history[#history] and history[#history].source
  return ("%s of type %s%s"):format(text, tostring(node.type),
    source and (", from " .. source) or "")
end

local function place_of(path)
  if #path == 0 then return "the node itself" end
  local parts = {}
  for i = #path, 1, -1 do parts[#parts + 1] = ("operand %d"):format(path[i]) end
  return table.concat(parts, " of ")
end

local function reason_of(x)
  if x.stage == "applies" then
    return x.rule.file == "pattern" and "the pattern matches" or "the rule applies"
  end
  if x.rule.native and x.stage == "replacement" then
    return ("%s (the function %s in C)"):format(x.reason, x.rule.native)
  end
  if x.stage == "condition" or x.stage == "replacement" then return x.reason end
  if not x.node then return ("%s %s"):format(place_of(x.path), x.reason) end
  return ("%s %s: %s"):format(place_of(x.path), x.reason, describe(x.node))
end

-- The text in lines, and a line that marks the part that fails.
local function marked(text, first, last)
  local lines, begin = {}, 1
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = "    " .. line
    local from, to = math.max(first, begin), math.min(last, begin + #line - 1)
    if from <= to then
      lines[#lines + 1] = "    " .. (" "):rep(from - begin) .. ("^"):rep(to - from + 1)
    end
    begin = begin + #line + 1
  end
  return table.concat(lines, "\n")
end

local explanation = { __name = "explanation" }

function explanation:__tostring()
  local lines = { ("%s '%s' at %s"):format(self.rule.file == "pattern" and "pattern" or "rule",
    self.rule.name, describe(self.root)) }
  if self.first then lines[#lines + 1] = marked(self.rule.text, self.first, self.last) end
  lines[#lines + 1] = ("  %s (%d of %d nodes of the pattern match)"):format(reason_of(self),
    self.matched, self.total)
  return table.concat(lines, "\n")
end

local list = { __name = "explanations" }

function list:__tostring()
  if #self == 0 then return "no node begins to match" end
  local texts = {}
  for i, x in ipairs(self) do texts[i] = tostring(x) end
  return table.concat(texts, "\n")
end

-- ------------------------------------------------------------------ the search

local function is_better(a, b)
  if a.stage ~= b.stage then return stages[a.stage] > stages[b.stage] end
  if a.matched * b.total ~= b.matched * a.total then
    return a.matched * b.total > b.matched * a.total
  end
  return a.number < b.number
end

-- The functions of a module, or the program itself.
local function parts(program)
  if getmetatable(program) ~= "perilune.Module" then return { program } end
  local functions = {}
  for _, fn in pairs(program) do functions[#functions + 1] = fn end
  return functions
end

-- The explanations of each part of the program, of the rules of these numbers; nil: of all.
local function search(set, numbers, program, options)
  local found = {}
  if getmetatable(program) == "perilune.Module" then
    options.all, options.opset = true, options.opset or opset_of(program)
  else
    options.all = program.kind == "Function"
  end
  for _, part in ipairs(parts(program)) do
    for i = 1, numbers and #numbers or 1 do
      options.rule = numbers and numbers[i]
      table.move(set:explain(part, options), 1, options.limit, #found + 1, found)
    end
  end
  return found
end

--- Why rules do not replace a node: a list of explanations, that which matches most
-- first; as text it says them all. `rules` is a set (pl.rules), the text of a rule or of a
-- pattern alone, a pattern of pl.dataflow_pattern, or the name of a shipped rule, of a pass or
-- of a file of rules. `where` is a node; or a function or a module, of which every node is
-- tried. Options: rule, the name of one rule
-- of the set; limit, the most explanations (10); opset, the version of ai.onnx that
-- conditions ask for (a module knows its own); lets, whether patterns match through variables
-- of lets (true).
--
-- An explanation has rule, root (the node that was tried), stage ("structure",
-- "attributes", "condition", "replacement" or "applies"), matched and total (nodes of
-- the pattern), reason, and, as far as known, first and last (the part of rule.text that
-- fails), node (the node of the program there) and path (the numbers of the operands
-- from the root to it).
return function(rules, where, options)
  options = argument.options(options, "pl.why_not", option_names)
  local set, infos, numbers = compiled(rules)
  if getmetatable(where) ~= "perilune.Module" then
    argument.node(where, "pl.why_not", "where")
  end
  if options.rule then numbers = { number_of(infos, options.rule) } end
  local found = search(set, numbers, where, { limit = options.limit or 10,
    opset = options.opset, lets = options.lets })
  for i, x in ipairs(found) do
    x.number, x.rule = i, infos[x.rule]
    if x.rule.file == "pattern" and x.stage == "replacement" then
      x.stage, x.reason, x.first, x.last = "applies", nil, nil, nil
    end
    x.reason = x.reason or reason_of(x)
    setmetatable(x, explanation)
  end
  table.sort(found, is_better)
  for i, x in ipairs(found) do
    x.number = nil
    if i > (options.limit or 10) then found[i] = nil end
  end
  return setmetatable(found, list)
end
