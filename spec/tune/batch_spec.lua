-- perilune batch: one command over many models, gone on with where it was.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"
local protobuf = require "spec.onnx.protobuf"
local processes = require "spec.tune.processes"

local folder = command.folder()
local function path(name) return folder .. "/" .. name end
local function run(arguments) return command.run(folder, arguments) end

local TEXT = '#[version = "0.0.5"]\ndef @main(%x: int32) { add(%x, 1) }\n'
local function result_of(name, out)
  return ("%s/%s"):format(path(out), (path(name):gsub("^/", ""):gsub("/", "_")))
end

-- A TensorProto of one float32.
local function scalar(x)
  local function field(n, value) return protobuf.varint(n << 3) .. protobuf.varint(value) end
  return field(1, 1) .. field(2, 1) .. protobuf.field(9, string.pack("<f", x))
end

-- The lines of `perilune db tasks`, by task: state and the rest.
local function rows(out)
  local status, text = run("db tasks " .. path(out) .. "/batch.db")
  assert.equal(0, status)
  local list = {}
  for state, name, rest in text:gmatch "(%l+) +(%l+ [^\n,]+)([^\n]*)\n" do
    list[name] = { state = state, rest = rest }
  end
  return list
end

describe("perilune batch", function()
  setup(function()
    for _, name in ipairs { "a.relay", "b.relay", "c.relay" } do command.write(path(name), TEXT) end
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  it("runs all, says which failed, and runs only what is not done again", function()
    command.write(path "b.relay", "no model")
    local models = ("batch opt %s %s %s -j 2 -o %s"):format(path "a.relay", path "b.relay",
      path "c.relay", path "new/out")
    local status, out = run(models)
    assert.equal(1, status)
    assert.matches("2 done, 1 failed, 0 done before", out, 1, true)
    assert.matches("FAIL " .. path "b.relay", out, 1, true)
    local row = rows "new/out"
    assert.equal("done", row["opt " .. path "a.relay"].state)
    assert.equal("failed", row["opt " .. path "b.relay"].state)
    assert.matches("its status is 1", row["opt " .. path "b.relay"].rest, 1, true)
    assert.matches("add", command.read(result_of("c.relay", "new/out")), 1, true)

    command.write(path "b.relay", TEXT)
    os.remove(result_of("c.relay", "new/out")) -- a result that was deleted is made again
    status, out = run(models)
    assert.equal(0, status)
    assert.matches("2 done, 0 failed, 1 done before", out, 1, true)
    status, out = run(models .. " --argument=--opt-level=1") -- other tasks
    assert.equal(0, status)
    assert.matches("3 done, 0 failed, 0 done before", out, 1, true)
    assert.equal("done", rows "new/out"["opt " .. path "b.relay"].state)
  end)

  it("runs a task again when its model has changed", function()
    local arguments = ("batch opt %s %s -o %s"):format(path "a.relay", path "c.relay",
      path "changed")
    assert.equal(0, (run(arguments)))
    command.write(path "a.relay", (TEXT:gsub("add", "subtract")))
    local status, out = run(arguments)
    assert.equal(0, status)
    assert.matches("1 done, 0 failed, 1 done before", out, 1, true)
    assert.matches("subtract", command.read(result_of("a.relay", "changed")), 1, true)
    command.write(path "a.relay", TEXT)
  end)

  it("checks the results of an earlier one", function()
    local models = ("%s %s -o %s"):format(path "a.relay", path "c.relay", path "checked")
    assert.equal(0, (run("batch opt " .. models)))
    local status, out = run("batch check " .. models)
    assert.equal(0, status)
    assert.matches("2 done, 0 failed, 0 done before", out, 1, true)
    command.write(result_of("c.relay", "checked"), (TEXT:gsub("add", "subtract")))
    status, out = run("batch check " .. models)
    assert.equal(1, status)
    assert.matches("0 done, 1 failed, 1 done before", out, 1, true)
    assert.matches("FAIL " .. path "c.relay", out, 1, true)
  end)

  it("tests models on their data", function()
    for k, sum in ipairs { 2, 3 } do
      local set = path("t" .. k) .. "/test_data_set_0"
      os.execute("mkdir -p " .. set)
      local m = model.new { name = "add" }
      local x = m:input("x", "float32", { 1 })
      m:output(m:node("Add", { x, x }, nil, "y"), "float32", { 1 })
      assert(m:save(path("t" .. k) .. "/model.onnx"))
      command.write(set .. "/input_0.pb", scalar(1))
      command.write(set .. "/output_0.pb", scalar(sum))
    end
    local status, out = run(("batch test %s %s -o %s"):format(path "t1", path "t2", path "tested"))
    assert.equal(1, status)
    assert.matches("1 done, 1 failed, 0 done before", out, 1, true)
    assert.matches("FAIL " .. path "t2", out, 1, true)
    assert.equal("done", rows "tested"["test " .. path "t1"].state)
  end)

  it("refuses models whose results have one name, and bad limits", function()
    local status, _, err = run("batch opt x/y.relay x_y.relay -o " .. path "none")
    assert.equal(2, status)
    assert.matches("have the same result", err, 1, true)
    local wrong, _, message = run("batch opt a.relay --seconds 0 -o " .. path "none")
    assert.equal(2, wrong)
    assert.matches("--seconds must be a number above 0", message, 1, true)
  end)

  it("refuses what is no runner", function()
    for _, text in ipairs { "slurmy", "farm", "farm:99999", "slurm:main,0", "slurm:main" } do
      local status, _, err = run(("batch opt a.relay -o %s --runner %s"):format(path "none", text))
      assert.equal(2, status)
      assert.matches(("^perilune: %%-%%-runner %s: local, farm:PORT or slurm:"):format(
        text), err)
    end
  end)

  it("has its folder for itself, and ends with all that it has started", function()
    local script = command.write(path "slow.lua",
      ("os.execute 'echo $PPID >>%s; echo $$ >>%s; exec sleep 1000'"):format(path "pids",
        path "pids"))
    local arguments = ("batch opt %s %s -j 2 -o %s --argument=--script=%s"):format(path "a.relay",
      path "c.relay", path "slow", script)
    local batch = processes.start(("exec %s %s >%s 2>&1"):format(command.program, arguments,
      path "log"))
    processes.wait_for(function() return #processes.lines(path "pids") == 4 end)
    local status, _, err = run(arguments)
    assert.equal(1, status)
    assert.matches("another batch is running there", err, 1, true)

    local commands = processes.lines(path "pids")
    for _, id in ipairs(commands) do assert.is_true(processes.is_running(id)) end
    processes.kill(batch, "KILL")
    for _, id in ipairs(commands) do
      processes.wait_for(function() return not processes.is_running(id) end)
    end
    assert.equal("new", rows "slow"["opt " .. path "a.relay"].state)
    command.write(script, "") -- the next one goes on
    local again, out = run(arguments)
    assert.equal(0, again)
    assert.matches("2 done, 0 failed, 0 done before", out, 1, true)
    assert.is_nil(io.open(path "slow/batch.lock"))
  end)

  it("is locked by one process at a time, where each removes the file", function()
    local script = command.write(path "lock.lua", ([[
local host, at = require "perilune.cli.host", %q
local held = 0
while held < 300 do
  local lock <close> = host.lock(at .. ".lock")
  if lock then
    assert(not io.open(at .. ".held"), "two have it")
    assert(io.open(at .. ".held", "w")):close()
    assert(os.remove(at .. ".held"))
    held = held + 1
  end
end]]):format(path "race"))
    local running = {}
    for i = 1, 3 do
      running[i] = io.popen(("%s %s 2>&1; echo $?"):format(command.program, script))
    end
    for i = 1, 3 do assert.equal("0\n", running[i]:read "a") end
    assert.is_nil(io.open(path "race.lock"))
  end)
end)
