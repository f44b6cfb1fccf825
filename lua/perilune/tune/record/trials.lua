--- All candidates that a database has measurements of, by workload: what cost models learn from.

local argument = require "perilune.argument"
local core = require "perilune.core"
local database = require "perilune.tune.database"
core.internal()

local trials = {}

-- --------------------------------------------------------------------- in memory

local function of_memory(db, target, kind)
  local list = {}
  for _, workload in ipairs(db.workloads) do
    local found = {}
    for name, rows in pairs(db.trials) do
      local index, of = name:match "^(%d+)/(.*)$"
      if tonumber(index) == workload.index and (not target or of == target) then
        for _, trial in ipairs(rows) do
          if trial.kind == kind and trial.cost then found[#found + 1] = trial end
        end
      end
    end
    if #found > 0 then list[#list + 1] = { mod = workload.mod, trials = found } end
  end
  return list
end

-- ------------------------------------------------------------------------ files

local function rows_of(db, target, kind)
  local sql = [[SELECT workload.id AS id, workload.text AS program, candidate.text AS text, cost
    FROM measurement JOIN workload ON workload.id = measurement.workload
    JOIN target ON target.id = measurement.target
    JOIN candidate ON candidate.id = measurement.candidate
    WHERE measurement.kind = ? AND cost IS NOT NULL]]
  local arguments = { kind }
  if target then sql, arguments[2] = sql .. " AND target.name = ?", target end
  if not db.db then argument.fail "the database is closed" end
  local rows, diag = core.sqlite_run(db.db, sql .. " ORDER BY measurement.id",
    table.unpack(arguments))
  if not rows then core.raise(diag) end
  return rows
end

-- The program of a text; nil where its weights are not in the text.
local function program_of(text)
  local ok, mod = pcall(require "perilune".parse, text)
  return ok and mod or nil
end

local function of_file(db, base, target, kind)
  local own, list, by_id = base:text { constants = "brief", hash_references = true }, {}, {}
  for _, row in ipairs(rows_of(db, target, kind)) do
    local one = by_id[row.id]
    if one == nil then
      local mod = row.program == own and base or program_of(row.program)
      one = mod and { mod = mod, trials = {} } or false
      by_id[row.id] = one
      if one then list[#list + 1] = one end
    end
    if one then table.insert(one.trials, row) end
  end
  return list
end

--- Lists of { mod =, trials = (with text and cost) }, a workload each. `target`: nil for all of
-- them; `kind`: the space; `base`: a program that may be one of the workloads. Workloads of a file
-- whose weights are not in the records are left out, but for `base`.
function trials.of(db, base, target, kind)
  if not database.is(db) then
    argument.fail "database: what pl.tune.database() makes is expected"
  end
  if target ~= nil then argument.string(target, "database", "target") end
  if db.workloads then return of_memory(db, target, kind) end
  return of_file(db, base, target, kind)
end

return trials
