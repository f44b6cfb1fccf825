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
