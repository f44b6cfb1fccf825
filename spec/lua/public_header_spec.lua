-- engine/include/perilune.h and its parts are a manual: every function stands in a
-- paragraph that says something about it.

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

-- Whether a comment stands above the line, before the paragraph's begin.
local function described(lines, at)
  for i = at, 1, -1 do
    if lines[i] == "" then return false end
    if lines[i]:find("*/", 1, true) then return true end
  end
  return false
end

describe("perilune.h", function()
  it("describes every function", function()
    local count = 0
    for part in io.open("engine/include/perilune.h"):read "a":gmatch '#include "(.-)"' do
      local lines = lines_of("engine/include/" .. part)
      for i, line in ipairs(lines) do
        local name = line:match "^PLN_API .-(pln_[%w_]+)%("
        if name then
          count = count + 1
          assert(described(lines, i), ("%s:%d: %s is not described"):format(part, i, name))
        end
      end
    end
    assert.is_true(count > 200)
  end)
end)
