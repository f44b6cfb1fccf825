-- Scan as opset 8 has it: over the sequences of a batch.

local pl = require "perilune"
local model = require "perilune.zoo.model"
local op = pl.op

local function tensor(name, type) return pl.var(name, pl.type("Tensor[" .. type .. "]")) end

-- Sums along sequences of pairs: the last sum, and those on the way.
local function running(attrs)
  local sum, x = tensor("sum", "(2), float32"), tensor("x", "(2), float32")
  local body = pl.func({ sum, x }, pl.tuple { sum + x, sum + x })
  local lengths, start = tensor("lengths", "(N), int64"), tensor("start", "(N, 2), float32")
  local all = tensor("all", "(N, S, 2), float32")
  attrs.num_scan_inputs, attrs.n_results = 1, 2
  local scan = op.scan_batches(lengths, start, all, body, attrs)
  return pl.func({ lengths, start, all }, pl.tuple { scan:unpack() })
end

local start = { { 0, 0 }, { 100, 200 } }
local all = { { { 1, 10 }, { 2, 20 }, { 3, 30 } }, { { 4, 40 }, { 5, 50 }, { 6, 60 } } }

describe("a scan of batches", function()
  local f = running {}

  it("has the types of its results", function()
    assert.equal("(Tensor[(N, 2), float32], Tensor[(N, S, 2), float32])", tostring(f.ret_type))
  end)

  it("carries values of its own along each sequence", function()
    local last, sums = pl.eval(f, { 3, 3 }, start, all)
    assert.same({ { 6.0, 60.0 }, { 115.0, 350.0 } }, last:to_table())
    assert.same({ { { 1.0, 10.0 }, { 3.0, 30.0 }, { 6.0, 60.0 } },
      { { 104.0, 240.0 }, { 109.0, 290.0 }, { 115.0, 350.0 } } }, sums:to_table())
  end)

  it("ends a sequence where its length says", function()
    local last, sums = pl.eval(f, { 1, 2 }, start, all)
    assert.same({ { 1.0, 10.0 }, { 109.0, 290.0 } }, last:to_table())
    assert.same({ { { 1.0, 10.0 }, { 0.0, 0.0 }, { 0.0, 0.0 } },
      { { 104.0, 240.0 }, { 109.0, 290.0 }, { 0.0, 0.0 } } }, sums:to_table())
  end)

  it("reads backwards, from the end of each sequence", function()
    local _, sums = pl.eval(running { directions = { 1 } }, { 3, 2 }, start, all)
    assert.same({ { { 3.0, 30.0 }, { 5.0, 50.0 }, { 6.0, 60.0 } },
      { { 105.0, 250.0 }, { 109.0, 290.0 }, { 0.0, 0.0 } } }, sums:to_table())
  end)

  it("gives its start back when there is no sequence", function()
    local none = pl.tensor("", "float32", { 0, 3, 2 })
    local last, sums = pl.eval(f, pl.tensor("", "int64", { 0 }), pl.tensor("", "float32", { 0, 2 }),
      none)
    assert.same({ 0, 2 }, last.shape)
    assert.same(0, sums.size)
  end)

  it("refuses lengths and operands that do not fit", function()
    local function refuses(what, ...)
      local ok, reason = pcall(pl.eval, f, ...)
      assert.is_false(ok)
      assert.matches(what, tostring(reason), 1, true)
    end
    refuses("a length is not within the sequence", { 0, 3 }, start, all)
    refuses("a length is not within the sequence", { 3, 4 }, start, all)
    refuses("argument 2 'start': expected Tensor[(1, 2), float32]", { 3 }, start, all)
    local body = pl.func({ tensor("a", "(), float32") }, tensor("b", "(), float32"))
    for _, count in ipairs { 0, 3 } do
      assert.error_matches(function()
        op.scan_batches(nil, pl.const { 0.0 }, pl.const { { 1.0 } }, body,
          { num_scan_inputs = count })
      end, "num_scan_inputs is " .. count .. " of 2 operands")
    end
    assert.error_matches(function()
      op.scan_batches(nil, pl.const { 0.0 }, pl.const { 1.0 }, body, { num_scan_inputs = 1 })
    end, "it has no axis of a batch or sequence")
  end)

  it("is the Scan of a model of opset 8", function()
    local body = model.new { name = "body" }
    body:input("sum", "float32", { 2 })
    body:input("next", "float32", { 2 })
    body:output(body:node("Add", { "sum", "next" }, nil, "total"), "float32", { 2 })
    body:output(body:node("Identity", { "total" }, nil, "way"), "float32", { 2 })
    local m = model.new { name = "scan", opset = 8, ir_version = 3 }
    m:input("start", "float32", { 2, 2 })
    m:input("x", "float32", { 2, 3, 2 })
    m:node("Scan", { "", "start", "x" }, { body = body, num_scan_inputs = 1 }, { "y", "z" })
    m:output("y", "float32", { 2, 2 })
    m:output("z", "float32", { 2, 3, 2 })
    local module = assert(pl.onnx.parse(m:tostring()))
    assert.equal(m:tostring(), assert(pl.onnx.tostring(module)))
    local last, sums = pl.eval(module, start, all)
    assert.same({ { 6.0, 60.0 }, { 115.0, 350.0 } }, last:to_table())
    assert.same({ 2, 3, 2 }, sums.shape)
  end)
end)
