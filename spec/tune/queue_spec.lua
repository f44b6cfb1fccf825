-- pl.tune.queue: tasks in processes of this machine, whose workers may die.

local pl = require "perilune"
local command = require "spec.cli.command"

local folder = command.folder()
local function path(name) return folder .. "/" .. name end

local program = command.write(path "perilune", ("#!/bin/sh\nexec %s \"$@\"\n"):format(
  command.program))
os.execute("chmod +x " .. program)

-- A script that counts its runs, and in the first `n` of them kills its process or its worker.
local function killing(name, what, n)
  return command.write(path(name .. ".lua"), ([[
    local count = io.open("%s", "a+")
    count:seek "set"
    local runs = #count:read "a"
    count:write "x"
    count:close()
    local stat = io.open "/proc/self/stat":read "a"
    local own, parent = stat:match "^(%%d+) %%b() %%u (%%d+)"
    if runs < %d then os.execute("kill -KILL " .. %s) end
    print "it ran"
  ]]):format(path(name), n, what))
end

local function open(options)
  options.program = program
  return pl.tune.queue(options)
end

local function all(queue)
  local results = {}
  for id, result in queue:results() do
    assert.is_nil(results[id])
    results[id] = result
  end
  return results
end

describe("pl.tune.queue", function()
  teardown(function() os.execute("rm -r " .. folder) end)

  it("runs commands side by side, each with its result", function()
    local queue <close> = open { jobs = 3 }
    for i = 1, 5 do
      queue:submit { id = i, arguments = { "zoo", "mobilenetv2", "-o",
        { output = path("m" .. i) } } }
    end
    queue:submit { id = "wrong", arguments = { "info", { input = path "none" } } }
    queue:submit { id = "slow", arguments = { command.write(path "loop.lua", "while true do end") },
      seconds = 0.2 }
    assert.equal(7, queue.pending)
    local results = all(queue)
    assert.equal(0, queue.pending)
    for i = 1, 5 do
      assert.equal("done", results[i].state)
      assert.is_true(#command.read(path("m" .. i)) > 1000)
    end
    assert.equal("its status is 1", results.wrong.why)
    assert.matches("No such file", results.wrong.output, 1, true)
    assert.equal("it was stopped after 0.2 seconds", results.slow.why)
    assert.equal(1, results.slow.tries)
    assert.is_nil(queue:wait())
  end)

  it("has nothing to tell when the time is over", function()
    local queue <close> = open {}
    queue:submit { id = 1, arguments = { command.write(path "loop.lua", "while true do end") } }
    assert.is_nil(queue:wait(0.05))
    assert.equal(1, queue.pending)
  end)

  it("sends a task again whose process or worker was killed, at most three times", function()
    local queue <close> = open { jobs = 2 }
    for _, what in ipairs { "own", "parent" } do
      for _, n in ipairs { 1, 100 } do
        queue:submit { id = what .. n, arguments = { killing(what .. n, what, n) } }
      end
    end
    local results = all(queue)
    for _, what in ipairs { "own", "parent" } do
      local once, always = results[what .. 1], results[what .. 100]
      assert.equal("done", once.state)
      assert.equal(2, once.tries)
      assert.matches("it ran", once.output, 1, true)
      assert.equal("failed", always.state)
      assert.is_true(always.lost)
      assert.matches("signal 9 %(.*%(3 times%)$", always.why)
      assert.equal("xxx", command.read(path(what .. 100)))
    end
  end)

  it("measures the points of a search as this process does", function()
    local model = command.write(path "model.relay", [[#[version = "0.0.5"]
      def @main(%x: Tensor[(4), float32]) {
        let %a = tanh(%x);
        let %b = tanh(%x);
        add(add(%a, %b), add(multiply(2f, 3f), %x))
      }]])
    local function search(options)
      options.mod, options.metrics, options.strategy = assert(pl.load(model)), { "nodes" }, "beam"
      options.base, options.trials, options.width = "DeadCodeElimination", 40, 8
      return pl.tune.search(options)
    end
    local queue <close> = open { jobs = 2 }
    local here = search {}
    local there = search { queue = queue, command = { "tune", { input = model }, "--metric",
      "nodes" } }
    assert.equal("faster", here.verdict)
    assert.equal(here.text, there.text)
    assert.is_true(math.abs(here.ratio - there.ratio) < 1e-8)
    assert.equal(here.trials, there.trials)
    assert.equal(here.measured, there.measured)
    for i, trial in ipairs(here.list) do
      assert.equal(trial.text, there.list[i].text)
      assert.is_true(math.abs(trial.cost - there.list[i].cost) < 1e-8)
    end
    -- A task that fails is a candidate that fails, with what it said.
    local none = search { queue = queue, command = { "tune", { input = path "none" } } }
    assert.is_true(none.failed > 0)
    assert.equal("undecided", none.verdict)
    for _, trial in ipairs(none.list) do
      if trial.failure then
        assert.matches("task: its status is 1: .*No such file", trial.failure)
      end
    end
  end)

  it("tells of a program that is not there", function()
    local queue <close> = pl.tune.queue { program = path "none", tries = 1 }
    queue:submit { id = 1, arguments = { "info" } }
    local _, result = queue:wait()
    assert.equal("failed", result.state)
    assert.matches("status 127", result.why, 1, true)
  end)

  it("tells what workers of Work Queue need that is not there", function()
    local function refused(message, options)
      local ok, err = pcall(pl.tune.queue, options)
      assert.is_false(ok)
      assert.matches(message, tostring(err), 1, true)
    end
    refused("others than 127.0.0.1 need a password", { runner = "farm:0", address = "10.0.0.1" })
    refused("the password file cannot be read", { runner = "farm:0", password = path "none" })
    refused("there is no such program", { runner = "farm:0", program = path "none" })
    refused("local, farm:PORT or slurm:PARTITION,N", { runner = "farm:70000" })
    refused("local, farm:PORT or slurm:PARTITION,N", { runner = "slurm:main,0" })
    if not os.execute "command -v perilune-farm >/dev/null" then
      refused("perilune-farm is not there", { runner = "farm:0", program = program })
    end
  end)

  it("refuses what is no task", function()
    local queue <close> = open {}
    local function refused(message, task)
      local ok, err = pcall(queue.submit, queue, task)
      assert.is_false(ok)
      assert.matches(message, tostring(err), 1, true)
    end
    refused("id: a value that no other task has", { arguments = { "info" } })
    refused("a command is expected", { id = 1, arguments = {} })
    refused("words, { input = path }", { id = 1, arguments = { 7 } })
    refused("words, { input = path }", { id = 1, arguments = { {} } })
    refused("a word has no zeros", { id = 1, arguments = { "a\0b" } })
    refused("a number above 0", { id = 1, arguments = { "info" }, seconds = 0 })
    assert.equal(0, queue.pending)
    for option, value in pairs { runner = "cloud", jobs = 0, tries = 1.5, program = 7 } do
      local ok, err = pcall(pl.tune.queue, { [option] = value })
      assert.is_false(ok)
      assert.matches(option, tostring(err), 1, true)
    end
  end)
end)
