-- Features of programs: what pl.features finds, what passes handle, what pl.validate tells of it.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local T = "Tensor[(4, 8), float32]"

-- A program for each feature, which has no other one but those beside it.
local programs = {
  { {}, "def @main(%x: T) -> T { tanh(%x) }" },
  { { "let" }, "def @main(%x: T) -> T { let %y = tanh(%x); add(%y, %y) }" },
  { { "let", "letrec", "closures", "control flow" }, [[
def @main(%c: bool, %x: T) -> T {
  let %f: fn (T) -> T = fn (%y: T) -> T { if (%c) { %f(tanh(%y)) } else { %y } };
  %f(%x)
}]] },
  { { "let", "refs" }, [[
def @main(%x: T) -> T { let %r = ref(%x); let %u = ref_write(%r, tanh(%x)); ref_read(%r) }]] },
  { { "closures", "let" }, [[
def @main(%x: T) -> T { let %f = fn (%y: T) -> T { add(%y, %x) }; %f(%x) }]] },
  { { "closures" }, "def @main(%x: T) { fn (%y: T) -> T { add(%y, %x) } }" },
  { { "closures" }, "def @main(%f: fn (T) -> T, %x: T) -> T { %f(%x) }" },
  { {}, "def @main(%x: T) -> T { %0 = fn (%y: T, Primitive=1) -> T { tanh(%y) }; %0(%x) }" },
  { { "ADTs", "control flow" }, [[
type Box { B(T) }
def @main(%x: T) -> T { match (B(%x)) { B(%y) => tanh(%y) } }]] },
  { { "control flow" }, "def @main(%c: bool, %x: T) -> T { if (%c) { tanh(%x) } else { %x } }" },
  { { "dynamic shapes" }, "def @main(%x: Tensor[(?, 8), float32]) { tanh(%x) }" },
  { { "dynamic shapes" }, "def @main(%x: Tensor[(N, 8), float32]) { tanh(%x) }" },
  { { "quantised" }, [[
def @main(%x: T) -> T {
  qnn.dequantize(qnn.quantize(%x, 0.5f, 3, out_dtype="int8"), 0.5f, 3)
}]] },
}

local function program(i) return parse((programs[i][2]:gsub("%f[%w]T%f[%W]", T))) end

local function set(list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  return out
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("pl.features", function()
  it("finds the features of programs", function()
    for i, row in ipairs(programs) do
      assert.same(set(row[1]), pl.features(program(i)), row[2])
      assert.same(set(row[1]), pl.features(program(i).main), row[2])
    end
    local both = program(2):with { other = program(11).main }
    assert.same(set { "let", "dynamic shapes" }, pl.features(both))
    assert.matches("a module or a function expected", message(pl.features, 1))
  end)

  it("finds loops of both levels", function()
    local a = pl.te.placeholder({ 8 }, "float32", "A")
    local b = pl.te.compute({ 8 }, function(i) return a[i] + 1 end, "B")
    assert.same(set { "loops" }, pl.features(pl.te.create_prim_func { a, b }))
    local x = pl.var("x", "Tensor[(4), float32]")
    local s = pl.var("s", "Tensor[(), float32]")
    local e = pl.var("e", "Tensor[(), float32]")
    local body = pl.func({ s, e }, pl.ir.Tuple { s + e })
    local scan = pl.op.scan(pl.const(0.0), x, body, { num_scan_inputs = 1 })
    assert.is_true(pl.features(scan).loops)
    assert.is_nil(pl.features(scan).closures)
  end)

  it("tells that a variable is used again from that its value uses it", function()
    assert.is_nil(pl.features(parse(([[
def @main(%%x: %s) { let %%y = tanh(%%x); let %%z = add(%%y, %%y); add(%%y, %%z) }]]):format(T)))
      .letrec)
    assert.is_true(pl.features(parse(([[
def @main(%%x: %s) -> %s {
  let %%f: fn (%s) -> %s = fn (%%y: %s) -> %s { %%f(%%y) };
  %%f(%%x)
}]]):format(T, T, T, T, T, T))).letrec)
  end)
end)

describe("a pass that says what it handles", function()
  local function pass(spec)
    spec.name = spec.name or "FeatureSpec"
    spec.run = spec.run or function(fn) return pl.func(fn.params, pl.op.exp(fn.body)) end
    return pl.function_pass(spec)
  end

  it("refuses functions with other features, and names the feature", function()
    local only_let = pass { handles = { "let" } }
    assert.is_false(pl.equal(program(2), only_let(program(2))))
    assert.is_false(pl.equal(program(1), only_let(program(1))))
    assert.matches("pass 'FeatureSpec', function @main: the pass does not handle the feature "
      .. "'dynamic shapes', which the program uses", message(only_let, program(11)))
    assert.matches("'let'", message(pass { handles = {} }, program(2)))
    assert.same({ "let" }, only_let.handles)
    assert.is_nil(pass {}.handles)
  end)

  it("skips the functions that do not fit, and counts them", function()
    local mod = program(2):with { other = program(11).main, third = program(10).main }
    local fits = pass { handles = { "let" }, unhandled = "skip" }
    local out = fits(mod)
    assert.equal(mod.functions.other, out.functions.other)
    assert.equal(mod.functions.third, out.functions.third)
    assert.not_equal(mod.functions.main, out.functions.main)
    assert.equal(2, pl.report()[1].counts["skipped for a feature"])
    assert.equal(program(11):text(), fits(program(11)):text())
    local threads = pl.context { config = { threads = 2 } }
    assert.is_true(pl.equal(out, pl.with(threads, fits, mod)))
    assert.is_true(pl.equal(out, pl.functions { fits }(mod)))
  end)

  it("takes a module as a whole", function()
    local mod = program(2):with { other = program(11).main }
    local spec = { name = "ModuleSpec", handles = { "let" }, run = function(m)
      return m:with_attrs { seen = 1 }
    end }
    assert.matches("'dynamic shapes'", message(pl.module_pass(spec), mod))
    spec.unhandled = "skip"
    assert.equal(mod, pl.module_pass(spec)(mod))
    assert.equal(1, pl.module_pass(spec)(program(2)).attrs.seen)
  end)

  it("is checked when it is made", function()
    assert.matches("there is no feature 'lett'; did you mean 'let'", message(pass,
      { handles = { "lett" } }))
    assert.matches("list of names", message(pass, { handles = "let" }))
    assert.matches("'refuse' or 'skip'", message(pass, { handles = {}, unhandled = "warn" }))
    assert.matches("says what it 'handles'", message(pass, { unhandled = "skip" }))
    assert.matches("there is no feature 'x'", message(function()
      pl.pass_properties.FeatureSpec = { handles = { "x" } }
    end))
  end)
end)

describe("pl.validate", function()
  local function findings(text, mod)
    local ok, list = pl.validate(text, mod)
    return ok and "" or table.concat(list, "\n")
  end

  it("tells which features of a program passes do not handle", function()
    assert.equal("", findings("FirstOrderGradient", program(1)))
    assert.equal("", findings "FirstOrderGradient")
    assert.equal("FirstOrderGradient (element 2): it does not handle the feature 'let', which the "
      .. "program uses", findings("SimplifyInference,FirstOrderGradient", program(2)))
    assert.equal("", findings("ToGraphNormalForm,FirstOrderGradient", program(2)))
    assert.equal("FirstOrderGradient (element 2): it does not handle the feature 'let', which "
      .. "ToANormalForm (element 1) provides", findings("ToANormalForm,FirstOrderGradient",
      program(1)))
    local skips = pl.function_pass { name = "Skips", handles = {}, unhandled = "skip",
      run = function(fn) return fn end }
    assert.equal("Skips (element 1): it skips programs with the feature 'let', which the program "
      .. "uses", findings(pl.sequential { skips }, program(2)))
    local any = pl.function_pass { name = "Any", run = function(fn) return fn end }
    assert.equal("", findings(pl.sequential { any, skips }, program(2)))
  end)

  -- What they fail with is what they say not to handle. Parameters and results that are functions
  -- have no gradient, whatever else the program has.
  it("tells of built-in passes what they do", function()
    local wrong, n = {}, 0
    local context = pl.context { opt_level = 4 }
    for i, row in ipairs(programs) do
      local mod = program(i)
      local higher_order = row[1][1] == "closures" and #row[1] == 1
      for name, properties in pairs(pl.pass_properties) do
        if properties.handles and not higher_order then
          local input = name == "LowerTE" and pl.pipeline "qnn.CanonicalizeOps,FuseOps"(mod)
            or mod
          local ok = pl.with(context, pcall, pl.passes[name](), input)
          local told = findings(name, input):find("does not handle", 1, true) ~= nil
          if ok == told then wrong[#wrong + 1] = name .. ": " .. row[2] end
          n = n + 1
        end
      end
    end
    assert.same({}, wrong)
    assert.is_true(n >= 40, tostring(n))
  end)
end)
