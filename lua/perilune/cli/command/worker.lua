--- perilune worker: one task from a file, whatever starts it (a shell, a batch system).

local json = require "perilune.json"
local read_file = require "perilune.read_file"
local stop = require "perilune.cli.stop"

require "perilune.core".internal() -- diagnostics point at the scripts of others

local worker = {
  description = "Runs the perilune command that the file TASK describes in a child process with "
    .. 'a time limit, and writes the file RESULT. TASK is JSON: {"arguments": ["opt", "a.onnx", '
    .. '"-o", "b.onnx"], "seconds": 60}; seconds may be missing (3600). RESULT is JSON too: '
    .. '"state" (done or failed), "why" it failed, "output" (standard output and error) and '
    .. '"seconds". It appears complete or not at all. The exit status is 0 when RESULT was '
    .. "written, for a failed task too.",
}

function worker.arguments(parser)
  parser:argument("task", "The task to run."):argname "TASK":args "?"
  parser:argument("result", "The file to write."):argname "RESULT":args "?"
  parser:flag("--lines", "Reads tasks as lines of standard input, and answers each."):hidden(true)
end

local max_output = 1 << 20 -- bytes that a task may print

local function is_list_of_words(list)
  if type(list) ~= "table" or #list == 0 then return false end
  local n = 0
  for _, word in pairs(list) do
    if type(word) ~= "string" or word:find "\0" then return false end
    n = n + 1
  end
  return n == #list
end

local function parse_task(path, text)
  local ok, task = pcall(json.decode, text)
  if not ok or type(task) ~= "table" then stop.failure("%s: a task is a JSON object", path) end
  if not is_list_of_words(task.arguments) then
    stop.failure("%s: 'arguments' must be a list of strings, the command's name first", path)
  end
  local seconds = task.seconds == nil and 3600 or task.seconds
  if type(seconds) ~= "number" or not (seconds > 0 and seconds <= 1e6) then
    stop.failure("%s: 'seconds' must be a number above 0, at most 1000000", path)
  end
  return task.arguments, seconds
end

local function why_failed(ended, seconds)
  if ended.timed_out then return ("it was stopped after %g seconds"):format(seconds) end
  if ended.too_long then
    return ("it was stopped because it wrote more than %d bytes"):format(max_output)
  end
  if ended.signal ~= 0 then
    return ("it crashed: signal %d (%s)"):format(ended.signal, ended.signal_name)
  end
  if ended.code ~= 0 then return ("its status is %d"):format(ended.code) end
end

-- Somebody else killed it (the system does when memory is short): that says nothing about it.
local function was_killed(ended)
  return ended.signal == 9 and not ended.timed_out and not ended.too_long
end

local function run_task(program, arguments, seconds)
  -- The shell joins standard error to standard output.
  local words = { "/bin/sh", "-c", 'exec "$0" "$@" 2>&1', program }
  table.move(arguments, 1, #arguments, #words + 1, words)
  local ended = require "perilune.core".child_run(words,
    { seconds = seconds, memory = 0, output = max_output })
  local why = why_failed(ended, seconds)
  return { state = why and "failed" or "done", why = why, output = ended.output,
    seconds = ended.seconds, lost = was_killed(ended) }
end

-- What perilune.tune.queue.local_processes starts.
local function run_lines(program)
  for line in io.lines() do
    local result = run_task(program, parse_task("standard input", line))
    print(json.encode(result))
    require "perilune.process_pool".answer(result.state)
  end
end

function worker.run(options)
  require "perilune.cli.host".catch_termination()
  if options.lines then return run_lines(options.program) end
  if not options.result then stop.usage "worker needs a TASK and a RESULT" end
  local task, unread = read_file(options.task)
  if not task then stop.failure("%s", unread) end
  local arguments, seconds = parse_task(options.task, task)
  local result = json.encode(run_task(options.program, arguments, seconds))
  local ok, reason = require "perilune.replace_file"(options.result, result .. "\n")
  if not ok then stop.failure("%s", reason) end
end

return worker
