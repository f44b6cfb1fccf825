--- A file of records: SQLite behind the interface of pl.tune.database.
--
-- Every commit is a transaction in write-ahead mode: a process that is killed loses what it
-- had not committed and nothing else, and several processes may use one file.

local argument = require "perilune.argument"
local core = require "perilune.core"
local json = require "perilune.json"
local schema = require "perilune.tune.record.schema"
local text_hash = require "perilune.tune.text_hash"
local trace = require "perilune.tune.trace"
core.internal()

local sqlite = {}

local methods = {}
local class = { __name = "tuning database", __index = methods }

-- What a tuning record without measurements counts as, in seconds.
local UNKNOWN = 1e10

local function fail(message) core.raise(core.diag("invalid", message)) end

-- Of one statement: the rows. Raises what SQLite says.
local function run(self, sql, ...)
  if not self.db then argument.fail "the database is closed" end
  local rows, diag = core.sqlite_run(self.db, sql, ...)
  if not rows then core.raise(diag) end
  return rows
end

local function transaction(self, f, ...)
  run(self, "BEGIN IMMEDIATE")
  local results = table.pack(pcall(f, self, ...))
  if results[1] then
    local ok, err = pcall(run, self, "COMMIT")
    if ok then return table.unpack(results, 2, results.n) end
    results[2] = err
  end
  pcall(run, self, "ROLLBACK")
  error(results[2], 0)
end

-- --------------------------------------------------------------------- opening

local function version_of(self) return run(self, "PRAGMA user_version")[1].user_version end

local function migrate_locked(self)
  for version = version_of(self) + 1, #schema.steps do
    for _, statement in ipairs(schema.steps[version]) do run(self, statement) end
    run(self, ("PRAGMA user_version = %d"):format(version))
  end
  run(self, ("PRAGMA application_id = %d"):format(schema.application_id))
end

local function check_owner(self)
  -- In this order: a process that makes the tables at the moment sets the id with them.
  local tables = run(self, "SELECT count(*) AS n FROM sqlite_master")[1].n
  local id = run(self, "PRAGMA application_id")[1].application_id
  if id ~= schema.application_id and tables > 0 then
    fail(self.path .. ": it is a database of something else")
  end
  if version_of(self) > #schema.steps then
    fail(("%s: it is of version %d, and this library knows versions up to %d"):format(
      self.path, version_of(self), #schema.steps))
  end
end

local function prepare(self, writable)
  check_owner(self)
  if writable then
    run(self, "PRAGMA journal_mode = WAL")
    run(self, "PRAGMA synchronous = NORMAL")
    run(self, "PRAGMA foreign_keys = ON")
    if version_of(self) < #schema.steps then transaction(self, migrate_locked) end
  elseif version_of(self) < #schema.steps then
    fail(self.path .. ": it has no records, or those of an older version")
  end
end

-- Why there is no such file, which SQLite does not tell; "" where there is one. Reading a file that
-- is open would end its locks: this is for one that could not be opened.
local function reason_of(path)
  local file, why = io.open(path, "rb")
  local _, wrong
  if file then
    _, wrong = file:read(1)
    file:close()
  end
  why = why and why:match "^.*: (.-)$" or wrong
  return why and ": " .. why or ""
end

--- The database in a file, which is made if it is not there; `readonly` files must be there.
-- `wait`: seconds (10) for which locks of other processes are waited for.
function sqlite.open(path, options)
  local db, diag = core.sqlite_open(path, not options.readonly, options.wait or 10)
  if not db then core.raise(core.diag(diag.code, diag.message .. reason_of(path))) end
  local self = setmetatable({ db = db, path = path, known = setmetatable({}, { __mode = "k" }),
    targets = {} }, class)
  local ok, err = pcall(prepare, self, not options.readonly)
  if ok then return self end
  self:close()
  error(err, 0)
end

--- Closes the file. Calling it again does nothing.
function methods.close(self)
  if self.db then core.sqlite_close(self.db) end
  self.db = nil
end
class.__close = methods.close

-- ------------------------------------------------------------------- workloads

-- Constants are told by their hash or their place in a file.
local function text_of(mod) return mod:text { constants = "brief", hash_references = true } end

local function check_module(mod, where)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail(("%s: a module expected, got %s"):format(where, argument.kind_of(mod)))
  end
end

-- The row of that text, and how many texts share its hash.
local function find_text(self, hash, text)
  local rows = run(self, "SELECT id, text FROM workload WHERE shash = ? ORDER BY slot", hash)
  for _, row in ipairs(rows) do
    if row.text == text then return row.id, #rows end
  end
  return nil, #rows
end

local function add_workload(self, hash, text)
  local id, n = find_text(self, hash, text)
  if id then return id end
  return run(self, "INSERT INTO workload(shash, slot, text) VALUES(?, ?, ?) RETURNING id", hash, n,
    text)[1].id
end

local function workload_of_text(self, text)
  local hash = text_hash(text)
  return find_text(self, hash, text) or transaction(self, add_workload, hash, text), hash
end

--- Whether the module was committed.
function methods.has_workload(self, mod)
  check_module(mod, "has_workload")
  local text = text_of(mod)
  return find_text(self, text_hash(text), text) ~= nil
end

--- The workload of the module: that which an equal module was committed as, else a new one.
function methods.commit_workload(self, mod)
  check_module(mod, "commit_workload")
  local found = self.known[mod]
  if found then return found end
  local id, hash = workload_of_text(self, text_of(mod))
  local one = { mod = mod, hash = hash, index = id, database = self }
  self.known[mod] = one
  return one
end

local function add_target(self, name)
  local isa, cores = require "perilune.tune.processor".name_and_cores()
  run(self, "INSERT OR IGNORE INTO target(name, isa, cores, at) VALUES(?, ?, ?, ?)", name, isa,
    cores, os.time())
end

-- The number of a target; nil when there is none and none is to be made.
local function target_id(self, name, make)
  if self.targets[name] then return self.targets[name] end
  local row = run(self, "SELECT id FROM target WHERE name = ?", name)[1]
  if not row and make then
    transaction(self, add_target, name)
    row = run(self, "SELECT id FROM target WHERE name = ?", name)[1]
  end
  if row then self.targets[name] = row.id end
  return row and row.id
end

-- The numbers of both; what has no target yet has 0.
local function key(self, workload, target, where, make)
  if type(workload) ~= "table" or workload.database ~= self then
    argument.fail(where .. ": the workload is none of this database; commit it first")
  end
  return workload.index, target_id(self, argument.string(target, where, "target"), make) or 0
end

-- ---------------------------------------------------------------- measurements

local function check_seconds(seconds, where)
  argument.table(seconds, where, "run_secs")
  for _, x in ipairs(seconds) do
    if type(x) ~= "number" or x ~= x or x < 0 then
      argument.fail(where .. ": seconds are numbers that are not negative")
    end
  end
  return seconds
end

local function seconds_text(seconds)
  local parts = {}
  for i, x in ipairs(seconds) do parts[i] = ("%.17g"):format(x) end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function seconds_of(text)
  local list = json.decode(text or "[]")
  return type(list) == "table" and list or {}
end

--- Whether the workload was measured for the target.
function methods.has_measurement_record(self, workload, target)
  local w, t = key(self, workload, target, "has_measurement_record")
  return #run(self, "SELECT 1 FROM run WHERE workload = ? AND target = ?", w, t) > 0
end

--- Keeps the seconds of runs, a list. false when there is a measurement already, which stays.
function methods.commit_measurement_record(self, workload, target, seconds)
  check_seconds(seconds, "commit_measurement_record")
  local w, t = key(self, workload, target, "commit_measurement_record", true)
  run(self, "INSERT OR IGNORE INTO run(workload, target, run_secs, at) VALUES(?, ?, ?, ?)", w, t,
    seconds_text(seconds), os.time())
  return core.sqlite_changes(self.db) > 0
end

--- The seconds of the runs; an empty list when the workload was not measured for the target.
function methods.get_measurement_record(self, workload, target)
  local w, t = key(self, workload, target, "get_measurement_record")
  local row = run(self, "SELECT run_secs FROM run WHERE workload = ? AND target = ?", w, t)[1]
  return seconds_of(row and row.run_secs)
end

-- ---------------------------------------------------------------------- trials

local function candidate_id(self, w, t, kind, text)
  run(self, "INSERT OR IGNORE INTO candidate(workload, target, kind, text) VALUES(?, ?, ?, ?)", w,
    t, kind, text)
  return run(self, [[SELECT id FROM candidate WHERE workload = ? AND target = ? AND kind = ?
    AND text = ?]], w, t, kind, text)[1].id
end

local function add_trial(self, w, t, trial)
  local seconds = trial.seconds or {}
  run(self, [[INSERT INTO measurement(candidate, workload, target, kind, checked, cost, t_min,
      t_med, n, run_secs, verdict, confidence, failure, note, at)
      VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)]],
    candidate_id(self, w, t, trial.kind, trial.text), w, t, trial.kind, trial.checked and 1 or 0,
    trial.cost, seconds.min, seconds.median, seconds.n,
    trial.run_secs and seconds_text(trial.run_secs), trial.verdict, trial.confidence, trial.failure,
    trial.note, trial.at or os.time())
end

--- Keeps what became of a candidate: { kind = "pipeline" or "trace", text =, cost = (none: it
-- failed), checked = (its results are right), verdict =, confidence =, seconds = { min =,
-- median =, n = }, failure =, note = }.
function methods.commit_trial(self, workload, target, trial)
  argument.table(trial, "commit_trial", "trial")
  argument.string(trial.kind, "commit_trial", "kind")
  argument.string(trial.text, "commit_trial", "text")
  local w, t = key(self, workload, target, "commit_trial", true)
  transaction(self, add_trial, w, t, trial)
end

local trial_fields = [[measurement.id, measurement.kind, candidate.text, cost, checked, verdict,
  confidence, t_min, t_med, n, run_secs, failure, note,
  measurement.at AS at]]

local function trial_of(row)
  if not row then return nil end
  return { kind = row.kind, text = row.text, cost = row.cost, checked = row.checked == 1,
    verdict = row.verdict, confidence = row.confidence, failure = row.failure, note = row.note,
    at = row.at, run_secs = row.run_secs and seconds_of(row.run_secs),
    seconds = row.t_min and { min = row.t_min, median = row.t_med, n = row.n } }
end

--- The last trial of that candidate, or nil.
function methods.get_trial(self, workload, target, kind, text)
  local w, t = key(self, workload, target, "get_trial")
  return trial_of(run(self, "SELECT " .. trial_fields .. [[ FROM candidate JOIN measurement
    ON measurement.candidate = candidate.id WHERE candidate.workload = ? AND candidate.target = ?
    AND candidate.kind = ? AND candidate.text = ? ORDER BY measurement.id DESC LIMIT 1]], w, t,
    argument.string(kind, "get_trial", "kind"), argument.string(text, "get_trial", "text"))[1])
end

--- The trial of the least cost whose results are right, or nil. One look-up by an index.
function methods.best(self, workload, target, kind)
  local w, t = key(self, workload, target, "best")
  return trial_of(run(self, "SELECT " .. trial_fields .. [[ FROM measurement JOIN candidate
    ON candidate.id = measurement.candidate WHERE measurement.workload = ?
    AND measurement.target = ? AND measurement.kind = ? AND checked = 1 AND cost IS NOT NULL
    ORDER BY cost LIMIT 1]], w, t, argument.string(kind or "pipeline", "best", "kind"))[1])
end

-- -------------------------------------------------------------- tuning records

local function mean(seconds)
  if #seconds == 0 then return UNKNOWN end
  local sum = 0
  for _, x in ipairs(seconds) do sum = sum + x end
  return sum / #seconds
end

--- Keeps a trace for the workload, with the seconds of its runs.
function methods.commit_tuning_record(self, workload, target, one, seconds)
  seconds = check_seconds(seconds or {}, "commit_tuning_record")
  self:commit_trial(workload, target, { kind = "trace", text = one:as_json(false),
    cost = mean(seconds), checked = true, run_secs = seconds })
end

--- Whether there is a tuning record of the workload for the target.
function methods.has_tuning_record(self, workload, target)
  local w, t = key(self, workload, target, "has_tuning_record")
  return #run(self, [[SELECT 1 FROM measurement WHERE workload = ? AND target = ?
    AND kind = 'trace' LIMIT 1]], w, t) > 0
end

--- The k best tuning records, the fastest first: a list of { trace =, run_secs = }. Traces are
-- taken anew for the workload's module.
function methods.get_top_k(self, workload, target, k)
  local w, t = key(self, workload, target, "get_top_k")
  if math.type(k) ~= "integer" or k < 0 then
    argument.fail("get_top_k: top_k must be non-negative")
  end
  local rows = run(self, "SELECT " .. trial_fields .. [[ FROM measurement JOIN candidate
    ON candidate.id = measurement.candidate WHERE measurement.workload = ?
    AND measurement.target = ? AND measurement.kind = 'trace' AND cost IS NOT NULL
    ORDER BY cost, measurement.id LIMIT ?]], w, t, k)
  for i, row in ipairs(rows) do
    rows[i] = { trace = trace.from_json(row.text, workload.mod),
      run_secs = seconds_of(row.run_secs), mean = row.cost, index = i }
  end
  return rows
end

-- -------------------------------------------------------------------- searches

--- How far a search of these settings (a text) got: { trials =, state = }, or nil.
function methods.get_search(self, workload, target, settings)
  local w, t = key(self, workload, target, "get_search")
  local row = run(self, [[SELECT trials, state FROM search WHERE workload = ? AND target = ?
    AND settings = ?]], w, t, argument.string(settings, "get_search", "settings"))[1]
  return row and { trials = row.trials, state = row.state }
end

--- Says how far a search got.
function methods.commit_search(self, workload, target, settings, row)
  local w, t = key(self, workload, target, "commit_search", true)
  run(self, [[INSERT INTO search(workload, target, settings, trials, state, at)
    VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(workload, target, settings)
    DO UPDATE SET trials = excluded.trials, state = excluded.state, at = excluded.at]], w, t,
    argument.string(settings, "commit_search", "settings"), row.trials, row.state, os.time())
end

-- --------------------------------------------------------- what the file holds

--- One row for each workload and target: { workload =, shash =, target =, trials =, failed =,
-- best = (the least cost), text = (of the best candidate), functions = }.
function methods.list(self)
  return run(self, [[SELECT workload.id AS workload, shash, target.name AS target,
      count(*) AS trials, sum(cost IS NULL) AS failed, min(CASE WHEN checked THEN cost END) AS best,
      length(workload.text) AS bytes, max(measurement.at) AS at
    FROM measurement JOIN workload ON workload.id = measurement.workload
    JOIN target ON target.id = measurement.target
    GROUP BY measurement.workload, measurement.target ORDER BY workload.id, target.id]])
end

--- For each workload, target and kind the candidate of the least cost.
function methods.list_best(self)
  return run(self, [[SELECT workload.id AS workload, shash, target.name AS target,
      measurement.kind, min(cost) AS cost, candidate.text, t_min, confidence
    FROM measurement JOIN workload ON workload.id = measurement.workload
    JOIN target ON target.id = measurement.target
    JOIN candidate ON candidate.id = measurement.candidate
    WHERE checked = 1 AND cost IS NOT NULL
    GROUP BY measurement.workload, measurement.target, measurement.kind
    ORDER BY workload.id, target.id, measurement.kind]])
end

local function prune_locked(self, keep)
  run(self, [[DELETE FROM measurement WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (
      PARTITION BY workload, target, kind ORDER BY cost IS NULL, checked DESC, cost, id) AS place
    FROM measurement) WHERE place > ?)]], keep)
  local n = core.sqlite_changes(self.db)
  run(self, "DELETE FROM candidate WHERE id NOT IN (SELECT candidate FROM measurement)")
  run(self, [[DELETE FROM search WHERE NOT EXISTS (SELECT 1 FROM measurement WHERE
    measurement.workload = search.workload AND measurement.target = search.target)]])
  run(self, [[DELETE FROM workload WHERE id NOT IN (SELECT workload FROM measurement)
    AND id NOT IN (SELECT workload FROM run)]])
  return n
end

--- Keeps the `keep` best measurements of each workload, target and kind; the number of those that
-- were deleted.
function methods.prune(self, keep)
  if math.type(keep) ~= "integer" or keep < 1 then
    argument.fail "prune: keep: an integer from 1 on expected"
  end
  local n = transaction(self, prune_locked, keep)
  self.known = setmetatable({}, { __mode = "k" })
  run(self, "VACUUM")
  return n
end

--- Writes all records as lines of JSON to a folder that is there (record/json_lines.lua); their
-- number.
function methods.export(self, folder)
  return require "perilune.tune.record.json_lines".export(self, argument.string(folder, "export",
    "folder"))
end

--- Puts the records of such a folder in; the number of new ones.
function methods.import(self, folder)
  return require "perilune.tune.record.json_lines".import(self, argument.string(folder, "import",
    "folder"))
end

--- Puts the records of another file in; the number of new ones.
function methods.merge(self, other)
  local merge = require "perilune.tune.record.json_lines".merge
  if getmetatable(other) == class then return merge(self, other) end
  local file <close> = sqlite.open(argument.string(other, "merge", "path"), { readonly = true })
  return merge(self, file)
end

-- For record.json_lines: the statement's rows, a transaction, and the numbers that texts and
-- names have here.
sqlite.run, sqlite.transaction = run, transaction
sqlite.add_trial = add_trial

function sqlite.add_workload(self, text) return add_workload(self, text_hash(text), text) end

function sqlite.add_target(self, name)
  add_target(self, name)
  return run(self, "SELECT id FROM target WHERE name = ?", name)[1].id
end

sqlite.seconds_text, sqlite.seconds_of = seconds_text, seconds_of
sqlite.trial_of, sqlite.trial_fields = trial_of, trial_fields

--- Whether a value is such a database.
function sqlite.is(x) return getmetatable(x) == class end

return sqlite
