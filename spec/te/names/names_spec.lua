-- Every test of TVM's te has a counterpart of its name in this folder or the one around it, or a
-- reason in names.lua why there is none.

local names = require "spec.te.names.names"

-- The names in titles of tests, and the file that has them.
local function found()
  local out = {}
  local pipe = assert(io.popen "ls spec/te/*_spec.lua spec/te/names/*_spec.lua")
  for path in pipe:lines() do
    local file = assert(io.open(path))
    for title in file:read "a":gmatch '[^%w]it%(%(?"([^"]+)"' do
      for name in title:gmatch "test_[%w_]+" do out[name] = path end
    end
    file:close()
  end
  pipe:close()
  return out
end

local function listed()
  local out, n = {}, 0
  for file, text in pairs(names.tests) do
    for name in text:gmatch "%S+" do
      n = n + 1
      out[name] = file
    end
  end
  return out, n
end

describe("the tests of TVM's te", function()
  it("have counterparts, or a reason why there is none", function()
    local counterparts, tests = found(), listed()
    for name, file in pairs(tests) do
      assert.is_truthy(counterparts[name] or names.without[name],
        ("%s of %s has neither a counterpart nor a reason"):format(name, file))
      assert.is_falsy(counterparts[name] and names.without[name],
        ("%s is in %s and has a reason not to be"):format(name, counterparts[name]))
    end
  end)

  it("are those that specs and reasons name", function()
    local tests, n = listed()
    for name, path in pairs(found()) do
      assert.is_truthy(tests[name], ("%s of %s is no test of TVM's"):format(name, path))
    end
    for name, reason in pairs(names.without) do
      assert.is_truthy(tests[name], name)
      assert.is_true(#reason > 20)
    end
    assert.equal(177, n)
  end)
end)
