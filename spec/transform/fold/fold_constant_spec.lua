-- FoldConstant: the rules of TVM's pass, and its log.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- Without comments and version.
local function text(mod)
  return (tostring(mod):gsub("#%[version[^\n]*\n", ""):gsub(" /%*.-%*/", ""):gsub("\n+$", "\n"))
end

local function fold(source, options)
  local mod = parse(source)
  local pass = pl.passes.FoldConstant(options)
  local out = pass(mod)
  assert(pl.verify(out))
  assert.equal(out, pass(out))
  return out, mod
end

local function becomes(source, expected, options)
  assert.equal(text(parse(expected)), text((fold(source, options))))
end

local function stays(source, options)
  local out, mod = fold(source, options)
  assert.equal(mod, out)
end

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

describe("FoldConstant", function()
  it("folds step by step", function()
    becomes("def @main(%a1: int32) { (10 + 10) * 2 * %a1 }", "def @main(%a1: int32) { 40 * %a1 }")
    becomes("def @main(%x: int32) { 320 * 200 * 32 * %x }", "def @main(%x: int32) { 2048000 * %x }")
  end)

  it("folds what SimplifyExpr puts together", function()
    local out = pl.pipeline "SimplifyExpr,FoldConstant" (
      parse "def @main(%x: int32) { %x * 320 * 200 * 32 }")
    assert.equal(text(parse "def @main(%x: int32) { %x * 2048000 }"), text(out))
  end)

  it("puts constants in the place of variables", function()
    becomes("def @main() { let %x = 14; let %y = 7 - %x / 2; %y * (28 / %x + 2) }",
      "def @main() -> int32 { 0 }")
    becomes([[
def @main(%p: bool, %x: float32) {
  let %a = 2f + 3f;
  let %f = fn (%y: float32) { if (%p) { %y * %a } else { %y + (%a * 2f) } };
  %f(%x)
}]], [[
def @main(%p: bool, %x: float32) {
  let %f = fn (%y: float32) { if (%p) { %y * 5f } else { %y + 10f } };
  %f(%x)
}]])
  end)

  it("projects the constant fields of tuples that a let binds, and keeps the let", function()
    becomes("def @main() { let %t = (1f, 2f); %t.0 + %t.1 }",
      "def @main() -> float32 { let %t = (1f, 2f); 3f }")
    becomes("def @main(%x: float32) { let %t = (%x, 2f * 3f); let %u = %t; %t.0 + %t.1 }",
      "def @main(%x: float32) { let %t = (%x, 6f); let %u = %t; %t.0 + 6f }")
    becomes("def @main(%x: float32) { let %t = (%x, 2f); let %f = fn () { %t.1 * 2f }; %f() }",
      "def @main(%x: float32) { let %t = (%x, 2f); let %f = fn () { 4f }; 4f }")
  end)

  it("takes the scalar that both branches of an If give", function()
    becomes([[
def @main(%p: bool, %x: int32) { let %a = if (%p) { 1 + 2 } else { 3 }; %x * (%a + 1) }]],
      "def @main(%p: bool, %x: int32) { %x * 4 }")
    stays "def @main(%p: bool) { if (%p) { 0f } else { -0f } }"
    stays "def @main(%p: bool) { let %r = ref(1); if (%p) { ref_write(%r, 2); 3 } else { 3 } }"
  end)

  it("keeps calls of functions and loops if it is told to", function()
    local source = "def @main() { let %f = fn (%x: float32) { %x + 1f }; %f(2f) }"
    stays(source, { fold_calls = false })
    becomes(source, "def @main() -> float32 { let %f = fn (%x: float32) { %x + 1f }; 3f }")
  end)

  it("dissolves blocks without remaining lets", function()
    becomes("def @main(%x: float32) { add((let %a = 2f; tanh(%x) * %a), (let %c = 3f; %c)) }",
      "def @main(%x: float32) { add(tanh(%x) * 2f, 3f) }")
  end)

  it("takes the branch of a constant condition", function()
    becomes("def @main(%x: float32) { let %c = 1 < 2; if (%c) { tanh(%x) } else { %x } }",
      "def @main(%x: float32) { tanh(%x) }")
  end)

  it("does not make constants of nothing", function()
    stays [[def @main() { zeros(shape=[2], dtype="float32") }]]
  end)

  it("leaves the bodies of primitive functions alone", function()
    stays [[
def @main(%x: float32) {
  let %f = fn (%y: float32, Primitive=1) { (1f + 2f) + %y };
  %f(%x)
}]]
    stays "def @main(%x: float32, Primitive=1) { (1f + 2f) + %x }"
  end)

  it("knows sizes and shapes, also of scalars", function()
    becomes([[
def @main(%x: Tensor[(2, 3), float32], %y: float32) { (ndarray_size(%x), ndarray_size(%y)) }]],
      "def @main(%x: Tensor[(2, 3), float32], %y: float32) { (6, 1) }")
    becomes([[
def @main(%x: Tensor[(2, 3), float32], %y: float32) {
  (ndarray_size(%x, dtype="float32"), ndarray_size(%y, dtype="float32")) }]],
      "def @main(%x: Tensor[(2, 3), float32], %y: float32) { (6f, 1f) }")
    for _, dtype in ipairs { "int32", "int64", "float32", "float64" } do
      for _, name in ipairs { "shape_of", "vm.shape_of" } do
        local mod = fold(('def @main(%%x: Tensor[(2, 3), float32]) { %s(%%x, dtype="%s") }'):format(
          name, dtype))
        assert.equal("Constant", mod.main.body.kind)
        assert.equal(dtype, mod.main.body.data.dtype)
        assert.same({ 2, 3 }, mod.main.body.data:to_table())
      end
    end
    stays 'def @main(%x: Tensor[(2, ?), float32]) { shape_of(%x, dtype="float32") }'
    stays 'def @main(%x: Tensor[(2, ?), float32]) { vm.shape_of(%x, dtype="int64") }'
    local out = fold "def @main(%y: float32) { shape_of(%y) }"
    assert.equal("Tensor[(0), int32]", tostring(out.main.body.type))
    assert.equal("Constant", out.main.body.kind)
  end)

  it("folds quantisation only if it is told to", function()
    local source = [[
def @main(%x: int32) {
  %0 = qnn.quantize(1.5f, 0.5f, 1, out_dtype="int8");
  cast(%0, dtype="int32") + %x
}]]
    stays(source)
    becomes(source, "def @main(%x: int32) { 4 + %x }", { fold_qnn = true })
  end)

  it("looks through on_device", function()
    local op = pl.op
    local x = pl.var("x", pl.type "float32")
    local function on(e) return op.on_device(e, { constrain_result = true }) end
    local sum = pl.passes.FoldConstant()(
      pl.module { main = pl.func({ x }, x * (on(pl.const(1.0)) + pl.const(2.0))) })
    assert.equal("Constant", sum.main.body.args[2].kind)
    local marked = pl.module { main = pl.func({ x }, x * on(pl.const(1.0))) }
    assert.equal(marked, pl.passes.FoldConstant()(marked))
  end)

  it("gives the bits that a run gives", function()
    local names = { "exp", "log", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "sin", "round" }
    for _, name in ipairs(names) do
      local c = pl.tensor({ -2.5, -0.5, 0.0, 0.5, 1.5, 3.25, 1e-20, 1e20 }, "float32")
      local x = pl.var("x", pl.type "Tensor[(8), float32]")
      local constant = pl.module { main = pl.func({}, pl.op[name](pl.const(c))) }
      local folded = pl.passes.FoldConstant()(constant).main.body
      assert.equal("Constant", folded.kind, name)
      local ran = pl.eval(pl.module { main = pl.func({ x }, pl.op[name](x)) }, c)
      assert.equal(ran:to_bytes(), folded.data:to_bytes(), name)
    end
  end)
end)

describe("The log of FoldConstant", function()
  local path = os.tmpname()
  after_each(function() os.remove(path) end)

  it("names node, result, rule and cost of each step", function()
    fold("def @main(%a1: int32) { (10 + 10) * 2 * %a1 }", { log = path })
    assert.same({ "@main: add(10, 10) => 20  # known value, 4 bytes",
      "@main: multiply(20, 2) => 40  # known value, 4 bytes" }, lines_of(path))
  end)

  it("names lets, branches and fields", function()
    fold("def @main(%x: float32) { let %a = 1f; if (True) { (%x, %a).1 } else { %x } }",
      { log = path })
    local lines = table.concat(lines_of(path), "\n")
    assert.matches("%%a => 1  # let of a constant", lines)
    assert.matches("# constant condition", lines)
    assert.matches("# field of a tuple", lines)
  end)

  it("names what was refused, and why", function()
    fold("def @main() { (1 / 0, 1f + 2f) }", { log = path })
    assert.same({ "@main: add(1, 2) => 3  # constant operands, 4 bytes",
      "@main: divide(1, 0) stays  # undefined, 4 bytes" }, { table.unpack(lines_of(path), 1, 2) })
    os.remove(path)
    local function column(...) return pl.const(pl.tensor({ ... }, "float32")) end
    local wide, high = {}, {}
    for k = 1, 300 do wide[k], high[k] = k, { k } end
    local sum = pl.op.add(column(table.unpack(wide)), column(table.unpack(high)))
    pl.passes.FoldConstant { log = path } (pl.module { main = pl.func({}, sum) })
    assert.matches("^@main: add%(.*%) stays  # over_budget, 360000 bytes$", lines_of(path)[1])
  end)

  it("is complete and in order with threads and a cache", function()
    local functions = {}
    for i = 1, 30 do
      functions[("f%02d"):format(i)] = parse(("def @main() { %d + %d }"):format(i, i)).main
    end
    local mod = pl.module(functions)
    local config = { ["FoldConstant.log"] = path, threads = 2, cache = 1 << 20 }
    pl.with(pl.context { config = config }, function()
      for _ = 1, 2 do pl.pipeline "functions{SimplifyExpr,FoldConstant}" (mod) end
    end)
    local lines = lines_of(path)
    assert.equal(60, #lines)
    for i = 1, 60 do
      local k = (i - 1) % 30 + 1
      local line = "@f%02d: add(%d, %d) => %d  # known value, 4 bytes"
      assert.equal(line:format(k, k, k, 2 * k), lines[i])
    end
  end)

  it("fails when it cannot be written", function()
    local ok, diag = pcall(pl.passes.FoldConstant { log = "/nowhere/at/all" },
      parse "def @main() { 1f + 2f }")
    assert.is_false(ok)
    assert.matches("option 'log': cannot write to '/nowhere/at/all'", tostring(diag))
  end)
end)
