-- perilune batch: one command over many models, gone on with where it was.

local command = require "spec.cli.command"
local json = require "perilune.json"

local folder = command.folder()
local function path(name) return folder .. "/" .. name end
local function run(arguments) return command.run(folder, arguments) end

local TEXT = '#[version = "0.0.5"]\ndef @main(%x: int32) { add(%x, 1) }\n'
local function name_of(model) return (path(model):gsub("^/", ""):gsub("/", "_")) end
local function record(model)
  return json.decode(command.read(path "out/" .. name_of(model) .. ".json"))
end

describe("perilune batch", function()
  setup(function()
    for _, name in ipairs { "a.relay", "b.relay", "c.relay" } do command.write(path(name), TEXT) end
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  it("runs all, says which failed, and runs only what is not done again", function()
    command.write(path "b.relay", "no model")
    local models = ("batch opt %s %s %s -j 2 -o %s"):format(path "a.relay", path "b.relay",
      path "c.relay", path "out")
    local status, out = run(models)
    assert.equal(1, status)
    assert.matches("2 done, 1 failed, 0 done before", out, 1, true)
    assert.matches("FAIL " .. path "b.relay", out, 1, true)
    assert.equal("done", record "a.relay".state)
    assert.equal("its status is 1", record "b.relay".why)
    assert.matches("add", command.read(path "out/" .. name_of "c.relay"), 1, true)

    command.write(path "b.relay", TEXT)
    os.remove(path "out/" .. name_of "c.relay") -- a result that was deleted is made again
    status, out = run(models)
    assert.equal(0, status)
    assert.matches("2 done, 0 failed, 1 done before", out, 1, true)
    status, out = run(models .. " --argument=--opt-level=1") -- other tasks
    assert.equal(0, status)
    assert.matches("3 done, 0 failed, 0 done before", out, 1, true)
  end)

  it("runs a task again when its model has changed", function()
    local arguments = ("batch opt %s %s -o %s"):format(path "a.relay", path "c.relay",
      path "changed")
    assert.equal(0, (run(arguments)))
    command.write(path "a.relay", (TEXT:gsub("add", "subtract")))
    local status, out = run(arguments)
    assert.equal(0, status)
    assert.matches("1 done, 0 failed, 1 done before", out, 1, true)
    assert.matches("subtract", command.read(path "changed/" .. name_of "a.relay"), 1, true)
    command.write(path "a.relay", TEXT)
  end)

  it("refuses models whose results have one name, and bad limits", function()
    local status, _, err = run("batch opt x/y.relay x_y.relay -o " .. path "none")
    assert.equal(2, status)
    assert.matches("have the same result", err, 1, true)
    local wrong, _, message = run("batch opt a.relay --seconds 0 -o " .. path "none")
    assert.equal(2, wrong)
    assert.matches("--seconds must be a number above 0", message, 1, true)
  end)
end)
