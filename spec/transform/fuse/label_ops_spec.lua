-- LabelOps: a hash and the layouts of functions as their attributes.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

local function label(text) return pl.passes.LabelOps()(assert(pl.parse(HEAD .. text))) end

-- The functions inside of main by their first operator.
local function inside(mod)
  local list = {}
  for node in mod.main:nodes() do
    if node.kind == "Function" and node ~= mod.main then
      for part in node:nodes() do
        if part.kind == "Call" and part.op then list[part.op.name] = node.attrs end
      end
    end
  end
  return list
end

describe("LabelOps", function()
  it("gives functions a hash of 16 digits, the same for equal ones", function()
    local mod = label [[
def @f(%x: float32) { exp(%x) }
def @main(%x: float32) {
  %0 = fn (%p: float32, Primitive=1) { exp(%p) };
  %1 = fn (%q: float32, Primitive=1) { tanh(%q) };
  if (less(%x, 1f)) { %0(%x) }
  else { %2 = fn (%r: float32, Primitive=1) { exp(%r) }; %2(%1(%x)) }
}]]
    local hashes = { mod.main.attrs.hash }
    for node in mod.main:nodes() do
      if node.kind == "Function" then
        assert.truthy(node.attrs.hash:find("^" .. ("%x"):rep(16) .. "$"))
        hashes[#hashes + 1] = node.attrs.hash
      end
    end
    assert.equal(4, #hashes)
    local tanh = inside(mod).tanh.hash
    local equal = {}
    for _, hash in ipairs(hashes) do equal[hash] = (equal[hash] or 0) + 1 end
    assert.equal(1, equal[tanh])
    assert.equal(2, equal[inside(mod).exp.hash])
    assert.equal(1, equal[mod.main.attrs.hash])
    assert.not_equal(mod.main.attrs.hash, mod.f.attrs.hash)
  end)

  it("hashes operators, attributes, constants, types and which variables are used", function()
    local seen, n = {}, 0
    for _, text in ipairs {
      "fn (%x: float32, %y: float32) { add(%x, %y) }",
      "fn (%x: float32, %y: float32) { add(%y, %x) }",
      "fn (%x: float32, %y: float32) { add(%x, %x) }",
      "fn (%x: float32, %y: float32) { subtract(%x, %y) }",
      "fn (%x: float16, %y: float16) { add(%x, %y) }",
      "fn (%x: float32, %y: float32) { add(%x, 1f) }",
      "fn (%x: float32, %y: float32) { add(%x, 2f) }",
      "fn (%x: float32, %y: float32) { clip(%x, a_min=0f, a_max=1f) }",
      "fn (%x: float32, %y: float32) { clip(%x, a_min=0f, a_max=2f) }",
      "fn (%x: float32, %y: float32) { let %z = add(%x, %y); %z }",
      "fn (%x: float32, %y: float32) { if (less(%x, %y)) { %x } else { %y } }",
      "fn (%x: float32, %y: float32) { if (less(%x, %y)) { %y } else { %x } }",
      "fn (%x: float32, %y: float32) { %0 = fn (%z: float32) { %x }; %0(%y) }",
      "fn (%x: float32, %y: float32) { %0 = fn (%z: float32) { %z }; %0(%y) }",
      "fn (%x: float32, %y: float32, Primitive=1) { add(%x, %y) }",
    } do
      local mod = pl.passes.LabelOps()(pl.module { main = assert(pl.parse_expr(text)) })
      local again = pl.passes.LabelOps()(pl.module { main = assert(pl.parse_expr(text)) })
      assert.equal(mod.main.attrs.hash, again.main.attrs.hash)
      assert.is_nil(seen[mod.main.attrs.hash], text)
      seen[mod.main.attrs.hash], n = true, n + 1
    end
    assert.equal(15, n)
  end)

  it("says the layouts of the calls inside, defaults too", function()
    local mod = label [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  %0 = fn (%p: Tensor[(1, 4, 8, 8), float32], Primitive=1) {
    layout_transform(%p, src_layout="NCHW", dst_layout="NCHW4c") };
  %1 = fn (%p: Tensor[(1, 4, 8, 8), float32], %q: Tensor[(4, 4, 3, 3), float32], Primitive=1) {
    nn.conv2d(%p, %q, padding=[0, 0, 0, 0]) };
  (%0(%x), %1(%x, %w))
}]]
    local attrs = inside(mod)
    assert.equal("NCHW4c", attrs.layout_transform.dst_layout)
    assert.equal("NCHW", attrs.layout_transform.src_layout)
    assert.equal("NCHW", attrs["nn.conv2d"].data_layout)
    assert.equal("OIHW", attrs["nn.conv2d"].kernel_layout)
    assert.equal("", attrs["nn.conv2d"].out_layout)
    assert.is_nil(attrs["nn.conv2d"].dst_layout)
    assert.equal("OIHW", mod.main.attrs.kernel_layout)
    assert.is_nil(mod.main.attrs.src_layout)
  end)

  it("leaves labelled functions as they are", function()
    local mod = label "def @main(%x: float32) { %0 = fn (%p: float32) { exp(%p) }; %0(%x) }"
    assert.equal(mod, pl.passes.LabelOps()(mod))
    local own = label 'def @main(%x: float32, hash="mine") { exp(%x) }'
    assert.equal("mine", own.main.attrs.hash)
  end)

  it("is linear in nested functions", function()
    local e = pl.var("x", "float32")
    local free = e
    for _ = 1, 3000 do
      local y = pl.var("y", "float32")
      e = pl.ir.Call(pl.func({ y }, pl.op.add(e, y)), { free })
    end
    local mod = pl.passes.LabelOps()(pl.module { main = pl.func({ free }, e) })
    assert(pl.verify(mod))
    assert.equal(16, #mod.main.attrs.hash)
  end)
end)
