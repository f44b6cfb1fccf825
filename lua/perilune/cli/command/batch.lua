--- perilune batch: one command over many models, several at a time.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local json = require "perilune.json"
local result_file = require "perilune.cli.result_file"
local stop = require "perilune.cli.stop"
local workers = require "perilune.cli.workers"

core.internal() -- diagnostics point at the scripts of others

local batch = {
  description = "Runs perilune opt or perilune tune on each MODEL in processes of their own. The "
    .. "result of a/m.onnx is DIR/a_m.onnx; DIR/a_m.onnx.json says what became of the task. A "
    .. "batch that was stopped goes on where it was: a task that is done is not run again while "
    .. "its arguments, the size and time of the file MODEL and perilune's version are the same "
    .. "(a change of a model's external data alone is not seen). A failed one is run again.",
}

function batch.arguments(parser)
  parser:argument("command", "opt or tune."):choices { "opt", "tune" }
  parser:argument("models", "The models to read."):argname "MODEL":args "+"
  parser:option("-o --output", "The folder for results."):argname "DIR":count(1)
  parser:option("-j --jobs", "The number of processes."):argname "N":default "1"
    :convert(require "perilune.cli.numbers".count)
  parser:option("--seconds", "The time limit of each task."):argname "S":default "3600"
    :convert(tonumber)
  parser:option("--argument", "An argument for the command: --argument=--opt-level=2.")
    :argname "WORD":count "*"
end

local function output_name(model) return (model:gsub("^[./]+", ""):gsub("/", "_")) end

local function task_of(options, model, output)
  local arguments = json.list { options.command, model, "-o", output }
  table.move(options.argument, 1, #options.argument, #arguments + 1, arguments)
  -- What the result depends on: the worker reads the first two.
  local _, bytes, changed = host.stat(model)
  return json.encode { arguments = arguments, seconds = options.seconds, bytes = bytes,
    changed = changed, version = core._VERSION }
end

local function tasks_of(options)
  local tasks, model_of = {}, {}
  for _, model in ipairs(options.models) do
    local output = options.output .. "/" .. output_name(model)
    if model_of[output] then
      stop.usage("%s and %s have the same result, %s", model_of[output], model, output)
    end
    model_of[output] = model
    tasks[#tasks + 1] = { model = model, output = output, record = output .. ".json",
      text = task_of(options, model, output) }
  end
  return tasks
end

local function is_done(task)
  if not host.stat(task.output) then return false end
  local file = io.open(task.record, "rb")
  local ok, record = pcall(json.decode, file and file:read "a" or "")
  if file then file:close() end
  return ok and type(record) == "table" and record.state == "done" and record.task == task.text
end

local function store(task, word, lines)
  local ok, record = pcall(json.decode, lines[#lines] or "")
  if not ok or type(record) ~= "table" then
    record = { state = word, why = lines[1] or "no result" }
  end
  record.task = task.text
  result_file.write(task.record, json.encode(record))
  if record.state == "done" then return true end
  print(("FAIL %s: %s\n%s"):format(task.model, record.why, record.output or ""))
end

function batch.run(options)
  if not options.seconds or not (options.seconds > 0 and options.seconds <= 1e6) then
    stop.usage "--seconds must be a number above 0, at most 1000000"
  end
  local all, todo, texts = tasks_of(options), {}, {}
  if not os.execute(workers.command { "mkdir", "-p", "--", options.output }) then
    stop.failure("%s: cannot be made", options.output)
  end
  for _, task in ipairs(all) do
    if not is_done(task) then
      todo[#todo + 1], texts[#texts + 1] = task, task.text
    end
  end
  local done = 0
  workers.run(options.jobs, workers.command { options.program, "worker", "--from" },
    texts, function(i, word, lines) if store(todo[i], word, lines) then done = done + 1 end end)
  print(("%d done, %d failed, %d done before"):format(done, #todo - done, #all - #todo))
  return done < #todo and 1 or 0
end

return batch
