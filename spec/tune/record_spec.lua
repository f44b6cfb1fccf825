-- Records in files: one interface for memory and SQLite, JSON lines, files that are corrupt, locked
-- or of another kind, processes that share a file, and one that is killed.

local core = require "perilune.core"
local pl = require "perilune"
local sqlite = require "perilune.tune.record.sqlite"

local folder

local function path(name) return folder .. "/" .. (name or "tune.db") end

local function program(n)
  local x = pl.var("x", ("Tensor[(%d), float32]"):format(n or 4))
  return pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
end

local function open(name, options)
  options = options or {}
  options.path = path(name)
  return pl.tune.database(options)
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
end)

after_each(function() os.execute("rm -rf " .. folder) end)

for _, kind in ipairs { "memory", "a file" } do
  describe("a database in " .. kind, function()
    local db
    before_each(function() db = kind == "memory" and pl.tune.database() or open() end)
    after_each(function() db:close() end)

    it("has one workload for equal modules", function()
      assert.is_false(db:has_workload(program()))
      local workload = db:commit_workload(program())
      assert.is_true(db:has_workload(program()))
      assert.equal(workload.index, db:commit_workload(program()).index)
      assert.not_equal(workload.index, db:commit_workload(program(5)).index)
    end)

    it("keeps the first measurement", function()
      local workload = db:commit_workload(program())
      assert.is_false(db:has_measurement_record(workload, "llvm"))
      assert.same({}, db:get_measurement_record(workload, "llvm"))
      assert.is_false(db:has_measurement_record(workload, "llvm"))
      assert.is_true(db:commit_measurement_record(workload, "llvm", { 0.1, 1e-7 }))
      assert.is_false(db:commit_measurement_record(workload, "llvm", { 3 }))
      assert.same({ 0.1, 1e-7 }, db:get_measurement_record(workload, "llvm"))
      assert.is_false(db:has_measurement_record(workload, "c"))
    end)

    it("orders tuning records", function()
      local workload, trace = db:commit_workload(program()), pl.tune.trace(program())
      assert.is_false(db:has_tuning_record(workload, "llvm"))
      db:commit_tuning_record(workload, "llvm", trace, { 3, 5 })
      db:commit_tuning_record(workload, "llvm", trace, { 1 })
      db:commit_tuning_record(workload, "llvm", trace)
      assert.is_true(db:has_tuning_record(workload, "llvm"))
      assert.same({}, db:get_top_k(workload, "llvm", 0))
      local top = db:get_top_k(workload, "llvm", 5)
      assert.equal(3, #top)
      assert.same({ 1 }, top[1].run_secs)
      assert.same({ 3, 5 }, top[2].run_secs)
      assert.is_true(pl.equal(program(), top[1].trace.out_mod))
      assert.has_error(function() db:get_top_k(workload, "llvm", -1) end)
    end)

    it("knows the best of the trials whose results are right", function()
      local workload = db:commit_workload(program())
      assert.is_nil(db:best(workload, "llvm"))
      for _, trial in ipairs {
        { kind = "pipeline", text = "A", cost = 0.75, checked = true, confidence = 0.99 },
        { kind = "pipeline", text = "B", cost = 0.5, checked = false },
        { kind = "pipeline", text = "C", failure = "crash: signal 11", checked = false },
        { kind = "trace", text = "[]", cost = 0.25, checked = true },
        { kind = "pipeline", text = "D", cost = 0.625, checked = true,
          seconds = { min = 1.5, median = 2.5, n = 3 } },
      } do db:commit_trial(workload, "llvm", trial) end
      local best = db:best(workload, "llvm")
      assert.equal("D", best.text)
      assert.same({ min = 1.5, median = 2.5, n = 3 }, best.seconds)
      assert.equal("[]", db:best(workload, "llvm", "trace").text)
      assert.equal("crash: signal 11", db:get_trial(workload, "llvm", "pipeline", "C").failure)
      assert.is_nil(db:get_trial(workload, "llvm", "pipeline", "E"))
      assert.is_nil(db:get_trial(workload, "c", "pipeline", "A"))
    end)

    it("refuses what is no record", function()
      local workload = db:commit_workload(program())
      assert.has_error(function() db:commit_workload(1) end)
      assert.has_error(function() db:commit_measurement_record(workload, "llvm", { -1 }) end)
      assert.has_error(function() db:commit_measurement_record({}, "llvm", { 1 }) end)
      assert.has_error(function() db:get_measurement_record(workload, 7) end)
      assert.has_error(function() db:commit_trial(workload, "llvm", { kind = "pipeline" }) end)
    end)
  end)
end

local function fill(db, n)
  for size = 1, n do
    local workload = db:commit_workload(program(size))
    db:commit_trial(workload, "llvm", { kind = "pipeline", text = "A", cost = 1 / size,
      checked = true, at = size })
    db:commit_measurement_record(workload, "llvm", { size / 10 })
  end
end

describe("a file of records", function()
  it("has what was committed when it is opened again", function()
    do
      local db <close> = open()
      fill(db, 3)
    end
    local db <close> = open(nil, { readonly = true })
    assert.equal(3, #db:list())
    local workload = db:commit_workload(program(3))
    assert.equal(1 / 3, db:best(workload, "llvm").cost)
    assert.same({ 0.3 }, db:get_measurement_record(workload, "llvm"))
    assert.has_error(function() fill(db, 1) end) -- it is read only
  end)

  it("finds the best by an index", function()
    local db <close> = open()
    local plan = sqlite.run(db, [[EXPLAIN QUERY PLAN SELECT * FROM measurement WHERE workload = 1
      AND target = 1 AND kind = 'pipeline' AND checked = 1 AND cost IS NOT NULL
      ORDER BY cost LIMIT 1]])
    assert.equal(1, #plan)
    assert(plan[1].detail:find "USING INDEX measurement_best", plan[1].detail)
  end)

  it("tells texts apart that share a hash", function()
    local db <close> = open()
    local hash = db:commit_workload(program()).hash
    sqlite.run(db, "UPDATE workload SET text = 'another'")
    local other <close> = open()
    local workload = other:commit_workload(program())
    assert.equal(hash, workload.hash)
    assert.equal(2, workload.index)
    assert.equal(2, sqlite.run(other, "SELECT count(*) AS n FROM workload WHERE shash = ?",
      hash)[1].n)
  end)

  it("goes out as lines of JSON, comes back, and is merged", function()
    local db <close> = open()
    fill(db, 3)
    assert.equal(6, db:export(folder))
    local other <close> = open "other.db"
    fill(other, 1)
    assert.equal(4, other:import(folder))
    assert.equal(0, other:import(folder))
    assert.equal(0, other:merge(path()))
    assert.equal(0, other:merge(db))
    local third <close> = open "third.db"
    assert.equal(6, third:merge(path()))
    assert.equal(1 / 3, third:best(third:commit_workload(program(3)), "llvm").cost)
    assert.equal(6, third:export(folder))
  end)

  it("reads records of TVM's form", function()
    local function write(name, text)
      local file = assert(io.open(path(name .. ".json"), "w"))
      file:write(text)
      file:close()
    end
    write("workload", ('["123", "%s"]\n'):format(core.base64_encode "a module"))
    write("tuning_record", '[0, {"kind": "llvm"}, [[[], []], [0.5, 1.5]]]\n')
    write("measurement_record", '[0, {"kind": "llvm"}, [2.0]]\n')
    local db <close> = open()
    assert.equal(2, db:import(folder))
    assert.equal(1, db:list()[1].best)
    for text, what in pairs { ["{"] = "1: a list", ["[7]"] = "1: a record is a list",
      ['[3, {"kind": "x"}, [[], []]]'] = "1: the number of a line",
      ['[0, {"kind": "x"}, ["", [-1]]]'] = "1: seconds are numbers",
      ['[0, 1, ["", [1]]]'] = "1: the target" } do
      write("tuning_record", text)
      assert(message(db.import, db, folder):find("tuning_record.json:" .. what, 1, true), text)
    end
    assert.equal(1, db:list()[1].trials)
  end)

  it("reads what TVM's tuners wrote", function()
    local function write(name, text)
      local file = assert(io.open(path(name), "w"))
      file:write(text)
      file:close()
    end
    write("database_workload.json", ('["-77", "%s"]\n'):format(core.base64_encode "b64 module"))
    local target = '{"kind": "llvm", "tag": "", "keys": ["cpu"], "num-cores": 4}'
    write("database_tuning_record.json",
      ('[0, [[[["GetBlock", [], ["C", "main"], ["b0"]]], []], [0.5, 1.5], %s, '
      .. '[["TENSOR", "float32", [4, 4]]]]]\n[0, [[[], []], [1e10], %s, []]]\n'
      .. '[0, [[[], [[0, 1]]], null, %s, []]]\n'):format(target, target, target))
    local db <close> = open()
    assert.equal(3, db:import(folder))
    local row = db:list()[1]
    assert.equal("llvm", row.target)
    assert.equal(1, row.best)
    assert.equal(3, row.trials)
    assert.equal(0, db:import(folder))
    write("database_tuning_record.json", "[0, [7]]\n")
    assert.matches("database_tuning_record.json:1: a record is a trace", message(db.import, db,
      folder))
    os.remove(path "database_workload.json")
    local line = '{"input": ["llvm -mcpu=skylake", "dense_nopack.x86", [["TENSOR", [1, 8], '
      .. '"float32"]], {}], "config": {"index": %d, "code_hash": null, "entity": [["tile_y", "sp", '
      .. '[-1, 1]]]}, "result": [[%s], %d, 0.2, 1600000000.5], "version": 0.2, '
      .. '"tvm_version": "0.14.0"}\n'
    write("autotvm.log", line:format(1, "0.25, 0.75", 0) .. line:format(2, '1000000000.0', 4))
    assert.equal(2, db:import(path "autotvm.log"))
    local found
    for _, one in ipairs(db:list()) do
      if one.target == "llvm -mcpu=skylake" then found = one end
    end
    assert.equal(0.5, found.best)
    assert.equal(2, found.trials)
    write("autotvm.log", '{"input": []}\n')
    assert.matches("autotvm.log:1: input is a target", message(db.import, db, path "autotvm.log"))
  end)

  it("is pruned", function()
    local db <close> = open()
    local workload = db:commit_workload(program())
    for i = 1, 20 do
      db:commit_trial(workload, "llvm", { kind = "pipeline", text = "P" .. i, cost = i,
        checked = true })
    end
    assert.equal(17, db:prune(3))
    assert.equal(3, db:list()[1].trials)
    assert.equal(1, db:best(db:commit_workload(program()), "llvm").cost)
    assert.equal(3, sqlite.run(db, "SELECT count(*) AS n FROM candidate")[1].n)
  end)
end)

describe("a file that is no database of records", function()
  local function write(text)
    local file = assert(io.open(path(), "wb"))
    file:write(text)
    file:close()
  end

  it("is told", function()
    write(("no database "):rep(1000))
    assert(message(open):find "not a database")
    assert(message(open, "none.db", { readonly = true }):find "unable to open .*: No such file")
    assert(message(open, "no/folder.db"):find "unable to open")
  end)

  it("is brought up to date: times are those of a processor", function()
    do
      local db <close> = open()
      sqlite.run(db, [[INSERT INTO target(name, isa, cores, at) VALUES
        ('time: evaluator', 'Some CPU', 4, 1), ('time + nodes: c -O2', 'Some CPU', 1, 1),
        ('nodes: evaluator', 'Some CPU', 4, 1), ('time: c2', NULL, NULL, 1)]])
      sqlite.run(db, "PRAGMA user_version = 2")
    end
    local db <close> = open()
    local names = {}
    for i, row in ipairs(sqlite.run(db, "SELECT name FROM target ORDER BY id")) do
      names[i] = row.name
    end
    assert.same({ "time: evaluator on Some CPU, 4 cores", "time + nodes: c -O2 on Some CPU, 1 core",
      "nodes: evaluator", "time: c2" }, names)
  end)

  it("is left alone when it is of something else or of a newer version", function()
    do
      local db <close> = open()
      sqlite.run(db, "PRAGMA user_version = 99")
    end
    assert(message(open):find "version 99")
    os.execute("rm -f " .. path() .. "*")
    local db = core.sqlite_open(path(), true, 1)
    assert(core.sqlite_run(db, "CREATE TABLE t(x)"))
    core.sqlite_close(db)
    assert(message(open):find "something else")
  end)

  it("is told with the candidate whose record cannot be kept", function()
    local db, n = open(), 0
    local function closing()
      n = n + 1
      if n > 1 then db:close() end
      return n
    end
    pl.passes.RecordSpecNote = { kind = "module", run = function(mod)
      return mod:with_attrs { a = 1 }
    end }
    local text = message(pl.tune.search, { mod = program(), database = db, base = "SimplifyExpr",
      metrics = { closing }, pool = { "RecordSpecNote" } })
    pl.passes.RecordSpecNote = nil
    assert.matches("closed; the record of the pipeline candidate '.*' is not kept", text)
    -- SQLite's own diagnostic stands there once.
    local other = open(nil, { wait = 0.05 })
    db, n = open(), 0
    local function locking()
      n = n + 1
      if n == 2 then sqlite.run(db, "BEGIN IMMEDIATE") end
      return n
    end
    pl.passes.RecordSpecNote = { kind = "module", run = function(mod)
      return mod:with_attrs { a = 1 }
    end }
    text = message(pl.tune.search, { mod = program(), database = other, base = "SimplifyExpr",
      metrics = { locking }, pool = { "RecordSpecNote" } })
    pl.passes.RecordSpecNote = nil
    assert.matches("locked; another process has it open; the record of the pipeline", text)
    assert.is_nil(text:find "error: error")
    sqlite.run(db, "COMMIT")
    db:close()
    other:close()
  end)

  it("that fills ends the search, and the best so far stays", function()
    local db, n = open(), 0
    local function filling(mod)
      n = n + 1
      if n == 4 then sqlite.run(db, "PRAGMA max_page_count = 1") end
      return mod.attrs.a or 10
    end
    for i = 1, 5 do
      pl.passes["RecordSpecNote" .. i] = { kind = "module", run = function(mod)
        return mod:with_attrs { a = 10 - i }
      end }
    end
    local result = pl.tune.search { mod = program(), database = db, base = "SimplifyExpr",
      metrics = { filling }, strategy = "exhaustive", trials = 500, pool = { "RecordSpecNote1",
        "RecordSpecNote2", "RecordSpecNote3", "RecordSpecNote4", "RecordSpecNote5" } }
    for i = 1, 5 do pl.passes["RecordSpecNote" .. i] = nil end
    assert.equal("unrecorded", result.state)
    assert.matches("full; the record of the pipeline candidate", result.unrecorded)
    assert.equal("faster", result.verdict)
    assert.is_true(result.mod.attrs.a < 10)
    assert.is_true(result.trials < 100)
    db:close()
    assert.is_true(#open():list() > 0)
  end)

  it("is told when pages are corrupt", function()
    do
      local db <close> = open()
      fill(db, 50)
      sqlite.run(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    end
    local file = assert(io.open(path(), "r+b"))
    local size = file:seek "end"
    file:seek("set", 4096)
    file:write(("\xff"):rep(size - 4096))
    file:close()
    local text = message(function()
      local db <close> = open()
      fill(db, 50)
    end)
    assert(text:find "malformed" or text:find "corrupt" or text:find "disk image", text)
  end)

  it("is told when another process has locked it", function()
    local db <close> = open()
    sqlite.run(db, "BEGIN IMMEDIATE")
    local other <close> = open(nil, { wait = 0.05 })
    local text = message(fill, other, 1)
    assert(text:find "locked; another process has it open", text)
    sqlite.run(db, "COMMIT")
    fill(other, 1)
  end)

  it("is told when the disk is full, and keeps what it has", function()
    local db <close> = open()
    fill(db, 2)
    sqlite.run(db, "PRAGMA max_page_count = 20")
    local text = message(fill, db, 500)
    assert(text:find "full", text)
    assert.is_true(#db:list() >= 2)
  end)
end)

-- A script in a process of its own.
local function script(text)
  local name = path(("script%d.lua"):format(math.random(1 << 30)))
  local file = assert(io.open(name, "w"))
  file:write(([[
package.path, package.cpath = %q, %q
local pl = require "perilune"
local db = pl.tune.database { path = %q, wait = 30 }
local x = pl.var("x", "Tensor[(4), float32]")
local workload = db:commit_workload(pl.module { main = pl.func({ x }, pl.op.tanh(x)) })
]]):format(package.path, package.cpath, path()), text)
  file:close()
  return name
end

describe("processes", function()
  it("share a file", function()
    local commands = {}
    for i = 1, 3 do
      commands[i] = "lua5.4 " .. script(([[
for k = 1, 40 do
  db:commit_trial(workload, "llvm", { kind = "pipeline", text = "%d." .. k, cost = k,
    checked = true })
end
]]):format(i))
    end
    assert(os.execute(table.concat(commands, " & ") .. "; wait"))
    local db <close> = open()
    local rows
    for _ = 1, 100 do
      rows = db:list()
      if #rows == 1 and rows[1].trials == 120 then break end
      os.execute "sleep 0.1"
    end
    assert.equal(1, #rows)
    assert.equal(120, rows[1].trials)
  end)

  it("make a file at the same time", function()
    local file = script [[
for k = 1, 10 do
  local db <close> = pl.tune.database { path = db.path .. k, wait = 30 }
  db:commit_workload(pl.module { main = pl.func({ x }, pl.op.tanh(x)) })
end
print "done"
]]
    local pipe = io.popen(("for i in 1 2 3 4 5 6 7 8; do lua5.4 %s 2>&1 & done; wait"):format(
      file))
    local text = pipe:read "a"
    pipe:close()
    assert.equal(("done\n"):rep(8), text)
  end)

  it("that are killed lose nothing that was committed", function()
    for round = 1, tonumber(os.getenv "PERILUNE_KILLS") or 5 do
      local name = script(([[
for k = 1, 1000000 do
  db:commit_trial(workload, "llvm", { kind = "pipeline", text = "%d." .. k, cost = k,
    checked = true })
  io.stdout:write(k, "\n"):flush()
end
]]):format(round))
      local seconds = 0.2 + 0.07 * (round % 8)
      os.execute(("timeout -s KILL %.2f lua5.4 %s > %s 2>/dev/null"):format(seconds, name,
        path "log"))
      local file, last = assert(io.open(path "log")), 0
      for line in file:lines() do last = math.tointeger(tonumber(line)) or last end
      file:close()
      local db <close> = open()
      local n = sqlite.run(db, "SELECT count(*) AS n FROM candidate WHERE text LIKE ?",
        round .. ".%")[1].n
      assert.is_true(n >= last and n <= last + 1, ("%d of %d"):format(n, last))
      assert.equal("ok", sqlite.run(db, "PRAGMA integrity_check")[1].integrity_check)
    end
  end)
end)
