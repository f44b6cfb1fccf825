-- pl.blas: what large products of matrices are computed with.

local pl = require "perilune"

describe("pl.blas", function()
  after_each(function() pl.blas "auto" end)

  it("begins as auto and opens nothing", function()
    local chosen, opened = pl.blas()
    assert.equal("auto", chosen)
    assert.is_false(opened)
  end)

  it("says what there is to choose", function()
    local ok, diag = pcall(pl.blas, "opnblas")
    assert.is_false(ok)
    assert.matches("(auto, own or openblas), got 'opnblas'", tostring(diag), 1, true)
    assert.equal("auto", (pl.blas()))
  end)

  it("gives the same products with either", function()
    if not pcall(pl.blas, "openblas") then
      pending "OpenBLAS is not installed"
      return
    end
    local rows = {}
    for i = 1, 160 do
      rows[i] = {}
      for j = 1, 160 do rows[i][j] = (i * j) % 7 - 3 end
    end
    local x = pl.const(rows, "float32")
    local product = pl.op.nn.matmul(x, x)
    local theirs = pl.eval(product)
    assert.is_true(select(2, pl.blas()))
    pl.blas "own"
    assert.is_true(theirs:equal(pl.eval(product)))
  end)

  it("gives the same large products, which the library gets in parts", function()
    if not pcall(pl.blas, "openblas") then
      pending "OpenBLAS is not installed"
      return
    end
    local function whole(m, n)
      local bytes = pl.tensor.random({ m, n }, "int8", { seed = m })
      return pl.op.floor(pl.op.cast(pl.const(bytes), { dtype = "float32" }) / 16)
    end
    for _, size in ipairs { { 700, 1500, 1100 }, { 30, 70, 400000 }, { 1, 6000, 6000 } } do
      local m, n, k = table.unpack(size)
      local x, y, bias = whole(m, k), whole(n, k), whole(1, n)
      local dense = pl.op.nn.dense(x, y)
      local gemm = pl.op.nn.gemm(x, y, bias, { transB = 1 })
      pl.blas "openblas"
      local theirs, biased = pl.eval(dense), pl.eval(gemm)
      pl.blas "own"
      assert.is_true(theirs:equal(pl.eval(dense)))
      assert.is_true(biased:equal(pl.eval(gemm)))
    end
  end)

  it("is chosen by the environment too", function()
    local build = os.getenv "PERILUNE_BUILD" or "build"
    local function run(choice)
      local script = os.tmpname()
      local file = assert(io.open(script, "w"))
      file:write 'print((require "perilune".blas()))'
      file:close()
      local command = "PERILUNE_BLAS=%s %s/bin/perilune %s 2>&1; echo $?"
      local pipe = io.popen(command:format(choice, build, script))
      local out = pipe:read "a"
      pipe:close()
      os.remove(script)
      return out
    end
    assert.equal("own\n0\n", run "own")
    assert.equal("auto\n0\n", run "")
    local out = run "slow"
    assert.matches("expected a BLAS (auto, own or openblas), got 'slow'", out, 1, true)
    assert.matches("\n1\n$", out)
  end)
end)
