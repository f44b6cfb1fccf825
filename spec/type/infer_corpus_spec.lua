-- The modules of the corpus that were printed before they were typed: inference finds
-- the very types that TVM 0.14 found, as its comments in the typed modules tell.

local pl = require "perilune"

local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local corpus = shared .. "/conformance/relay-text/"

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- What is compared elsewhere, or what TVM does not type.
local exceptions = {
  ["func_attrs.relay"] = "TVM prints attributes of functions in the order of its hash table",
  ["op_as_value.relay"] = "TVM cannot type an operator that is a value",
  ["references.relay"] = "TVM cannot read the types of references that it prints",
}

local function without_places(text) return (text:gsub(" span=[^ ]*", "")) end

describe("inference over the corpus", function()
  local index = read(corpus .. "INDEX.tsv")
  if not index then
    pending "the corpus is not there"
    return
  end
  for name in index:gmatch "untyped/([%w_]+%.relay)" do
    local why = exceptions[name]
    it(("types %s%s"):format(name, why and ", of which TVM's types are not known" or ""),
      function()
        local mod = pl.parse(read(corpus .. "untyped/" .. name), name)
        if not mod then return assert(why) end
        local typed = assert(pl.infer_type(mod))
        assert.is_true(pl.verify(typed))
        assert.equal(typed, (pl.infer_type(typed)))
        if why then return end
        assert.equal(without_places(read(corpus .. "small/" .. name)),
          without_places(tostring(typed)))
      end)
  end

  for name in index:gmatch "adt/([%w_]+%.relay)" do
    it("finds the types of " .. name .. " that its comments tell", function()
      local typed = assert(pl.infer_type(assert(pl.parse(read(corpus .. "adt/" .. name), name))))
      assert.equal(without_places(read(corpus .. "adt/" .. name)), without_places(tostring(typed)))
    end)
  end
end)
