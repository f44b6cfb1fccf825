--- graphs[name](n, path): the synthetic models of the benchmarks, of n nodes.

local model = require "perilune.zoo.model"

local graphs = {}

local function begin(name)
  local m = model.new { name = name }
  m:initializer("c", "float32", { 16, 16 }, model.random(256, 1))
  return m, m:input("x", "float32", { 16, 16 })
end

local function finish(m, y, path)
  m:output(m:node("Relu", { y }, nil, "y"), "float32", { 16, 16 })
  assert(m:save(path))
end

--- Add and Relu in turn: nothing to be done.
function graphs.chain(n, path)
  local m, x = begin "chain"
  for i = 1, n do
    x = i % 2 == 0 and m:node("Relu", { x }) or m:node("Add", { x, "c" })
  end
  finish(m, x, path)
end

--- One computation again and again, summed up.
function graphs.duplicates(n, path)
  local m, x = begin "duplicates"
  local sum = x
  for _ = 1, n // 2 do sum = m:node("Add", { sum, m:node("Relu", { x }) }) end
  finish(m, sum, path)
end

--- Sums of 16x16 constants.
function graphs.foldable(n, path)
  local m, x = begin "foldable"
  local sum = "c"
  for _ = 1, n do sum = m:node("Add", { sum, "c" }) end
  finish(m, m:node("Add", { x, sum }), path)
end

--- Identity after Identity.
function graphs.identities(n, path)
  local m, x = begin "identities"
  for _ = 1, n do x = m:node("Identity", { x }) end
  finish(m, x, path)
end

--- A model of `gigabytes` of external weights, all holes, of which each layer
-- multiplies with one.
function graphs.sparse(gigabytes, path)
  local m = model.new { name = "sparse" }
  local x = m:input("x", "float32", { "N", 8192 })
  local data = path:match "[^/]*$" .. ".data"
  local bytes = 8192 * 8192 * 4
  local layers = gigabytes * 1000000000 // bytes
  for i = 0, layers - 1 do
    local w = m:external("w" .. i, "float32", { 8192, 8192 }, data, i * bytes, bytes)
    x = m:node("Relu", { m:node("Identity", { m:node("MatMul", { x, w }) }) })
  end
  m:output(x, "float32", { "N", 8192 })
  assert(m:save(path))
  assert(os.execute(("truncate -s %d '%s.data'"):format(layers * bytes, path)))
end

return graphs
