-- CapturePostDfsIndexInSpans: "index:number:post-dominator" in the spans.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

local function captured(text, ...)
  return pl.passes.CapturePostDfsIndexInSpans()(assert(pl.parse(HEAD .. text)), ...)
end

-- The spans in the text's order: "0:2".
local function spans(mod)
  local list = {}
  for span in tostring(mod):gmatch "span=index:(%S+)" do list[#list + 1] = span end
  return list
end

describe("CapturePostDfsIndexInSpans", function()
  it("numbers operators before their arguments, and shared nodes once", function()
    assert.same({ "0:4", "4:6", "5:6", "6:7" }, spans(captured [[
def @main(%x: float32) { %0 = exp(%x); add(tanh(%0), %0) }]]))
  end)

  it("numbers a let's value before its variable, and lets from the inside out", function()
    local mod = captured [[
def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); add(%a, %b) }]]
    assert.same({ "0:2", "3:7", "2:3", "5:7", "4:5", "7:8" }, spans(mod))
  end)

  it("passes over a function's variable in its own value", function()
    local mod = captured [[
def @main(%n: int32, %b: bool) {
  let %f = fn (%i: int32) -> int32 { if (%b) { %f(%i) } else { %i } };
  %f(%n)
}]]
    assert.same({ "0:7", "1:4", "6:7", "2:4", "3:4", "5:6", "7:8" }, spans(mod))
  end)

  it("writes -1 for what has no post-dominator", function()
    local mod = captured [[
def @main(%x: float32) { let %r = ref(%x); let %u = ref_write(%r, %x); ref_read(%r) }]]
    assert.same({ "0:-1", "2:-1", "4:-1" }, spans(mod))
    assert.equal(tostring(mod), tostring(pl.parse(tostring(mod))))
  end)

  it("lets the data of a match go to the variables of its patterns", function()
    local mod = captured [[
type Pair[A] { Two(A, A), None, }
def @main(%p: Pair[float32], %x: float32) {
  match (%p) { Two(%a, %b) => { add(%a, %b) }, None => { %x } }
}]]
    assert.same({ "0:5", "1:6", "2:5", "3:5", "5:6" }, spans(mod))
  end)

  it("counts every function from 0 on, and leaves external ones alone", function()
    local mod = captured [[
def @f(%x: float32) { exp(%x) }
def @g(%x: float32, Compiler="c") { exp(%x) }]]
    assert.same({ "0:2", "2:3" }, spans(mod))
  end)

  it("is a change although the program stays equal, and none the second time", function()
    local before = assert(pl.parse(HEAD .. "def @main(%x: float32) { exp(%x) }"))
    local pass = pl.passes.CapturePostDfsIndexInSpans()
    local after = pass(before)
    assert.is_true(pl.report()[1].changed)
    assert.is_nil(pl.report()[1].counts["equal copy"])
    assert.not_equal(before, after)
    assert(pl.verify(after))
    assert.is_true(pl.equal(before, after))
    assert.is_nil(tostring(before):find("span=", 1, true))
    assert.equal(after, pass(after))
    assert.is_false(pl.report()[1].changed)
  end)

  it("gives each of several equal functions its spans from the cache, too", function()
    local context = pl.context { config = { cache = 1000000 } }
    local pass = pl.passes.CapturePostDfsIndexInSpans()
    local mod = assert(pl.parse(HEAD .. "def @main(%x: float32) { exp(%x) }"))
    local first, second = pl.with(context, pass, mod), pl.with(context, pass, mod)
    assert.equal(1, pl.report()[1].counts.cached)
    local other = pl.with(context, pass,
      assert(pl.parse(HEAD .. "\n\ndef @main(%x: float32) { exp(%x) }")))
    for _, one in ipairs { first, second, other } do
      assert.same({ "0:2", "2:3" }, spans(one))
    end
  end)

  it("is linear, also in nested functions and long chains", function()
    local x = pl.var("x", "float32")
    local e = x
    for _ = 1, 50000 do e = pl.op.exp(e) end
    local mod = pl.passes.CapturePostDfsIndexInSpans()(pl.module { main = pl.func({ x }, e) })
    local text = tostring(mod)
    assert.truthy(text:find("span=index:50001:50002", 1, true))
  end)
end)
