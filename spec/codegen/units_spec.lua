-- Programs whose functions are compiled one by one: pl.build { units = true }, and how tuning keeps
-- its budget with it.

local pl = require "perilune"

local folder

-- A compiler that notes each call, and waits before.
local function compiler(seconds)
  local path = folder .. "/cc"
  local file = assert(io.open(path, "w"))
  file:write(([[
#!/bin/sh
case "$*" in --version) ;; *) sleep %s; echo "$*" >> %s/calls;; esac
exec cc "$@" -O0
]]):format(seconds, folder))
  file:close()
  os.execute(("chmod +x %s"):format(path))
  return path
end

local function calls()
  local file, n, linked = io.open(folder .. "/calls"), 0, 0
  for line in file and file:lines() or function() end do
    if line:find "@" then linked = linked + 1 else n = n + 1 end
  end
  if file then file:close() end
  os.remove(folder .. "/calls")
  return n, linked
end

-- Layers of those widths, of which each is a kernel of its own.
local function model(widths)
  local x = pl.var("x", ("Tensor[(4, %d), float32]"):format(widths[1]))
  local body = x
  for i = 2, #widths do
    local w = pl.const(pl.tensor.random({ widths[i], widths[i - 1] }, "float32", { seed = i }))
    body = pl.op.tanh(pl.op.nn.dense(body, w))
  end
  return pl.module { main = pl.func({ x }, body) }
end

describe("functions that are compiled one by one", function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute(("mkdir -p %s/cache"):format(folder))
  end)
  after_each(function() os.execute("rm -rf " .. folder) end)

  it("compute what one source does, and are compiled once", function()
    local options = { cc = compiler(0), cache = folder .. "/cache", units = true }
    local x = pl.tensor.random({ 4, 8 }, "float32")
    local first = model { 8, 12, 20, 12 }
    local built = pl.build(first, options)
    local whole = pl.build(first, { cc = options.cc, cache = options.cache })
    assert.equal(whole:run("main", x)[1]:to_bytes(), built:run("main", x)[1]:to_bytes())
    assert.equal(whole:source(), built:source())
    calls()
    -- One layer and the function that calls all are other ones.
    pl.build(model { 8, 12, 20, 15 }, options):artifact "so"
    assert.same({ 2, 1 }, { calls() })
    local again = pl.build(model { 8, 12, 20, 15 }, options):artifact "so"
    assert.same({ 0, 0 }, { calls() })
    assert.is_true(again.cached)
    assert.equal(0, again.seconds)
  end)

  it("have PrimFuncs, too", function()
    local mod = assert(pl.tir.parse [[
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] + A[i]
]])
    local built = pl.build(mod, { units = true, cc = compiler(0), cache = "" })
    local x = pl.tensor.random({ 8 }, "float32")
    assert.equal(pl.build(mod):run("main", x, x)[2]:to_bytes(),
      built:run("main", x, x)[2]:to_bytes())
  end)

  it("tell before long that compiling takes longer than what is left", function()
    local widths = {}
    for i = 1, 40 do widths[i] = 3 + i end
    local began = os.time()
    local ok, err = pcall(pl.tune.search, { mod = model(widths), space = "kernels", seconds = 20,
      strategy = "random",
      builder = pl.tune.builder { kind = "c", cc = compiler(0.9) } })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("the base cannot be built and measured within 20 s", 1, true),
      tostring(err))
    assert.truthy(tostring(err):find("compiling takes some %d+ s more"), tostring(err))
    assert.is_true(os.time() - began <= 20)
  end)

  it("refuse what is no boolean", function()
    local ok, err = pcall(pl.build, model { 2, 2 }, { units = 1 })
    assert.is_false(ok)
    assert.truthy(tostring(err):find "units: a boolean expected")
  end)
end)
