-- The tests of TVM's test_te_schedule_graph.py on fix points of scans.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te = pl.te
local F = "float32"

-- A scan of 5 x 6 x 7 (or of those sizes) whose update is made by f(x, state, sizes).
local function scan_of(f, sizes)
  local l, m, n = table.unpack(sizes or { 5, 6, 7 })
  local x = te.compute({ l, m, n }, function() return te.const(1, F) end, "x")
  local state = te.placeholder({ l, m, n }, F, "state")
  local init = te.compute({ 1, m, n }, function(_, i, j) return x[{ 0, i, j }] end, "init")
  return te.scan(init, f(x, state, l, m, n), state), x, state
end

local function fixed(f, sizes) return te.scan_fix_point_analysis((scan_of(f, sizes)).op) end

describe("te.scan_fix_point_analysis", function()
  it("test_fix_pt", function()
    local x = te.compute({ 5, 6 }, function() return te.const(1, F) end, "x")
    local state = te.placeholder({ 5, 6 }, F, "state")
    local init = te.compute({ 1, 6 }, function(_, i) return x[{ 0, i }] end, "init")
    local update = te.compute({ 5, 6 }, function(t, i)
      return x[{ t, i }] + state[{ t - 1, i }]
    end, "update")
    local scan = te.scan(init, update, state, { inputs = { x } })
    assert.same({ update.op }, te.scan_get_body(scan.op))
    assert.same({ true }, te.scan_fix_point_analysis(scan.op))
    assert.equal("scan.out0.i1", scan.op.spatial_axis[1].var.name)
  end)

  -- test_scan_fix_point has the following four.
  it("test_scan_fix_point test_scan0", function()
    assert.same({ true, true }, fixed(function(x, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, j)
        return x[{ t, i, j }] + state[{ t - 1, i, j }]
      end, "update")
    end))
  end)

  it("test_scan1", function()
    assert.same({ false, false }, fixed(function(x, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, j)
        return x[{ t, j, i }] + state[{ t - 1, j, i }]
      end, "update")
    end, { 5, 6, 6 }))
  end)

  it("test_scan3_not_exact_reach", function()
    assert.same({ true, false }, fixed(function(_, state, l, m, n)
      local h1 = te.compute({ l, n, m }, function(t, j, i) return state[{ t - 1, i, j }] end, "h1")
      local h2 = te.compute({ l, m, n }, function(t, i, _)
        return state[{ t - 1, i, 3 }] * te.const(2, F)
      end, "h2")
      return te.compute({ l, m, n }, function(t, i, j)
        return h1[{ t, j, i }] + h2[{ t, i, j }]
      end, "update")
    end))
  end)

  it("test_scan4_reach_other", function()
    assert.same({ false, false }, fixed(function(_, state, l, m, n)
      local h1 = te.compute({ l, n, m }, function(t, j, _) return state[{ t - 1, j, j }] end, "h1")
      local h2 = te.compute({ l, m, n }, function(t, i, j)
        return state[{ t - 1, i, j }] * te.const(2, F)
      end, "h2")
      return te.compute({ l, m, n }, function(t, i, j)
        return h1[{ t, j, i }] + h2[{ t, i, j }]
      end, "update")
    end, { 5, 6, 6 }))
  end)

  local function two_outputs(index)
    local init, state, update = {}, {}, {}
    for k = 1, 2 do
      state[k] = te.placeholder({ 5, 6 }, F, "s" .. k)
      init[k] = te.compute({ 1, 6 }, function() return te.const(k, F) end, "init" .. k)
    end
    for k = 1, 2 do
      update[k] = te.compute({ 5, 6 }, function(t, i)
        return state[k][{ t - 1, i }] + state[3 - k][{ t - 1, index(i) }]
      end, "update" .. k)
    end
    return te.scan(init, update, state)
  end

  it("test_scan5_multi_output", function()
    local r0, r1 = two_outputs(function(i) return i end)
    assert.equal(r0.op, r1.op)
    assert.equal(2, #te.scan_get_body(r0.op))
    assert.same({ true, true }, te.scan_fix_point_analysis(r0.op))
    r0 = two_outputs(function(i) return te.min(i + 1, 5) end)
    assert.same({ false, false }, te.scan_fix_point_analysis(r0.op))
  end)

  it("follows axes through indices that are computed", function()
    assert.same({ false, true }, fixed(function(_, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, j)
        return state[{ t - 1, (i + 1) % m, j }]
      end, "update")
    end))
    local k = te.reduce_axis({ 0, 7 }, "k")
    assert.same({ true, false }, fixed(function(_, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, _)
        return te.sum(state[{ t - 1, i, k }], { k })
      end, "update")
    end))
  end)

  it("is refused for what is no scan", function()
    local A = te.placeholder({ 4 }, F, "A")
    keeps.fails("te.scan_fix_point_analysis: the operation of a scan is expected",
      function() te.scan_fix_point_analysis(A.op) end)
    keeps.fails("te.scan_get_body: the operation of a scan is expected",
      function() te.scan_get_body(A) end)
  end)
end)

describe("a scan", function()
  -- Rows of a scan that is computed at the loop of its consumer.
  local function lowered(update_of)
    local scan = scan_of(update_of)
    local res = te.compute({ 6, 7 }, function(i, j) return scan[{ 4, i, j }] end, "res")
    local s = te.create_schedule(res.op)
    s[scan]:compute_at(s[res], res.op.axis[1])
    keeps.same(s, { res })
    return tostring(s:to_module({ res }, "main"))
  end

  it("is computed for a part of its fix points", function()
    local text = lowered(function(x, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, j)
        return x[{ t, i, j }] + state[{ t - 1, i, j }]
      end, "update")
    end)
    assert.matches("scan%[0:5, i:i %+ 1, 0:7%]", text)
  end)

  it("is computed whole along other axes", function()
    local text = lowered(function(x, state, l, m, n)
      return te.compute({ l, m, n }, function(t, i, j)
        return x[{ t, i, j }] + state[{ t - 1, (i + 1) % m, j }]
      end, "update")
    end)
    assert.matches("scan%[0:5, 0:6, 0:7%]", text)
  end)

  it("has one range for outputs that read each other", function()
    local r0, r1 = (function()
      local state = { te.placeholder({ 5, 6 }, F, "s1"), te.placeholder({ 5, 6 }, F, "s2") }
      local init = { te.compute({ 1, 6 }, function(_, i) return pl.tir.Cast(F, i) end, "i1"),
        te.compute({ 1, 6 }, function(_, i) return pl.tir.Cast(F, i + 1) end, "i2") }
      local update = {}
      for k = 1, 2 do
        update[k] = te.compute({ 5, 6 }, function(t, i)
          return state[3 - k][{ t - 1, i }] + te.const(k, F)
        end, "u" .. k)
      end
      return te.scan(init, update, state)
    end)()
    local res = te.compute({ 3 }, function(i)
      return r0[{ 4, i }] + r1[{ 4, i + 3 }]
    end, "res")
    local s = te.create_schedule(res.op)
    s[r0]:compute_at(s[res], res.op.axis[1])
    keeps.same(s, { res })
    local text = tostring(s:to_module({ res }, "main"))
    assert.matches("scan_v0%[0:5, i:i %+ 4%]", text)
    assert.matches("scan_v1%[0:5, i:i %+ 4%]", text)
  end)
end)
