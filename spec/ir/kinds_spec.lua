-- Every kind of Relay's nodes, from ir/graph/kinds.def: built from Lua, printed, parsed,
-- hashed, compared, visited, mutated, verified; so is every kind of the loop
-- level. The programs are in kinds.lua and kinds_tir.lua; a kind that has none
-- is a failure here.

local pl = require "perilune"
local core = require "perilune.core"

local rows = {}
for _, part in ipairs { "spec.ir.kinds", "spec.ir.kinds_tir" } do
  for name, row in pairs(require(part)) do
    assert(not rows[name], name .. " has two programs")
    rows[name] = row
  end
end

local kinds = {}
for _, kind in ipairs(pl.ir.kinds()) do kinds[kind.name] = kind end

-- What text says of these alone reads as another program.
local in_root = "a block is in the root block of a function, which its text leaves out"
local undeclared = "what is not declared is read as a buffer"
local other_text = { BufferRegion = in_root, AllocBuffer = in_root, BlockInit = in_root,
  MatchBuffer = in_root, BlockReads = in_root, Block = in_root, BlockWrites = in_root,
  BlockRealize = in_root,
  ProducerLoad = undeclared, ProducerStore = undeclared,
  SeqStmt = "a text of statements has no first line that says what it is",
  AllocateConst = "the scope of the pointer is not in the text" }

local functions = { Function = true, PrimFunc = true }

-- A function is the main one of a module; what is none is a program of its own.
local function as_program(built)
  if getmetatable(built) == "perilune.Module" then return built end
  return functions[built.kind] and pl.module { main = built } or core.seal(built)
end

-- The node that a program is about.
local function root_of(program)
  return getmetatable(program) == "perilune.Module" and program.main or program
end

-- How many nodes of that kind lie in the program.
local function count(program, name)
  local root = root_of(program)
  local n = root.kind == name and 1 or 0
  for node in root:nodes() do
    if node.kind == name then n = n + 1 end
  end
  return n
end

describe("the table of kinds", function()
  it("has a program for each kind, and for no other", function()
    for name in pairs(kinds) do
      assert(rows[name], "spec/ir/kinds.lua has no program for the kind " .. name)
    end
    for name in pairs(rows) do
      assert(kinds[name], "spec/ir/kinds.lua has a program for a kind that is not there: " .. name)
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
    local mod = row and as_program(row.build())
    local same = row and as_program(row.build())
    local other = row and as_program(row.build(true))

    it("is built from Lua", function()
      assert(row, "there is no program for it")
      assert.is_true(count(mod, name) > 0)
    end)

    it("is printed", function()
      assert.matches(row.text, tostring(mod), 1, true)
    end)

    it("is read back as it was", function()
      local again, diag = pl.parse(mod:text())
      local reason = row.unread or other_text[name]
      if reason then
        assert.is_true(not again or not pl.equal(again, mod),
          "its text is read back: " .. reason)
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
      pl.visitor { [name] = function() calls = calls + 1 end } (root_of(mod))
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
      assert(pl.verify(root_of(mod)))
      assert(pl.well_formed(root_of(mod)))
    end)
  end)
end

-- ------------------------------------------- the loop level's own functions

-- What stands for a node of TIR when all of its kind are changed.
local function changed(node, row, class)
  if row.with then return row.with(node) end
  if class == "stmt" then return pl.tir.Evaluate(7) end
  return pl.tir.const(node.dtype == "bool" or 7, node.dtype)
end

local function calls_of(order, root, name)
  local calls = 0
  order(root, function(node)
    if node.kind == name then calls = calls + 1 end
  end)
  return calls
end

for name, kind in pairs(kinds) do
  local row = rows[name]
  if row and (kind.class == "prim" or kind.class == "stmt") then
    describe("the kind of TIR " .. name, function()
      local program = as_program(row.build())
      local root = root_of(program)

      it("is visited by pl.tir, or passed over", function()
        for _, order in ipairs { pl.tir.post_order, pl.tir.pre_order } do
          assert.equal(row.aside, calls_of(order, root, name) == 0 or nil)
        end
      end)

      it("is changed by a mutator", function()
        local out = pl.mutator {
          [name] = function(node) return changed(node, row, kind.class) end,
        } (program)
        assert.is_false(pl.equal(out, program, { map_free_vars = true }))
        assert(pl.verify(root_of(out)))
      end)

      it("is transformed by pl.tir", function()
        local calls = 0
        local function same(node)
          calls = calls + 1
          return node
        end
        assert.is_true(rawequal(root, pl.tir.transform(root, nil, same, { name })))
        if calls == 0 then return assert.is_true(row.aside) end
        local out = core.seal(pl.tir.transform(root, nil, function(node)
          return changed(node, row, kind.class)
        end, { name }))
        assert.is_false(pl.equal(out, root, { map_free_vars = true }))
        assert(pl.verify(out))
      end)
    end)
  end
end
