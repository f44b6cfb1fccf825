-- DeadCodeElimination with effects that reach through calls, and with its options: what goes in,
-- what comes out, in Relay text without the types.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- Without comments and version.
local function text(mod)
  return (tostring(mod):gsub("#%[version[^\n]*\n", ""):gsub(" /%*.-%*/", ""):gsub("\n+$", "\n"))
end

local function eliminate(source, options)
  local mod = parse(source)
  local pass = pl.passes.DeadCodeElimination(options)
  local out = pass(mod)
  assert(pl.verify(out))
  assert.equal(text(out), text(pass(out)))
  return out, mod
end

local function becomes(source, expected, options)
  assert.equal(text(parse(expected)), text((eliminate(source, options))))
end

local function stays(source, options)
  local out, mod = eliminate(source, options)
  assert.equal(mod, out)
end

local INLINE, IGNORE = { inline_once = true }, { ignore_impurity = true }

describe("DeadCodeElimination, of calls", function()
  local loop = [[
let %f = fn (%k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { %f(subtract(%k, 1)) } };
]]

  it("drops those of recursive functions without effects", function()
    becomes("def @main(%n: int32) -> int32 {" .. loop .. "let %d = %f(%n); 1 }",
      "def @main(%n: int32) -> int32 { 1 }")
    local g = "def @g(%k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { @g(subtract(%k, 1)) } } "
    becomes(g .. "def @main(%n: int32) -> int32 { let %d = @g(%n); 1 }",
      g .. "def @main(%n: int32) -> int32 { 1 }")
  end)

  it("drops those of functions that call each other", function()
    local ab = [[
def @a(%k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { @b(subtract(%k, 1)) } }
def @b(%k: int32) -> int32 { @a(%k) }
]]
    becomes(ab .. "def @main(%n: int32) -> int32 { let %d = @a(%n); 1 }",
      ab .. "def @main(%n: int32) -> int32 { 1 }")
  end)

  it("keeps those of a function whose effects only its callees have", function()
    stays [[
def @a(%r: ref(int32), %k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { @b(%r, %k) } }
def @b(%r: ref(int32), %k: int32) -> int32 { let %u = ref_write(%r, %k); @a(%r, subtract(%k, 1)) }
def @main(%r: ref(int32), %n: int32) -> int32 { let %d = @a(%r, %n); 1 }]]
  end)

  -- TVM drops the inner call: it takes the function for pure while it visits it.
  it("keeps the recursive call of a function with effects", function()
    stays [[
def @main(%r: ref(int32), %n: int32) -> int32 {
  let %f = fn (%k: int32) -> int32 {
    if (equal(%k, 0)) { 0 } else {
      let %e = %f(subtract(%k, 1));
      let %u = ref_write(%r, %k);
      0
    }
  };
  %f(%n)
}]]
  end)

  it("follows functions through results, branches and variables", function()
    becomes([[
def @main(%n: int32) -> int32 {
  let %h = fn (%x: int32) { fn (%y: int32) { add(%x, %y) } };
  let %k = if (equal(%n, 0)) { %h(%n) } else { fn (%y: int32) { %y } };
  let %l = %k;
  let %d = %l(%n);
  1
}]], "def @main(%n: int32) -> int32 { 1 }")
  end)

  it("keeps those of parameters, fields, contents of references and matched values", function()
    stays "def @main(%f: fn () -> int32) -> int32 { let %d = %f(); 1 }"
    stays "def @main(%t: (fn () -> int32, int32)) -> int32 { let %f = %t.0; let %d = %f(); 1 }"
    stays "def @main(%r: ref(fn () -> int32)) -> int32 { let %f = ref_read(%r); let %d = %f(); 1 }"
    stays [[
type Box { Box(fn () -> int32) }
def @main(%b: Box) -> int32 { let %d = match (%b) { Box(%f) => %f() }; 1 }]]
  end)

  it("keeps those of external functions", function()
    local f = [[
def @f(%%x: int32, %s) -> int32 { %%x } def @main(%%n: int32) -> int32 { let %%d = @f(%%n); 1 }]]
    stays(f:format 'Compiler="ccompiler"')
    becomes(f:format "Inline=1", [[
def @f(%x: int32, Inline=1) -> int32 { %x } def @main(%n: int32) -> int32 { 1 }]])
  end)

  it("keeps a let with an effect in an operand of its value", function()
    stays "def @main(%f: fn () -> int32, %n: int32) -> int32 { let %d = (%f(), %n); 1 }"
  end)

  it("keeps random values", function()
    stays "def @main(%x: Tensor[(3), float32]) { let %d = nn.dropout(%x); %x }"
  end)
end)

describe("DeadCodeElimination with inline_once", function()
  it("puts what a variable is bound to in the place of its only use", function()
    becomes([[
def @main(%x: float32) {
  let %a = exp(%x); let %b = add(%a, %a); let %c = tanh(%b);
  (%a, %c)
}]],
      "def @main(%x: float32) { let %a = exp(%x); (%a, tanh(add(%a, %a))) }", INLINE)
  end)

  it("leaves one that a nested function uses, which may be called twice", function()
    becomes([[
def @main() -> (int32, int32) {
  let %x = add(1, 1);
  let %f = fn (%y: int32) -> int32 { let %z = add(%y, %y); add(%x, %z) };
  (%f(2), %f(3))
}]], [[
def @main() -> (int32, int32) {
  let %x = add(1, 1);
  let %f = fn (%y: int32) -> int32 { add(%x, add(%y, %y)) };
  (%f(2), %f(3))
}]], INLINE)
  end)

  it("counts the uses of an expression that is used twice", function()
    stays("def @main(%x: float32) { let %a = exp(%x); %0 = tanh(%a); add(%0, %0) }", INLINE)
  end)

  it("does not count uses by what is dead", function()
    becomes("def @main(%x: float32) { let %a = exp(%x); let %b = tanh(%a); abs(%a) }",
      "def @main(%x: float32) { abs(exp(%x)) }", INLINE)
  end)

  it("leaves recursive functions and effects where they are", function()
    stays([[
def @main(%n: int32) -> int32 {
  let %f = fn (%k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { %f(subtract(%k, 1)) } };
  %f(%n)
}]], INLINE)
    stays([[
def @main(%x: int32) -> int32 {
  let %r = ref(%x);
  let %v = ref_read(%r);
  let %u = ref_write(%r, add(%v, 1));
  %v
}]], INLINE)
  end)

  it("goes into branches and match arms", function()
    becomes([[
def @main(%p: bool, %x: float32) { let %a = exp(%x); if (%p) { tanh(%a) } else { %x } }]],
      "def @main(%p: bool, %x: float32) { if (%p) { tanh(exp(%x)) } else { %x } }", INLINE)
  end)

  it("dissolves blocks without remaining lets", function()
    becomes("def @main(%x: float32) { add((let %a = exp(%x); tanh(%a)), %x) }",
      "def @main(%x: float32) { add(tanh(exp(%x)), %x) }", INLINE)
  end)
end)

describe("DeadCodeElimination with ignore_impurity", function()
  local refs = [[
def @main(%x: float32) -> float32 {
  let %r = ref(%x);
  let %u = ref_write(%r, add(%x, %x));
  let %w = ref_read(%r);
  ref_read(%r)
}]]

  it("drops unused effects", function()
    becomes(refs, "def @main(%x: float32) -> float32 { let %r = ref(%x); ref_read(%r) }", IGNORE)
    becomes("def @main(%f: fn () -> int32, %n: int32) -> int32 { let %d = (%f(), %n); 1 }",
      "def @main(%f: fn () -> int32, %n: int32) -> int32 { 1 }", IGNORE)
  end)

  it("drops effects in branches that nothing needs", function()
    becomes([[
def @main(%p: bool, %r: ref(int32)) -> int32 {
  let %d = if (%p) { let %u = ref_write(%r, 1); 1 } else { 2 };
  3
}]], "def @main(%p: bool, %r: ref(int32)) -> int32 { 3 }", IGNORE)
  end)

  it("inlines effects with inline_once", function()
    becomes(refs, "def @main(%x: float32) -> float32 { ref_read(ref(%x)) }",
      { inline_once = true, ignore_impurity = true })
  end)

  it("is an option of pipelines", function()
    local pass = pl.pipeline "DeadCodeElimination{inline_once=true,ignore_impurity=true}"
    local mod = pass(parse(refs))
    assert.equal(1, select(2, tostring(mod):gsub("ref_read", "")))
    local ok, diag = pcall(pl.passes.DeadCodeElimination, { inline_once = 3 })
    assert.is_false(ok)
    assert.equal("pass 'DeadCodeElimination': option 'inline_once' expects true or false, got 3",
      diag.message)
  end)
end)

describe("The purity of a module", function()
  -- Each function has a dead call of the next one, which is not known to be pure when it is read.
  local function modules(n)
    local list = {}
    for i = 1, n do
      list[i] = ([[
def @f%d(%%x: int32) -> int32 {
  let %%d = @f%d(%%x);
  if (equal(%%x, 0)) { 0 } else { @f%d(%%x) }
}]]):format(i, i % n + 1, i % n + 1)
    end
    return parse(table.concat(list, "\n"))
  end

  it("is found once, in linear time", function()
    local function seconds(n)
      local mod = modules(n)
      local start = os.clock()
      assert.equal(0, select(2, tostring(pl.passes.DeadCodeElimination()(mod)):gsub("let ", "")))
      return os.clock() - start
    end
    local few = seconds(500)
    local many = seconds(4000)
    assert.is_true(many < 24 * math.max(few, 0.005), ("%g s and %g s"):format(few, many))
  end)
end)
