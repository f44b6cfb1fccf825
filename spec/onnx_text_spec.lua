-- ONNX's cases of operators (conformance/onnx-node.tar.xz beside the project) as
-- Relay text: what is printed of each model is read, and printed the same.

local archive = require "spec.archive"
local pl = require "perilune"

local folder = archive.unpack("conformance/onnx-node.tar.xz", "node")
if not folder then
  describe("ONNX's cases", function()
    it("are not here", function() pending("no archive in " .. archive.shared) end)
  end)
  return
end

local paths = {}
local list = assert(io.popen(("ls %s/test_*/model.onnx"):format(folder)))
for path in list:lines() do paths[#paths + 1] = path end
list:close()

describe("ONNX's cases, as Relay text", function()
  it("are there", function() assert.is_true(#paths > 1400) end)

  it("print what is read and printed the same", function()
    for _, path in ipairs(paths) do
      local text = tostring(assert(pl.load(path)))
      local again, diag = pl.parse(text, path)
      assert(again, ("%s: %s"):format(path, diag))
      assert.is_true(text == tostring(again), path .. " is printed differently")
    end
  end)
end)
