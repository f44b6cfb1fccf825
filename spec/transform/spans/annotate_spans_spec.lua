-- AnnotateSpans: the spans that printing and parsing a module gives.

local pl = require "perilune"

local TEXT = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  let %y = exp(%x);
  add(%y, 1f)
}
]]

local function place(node)
  local source = node:history()[1]
  return ("%s:%d:%d"):format(source.file, source.line, source.column)
end

describe("AnnotateSpans", function()
  it("gives nodes their places in the module's text", function()
    local before = assert(pl.parse(TEXT, "input.relay"))
    local lines = {}
    for line in (tostring(before) .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
    local after = pl.passes.AnnotateSpans()(before)
    assert(pl.verify(after))
    assert.is_true(pl.equal(before, after))
    local seen = 0
    for node in after.main:nodes() do
      if node.kind == "Call" then
        local row, column = place(node):match "^GeneratedSource:(%d+):(%d+)$"
        assert.equal(node.op.name, lines[tonumber(row)]:sub(column):match "^%w+")
        seen = seen + 1
      end
    end
    assert.equal(2, seen)
  end)

  it("prints them, which a parsed module's own spans are not", function()
    local before = assert(pl.parse(TEXT, "input.relay"))
    assert.is_nil(tostring(before):find("span=", 1, true))
    local after = tostring(pl.passes.AnnotateSpans()(before))
    assert.truthy(after:find("%x: Tensor[(2), float32] /* ty=Tensor[(2), float32] "
      .. "span=GeneratedSource:2:11 */", 1, true))
    assert.equal(after, tostring(pl.parse(after)))
  end)

  it("replaces spans that were read from comments", function()
    local before = assert(pl.parse(
      '#[version = "0.0.5"]\ndef @main(%x: float32 /* ty=float32 span=a.rly:7:8 */) { %x }'))
    assert.truthy(tostring(before):find("span=a.rly:7:8", 1, true))
    local after = tostring(pl.passes.AnnotateSpans()(before))
    assert.is_nil(after:find("a.rly", 1, true))
    assert.truthy(after:find("span=GeneratedSource:2:11", 1, true))
  end)

  it("keeps constants, types and attributes", function()
    local before = assert(pl.parse [[
#[version = "0.0.5"]
type Box { Full(float32), }
def @other(%b: Box) { match (%b) { Full(%v) => { %v } } }
def @main(%x: Tensor[(3), float32], Inline=1) { add(%x, meta[relay.Constant][0]) }
#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"],
"data": [2]}, {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant",
"attrs": {"_checked_type_": "0", "data": "0", "span": "0"}}], "b64ndarrays":
["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQADAAAAAAAAAAwAAAAAAAAAAACAPwAAAEAAAEBA"],
"attrs": {"tvm_version": "0.14.0"}}]])
    local after = pl.passes.AnnotateSpans()(before)
    assert.is_true(pl.equal(before, after, { contents = true }))
  end)

  it("refuses a module whose text cannot be parsed", function()
    local x, n = pl.var("x", "float32"), pl.tir.Var "n"
    local mod = pl.module { main = pl.func({ x }, x),
      kernel = pl.tir.PrimFunc({ n }, pl.tir.Evaluate(n)) }
    local ok, diag = pcall(pl.passes.AnnotateSpans(), mod)
    assert.is_false(ok)
    assert.truthy(tostring(diag):find("TVMScript after Relay text can be printed but not parsed",
      1, true))
  end)
end)
