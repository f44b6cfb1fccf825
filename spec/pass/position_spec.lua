-- Where a run of passes failed: position in the pipeline, pass, function, node
-- and line of the script.

local pl = require "perilune"

local x = pl.var("x", "Tensor[(2, 3), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.nn.relu(pl.op.tanh(x)) + x) }

local function of(name, run) return pl.function_pass { name = name, run = run } end
local function module_pass(name, run) return pl.module_pass { name = name, run = run } end

local function idle(name) return of(name, function() end) end

local function failing(name)
  return of(name, function() error "broken here" end)
end

-- What a compiler would print, but for the traceback; "spec:12:" is a line of
-- this file.
local function text_of(diag)
  local lines = { diag.text }
  for _, note in ipairs(diag.notes) do lines[#lines + 1] = note.text end
  return (table.concat(lines, "\n"):gsub("[^%s]*position_spec.lua:%d+:", "spec:N:"))
end

local function failure(pass, context)
  local ok, diag = pcall(pl.with, pl.context(context or {}), pass, mod)
  assert.is_false(ok)
  return diag
end

local function says(expected, pass, context)
  assert.equal(expected, text_of(failure(pass, context)))
end

describe("the position of a failure", function()
  it("is the element of a pipeline", function()
    says([[
error: pass 'Broken', function @main: spec:N: broken here
note: in pipeline 'deploy', element 2 of 3: Broken
    sequential(deploy){SimplifyExpr,Broken,DeadCodeElimination}
                                    ^~~~~~]],
      pl.sequential { name = "deploy", "SimplifyExpr", failing "Broken", "DeadCodeElimination" })
  end)

  it("is no more than the pass when that is applied by itself", function()
    says("error: pass 'Broken', function @main: spec:N: broken here", failing "Broken")
  end)

  it("leads through every form", function()
    local count = 0
    local third = of("Third", function() count = count + 1; if count == 3 then error "now" end end)
    local turn = of("Turn", pl.mutator { Call = function(call)
      if call.op.name == "tanh" then return pl.op.sigmoid(call[1]) end
      if call.op.name == "sigmoid" then return pl.op.exp(call[1]) end
      if call.op.name == "exp" then return pl.op.sin(call[1]) end
    end })
    says([[
error: pass 'Third', function @main: spec:N: now
note: in pipeline, element 2 of 2, fixpoint(9) round 3, element 2 of 2: Third
    Idle,fixpoint(9){Turn,Third}
                          ^~~~~]],
      pl.sequential { idle "Idle", pl.fixpoint { rounds = 9, turn, third } })
    says([[
error: pass 'B', function @main: spec:N: broken here
note: in else, element 2 of 2: B
    try{A}else{Idle,B}
                    ^]],
      pl.try { failing "A", otherwise = { idle "Idle", failing "B" } })
    says([[
error: pass 'B', function @main: spec:N: broken here
note: in pipeline, element 2 of 2, if changed, element 1 of 1, functions, element 2 of 2: B
    Turn,if changed{functions{Idle,B}}
                                   ^]],
      pl.sequential { turn, pl.if_changed { pl.functions { idle "Idle", failing "B" } } })
    says([[
error: pass 'B', function @main: spec:N: broken here
note: in pipeline, element 1 of 2, pipeline 'inner', element 1 of 1, pipeline, element 2 of 2: B
    sequential(inner){(Idle,B)},Idle
                            ^]],
      pl.sequential { { name = "inner", { idle "Idle", failing "B" } }, idle "Idle" })
  end)
end)

describe("the position of a failure in one of several threads", function()
  it("is that in the only one", function()
    local function chain(n)
      local y = x
      for _ = 1, n do y = pl.op.tanh(y + 0.0) end
      return pl.func({ x }, y)
    end
    local many = pl.module { a = chain(3000), b = chain(5000), c = chain(5000) }
    local pipeline = pl.pipeline "EliminateCommonSubexpr,functions{FoldConstant,SimplifyExpr}"
    local texts = {}
    for i, threads in ipairs { 1, 2 } do
      local context = pl.context { opt_level = 3, only = { "FoldConstant", "SimplifyExpr" },
        config = { threads = threads, ["limit.rewrites"] = 4000 } }
      local ok, diag = pcall(pl.with, context, pipeline, many)
      assert.is_false(ok)
      texts[i] = text_of(diag)
    end
    assert.matches("pass 'SimplifyExpr', function @b: more nodes are replaced", texts[1], 1, true)
    assert.matches("in pipeline, element 2 of 2, functions, element 2 of 2: SimplifyExpr\n",
      texts[1], 1, true)
    assert.equal(texts[1], texts[2])
  end)
end)

describe("a failure tells", function()
  it("the line of an error without one", function()
    says("spec:N: error: pass 'P', function @main: bare", of("P", function() error("bare", 0) end))
  end)

  it("the caller's line of an error of level 2", function()
    local function check() error("called badly", 2) end
    says("error: pass 'P', function @main: spec:N: called badly",
      of("P", function() check(); return nil end))
  end)

  it("the node that a mutator was at", function()
    says([[
error: pass 'P', function @main: spec:N: not this one
note: at node 3: add(nn.relu: Tensor[(2, 3), float32], %x: Tensor[(2, 3), float32])
note: in pipeline, element 1 of 1: P
    P
    ^]],
      pl.sequential { of("P", pl.mutator { Call = function(call)
        if call.op.name == "add" then error "not this one" end
      end }) })
  end)

  it("the node that could not be built, and its line", function()
    says([[
spec:N: error: pass 'P', function @main: 'reshape': 6 elements do not make a shape of 7: in ]]
      .. [[
reshape(add: Tensor[(2, 3), float32])
note: at node 3: add(nn.relu: Tensor[(2, 3), float32], %x: Tensor[(2, 3), float32])]],
      of("P", pl.mutator { Call = function(call)
        if call.op.name == "add" then return pl.op.reshape(call, { newshape = { 7 } }) end
      end }))
  end)

  it("the node of invalid IR", function()
    says([[
spec:N: error: pass 'P', function @main: invalid IR at node 4: the module has no function ]]
      .. [[
'@nowhere'
note: at node 4: @nowhere
note: in pipeline, element 2 of 2: P
    Idle,P
         ^]],
      pl.sequential { idle "Idle", of("P", function(fn)
        return pl.func(fn.params, pl.call(pl.global "nowhere", { fn.body }))
      end) })
  end)

  it("what a pass returned instead of a function", function()
    says([[
error: pass 'P', function @main: spec:N: a Function or nil expected as the pass's result, ]]
      .. [[
got number
note: in pipeline, element 1 of 1: P
    P
    ^]], pl.sequential { of("P", function() return 1 end) })
  end)

  it("the hook, its instrument and the pass", function()
    local function context(hook)
      return { instruments = { { name = "log", [hook] = function(_, info)
        if info.name == "FoldConstant" then error "hook" end
        return true
      end } } }
    end
    for _, hook in ipairs { "should_run", "before", "after" } do
      says(([[
error: spec:N: hook
note: in hook '%s' of instrument 'log', pass 'FoldConstant'
note: in pipeline, element 2 of 2: FoldConstant
    SimplifyExpr,FoldConstant
                 ^~~~~~~~~~~~]]):format(hook), pl.pipeline "SimplifyExpr,FoldConstant",
        context(hook))
    end
  end)

  it("the hook of a context", function()
    for _, hook in ipairs { "enter", "exit" } do
      says(([[
error: spec:N: hook
note: in hook '%s' of instrument 'log']]):format(hook), idle "Idle",
        { instruments = { { name = "log", [hook] = function() error "hook" end } } })
    end
  end)

  it("the line at which time was up", function()
    local function forever() while true do end end
    says([[
spec:N: error: pass 'P': it took longer than limit.seconds = 0.02
note: in pipeline, element 1 of 1: P
    P
    ^]], pl.sequential { module_pass("P", function() forever(); return nil end) },
      { config = { ["limit.seconds"] = 0.02 } })
  end)

  it("limits of passes in C, and where in the text of the pipeline", function()
    says([[
spec:N: error: pass 'FoldConstant': it leaves 5 nodes, more than limit.nodes = 4
note: in pipeline, element 2 of 2, fixpoint(3) round 1, element 1 of 1: FoldConstant
    Idle,fixpoint(3){FoldConstant{fold="all"}}
                     ^~~~~~~~~~~~~~~~~~~~~~~~]],
      pl.sequential { idle "Idle", pl.fixpoint { rounds = 3,
        pl.passes.FoldConstant { fold = "all" } } },
      { config = { ["limit.nodes"] = 4 }, only = { "FoldConstant" } })
  end)

  it("the node at which a pass in C had replaced too many", function()
    local function twice() return x + 0.0 end
    local sum = pl.module { main = pl.func({ x }, twice() * twice()) }
    local context = pl.context { config = { ["limit.rewrites"] = 1 } }
    local ok, diag = pcall(pl.with, context, pl.pipeline "SimplifyExpr", sum)
    assert.is_false(ok)
    assert.equal([[
spec:N: error: pass 'SimplifyExpr', function @main: more nodes are replaced than ]]
      .. [[
limit.rewrites = 1
note: at node 4: add(%x: Tensor[(2, 3), float32], Constant: float32)
note: in pipeline, element 1 of 1: SimplifyExpr
    SimplifyExpr
    ^~~~~~~~~~~~]], text_of(diag))
  end)

  it("what is required and missing, disabled, or fails", function()
    local function wants(name)
      return pl.sequential { pl.module_pass { name = "R", required = { name },
        run = function() end } }
    end
    local tail = "\nnote: in pipeline, element 1 of 1: R\n    R\n    ^"
    says("spec:N: error: required by pass 'R': pass 'NowhereAtAll' is not registered" .. tail,
      wants "NowhereAtAll")
    says("spec:N: error: pass 'R' requires pass 'InferType', which the context disables; disable "
      .. "both or none" .. tail, wants "InferType", { disabled = { "InferType" } })
    pl.passes.PositionNeed = { kind = "module", run = function() error "no" end }
    says([[
error: pass 'PositionNeed': spec:N: no
note: in pipeline, element 1 of 1: R, which requires PositionNeed
    R
    ^]], wants "PositionNeed")
    pl.passes.PositionNeed = nil
  end)

  it("every pipeline around it when passes run pipelines", function()
    local inner = pl.sequential { name = "inner", idle "Idle", failing "Deep" }
    says([[
error: pass 'Deep', function @main: spec:N: broken here
note: in pipeline 'inner', element 2 of 2: Deep
    sequential(inner){Idle,Deep}
                           ^~~~
note: in pipeline 'outer', element 1 of 1: Runs
    sequential(outer){Runs}
                      ^~~~]],
      pl.sequential { name = "outer", module_pass("Runs", function(m) return inner(m) end) })
  end)

  it("the element that was registered as a pipeline by its name", function()
    pl.passes.PositionList = { idle "Idle", failing "Deep" }
    says([[
error: pass 'Deep', function @main: spec:N: broken here
note: in pipeline, element 2 of 2, pipeline 'PositionList', element 2 of 2: Deep
    SimplifyExpr,PositionList
                 ^~~~~~~~~~~~]], pl.pipeline "SimplifyExpr,PositionList")
    pl.passes.PositionList = nil
  end)
end)

describe("a pass that answers with a function of the other level", function()
  local prim = assert(pl.tir.parse "@T.prim_func\ndef main(n: T.int32):\n    T.evaluate(n)\n")
  local relay = assert(pl.parse '#[version = "0.0.5"]\ndef @main(%x: float32) { tanh(%x) }')

  it("fails, and leaves the module", function()
    for _, case in ipairs { { "prim_func", prim, relay, "a PrimFunc", "a Function" },
      { "function", relay, prim, "a Function", "a PrimFunc" } } do
      local make = case[1] == "function" and pl.function_pass or pl.prim_func_pass
      local pass = make { name = "Other", run = function() return case[3].functions.main end }
      local ok, message = pcall(pass, case[2])
      assert.is_false(ok)
      local text = ("%s or nil expected as the pass's result, got %s"):format(case[4], case[5])
      assert.is_truthy(tostring(message):find(text, 1, true), tostring(message))
    end
  end)
end)
