-- The texts that TVM 0.14 prints (conformance/relay-text, beside the project):
-- each is read; what is printed of it is read as the same module again, and
-- printed as the same text; a text with its types in comments comes back byte
-- by byte. The exception stands here with its reason.

local pl = require "perilune"

local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local folder = shared .. "/conformance/relay-text/"

-- What is not equal to itself when it is read twice.
local other_module = {
  ["const/large_tensor.relay"] = "a constant over 1 KiB is the same only as the same buffer",
}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local index = io.open(folder .. "INDEX.tsv")
if not index then
  describe("TVM's texts", function()
    it("are not here", function() pending("no " .. folder) end)
  end)
  return
end

local files = {}
for line in index:lines() do
  local name, typed = line:match "^(%S+%.relay)\t%d+\t(%S+)"
  if name then files[#files + 1] = { name = name, typed = typed == "typed" } end
end
index:close()

-- The first line that differs, for a message that can be read.
local function difference(a, b)
  local next_a, next_b = a:gmatch "[^\n]*", b:gmatch "[^\n]*"
  local row = 0
  repeat
    local x, y = next_a(), next_b()
    row = row + 1
    if x ~= y then return ("line %d\n  %s\n  %s"):format(row, x, y) end
  until not x
end

describe("TVM's texts", function()
  it("are there", function() assert.is_true(#files > 100) end)

  for _, file in ipairs(files) do
    it(file.name .. " is read", function()
      local text = read(folder .. file.name)
      local module = assert(pl.parse(text, file.name))
      local printed = module:text()
      local again = assert(pl.parse(printed, file.name))
      assert.is_nil(difference(printed, again:text()))
      assert.equal(not other_module[file.name], pl.equal(module, again))
      if not file.typed then return end
      -- A text has no line feed behind its metadata.
      local same = printed == text or printed == text .. "\n"
      assert.is_nil(not same and difference(text, printed) or nil)
    end)
  end
end)
