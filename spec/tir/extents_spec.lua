-- Loops and memory of negative and of huge extents, and accesses out of bounds.
-- luacheck: no max line length
local pl = require "perilune"
local tir = pl.tir

local function parse(body, params)
  local text = ("from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((16,), \"float32\")%s):\n%s")
    :format(params or "", body:gsub("[^\n]+", "    %0"))
  return assert(tir.parse(text))
end

local function zeros() return pl.tensor({ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, "float32") end

local passes = {}
for name in pairs(pl.passes) do
  if name:find "^tir%." then passes[#passes + 1] = name end
end
table.sort(passes)

local options = { ["tir.LiftAttrScope"] = { attr_key = "k" }, ["tir.BindTarget"] = { target = "c" } }

describe("loops without rounds", function()
  for what, head in pairs {
    serial = "range(-5)", smallest = "range(T.int64(-9223372036854775807))", unrolled = "T.unroll(-5)",
    vectorized = "T.vectorized(-4)", parallel = "T.parallel(-4)", from = "range(7, 3)",
  } do
    it("do nothing after each pass: " .. what, function()
      local mod = parse(("for i in %s:\n    A[0] = T.float32(1)\n"):format(head))
      for _, name in ipairs(passes) do
        local made, out = pcall(function() return pl.passes[name](options[name])(mod) end)
        -- A pass may refuse, and says its name, or that of the step that does.
        assert.is_truthy(made or tostring(out):find("pass 'tir.", 1, true), tostring(out))
        if made and not name:find "API" then
          assert.same(zeros():to_table(), tir.run(out, { zeros() })[1]:to_table(), name)
        end
      end
    end)
  end

  it("do nothing if their extent is a variable", function()
    local mod = parse("for i in range(n):\n    A[i] = T.float32(1)\n", ", n: T.int32")
    for _, one in ipairs { mod, pl.lower(mod) } do
      assert.same(zeros():to_table(), tir.run(one, { zeros(), -2147483648 })[1]:to_table())
    end
  end)
end)

describe("loops of many rounds", function()
  it("are no program that fills the memory", function()
    local mod = parse "for i in T.unroll(2147483647):\n    A[i % 16] = T.float32(1)\n"
    assert.error_matches(function() pl.passes["tir.UnrollLoop"]()(mod) end,
      "the 2147483647 rounds of the loop over 'i', written out, have more than 1048576 statements", 1, true)
    mod = parse "for i, j in T.grid(40000, 40000):\n    A[(i + j) % 16] = T.float32(1)\n"
    pl.with(pl.context { config = { ["tir.UnrollLoop"] = { auto_max_extent = 1000000, auto_max_step = 1000000 } } }, function()
      -- One of the loops fits, and not both.
      assert.is_true(#tostring(pl.passes["tir.UnrollLoop"]()(mod)) < 10000000)
    end)
    -- Marked only, it is as long as before.
    mod = parse "T.attr(0, \"pragma_unroll_explicit\", 0)\nfor i in T.unroll(2147483647):\n    A[i % 16] = T.float32(1)\n"
    assert.is_true(#tostring(pl.passes["tir.UnrollLoop"]()(mod)) < 1000)
  end)

  it("are lowered, and written as C", function()
    for _, head in ipairs { "range(2147483647)", "range(T.int64(9223372036854775807))", "T.parallel(2147483647)",
      "range(-2147483648, 2147483647)", "range(T.int64(9223372036854775800), T.int64(9223372036854775807))" } do
      local mod = parse(("for i in %s:\n    if i >= 0 and i < 16:\n        A[i] = T.float32(1)\n"):format(head))
      assert.is_truthy(pl.build(pl.lower(mod)):source():find("main", 1, true))
    end
  end)
end)

describe("memory of huge extents", function()
  it("is one extent in the wider dtype", function()
    local mod = parse [[
B = T.allocate([4611686018427387904, 4], "float32", "global")
B_1 = T.Buffer((4,), data=B)
B_1[0] = T.float32(1)
A[0] = B_1[0]
]]
    assert(tir.verify_well_formed(pl.passes["tir.FlattenBuffer"]()(mod).functions.main))
  end)

  it("keeps the ranges of blocks", function()
    local mod = parse [[
B = T.alloc_buffer((1000000, 1000000))
for i in range(4):
    with T.block("B"):
        vi = T.axis.spatial(4, i)
        T.reads()
        T.writes(B[vi, 0], A[vi])
        B[vi, 0] = T.float32(1)
        A[vi] = B[vi, 0]
]]
    local out = pl.passes["tir.CommonSubexprElimTIR"]()(mod)
    assert(tir.verify_well_formed(out.functions.main))
  end)
end)

describe("accesses out of bounds", function()
  it("are reported with buffer, dimension and index", function()
    local mod = parse "for i in range(20):\n    A[i] = T.float32(1)\n"
    assert.error_matches(function() tir.run(mod, { zeros() }) end,
      "out of bounds: index 16 of dimension 0 of buffer 'A', whose extent is 16", 1, true)
    mod = parse("for i in range(16):\n    A[i] = B[i // 4, i % 4 - 1]\n", ", B: T.Buffer((4, 4), \"float32\")")
    local B = pl.tensor({ { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, "float32")
    assert.error_matches(function() tir.run(mod, { zeros(), B }) end,
      "out of bounds: index -1 of dimension 1 of buffer 'B', whose extent is 4", 1, true)
  end)

  local checked = pl.context { config = { ["tir.instrument_bound_checkers"] = true } }

  -- Fails in the interpreter and as C from the first index that is too large.
  local function check_found(lowered, args, wrong)
    local built = pl.build(lowered, { asserts = true, run = "process" })
    for _, run in ipairs { built.main, function(...) return tir.run(lowered, { ... }) end } do
      assert.is_true(pcall(run, table.unpack(args)))
      assert.error_matches(function() run(table.unpack(wrong)) end, "OUT OF THE BOUNDS", 1, true)
    end
  end

  it("are found by the bound checker in loops, also of buffers with strides", function()
    local mod = parse("for i in range(n):\n    A[i] = T.float32(1)\n", ", n: T.int32")
    check_found(pl.with(checked, pl.lower, mod), { zeros(), 16 }, { zeros(), 17 })
    mod = parse([[
B = T.alloc_buffer((4, 4), strides=(8, 1))
for i in range(n):
    B[i, 3] = T.float32(1)
    A[i] = B[i, 3]
]], ", n: T.int32")
    check_found(pl.with(checked, pl.lower, mod), { zeros(), 4 }, { zeros(), 5 })
  end)

  it("are found by the bound checker in tensor expressions", function()
    local te = pl.te
    local n = te.var "n"
    local A = te.placeholder({ 16 }, "float32", "A")
    local C = te.compute({ n }, function(i) return A[i] end, "C")
    local lowered = pl.with(checked, pl.lower, te.create_schedule(C), { args = { A, C } })
    local function args(extent)
      return { zeros(), pl.tensor.random({ extent }, "float32", { seed = 1 }) }
    end
    check_found(lowered, args(16), args(17))
  end)

  -- A schedule of B = A + 1, C[i] = B[i] * B[i + 2], whose accesses all are inside.
  local function check_inside(change, config)
    local te = pl.te
    local A = te.placeholder({ 8, 4 }, "float32", "A")
    local B = te.compute({ 8, 4 }, function(i, j) return A(i, j) + 1 end, "B")
    local C = te.compute({ 6, 4 }, function(i, j) return B(i, j) * B(i + 2, j) end, "C")
    local s = te.create_schedule(C.op)
    change(s, B, C)
    config["tir.instrument_bound_checkers"] = true
    local lowered = pl.with(pl.context { config = config }, pl.lower, s, { args = { A, C } })
    assert.truthy(tostring(lowered):find("OUT OF THE BOUNDS", 1, true))
    local input = pl.tensor.random({ 8, 4 }, "float32", { seed = 1 })
    local rows = input:to_table()
    local out = tir.run(lowered, { input, pl.tensor.full(0, { 6, 4 }, "float32") })[2]:to_table()
    for i = 1, 6 do
      for j = 1, 4 do
        local expected = (rows[i][j] + 1) * (rows[i + 2][j] + 1)
        assert.is_true(math.abs(out[i][j] - expected) < 1e-5)
      end
    end
  end

  it("are not found by the bound checker where rows are padded", function()
    check_inside(function(s, B) s[B]:storage_align(B.op.axis[1], 8, 3) end, {})
  end)

  it("are not found by the bound checker in both halves of a double buffer", function()
    for split = 0, 2 do
      check_inside(function(s, B, C)
        s[B]:compute_at(s[C], C.op.axis[1])
        s[B]:double_buffer()
      end, { ["tir.InjectDoubleBuffer"] = { split_loop = split } })
    end
  end)

  it("are not found by the bound checker in memory that buffers of two sizes share", function()
    local mod = parse [[
B = T.allocate([16], "float32", "global")
B_1 = T.Buffer((16,), data=B)
C = T.allocate([4], "float32", "global")
C_1 = T.Buffer((4,), data=C)
for i in range(16):
    B_1[i] = A[i] + T.float32(1)
for i in range(16):
    A[i] = B_1[15 - i]
for i in range(4):
    C_1[i] = A[i]
for i in range(4):
    A[i] = C_1[3 - i]
]]
    local lowered = pl.with(checked, pl.lower, mod)
    assert.equal(1, select(2, tostring(lowered):gsub("T.allocate", "")))
    assert.equal(1.0, tir.run(lowered, { zeros() })[1]:to_table()[16])
  end)

  it("are found by the bound checker at any lane of an index", function()
    local mod = parse([[
for i in T.vectorized(4):
    A[i * i % n] = T.float32(1)
]], ", n: T.int32")
    check_found(pl.with(checked, pl.lower, mod), { zeros(), 16 }, { zeros(), -20 })
  end)
end)
