-- Tasks on workers of Work Queue: none is lost and none has two results, whatever dies. Run by
-- spec/tune/farm/run in a network of its own.

local foldable = require "spec.tune.foldable"
local pl = require "perilune"
local command = require "spec.cli.command"
local processes = require "spec.tune.processes"
local workers = require "spec.tune.farm.workers"

if not workers.is_possible then
  describe("workers of Work Queue", function()
    it("are not here", function() pending "spec/tune/farm/run says why" end)
  end)
  return
end

local port = 19300
local place

-- The result of each model is right and there once.
local function check_results(models)
  local rows, n = place:rows()
  assert.equal(#models, n)
  for i, model in ipairs(models) do
    assert.equal("done", rows["opt " .. model].state)
    local path = place.path("out/" .. model:gsub("^/", ""):gsub("/", "_"))
    assert.matches(("add(%%x, %d "):format(i), command.read(path), 1, true)
  end
end

local function begun() return #processes.lines(place.path "begun") end

-- The worker that runs the last task that has begun.
local function busy_worker(ids)
  local lines = processes.lines(place.path "begun")
  return workers.of_task(math.tointeger(tonumber(lines[#lines])), ids)
end

local function batch_arguments(models, script)
  return ("opt %s --runner farm:%d --farm-silence 4 --argument-file=--script=%s"):format(
    table.concat(models, " "), port, script)
end

describe("tasks on workers of Work Queue", function()
  before_each(function()
    place = workers.place()
    port = port + 1
  end)
  after_each(function() place:stop() end)

  it("have all their results when a worker is killed and another one freezes", function()
    local models = place:models(8)
    local batch = place:batch(batch_arguments(models, place:slow_script(0.5)))
    local killed = place:start(port)
    processes.wait_for(function() return begun() == 2 end)
    assert.equal(killed, busy_worker { killed })
    processes.kill(killed, "KILL")
    local frozen = place:start(port)
    processes.wait_for(function() return begun() >= 4 and busy_worker { frozen } end)
    processes.kill(frozen, "STOP")
    place:start(port)
    local last, log = place:finish(batch)
    assert.equal("8 done, 0 failed, 0 done before", last, log)
    processes.kill(frozen, "CONT") -- what it says now is too late
    check_results(models)
    local tried_again = 0
    for _, row in pairs((place:rows())) do
      tried_again = tried_again + (tonumber(row.rest:match "(%d) tries") or 1) - 1
    end
    assert.equal(2, tried_again)
    assert.is_nil(io.open(place.path "out/batch.tmp"))
  end)

  it("are given up when they kill their workers, and the others are done", function()
    local models = place:models(4)
    local script = place:killing_script "kill.lua"
    local queue <close> = pl.tune.queue { runner = ("farm:%d"):format(port), silence = 4,
      password = place.password, program = (command.program:match "%S+$") }
    queue:submit { id = "bad", arguments = { { input = script } } }
    for i, model in ipairs(models) do
      queue:submit { id = i, arguments = { "opt", { input = model }, "-o",
        { output = place.path(("r%d.relay"):format(i)) } } }
    end
    local results = {}
    while queue.pending > 0 do
      local alive = 0
      for _, id in ipairs(place.all) do alive = alive + (processes.is_running(id) and 1 or 0) end
      if alive == 0 then place:start(port) end
      local id, result = queue:wait(0.5)
      if id then
        assert.is_nil(results[id])
        results[id] = result
      end
    end
    assert.equal("failed", results.bad.state)
    assert.is_true(results.bad.lost)
    assert.matches("its worker was lost", results.bad.why, 1, true)
    assert.equal(3, results.bad.tries)
    assert.equal(3, #processes.lines(place.path "killed"))
    for i in ipairs(models) do
      assert.equal("done", results[i].state, results[i].why)
      assert.matches(("add(%%x, %d "):format(i), command.read(place.path(("r%d.relay"):format(i))),
        1, true)
    end
  end)

  it("go on where they were when perilune is killed and started again", function()
    local models = place:models(10)
    local arguments = batch_arguments(models, place:slow_script(0.3))
    local batch = place:batch(arguments)
    place:start(port)
    place:start(port)
    processes.wait_for(function() return #processes.lines(place.path "ended") >= 4 end)
    processes.kill(batch, "KILL")
    processes.wait_for(function() return not processes.is_running(batch) end)
    local done = place:count "done"
    assert.is_true(done >= 2 and done < 10)
    local ended = #processes.lines(place.path "ended")
    local last, log = place:finish(place:batch(arguments))
    assert.equal(("%d done, 0 failed, %d done before"):format(10 - done, done), last, log)
    check_results(models)
    -- Those at hand when it was killed ran twice, the others did not.
    assert.is_true(#processes.lines(place.path "ended") - ended <= 10 - done + 2)
  end)

  it("go on when perilune-farm is killed", function()
    local models = place:models(6)
    local batch = place:batch(batch_arguments(models, place:slow_script(0.3)))
    place:start(port)
    processes.wait_for(function() return begun() >= 2 end)
    local farm = processes.descendants(batch)[1][1]
    assert.equal("perilune-farm", io.open(("/proc/%d/comm"):format(farm)):read "l")
    processes.kill(farm, "KILL")
    local last, log = place:finish(batch)
    assert.equal("6 done, 0 failed, 0 done before", last, log)
    check_results(models)
  end)

  it("go to workers that have their feature and know the password", function()
    local queue <close> = pl.tune.queue { runner = ("farm:%d"):format(port),
      password = place.password, program = (command.program:match "%S+$") }
    local model = place:models(1)[1]
    queue:submit { id = "board", feature = "board-a", arguments = { "info", { input = model } } }
    queue:submit { id = "any", arguments = { "info", { input = model } } }
    local right = place.password
    place.password = command.write(place.path "wrong", "another\n")
    place:start(port)
    assert.is_nil(queue:wait(1.5))
    place.password = right
    place:start(port)
    assert.equal("any", (queue:wait(20)))
    assert.is_nil(queue:wait(1))
    place:start(port, "--feature board-a")
    assert.equal("board", (queue:wait(20)))
  end)

  it("are sent all their files", function()
    os.execute(("mkdir -p %s %s"):format(place.path "big", place.path "big-out"))
    local model = place.path "big/m.onnx"
    assert.equal(0, (command.run(place.folder, "zoo mobilenetv2 --set width=0.25 -o "
      .. place.path "whole.onnx")))
    local whole = assert(pl.onnx.load(place.path "whole.onnx"))
    assert(pl.onnx.save(whole, model, { external_data = true, external_threshold = 0 }))
    assert.is_not_nil(io.open(model .. ".data"))
    local queue <close> = pl.tune.queue { runner = ("farm:%d"):format(port),
      password = place.password, program = (command.program:match "%S+$") }
    place:start(port)
    queue:submit { id = "external", arguments = { "opt", { input = model }, "-o",
      { output = place.path "big-out/m.onnx" } } }
    queue:submit { id = "none", arguments = { "info", { input = place.path "none.onnx" } } }
    local results = {}
    for id, result in queue:results() do results[id] = result end
    assert.equal("done", results.external.state, results.external.output)
    local out = assert(pl.onnx.load(place.path "big-out/m.onnx"))
    assert(pl.check(whole, out, { rounds = 1, dims = { batch = 1, N = 1 } }))
    assert.equal("an input file is missing", results.none.why)
    assert.is_nil(os.execute("test -x " .. place.path "big-out/m.onnx"))
  end)

  it("measure what perilune tune proposes, and none twice when it is killed", function()
    local model, db = place.path "dense.relay", place.path "tune.db"
    assert(pl.save(foldable(), model))
    -- Every candidate is another module: each pass notes itself.
    local passes = command.write(place.path "passes.lua", [[
      local pl = require "perilune"
      for _, name in ipairs { "NoteA", "NoteB", "NoteC", "NoteD" } do
        pl.passes[name] = { kind = "module", run = function(mod)
          return mod:with_attrs { [name] = 1 }
        end }
      end
    ]])
    local arguments = ("tune %s -p DeadCodeElimination --search exhaustive --trials 32 --script %s "
      .. "--pool 'FoldConstant{fold=\"all\"},NoteA,NoteB,NoteC,NoteD' --seconds 100 --db %s "
      .. "--parallel 4 --runner farm:%d --farm-password %s"):format(model, passes, db, port,
      place.password)
    local function start(log)
      return processes.start(("exec %s %s -o %s >%s 2>&1"):format(command.program, arguments,
        place.path "tuned.relay", place.path(log)))
    end
    local function n_records()
      local _, out = command.run(place.folder, "db list " .. db)
      return tonumber(out:match "(%d+) records") or 0
    end
    local tuner = start "first"
    local worker = place:start(port)
    place:start(port)
    processes.wait_for(function() return n_records() >= 3 end)
    processes.kill(worker, "KILL")
    processes.wait_for(function() return n_records() >= 6 end)
    processes.kill(tuner, "KILL")
    processes.wait_for(function() return not processes.is_running(tuner) end)
    local recorded = n_records()
    assert.is_true(recorded < 32)
    tuner = start "second"
    local _, log = place:finish(tuner, "second")
    local trials, measured, cached = log:match "(%d+) trials %((%d+) measured, (%d+) from records"
    assert.equal("32", trials, log)
    assert.is_true(tonumber(cached) >= recorded - 1, log) -- the winner's is one, too
    assert.is_true(tonumber(measured) <= 32 - tonumber(cached))
    assert.matches("FoldConstant", log, 1, true)
    local tuned = command.read(place.path "tuned.relay")
    assert.equal(1, pl.tune.measure.nodes(assert(pl.parse(tuned))))
    assert.equal(33, n_records()) -- a row a trial, and the winner's comparison with the base
    local status, out = command.run(place.folder, arguments .. " --replay -o "
      .. place.path "again.relay")
    assert.equal(0, status)
    assert.matches("0 measured", out, 1, true)
    assert.equal(tuned, command.read(place.path "again.relay"))
  end)

  it("are given on the loopback address unless another one is told", function()
    local queue <close> = pl.tune.queue { runner = "farm:0", password = place.password,
      program = (command.program:match "%S+$") }
    local listening = 0
    for line in io.lines "/proc/net/tcp" do
      local address, at, state = line:match "^%s*%d+: (%x+):(%x+) %x+:%x+ (%x%x)"
      if state == "0A" and tonumber(at, 16) == queue.port then
        assert.equal("0100007F", address)
        listening = listening + 1
      end
    end
    assert.equal(1, listening)
    local status, _, err = command.run(place.folder, "batch opt a -o b --runner farm:0 "
      .. "--farm-address 0.0.0.0")
    assert.equal(2, status)
    assert.matches("need --farm-password", err, 1, true)
    local ok, message = pcall(pl.tune.queue, { runner = "farm:0", address = "0.0.0.0" })
    assert.is_false(ok)
    assert.matches("need a password", tostring(message), 1, true)
  end)
end)
