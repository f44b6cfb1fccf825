--- perilune passes: what passes, config keys and pipelines there are.

local core = require "perilune.core"
local stop = require "perilune.cli.stop"
core.internal() -- errors name the scripts of others

local passes = {
  description = "Lists passes, config keys, instruments and pipelines, or shows one of them; looks "
    .. "a pipeline through before it runs.",
}

function passes.arguments(parser)
  parser:argument("name", "The pass, config key or instrument to show."):args "?"
  parser:option("--validate", "Tells what passes of a pipeline require and nothing before them "
    .. "provides, what comes too late, and what undoes an earlier pass; the status is 1 then.")
    :argname "TEXT|FILE.lua"
  parser:option("--model", "With --validate: the program that the pipeline is for. What it has "
    .. "need not be provided, and passes that do not handle its features are told."):argname "IN"
end

-- A value as the command line takes it.
local function text_of(value)
  if value == "" then return "''" end
  if type(value) ~= "table" then return tostring(value) end
  return #value == 0 and "[]" or table.concat(value, ",")
end

-- "", " from 0 to 8", " from 0 on", " up to 8", ": fast|small"
local function range(row)
  if row.choices then return ": " .. row.choices end
  if row.least and row.most then return (" from %s to %s"):format(row.least, row.most) end
  if row.least then return (" from %s on"):format(row.least) end
  return row.most and (" up to %s"):format(row.most) or ""
end

local function show_option(row, indent)
  indent = indent or "    "
  local default = row.fields and "" or ", by default " .. text_of(row.default)
  print(("%s%s: %s%s%s"):format(indent, row.name, row.type, range(row), default))
  if row.doc ~= "" then print(indent .. "  " .. row.doc) end
  for _, field in ipairs(row.fields or {}) do show_option(field, indent .. "  ") end
end

local function show(pass)
  print(("  %s (%s, from level %d)"):format(pass.name, pass.kind, pass.opt_level))
  if pass.doc ~= "" then print("    " .. pass.doc) end
  if #pass.required > 0 then print("    runs before it: " .. table.concat(pass.required, ", ")) end
  for _, row in ipairs(pass.option_rows) do show_option(row) end
end

-- What a pass requires of a program, and what it does to that.
local function show_properties(pass)
  local row = require "perilune.pass.properties"[pass.name] or {}
  for _, field in ipairs { "requires", "handles", "provides", "destroys", "removes", "undoes" } do
    if row[field] and #row[field] > 0 then
      print(("    %s: %s"):format(field, table.concat(row[field], ", ")))
    end
  end
  if row.before then print("    not after: " .. table.concat(row.before, ", ")) end
end

-- A pass by itself, with its properties and rules.
local function show_pass(pass)
  show(pass)
  show_properties(pass)
  local rules = require "perilune.rule.library".set(pass.name)
  if rules then print(("\n  Rules (%d):"):format(#rules)) end
  for _, rule in ipairs(rules or {}) do
    require "perilune.cli.command.rules".show(rule, "    ")
  end
end

local function show_instrument(one)
  print("  " .. one.name)
  if one.doc ~= "" then print("    " .. one.doc) end
  for _, row in ipairs(one.options) do show_option(row) end
end

local function show_instruments()
  print "\nInstruments (opt --instrument NAME{OPTION=VALUE}):"
  for _, one in pairs(require "perilune.instruments") do show_instrument(one) end
end

local function all_names()
  local names = {}
  local registry = require "perilune.cli.registry"
  for _, pass in ipairs(registry.passes()) do names[#names + 1] = pass.name end
  for _, row in ipairs(core.config_rows()) do names[#names + 1] = row.name end
  for one in pairs(require "perilune.instruments") do names[#names + 1] = one end
  return names
end

-- The pass, config key or instrument of that name; a pass and its config key have one.
local function show_one(name)
  local pass = require "perilune.cli.registry".find(name)
  local key, one = require "perilune.pass.config"[name], require "perilune.instruments"[name]
  if pass then show_pass(pass) end
  if key then show_option(key, "  ") end
  if one and not pass then show_instrument(one) end
  if not pass and not key and not one then
    stop.usage("no pass is called '%s'%s", name,
      core.suggest(name, all_names()))
  end
end

local function show_pipelines()
  print "\nPipelines (lua/perilune/pipelines):"
  for _, pipeline in ipairs(require "perilune.pipelines") do
    print(("  %s\n    %s"):format(pipeline.name, pipeline.doc))
  end
end

local function validate(text, path)
  local program = path and assert(require "perilune.cli.load".model(path))
  local ok, findings = require "perilune".validate(require "perilune.cli.pipeline".find(text, {}),
    program)
  if ok then return 0 end
  for _, finding in ipairs(findings) do print(finding) end
  return 1
end

function passes.run(options)
  if options.validate then return validate(options.validate, options.model) end
  if options.model then stop.usage "--model is for --validate" end
  if options.name then return show_one(options.name) end
  print "Passes:"
  for _, pass in ipairs(require "perilune.cli.registry".passes()) do show(pass) end
  print "\nConfig keys (--set KEY=VALUE):"
  for _, row in ipairs(core.config_rows()) do show_option(row) end
  show_instruments()
  show_pipelines()
end

return passes
