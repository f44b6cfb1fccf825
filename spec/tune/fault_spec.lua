-- Processes are killed at any moment: workers, commands that they run, what measures, and the batch
-- or the tuner itself. No record that was there is lost, and the work comes to its end.

local command = require "spec.cli.command"
local pl = require "perilune"
local processes = require "spec.tune.processes"

-- How many processes are killed; sanitized ones are slow.
local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
local FAULTS = tonumber(os.getenv "PERILUNE_FAULTS") or (sanitized and 30 or 100)

local folder = command.folder()
local function path(name) return folder .. "/" .. name end
local random = require "perilune.tune.random"(os.time())

-- ------------------------------------------------------------------- killing

local seen = {} -- processes that were started

-- A victim in the tree of processes and its distance from the root, which it is in one case of
-- four; nil when the root was spared and has no others yet.
local function victim_of(root)
  local levels = processes.descendants(root)
  seen[root] = true
  for _, level in ipairs(levels) do
    for _, id in ipairs(level) do seen[id] = true end
  end
  if random:chance(0.25) then return root, 0 end
  if #levels == 0 then return nil end
  local k = random:integer(#levels)
  return random:element(levels[k]), k
end

-- Records that have to be there before the last kill.
local LEAST = FAULTS // 10

-- Starts work again whenever it has ended, and kills `n` of its processes, and more until there are
-- records and some were killed at each distance up to `farthest`: where the machine is slow, after
-- longer and longer times. check() is called after each.
-- The numbers of those that were killed by their distance from the root.
local function torment(n, farthest, start, check)
  local killed, root, done = {}, start(), 0
  local function is_enough()
    for distance = 0, farthest do
      if FAULTS >= 100 and (killed[distance] or 0) < 3 then return false end
    end
    return n <= 0 and done >= LEAST
  end
  while not is_enough() do
    if not processes.is_running(root) then root = start() end
    processes.sleep((0.05 + 0.3 * random:number()) * math.max(1, 1 - n))
    local id, distance = victim_of(root)
    if id and processes.is_running(id) then
      processes.kill(id, "KILL")
      killed[distance], n = (killed[distance] or 0) + 1, n - 1
    end
    done = check()
  end
  processes.kill(root, "KILL")
  processes.wait_for(function() return not processes.is_running(root) end)
  return killed
end

local function open(name)
  return require "perilune.tune.record.sqlite".open(path(name), { readonly = true })
end

-- Rows of a statement; none while the file has no tables.
local function rows_of(name, sql)
  local ok, db = pcall(open, name)
  if not ok then return {} end
  local sqlite = require "perilune.tune.record.sqlite"
  local rows = sqlite.run(db, sql)
  db:close()
  return rows
end

-- A function that fails when a row that a call has seen is gone, or another one.
local function keeper(name, sql)
  local known, n = {}, 0
  return function()
    local now = {}
    for _, row in ipairs(rows_of(name, sql)) do
      assert.is_nil(now[row.key], "twice: " .. row.key)
      now[row.key] = row.value
    end
    for key, value in pairs(known) do assert.equal(value, now[key], key) end
    known, n = now, 0
    for _ in pairs(known) do n = n + 1 end
    return n
  end
end

local function integrity(name)
  return rows_of(name, "PRAGMA integrity_check")[1].integrity_check
end

local function no_process_is_left()
  processes.wait_for(function()
    for id in pairs(seen) do
      if processes.is_running(id) then return false end
    end
    return true
  end)
end

-- ---------------------------------------------------------------------- specs

describe("records", function()
  teardown(function() os.execute("rm -r " .. folder) end)
  before_each(function() seen = {} end)

  it("of a batch stay when its processes are killed", function()
    local models = {}
    for i = 1, 3 * FAULTS do
      models[i] = command.write(path(("m%d.relay"):format(i)),
        ('#[version = "0.0.5"]\ndef @main(%%x: int32) { add(%%x, %d) }\n'):format(i))
    end
    command.write(path "slow.lua", ("os.execute('exec sleep ' .. io.open '%s':read 'a')"):format(
      command.write(path "seconds", "0.25")))
    local function arguments(script)
      return ("batch opt %s -o %s -j 2 --argument=--script=%s"):format(table.concat(models, " "),
        path "out", path(script))
    end
    local check = keeper("out/batch.db", "SELECT name AS key, state || at || seconds AS value "
      .. "FROM task WHERE state = 'done'")
    local killed = torment(FAULTS * 6 // 10, 2, function()
      return processes.start(("exec %s %s >>%s 2>&1"):format(command.program,
        arguments "slow.lua", path "log"))
    end, check)
    for distance = 0, 2 do
      assert.is_true(FAULTS < 100 or (killed[distance] or 0) >= 3, "distance " .. distance)
    end
    assert.is_true(check() >= LEAST)
    assert.equal("ok", integrity "out/batch.db")
    no_process_is_left()
    command.write(path "seconds", "0")
    local status, out = command.run(folder, arguments "slow.lua")
    assert.equal(0, status, out)
    assert.equal(#models, check())
    for i, model in ipairs(models) do
      local result = path("out/" .. model:gsub("^/", ""):gsub("/", "_"))
      assert.matches(("add(%%x, %d "):format(i), command.read(result), 1, true)
    end
  end)

  it("of a tuner stay when its processes are killed", function()
    local x = pl.var("x", "Tensor[(256, 512), float32]")
    local model = path "model.relay"
    assert(pl.save(pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.exp(x))) }, model))
    local names = {}
    for i = 1, 9 do names[i] = '"Note' .. i .. '"' end
    -- Every candidate is another module.
    local passes = command.write(path "passes.lua", ([[
      local pl = require "perilune"
      for _, name in ipairs { %s } do
        pl.passes[name] = { kind = "module", run = function(mod)
          return mod:with_attrs { [name] = 1 }
        end }
      end
    ]]):format(table.concat(names, ",")))
    local arguments = ("tune %s -p DeadCodeElimination --search exhaustive --trials 1024 "
      .. "--script %s --pool %s --seconds 600 --db %s"):format(model, passes,
      table.concat(names, ","):gsub('"', ""), path "tune.db")
    local check = keeper("tune.db", [[SELECT measurement.id AS key, candidate.text ||
      coalesce(cost, failure) AS value FROM measurement JOIN candidate
      ON candidate.id = candidate]])
    local killed = torment(FAULTS - FAULTS * 6 // 10, 1, function()
      return processes.start(("exec %s %s >>%s 2>&1"):format(command.program, arguments,
        path "tune.log"))
    end, check)
    for distance = 0, 1 do
      assert.is_true(FAULTS < 100 or (killed[distance] or 0) >= 3, "distance " .. distance)
    end
    local n = check()
    assert.is_true(n >= LEAST)
    assert.equal("ok", integrity "tune.db")
    no_process_is_left()
    -- None was measured again.
    assert.equal(0, #rows_of("tune.db", "SELECT candidate FROM measurement GROUP BY candidate "
      .. "HAVING count(*) > 1"))
    local status, out = command.run(folder, arguments .. " --trials " .. n)
    assert.equal(0, status, out)
    assert.matches(("%d trials"):format(n), out, 1, true)
  end)
end)
