-- Times the analyzer of integer expressions on recorded index expressions and on deep ones.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/arith.lua FOLDER
--
-- FOLDER is the unpacked tir-oracle/arith. An expression is simplified for the first time by an
-- analyzer that knows the ranges of its variables; times are the least of several rounds.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local json = dofile "spec/arith/json_decode.lua"
local tir = pl.tir

local ranges = { i = 64, j = 16, k = 32, io = 64, ii = 32, jo = 64, ji = 32 }
local methods = { "const_int_bound", "modular_set", "rewrite_simplify", "canonical_simplify",
  "simplify" }

local function read_expressions(folder)
  local names, out = {}, {}
  for name in pairs(ranges) do names[name] = tir.Var(name) end
  names.n, names.m = tir.Var "n", tir.Var "m"
  for line in io.lines(folder .. "/index_exprs_1000.jsonl") do
    if line:find "%S" then
      local text = json.decode(line).expr.expr:match "[^\n]*$"
      out[#out + 1] = assert(tir.parse_expr(text, "index", names))
    end
  end
  return out, names
end

local function analyzer_with(names)
  local analyzer = pl.arith.Analyzer()
  for name, extent in pairs(ranges) do analyzer:bind(names[name], tir.Range(0, extent)) end
  return analyzer
end

local function time_method(method, expressions, names)
  local least = math.huge
  for _ = 1, 15 do
    local analyzer, terms = analyzer_with(names), {}
    for i, expr in ipairs(expressions) do terms[i] = analyzer:term(expr) end
    local core = analyzer.core
    local call = core[method]
    collectgarbage()
    local start = os.clock()
    for i = 1, #terms do call(core, terms[i]) end
    least = math.min(least, os.clock() - start)
  end
  return least / #expressions * 1e6
end

local function time_depth(depth)
  local x = tir.Var "x"
  local e = x
  for i = 1, depth do e = tir.FloorDiv(tir.Add(tir.Mul(e, 2), tir.Add(x, i)), 3) end
  local analyzer = pl.arith.Analyzer()
  local term = analyzer:term(e)
  local start = os.clock()
  analyzer.core:rewrite_simplify(term)
  return (os.clock() - start) / depth * 1e6
end

local expressions, names = read_expressions(assert(arg[1], "FOLDER expected"))
print(("%d index expressions, us each"):format(#expressions))
for _, method in ipairs(methods) do
  print(("  %-20s %8.2f"):format(method, time_method(method, expressions, names)))
end
print "rewrite_simplify of nested quotients, us per level"
for _, depth in ipairs { 10, 100, 1000, 10000, 100000 } do
  print(("  depth %-14d %8.2f"):format(depth, time_depth(depth)))
end
