--- perilune batch: one command over many models, several at a time.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local json = require "perilune.json"
local stop = require "perilune.cli.stop"
local tasks = require "perilune.tune.record.tasks"

core.internal() -- diagnostics point at the scripts of others

local batch = {
  description = "Runs a command on each MODEL in processes of their own. opt and tune write "
    .. "DIR/a_m.onnx for the model a/m.onnx; check compares a/m.onnx with DIR/a_m.onnx; test takes "
    .. "folders as perilune test does. `perilune db tasks DIR/batch.db` shows what became of each. "
    .. "A batch that was stopped goes on where it was: a task that is done is not run again while "
    .. "its arguments, the size and time of its files and perilune's version are the same "
    .. "(a change of a model's external data alone is not seen). A failed one is run again. "
    .. "One batch at a time uses DIR.",
}

function batch.arguments(parser)
  parser:argument("command", "opt, tune, check or test."):choices { "opt", "tune", "check", "test" }
  parser:argument("models", "The models to read."):argname "MODEL":args "+"
  parser:option("-o --output", "The folder for results."):argname "DIR":count(1)
  parser:option("-j --jobs", "The number of processes of --runner local."):argname "N":default "1"
    :convert(require "perilune.cli.numbers".count)
  parser:option("--seconds", "The time limit of each task."):argname "S":default "3600"
    :convert(tonumber)
  parser:option("--argument", "An argument for the command: --argument=--opt-level=2.")
    :argname "WORD":count "*"
  parser:option("--argument-file", "An option of the command whose value is a file, which workers "
    .. "are sent: --argument-file=--script=passes.lua."):argname "OPTION=FILE":count "*"
  require "perilune.cli.runner".options(parser)
end

-- ------------------------------------------------------------------------ tasks

local function output_name(model) return (model:gsub("^[./]+", ""):gsub("/", "_")) end

-- By command: what follows it, the files whose versions decide, and the file that it writes.
local function rewriting(model, result)
  return { arguments = { { input = model }, "-o", { output = result } }, files = { model },
    writes = result }
end

local kinds = {
  opt = rewriting, tune = rewriting,
  check = function(model, result)
    return { arguments = { { input = model }, { input = result } }, files = { model, result } }
  end,
  test = function(folder)
    return { arguments = { { input = folder } }, files = { folder .. "/model.onnx" } }
  end,
}

-- A text of all that the result depends on.
local function specification(options, task)
  local words, versions = {}, {}
  for i, word in ipairs(task.arguments) do
    words[i] = type(word) == "table" and (word.input or word.output) or word
  end
  for i, path in ipairs(task.files) do
    local _, bytes, changed = host.stat(path)
    versions[i] = json.list { bytes or -1, changed or -1 }
  end
  return json.encode { arguments = json.list(words), seconds = options.seconds,
    files = json.list(versions), version = core._VERSION }
end

local function add_arguments(task, options)
  local arguments, files = task.arguments, task.files
  table.move(options.argument, 1, #options.argument, #arguments + 1, arguments)
  for _, text in ipairs(options.argument_file) do
    local option, path = text:match "^(.-)=(.+)$"
    if not option then stop.usage("--argument-file %s: OPTION=FILE expected", text) end
    arguments[#arguments + 1], arguments[#arguments + 2] = option, { input = path, cached = true }
    files[#files + 1] = path
  end
end

local function task_of(options, model)
  model = #model > 1 and model:gsub("/+$", "") or model
  local result = options.output .. "/" .. output_name(model)
  local task = kinds[options.command](model, result)
  table.insert(task.arguments, 1, options.command)
  add_arguments(task, options)
  task.model, task.result, task.name = model, result, ("%s %s"):format(options.command, model)
  task.specification = specification(options, task)
  return task
end

local function tasks_of(options)
  local list, model_of = {}, {}
  for i, model in ipairs(options.models) do
    local task = task_of(options, model)
    if model_of[task.result] then
      stop.usage("%s and %s have the same result, %s", model_of[task.result], model, task.result)
    end
    model_of[task.result], list[i] = model, task
  end
  return list
end

-- Those that are not done; a result that was deleted is made again.
local function open_tasks(db, all)
  local todo = {}
  for i, done in ipairs(tasks.add_all(db, all)) do
    local task = all[i]
    if not done or task.writes and not host.stat(task.writes) then todo[#todo + 1] = task end
  end
  return todo
end

-- ---------------------------------------------------------------------- running

-- Until it is closed no other batch can have it.
local function lock(folder)
  local path = folder .. "/batch.lock"
  local file_lock, reason = host.lock(path)
  if file_lock then return file_lock end
  if not reason then
    stop.failure("%s: another batch is running there (it has locked %s)", folder, path)
  end
  stop.failure("%s", reason)
end

local function report(task, result, progress)
  progress.clear()
  if result.state ~= "done" then
    print(("FAIL %s: %s\n%s"):format(task.model, result.why, result.output or ""))
  end
end

-- The number of tasks that were done.
local function run(options, db, todo)
  local progress = require "perilune.instruments".progress()
  local queue <close> = require "perilune.cli.runner".queue(options, math.min(options.jobs, #todo),
    options.output .. "/batch.tmp")
  local done = 0
  for i, task in ipairs(todo) do
    queue:submit { id = i, arguments = task.arguments, seconds = options.seconds }
  end
  for i, result in queue:results() do
    tasks.finish(db, todo[i], result)
    report(todo[i], result, progress)
    if result.state == "done" then done = done + 1 end
    progress.show(("%d of %d"):format(#todo - queue.pending, #todo))
  end
  progress.clear()
  return done
end

local function make_folder(path)
  local at = path:sub(1, 1) == "/" and "/" or ""
  for name in path:gmatch "[^/]+" do
    at = at .. name
    local ok, reason = host.make_folder(at)
    if not ok then stop.failure("%s", reason) end
    at = at .. "/"
  end
end

function batch.run(options)
  if not options.seconds or not (options.seconds > 0 and options.seconds <= 1e6) then
    stop.usage "--seconds must be a number above 0, at most 1000000"
  end
  require "perilune.cli.runner".check(options)
  local all = tasks_of(options)
  make_folder(options.output)
  local scope <close> = lock(options.output)
  local db <close> = require "perilune".tune.database { path = options.output .. "/batch.db" }
  local todo = open_tasks(db, all)
  local done = #todo > 0 and run(options, db, todo) or 0
  print(("%d done, %d failed, %d done before"):format(done, #todo - done, #all - #todo))
  return done < #todo and 1 or 0
end

return batch
