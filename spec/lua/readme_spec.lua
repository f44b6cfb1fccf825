-- The README's examples print what the README says.

local command = require("spec.cli.command").program

local function text_of(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

-- What a program prints when the command runs it.
local function output_of(program)
  local path = os.tmpname()
  local script = path .. ".lua"
  local file = assert(io.open(script, "w"))
  file:write(program)
  file:close()
  local pipe = io.popen(command .. " " .. script .. " 2>&1")
  local printed = pipe:read "a"
  pipe:close()
  os.remove(script)
  os.remove(path)
  return printed
end

describe("README.md", function()
  local text = text_of "README.md"

  it("has an example of a pass that prints what it says", function()
    local program, output = text:match "```lua\n(.-)```\n\nprints\n\n```text\n(.-)```"
    assert.equal(output, output_of(program))
  end)

  it("has an example of a kernel that prints ten times 2.0", function()
    local kernel = text:match "compiles and this process calls:\n\n```lua\n(.-)```"
    assert.truthy(kernel:find("ten times 2.0", 1, true))
    assert.equal(("2.0 "):rep(10),
      (output_of('local pl = require "perilune"\n' .. kernel):gsub("%s", " ")))
  end)

  it("has no more than 120 lines", function()
    local _, lines = text:gsub("\n", "\n")
    assert.is_true(lines <= 120)
  end)
end)
