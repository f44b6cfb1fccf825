-- The README's example prints what the README says.

local command = require("spec.cli.command").program

describe("README.md", function()
  it("has an example that prints what it says", function()
    local file = assert(io.open "README.md")
    local text = file:read "a"
    file:close()
    local program, output = text:match "```lua\n(.-)```\n\nprints\n\n```text\n(.-)```"
    local path = os.tmpname()
    file = assert(io.open(path, "w"))
    file:write(program)
    file:close()
    local script = path .. ".lua"
    os.rename(path, script)
    local pipe = io.popen(command .. " " .. script .. " 2>&1")
    local printed = pipe:read "a"
    pipe:close()
    os.remove(script)
    assert.equal(output, printed)
    local _, lines = text:gsub("\n", "\n")
    assert.is_true(lines <= 120)
  end)
end)
