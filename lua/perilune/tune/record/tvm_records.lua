--- Records that TVM's tuners wrote, as rows for a file of records.
--
-- MetaSchedule: a folder with
--     database_workload.json        ["HASH", "BASE64 of the module"]
--     database_tuning_record.json   [WORKLOAD, [TRACE, RUN_SECS, {"kind": "llvm", ...}, ARGS_INFO]]
-- AutoTVM: a file of lines
--     {"input": [TARGET, TASK, ARGS, KWARGS], "config": {...}, "result": [COSTS, ERROR, ALL, AT],
--      "version": 0.2, "tvm_version": "0.14.0"}
--
-- A workload of theirs is kept as the text that they have of it; their failures as failures.

local json = require "perilune.json"
require "perilune.core".internal() -- errors name the scripts of others

local tvm_records = {}

-- Seconds from here on stand for a failure.
local FAILED = 1e9

-- Lists of a decoded text as lists again.
local function marked(value)
  if type(value) ~= "table" then return value end
  local out = {}
  for key, item in pairs(value) do out[key] = marked(item) end
  return (#value > 0 or next(value) == nil) and json.list(out) or out
end

tvm_records.marked = marked

-- { cost =, run_secs = } of a list of seconds, or { failure = }.
local function times_of(list, fail)
  if type(list) ~= "table" then fail "seconds of runs are a list" end
  local sum = 0
  for _, x in ipairs(list) do
    if type(x) ~= "number" or x ~= x or x < 0 then
      fail "seconds are numbers that are not negative"
    end
    sum = sum + x
  end
  if #list == 0 then return { run_secs = {} } end
  if sum / #list >= FAILED then return { run_secs = {}, failure = "it failed in TVM" } end
  return { run_secs = list, cost = sum / #list }
end

local function trial_of(text, times, at)
  return { kind = "trace", text = text, run_secs = times.run_secs, cost = times.cost,
    failure = times.failure, checked = times.cost ~= nil, at = at }
end

-- ---------------------------------------------------------------- MetaSchedule

--- The row of a line of database_tuning_record.json; fail(what) raises.
function tvm_records.of_meta_schedule(row, fail)
  local record = row[2]
  if type(record) ~= "table" or type(record[1]) ~= "table" then
    fail "a record is a trace, seconds of runs, a target and arguments"
  end
  local target = record[3]
  if type(target) ~= "table" or type(target.kind) ~= "string" then
    fail "the target is an object with its kind"
  end
  local seconds = type(record[2]) == "table" and record[2] or {}
  return { workload = row[1], target = target.kind,
    trial = trial_of(json.encode(marked(record[1])), times_of(seconds, fail), 0) }
end

-- --------------------------------------------------------------------- AutoTVM

-- The numbers of AutoTVM's MeasureErrorNo.
local errors = { "cannot be instantiated", "compilation on the host failed",
  "compilation on the device failed", "runtime error on the device", "wrong answer",
  "build timeout", "run timeout", "unknown error" }

--- The row of a line of a log, whose workload is a text; fail(what) raises.
function tvm_records.of_autotvm(row, fail)
  local input, result = row.input, row.result
  if type(input) ~= "table" or type(input[1]) ~= "string" or type(input[2]) ~= "string" then
    fail "input is a target, a task and its arguments"
  elseif type(row.config) ~= "table" or type(result) ~= "table" then
    fail "a line has an input, a config and a result"
  end
  local number = math.tointeger(result[2])
  if not number then fail "the result has the number of an error" end
  local times = number == 0 and times_of(result[1], fail)
    or { run_secs = {}, failure = errors[number] or ("error %d"):format(number) }
  local at = type(result[4]) == "number" and math.floor(result[4]) or 0
  return { target = input[1], trial = trial_of(json.encode(marked(row.config)), times, at),
    text = json.encode(json.list { input[2], marked(input[3] or {}) }) }
end

return tvm_records
