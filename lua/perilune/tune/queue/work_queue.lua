--- Tasks on many machines, by Work Queue (Debian: coop-computing-tools). The program perilune-farm
-- (engine/farm) speaks with its workers, and with this process by lines. Workers need nothing but
-- work_queue_worker: perilune itself is sent to them, and kept there.
--
-- A task runs in an empty folder of its worker: `./perilune worker task out/result`; files that it
-- reads are in1/NAME, in2/NAME, ..., those that it writes out/1/NAME, ... The folder `out`
-- comes back as a whole.

local argument = require "perilune.argument"
local core = require "perilune.core"
local file_exists = require "perilune.file_exists"
local find_program = require "perilune.find_program"
local json = require "perilune.json"
local read_file = require "perilune.read_file"
local replace_file = require "perilune.replace_file"
core.internal()

local work_queue = {}

local methods = {}
local class = { __index = methods }

-- perilune-farm is started again so many times without a result in between.
local MOST_STARTS = 5

local function fail(message, ...) core.raise(core.diag("io", message:format(...))) end

-- -------------------------------------------------------------------- programs

local function farm_program(perilune)
  local beside = perilune:match "^(.*/)[^/]*$" .. "perilune-farm"
  return find_program(beside) or find_program "perilune-farm"
    or fail("perilune-farm is not there; it is built with perilune where Work Queue is installed "
      .. "(Debian: coop-computing-tools-dev, zlib1g-dev)")
end

local function run_program(words)
  local ended = core.child_run(words, { seconds = 60, memory = 0 })
  return ended.code == 0 and ended.signal == 0, ended.output
end

-- ------------------------------------------------------------------------ lines

local function field(text)
  return (tostring(text):gsub("[\t\n\r%%]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function append(list, ...)
  for _, text in ipairs { ... } do list[#list + 1] = text end
end

local function fields_of(line)
  local list = {}
  for text in (line .. "\t"):gmatch "([^\t]*)\t" do
    list[#list + 1] = text:gsub("%%(%x%x)", function(x) return string.char(tonumber(x, 16)) end)
  end
  return list
end

-- ------------------------------------------------------------------------ tasks

local function base_name(path)
  return (path:gsub("/+$", ""):match "[^/]*$":gsub("[^%w._-]", "_"))
end

-- Files of a model's external data that are there: { path, name in the model }.
local function data_files(path)
  local counts, list = path:find "%.onnx$" and core.onnx_count(path), {}
  for _, name in ipairs(counts and counts.files or {}) do
    local file = (path:match "^.*/" or "") .. name
    if not name:find "%.%." and name:sub(1, 1) ~= "/" and file_exists(file) then
      list[#list + 1] = { file, name }
    end
  end
  return list
end

-- What the file `path` is called where the task runs; the fields that send it.
local function add_input(task, word, fields)
  task.n_inputs = task.n_inputs + 1
  local folder, kind = ("in%d/"):format(task.n_inputs), word.cached and "cached" or "input"
  local name = folder .. base_name(word.input)
  append(fields, kind, name, word.input)
  for _, file in ipairs(data_files(word.input)) do
    append(fields, kind, folder .. file[2], file[1])
  end
  return name
end

local function add_output(task, path)
  local n = #task.outputs + 1
  local name = ("%d/%s"):format(n, base_name(path))
  task.outputs[n] = { path = path, name = name }
  return "out/" .. name
end

-- The words of the command where the task runs, and the fields of its files.
local function translate(task)
  local words, fields = {}, {}
  for i, word in ipairs(task.arguments) do
    words[i] = word
    if type(word) == "table" then
      words[i] = word.input and add_input(task, word, fields) or add_output(task, word.output)
    end
  end
  return json.list(words), fields
end

local function folders_of(task)
  local names = { "out" }
  for i = 1, #task.outputs do names[i + 1] = ("out/%d"):format(i) end
  return table.concat(names, " ")
end

local function local_path(self, sent, suffix)
  return ("%s/%d%s"):format(self.folder, sent.id, suffix)
end

-- The line of a task, which is told by a number of ours: a late answer is of none.
local function line_of(self, sent)
  local words, files = translate(sent)
  local ok, reason = replace_file(local_path(self, sent, ".task"),
    json.encode { arguments = words, seconds = sent.task.seconds })
  if not ok then fail("%s", reason) end
  local fields = { "task", sent.id, self.tries, sent.task.feature or "",
    ("mkdir %s && exec ./perilune worker task out/result"):format(folders_of(sent)),
    "cached", "perilune", self.program, "input", "task", local_path(self, sent, ".task") }
  append(fields, table.unpack(files))
  append(fields, "output", "out", local_path(self, sent, ""))
  for i, text in ipairs(fields) do fields[i] = field(text) end
  return table.concat(fields, "\t") .. "\n"
end

function methods.send(self, task)
  self.last = self.last + 1
  local sent = { id = self.last, task = task, arguments = task.arguments, outputs = {},
    n_inputs = 0 }
  self.sent[self.last] = sent
  sent.line = line_of(self, sent)
  core.subprocess_send(self.process, sent.line) -- wait hears of its end
end

-- ---------------------------------------------------------------------- results

-- Data before the model that names it. Work Queue makes executable files.
local function move_outputs(self, sent)
  for _, output in ipairs(sent.outputs) do
    local from = local_path(self, sent, "/" .. output.name)
    for _, suffix in ipairs { ".data", "" } do
      if file_exists(from .. suffix) then
        local to = output.path .. suffix
        if not os.rename(from .. suffix, to) and not run_program { "mv", "--", from .. suffix, to }
        then return to .. ": cannot be written" end
        core.reset_file_mode(to)
      end
    end
  end
end

local function remove_files(self, sent)
  os.remove(local_path(self, sent, ".task"))
  os.remove(local_path(self, sent, "/result"))
  for i in ipairs(sent.outputs) do os.remove(local_path(self, sent, "/" .. i)) end
  if not os.remove(local_path(self, sent, "")) and file_exists(local_path(self, sent, "")) then
    run_program { "rm", "-rf", "--", local_path(self, sent, "") } -- a task that failed left more
  end
end

local function result_in(self, sent, status)
  local text = read_file(local_path(self, sent, "/result"))
  local ok, result = pcall(json.decode, text or "")
  if not ok or type(result) ~= "table" then
    return { state = "failed", lost = true,
      why = ("its worker gave no result (status %s)"):format(status) }
  end
  local reason = result.state == "done" and move_outputs(self, sent)
  if reason then return { state = "failed", why = reason } end
  return result
end

local function result_of(self, sent, word, status)
  if word == "success" then return result_in(self, sent, status) end
  if word == "lost" then return { state = "failed", lost = true, why = "its worker was lost" } end
  return { state = "failed", why = word }
end

-- Of a line "done ID RESULT STATUS TRIES SECONDS HOST": the task and its result.
local function finish(self, fields)
  local sent = self.sent[math.tointeger(tonumber(fields[2])) or 0]
  if not sent then return nil end
  local result = result_of(self, sent, fields[3], fields[4])
  result.tries, result.host = math.tointeger(tonumber(fields[5])) or 1, fields[7]
  self.sent[sent.id] = nil
  remove_files(self, sent)
  self.starts = 0
  return sent.task, result
end

-- --------------------------------------------------------------------- a process

-- The next line of perilune-farm: its fields; nil: none yet.
local function next_line(self, seconds)
  if not core.subprocess_wait({ self.process }, seconds) then return nil end
  local line = core.subprocess_line(self.process)
  if not line then return nil, core.subprocess_at_end(self.process) end
  local fields = fields_of(line)
  if fields[1] == "error" then fail("perilune-farm: %s", fields[2]) end
  return fields
end

local function start(self)
  self.starts = self.starts + 1
  self.process = core.subprocess_start(self.words)
  local fields = next_line(self, 30)
  if not fields or fields[1] ~= "listening" then
    fail("%s does not start", self.words[1])
  end
  self.port = math.tointeger(tonumber(fields[2]))
  self.words[5] = tostring(self.port) -- workers find it again
end

-- perilune-farm has ended: another one is given all that has no result.
local function start_again(self)
  core.subprocess_finish(self.process, 1)
  if self.starts >= MOST_STARTS then fail("perilune-farm has ended %d times", self.starts) end
  start(self)
  local lines = {}
  for id = 1, self.last do
    if self.sent[id] then lines[#lines + 1] = self.sent[id].line end
  end
  core.subprocess_send(self.process, table.concat(lines))
end

function methods.wait(self, seconds)
  local deadline = core.clock() + seconds
  repeat
    local fields, ended = next_line(self, math.min(math.max(deadline - core.clock(), 0), 3600))
    if ended then start_again(self) end
    if fields and fields[1] == "workers" then self.workers = tonumber(fields[2]) end
    if fields and fields[1] == "done" then
      local task, result = finish(self, fields)
      if task then return task, result end
    end
  until core.clock() >= deadline
end

local function cancel_pilots(self)
  if self.pilots then run_program { "scancel", self.pilots } end
  self.pilots = nil
end

function methods.close(self)
  cancel_pilots(self)
  if self.process then
    core.subprocess_end_input(self.process)
    core.subprocess_finish(self.process, 5)
    self.process = nil
  end
  if self.folder then run_program { "rm", "-rf", "--", self.folder } end
  self.folder = nil
end

-- ------------------------------------------------------------------------- Slurm

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- One that a signal ends is started again; one that finds nobody for 15 seconds ends.
local pilot = [[status=137
while [ $status -gt 128 ]; do
  work_queue_worker --cores 1 --connect-timeout 15 --idle-timeout 3600 -i 1 -b 2 \
    -s "${TMPDIR:-/tmp}" %s
  status=$?
done]]

-- Workers as an array of jobs.
local function submit_pilots(self, options)
  local words = {}
  if options.password then append(words, "-P", quoted(options.password)) end
  append(words, quoted(options.address), self.port)
  local ok, output = run_program { "sbatch", "--parsable", "--job-name=perilune", "--requeue",
    "--ntasks=1", "--output=/dev/null", "--partition=" .. options.partition,
    ("--array=1-%d"):format(options.pilots), "--wrap", pilot:format(table.concat(words, " ")) }
  self.pilots = ok and output:match "^(%d+)" or nil
  if not self.pilots then fail("sbatch does not submit workers: %s", output) end
end

-- ----------------------------------------------------------------------- opening

local function make_folder(options)
  local folder = options.folder or os.tmpname()
  os.remove(folder)
  local ok = run_program { "rm", "-rf", "--", folder }
    and run_program { "mkdir", "-p", "--", folder }
  return ok and folder or fail("%s: cannot be made", folder)
end

local function check(options)
  if options.address ~= "127.0.0.1" and not options.password then
    argument.fail "pl.tune.queue: address: others than 127.0.0.1 need a password"
  elseif options.password and not file_exists(options.password) then
    fail("%s: the password file cannot be read", options.password)
  end
end

local function open(self, options)
  self.program = find_program(options.program)
    or fail("%s: there is no such program, which workers would run", options.program)
  self.words = { farm_program(self.program), "-a", options.address, "-p", tostring(options.port),
    "-k", ("%g"):format(options.silence) }
  if options.password then append(self.words, "-P", options.password) end
  self.folder = make_folder(options)
  start(self)
  if options.partition then submit_pilots(self, options) end
end

--- { port = (0: any), address =, password = (a file), silence = (seconds after which a worker is
-- given up), folder = (for what is on its way), tries =, program =, partition = and pilots = (of
-- Slurm) }.
function work_queue.new(options)
  check(options)
  local self = setmetatable({ sent = {}, last = 0, starts = 0, workers = 0, tries = options.tries },
    class)
  local ok, err = pcall(open, self, options)
  if ok then return self end
  pcall(self.close, self)
  error(err, 0)
end

return work_queue
