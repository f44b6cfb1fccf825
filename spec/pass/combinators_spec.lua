-- Passes made of passes: fixpoint, try, if changed, functions; as values and
-- as text.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

-- main(x) = tanh(x) + ... + tanh(x): `n` additions.
local function sums(n)
  local x = pl.var("x", f32(2))
  local y = pl.op.tanh(x)
  for _ = 1, n do y = y + pl.op.tanh(x) end
  return pl.func({ x }, y)
end

local function module_of(...)
  local functions = {}
  for i, n in ipairs { ... } do functions["f" .. i] = sums(n) end
  return pl.module(functions)
end

local function calls(mod, name)
  local n = 0
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind == "Call" and node.op and node.op.name == name then n = n + 1 end
    end
  end
  return n
end

-- A pass that turns the first `from` it meets into `to`.
local function turn(name, from, to)
  return pl.function_pass { name = name, run = function(fn)
    local done = false
    return pl.mutator { Call = function(call)
      if not done and call.op.name == from then
        done = true
        return pl.op[to](table.unpack(call.args))
      end
    end } (fn)
  end }
end

local function failing(message)
  return pl.module_pass { name = "Failing", run = function() error(message, 0) end }
end

describe("a fixpoint", function()
  it("goes on until nothing changes", function()
    local before = module_of(5)
    local once = turn("Once", "add", "subtract")
    assert.equal(4, calls(once(before), "add"))
    assert.equal(0, calls(pl.fixpoint { once } (before), "add"))
    assert.equal(2, calls(pl.fixpoint { rounds = 3, once } (before), "add"))
  end)

  it("gives the module itself when nothing changes at all", function()
    local before = module_of(1)
    assert.equal(before, pl.fixpoint { turn("Once", "exp", "tanh") } (before))
  end)

  it("names the passes that undo each other, and ends", function()
    local before = module_of(1)
    local forth, back = turn("Forth", "add", "subtract"), turn("Back", "subtract", "add")
    local idle = turn("Idle", "exp", "tanh")
    local after = pl.fixpoint { pl.try { forth }, idle, back } (before)
    assert.is_true(pl.equal(before, after))
    local warnings = pl.diagnostics()
    assert.equal(1, #warnings)
    assert.equal("warning", warnings[1].severity)
    assert.equal("fixpoint: round 1 ends where round 1 began; these passes undo each other: "
      .. "Forth, Back", warnings[1].message)
  end)

  -- Each constant in a node of its own; EliminateCommonSubexpr gives equal ones one node.
  local split = pl.function_pass { name = "Split", run = pl.mutator {
    Call = function(_, rebuild)
      local call = rebuild()
      local args, changed = call.args, false
      for i, arg in ipairs(args) do
        if arg.kind == "Constant" then args[i], changed = pl.const(arg.data), true end
      end
      return changed and call:with { args = args } or call
    end } }

  local function of_constants()
    local x = pl.var("x", "Tensor[(2), float32]")
    local function c() return pl.const(pl.tensor { 1.5, 2.5 }) end
    return pl.module { main = pl.func({ x }, pl.op.add(pl.op.multiply(x, c()), c())) }
  end

  local function n_constants(mod)
    local n = 0
    for node in mod.main:nodes() do n = n + (node.kind == "Constant" and 1 or 0) end
    return n
  end

  it("counts how constants are shared as a change", function()
    local before = of_constants()
    assert.equal(2, n_constants(before))
    local after = pl.with(pl.context { opt_level = 3 },
      pl.fixpoint { "EliminateCommonSubexpr", "SimplifyExpr" }, before)
    assert.equal(1, n_constants(after))
    assert.is_true(pl.equal(before, after))
    assert.same({}, pl.diagnostics())
  end)

  it("tells passes from each other that undo how constants are shared", function()
    local after = pl.with(pl.context { opt_level = 3 },
      pl.fixpoint { "EliminateCommonSubexpr", split }, of_constants())
    assert.equal(2, n_constants(after))
    assert.equal(1, #pl.diagnostics())
    assert.equal("fixpoint: round 1 ends where round 1 began; these passes undo each other: "
      .. "EliminateCommonSubexpr, Split", pl.diagnostics()[1].message)
  end)

  it("takes from 1 to 1000 rounds", function()
    for _, rounds in ipairs { 0, 1001, -1 } do
      local ok, diag = pcall(pl.fixpoint, { rounds = rounds })
      assert.is_false(ok)
      assert.equal("'fixpoint' takes a count from 1 to 1000", diag.message)
    end
  end)
end)

describe("a try", function()
  it("keeps what succeeds", function()
    local after = pl.try { turn("A", "add", "subtract"), otherwise = { failing "never" } }
      (module_of(1))
    assert.equal(0, calls(after, "add"))
    assert.same({}, pl.diagnostics())
  end)

  it("undoes what its passes did, and tells why as a warning", function()
    local before = module_of(1)
    local after = pl.try { turn("A", "add", "subtract"), failing "it is Tuesday" } (before)
    assert.equal(before, after)
    local warnings = pl.diagnostics()
    assert.equal(2, #warnings)
    assert.equal("warning", warnings[1].severity)
    assert.equal("pass 'Failing': it is Tuesday", warnings[1].message)
    assert.equal("note", warnings[2].severity)
    assert.equal("in try, element 2 of 2: Failing", warnings[2].message)
  end)

  it("goes on with the passes of `otherwise`", function()
    local after = pl.try { failing "no", otherwise = { turn("B", "add", "multiply") } }
      (module_of(1))
    assert.equal(1, calls(after, "multiply"))
  end)

  it("fails when those fail too", function()
    local ok, diag = pcall(pl.try { failing "no", otherwise = { failing "no again" } },
      module_of(1))
    assert.is_false(ok)
    assert.matches("no again", diag.message)
  end)
end)

describe("if changed", function()
  local function after(first)
    local seen = false
    local look = pl.module_pass { run = function() seen = true end }
    pl.sequential { first, pl.if_changed { look } } (module_of(1))
    return seen
  end

  it("runs behind a pass that changed something", function()
    assert.is_true(after(turn("A", "add", "subtract")))
    assert.is_true(after { turn("A", "add", "subtract"), turn("B", "exp", "tanh") })
  end)

  it("does not run behind one that did not, nor first of all", function()
    assert.is_false(after(turn("A", "exp", "tanh")))
    local seen = false
    pl.if_changed { pl.module_pass { run = function() seen = true end } } (module_of(1))
    pl.sequential { pl.if_changed { pl.module_pass { run = function() seen = true end } } }
      (module_of(1))
    assert.is_true(seen)
  end)
end)

describe("functions", function()
  local function logging(name, log)
    return pl.function_pass { name = name, run = function(fn, mod)
      for other, f in pairs(mod) do
        if f == fn or pl.equal(f, fn) then log[#log + 1] = name .. " " .. other end
      end
    end }
  end

  it("takes each function through all passes before the next", function()
    local log = {}
    pl.functions { logging("A", log), logging("B", log) } (module_of(1, 2))
    assert.same({ "A f1", "B f1", "A f2", "B f2" }, log)
    log = {}
    local a, b = logging("A", log), logging("B", log)
    pl.sequential { a, b } (module_of(1, 2))
    assert.same({ "A f1", "A f2", "B f1", "B f2" }, log)
  end)

  it("gives what the passes give one after the other", function()
    local passes = { turn("A", "add", "subtract"), turn("B", "tanh", "exp") }
    local before = module_of(3, 1, 2)
    assert.is_true(pl.equal(pl.sequential(passes)(before), pl.functions(passes)(before)))
  end)

  it("brings each function to its own fixpoint", function()
    local after = pl.functions { pl.fixpoint { turn("A", "add", "subtract") } } (module_of(2, 5))
    assert.equal(0, calls(after, "add"))
  end)

  it("shows instruments the function as it is", function()
    local adds = {}
    local context = pl.context { instruments = { { after = function(mod, info)
      if info.name == "A" then adds[#adds + 1] = calls(mod, "add") end
    end } } }
    local a = turn("A", "add", "subtract")
    pl.with(context, pl.functions { a, a }, module_of(2, 1))
    assert.same({ 2, 1, 2, 2 }, adds)
  end)

  it("refuses passes over modules", function()
    local ok, diag = pcall(pl.functions, { pl.sequential { failing "never" } })
    assert.is_false(ok)
    assert.equal("pass 'Failing' is a module pass; functions{...} takes passes over functions",
      diag.message)
    pl.passes.Needy = { kind = "function", required = { "Wide" }, run = function() end }
    pl.passes.Wide = { kind = "module", run = function() end }
    ok, diag = pcall(pl.functions { "Needy" }, module_of(1))
    pl.passes.Needy, pl.passes.Wide = nil, nil
    assert.is_false(ok)
    assert.matches("pass 'Wide' is a module pass; functions{...} takes passes over functions",
      diag.message, 1, true)
  end)
end)

describe("the text of forms", function()
  local function same(text, printed)
    assert.equal(printed or text, tostring(pl.pipeline(text)))
    assert.equal(printed or text, tostring(pl.pipeline(printed or text)))
  end

  it("is what is printed", function()
    same "fixpoint(4){SimplifyExpr,DeadCodeElimination}"
    same("fixpoint { SimplifyExpr }", "fixpoint(100){SimplifyExpr}")
    same("try { FoldConstant } else { SimplifyExpr }", "try{FoldConstant}else{SimplifyExpr}")
    same "SimplifyExpr,try{FoldConstant},if changed{DeadCodeElimination}"
    same "functions{fixpoint(2){SimplifyExpr},FoldConstant{fold=\"all\"}}"
    same("try{}else{}", "try{}")
    same "fixpoint(1){}"
  end)

  it("gives the fields of the pass", function()
    local pass = pl.pipeline "fixpoint(7){SimplifyExpr}"
    assert.equal("fixpoint", pass.form)
    assert.equal(7, pass.rounds)
    pass = pl.pipeline "try{SimplifyExpr,FoldConstant}else{DeadCodeElimination}"
    assert.equal("try", pass.form)
    assert.equal(2, #pass.passes)
    assert.equal("DeadCodeElimination", pass.otherwise[1].name)
    assert.equal("if_changed", pl.pipeline "if changed{}".form)
  end)

  it("leaves registered passes their names", function()
    pl.passes["try"] = { options = { n = 1 }, run = function() end }
    assert.equal("primitive", pl.pipeline "try".passes[1].form)
    local pass = pl.pipeline "\"try\"{n=2}".passes[1]
    assert.equal(2, pass.options.n)
    assert.equal("\"try\"{n=2}", tostring(pass))
    pl.passes["try"] = nil
  end)

  local function refused(text, message, column)
    local ok, diag = pcall(pl.pipeline, text)
    assert.is_false(ok)
    assert.equal(message, diag.message)
    assert.equal(column, diag.span.column)
  end

  it("says what is wrong, and where", function()
    refused("SimplifyExpr,fixpoint(x){FoldConstant}", "'fixpoint' takes a count from 1 to 1000", 23)
    refused("fixpoint(0){}", "'fixpoint' takes a count from 1 to 1000", 10)
    refused("fixpoint(2)", "expected '{' and the passes, got the end", 12)
    refused("if unchanged{}", "'if' is followed by 'changed'", 4)
    refused("try{SimplifyExpr} else SimplifyExpr", "expected '{' and the passes, got 'S'", 24)
    refused("try{}else{}else{}", "expected ',', got 'e'", 12)
    refused("fixpoint(2){SimplifyExpr", "expected ',' or '}', got the end", 25)
  end)

  it("round-trips whatever is put together", function()
    local seed = os.time()
    print(("# seed %d"):format(seed))
    math.randomseed(seed)
    local leaves = { "SimplifyExpr", "FoldConstant", pl.passes.FoldConstant { fold = "all" } }
    local function any(depth)
      local list = {}
      for i = 1, math.random(0, 3) do
        list[i] = depth > 0 and math.random() < 0.6 and any(depth - 1) or leaves[math.random(3)]
      end
      local form = math.random(5)
      if form == 1 then list.rounds = math.random(1000) return pl.fixpoint(list) end
      if form == 2 then list.otherwise = { leaves[1] } return pl.try(list) end
      if form == 3 then return pl.if_changed(list) end
      if form == 4 then return pl.functions(list) end
      list.opt_level = math.random(0, 1)
      return pl.sequential(list)
    end
    for _ = 1, 300 do
      local text = tostring(any(4))
      assert.equal(text, tostring(pl.pipeline(text)))
    end
  end)
end)
