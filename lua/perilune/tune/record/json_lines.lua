--- Records as lines of JSON, in the form of TVM's JSONDatabase: three files in a folder.
--
--     workload.json            ["HASH", "BASE64 of the text"]
--     tuning_record.json       [WORKLOAD, {"kind": "TARGET"}, [CANDIDATE, RUN_SECS, {...}]]
--     measurement_record.json  [WORKLOAD, {"kind": "TARGET"}, RUN_SECS]
--
-- WORKLOAD is the number of a line of workload.json, from 0 on. What TVM has no field for is in
-- the object behind RUN_SECS.

local core = require "perilune.core"
local json = require "perilune.json"
local sqlite = require "perilune.tune.record.sqlite"
local tvm_records = require "perilune.tune.record.tvm_records"
core.internal()

local json_lines = {}

local function fail_record(message) core.raise(core.diag("invalid", message)) end

local files = { "workload", "tuning_record", "measurement_record" }

-- Fields of a trial beside its text and the seconds of its runs.
local trial_names = { "kind", "cost", "checked", "verdict", "confidence", "failure", "note", "at" }

-- ----------------------------------------------------------------------- rows

-- All that a database holds: lists of workloads { id, shash, text }, trials and runs.
local function rows_of(db)
  local workloads = sqlite.run(db, "SELECT id, shash, text FROM workload ORDER BY id")
  local trials = sqlite.run(db, "SELECT measurement.workload AS workload, target.name AS target, "
    .. sqlite.trial_fields .. [[ FROM measurement JOIN candidate
      ON candidate.id = measurement.candidate JOIN target ON target.id = measurement.target
      ORDER BY measurement.id]])
  for i, row in ipairs(trials) do
    local trial = sqlite.trial_of(row)
    trials[i] = { workload = row.workload, target = row.target, trial = trial }
  end
  local runs = sqlite.run(db, [[SELECT workload, target.name AS target, run_secs FROM run
    JOIN target ON target.id = run.target ORDER BY workload, target]])
  return workloads, trials, runs
end

local function number(x) return x and ("%.17g"):format(x) or "null" end

-- Floats with all their digits: a time that is written and read is the same one.
local function encode(x)
  if math.type(x) == "float" then return number(x) end
  return json.encode(x)
end

local function object(fields, names)
  local parts = {}
  for _, name in ipairs(names) do
    if fields[name] ~= nil then
      parts[#parts + 1] = json.encode(name) .. ":" .. encode(fields[name])
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function trial_line(number_of, row)
  local trial = row.trial
  local extra = object(trial, trial_names)
  if trial.seconds then
    extra = ("%s,\"seconds\":%s}"):format(extra:sub(1, -2), object(trial.seconds, { "min", "median",
      "n" }))
  end
  return ("[%d,{\"kind\":%s},[%s,%s,%s]]"):format(number_of[row.workload], json.encode(row.target),
    json.encode(trial.text), sqlite.seconds_text(trial.run_secs or {}), extra)
end

local function lines_of(db)
  local workloads, trials, runs = rows_of(db)
  local number_of, lines = {}, { {}, {}, {} }
  for i, row in ipairs(workloads) do
    number_of[row.id] = i - 1
    lines[1][i] = ("[%s,%s]"):format(json.encode(row.shash),
      json.encode(core.base64_encode(row.text)))
  end
  for i, row in ipairs(trials) do lines[2][i] = trial_line(number_of, row) end
  for i, row in ipairs(runs) do
    lines[3][i] = ("[%d,{\"kind\":%s},%s]"):format(number_of[row.workload],
      json.encode(row.target), row.run_secs)
  end
  return lines
end

local function write(path, lines)
  local ok, reason = require "perilune.replace_file"(path, table.concat(lines, "\n")
    .. (lines[1] and "\n" or ""))
  if not ok then fail_record(reason) end
end

--- Writes all records to the files of a folder, which is there. The number of records.
function json_lines.export(db, folder)
  local lines = lines_of(db)
  for i, name in ipairs(files) do write(("%s/%s.json"):format(folder, name), lines[i]) end
  return #lines[2] + #lines[3]
end

-- -------------------------------------------------------------------- reading

-- Records are put in once: those that are there already are passed over.
local function has_trial(db, w, t, trial)
  return #sqlite.run(db, [[SELECT 1 FROM measurement JOIN candidate
    ON candidate.id = measurement.candidate WHERE candidate.workload = ? AND candidate.target = ?
    AND candidate.kind = ? AND candidate.text = ? AND measurement.at = ? AND cost IS ?
    AND coalesce(run_secs, '[]') = ?]], w, t, trial.kind,
    trial.text, trial.at, trial.cost, sqlite.seconds_text(trial.run_secs or {})) > 0
end

local function put_trials(db, ids, trials)
  local n = 0
  for _, row in ipairs(trials) do
    local w, t = ids[row.workload], sqlite.add_target(db, row.target)
    if not has_trial(db, w, t, row.trial) then
      sqlite.add_trial(db, w, t, row.trial)
      n = n + 1
    end
  end
  return n
end

local function put_runs(db, ids, runs)
  local n = 0
  for _, row in ipairs(runs) do
    sqlite.run(db, "INSERT OR IGNORE INTO run(workload, target, run_secs, at) VALUES(?, ?, ?, ?)",
      ids[row.workload], sqlite.add_target(db, row.target), row.run_secs, os.time())
    n = n + core.sqlite_changes(db.db)
  end
  return n
end

local function put(db, workloads, trials, runs)
  local ids = {}
  for _, row in ipairs(workloads) do ids[row.id] = sqlite.add_workload(db, row.text) end
  return put_trials(db, ids, trials) + put_runs(db, ids, runs)
end

-- fail(line number, what) for the lines of a file, and each as a value.
local function read(path, visit)
  local text, reason = require "perilune.read_file"(path)
  if not text then fail_record(reason) end
  local n = 0
  for line in text:gmatch "([^\n]*)\n?" do
    n = n + 1
    local function fail(what) fail_record(("%s:%d: %s"):format(path, n, what)) end
    if line:find "%S" then
      local row = json.decode(line)
      if type(row) ~= "table" then fail "a list is expected" end
      visit(row, n, fail)
    end
  end
end

local function read_workloads(path)
  local list = {}
  read(path, function(row, _, fail)
    local text = type(row[2]) == "string" and core.base64_decode(row[2])
    if type(row[1]) ~= "string" or not text then fail "[hash, base64 of the text] is expected" end
    list[#list + 1] = { id = #list, text = text }
  end)
  return list
end

local function target_of(row, fail)
  local target = row[2]
  if type(target) == "table" and type(target.kind) == "string" then return target.kind end
  fail "the target is an object with its kind"
end

local function check_workload(row, workloads, fail)
  local k = row[1]
  if math.type(k) ~= "integer" or not workloads[k + 1] then
    fail "the number of a line of workload.json is expected"
  end
  return k
end

local function check_seconds(list, fail)
  if type(list) ~= "table" then fail "seconds of runs are a list" end
  for _, x in ipairs(list) do
    if not (type(x) == "number" and x >= 0) then
      fail "seconds are numbers that are not negative"
    end
  end
  return list
end

-- TVM's records have the seconds only; their mean is the cost.
local function cost_of(extra, seconds)
  if extra.kind ~= nil then return extra.cost end
  if #seconds == 0 then return nil end
  local sum = 0
  for _, x in ipairs(seconds) do sum = sum + x end
  return sum / #seconds
end

local function is_number_or_nil(x) return x == nil or type(x) == "number" end
local function is_text_or_nil(x) return x == nil or type(x) == "string" end

local function trial_of(record, fail)
  local extra = record[3] or {}
  if type(record[1]) ~= "string" and type(record[1]) ~= "table" or type(extra) ~= "table" then
    fail "a record is a candidate, seconds of runs and an object"
  end
  local seconds = check_seconds(record[2] or {}, fail)
  local trial = { kind = extra.kind or "trace", run_secs = seconds, seconds = extra.seconds,
    text = type(record[1]) == "string" and record[1] or json.encode(tvm_records.marked(record[1])),
    cost = cost_of(extra, seconds), checked = extra.kind == nil or extra.checked == true,
    verdict = extra.verdict, confidence = extra.confidence, failure = extra.failure,
    note = extra.note, at = math.tointeger(extra.at) or 0 }
  for _, name in ipairs { "kind", "verdict", "failure", "note" } do
    if not is_text_or_nil(trial[name]) then fail(name .. " is a text") end
  end
  if not is_number_or_nil(trial.cost) or not is_number_or_nil(trial.confidence) then
    fail "cost and confidence are numbers"
  end
  local times = trial.seconds
  if times ~= nil and (type(times) ~= "table" or not (is_number_or_nil(times.min)
    and is_number_or_nil(times.median) and is_number_or_nil(times.n))) then
    fail "seconds is an object of numbers"
  end
  return trial
end

-- ---------------------------------------------------------------- TVM's tuners

local function import_meta_schedule(db, folder)
  local workloads, trials = read_workloads(folder .. "/database_workload.json"), {}
  read(folder .. "/database_tuning_record.json", function(row, _, fail)
    check_workload(row, workloads, fail)
    trials[#trials + 1] = tvm_records.of_meta_schedule(row, fail)
  end)
  return sqlite.transaction(db, put, workloads, trials, {})
end

local function import_autotvm(db, path)
  local workloads, numbers, trials = {}, {}, {}
  read(path, function(row, _, fail)
    local one = tvm_records.of_autotvm(row, fail)
    if not numbers[one.text] then
      numbers[one.text] = #workloads
      workloads[#workloads + 1] = { id = #workloads, text = one.text }
    end
    one.workload = numbers[one.text]
    trials[#trials + 1] = one
  end)
  return sqlite.transaction(db, put, workloads, trials, {})
end

local function is_file(path)
  local file = io.open(path, "rb")
  local readable = file and file:read(0) ~= nil
  if file then file:close() end
  return readable or false
end

-- ----------------------------------------------------------------------- public

--- Puts the records of a folder into the database; the number of those that it did not have. The
-- folder has the three files of export, or the two of MetaSchedule; a file is a log of AutoTVM.
-- Raises with the file and the line, and changes nothing, when one cannot be read.
function json_lines.import(db, folder)
  if is_file(folder) then return import_autotvm(db, folder) end
  if is_file(folder .. "/database_workload.json") then return import_meta_schedule(db, folder) end
  local function path(i) return ("%s/%s.json"):format(folder, files[i]) end
  local workloads, trials, runs = read_workloads(path(1)), {}, {}
  read(path(2), function(row, _, fail)
    local record = row[3]
    if type(record) ~= "table" then fail "a record is a list" end
    trials[#trials + 1] = { workload = check_workload(row, workloads, fail),
      target = target_of(row, fail), trial = trial_of(record, fail) }
  end)
  read(path(3), function(row, _, fail)
    runs[#runs + 1] = { workload = check_workload(row, workloads, fail),
      target = target_of(row, fail), run_secs = sqlite.seconds_text(check_seconds(row[3], fail)) }
  end)
  return sqlite.transaction(db, put, workloads, trials, runs)
end

--- Puts the records of another database into this one; the number of those that it did not have.
function json_lines.merge(db, other) return sqlite.transaction(db, put, rows_of(other)) end

return json_lines
