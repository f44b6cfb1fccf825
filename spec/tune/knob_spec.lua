-- Choices and knobs: the counterparts of test_choice and test_knob of TVM's
-- test_tuning_api.py, and what is wrong.

local pl = require "perilune"
local tune = pl.tune

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
end

-- Adds functions to the module: f0, f1, ...
function tune.functions.add_functions(mod, n)
  local new = {}
  for i = 1, n or 1 do new["f" .. i - 1] = mod.functions.main end
  return mod:with(new)
end

function tune.functions.has_functions(mod, n) return #mod.names == n end

local function adds(n, constraint_args)
  return tune.choice { transform = "add_functions", args = { n },
    constraint = constraint_args and "has_functions", constraint_args = constraint_args }
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("test_choice", function()
  it("leaves the module alone by default", function()
    local mod = program()
    assert.equal(mod, tune.choice {}:apply_transform_func(mod))
    assert.is_true(tune.choice {}:check_constr(mod))
  end)

  it("applies a transform by its name, with arguments", function()
    local mod = program()
    local out = adds(2):apply_transform_func(mod)
    assert.same({ "f0", "f1", "main" }, (function(t) table.sort(t) return t end)(out.names))
    assert.equal(1, #mod.names)
  end)

  it("applies nothing where the constraint does not hold", function()
    local mod = program()
    assert.equal(mod, adds(1, { 1000 }):apply_transform_func(mod))
    assert.equal(2, #adds(1, { 1 }):apply_transform_func(mod).names)
  end)

  it("takes functions that have no name", function()
    local one = tune.choice { transform = function(mod) return mod:with_attrs { seen = 1 } end }
    assert.equal(1, one:apply_transform_func(program()).attrs.seen)
    assert.matches("knob_spec.lua:%d+", one.transform)
  end)
end)

describe("a choice", function()
  it("refuses a constraint that gives no boolean", function()
    local one = tune.choice { constraint = function() return 1 end }
    assert.matches("returned a number, and true or false is expected",
      message(one.check_constr, one, program()))
  end)

  it("refuses a transform that gives no module, or one that is ill-typed", function()
    local one = tune.choice { transform = function() return 7 end }
    assert.matches("returned a number, and a module is expected",
      message(one.apply_transform_func, one, program()))
  end)

  it("names functions that are not registered, and near ones", function()
    local one = tune.choice { transform = "add_function" }
    assert.matches("no function 'add_function' is registered.*did you mean 'add_functions'",
      message(one.apply_transform_func, one, program()))
  end)

  it("knows its fields", function()
    assert.matches("no option 'transfrom'; did you mean 'transform'",
      message(tune.choice, { transfrom = "x" }))
  end)
end)

describe("test_knob", function()
  it("calls the choices of a list 0, 1, ...", function()
    local knob = tune.knob("add", { tune.choice {}, adds(1), adds(2) })
    assert.same({ "0", "1", "2" }, knob.decisions)
    assert.is_true(knob:verify(0))
    assert.is_true(knob:verify "2")
    assert.is_false(knob:verify(3))
    assert.equal(3, #knob:apply(program(), 2).names)
    assert.equal(2, #knob:apply(program(), "1").names)
  end)

  it("takes named choices, in the order of their names", function()
    local knob = tune.knob("add", { two = adds(2), none = tune.choice {} })
    assert.same({ "none", "two" }, knob.decisions)
    assert.equal(3, #knob:apply(program(), "two").names)
    assert.equal("add (# of choices: 2)\n  - none: no change\n  - two: add_functions(2)",
      tostring(knob))
  end)

  it("has a decision that does nothing where the constraint does not hold", function()
    local knob = tune.knob("add", { on = adds(1, { 1000 }), off = tune.choice {} })
    local mod = program()
    assert.is_true(knob:verify "on")
    assert.equal(mod, knob:apply(mod, "on"))
  end)

  it("names the choices that are near a wrong one", function()
    local knob = tune.knob("layout", { NHWC = tune.choice {}, NCHW = tune.choice {} })
    assert.matches("the knob 'layout' has no choice 'NHCW'; did you mean",
      message(knob.apply, knob, program(), "NHCW"))
  end)

  it("has choices", function()
    assert.matches("the knob 'k' has no choices", message(tune.knob, "k", {}))
    assert.matches("choice 'a' is a number", message(tune.knob, "k", { a = 1 }))
  end)
end)
