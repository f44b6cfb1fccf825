--- The tables of a database of records, and how those of older versions become the present ones.
--
-- A workload is a module by its text; `slot` tells texts of one hash apart. A candidate is what
-- may be done to a workload: the text of a pipeline, or a trace as JSON. A measurement that
-- failed has no cost. A task is one of a batch (record/tasks.lua). Times are seconds since 1970.

require "perilune.core".internal() -- errors name the scripts of others

local schema = {}

-- Step n makes version n of version n - 1.
schema.steps = {
  {
    [[CREATE TABLE workload(id INTEGER PRIMARY KEY, shash TEXT NOT NULL, slot INTEGER NOT NULL,
        text TEXT NOT NULL, UNIQUE(shash, slot))]],
    [[CREATE TABLE target(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, isa TEXT,
        cores INTEGER, at INTEGER)]],
    [[CREATE TABLE candidate(id INTEGER PRIMARY KEY, workload INTEGER NOT NULL REFERENCES workload,
        target INTEGER NOT NULL REFERENCES target, kind TEXT NOT NULL, text TEXT NOT NULL,
        UNIQUE(workload, target, kind, text))]],
    [[CREATE TABLE measurement(id INTEGER PRIMARY KEY, candidate INTEGER NOT NULL REFERENCES
        candidate ON DELETE CASCADE, workload INTEGER NOT NULL, target INTEGER NOT NULL,
        kind TEXT NOT NULL, checked INTEGER NOT NULL, cost REAL, t_min REAL, t_med REAL, n INTEGER,
        run_secs TEXT, verdict TEXT, confidence REAL, failure TEXT, note TEXT,
        at INTEGER NOT NULL)]],
    "CREATE INDEX measurement_best ON measurement(workload, target, kind, checked, cost)",
    "CREATE INDEX measurement_candidate ON measurement(candidate)",
    [[CREATE TABLE run(workload INTEGER NOT NULL, target INTEGER NOT NULL, run_secs TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY(workload, target))]],
    [[CREATE TABLE search(id INTEGER PRIMARY KEY, workload INTEGER NOT NULL,
        target INTEGER NOT NULL, settings TEXT NOT NULL, trials INTEGER NOT NULL,
        state TEXT NOT NULL, at INTEGER NOT NULL,
        UNIQUE(workload, target, settings))]],
  },
  {
    [[CREATE TABLE task(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        specification TEXT NOT NULL, state TEXT NOT NULL, why TEXT, output TEXT, seconds REAL,
        tries INTEGER, host TEXT, at INTEGER NOT NULL)]],
  },
  {
    -- Targets of times name the processor; before it stood beside the name only.
    [[UPDATE OR IGNORE target SET name = name || ' on ' || isa || ', ' || cores
        || CASE cores WHEN 1 THEN ' core' ELSE ' cores' END
      WHERE isa IS NOT NULL AND cores IS NOT NULL AND (name GLOB 'time*: evaluator*'
        OR name GLOB 'time*: c' OR name GLOB 'time*: c *' OR name GLOB 'time*: command *')]],
  },
}

--- "PLTN": what marks a file as one of ours.
schema.application_id = 0x504c544e

return schema
