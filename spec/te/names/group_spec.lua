-- TVM's test_te_group.py, test_te_schedule_graph.py and test_te_schedule_lstm.py.

local pl = require "perilune"
local keeps = require "spec.te.keeps"

local te, tir = pl.te, pl.tir
local F = "float32"

local function filled(shape, name)
  return te.compute(shape, function(i, j) return tir.Cast(F, i * 3 + j) end, name)
end

local function added(from, amount, name)
  return te.compute(from.shape, function(...) return from:load(...) + amount end, name)
end

describe("test_te_group", function()
  it("test_scan_group", function()
    local x, state = filled({ 5, 4 }, "x"), te.placeholder({ 5, 4 }, F, "state")
    local init = te.compute({ 1, 4 }, function(_, i) return x[{ 0, i }] end, "init")
    local u1 = te.compute({ 5, 4 }, function(t, i)
      return state[{ t - 1, i }] + x[{ t, i }]
    end, "u1")
    local u2 = added(u1, 1, "u2")
    local u3 = added(u2, 1, "u3")
    local res = te.scan(init, u3, state, { inputs = { x } })
    local s = te.create_schedule(res.op)
    assert.is_truthy(s[u1].group)
    assert.equal(s[u1].group, s[u2].group)
    s[u1]:compute_at(s[u2], u2.op.axis[2])
    local g2 = s:create_group(u2, { state, x })
    assert.equal(s[u3].group, g2.group)
    assert.equal(g2, s[u2].group)
    assert.equal(g2, s[u1].group)
    g2:compute_at(s[u3], u3.op.axis[2])
    assert.equal(s[u3], g2.attach_stage)
    keeps.fails("group", function() s[u2]:compute_at(s[init], init.op.axis[1]) end)
    keeps.same(s, { res })
  end)

  it("test_compute_group", function()
    local x = filled({ 4, 5 }, "x")
    local x1 = added(x, 1, "x1")
    local x2 = added(x1, 2, "x2")
    local s = te.create_schedule(x2.op)
    local g = s:create_group(x1, x, true)
    assert.equal(g, s[x1].group)
    assert.equal(g, s[x].group)
    g:compute_at(s[x2], x2.op.axis[2])
    assert.equal(s[x2], g.attach_stage)
    keeps.same(s, { x2 })
  end)

  it("test_nest_group", function()
    local x = filled({ 4, 5 }, "x")
    local x1 = added(x, 1, "x1")
    local x2 = added(x1, 2, "x2")
    local s = te.create_schedule(x2.op)
    local g1, g2 = s:create_group(x1, x), s:create_group(x1, x, true)
    assert.is_true(g1.is_group and g2.is_group)
    assert.equal(g2, s[x].group)
    assert.equal(g1, s[x1].group)
    assert.equal(g2, g1.group)
    keeps.same(s, { x2 })
  end)
end)

describe("test_te_schedule_graph", function()
  it("test_scan, test_getbody, test_attach_path", function()
    local x, state = filled({ 5, 4 }, "x"), te.placeholder({ 5, 4 }, F, "state")
    local init = te.compute({ 1, 4 }, function(_, i) return x[{ 0, i }] end, "init")
    local moved = added(x, 1, "moved")
    local up1 = te.compute({ 5, 4 }, function(t, i) return state[{ t - 1, i }] + 1 end, "up1")
    local update = te.compute({ 5, 4 }, function(t, i)
      return up1[{ t, i }] + moved[{ t, i }]
    end, "update")
    local scan = te.scan(init, update, state)
    local s = te.create_schedule(scan.op)
    assert.same({ up1.op, update.op }, te.scan_get_body(scan.op))
    for _, tensor in ipairs { update, up1 } do
      assert.equal("scan_update", s[tensor].group.attach_type)
      assert.equal(s[scan], s[tensor].group.attach_stage)
    end
    for _, tensor in ipairs { x, init } do assert.is_nil(s[tensor].group) end
    -- The attach path: the stage lies in the loop of the update, which lies in that of the scan.
    s[moved]:compute_at(s[update], update.op.axis[1])
    local text = tostring(s:to_module({ scan }, "main"))
    local loop = text:find("for scan_idx", 1, true)
    assert.is_truthy(loop)
    assert.is_truthy(text:find("moved[", loop, true))
    keeps.same(s, { scan })
  end)

  it("test_create_read_graph", function()
    local A = te.placeholder({ 3, 4 }, F, "A")
    local A1 = te.compute({ 3, 4 }, function(i, j) return A[{ i, j }] end, "A1")
    local A2 = added(A1, 3, "A2")
    assert.same({ A1.op }, A2.op.inputs)
    assert.same({ A.op }, A1.op.inputs)
    local order = {}
    for i, stage in ipairs(te.create_schedule(A2.op).stages) do order[i] = stage.name end
    assert.same({ "A", "A1", "A2" }, order)
  end)
end)

describe("test_te_schedule_lstm", function()
  it("test_lstm_cell_inline", function()
    local steps, input, hidden, batch = 3, 2, 2, 2
    local X = te.placeholder({ steps - 1, batch, input }, F, "X")
    local Wi = te.placeholder({ 4, hidden, input }, F, "Wi2h")
    local Wh = te.placeholder({ 4, hidden, hidden }, F, "Wh2h")
    local shape = { steps, batch, hidden }
    local state_h, state_c = te.placeholder(shape, F, "h"), te.placeholder(shape, F, "c")
    local function zero(name)
      return te.compute({ 1, batch, hidden }, function() return te.const(0.0, F) end, name)
    end
    local init_h, init_c = zero "init_h", zero "init_c"
    local ki, kh = te.reduce_axis({ 0, input }, "ki2h"), te.reduce_axis({ 0, hidden }, "kh2h")
    local i2h = te.compute({ steps, 4, batch, hidden }, function(t, x, i, j)
      return te.sum(X[{ t - 1, i, ki }] * Wi[{ x, j, ki }], ki)
    end, "i2h")
    local h2h = te.compute({ steps, 4, batch, hidden }, function(t, x, i, j)
      return te.sum(state_h[{ t - 1, i, kh }] * Wh[{ x, j, kh }], kh)
    end, "h2h")
    local gates = te.compute({ steps, 4, batch, hidden }, function(...)
      return i2h:load(...) + h2h:load(...)
    end, "gates")
    local function gate(f, number, name)
      return te.compute(shape, function(t, i, j) return f(gates[{ t, number, i, j }]) end, name)
    end
    local enter, change = gate(te.sigmoid, 0, "in_gate"), gate(te.tanh, 1, "in_transform")
    local forget, leave = gate(te.sigmoid, 2, "forget_gate"), gate(te.sigmoid, 3, "out_gate")
    local next_c = te.compute(shape, function(t, i, j)
      return forget[{ t, i, j }] * state_c[{ t - 1, i, j }]
        + enter[{ t, i, j }] * change[{ t, i, j }]
    end, "next_c")
    local next_h = te.compute(shape, function(t, i, j)
      return leave[{ t, i, j }] * te.tanh(next_c[{ t, i, j }])
    end, "next_h")
    local update_c = te.compute(shape, function(...) return next_c:load(...) end, "update_c")
    local update_h = te.compute(shape, function(...) return next_h:load(...) end, "update_h")
    local scan_h, scan_c = te.scan({ init_h, init_c }, { update_h, update_c },
      { state_h, state_c }, { inputs = { X }, name = "lstm_scan" })
    local s = te.create_schedule(scan_h.op)
    for _, stage in ipairs { gates, enter, change, forget, leave } do s[stage]:compute_inline() end
    local args = { X, Wi, Wh, scan_h, scan_c }
    assert.is_nil(tostring(s:to_module(args, "main")):find("gate%["))
    local plain = te.create_schedule(scan_h.op)
    local expected = keeps.run(pl.lower(plain, { args = args }), args)
    local got = keeps.run(pl.lower(s, { args = args }), args)
    assert.same(expected, got)
    assert.is_true(math.abs(got[steps][1][1]) > 0)
  end)
end)
