-- SinkTransposes: of the transposes around a region of operators fewer are left, and the
-- program computes the same.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints, module = simplified.var, simplified.ints, simplified.module

local to_last, to_first = { axes = { 0, 2, 3, 1 } }, { axes = { 0, 3, 1, 2 } }

local function count(mod, name)
  local n = 0
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op.name == name then n = n + 1 end
  end
  return n
end

-- The number of transposes after the pass, and those that cancel out, are removed.
local function transposes_left(vars, body)
  local mod = module(vars, body)
  local pass = pl.passes.SinkTransposes()
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rtol = 1e-5, atol = 1e-6, scaled = true }))
  local before, after = count(mod, "transpose"), count(out, "transpose")
  assert(after <= before and (after < before or out == mod), before .. " " .. after)
  local again = pass(out)
  assert(count(again, "transpose") <= after)
  return after, out
end

local x, y = var("x", { "N", 3, 4, 5 }), var("y", { "N", 2, 4, 5 })

describe("SinkTransposes", function()
  it("works on what is before the transposes", function()
    local joined = op.concatenate({ op.tanh(op.transpose(x, to_last)), op.transpose(y, to_last) },
      { axis = 3 })
    local left, out = transposes_left({ x, y },
      op.transpose(op.max(joined, { axes = { -1 }, keepdims = 1 }), to_first))
    assert.equal(0, left)
    assert.same({ "N", 1, 4, 5 }, out.main.body.type.shape)
    assert.equal(1, out.main.body.args[1].attrs.axis)
  end)

  it("gives constants the axes of the operands", function()
    local row = pl.const(pl.tensor({ 1, 2, 3 }, "float32"))
    local body = op.multiply(op.add(op.transpose(x, to_last), row), pl.const(2.5))
    assert.equal(0, (transposes_left({ x }, op.transpose(body, to_first))))
  end)

  it("passes slices, Softmax and the parts of a Split", function()
    local z = op.strided_slice(op.transpose(x, to_last), ints(1), ints(5), ints(2), ints(2))
    z = op.nn.softmax(z, { axis = 3 })
    local a, b = op.split(z, ints(1, 3), { axis = 1, n_results = 2 }):unpack()
    assert.equal(0, (transposes_left({ x }, pl.tuple(op.transpose(a, to_first),
      op.transpose(op.sqrt(b), to_first)))))
  end)

  it("leaves one transpose behind where something else needs the result", function()
    local z = op.add(op.transpose(x, to_last), op.transpose(op.tanh(x), to_last))
    assert.equal(1, (transposes_left({ x }, op.sqrt(z))))
    assert.equal(1, (transposes_left({ x }, pl.tuple(z, op.transpose(z, to_first)))))
  end)

  it("transposes an operand from outside where that pays", function()
    local w = var("w", { "N", 4, 5, 3 })
    local z = op.multiply(op.add(op.transpose(x, to_last), w), op.transpose(op.sqrt(x), to_last))
    assert.equal(1, (transposes_left({ x, w }, op.transpose(z, to_first))))
  end)

  it("keeps what would need as many", function()
    local w = var("w", { "N", 4, 5, 3 })
    local body = op.add(op.transpose(x, to_last), w)
    local mod = module({ x, w }, body)
    assert.equal(mod, pl.passes.SinkTransposes()(mod))
    local flat = op.reshape(op.tanh(op.transpose(x, to_last)), ints(0, -1))
    mod = module({ x }, flat)
    assert.equal(mod, pl.passes.SinkTransposes()(mod))
  end)

  it("computes the same for random programs, with fewer transposes", function()
    local fewer = 0
    for seed = 1, 1500 do
      local state = seed * 7919
      local function below(n)
        state = (state * 1103515245 + 12345) % 2147483648
        return state // 65536 % n
      end
      local perms = { { 0, 2, 3, 1 }, { 0, 3, 1, 2 }, { 1, 0, 2, 3 }, { 3, 2, 1, 0 } }
      local inputs = { var("a", { 2, 3, 2, 3 }), var("b", { 2, 3, 2, 3 }) }
      local values = { inputs[1], inputs[2] }
      local function pick() return values[1 + below(#values)] end
      local function like(v)
        for _ = 1, 8 do
          local w = pick()
          if table.concat(w.type.shape, ",") == table.concat(v.type.shape, ",") then return w end
        end
        return v
      end
      for _ = 1, 4 + below(12) do
        local v, kind = pick(), below(10)
        local axis = below(4)
        if kind < 4 then v = op.transpose(v, { axes = perms[1 + below(4)] })
        elseif kind == 4 then v = op.tanh(v)
        elseif kind == 5 then v = op.add(v, like(v))
        elseif kind == 6 then v = op.concatenate({ v, like(v) }, { axis = axis })
        elseif kind == 7 then v = op.max(v, { axes = { axis - 4 }, keepdims = 1 })
        elseif kind == 8 then v = op.nn.softmax(v, { axis = axis })
        else
          local n = v.type.shape[4]
          local list = {}
          for i = 1, n do list[i] = i / 4 end
          v = op.multiply(v, pl.const(pl.tensor(list, "float32")))
        end
        values[#values + 1] = v
      end
      local results = { values[#values], values[#values - 1] }
      local left, out = transposes_left(inputs, pl.tuple(results))
      fewer = fewer + (left < count(module(inputs, pl.tuple(results)), "transpose") and 1 or 0)
      assert.same(results[1].type.shape, out.main.body.fields[1].type.shape)
    end
    assert(fewer > 100, fewer)
  end)
end)

describe("An elementwise operator between transposes", function()
  local calls = simplified.calls
  local p, q = var("p", { "N", 4, 5 }), var("q", { "N", 4, 5 })
  local there, back = { axes = { 0, 2, 1 } }, { axes = { 0, 2, 1 } }
  local turned, returned = { axes = { 2, 0, 1 } }, { axes = { 1, 2, 0 } }
  local row = pl.const(pl.tensor({ 1, 2, 3, 4 }, "float32"))
  local passes = pl.sequential { "SinkTransposes", "SimplifyExpr", "FoldConstant" }

  local function becomes(names, vars, body)
    local mod = module(vars, body)
    local out = passes(mod)
    assert(pl.verify(out))
    assert(pl.check(mod, out, { dims = { N = 3 } }))
    assert.equal(names, calls(out))
    assert.same(mod.main.body.type.shape, out.main.body.type.shape)
    assert.equal(out, passes(out))
  end

  it("works on what is before them", function()
    becomes("tanh", { p }, op.transpose(op.tanh(op.transpose(p, turned)), returned))
    becomes("tanh transpose", { p }, op.transpose(op.tanh(op.transpose(p, turned)), there))
    becomes("nn.softmax", { p }, op.transpose(op.nn.softmax(op.transpose(p, there), { axis = 1 }),
      back))
  end)

  it("takes numbers, vectors and tensors along", function()
    for _, name in ipairs { "subtract", "divide" } do
      local f = op[name]
      becomes(name, { p }, op.transpose(f(op.transpose(p, turned), pl.const(2.0)), returned))
      becomes(name, { p }, op.transpose(f(pl.const(2.0), op.transpose(p, turned)), returned))
      becomes(name, { p }, op.transpose(f(op.transpose(p, there), row), back))
      becomes(name, { p }, op.transpose(f(row, op.transpose(p, there)), back))
    end
    local z = var("z", { "N", 5, 4 })
    becomes("transpose subtract", { p, z },
      op.transpose(op.subtract(op.transpose(p, there), z), back))
    becomes("transpose subtract", { p, z },
      op.transpose(op.subtract(z, op.transpose(p, there)), back))
    becomes("subtract", { p, q },
      op.transpose(op.subtract(op.transpose(p, there), op.transpose(q, there)), back))
  end)

  it("is transposed once", function()
    becomes("subtract transpose", { p, q },
      op.subtract(op.transpose(p, turned), op.transpose(q, turned)))
  end)

  it("stays where a transpose has another use", function()
    local t = op.transpose(p, turned)
    becomes("transpose tanh transpose", { p },
      pl.tuple(t, op.transpose(op.tanh(t), there)))
    local u = op.tanh(op.transpose(p, turned))
    becomes("transpose tanh transpose", { p }, pl.tuple(u, op.transpose(u, there)))
  end)
end)
