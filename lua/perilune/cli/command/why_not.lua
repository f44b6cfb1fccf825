--- perilune why-not: why a rule does not replace what a model computes.

local core = require "perilune.core"
local load = require "perilune.cli.load"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local why_not = {
  description = "Matches a rewrite rule against a model without changing it, and says what it "
    .. "lacks: the part of the rule that fails, the node there, and why. The nodes that match "
    .. "most come first. Exit status: 0 explained, 1 the work failed, 2 wrong usage.",
}

function why_not.arguments(parser)
  parser:argument("rule", "A rule as text, 'add(?x, 0) => ?x', or its pattern "
    .. "alone; the name of a shipped rule, of a "
    .. "pass or of a file of rules, which `perilune rules` lists; or FILE.lua, which returns "
    .. "rules.")
    :argname "RULE"
  parser:argument("model", "The model: NAME.relay is Relay text, all else ONNX."):argname "MODEL"
  parser:argument("node", "The ONNX name of a node, or of its output: the only one that is tried.")
    :argname "NODE":args "?"
  parser:option("-p --pipeline", "Runs passes before: FILE.lua or a text such as "
    .. "FoldConstant,SimplifyExpr."):argname "PIPELINE"
  parser:option("-n --limit", "The most explanations."):argname "N":default "5"
    :convert(numbers.count)
  parser:flag("--no-lets", "Does not match through variables of lets, as passes do with --set "
    .. "rules.lets=false.")
  require "perilune.cli.settings".option(parser)
end

-- The nodes that an ONNX node of that name became, or that compute a value of that name.
local function nodes_named(module, name)
  local found, names = {}, {}
  for _, fn in pairs(module) do
    for node in fn:nodes() do
      local history = node:history()
      local source = history[#history] or {}
      if source.node == name or source.name == name then found[#found + 1] = node end
      names[#names + 1] = source.node or source.name
    end
  end
  if #found == 0 then
    stop.failure("no node is called '%s'%s", name, core.suggest(name, names))
  end
  return found
end

-- The sets to try: of a file, or what pl.why_not takes.
local function rules_of(rule)
  if not rule:find "%.lua$" then return { rule } end
  local sets, reason = require "perilune.rule.file".load(rule)
  if not sets then stop.failure("%s", reason) end
  return sets
end

-- Prints the explanations of a node, or of all of a module.
local function explain(sets, options, where, opset)
  local pl = require "perilune"
  for _, rules in ipairs(sets) do
    local ok, found = pcall(pl.why_not, rules, where, { limit = options.limit, opset = opset,
      lets = not options.no_lets })
    if not ok and type(rules) ~= "string" then error(found, 0) end
    if not ok then stop.usage("%s", (tostring(found):gsub("^pl%.why_not: ", ""))) end
    print(found)
  end
end

function why_not.run(options)
  local module, diag = load.model(options.model)
  if not module then error(diag, 0) end
  if options.pipeline then
    module = require "perilune.cli.pipeline".find(options.pipeline, options.set)(module)
  end
  local sets = rules_of(options.rule)
  if not options.node then return explain(sets, options, module) end
  for _, node in ipairs(nodes_named(module, options.node)) do
    explain(sets, options, node, require "perilune.rule.opset"(module))
  end
end

return why_not
