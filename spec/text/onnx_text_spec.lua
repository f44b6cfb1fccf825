-- ONNX's cases of operators (conformance/onnx-node.tar.xz beside the project) as
-- Relay text: what is printed of each model is read as an equal module, and
-- printed the same; as an ONNX model again, that computes what the first does.

local archive = require "spec.onnx.archive"
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

--- The model, its text, and the module that this is read as.
local function reread(path)
  local module = assert(pl.load(path))
  local text = module:text()
  local again, diag = pl.parse(text, path)
  assert(again, ("%s: %s"):format(path, diag))
  return module, text, again
end

describe("ONNX's cases, as Relay text", function()
  it("are there", function() assert.is_true(#paths > 1400) end)

  it("are read as equal modules, and printed the same", function()
    for _, path in ipairs(paths) do
      local module, text, again = reread(path)
      local difference = pl.mismatch(module, again)
      assert.is_nil(difference and path .. ": " .. difference)
      assert.equal(pl.hash(module), pl.hash(again), path)
      assert.is_true(text == again:text(), path .. " is printed differently")
    end
  end)

  it("are exported as models that compute the same", function()
    local out = os.tmpname()
    for _, path in ipairs(paths) do
      local module, _, again = reread(path)
      assert(pl.onnx.save(again, out))
      local exported = assert(pl.onnx.load(out))
      if not pl.equal(again, exported) then
        local same, report = pl.check(module, exported)
        assert(same, ("%s: %s"):format(path, report))
      end
    end
    os.remove(out)
  end)

  -- Reading finds types that no pass asked for, and gives large constants other
  -- buffers: what was read once is a fixed point.
  it("are read again after passes", function()
    local pipeline = pl.sequential { "SimplifyExpr", "FoldConstant", "EliminateCommonSubexpr",
      "DeadCodeElimination" }
    for _, path in ipairs(paths) do
      local module = pipeline((reread(path)))
      local again, diag = pl.parse(module:text(), path)
      assert(again, ("%s: %s"):format(path, diag))
      local difference = pl.mismatch(module, again)
      if difference and difference:find "other elements" then difference = nil end
      assert.is_nil(difference and path .. ": " .. difference)
      local text = again:text()
      assert.is_true(text == assert(pl.parse(text, path)):text(), path)
    end
  end)
end)
