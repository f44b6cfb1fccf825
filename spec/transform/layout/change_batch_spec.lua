-- ChangeBatch: another batch size in the types of parameters.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local network = [[
def @main(%%x: Tensor[(%d, 3, 8, 8), float32], %%w: Tensor[(4, 3, 3, 3), float32]) {
  %%0 = nn.conv2d(%%x, %%w, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3]);
  let %%y = nn.relu(%%0);
  if (True) { add(%%y, %%y) } else { %%y }
}]]

local function of(batch) return network:format(batch) end

describe("ChangeBatch", function()
  it("gives a parameter another extent, and infers the types behind it", function()
    local pass = pl.passes.ChangeBatch { data = { x = 0 }, batch = 5 }
    local out = golden.becomes(pass, of(1), of(5), false)
    assert.equal("Tensor[(5, 4, 6, 6), float32]", tostring(out.main.body.type))
    assert.equal(out, pl.infer_type(out))
  end)

  it("has 16 as batch size, and axes from the end", function()
    golden.becomes(pl.passes.ChangeBatch { data = { x = 0 } }, of(1), of(16), false)
    golden.becomes(pl.passes.ChangeBatch { data = { x = -4 } }, of(1), of(16), false)
  end)

  it("takes several parameters, by name or as variables", function()
    local before = [[
def @main(%x: Tensor[(1, 3), float32], %n: Tensor[(3), float32], %y: Tensor[(2, 1), float32]) {
  (add(%x, %n), transpose(%y)) }]]
    local after = [[
def @main(%x: Tensor[(7, 3), float32], %n: Tensor[(3), float32], %y: Tensor[(2, 7), float32]) {
  (add(%x, %n), transpose(%y)) }]]
    golden.becomes(pl.pipeline "ChangeBatch{data={x=0,y=1},batch=7}", before, after, false)
    local mod = golden.module(before)
    local params = mod.main.params
    local pass = pl.passes.ChangeBatch { data = { [params[1]] = 0, [params[3]] = 1 }, batch = 7 }
    assert.equal("ChangeBatch{batch=7,data={x=0,y=1}}", tostring(pass))
    assert(pl.equal(pass(mod), golden.module(after)))
  end)

  it("keeps functions without such parameters, and the batch size that is wanted", function()
    golden.stays(pl.passes.ChangeBatch(), of(1))
    golden.stays(pl.passes.ChangeBatch { data = { q = 0 } }, of(1))
    golden.stays(pl.passes.ChangeBatch { data = { x = 0 }, batch = 1 }, of(1))
  end)

  it("refuses what does not fit", function()
    local function fails(options, text, why)
      local pass = pl.passes.ChangeBatch(options)
      assert.error_matches(function() pass(golden.module(text)) end, why)
    end
    fails({ data = { x = 4 } }, of(1), "parameter 'x' is .* it has no axis 4")
    fails({ data = { x = 0 } }, "def @main(%x: (float32, float32)) { %x.0 }", "has no axis 0")
    fails({ data = { x = 0 } },
      "def @main(%x: Tensor[(1, 3), float32]) { reshape(%x, newshape=[3]) }",
      "48 elements do not make a shape of 3")
    assert.error_matches(function() pl.passes.ChangeBatch { data = { x = "a" } } end,
      "'x' expects an integer")
    assert.error_matches(function() pl.passes.ChangeBatch { batch = -1 } end, "from 0 on")
    local body = golden.module(of(1)).main.body
    assert.error_matches(function() pl.passes.ChangeBatch { data = { [body] = 0 } } end,
      "names of attributes are strings")
  end)
end)
