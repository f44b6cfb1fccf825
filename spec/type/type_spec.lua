-- Types as Lua sees them: pl.type.

local pl = require "perilune"

describe("a type", function()
  it("reads its text and prints it again", function()
    for _, text in ipairs {
      "Tensor[(1, 3, 224, 224), float32]", "Tensor[(?, 64), float16]", "float32", "bool",
      "(Tensor[(1), int64], float32)", "fn (Tensor[(2), float32]) -> Tensor[(2), float32]",
    } do
      assert.equal(text, tostring(pl.type(text)))
    end
  end)

  it("is one object, whatever its text looked like", function()
    assert.equal(pl.type "Tensor[(N,4),float32]", pl.type " Tensor [ ( N , 4 ) , float32 ] ")
    assert.equal(pl.type "Tensor[(N+1-1), int8]", pl.type { shape = { "N" }, dtype = "int8" })
    assert.are_not.equal(pl.type "Tensor[(N), int8]", pl.type "Tensor[(M), int8]")
    local seen = { [pl.type "float32"] = true }
    assert.is_true(seen[pl.type "Tensor[(), float32]"])
  end)

  it("tells its parts", function()
    local t = pl.type "Tensor[(N, 2*N, ?, 7), float32]"
    assert.equal("tensor", t.kind)
    assert.equal("float32", t.dtype)
    assert.equal(4, t.rank)
    assert.equal("N", t.shape[1])
    assert.equal("?", t.shape[3])
    assert.equal(7, t.shape[4])
    local pair = pl.type "(float32, seq(int64))"
    assert.equal("tuple", pair.kind)
    assert.equal("sequence", pair.parts[2].kind)
    assert.equal(pl.type "int64", pair.parts[2].parts[1])
  end)

  it("of unknown rank has no shape", function()
    local t = pl.type "Tensor[*, float32]"
    assert.is_nil(t.rank)
    assert.is_nil(t.shape)
    assert.equal("float32", t.dtype)
  end)

  it("that is no type raises and says where", function()
    for _, text in ipairs {
      "", "Tensor", "Tensor[", "Tensor[(1, 2), float33]", "Tensor[(1, 2) float32]", "(float32",
      "Tensor[(-1), int8]", "float32 float32", "fn (float32)",
      "Tensor[(99999999999999999999), int8]",
      ("("):rep(1000), "Tensor[(" .. ("("):rep(1000),
      "Tensor[(1, 2), float32]\0",
    } do
      local ok, diag = pcall(pl.type, text)
      assert.is_false(ok, text)
      assert.is_truthy(tostring(diag):find("type", 1, true), text)
    end
  end)

  it("has no writable fields", function()
    assert.has_error(function() pl.type("float32").dtype = "int8" end)
  end)
end)
