-- The run of a pass that breaks a module: pl.bisect, and the predicates that
-- tell what is broken.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local function small()
  return parse [[
    def @main(%x: Tensor[(4), float32]) { add(tanh(exp(%x)), abs(%x)) }
    def @other(%x: Tensor[(4), float32]) { abs(%x) }
  ]]
end

-- A pass that turns one operator into another.
local function turn(name, from, to)
  return pl.function_pass { name = name, run = pl.mutator { Call = function(call)
    if call.op.name == from then return pl.op[to](table.unpack(call.args)) end
  end } }
end

-- Is there no call of that operator?
local function lacks(name)
  return function(mod)
    for node in pl.post_order(mod) do
      if node.kind == "Call" and node.op.name == name then return false, "there is " .. name end
    end
    return true
  end
end

describe("a predicate", function()
  local mod = small()

  local function refusal(...)
    local ok, err = pcall(...)
    assert.is_false(ok)
    return type(err) == "string" and err or err.message, err.code
  end

  it("says whether a module is well-formed", function()
    assert.is_true(pl.predicate "verify":holds(mod))
    local good, message = pl.predicate "verify":holds(pl.module {
      main = pl.func({}, pl.global("nowhere", "int64")) })
    assert.is_false(good)
    assert.matches("nowhere", message)
  end)

  it("compares with a reference", function()
    local oracle = pl.predicate("oracle", { rounds = 4 })
    assert.is_true(oracle:against(mod):holds(mod))
    local other = turn("t", "abs", "negative")(mod)
    local good, message = oracle:against(mod):holds(other)
    assert.is_false(good)
    assert.matches("^round 4 .*: result 1 differs at", message)
    assert.equal("predicate 'oracle' failed: there is no module to compare with",
      (refusal(oracle.holds, oracle, mod)))
    local empty = pl.module {}
    assert.equal("predicate 'oracle' failed: no @main",
      (refusal(oracle.holds, oracle:against(empty), empty)))
  end)

  it("is a function", function()
    local p = pl.predicate(lacks "abs")
    assert.is_false(p:holds(mod))
    assert.equal("there is abs", select(2, p:holds(mod)))
    assert.is_true(p:holds(pl.module {}))
    p = pl.predicate(function() return false end)
    assert.equal("it does not hold", select(2, p:holds(mod)))
    assert.is_true(pl.predicate(pl.verify):holds(mod))
    assert.equal(p, pl.predicate(p))
  end)

  it("that fails gives no answer", function()
    local p = pl.predicate(function() error("no answer", 0) end)
    assert.same({ "predicate 'function' failed: no answer", "callback" },
      { refusal(p.holds, p, mod) })
    p = pl.predicate(function() end)
    assert.equal("predicate 'function' failed: the function gave no value",
      (refusal(p.holds, p, mod)))
    assert.matches("predicate:holds: a module expected, got number$", (refusal(p.holds, p, 1)))
  end)

  it("is a file that returns a function", function()
    local path = os.tmpname() .. ".lua"
    local function write(text)
      local file = assert(io.open(path, "w"))
      file:write(text)
      file:close()
    end
    write "return function(mod) return #mod.names == 2, 'not two' end"
    assert.is_true(pl.predicate(path):holds(mod))
    assert.equal("not two", select(2, pl.predicate(path):holds(pl.module {})))
    write "return 7"
    assert.equal(path .. ": the script of a predicate returns a function, this one returned a "
      .. "number", (refusal(pl.predicate, path)))
    os.remove(path)
    local message, code = refusal(pl.predicate, path)
    assert.equal("io", code)
    assert.matches("No such file", message)
  end)

  it("is a command that sees the module in a file", function()
    assert.is_true(pl.predicate { shell = "grep -q tanh {}" }:holds(mod))
    local good, message = pl.predicate { shell = "! grep -q tanh {}" }:holds(mod)
    assert.is_false(good)
    assert.equal("the command ends with status 1", message)
    assert.is_true(pl.predicate { shell = "case {} in *.relay) ;; *) exit 1;; esac" }:holds(mod))
    assert.is_true(pl.predicate { shell = "case {} in *.onnx) ;; *) exit 1;; esac",
      format = "onnx" }:holds(pl.module { main = mod.main }))
    good, message = pl.predicate { shell = "kill -9 $$; : {}" }:holds(mod)
    assert.is_false(good)
    assert.equal("the command ends with signal 9", message)
  end)

  it("that is a command may not be able to tell", function()
    local p = pl.predicate { shell = "exit 125; {}" }
    assert.equal("predicate 'shell' failed: the command says so (status 125)",
      (refusal(p.holds, p, mod)))
    p = pl.predicate { shell = "/nowhere/at/all {} 2>/dev/null" }
    assert.equal("predicate 'shell' failed: the command cannot be run (status 127)",
      (refusal(p.holds, p, mod)))
    p = pl.predicate { shell = "kill -INT $$; : {}" }
    assert.same({ "interrupted", "interrupted" }, { refusal(p.holds, p, mod) })
  end)

  it("is nothing else", function()
    assert.matches("'verify', 'oracle', 'FILE.lua', a function or { shell = ... } expected, "
      .. "got 'orcale'$", (refusal(pl.predicate, "orcale")))
    assert.matches("got nil$", (refusal(pl.predicate)))
    assert.matches("the command must contain {} for the model's file$",
      (refusal(pl.predicate, { shell = "true" })))
    assert.matches("format is 'onnx' or 'relay'$",
      (refusal(pl.predicate, { shell = "true {}", format = "pdf" })))
  end)
end)

describe("bisect", function()
  local idle = turn("Idle", "sigmoid", "tanh")
  local bad = turn("Bad", "exp", "sqrt")
  local later = turn("Later", "tanh", "sigmoid")

  -- Many passes, of which some change something.
  local function long()
    local list = { name = "long" }
    for i = 1, 40 do list[i] = turn("Step" .. i, i % 2 == 1 and "abs" or "negative",
      i % 2 == 1 and "negative" or "abs") end
    table.insert(list, 29, bad)
    return pl.sequential(list)
  end

  it("finds the run that breaks what is computed", function()
    local mod = small()
    local found = assert(pl.bisect(pl.sequential { idle, bad, later }, mod, lacks "sqrt"))
    assert.equal("Bad", found.pass)
    assert.same({ 2, 3, 1 }, { found.run, found.runs, found.nth })
    assert.same({ "main" }, found.functions)
    assert.equal("there is sqrt", found.message)
    assert.equal(mod, found.before)
    assert.is_true(pl.equal(bad(mod), found.after))
    assert.is_nil(found.failure)
  end)

  it("asks as often as the logarithm of the changes, and keeps what the pipeline made", function()
    local found = assert(pl.bisect(long(), small(), lacks "sqrt"))
    assert.equal("Bad", found.pass)
    assert.same({ 29, 41 }, { found.run, found.runs })
    assert.equal(3, found.pipelines) -- two for the application
    assert.is_true(found.asked <= 10)
  end)

  it("finds it with the evaluator", function()
    local found = assert(pl.bisect(pl.sequential { "SimplifyExpr", idle, { bad, later } }, small(),
      "oracle"))
    assert.equal("Bad", found.pass)
    assert.equal("in pipeline, element 3 of 3, pipeline, element 1 of 2: Bad", found.place.message)
    assert.matches("^round 1 ", found.message)
  end)

  it("tells the answer", function()
    local found = assert(pl.bisect(pl.fixpoint { idle, bad }, small(), lacks "sqrt"))
    assert.equal([[
pass 'Bad' breaks it, in its 1st run: run 2 of 4
in fixpoint(100) round 1, element 2 of 2: Bad
    fixpoint(100){Idle,Bad}
                       ^~~
rule 'Call', application 1 of the 1 of that run
  before: exp(%x) /* ty=Tensor[(4), float32] */
  after:  sqrt(%x) /* ty=Tensor[(4), float32] */
there is sqrt
asked the predicate 3 times, ran the pipeline 3 times
@main
 fn (%x: Tensor[(4), float32] /* ty=Tensor[(4), float32] */) -> Tensor[(4), float32] {
-  %0 = exp(%x) /* ty=Tensor[(4), float32] */;
+  %0 = sqrt(%x) /* ty=Tensor[(4), float32] */;
   %1 = tanh(%0) /* ty=Tensor[(4), float32] */;
   %2 = abs(%x) /* ty=Tensor[(4), float32] */;]], tostring(found))
  end)

  it("names the run among many of the same pass", function()
    local found = assert(pl.bisect(pl.sequential { name = "deploy", bad,
      turn("Back", "sqrt", "exp"), bad, turn("Back", "sqrt", "exp"), turn("More", "abs", "log"),
      bad }, small(), function(mod)
        return lacks "sqrt"(mod) or lacks "log"(mod)
      end))
    assert.same({ "Bad", 3 }, { found.pass, found.nth })
    assert.equal("in pipeline 'deploy', element 6 of 6: Bad", found.place.message)
    assert.matches("^pass 'Bad' breaks it, in its 3rd run: run 6 of 6\n",
      tostring(found))
  end)

  -- %x + 1 + 2 + ... + n
  local function sums(n)
    local x = pl.var("x", "Tensor[(4), float32]")
    local sum = x
    for i = 1, n do sum = sum + i end
    return pl.module { main = pl.func({ x }, sum) }
  end

  it("finds the application of a rule", function()
    local pass = pl.function_pass { name = "Tricky", run = pl.mutator { name = "tricky",
      Constant = function(c)
        local n = c.data:to_table()
        return n == 67.0 and 0.0 or n + 0.5
      end } }
    local found = assert(pl.bisect(pl.sequential { "FoldConstant", pass }, sums(100), function(mod)
      return not tostring(mod):find(", 0f")
    end))
    assert.same({ "Tricky", "tricky", 67, 100 },
      { found.pass, found.rule, found.application, found.applications })
    assert.matches("^67f ", found.node_before)
    assert.matches("^0f ", found.node_after)
    assert.is_true(found.pipelines <= 10 and found.asked <= 13)
    local difference = tostring(found):match "@main\n(.*)$"
    assert.equal(1, select(2, difference:gsub("\n%+", "")))
    assert.matches("\n%-[^\n]*add%(%%65, 67f", difference)
  end)

  it("finds the application in a pass that asks by itself, and fails", function()
    local pass = pl.module_pass { name = "Asking", run = function(mod, ctx)
      for i = 1, 20 do
        local rule = i % 2 == 0 and "even" or "odd"
        if ctx:rule(rule) and i == 14 then error("cannot do 14", 0) end
      end
      return mod
    end }
    local found = assert(pl.bisect(pl.sequential { pl.try { "DeadCodeElimination" }, pass },
      sums(2)))
    assert.same({ "Asking", "even", 14 }, { found.pass, found.rule, found.application })
    assert.matches("\nrule 'even', application 14 of that run\n[^\n]*cannot do 14\n",
      tostring(found))
    assert.is_nil(found.applications)
    assert.is_nil(found.bad)
  end)

  it("finds the application in a pass of the library, in a fixpoint", function()
    local x = pl.var("x", "Tensor[(4), float32]")
    local main = pl.func({ x }, pl.op.tanh(x * 1 + 0) + pl.op.tanh(x + 0) * (pl.const(2.0) + 3))
    local found = assert(pl.bisect(pl.fixpoint { "SimplifyExpr", "FoldConstant" },
      pl.module { main = main }, function(mod) return not tostring(mod):find "5f" end))
    assert.equal("FoldConstant", found.pass)
    assert.equal("fold", found.rule)
    assert.matches("^5f", found.node_after)
  end)

  it("finds the one function of many that an application changed, in several threads", function()
    local fns = {}
    for i = 1, 20 do
      local x = pl.var("x", "Tensor[(4), float32]")
      fns["f" .. i] = pl.func({ x }, pl.op.tanh(x * 1 + 0) + (pl.const(2.0 + i) + 3.5))
    end
    for threads = 1, 2 do
      local found = assert(pl.bisect(pl.fixpoint { "SimplifyExpr", "FoldConstant" },
        pl.module(fns), function(mod) return not tostring(mod):find " 15.5f" end,
        { context = pl.context { config = { threads = threads } } }))
      assert.same({ "FoldConstant", "fold", 2, 20 },
        { found.pass, found.rule, found.application, found.applications })
      assert.same({ "f10" }, found.functions)
    end
  end)

  it("does without, when a pass names no rule or the rules are not to blame", function()
    local silent = pl.function_pass { name = "Silent", run = function(fn)
      return fn:with { body = pl.op.sqrt(fn.body) }
    end }
    local found = assert(pl.bisect(silent, sums(2), lacks "sqrt"))
    assert.same({ "Silent" }, { found.pass, found.rule })
    local deaf = pl.function_pass { name = "Deaf", run = function(fn, _, ctx)
      ctx:rule "ignored"
      return fn:with { body = pl.op.sqrt(fn.body) }
    end }
    found = assert(pl.bisect(deaf, sums(2), lacks "sqrt"))
    assert.same({ "Deaf" }, { found.pass, found.rule })
    assert.equal(found.before, found.good)
    assert.equal(found.after, found.bad)
  end)

  it("finds a pass that fails", function()
    local failing = pl.module_pass { name = "Failing", run = function() error("no", 0) end }
    local broken = pl.module_pass { name = "Broken", run = function(mod)
      local x = pl.var("x", "int64")
      return mod:with { more = pl.func({ x }, pl.global("nowhere", "int64")) }
    end }
    for _, one in ipairs { failing, broken } do
      local found = assert(pl.bisect(pl.sequential { idle, later, one, bad }, small()))
      assert.same({ one.name, 3, 3 }, { found.pass, found.run, found.runs })
      assert.is_nil(found.after)
      assert.is_truthy(found.failure)
      assert.equal(found.failure.message, found.message)
      found = assert(pl.bisect(pl.sequential { idle, bad, later, one }, small(), "oracle"))
      assert.equal("Bad", found.pass)
      found = assert(pl.bisect(pl.sequential { idle, later, one }, small(), lacks "sqrt"))
      assert.equal(one.name, found.pass)
    end
  end)

  it("finds it behind a failed attempt, and in groups of functions", function()
    local failing = pl.module_pass { name = "Failing", run = function() error("no", 0) end }
    local found = assert(pl.bisect(pl.sequential { pl.try { later, failing, otherwise = { idle } },
      idle, pl.try { bad }, idle }, small(), lacks "sqrt"))
    assert.same({ "Bad", 5 }, { found.pass, found.run })
    assert.equal("in pipeline, element 3 of 4, try, element 1 of 1: Bad", found.place.message)
    assert.is_true(found.pipelines > 1)
    found = assert(pl.bisect(pl.functions { idle, turn("Worse", "abs", "negative"), bad }, small(),
      function(mod)
        return not (tostring(mod):find "negative" and tostring(mod):find "sqrt")
      end))
    assert.same({ "Bad", 3 }, { found.pass, found.run })
    assert.equal("in functions, element 3 of 3: Bad", found.place.message)
  end)

  it("runs in the context that it is given", function()
    local context = pl.context { opt_level = 0, instruments = {
      { name = "no", should_run = function(_, info) return info.name ~= "Later" end } } }
    local pipeline = pl.sequential { "FoldConstant", later, bad }
    local found = assert(pl.bisect(pipeline, small(), lacks "sqrt", { context = context }))
    assert.same({ "Bad", 1, 1 }, { found.pass, found.run, found.runs })
    assert.equal(3, assert(pl.bisect(pipeline, small(), lacks "sqrt")).run)
  end)

  it("tells what is broken and mended again", function()
    local mend = turn("Mend", "sqrt", "exp")
    local pipeline = pl.sequential { idle, bad, later, mend }
    local found, diag = pl.bisect(pipeline, small(), lacks "sqrt")
    assert.is_nil(found)
    assert.equal("the predicate holds after all of 4 runs of passes", diag.message)
    found = assert(pl.bisect(pipeline, small(), lacks "sqrt", { every = true }))
    assert.same({ "Bad", 4, "Mend" }, { found.pass, found.mended, found.mended_by })
    assert.matches("\nthe predicate holds again after run 4, pass 'Mend'\n", tostring(found))
  end)

  it("says why there is nothing to find", function()
    local function refusal(...) return select(2, pl.bisect(...)).message end
    assert.equal("the predicate fails before any pass runs: there is abs",
      refusal(idle, small(), lacks "abs"))
    assert.equal("no pass fails in 2 runs of passes", refusal(pl.sequential { idle, bad }, small()))
    assert.equal("the predicate holds after all of 0 runs of passes",
      refusal(pl.sequential {}, small(), lacks "sqrt"))
  end)

  it("hands on what the predicate raises", function()
    local ok, err = pcall(pl.bisect, bad, small(), function() error("broken", 0) end)
    assert.is_false(ok)
    assert.equal("predicate 'function' failed: broken", err.message)
  end)

  it("refuses other arguments", function()
    assert.error_matches(function() pl.bisect(bad, 1, "verify") end,
      "pl.bisect: a module expected, got number")
    assert.error_matches(function() pl.bisect(bad, small(), "verify", { all = 1 }) end,
      "pl.bisect: there is no option 'all'")
    assert.error_matches(function() pl.bisect(bad, small(), "verfy") end, "got 'verfy'")
    assert.error_matches(function() pl.bisect(5, small(), "verify") end,
      "a pass, a name or a function expected")
  end)
end)
