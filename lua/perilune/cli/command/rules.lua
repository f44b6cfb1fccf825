--- perilune rules: what rewrite rules there are.

local columns = require "perilune.columns"
local library = require "perilune.rule.library"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- errors name the scripts of others

local rules = {
  description = "Lists the rewrite rules that perilune ships with, by the pass that runs them "
    .. "and the file that they stand in; shows those of a SET, or one of them: its text, why it is "
    .. "right, where it is known from, and how its results compare to the original. "
    .. "`perilune rules check` checks rules by evaluation, shipped ones and those of files.",
  commands = { check = "check rewrite rules by evaluation",
    generate = "find rules of graph substitution, and prove them" },
}

function rules.arguments(parser)
  parser:argument("set", "A pass such as SimplifyExpr, or a file of rules such as arithmetic.")
    :argname "SET":args "?"
  parser:argument("name", "The rule to show."):argname "NAME":args "?"
end

local function list_sets()
  local rows, by_file = { { "SET", "FILE", "RULES" } }, {}
  for _, rule in ipairs(library.rules()) do
    local key = rule.pass .. "\0" .. rule.file
    if not by_file[key] then
      by_file[key] = { rule.pass, rule.file, 0 }
      rows[#rows + 1] = by_file[key]
    end
    by_file[key][3] = by_file[key][3] + 1
  end
  for _, row in pairs(by_file) do row[3] = tostring(row[3]) end
  io.stdout:write(columns(rows))
end

-- The text without its name.
local function body_of(rule)
  local name, body = rule.text:match "^%s*([%w_]+):%s*(.*)$"
  return name == rule.name and body or rule.text
end

--- Shows a rule, as `perilune passes` does.
function rules.show(rule, indent)
  indent = indent or ""
  print(indent .. rule.name)
  print(indent .. "  " .. body_of(rule))
  if rule.reason then print(indent .. "  reason: " .. rule.reason) end
  if rule.source then print(indent .. "  source: " .. rule.source) end
  print(("%s  proof: %s%s"):format(indent, rule.proof, rule.grows and ", may grow" or ""))
  if rule.native then print(indent .. "  replacement: in C, " .. rule.native) end
end

local function set_of(name)
  local list, hint = library.set(name)
  if not list then stop.usage("no rules are called '%s'%s", name, hint) end
  return list
end

local function show_one(list, set, name)
  local rule, hint = library.find(name, list)
  if not rule then stop.usage("no rule of '%s' is called '%s'%s", set, name, hint) end
  rules.show(rule)
end

function rules.run(options)
  if not options.set then return list_sets() end
  local list = set_of(options.set)
  if options.name then return show_one(list, options.set, options.name) end
  for _, rule in ipairs(list) do rules.show(rule) end
end

return rules
