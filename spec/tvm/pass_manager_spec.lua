-- Pass kinds and sequentials as TVM has them: the counterparts of its
-- test_pass_manager.py and test_tir_transform_prim_func_pass.py, by name, and
-- what those leave out: disabled alone, the level's cut-off, required passes
-- that are missing or go in circles, functions that passes over functions skip.

local pl = require "perilune"
local tir = pl.tir

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

-- fn (x, y) { (x + y) - y }
local function example()
  local x, y = pl.var("x", f32(10)), pl.var("y", f32(10))
  return pl.module { myAdd = pl.func({ x, y }, (x + y) - y) }
end

local function nothing() end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return type(err) == "string" and err:gsub("^%S*_spec.lua:%d+: ", "") or err.message
end

-- Adds a function to the module.
local function add_sub(mod, ctx)
  assert.is_truthy(ctx.opt_level)
  local x, y = pl.var("x", f32(10)), pl.var("y", f32(10))
  return mod:with { mySub = pl.func({ x, y }, x - y) }
end

-- Each function gets its result doubled.
local function double(fn) return pl.func(fn.params, fn.body + fn.body) end

local inputs = { { 1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, { 2.0, 2, 2, 2, 2, 2, 2, 2, 2, 2 } }

local function run(mod, name) return pl.eval(mod, name, table.unpack(inputs)):get(3) end

describe("test_module_pass", function()
  it("test_pass_registration: name, level and kind are as given", function()
    local pass = pl.module_pass { name = "mod_transform", opt_level = 2, run = add_sub }
    assert.same({ "mod_transform", 2, "module" }, { pass.info.name, pass.info.opt_level,
      pass.kind })
  end)

  it("test_pass_registration_no_decorator: the function's place stands for a name", function()
    local pass = pl.module_pass { run = add_sub }
    assert.matches("pass_manager_spec.lua:%d+", pass.name)
    assert.equal(0, pass.opt_level)
  end)

  it("test_pass_run: a function is added, the others are the same ones", function()
    local pass = pl.module_pass { name = "mod_transform", opt_level = 2, run = add_sub }
    assert.matches("mod_transform", tostring(pass), 1, true)
    local mod = example()
    local out = pass(mod)
    assert.equal(mod.myAdd, out.myAdd)
    pl.assert_equal(out, add_sub(mod, pl.current()))
    assert.equal(1, #mod)
    assert.equal(3, run(out, "myAdd"))
    assert.equal(1, run(out, "mySub"))
  end)
end)

describe("test_function_class_pass", function()
  it("constructor arguments, the class's name, a result with types", function()
    local Replace = pl.pass_class { name = "TestReplaceFunc", opt_level = 1,
      init = function(self, fn) self.new_func = fn end,
      run = function(self, _, mod, ctx)
        assert.is_truthy(mod and ctx)
        return self.new_func
      end }
    local x = pl.var("x", f32(10, 20))
    local pass = Replace(pl.func({ x }, pl.op.log(x)))
    assert.same({ "TestReplaceFunc", 1, "function" },
      { pass.info.name, pass.info.opt_level, pass.kind })
    local mod = pl.module { main = pl.func({ x }, x + x) }
    local out = pass(mod)
    pl.assert_equal(out.main, pl.infer_type(pass.new_func))
    assert.equal("Tensor[(10, 20), float32]", tostring(out.main.body.type))
  end)

  it("methods and state are the instance's, attributes of the pass its own", function()
    local Count = pl.pass_class { name = "Count", step = 2, seen = 0,
      run = function(self) self:add() end,
      add = function(self) self.seen = self.seen + self.step end }
    local one, other = Count(), Count()
    one(example())
    one(example())
    assert.same({ 4, 0 }, { one.seen, other.seen })
    one.step = 10
    one:add()
    assert.same({ 14, 2, 2 }, { one.seen, other.step, Count.step })
    assert.equal("Count", one.name)
    assert.is_nil(one.nothing)
    assert.equal("perilune.Pass has no writable field 'name'",
      message(function() one.name = "x" end))
    assert.equal("perilune.Pass has no writable field 'x'",
      message(function() pl.passes.FoldConstant().x = 1 end))
    assert.equal("pass class Count", tostring(Count))
  end)

  it("a class is an element of a sequential, and is registered by assignment", function()
    local Mine = pl.pass_class { name = "Other", opt_level = 3, doc = "Doubles.",
      run = function(_, fn)
      return double(fn)
    end }
    pl.passes.Mine = Mine
    assert.same({ "Mine", 3, "Doubles." },
      { pl.passes.Mine.name, pl.passes.Mine.opt_level, pl.passes.Mine.doc })
    assert.equal(6, run(pl.passes.Mine()(example()), "myAdd"))
    assert.equal(6, run(pl.sequential { Mine } (example(), pl.context { opt_level = 3 }), "myAdd"))
    pl.passes.Mine = nil
  end)

  it("a class that is none is refused", function()
    assert.equal("a class of passes is made from a table, got a number", message(pl.pass_class, 3))
    assert.equal("a class of passes has a name", message(pl.pass_class, { run = nothing }))
    assert.equal("class 'X': 'run' is a nil, no function", message(pl.pass_class, { name = "X" }))
    assert.equal("class 'X': 'init' is a number, no function",
      message(pl.pass_class, { name = "X", run = nothing, init = 3 }))
  end)
end)

describe("test_function_pass", function()
  it("the body is applied to each function, and the result is right", function()
    local pass = pl.function_pass { name = "double", opt_level = 1, run = double }
    local mod = add_sub(example(), pl.current())
    local out = pass(mod)
    assert.same({ 6, 2 }, { run(out, "myAdd"), run(out, "mySub") })
    assert.same({ 3, 1 }, { run(mod, "myAdd"), run(mod, "mySub") })
  end)

  it("bodies see all the old functions, and their own module only", function()
    local seen = {}
    pl.function_pass { name = "see", run = function(fn, mod)
      for _, other in pairs(mod) do seen[#seen + 1] = other.body.op.name end
      return double(fn)
    end } (add_sub(example(), pl.current()))
    assert.same({ "subtract", "subtract", "subtract", "subtract" }, seen)
  end)

  it("functions marked SkipOptimization, Extern or Compiler are passed over, Primitive ones not",
    function()
      local function visited(attrs)
        local x, n = pl.var("x", f32(2)), 0
        local mod = pl.module { main = pl.func({ x }, x + 1):with { attrs = attrs } }
        pl.function_pass { name = "count", run = function() n = n + 1 end } (mod)
        return n
      end
      assert.equal(1, visited {})
      assert.equal(1, visited { Primitive = 1 })
      assert.equal(0, visited { SkipOptimization = 1 })
      assert.equal(0, visited { SkipOptimization = true })
      assert.equal(1, visited { SkipOptimization = 0 })
      assert.equal(0, visited { Extern = 1 })
      assert.equal(1, visited { Extern = 0 })
      assert.equal(0, visited { Compiler = "dnnl" })
      assert.equal(0, visited { Compiler = "" })
    end)

  it("loop-level functions are passed over", function()
    local n = tir.Var("n")
    local mod = pl.module { leaf = tir.PrimFunc({ n }, tir.Evaluate(n)) }
    pl.function_pass { name = "none", run = function() error "visited" end } (mod)
  end)
end)

describe("test_module_class_pass", function()
  it("another module takes the place of the first; the same one stays the same", function()
    local Replace = pl.pass_class { name = "TestModuleTransform", kind = "module", opt_level = 1,
      init = function(self, mod) self.mod = mod end, run = function(self) return self.mod end }
    local mod, other = example(), add_sub(example(), pl.current())
    assert.equal(other, Replace(other)(mod))
    assert.equal(mod, Replace(mod)(mod))
    assert.equal(other, pl.sequential { Replace(other) } (mod))
  end)
end)

describe("test_pass_info", function()
  it("has name, level, required passes and traceable", function()
    local info = pl.function_pass { name = "xx", opt_level = 12, required = { "FoldConstant" },
      traceable = true, run = nothing }.info
    assert.same({ name = "xx", opt_level = 12, required = { "FoldConstant" }, traceable = true,
      parallel = false, form = "primitive" }, info)
    local plain = pl.function_pass { name = "xx", run = nothing }.info
    assert.same({ name = "xx", opt_level = 0, required = {}, traceable = false,
      parallel = false, form = "primitive" }, plain)
  end)

  it("is a copy: what a hook does to it changes nothing", function()
    local pass = pl.function_pass { name = "xx", run = nothing }
    pass.info.name = "yy"
    assert.equal("xx", pass.info.name)
  end)
end)

describe("test_sequential_pass", function()
  local mod_pass, func_pass
  setup(function()
    pl.passes.AddSub = { kind = "module", opt_level = 5, run = add_sub }
    pl.passes.Double = { opt_level = 5, run = double }
    mod_pass, func_pass = pl.passes.AddSub(), pl.passes.Double()
  end)
  teardown(function() pl.passes.AddSub, pl.passes.Double = nil, nil end)

  it("test_pass_registration: name and level", function()
    local plain = pl.sequential { opt_level = 1 }
    assert.same({ "sequential", 1, "sequential" }, { plain.name, plain.opt_level, plain.kind })
    local named = pl.sequential { name = "mine", required = { "FoldConstant" } }
    assert.same({ "mine", 0, { "FoldConstant" } }, { named.name, named.opt_level, named.required })
  end)

  it("test_no_pass: nothing in it changes nothing", function()
    local mod = example()
    assert.equal(mod, pl.sequential { opt_level = 1 } (mod))
  end)

  it("test_only_module_pass, test_only_function_pass: run when they are required", function()
    local mod = example()
    local required = pl.context { required = { "AddSub", "Double" } }
    local out = pl.with(required, pl.sequential { mod_pass }, mod)
    assert.same({ mod.myAdd, 1 }, { out.myAdd, run(out, "mySub") })
    assert.equal(6, run(pl.with(required, pl.sequential { func_pass }, mod), "myAdd"))
    assert.equal(mod, pl.sequential { mod_pass, func_pass } (mod))
  end)

  it("test_multiple_passes: what the first adds, the second changes", function()
    local required = pl.context { required = { "AddSub", "Double" } }
    local out = pl.with(required, pl.sequential { mod_pass, func_pass }, example())
    assert.same({ 6, 2 }, { run(out, "myAdd"), run(out, "mySub") })
    out = pl.with(required, pl.sequential { func_pass, mod_pass }, example())
    assert.same({ 6, 1 }, { run(out, "myAdd"), run(out, "mySub") })
  end)
end)

-- fn (x) { c + c twice: add(add(x, c + c), add(x, c + c)) }
local function foldable()
  local x, c = pl.var("x", f32(3)), pl.const { 1.0, 2.0, 3.0 }
  return pl.module { main = pl.func({ x }, (x + (c + c)) * (x + (c + c))) }
end

describe("test_sequential_with_scoping", function()
  it("level 3 enables FoldConstant and EliminateCommonSubexpr, in this order", function()
    local seq = pl.sequential { "FoldConstant", "EliminateCommonSubexpr" }
    local out = pl.with(pl.context { opt_level = 3 }, seq, foldable())
    local x, c = pl.var("x", f32(3)), pl.const { 2.0, 4.0, 6.0 }
    local sum = x + c
    pl.assert_equal(pl.module { main = pl.func({ x }, sum * sum) }, out)
    local second = pl.with(pl.context { opt_level = 2 }, seq, foldable())
    local unshared = pl.func({ x }, (x + pl.const { 2.0, 4.0, 6.0 }) * (x + pl.const { 2.0, 4.0,
      6.0 }))
    pl.assert_equal(pl.module { main = unshared }, second)
  end)
end)

describe("test_nested_sequential_with_scoping", function()
  it("a sequential in a sequential runs at level 1: its own level is 0", function()
    local ran = {}
    local low = pl.function_pass { name = "low", opt_level = 1,
      run = function() ran[#ran + 1] = 1 end }
    local high = pl.function_pass { name = "high", opt_level = 2,
      run = function() ran[#ran + 1] = 2 end }
    local inner = pl.sequential { low, high }
    pl.with(pl.context { opt_level = 1 }, pl.sequential { inner }, example())
    assert.same({ 1 }, ran)
    pl.with(pl.context { opt_level = 1 }, pl.sequential { pl.sequential { opt_level = 2, low } },
      example())
    assert.same({ 1 }, ran)
  end)
end)

describe("test_print_ir", function()
  it("shows the module behind a pass", function()
    local text = {}
    local ctx = pl.context { instruments = {
      pl.instruments.print_after({ "FoldConstant" }, function(s) text[#text + 1] = s end) } }
    pl.with(ctx, pl.sequential { "FoldConstant", "DeadCodeElimination" }, example())
    assert.equal(1, #text)
    assert.matches("^%-%- after FoldConstant\n", text[1])
    assert.matches("def @myAdd(", text[1], 1, true)
  end)
end)

describe("test_print_debug_callback", function()
  it("each pass is counted once; no pass is run that nobody asked for", function()
    local names, entered = {}, 0
    local counter = { name = "counter",
      enter = function() entered = entered + 1 names = {} end,
      before = function(_, info) names[#names + 1] = info.name end,
      exit = function() entered = entered - 1 end }
    local seq = pl.sequential { "InferType", "FoldConstant", "DeadCodeElimination" }
    pl.with(pl.context { opt_level = 3, instruments = { counter } }, seq, foldable())
    assert.same({ "sequential", "InferType", "FoldConstant", "DeadCodeElimination" }, names)
    assert.equal(0, entered)
  end)
end)

describe("test_prim_func_pass", function()
  local function loops(names)
    local functions = {}
    for i, name in ipairs(names) do
      local n = tir.Var("n")
      functions[name] = tir.PrimFunc({ n }, tir.Evaluate(n + i))
    end
    local x = pl.var("x", f32(2))
    functions.main = pl.func({ x }, x + 1)
    return pl.module(functions)
  end

  it("a class replaces bodies of loop-level functions, and of no others", function()
    local Replace = pl.pass_class { name = "TestReplaceFunc", kind = "prim_func", opt_level = 1,
      init = function(self, fn) self.new_func = fn end,
      run = function(self) return self.new_func end }
    local n = tir.Var("n")
    local new = tir.PrimFunc({ n }, tir.Evaluate(n * 7))
    local mod = loops { "leaf" }
    local out = Replace(new)(mod)
    pl.assert_equal(new, out.leaf)
    assert.equal(mod.main, out.main)
  end)

  it("a body that gives nil removes the function", function()
    local visited = {}
    local drop = pl.prim_func_pass { name = "drop", run = function(fn, mod)
      visited[#visited + 1] = #mod
      if #visited ~= 2 then return nil end
      return fn
    end }
    local mod = loops { "a", "b", "c" }
    local out = drop(mod)
    assert.same({ 4, 4, 4 }, visited)
    assert.equal(2, #out)
    assert.equal(mod.main, out.main)
    assert.equal(4, #mod)
    assert.is_true(pl.report()[1].changed)
    assert(pl.verify(out))
  end)

  it("nil of a pass over Relay functions or modules changes nothing", function()
    local mod = loops { "leaf" }
    assert.equal(mod, pl.function_pass { name = "f", run = nothing }(mod))
    assert.equal(mod, pl.module_pass { name = "m", run = nothing }(mod))
  end)

  it("functions{...} keeps all functions, and says so", function()
    local drop = pl.prim_func_pass { name = "drop", run = nothing }
    assert.equal("pass 'drop', function @leaf: functions{...} keeps all functions",
      message(pl.functions { drop }, loops { "leaf" }))
  end)

  it("test_cow_pass: a sequential of passes that change nothing keeps the module", function()
    local keep = pl.prim_func_pass { name = "Apply", run = function(fn) return fn end }
    local mod = loops { "leaf" }
    assert.equal(mod, pl.sequential { keep, keep } (mod))
  end)
end)

describe("what passes are enabled", function()
  local ran
  setup(function()
    for name, level in pairs { Low = 0, High = 3 } do
      pl.passes[name] = { opt_level = level, run = function() ran[#ran + 1] = name end }
    end
  end)
  teardown(function() pl.passes.Low, pl.passes.High = nil, nil end)

  local function order(spec)
    ran = {}
    pl.with(pl.context(spec), pl.sequential { "Low", "High" }, example())
    return table.concat(ran, " ")
  end

  it("disabled alone: every other pass of its level runs", function()
    assert.equal("High", order { opt_level = 3, disabled = { "Low" } })
    assert.equal("Low", order { opt_level = 3, disabled = { "High" } })
  end)

  it("the level cuts off what needs a higher one, and nothing at its own", function()
    assert.equal("", order { opt_level = -1 })
    assert.equal("Low", order { opt_level = 0 })
    assert.equal("Low", order { opt_level = 2 })
    assert.equal("Low High", order { opt_level = 3 })
    assert.equal("Low High", order { opt_level = 4 })
  end)

  it("required beats the level, disabled beats required", function()
    assert.equal("Low High", order { opt_level = 0, required = { "High" } })
    assert.equal("Low", order { opt_level = 0, required = { "High" }, disabled = { "High" } })
  end)

  it("a pass that is applied itself is asked nothing", function()
    ran = {}
    pl.with(pl.context { opt_level = 0, disabled = { "High" } }, pl.passes.High(), example())
    assert.same({ "High" }, ran)
  end)

  it("a sequential's own level counts where it is an element, not where it is applied", function()
    local inner = pl.sequential { opt_level = 3, "Low" }
    ran = {}
    pl.sequential { inner } (example(), pl.context { opt_level = 2 })
    assert.same({}, ran)
    inner(example(), pl.context { opt_level = 2 })
    assert.same({ "Low" }, ran)
  end)
end)

describe("required passes", function()
  local names = { "A", "B", "C", "D", "E", "Deep" }
  local ran
  setup(function()
    local function runs(name) return function() ran[#ran + 1] = name end end
    pl.passes.A = { required = { "B" }, run = runs "A" }
    pl.passes.B = { required = { "C" }, run = runs "B" }
    pl.passes.C = { required = { "A" }, run = runs "C" }
    pl.passes.D = { required = { "D" }, run = runs "D" }
    pl.passes.E = { required = { "FoldConstnat" }, run = runs "E" }
  end)
  teardown(function() for _, name in ipairs(names) do pl.passes[name] = nil end end)

  local function tell(name, spec)
    ran = {}
    return message(pl.sequential { name }, example(), pl.context(spec or {}))
  end

  it("that go in circles are an error that names two of them", function()
    assert.equal("pass 'C' requires pass 'A', which in turn requires it: a cycle", tell "A")
    assert.equal("pass 'D' requires pass 'D', which in turn requires it: a cycle", tell "D")
    assert.same({}, ran)
  end)

  it("that are missing are an error with the nearest name", function()
    assert.equal("required by pass 'E': pass 'FoldConstnat' is not registered; did you mean "
      .. "'FoldConstant'?", tell "E")
  end)

  it("that are disabled are an error that names both", function()
    assert.equal("pass 'B' requires pass 'C', which the context disables; disable both or none",
      tell("A", { disabled = { "C" } }))
  end)

  it("are not resolved for a pass that is applied itself", function()
    ran = {}
    pl.passes.A()(example())
    assert.same({ "A" }, ran)
  end)

  it("have the options of the registered pass, and may need none", function()
    local got
    pl.passes.Deep = { options = { depth = 3 }, run = function(_, _,
      ctx) got = ctx:option "depth" end }
    pl.sequential { pl.function_pass { name = "f", required = { "Deep" },
      run = nothing } } (example())
    assert.equal(3, got)
  end)
end)
