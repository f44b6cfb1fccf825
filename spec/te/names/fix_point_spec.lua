-- TVM's test_te_schedule_graph.py: which axes of a scan are fixed.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te = pl.te
local F = "float32"

-- A scan over x of (l, n, m) with the state (l, m, n); update(state, x) gives the next step.
local function scan_of(update)
  local l, m, n = te.var "l", te.var "m", te.var "n"
  local x = te.compute({ l, m, n }, function() return te.const(0.0, F) end, "x")
  local state = te.placeholder({ l, m, n }, F, "state")
  local init = te.compute({ 1, m, n }, function(_, i, j) return x[{ 0, i, j }] end, "init")
  return te.scan(init, update(state, x, { l, m, n }), state)
end

local fix_point = te.schedule.ScanFixPointAnalysis

describe("test_te_schedule_graph", function()
  it("test_fix_pt", function()
    local m, n = te.var "m", te.var "n"
    local x = te.compute({ m, n }, function() return te.const(0.0, F) end, "x")
    local state = te.placeholder({ m, n }, F, "state")
    local init = te.compute({ 1, n }, function(_, i) return x[{ 0, i }] end, "init")
    local update = te.compute({ m, n }, function(t, i)
      return x[{ t, i }] + state[{ t - 1, i }]
    end, "update")
    local scan = te.scan(init, update, state)
    assert.same({ update.op }, te.schedule.ScanGetBody(scan.op))
    assert.same({ 1 }, fix_point(scan.op))
    assert.equal(1, #scan.op.spatial_axis)
  end)

  it("test_scan_fix_point, test_scan0, test_scan1", function()
    assert.same({ 1, 1 }, fix_point(scan_of(function(state, x, dims)
      return te.compute(dims, function(t, i, j)
        return x[{ t, j, i }] + state[{ t - 1, i, j }]
      end, "update")
    end)))
    assert.same({ 0, 0 }, fix_point(scan_of(function(state, x, dims)
      return te.compute(dims, function(t, i, j)
        return x[{ t, j, i }] + state[{ t - 1, j, i }]
      end, "update")
    end)))
  end)

  it("test_scan3_not_exact_reach", function()
    assert.same({ 1, 0 }, fix_point(scan_of(function(state, _, dims)
      local l, m, n = table.unpack(dims)
      local h1 = te.compute({ l, n, m }, function(t, j, i) return state[{ t - 1, i, j }] end, "h1")
      local h2 = te.compute(dims, function(t, i, _) return state[{ t - 1, i, 10 }] * 2 end, "h2")
      return te.compute(dims, function(t, i, j) return h1[{ t, j, i }] + h2[{ t, i, j }] end, "up")
    end)))
  end)

  it("test_scan4_reach_other", function()
    assert.same({ 0, 0 }, fix_point(scan_of(function(state, _, dims)
      local l, m, n = table.unpack(dims)
      local h1 = te.compute({ l, n, m }, function(t, j, _) return state[{ t - 1, j, j }] end, "h1")
      local h2 = te.compute(dims, function(t, i, j) return state[{ t - 1, i, j }] * 2 end, "h2")
      return te.compute(dims, function(t, i, j) return h1[{ t, j, i }] + h2[{ t, i, j }] end, "up")
    end)))
  end)

  it("test_scan5_multi_output", function()
    local m, n = te.var "m", te.var "n"
    local x1, x2 = te.placeholder({ m, n }, F, "x1"), te.placeholder({ m, n }, F, "x2")
    local s1, s2 = te.placeholder({ m, n }, F, "s1"), te.placeholder({ m, n }, F, "s2")
    local function init(x) return te.compute({ 1, n }, function(_, i) return x[{ 0, i }] end) end
    local u1 = te.compute({ m, n }, function(t, i) return s1[{ t - 1, i }] + x1[{ t, i }] end, "u1")
    local u2 = te.compute({ m, n }, function(t, i) return x2[{ t, i }] + s2[{ t - 1, i }] end, "u2")
    local r0 = te.scan({ init(x1), init(x2) }, { u1, u2 }, { s1, s2 })
    assert.same({ 1, 1 }, fix_point(r0.op))
    -- A state that reads the other one is not fixed.
    u2 = te.compute({ m, n }, function(t, i)
      return x2[{ t, i }] + s2[{ t - 1, i }] + s1[{ t - 1, i }]
    end, "u2")
    assert.same({ 0, 0 }, fix_point(te.scan({ init(x1), init(x2) }, { u1, u2 }, { s1, s2 })))
  end)

  it("refuses what is no scan", function()
    keeps.fails("a scan is expected", fix_point, te.placeholder({ 4 }, F, "A"))
  end)
end)
