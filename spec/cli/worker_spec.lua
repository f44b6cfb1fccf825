-- perilune worker: one task from a file, one result.

local command = require "spec.cli.command"
local json = require "perilune.json"

local folder = command.folder()
local function path(name) return folder .. "/" .. name end

-- Status, standard error and the result (nil without a file) of a task's text.
local function work(text)
  os.remove(path "result")
  command.write(path "task", text)
  local status, _, err = command.run(folder, "worker " .. path "task" .. " " .. path "result")
  local file = io.open(path "result")
  local result = file and json.decode(file:read "a")
  if file then file:close() end
  return status, err, result
end

local function task(seconds, ...)
  return json.encode { arguments = json.list { ... }, seconds = seconds }
end

describe("perilune worker", function()
  teardown(function() os.execute("rm -r " .. folder) end)

  it("runs a command and writes what became of it", function()
    local status, _, result = work(task(nil, "zoo", "resnet50", "-o", path "a b.onnx"))
    assert.equal(0, status)
    assert.equal("done", result.state)
    assert.is_nil(result.why)
    assert.is_true(result.seconds > 0)
    assert.is_true(#command.read(path "a b.onnx") > 1000)
    assert.is_nil(io.open(path "result.part"))
  end)

  it("writes why a task failed, with what it printed", function()
    local status, _, result = work(task(60, "info", path "none.onnx"))
    assert.equal(0, status)
    assert.equal("failed", result.state)
    assert.equal("its status is 1", result.why)
    assert.matches("No such file", result.output, 1, true)
  end)

  it("stops a task at its time limit and hears of crashes", function()
    command.write(path "hang.lua", "while true do end")
    local _, _, result = work(task(0.2, path "hang.lua"))
    assert.equal("it was stopped after 0.2 seconds", result.why)
    command.write(path "crash.lua",
      "local f = io.open '/proc/self/stat'; local id = f:read 'n'\n"
      .. "os.execute('kill -KILL ' .. id)")
    _, _, result = work(task(60, path "crash.lua"))
    assert.matches("it crashed: signal 9", result.why, 1, true)
  end)

  it("refuses a file that is no task, and writes nothing", function()
    for text, message in pairs {
      ["{"] = "a task is a JSON object", ["7"] = "a task is a JSON object",
      ["{}"] = "'arguments' must be a list of strings",
      ['{"arguments": []}'] = "'arguments' must be a list of strings",
      ['{"arguments": ["zoo", 1]}'] = "'arguments' must be a list of strings",
      ['{"arguments": ["zoo"], "seconds": -1}'] = "'seconds' must be a number above 0",
      ['{"arguments": ["zoo"], "seconds": "1"}'] = "'seconds' must be a number above 0",
    } do
      local status, err, result = work(text)
      assert.equal(1, status)
      assert.matches(message, err, 1, true)
      assert.is_nil(result)
    end
  end)
end)
