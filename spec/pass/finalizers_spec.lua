-- Finalisers of a script run wherever Lua allocates, also while the library hands
-- something over: what they call changes nothing there.
-- PERILUNE_ROUNDS says how often each operation runs (default 1).

local command = require "spec.cli.command"

-- Finalisers also run when Lua closes its state; it finalises nothing that they make then,
-- which looks like a leak of the command's.
local closing = "ASAN_OPTIONS=detect_leaks=0 "

local function run(script, environment)
  local folder = command.folder()
  local status, out, err = command.run(folder, script, environment)
  os.execute("rm -r " .. folder)
  return status, out, err
end

describe("finalisers that call the library at every allocation", function()
  it("change no result, message or report", function()
    local status, out, err = run("spec/pass/finalizers.lua '' " .. (os.getenv "PERILUNE_ROUNDS" or 1))
    assert.equal("done\n", out)
    assert.equal("", err)
    assert.equal(0, status)
  end)

  local shared = os.getenv "PERILUNE_SHARED" or "../shared"
  for _, name in ipairs { "gc-diag-uaf", "gc-report-null" } do
    local file = io.open(("%s/conformance/own-defects/%s.lua"):format(shared, name))
    local text = file and file:read "a";
    (file and it or pending)("leave " .. name .. " done", function()
      local folder = command.folder()
      local path = command.write(folder .. "/fewer.lua", (text:gsub("000 do", "0 do")))
      local status, out, err = run(path, closing)
      os.execute("rm -r " .. folder)
      assert.equal("done\n", out)
      assert.equal("", err)
      assert.equal(0, status)
    end)
  end
end)
