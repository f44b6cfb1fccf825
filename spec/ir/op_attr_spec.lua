-- Attributes of operators: set, asked for, removed, and read by passes.

local pl = require "perilune"

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %0 = exp(%x);
  nn.relu(%0)
}
]]

local function primitives(mod)
  local n = 0
  for node in mod.functions.main:nodes() do
    if node.kind == "Function" and node.attrs.Primitive then n = n + 1 end
  end
  return n
end

describe("pl.op_attr", function()
  it("sets, asks and removes", function()
    assert.is_true(pl.op_attr("add", "spec.flag", true))
    assert.is_true(pl.op_attr("add", "spec.flag"))
    pl.op_attr("add", "spec.text", "text")
    assert.equal("text", (pl.op_attr("add", "spec.text")))
    assert.is_nil(pl.op_attr("subtract", "spec.flag"))
    assert.is_true(pl.op_attr(pl.op.add, "spec.flag"))
    pl.op_attr("add", "spec.flag", nil)
    pl.op_attr("add", "spec.text", nil)
    assert.is_nil(pl.op_attr("add", "spec.flag"))
  end)

  it("keeps what has a higher level", function()
    local function f() end
    assert.is_true(pl.op_attr("add", "spec.level", f, 12))
    assert.is_false(pl.op_attr("add", "spec.level", 1))
    local value, level = pl.op_attr("add", "spec.level")
    assert.equal(f, value)
    assert.equal(12, level)
    assert.is_true(pl.op_attr("add", "spec.level", 2, 12))
    assert.equal(2, (pl.op_attr("add", "spec.level")))
    pl.op_attr("add", "spec.level", nil)
  end)

  it("releases functions that nobody can call any more", function()
    local seen = setmetatable({}, { __mode = "k" })
    do
      local function f() return seen end
      seen[f] = true
      pl.op_attr("add", "spec.released", f)
    end
    collectgarbage()
    assert.is_not_nil(next(seen))
    pl.op_attr("add", "spec.released", 1)
    collectgarbage()
    assert.is_nil(next(seen))
    pl.op_attr("add", "spec.released", nil)
  end)

  it("refuses what is no operator, key, value or level", function()
    local function refused(message, ...)
      local arguments = table.pack(...)
      assert.error_matches(function()
        pl.op_attr(table.unpack(arguments, 1, arguments.n))
      end, message)
    end
    refused("no operator is called 'ad'", "ad", "key")
    refused("an operator or its name expected, got number", 1, "key")
    refused("key: a string expected, got number", "add", 1)
    refused("a boolean, a number, a string or a function expected, got table", "add", "key", {})
    for _, pattern in ipairs { "x", 5, 9, -1, 1.5, true, print } do
      refused("TOpPattern is 0 %(elementwise%), .*, 7 %(tuple%) or 8 %(opaque%)", "add",
        "TOpPattern", pattern)
    end
    refused("number expected, got string", "add", "key", 1, "high")
  end)

  it("gives FuseOps its patterns, also from its cache", function()
    local mod = pl.parse(text)
    local context = pl.context { config = { cache = 1000000 } }
    local function fused() return primitives(pl.with(context, pl.passes.FuseOps(), mod)) end
    assert.equal(0, (pl.op_attr("exp", "TOpPattern")))
    assert.equal(1, fused())
    pl.op_attr("exp", "TOpPattern", 8)
    assert.equal(8, (pl.op_attr("exp", "TOpPattern")))
    assert.equal(2, fused())
    pl.op_attr("exp", "TOpPattern", nil)
    assert.equal(1, fused())
  end)
end)
