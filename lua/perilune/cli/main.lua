--- The command line: finds the command, reads its arguments, runs it, and turns
-- what went wrong into a message and an exit status (0 done, 1 the work failed,
-- 2 wrong usage). Called by engine/cli/main.c. Loads only what the command needs.

local stop = require "perilune.cli.stop"

-- The order of `perilune --help`. A command is the module perilune.cli.command.NAME, with _
-- for -; one of its own commands, such as `perilune rules check`, is the module NAME.CHECK.
local commands = {
  { "opt", "optimise a model" },
  { "run", "run a model" },
  { "test", "run models on recorded data and compare" },
  { "check", "compare what two models compute" },
  { "bisect", "find the first pass that breaks a model" },
  { "replay", "run a reproducer of a failing pass" },
  { "reduce", "reduce a failing model and pipeline" },
  { "tune", "search for a better pipeline by measuring" },
  { "db", "list, merge and convert records of tuning" },
  { "batch", "opt, tune, check or test many models in parallel" },
  { "worker", "run one task that a file describes" },
  { "build", "write programs of TIR as C, or compile them" },
  { "info", "show what a model is made of" },
  { "fmt", "print a model as Relay text" },
  { "passes", "list passes and pipelines with their options" },
  { "rules", "list rewrite rules" },
  { "why-not", "explain why a rule does not apply" },
  { "ops", "list operators" },
  { "zoo", "generate a model to try things on" },
}

local function help()
  local lines = {
    "Usage: perilune COMMAND [ARGUMENT]...",
    "       perilune SCRIPT.lua [ARGUMENT]...",
    "", "Optimises tensor programs.", "", "Commands:",
  }
  for _, command in ipairs(commands) do
    lines[#lines + 1] = ("   %-8s %s"):format(command[1], command[2])
  end
  lines[#lines + 1] = [[

   -h, --help     show this text; after a command: its arguments
   -V, --version  show the version

A script finds the library as: local pl = require "perilune".
Exit status: 0 done, 1 the work failed, 2 wrong usage.]]
  return table.concat(lines, "\n") .. "\n"
end

local function print_help()
  io.stdout:write(help())
  return 0
end

local function print_version()
  print("perilune " .. require "perilune.cli.host".version)
  return 0
end

local function is_command(name)
  for _, command in ipairs(commands) do
    if command[1] == name then return command end
  end
end

-- The library, for scripts: Ctrl-C and limits reach into their coroutines.
local function open_core()
  local core = require "perilune.core"
  core.internal() -- diagnostics do not point here
  core.guard_coroutines()
  require "perilune.cli.host".watch()
end

-- The text of the commands that a command has, after its arguments.
local function list_inner(inner)
  local lines = {}
  for name, summary in pairs(inner) do
    lines[#lines + 1] = ("   %-21s %s"):format(name, summary)
  end
  table.sort(lines)
  return "Commands:\n" .. table.concat(lines, "\n")
end

local function parser_of(name, summary, command)
  local parser = require "argparse"("perilune " .. name)
    :description(command.description or summary:gsub("^%l", string.upper) .. ".")
    :usage_max_width(80):help_max_width(80)
  if command.commands then parser:epilog(list_inner(command.commands)) end
  if not command.run then
    parser:argument("command", "One of those below; after it: its arguments."):argname "COMMAND"
      :args "?"
    return parser
  end
  command.arguments(parser)
  parser:option("--script", "Runs a script before anything else, for what it registers: "
    .. "operators (pl.ops), passes, attributes of operators."):argname "FILE.lua":count "*"
  return parser
end

-- What scripts register is there for the command and the models that it reads.
local function run_scripts(paths)
  local host = require "perilune.cli.host"
  for _, path in ipairs(paths) do
    local chunk, reason = loadfile(path)
    if not chunk then stop.failure("--script: %s", reason) end
    host.guard_begin()
    chunk(path)
    host.guard_end()
  end
end

local function load_command(name)
  return require("perilune.cli.command." .. name:gsub("-", "_"):gsub(" ", "."))
end

local function refuse_inner(name, inner, word)
  local names = {}
  for each in pairs(inner) do names[#names + 1] = each end
  table.sort(names)
  if not word then
    stop.usage("%s: one of its commands is expected: %s", name, table.concat(names, ", "))
  end
  stop.usage("%s: there is no command '%s'%s\nTry: perilune %s --help", name, word,
    require "perilune.core".suggest(word, names), name)
end

local function run_command(name, summary, arguments, program)
  open_core()
  local command = load_command(name)
  local inner = command.commands and command.commands[arguments[1]]
  if inner then -- such as `perilune rules check`
    return run_command(name .. " " .. arguments[1], inner,
      table.move(arguments, 2, #arguments, 1, {}), program)
  end
  if not command.run and not (arguments[1] or ""):find "^%-" then
    refuse_inner(name, command.commands, arguments[1])
  end
  local parser = parser_of(name, summary, command)
  if command.rewrite then arguments = command.rewrite(arguments) end
  local ok, options = parser:pparse(arguments)
  if not ok then
    local message = require "perilune.cli.usage"(options, parser, arguments)
    stop.usage("%s\n%s", message, parser:get_usage())
  end
  options.program = program
  run_scripts(options.script)
  return command.run(options) or 0
end

-- As `lua SCRIPT ARGUMENT...` does: the global arg, the arguments as `...`.
local function run_script(path, arguments)
  open_core()
  local chunk, reason = loadfile(path)
  if not chunk then stop.failure("%s", reason) end
  _G.arg = table.move(arguments, 1, #arguments, 1, { [0] = path })
  chunk(table.unpack(arguments))
  return 0
end

-- A model is for a command; what is neither a model nor a script is the wrong file.
local function refuse_model(path)
  local file = io.open(path, "rb")
  local head = file and file:read(512)
  if file then file:close() end
  if not head or path:find "%.lua$" or head:find "^\27Lua" then return end
  local kind = require "perilune.core".file_kind(head)
  if kind == "text" and not path:find "%.relay$" then return end
  local what = "no script"
  if kind == nil or kind == "Relay text" or path:find "%.relay$" then what = "a model" end
  local hint = what == "a model"
    and ("; try: perilune opt %s -o OUT, or perilune info %s"):format(path, path)
    or ", but " .. kind
  stop.usage("%s is %s%s", path, what, hint)
end

local function unknown_command(name)
  local names = {}
  for i, command in ipairs(commands) do names[i] = command[1] end
  local what = name:find "^%-" and "option" or "command"
  stop.usage("unknown %s '%s'%s\n%s", what, name,
    require "perilune.core".suggest(name, names), "Try: perilune --help")
end

local function run_unknown(name, arguments)
  local kind = require "perilune.cli.host".stat(name)
  if kind == "directory" and not name:find "%.lua$" then
    stop.usage("%s is a directory, no script\nTry: perilune --help", name)
  end
  if kind then refuse_model(name) end
  if kind or name:find "%.lua$" then return run_script(name, arguments) end
  unknown_command(name)
end

-- `perilune help COMMAND` and `perilune --help COMMAND` are `perilune COMMAND --help`.
local function print_help_of(argv)
  local name = argv[2]
  if not name then return print_help() end
  local command = is_command(name)
  if not command then unknown_command(name) end
  open_core()
  local module, summary = load_command(name), command[2]
  if module.commands and module.commands[argv[3]] then
    summary, name = module.commands[argv[3]], name .. " " .. argv[3]
    module = load_command(name)
  end
  local parser = parser_of(name, summary, module)
  io.stdout:write(parser:get_help(), "\n")
  return 0
end

local fixed = {
  ["-h"] = print_help_of, ["--help"] = print_help_of, help = print_help_of,
  ["-V"] = print_version, ["--version"] = print_version, version = print_version,
}

local function dispatch(argv)
  local name = argv[1]
  if not name then stop.usage("a command is needed\n%s", help()) end
  if fixed[name] then return fixed[name](argv) end
  local arguments = table.move(argv, 2, #argv, 1, {})
  local command = is_command(name)
  if command then return run_command(name, command[2], arguments, argv[0]) end
  return run_unknown(name, arguments)
end

-- A diagnostic or a stop says all there is to say; anything else is a mistake
-- in a script, whose place in the code matters.
local function describe(err)
  if type(err) ~= "string" then return err end
  return require "perilune.cli.traceback"(err)
end

local function report(err)
  if getmetatable(err) == stop.class then
    io.stderr:write("perilune: ", err.message, "\n")
    return err.status
  end
  io.stderr:write((tostring(err):gsub("\n*$", "\n")))
  return 1
end

-- The line that tells how far an evaluation is goes before anything else is said.
local function end_progress()
  if package.loaded["perilune.core"] then require "perilune.cli.host".end_progress() end
end

return function(argv)
  local ok, status = xpcall(dispatch, describe, argv)
  end_progress()
  if not ok then
    require "perilune.cli.host".guard_begin() -- an error's __tostring may be anybody's
    status = report(status)
  end
  return status
end
