-- What is derived from ir/graph/kinds.def is not stale.

local derived = dofile "engine/ir/graph/kinds_page.lua"

local function text_of(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

describe("derived from the table of kinds,", function()
  it("the reference page is as it would be made now", function()
    assert.equal(derived.page(), text_of "engine/ir/graph/kinds.md")
  end)

  it("the names for editors are as they would be made now", function()
    assert.equal(derived.types(), text_of "lua/types/kinds.lua")
  end)
end)
