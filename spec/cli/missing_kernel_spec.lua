-- An operator is computed, or `perilune ops --missing` says why it is not.

local pl = require "perilune"
local missing = require "perilune.cli.missing_kernel"
local command = require "spec.cli.command"

describe("an operator without kernel", function()
  it("has a line that says why, and no other has one", function()
    for name, op in pairs(pl.op) do
      if op.has_kernel then
        assert.is_nil(missing[name], name .. " has a kernel")
      else
        assert.is_not_nil(missing[name], name .. " has no line")
      end
    end
    for name in pairs(missing) do assert.truthy(pl.op[name], name) end
  end)

  it("is listed with its reason", function()
    local pipe = assert(io.popen(command.program .. " ops --missing"))
    local text = pipe:read "a"
    pipe:close()
    for name, reason in pairs(missing) do
      local found = text:find("\n" .. name .. " ", 1, true) or text:find(name .. " ", 1, true) == 1
      assert.equal(reason ~= false, found ~= nil and found ~= false, name)
      if reason then assert.truthy(text:find(reason, 1, true), name) end
    end
  end)
end)
