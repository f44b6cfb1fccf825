-- transform_layout: TVM's test_transform_layout.py under the names of its tests, and the checks.

local pl = require "perilune"
local shaped = require "spec.te.shaped"

local te, tir = pl.te, pl.tir
local F = "float32"

local function fails(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err))
end

local function flat(value, out)
  out = out or {}
  if type(value) ~= "table" then out[#out + 1] = value end
  for _, part in ipairs(type(value) == "table" and value or {}) do flat(part, out) end
  return out
end

-- 1, 2, 3, ... in that shape.
local function counted(shape)
  local list, n = {}, 1
  for _, extent in ipairs(shape) do n = n * extent end
  for i = 1, n do list[i] = i * 1.0 end
  return shaped(list, shape)
end

-- The elements of a tensor of that shape in the order of a map.
local function laid(value, shape, map, physical)
  local out, index = {}, {}
  local function visit(part, level)
    if level > #shape then
      local to, at = { map(table.unpack(index)) }, 0
      for k, extent in ipairs(physical) do at = at * extent + to[k] end
      out[at + 1] = part
      return
    end
    for i, inner in ipairs(part) do
      index[level] = i - 1
      visit(inner, level + 1)
    end
  end
  visit(value, 1)
  return out
end

local function loops(mod)
  local extents = {}
  for list in tostring(mod):gmatch("for [^\n]- in [%w.]*%(([%d, ]+)%)") do
    for text in list:gmatch("%d+") do extents[#extents + 1] = math.tointeger(text) end
  end
  return extents
end

local function copy(shape)
  local A = te.placeholder(shape, F, "A")
  local B = te.compute(shape, function(...) return A:load(...) + 0 end, "B")
  return A, B, te.create_schedule(B.op)
end

local function split4(i) return i // 4, i % 4 end

describe("test_transform_layout", function()
  it("test_external_reshape", function()
    for _, laid_out in ipairs { { true, false }, { false, true }, { true, true } } do
      local A, B, s = copy { 24 }
      local function unpack_index(i) return i // 12, i // 4 % 3, i % 4 end
      if laid_out[1] then s[A]:transform_layout(unpack_index) end
      if laid_out[2] then s[B]:transform_layout(unpack_index) end
      local function shape_of(x) return x and { 2, 3, 4 } or { 24 } end
      local shapes = { shape_of(laid_out[1]), shape_of(laid_out[2]) }
      local mod = pl.passes["tir.ApplyLayoutTransforms"]()(s:to_module({ A, B }, "main"))
      local out = tir.run(mod, { counted(shapes[1]), counted(shapes[2]) })[2]:to_table()
      assert.same(counted(shapes[2]), out)
      out = tir.run(pl.lower(s, { args = { A, B } }), { counted(shapes[1]), counted(shapes[2]) })
      assert.same(counted(shapes[2]), out[2]:to_table())
    end
  end)

  it("test_internal_reshape", function()
    local A, B = copy { 24 }
    local C = te.compute({ 24 }, function(i) return B[{ i }] end, "C")
    local s = te.create_schedule(C.op)
    s[B]:transform_layout(function(i) return i // 12, i // 4 % 3, i % 4 end)
    local mod = s:to_module({ A, C }, "main")
    assert.matches("T.realize%(B%[0:24%]%)", tostring(mod))
    local text = tostring(pl.passes["tir.ApplyLayoutTransforms"]()(mod))
    assert.matches("T.realize%(B%[0:2, 0:3, 0:4%]%)", text)
    assert.is_nil(text:find("layout_transform_map", 1, true))
  end)

  it("test_2d_physical", function()
    for _, of in ipairs { {}, { A = true }, { B = true }, { A = true, B = true } } do
      local A, B, s = copy { 2, 3, 4 }
      local function apart(i, j, k) return i, j, te.AXIS_SEPARATOR, k end
      if of.A then s[A]:transform_layout(apart) end
      if of.B then s[B]:transform_layout(apart) end
      local text = tostring(pl.passes["tir.StorageFlatten"]()(s:to_module({ A, B }, "main")))
      local function index(is_apart)
        return is_apart and "%[%w+ %* 3 %+ %w+, %w+%]" or "%[%w+ %* 12 %+ %w+ %* 4 %+ %w+%]"
      end
      assert.matches("B[%w_]*" .. index(of.B) .. " = A[%w_]*" .. index(of.A), text)
    end
  end)

  -- Maps, the shapes that they make of (4, 6, 40), and what a fuse of the first two makes.
  local shape = { 4, 6, 40 }
  local maps = {
    { "reverse", function(i, j, k) return k, j, i end, { 40, 6, 4 } },
    { "flatten_all", function(i, j, k) return (i * 6 + j) * 40 + k end, { 960 } },
    { "factor_last_by_4", function(i, j, k) return i, j, k // 4, k % 4 end, { 4, 6, 10, 4 } },
  }

  it("test_tir_loop_order, test_te_loop_order", function()
    for _, b in ipairs(maps) do
      for _, a in ipairs { false, table.unpack(maps) } do
        local A, B, s = copy(shape)
        if a then s[A]:transform_layout(a[2]) end
        local axes = { s[B]:transform_layout(b[2]) }
        assert.equal(#b[3], #axes)
        for i, axis in ipairs(s[B].leaf_iter_vars) do
          assert.equal(axes[i], axis)
          assert.equal(b[3][i], axis.dom[1].extent.value)
        end
        assert.same(b[3], loops(s:to_module({ A, B }, "main")))
        local mod = pl.passes["tir.ApplyLayoutTransforms"]()(s:to_module({ A, B }, "main"))
        local x = counted(shape)
        assert.is_nil(tostring(mod):find("likely", 1, true))
        local given = a and laid(x, shape, a[2], a[3]) or flat(x)
        local out = tir.run(mod, { shaped(given, a and a[3] or shape), counted(b[3]) })
        assert.same(laid(x, shape, b[2], b[3]), flat(out[2]:to_table()))
      end
    end
  end)

  it("test_use_transformed_axes", function()
    for _, b in ipairs(maps) do
      local A, B, s = copy(shape)
      local axes = { s[B]:transform_layout(b[2]) }
      local reversed, expected = {}, {}
      for i = #axes, 1, -1 do
        reversed[#reversed + 1], expected[#expected + 1] = axes[i], b[3][i]
      end
      s[B]:reorder(table.unpack(reversed))
      assert.same(expected, loops(s:to_module({ A, B }, "main")))

      A, B, s = copy(shape)
      axes = { s[B]:transform_layout(b[2]) }
      s[B]:split(axes[#axes], { nparts = 2 })
      expected = table.move(b[3], 1, #b[3] - 1, 1, {})
      table.move({ 2, b[3][#b[3]] // 2 }, 1, 2, #expected + 1, expected)
      assert.same(expected, loops(s:to_module({ A, B }, "main")))

      A, B, s = copy(shape)
      axes = { s[B]:transform_layout(b[2]) }
      s[B]:fuse(axes[1], axes[2])
      expected = table.move(b[3], 2, #b[3], 1, {})
      if axes[2] then expected[1] = b[3][1] * b[3][2] else expected = { 960 } end
      assert.same(expected, loops(s:to_module({ A, B }, "main")))
    end
  end)

  it("test_lower, test_execute", function()
    for bits = 0, 15 do
      local A, B, s = copy { 16 }
      local of_a, of_b = bits & 1 > 0, bits & 2 > 0
      if of_a then s[A]:transform_layout(split4) end
      if of_b then s[B]:transform_layout(split4) end
      if bits & 4 > 0 then s:cache_read(A, "shared", { B }) end
      if bits & 8 > 0 then s:cache_write(B, "shared") end
      assert.is_truthy(pl.lower(s, { args = { A, B } }))
      local mod = pl.passes["tir.ApplyLayoutTransforms"]()(s:to_module({ A, B }, "main"))
      local shapes = { of_a and { 4, 4 } or { 16 }, of_b and { 4, 4 } or { 16 } }
      local out = tir.run(mod, { counted(shapes[1]), counted(shapes[2]) })[2]
      assert.same(counted(shapes[2]), out:to_table())
    end
  end)

  it("test_transform_with_reduction", function()
    local A, k = te.placeholder({ 16, 8 }, F, "A"), te.reduce_axis({ 0, 8 }, "k")
    local B = te.compute({ 16 }, function(i) return te.sum(A[{ i, k }], k) end, "B")
    local s = te.create_schedule(B.op)
    s[B]:transform_layout(split4)
    assert.same({ 4, 4, 8 }, loops(s:to_module({ A, B }, "main")))
    local mod = s:to_module({ A, B }, "main")
    local given = { counted { 16, 8 }, counted { 16 } }
    local plain = te.create_schedule(B.op):to_module({ A, B }, "main")
    assert.same(tir.run(plain, given)[2]:to_table(), tir.run(mod, given)[2]:to_table())
  end)

  it("test_size_one_buffer", function()
    for _, case in ipairs {
      { { 1, 8 }, function(n, i) return i, n end, { 8, 1 } },
      { { 1, 1, 8 }, function(i, j, k) return j, te.AXIS_SEPARATOR, i, k end, { 1, 1, 8 } },
      { { 1, 1, 8 }, function(i, j, k) return i, te.AXIS_SEPARATOR, j, k end, { 1, 1, 8 } },
      { { 1 }, function(i) return i end, { 1 } },
    } do
      local A, B, s = copy(case[1])
      s[B]:transform_layout(case[2])
      local mod = pl.passes["tir.ApplyLayoutTransforms"]()(s:to_module({ A, B }, "main"))
      local out = tir.run(mod, { counted(case[1]), counted(case[3]) })[2]:to_table()
      assert.same(flat(counted(case[1])), flat(out))
      assert.is_truthy(pl.lower(s, { args = { A, B } }))
    end
  end)

  it("test_non_divisible_transform_raises_error", function()
    local _, B, s = copy { 1, 3, 3 }
    fails("not bijective on the shape", function()
      s[B]:transform_layout(function(n, h, w) return n, h, w // 4, w % 4 end)
    end)
    assert.equal(0, s:n_steps())
  end)
end)

describe("transform_layout", function()
  -- Whatever is computed in loops of a layout is what the default schedule computes.
  local function keeps(s, args)
    local values = {}
    for i, tensor in ipairs(args) do
      local shape = {}
      for k, dim in ipairs(tensor.shape) do shape[k] = dim.value end
      values[i] = counted(shape)
    end
    local plain = te.create_schedule(args[#args].op):to_module(args, "main")
    local expected = tir.run(plain, values)[#args]:to_table()
    assert.same(expected, tir.run(s:to_module(args, "main"), values)[#args]:to_table())
  end

  local function chain()
    local A, B = copy { 6, 8 }
    local C = te.compute({ 4, 6 }, function(i, j)
      return B[{ i, j }] + B[{ i + 2, j + 1 }] * 2 - B[{ i + 1, j + 2 }]
    end, "C")
    return A, B, C, te.create_schedule(C.op)
  end

  it("of a stage that is computed in parts has guards where its map is no box", function()
    for _, map in ipairs {
      function(i, j) return i * 8 + j end, function(i, j) return j, i end,
      function(i, j) return j // 4, i // 2, j % 4, i % 2 end,
      function(i, j) return (i * 8 + j) // 16, (i * 8 + j) % 16 end,
    } do
      for level = 1, 2 do
        local A, B, C, s = chain()
        s[B]:transform_layout(map)
        s[B]:compute_at(s[C], C.op.axis[level])
        keeps(s, { A, C })
        local values = { counted { 6, 8 }, counted { 4, 6 } }
        local expected = tir.run(te.create_schedule(C.op):to_module({ A, C }, "main"), values)[2]
        assert.same(expected:to_table(),
          tir.run(pl.lower(s, { args = { A, C } }), values)[2]:to_table())
      end
    end
  end)

  it("of a consumer, whose producers are computed in the new loops", function()
    for _, map in ipairs {
      function(i, j) return i * 6 + j end, function(i, j) return j, i end,
      function(i, j) return i // 2, j // 3, i % 2, j % 3 end,
    } do
      local _, _, _, t = chain()
      for level = 1, select("#", t[t.outputs[1]]:transform_layout(map)) do
        local A, B, C, s = chain()
        local axes = { s[C]:transform_layout(map) }
        s[B]:compute_at(s[C], axes[level])
        keeps(s, { A, C })
      end
    end
  end)

  it("follows another one", function()
    local A, B, s = copy { 16 }
    s[B]:transform_layout(split4)
    local x, y, z = s[B]:transform_layout(function(i, j) return j, i // 2, i % 2 end)
    assert.same({ x, y, z }, s[B].leaf_iter_vars)
    assert.equal(2, #s[B].layout_transforms)
    keeps(s, { A, B })
    local mod = pl.passes["tir.ApplyLayoutTransforms"]()(s:to_module({ A, B }, "main"))
    local out = tir.run(mod, { counted { 16 }, counted { 4, 2, 2 } })[2]:to_table()
    assert.same(laid(counted { 16 }, { 16 }, function(i) return i % 4, i // 4 end, { 4, 4 }),
      flat(out))
  end)

  it("takes a tir.IndexMap, and a function that returns a list", function()
    local A, B, s = copy { 16 }
    local map = tir.IndexMap.from_func(split4, 1)
    assert.equal(2, select("#", s[B]:transform_layout(map)))
    assert.equal(0, select("#", s[A]:transform_layout(function(i) return { i // 2, i % 2 } end)))
    assert.same({ "T.index_map(lambda i0: (i0 // 2, i0 % 2))" }, s[A].layout_transforms)
  end)

  it("has sizes that are variables", function()
    local n, m = te.var("n"), te.var("m")
    local A = te.placeholder({ n, m }, F, "A")
    local B = te.compute({ n, m }, function(i, j) return A[{ i, j }] + 1 end, "B")
    local s = te.create_schedule(B.op)
    s[B]:transform_layout(function(i, j) return j, i end)
    assert.is_truthy(tostring(pl.lower(s, { args = { A, B } })))
    fails("not bijective", function()
      te.create_schedule(B.op)[B]:transform_layout(function(i, j) return i, j // 4, j % 4 end)
    end)
  end)

  it("is a step that prints, is JSON, replays and is undone", function()
    local A, B, s = copy { 16 }
    s[B]:transform_layout(function(i) return i // 4, te.AXIS_SEPARATOR, i % 4 end)
    assert.equal('1  transform_layout B: "T.index_map(lambda i0: (i0 // 4, i0 % 4))"'
      .. " (axis separator 1) -> axis0, axis1\n", tostring(s))
    assert.same({ 1 }, s[B].axis_separators)
    local t = te.create_schedule(B.op)
    t:apply_json(s:to_json())
    assert.equal(s, t)
    assert.equal(tostring(s:to_module({ A, B }, "main")), tostring(t:to_module({ A, B }, "main")))
    s:undo()
    assert.equal(te.create_schedule(B.op), s)
    assert.same({}, s[B].layout_transforms)
    assert.equal(1, #s[B].leaf_iter_vars)
  end)

  it("refuses what cannot be", function()
    local A, B, s = copy { 16, 4 }
    local i, j = table.unpack(B.op.axis)
    local free = te.var("free")
    local function swap(x, y) return y, x end
    local function refused(message, map, stage)
      fails(message, function() s[stage or B]:transform_layout(map) end)
    end
    refused("'free' is no variable of the map", function(x, y) return x + free, y end)
    refused("not bijective", function(x, y) return x, y + 1 end)
    refused("not bijective", function(x, y) return x * 2, y end)
    refused("not bijective", function(x) return x end)
    refused("not bijective", function(x, y) return x, x, y end)
    refused("stand between indices", function(x, y) return te.AXIS_SEPARATOR, x, y end)
    refused("stand between indices", function(x, y) return x, y, te.AXIS_SEPARATOR end)
    refused("index 0 of the map may be less than 0", function(x, y) return x - 4, y end, A)
    refused("gives no index", function() return nil end, A)
    assert.equal(0, s:n_steps())
    local t = s:copy()
    t[B]:split(i, 4)
    fails("already been split, by step 1", function() t[B]:transform_layout(swap) end)
    t = s:copy()
    t[B]:reorder(j, i)
    fails("does not follow", function() t[B]:transform_layout(swap) end)
    t = s:copy()
    t[B]:transform_layout(swap)
    fails("replaced by the layout of step 1", function() t[B]:split(i, 4) end)
    t:cache_write(B, "local")
    fails("not those of its layout", function() t[B]:transform_layout(swap) end)
    fails("a map of 1 indices is applied", function()
      s[A]:transform_layout(tir.IndexMap.from_func(split4, 1))
    end)
    fails("a transform of a layout is", function()
      s:apply("transform_layout", s[B].number, nil, nil, nil, "lambda i: i")
    end)
    t = s:copy()
    t[B]:storage_align(i, 4)
    fails("stride of axis 'i0' is aligned", function() t[B]:transform_layout(swap) end)
    t = s:copy()
    t[B]:transform_layout(swap)
    fails("layout is transformed", function() t[B]:storage_align(i, 4) end)
    fails("needs a map", function() s:apply("transform_layout", s[B].number) end)
  end)

  it("refuses tensors of scans and externs", function()
    local x, state = te.placeholder({ 6, 4 }, F, "x"), te.placeholder({ 6, 4 }, F, "state")
    local first = te.compute({ 1, 4 }, function(_, i) return x[{ 0, i }] end, "first")
    local next_ = te.compute({ 6, 4 }, function(t, i)
      return state[{ t - 1, i }] + x[{ t, i }]
    end, "next")
    local sums = te.scan(first, next_, state)
    local s = te.create_schedule(sums.op)
    local function swap(i, j) return j, i end
    fails("only a compute and a placeholder", function() s[sums]:transform_layout(swap) end)
    for _, tensor in ipairs { first, next_, state } do
      fails("part of a scan", function() s[tensor]:transform_layout(swap) end)
    end
    s[x]:transform_layout(swap)
  end)
end)
