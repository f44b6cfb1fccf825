-- Tasks on workers that Slurm starts: two nodes on this machine.

local command = require "spec.cli.command"
local processes = require "spec.tune.processes"
local slurm = require "spec.tune.farm.slurm"
local workers = require "spec.tune.farm.workers"

if not workers.is_possible then
  describe("workers that Slurm starts", function()
    it("are not here", function() pending "spec/tune/farm/run says why" end)
  end)
  return
end

local place, cluster, script

local function lines(name) return #processes.lines(place.path(name)) end

-- The workers that nodes run, by what the processes of this system say.
local function worker_ids()
  local list = {}
  local pipe = io.popen(("env -u LD_PRELOAD pgrep -f 'work_queue_worker.*%s'"):format(
    place.password))
  for id in pipe:lines() do
    local file = io.open(("/proc/%s/comm"):format(id))
    if file and file:read "l":find "^work_queue" then list[#list + 1] = math.tointeger(id) end
    if file then file:close() end
  end
  pipe:close()
  return list
end

local function busy_worker()
  local begun = processes.lines(place.path "begun")
  return workers.of_task(math.tointeger(tonumber(begun[#begun])), worker_ids())
end

local function start_batch(models, log)
  return place:batch(("opt %s --runner slurm:main,2 --farm-silence 4 --argument-file=--script=%s")
    :format(table.concat(models, " "), script), log)
end

describe("tasks on workers that Slurm starts", function()
  setup(function()
    place = workers.place()
    local why
    cluster, why = slurm.start(place.folder)
    if not cluster then -- a machine may have the packages and not run the daemons
      io.stdout:write("skipped: Slurm does not start here: ", why, "\n")
      os.exit(77, true)
    end
    place.environment = cluster.environment
    script = place:slow_script(0.4)
  end)
  teardown(function()
    if cluster then cluster:stop() end
    place:stop()
  end)
  after_each(function() os.execute(("rm -rf %s %s %s"):format(place.path "out",
    place.path "begun", place.path "ended")) end)

  it("have all their results when a worker is killed and another one freezes", function()
    local models = place:models(8)
    local batch = start_batch(models)
    processes.wait_for(function() return lines "begun" >= 2 and busy_worker() end, 60)
    processes.kill(busy_worker(), "KILL")
    local before, frozen = lines "begun", nil
    processes.wait_for(function()
      frozen = lines "begun" > before and busy_worker()
      return frozen
    end, 60)
    processes.kill(frozen, "STOP")
    local last, log = place:finish(batch)
    processes.kill(frozen, "KILL")
    assert.equal("8 done, 0 failed, 0 done before", last, log)
    assert.equal(8, place:count "done")
    processes.wait_for(function() return cluster:ask "squeue -h" == "" end)
  end)

  it("go on where they were when perilune is killed and started again", function()
    local models = place:models(8)
    local batch = start_batch(models)
    processes.wait_for(function() return lines "ended" >= 4 end, 60)
    processes.kill(batch, "KILL")
    processes.wait_for(function() return not processes.is_running(batch) end)
    local done = place:count "done"
    assert.is_true(done >= 2 and done < 8)
    local last, log = place:finish(start_batch(models, "again"), "again")
    assert.equal(("%d done, 0 failed, %d done before"):format(8 - done, done), last, log)
    assert.equal(8, place:count "done")
  end)

  it("are given up when they kill their workers, and the others are done", function()
    local models = place:models(5)
    local batch = place:batch(("opt %s --runner slurm:main,2 --farm-silence 4 "
      .. "--argument-file=--script=%s"):format(table.concat(models, " "),
      place:killing_script "/m3.relay"))
    local last, log = place:finish(batch)
    assert.equal("4 done, 1 failed, 0 done before", last, log)
    assert.matches("its worker was lost (3 times)", log, 1, true)
    -- A task may be lost before its script begins.
    local killed = #processes.lines(place.path "killed")
    assert.is_true(killed >= 1 and killed <= 3)
    assert.equal("failed", place:rows()["opt " .. models[3]].state)
  end)

  it("are no tasks where Slurm has no such partition", function()
    local models = place:models(1)
    local status, _, err = command.run(place.folder, ("batch opt %s --runner slurm:none,2 -o %s")
      :format(models[1], place.path "out"), cluster.environment)
    assert.equal(1, status)
    assert.matches("sbatch does not submit workers", err, 1, true)
  end)
end)
