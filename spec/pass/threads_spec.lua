-- Function passes in several threads: everything is as with one.

local pl = require "perilune"
local command = require "spec.cli.command"
local random_graph = require "spec.random.graph"

local function chain(name, length)
  local x = pl.var("x", pl.type { shape = { "n", 4 }, dtype = "float32" })
  local y = x
  for i = 1, length do
    y = i % 3 == 0 and pl.op.add(y, pl.const(0.0, "float32")) or pl.op.tanh(y)
  end
  return name, pl.func({ x }, y)
end

-- So many functions, made at random, and large ones, so that threads pay off on average.
local function functions(n, seed)
  local made = {}
  for i = 1, n do
    made[("f%03d"):format(i)] = random_graph(i * 13 + seed).functions.main
  end
  for i = 1, 8 do
    local name, fn = chain(("large%d"):format(i), 32 * n)
    made[name] = fn
  end
  return pl.module(made)
end

local function chains(n, length)
  local made = {}
  for i = 1, n do
    local name, fn = chain(("c%02d"):format(i), length + i)
    made[name] = fn
  end
  return pl.module(made)
end

local function counts(row)
  local list = {}
  for key, n in pairs(row.counts or {}) do list[#list + 1] = key .. "=" .. n end
  table.sort(list)
  return table.concat(list, " ")
end

-- What a pipeline makes of a module, what was reported, how it failed.
local function outcome(text, mod, config)
  local ctx = pl.context { opt_level = 3, config = config }
  local _, out = pcall(pl.with, ctx, pl.pipeline(text), mod)
  local report = {}
  for i, row in ipairs(pl.report()) do
    report[i] = ("%s %s %d %d %d %s"):format(row.name, row.changed, row.nodes, row.run,
      row.applications, counts(row))
  end
  for _, row in ipairs(pl.rule_report()) do
    report[#report + 1] = ("%s %s %d %d %d %s"):format(row.pass, row.rule, row.tried, row.applied,
      row.refused, row.last)
  end
  return tostring(out), table.concat(report, "\n")
end

local pipelines = {
  "SimplifyExpr,FoldConstant,EliminateCommonSubexpr,DeadCodeElimination",
  'FoldConstant{fold="all"},FuseOps,DefuseOps,ToGraphNormalForm',
  "functions{SimplifyExpr,fixpoint{FoldConstant,EliminateCommonSubexpr},DeadCodeElimination}",
  "MatMulAddToGemm,FoldBatchNorm,FoldConvBias,FoldExplicitPadding,try{SimplifyExpr}else{FuseOps}",
}

describe("threads", function()
  for _, text in ipairs(pipelines) do
    it("make the same of " .. text, function()
      for seed = 1, 2 do
        local mod = functions(200, seed)
        local wanted, report = outcome(text, mod, { threads = 1 })
        for _, n in ipairs { 2, 4, 8 } do
          local got, other = outcome(text, mod, { threads = n })
          assert.is_true(got == wanted, "another result in " .. n .. " threads")
          assert.equal(report, other)
        end
      end
    end)
  end

  it("write the same ONNX files", function()
    local bytes = {}
    for _, n in ipairs { 1, 2, 4, 8 } do
      local ctx = pl.context { opt_level = 3, config = { threads = n } }
      local out = pl.with(ctx, pl.pipeline(pipelines[1]), functions(200, 5))
      local files = {}
      for name, fn in pairs(out) do
        local text = pl.onnx.tostring(pl.module { main = fn })
        files[#files + 1] = name .. text
      end
      bytes[#bytes + 1] = table.concat(files)
    end
    for i = 2, #bytes do assert.is_true(bytes[1] == bytes[i]) end
  end)

  it("give back functions that nothing changed", function()
    local mod = chains(8, 2000)
    local ctx = pl.context { config = { threads = 4 } }
    assert.is_true(mod == pl.with(ctx, pl.passes.FoldBatchNorm(), mod))
  end)

  it("fail as one thread does, in the first function that fails", function()
    local mod = chains(8, 1000)
    for _, limit in ipairs { 100, 1500, 2000 } do
      local wanted, report = outcome("SimplifyExpr",
        mod, { threads = 1, ["limit.rewrites"] = limit })
      assert.matches("limit.rewrites", wanted)
      for _, n in ipairs { 2, 8 } do
        local got, other = outcome("SimplifyExpr",
          mod, { threads = n, ["limit.rewrites"] = limit })
        assert.equal(wanted, got)
        assert.equal(report, other)
      end
    end
  end)

  it("leave a limit of memory to the caller's thread", function()
    local err = outcome("SimplifyExpr", chains(8, 3000), { threads = 4, ["limit.memory"] = 1000 })
    assert.matches("it needs more memory than limit.memory = 1000 bytes", err, 1, true)
  end)

  it("call instruments as one thread does", function()
    local function trace(n)
      local list = {}
      local function note(what)
        return function(_, info) list[#list + 1] = what .. " " .. info.name end
      end
      local ctx = pl.context { opt_level = 3, config = { threads = n },
        instruments = { { name = "note", before = note "before", after = note "after" } } }
      pl.with(ctx, pl.pipeline "SimplifyExpr,functions{FoldConstant,FuseOps}", functions(100, 2))
      return table.concat(list, "\n")
    end
    assert.equal(trace(1), trace(4))
  end)

  it("leave a search by rule applications to one thread", function()
    local mod = chains(8, 1000)
    local config = { threads = 4, ["bisect.passes"] = 1, ["bisect.applications"] = 7 }
    local got, report = outcome("SimplifyExpr,FoldConstant", mod, config)
    config.threads = 1
    local wanted, other = outcome("SimplifyExpr,FoldConstant", mod, config)
    assert.is_true(got == wanted)
    assert.equal(other, report)
  end)

  it("take an integer from 0 to 64", function()
    for _, n in ipairs { -1, 65 } do
      local ok, err = pcall(pl.context, { config = { threads = n } })
      assert.is_false(ok)
      assert.equal("config key 'threads' expects an integer from 0 to 64, got " .. n,
        err.message)
    end
  end)
end)

describe("a pass of a file", function()
  local folder = command.folder()
  teardown(function() os.execute("rm -rf " .. folder) end)

  -- Runs the file, as a script that makes passes; gives what it returns.
  local function file(name, text)
    return assert(loadfile(command.write(folder .. "/" .. name, text)))()
  end

  local scaled = [[
local pl = require "perilune"
local seen = 0
pl.passes.Scaled = { kind = "function", parallel = true, options = { by = 2 },
  run = function(fn, _, ctx)
    seen = seen + 1
    ctx:note("functions", 1)
    return pl.rewrite(fn, { name = "scale", Call = function(call)
      if call.op.name == "tanh" then return pl.op.exp(call.args[1]) * ctx:option "by" end
    end })
  end }
local halved = pl.function_pass { name = "Halved", parallel = true,
  run = function(fn) return pl.func(fn.params, fn.body * 0.5) end }
return { halved, function() return seen end }
]]

  it("runs in several threads, a Lua state each", function()
    local halved, seen = table.unpack(file("scaled.lua", scaled))
    assert.is_true(halved.info.parallel)
    local mod = chains(8, 700)
    for _, pass in ipairs { pl.passes.Scaled { by = 3 }, halved,
      pl.functions { halved, "SimplifyExpr", "Scaled" } } do
      local function run(threads)
        local before = seen()
        local out = pl.with(pl.context { opt_level = 3, config = { threads = threads } }, pass, mod)
        local rows = {}
        for i, row in ipairs(pl.report()) do
          rows[i] = ("%s %d %d %s"):format(row.name, row.run, row.applications, counts(row))
        end
        return tostring(out), table.concat(rows, "\n"), seen() - before
      end
      local wanted, report = run(1)
      for _, n in ipairs { 2, 4 } do
        local got, other, here = run(n)
        assert.is_true(got == wanted)
        assert.equal(report, other)
        assert.equal(0, here) -- upvalues are those of the other states
      end
    end
  end)

  it("removes loop-level functions, and may be of a class", function()
    local drop, double = table.unpack(file("drop.lua", [[
local pl = require "perilune"
local drop = pl.prim_func_pass { name = "Drop", parallel = true,
  run = function(fn) if #fn.params == 1 then return nil end return fn end }
local Double = pl.pass_class { name = "Double", parallel = true,
  run = function(_, fn) return pl.func(fn.params, fn.body * 2.0) end }
return { drop, Double() }
]]))
    local loops = {}
    for i = 1, 6 do
      local a, b, list = pl.tir.Var("a"), pl.tir.Var("b"), {}
      for k = 1, 1500 do list[k] = pl.tir.Evaluate(a + k) end
      loops["p" .. i] = pl.tir.PrimFunc(i % 2 == 0 and { a } or { a, b }, pl.tir.SeqStmt(list))
    end
    local mod = chains(4, 1500)
    loops = pl.module(loops)
    for _, n in ipairs { 1, 2 } do
      local ctx = pl.context { config = { threads = n } }
      local left = {}
      for name in pairs(pl.with(ctx, drop, loops)) do left[#left + 1] = name end
      table.sort(left)
      assert.equal("p1 p3 p5", table.concat(left, " "))
      assert.equal(6, #loops)
      for _, fn in pairs(pl.with(ctx, double, mod)) do assert.equal("multiply", fn.body.op.name) end
    end
  end)

  it("stays with the caller's thread when its function is in no file", function()
    local calls = 0
    local pass = assert(load([[
      local pl, count = ...
      return pl.function_pass { name = "Counting", parallel = true, run = function() count() end }
    ]], "=here"))(pl, function() calls = calls + 1 end)
    pl.with(pl.context { config = { threads = 4 } }, pass, chains(8, 700))
    assert.equal(8, calls)
  end)

  it("fails as one thread does", function()
    local pass = file("fails.lua", [[
return require "perilune".function_pass { name = "Fails", parallel = true,
  run = function(fn)
    if #tostring(fn) > 0 then error "no such function" end
  end }]])
    local mod = chains(4, 1500)
    local function run(n)
      local ok, err = pcall(pl.with, pl.context { config = { threads = n } }, pass, mod)
      assert.is_false(ok)
      return err.message
    end
    assert.matches("pass 'Fails', function @c01: .*fails.lua:3: no such function", run(1))
    assert.equal(run(1), run(4))
  end)

  local function refused(text, n)
    local pass = file("refused.lua", text)
    local ok, err = pcall(pl.with, pl.context { config = { threads = n or 2 } }, pass,
      chains(4, 1500))
    assert.is_false(ok)
    return (err.message:gsub("/[^ :]*/", ""))
  end

  it("is refused when its file cannot be loaded again", function()
    assert.equal("pass 'Once' cannot be made for another thread: refused.lua:1: only once",
      refused [[if not package.loaded.busted then error "only once" end
return require "perilune".function_pass { name = "Once", parallel = true, run = function() end }]])
  end)

  it("is refused when its file makes it no more", function()
    assert.equal("pass 'Gone' cannot be made for another thread: refused.lua:3: "
      .. "loading the file again does not make a pass from this function",
      refused [[local pl = require "perilune"
if not package.loaded.busted then return end
return pl.function_pass { name = "Gone", parallel = true, run = function() end }]])
  end)

  it("is refused when its file makes several of one function", function()
    assert.equal("pass 'Both' cannot be made for another thread: refused.lua:2: "
      .. "several passes are made from this function",
      refused [[local pl = require "perilune"
local function run() end
local first = pl.function_pass { name = "Both", parallel = true, run = run }
pl.function_pass { name = "Both", parallel = true, run = run }
return first]])
  end)

  it("is refused when its file runs passes", function()
    assert.equal("pass 'Busy' cannot be made for another thread: refused.lua:2: error: pass "
      .. "'SimplifyExpr': its file is being loaded for another thread; there it makes passes, "
      .. "and applies none",
      refused [[local pl = require "perilune"
pl.passes.SimplifyExpr()(pl.parse '#[version = "0.0.5"] def @main(%x: float32) { %x }')
return pl.function_pass { name = "Busy", parallel = true, run = function() end }]])
  end)

  it("is stopped by a limit of time in every thread", function()
    local pass = file("endless.lua", [[
return require "perilune".function_pass { name = "Endless", parallel = true,
  run = function() while true do end end }]])
    local mod = chains(4, 1500)
    local started = os.time()
    local config = { threads = 3, ["limit.seconds"] = 0.1 }
    local ok, err = pcall(pl.with, pl.context { config = config }, pass, mod)
    assert.is_false(ok)
    assert.equal("pass 'Endless', function @c01: it took longer than limit.seconds = 0.1",
      err.message)
    assert.is_true(os.time() - started < 5)
  end)
end)

describe("opt --threads", function()
  local folder = command.folder()
  local path = folder .. "/in.relay"
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function opt(n)
    local out = folder .. "/out.relay"
    local status, _, err = command.run(folder,
      ("opt %s -o %s -q --threads %s"):format(path, out, n))
    return status, err, status == 0 and command.read(out)
  end

  it("writes what one thread writes", function()
    assert(pl.save(functions(200, 9), path))
    local _, _, wanted = opt "1"
    for _, n in ipairs { "2", "0" } do
      local status, err, got = opt(n)
      assert.equal(0, status)
      assert.equal("", err)
      assert.is_true(got == wanted)
    end
  end)

  it("takes a number of threads", function()
    local status, err = opt "many"
    assert.equal(2, status)
    assert.matches("'many' is not a number of threads from 0 to 64", err, 1, true)
  end)
end)
