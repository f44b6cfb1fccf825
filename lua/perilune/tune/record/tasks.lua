--- Rows of tasks in a file of records: what a batch has to do, and what became of it. Only the
-- batch writes them: one that was killed goes on with the rows that are not done.

local core = require "perilune.core"
local sqlite = require "perilune.tune.record.sqlite"
core.internal()

local tasks = {}

local function add_locked(db, list)
  local done = {}
  for i, task in ipairs(list) do
    local row = sqlite.run(db, "SELECT state, specification FROM task WHERE name = ?",
      task.name)[1]
    done[i] = row ~= nil and row.state == "done" and row.specification == task.specification
    if not done[i] then
      sqlite.run(db, [[INSERT INTO task(name, specification, state, at) VALUES(?, ?, 'new', ?)
        ON CONFLICT(name) DO UPDATE SET specification = excluded.specification, state = 'new',
          why = NULL, output = NULL, seconds = NULL, tries = NULL, host = NULL, at = excluded.at]],
        task.name, task.specification, os.time())
    end
  end
  return done
end

--- Adds tasks, a list of { name =, specification = }; for each whether it is done already. One of
-- that name that failed, or that has another specification, is new again.
function tasks.add_all(db, list) return sqlite.transaction(db, add_locked, list) end

--- Says what became of a task: result is that of a queue (tune/queue).
function tasks.finish(db, task, result)
  sqlite.run(db, [[UPDATE task SET state = ?, why = ?, output = ?, seconds = ?, tries = ?,
    host = ?, at = ? WHERE name = ? AND specification = ?]], result.state, result.why,
    result.output, result.seconds, result.tries, result.host, os.time(), task.name,
    task.specification)
end

--- All rows in the order in which they were added: { name =, state = "new", "done" or "failed",
-- why =, output =, seconds =, tries =, host =, at = }.
function tasks.list(db)
  return sqlite.run(db, [[SELECT name, state, why, output, seconds, tries, host, at FROM task
    ORDER BY id]])
end

return tasks
