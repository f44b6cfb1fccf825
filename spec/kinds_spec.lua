-- Every kind of Relay's nodes, from kinds.def: built from Lua, printed, parsed,
-- hashed, compared, visited, mutated, verified. The programs are in kinds.lua;
-- a kind that has none is a failure here. Of the loop level functions are here;
-- what they are made of has specs of its own.

local pl = require "perilune"
local rows = require "spec.kinds"

local kinds = {}
for _, kind in ipairs(pl.ir.kinds()) do
  if kind.class == "expr" or kind.class == "pattern" then kinds[kind.name] = kind end
end

local function as_module(program)
  return getmetatable(program) == "perilune.Module" and program
    or pl.module { main = program }
end

-- How many nodes of that kind lie in the program's main function.
local function count(mod, name)
  local n = mod.main.kind == name and 1 or 0
  for node in mod.main:nodes() do
    if node.kind == name then n = n + 1 end
  end
  return n
end

describe("the table of kinds", function()
  it("has a program for each kind, and for no other", function()
    for name in pairs(kinds) do
      assert(rows[name], "spec/kinds.lua has no program for the kind " .. name)
    end
    for name in pairs(rows) do
      assert(kinds[name], "spec/kinds.lua has a program for a kind that is not there: " .. name)
    end
  end)

  it("has a sentence on each kind", function()
    for name, kind in pairs(kinds) do
      assert.matches("%.$", kind.doc, 1, false, name .. " has no sentence")
    end
  end)
end)

for name in pairs(kinds) do
  describe("the kind " .. name, function()
    local row = rows[name]
    local mod = row and as_module(row.build())
    local same = row and as_module(row.build())
    local other = row and as_module(row.build(true))

    it("is built from Lua", function()
      assert(row, "there is no program for it")
      assert.is_true(count(mod, name) > 0)
    end)

    it("is printed", function()
      assert.matches(row.text, tostring(mod), 1, true)
    end)

    it("is read back as it was", function()
      local again, diag = pl.parse(tostring(mod))
      if row.unread then
        assert.is_true(not again or not pl.equal(again, mod),
          "its text is read back: " .. row.unread)
        return
      end
      assert(again, tostring(diag))
      pl.assert_equal(again, mod, { map_free_vars = true })
    end)

    it("is hashed and compared", function()
      local mapped = { map_free_vars = true }
      pl.assert_equal(mod, same, mapped)
      assert.equal(pl.hash(mod, mapped), pl.hash(same, mapped))
      assert.is_false(pl.equal(mod, other, mapped))
      assert.is_false(pl.equal(other, mod, mapped))
      assert.not_equal(pl.hash(mod, mapped), pl.hash(other, mapped))
      assert.is_string((pl.mismatch(mod, other, mapped)))
    end)

    it("is visited", function()
      local calls = 0
      pl.visitor { [name] = function() calls = calls + 1 end } (mod.main)
      assert.is_true(calls > 0)
    end)

    it("is mutated", function()
      local calls = 0
      local mutator = pl.mutator { [name] = function() calls = calls + 1 end }
      assert.equal(mod, mutator(mod))
      assert.is_true(calls > 0)
      local rebuilt = pl.mutator { [name] = function(_, rebuild)
        return rebuild and rebuild() or nil
      end } (mod)
      pl.assert_equal(rebuilt, mod, { map_free_vars = true })
    end)

    it("is verified", function()
      assert(pl.verify(mod.main))
      assert(pl.well_formed(mod.main))
    end)
  end)
end
