-- node:with{...} of each field of each kind, generated from ir/graph/kinds.def: the copy
-- differs from the node in that field only, with the old value it is equal to the
-- node again, and with the value that it has already it is the node itself. The
-- nodes are those of the programs in kinds.lua and kinds_loop.lua.

local pl = require "perilune"
local core = require "perilune.core"

local ir, tir = pl.ir, pl.tir

local programs = {}
for _, part in ipairs { "spec.ir.kinds", "spec.ir.kinds_tir" } do
  for name, row in pairs(require(part)) do programs[name] = row end
end

local x = pl.var("x", "Tensor[(2, 2), float32]")

-- By kind and field: nodes that have such a field, or one that may be changed.
local nodes = {
  ["Call.callee"] = function()
    return pl.call(pl.var("f", pl.type "fn (int32) -> int32"), { pl.const(1, "int32") })
  end,
  ["Call.attrs"] = function() return pl.op.nn.softmax(x, { axis = 1 }) end,
  ["Call.type_args"] = function()
    local f = pl.global("f", pl.type "fn [A, B](A) -> A")
    return pl.call(f, { pl.const(1, "int32") }, nil, { "int32", "float32" })
  end,
  ["Reduce.value_index"] = function()
    local v = {}
    for k = 1, 6 do v[k] = tir.Var("v" .. k, "float32") end
    local zero = tir.const(0.0)
    local pair = tir.CommReducer({ v[1], v[2] }, { v[3], v[4] },
      { tir.Add(v[1], v[3]), tir.Add(v[2], v[4]) }, { zero, zero })
    return tir.Reduce(pair, { v[5], v[6] }, { tir.IterVar({ 0, 8 }, tir.Var "k", 2) })
  end,
  ["Function.ret_type"] = function() return pl.func({}, pl.call(pl.global "f", {})) end,
}

-- A node of that kind as its program has it.
local function node_of(kind, field)
  local make = field and nodes[kind .. "." .. field]
  if make then return make() end
  local built = programs[kind].build()
  local root = getmetatable(built) == "perilune.Module" and built.main or core.seal(built)
  if root.kind == kind then return root end
  for node in root:nodes() do
    if node.kind == kind then return node end
  end
end

-- ------------------------------------------------------------- other values

local i = tir.Var("i")
local function region(buffer) return tir.BufferRegion(buffer, { { 1, 2 } }) end

-- By kind and field, where the type of a value does not say it.
local given = {
  ["Call.op"] = function() return pl.op.exp end,
  ["Call.attrs"] = function() return { axis = 0 } end,
  ["Call.type_args"] = function(old) return { old[1], pl.type "int8" } end,
  ["Function.params"] = function() return { pl.var "other" } end,
  ["Function.attrs"] = function() return { Inline = 1 } end,
  ["Function.ret_type"] = function() return "int32" end,
  ["Function.type_params"] = function() return { ir.TypeVar "A" } end,
  ["Match.clauses"] = function(old) return { old[1], old[1] } end,
  ["Clause.lhs"] = function() return ir.PatternWildcard() end,
  ["PatternConstructor.patterns"] = function(old) return { old[1] } end,
  ["LetBlock.body"] = function() return pl.let(pl.var "u", 3, 4) end,
  ["StringImm.value"] = function() return "other" end,
  ["IntImm.dtype"] = function() return "int16" end,
  ["FloatImm.dtype"] = function() return "float64" end,
  ["Cast.dtype"] = function() return "int8" end,
  ["PrimCall.dtype"] = function() return "float64" end,
  ["PrimCall.builtin"] = function() return "cos" end,
  ["CommReducer.lhs"] = function() return { tir.Var("c", "float32") } end,
  ["Reduce.combiner"] = function(old)
    return tir.CommReducer(old.lhs, old.rhs, { tir.Max(old.lhs[1], old.rhs[1]) },
      old.identity_element)
  end,
  ["Reduce.init"] = function() return { tir.const(2.0) } end,
  ["Reduce.condition"] = function() return tir.const(false) end,
  ["IterVar.dom"] = function() return { tir.Range(0, 3) } end,
  ["IterVar.attrs"] = function() return { thread_tag = "threadIdx.z" } end,
  ["Buffer.strides"] = function() return { tir.const(2) } end,
  ["Buffer.dtype"] = function() return "int8" end,
  ["Buffer.attrs"] = function() return { data_alignment = 128 } end,
  ["AttrStmt.node"] = function() return i end,
  ["AttrStmt.attrs"] = function() return { attr_key = "other" } end,
  ["AttrStmt.value"] = function() return tir.const(9) end,
  ["AssertStmt.message"] = function() return tir.StringImm "other" end,
  ["ProducerRealize.attrs"] = function() return { storage_scope = "local" } end,
  ["Allocate.attrs"] = function() return { annotations = { a = 1 } } end,
  ["AllocateConst.attrs"] = function() return { annotations = { a = 1 } } end,
  ["For.attrs"] = function() return { annotations = { a = 1 } } end,
  ["For.thread"] = function() return { tir.IterVar(nil, tir.Var "t", 1, "threadIdx.x") } end,
  ["Block.attrs"] = function() return { name_hint = "other" } end,
  ["PrimFunc.attrs"] = function() return { global_symbol = "other" } end,
  ["PrimFunc.ret_type"] = function() return "int32" end,
  ["PrimFunc.params"] = function(old) return { old[1], i } end,
}

local function other_buffer(node)
  local shape = {}
  for k = 1, #node.shape do shape[k] = k + 2 end
  return tir.decl_buffer(shape, node.dtype, "other")
end

local stmts, relay_patterns = {}, {}
for _, kind in ipairs(ir.kinds()) do
  stmts[kind.name] = kind.class == "stmt"
  relay_patterns[kind.name] = kind.class == "pattern"
end

-- Of a Node: one of the same sort that is not equal to it.
local function other_node(node)
  if node.kind == "Buffer" then return other_buffer(node) end
  if node.kind == "Range" then return tir.Range(1, 9) end
  if node.kind == "IterVar" then return tir.IterVar({ 0, 5 }, tir.Var "k2", node.iter_type) end
  if node.kind == "BufferRegion" then return region(node.buffer) end
  if node.kind == "Block" then return node:with { attrs = { name_hint = "other" } } end
  if stmts[node.kind] then return tir.Evaluate(77) end
  if relay_patterns[node.kind] then return ir.PatternVar(pl.var "pattern") end
  if node.dtype == "bool" then return tir.Var("flag", "bool") end
  if node.dtype and node.kind ~= "Var" then
    return tir.const(7, node.dtype)
  end
  return pl.var("other", node.type)
end

local function other_value(kind, field, old)
  local make = given[kind .. "." .. field]
  if make then return make(old) end
  local sort = ir.kind_of(old)
  if sort == "Node" then return other_node(old) end
  if sort == "Type" then return pl.type "Tensor[(7), float64]" end
  if sort == "Tensor" then return pl.tensor({ 9, 9, 9 }, "float32") end
  if sort == "string" then return "other" end
  if sort == "boolean" then return not old end
  if sort == "number" then return old + 1 end
  if sort == "table" and old[1] then
    local list = table.move(old, 1, #old, 1, {})
    list[1] = other_node(old[1])
    return list
  end
end

-- ------------------------------------------------------------------- checks

local function same(a, b)
  local sort = ir.kind_of(a)
  if sort ~= ir.kind_of(b) then return false end
  if sort == "Attrs" then return tostring(a) == tostring(b) end
  if sort == "table" then
    local all = #a == #b
    for k = 1, #a do all = all and same(a[k], b[k]) end
    return all
  end
  return pl.equal(a, b)
end

-- What equality does not look at: names, what is defined and corresponds.
local not_compared = {
  ["GlobalVar.type"] = true, ["Buffer.name"] = true, ["Clause.rhs"] = true,
  ["IterVar.var"] = true, ["Buffer.data"] = true, ["Allocate.buffer_var"] = true,
  ["AllocateConst.buffer_var"] = true,
}

-- Fields that say the same as another one, or follow from it.
local follows = {
  Call = { op = "callee", callee = "op", type_args = "attrs" },
  Var = { type = "dtype" },
  Let = { var = "body" }, PrimLet = { var = "body" }, LetStmt = { var = "body" },
}

for _, row in ipairs(ir.kinds()) do
  local kind = row.name
  describe("a changed copy of a " .. kind, function()
    for _, field in ipairs(ir.fields(kind)) do
      it("differs in its " .. field .. ", and is the same again", function()
        local node = node_of(kind, field)
        local old = node[field]
        if old ~= nil then assert.is_true(rawequal(node, node:with { [field] = old })) end
        local value = other_value(kind, field, old)
        assert(value ~= nil, "spec/ir/changed_copies_spec.lua has no other value")
        local copy = node:with { [field] = value }
        assert.equal(kind == "LetBlock" and "Let" or kind, copy.kind)
        assert.is_false(same(old, copy[field]))
        if not not_compared[kind .. "." .. field] then assert.is_false(pl.equal(copy, node)) end
        for _, name in ipairs(ir.fields(kind)) do
          if name ~= field and (follows[kind] or {})[field] ~= name then
            assert(same(node[name], copy[name]), name .. " differs too")
          end
        end
        -- A changed Var is another one, attributes are merged, a LetBlock's copy is a Let.
        if old ~= nil and kind ~= "Var" and field ~= "attrs" and kind ~= "LetBlock" then
          pl.assert_equal(copy:with { [field] = old }, node)
        end
      end)
    end

    it("has no other fields", function()
      local node = node_of(kind)
      local ok, message = pcall(node.with, node, { nothing = 1 })
      assert.is_false(ok)
      assert.matches(#ir.fields(kind) > 0 and "has no field 'nothing'" or "has no changed copies",
        tostring(message))
    end)
  end)
end

describe("pl.ir", function()
  it("has a constructor for each kind, and lists its fields", function()
    for _, row in ipairs(ir.kinds()) do
      assert(ir[row.name], "pl.ir has no constructor for a " .. row.name)
      assert.is_table(ir.fields(row.name))
    end
    assert.error_matches(function() ir.fields "Lett" end,
      "no kind is called 'Lett'; did you mean 'Let'?", 1, true)
    assert.error_matches(function() ir.LetBlock(pl.var "x") end, "a LetBlock is made of a Let")
  end)
end)
