--- The pipeline that `opt` runs: from a text, a script file, or the default.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local pl = require "perilune"
local rule = require "perilune.rule"
local rule_file = require "perilune.rule.file"
local settings = require "perilune.cli.settings"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local pipeline = {}

-- A script may return a pass, or what stands for one in a sequential, or rules.
local function as_pass(value, path)
  local sets, reason = rule_file.sets(value, path)
  if reason then stop.failure("%s", reason) end
  value = sets or value
  local ok, pass = pcall(pl.sequential, { value })
  if value ~= nil and ok then return type(value) == "userdata" and value or pass end
  stop.failure("%s: a pipeline script returns a pipeline, this one returned a %s%s", path,
    type(value), ok and "" or ": " .. tostring(pass))
end

local function from_script(chunk, path, given, rules)
  local view, check = settings.arguments(given)
  require "perilune.debug.reproducer.scripts".given("@" .. path, given)
  host.guard_begin()
  local value = rule.load(path, chunk, view, rules)
  host.guard_end()
  check()
  return as_pass(value, path)
end

local function from_text(text, given)
  local _, check = settings.arguments(given)
  check()
  local ok, pass = pcall(core.pipeline, text)
  if not ok then stop.usage("%s", tostring(pass)) end
  return pass
end

-- The sets in files of rules, all in one list.
local function read_rules(paths)
  local all = {}
  for _, path in ipairs(paths or {}) do
    host.guard_begin()
    local sets, reason = rule_file.load(path)
    host.guard_end()
    if not sets then stop.failure("%s", reason) end
    table.move(sets, 1, #sets, #all + 1, all)
  end
  return all
end

local function find(what, given, rules)
  if not what then
    local chunk = require "perilune.pipelines".chunk "default"
    return from_script(chunk, "default.lua", given, rules)
  end
  if what:find "%.lua$" then
    local chunk, reason = loadfile(what)
    if not chunk then stop.failure("%s", reason) end
    return from_script(chunk, what, given)
  end
  return from_text(what, given)
end

--- `what`: nil for the default, FILE.lua, or a text. `given`: the arguments of
-- a script by name; one that nobody asks for is an error. `files`: files of rules, which
-- run in each round of the default, or before another pipeline.
function pipeline.find(what, given, files)
  local rules = read_rules(files)
  local pass = find(what, given, rules)
  if not what or #rules == 0 then return pass end
  return pl.sequential { name = pass.info.name, rules, pass }
end

--- The options that choose rules, of commands that run pipelines.
function pipeline.rule_options(parser)
  parser:option("--rules", "Adds the rewrite rules of a file, which returns a set (pl.rules), a "
    .. "list of sets, or a list of rules: they run in each round of the default pipeline, after "
    .. "SimplifyExpr, so that folding and the other passes see what they make; with -p before the "
    .. "pipeline.")
    :argname "FILE.lua":count "*"
  parser:flag("--exact", "Runs only rewrite rules whose results are equal bit by bit (proof "
    .. "'exact', see perilune rules): sets rules.exact. Passes that are no rules, such as "
    .. "FoldBatchNorm and FoldConstantScale, may round anew; --disable leaves them out.")
end

return pipeline
