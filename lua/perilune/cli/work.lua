--- The model, the pipeline and the context that a command's options name: what
-- `opt` runs, `bisect` searches and `reduce` makes smaller.

local host = require "perilune.cli.host"
local load = require "perilune.cli.load"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local work = {}

--- The options for the pipeline and what it runs in.
function work.options(parser)
  parser:option("-p --pipeline",
    "The pipeline: passes and pipelines as Name,Name{option=value}, or a script that returns a "
      .. "pipeline, a set of rewrite rules or a list of rules. The default is perilune's own "
      .. "pipeline; '' runs no pass.")
    :argname "TEXT|FILE.lua"
  parser:option("--set",
    "Sets an option of a pass (Pass.option), a config key, or an argument of the script.")
    :argname "X=VALUE":count "*"
  require "perilune.cli.pipeline".rule_options(parser)
  parser:option("--opt-level", "The level of optimisation, from 0 to 4: passes of higher levels do "
    .. "not run (perilune passes shows the levels).")
    :argname "N":default "3":convert(require "perilune.cli.numbers".opt_level)
  parser:option("--disable", "Disables passes; NAME:2 is the second occurrence of "
    .. "NAME.")
    :argname "NAMES":count "*"
  parser:option("--only", "Runs only these passes; NAME:2 as above.")
    :argname "NAMES":count "*"
  require "perilune.cli.shapes".options(parser)
  parser:option("--opset", "Converts the model to ONNX opset N: to a newer one before the "
    .. "passes, to an older one after them.")
    :argname "N":convert(require "perilune.cli.numbers".opset)
  parser:option("--threads", "The number of threads for passes over functions; 0: one "
    .. "for each processor. The result does not depend on it."):argname "N":default "1"
    :convert(require "perilune.cli.numbers".threads)
end

-- Names from texts such as "FoldConstant,SimplifyExpr:2".
local function names(texts)
  local list = {}
  for _, text in ipairs(texts) do
    for name in text:gmatch "[^,]+" do list[#list + 1] = name end
  end
  return list
end

-- Settings of the wrong type are wrong usage.
local function make_context(config, options, instruments)
  local only = names(options.only)
  if options.opset and #only > 0 then only[#only + 1] = "ConvertOpset" end
  local ok, context = pcall(require "perilune".context, { opt_level = options.opt_level,
    config = config, instruments = instruments, disabled = names(options.disable), only = only })
  if ok then return context end
  local text = tostring(context)
  local what = text:match "rules%.only: " and "--set" or text:match "only: " and "--only"
    or text:match "disabled: " and "--disable" or "--set"
  stop.usage("%s: %s", what, text)
end

-- The pipeline, and the conversion to the opset that is asked for: before it to a newer
-- one, whose operators the passes may use, behind it to an older one.
local function with_opset(pass, opset)
  if not opset then return pass end
  local pl = require "perilune"
  return pl.sequential { name = pass.info.name,
    pl.passes.ConvertOpset { opset = opset, newer = true }, pass,
    pl.passes.ConvertOpset { opset = opset } }
end

--- The pipeline and the context, with these instruments (a function gives them once
-- the pipeline's script has run); wrong usage and a missing input are told here.
function work.prepare(options, instruments)
  options.fixed = require "perilune.cli.shapes".parse(options)
  load.check(options.input)
  local config, arguments = require "perilune.cli.settings".read(options.set)
  config.threads = config.threads or options.threads
  config.reproducer = options.reproducer or config.reproducer
  if options.exact then config["rules.exact"] = true end
  local pass = require "perilune.cli.pipeline".find(options.pipeline, arguments, options.rules)
  pass = with_opset(pass, options.opset)
  if type(instruments) == "function" then instruments = instruments() end
  return pass, make_context(config, options, instruments)
end

--- The model with the dims that the options fix.
function work.fix_dims(module, options)
  return require "perilune.cli.shapes".fix(module, options.fixed)
end

local function is_reproducer(path)
  local head = load.head(path)
  return head and require "perilune".reproducer.is(head)
end

-- Its pipeline and context; the options come before what it says.
local function open_reproducer(options)
  if #options.disable > 0 or #options.only > 0 then
    stop.usage "--disable and --only cannot be used with a reproducer, which has its own context"
  end
  options.fixed = require "perilune.cli.shapes".parse(options)
  local config, arguments = require "perilune.cli.settings".read(options.set)
  if options.exact then config["rules.exact"] = true end
  if #options.rules > 0 then stop.usage "--rules cannot be used with a reproducer" end
  local bug, failure, remarks = require "perilune".reproducer.open(options.input,
    { config = config, arguments = arguments })
  for _, remark in ipairs(remarks) do io.stderr:write("perilune: ", remark, "\n") end
  if not bug then error(failure, 0) end
  local pass = options.pipeline and require "perilune.cli.pipeline".find(options.pipeline, {})
  pass = with_opset(pass or bug.pipeline, options.opset)
  return work.fix_dims(bug.module, options), pass, bug.context
end

--- The module, the pipeline and the context that the options name: those of a
-- reproducer, when the input is one.
function work.read(options)
  if is_reproducer(options.input) then return open_reproducer(options) end
  local pass, context = work.prepare(options, {})
  return work.fix_dims(assert(load.model(options.input)), options), pass, context
end

--- f(...), which Ctrl-C stops: then the process ends as by that signal. finish() is
-- called in any case.
function work.interruptible(finish, f, ...)
  host.catch_interrupt()
  local results = table.pack(pcall(f, ...))
  finish()
  if results[1] then return table.unpack(results, 2, results.n) end
  local err = results[2]
  if type(err) == "table" and err.code == "interrupted" then
    io.stderr:write(("perilune: %s; nothing is written\n"):format(err.message))
    for _, note in ipairs(err.notes) do io.stderr:write("note: ", note.message, "\n") end
    host.end_by_interrupt()
  end
  error(err, 0)
end

return work
