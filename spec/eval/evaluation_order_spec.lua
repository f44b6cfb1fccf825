-- In which order the parts of expressions are evaluated: as TVM's interpreter
-- does, operands from left to right, a callee behind its arguments. Each
-- program appends digits to a number that a reference holds; graph forms and
-- text keep that order.

local pl = require "perilune"

-- `%r` counts on by `digit` before it gives `value`.
local function tick(digit, value)
  return ([[(let %%u%d: () = ref_write(%%r, add(multiply(ref_read(%%r), 10f), %df)); %s)]])
    :format(digit, digit, value)
end

local function program(body)
  return assert(pl.parse(([[
    #[version = "0.0.5"]
    type Pair { Both(float32, float32) }
    def @main(%%x: float32) -> float32 {
      let %%r: ref(float32) = ref(0f);
      let %%f = fn (%%a: float32, %%b: float32) -> float32 { add(%%a, %%b) };
      let %%v = %s;
      ref_read(%%r)
    }]]):format(body)))
end

local forms = {
  "ToANormalForm", "ToBasicBlockNormalForm", "ToGraphNormalForm", "LambdaLift", "Inline",
  "ToANormalForm,ToGraphNormalForm", "LambdaLift,Inline", "ToBasicBlockNormalForm,ToANormalForm",
  "DefuseOps",
}

local function comes(expected, body)
  local mod = program(body)
  local function digits(m) return pl.eval(m, pl.tensor(1.0, "float32")):to_table() end
  assert.equal(expected, digits(mod))
  assert.equal(expected, digits(assert(pl.parse(mod:text()))))
  for _, form in ipairs(forms) do
    local out = pl.pipeline(form)(mod)
    assert(pl.verify(out))
    assert.equal(expected, digits(out), form)
    assert.equal(expected, digits(assert(pl.parse(out:text()))), form)
  end
end

describe("the order of evaluation", function()
  it("is that of operands, left to right", function()
    comes(12, ("add(%s, %s)"):format(tick(1, "%x"), tick(2, "%x")))
    comes(123, ("(%s, %s, %s)"):format(tick(1, "%x"), tick(2, "%x"), tick(3, "%x")))
  end)

  it("has a callee behind its arguments", function()
    comes(123, ("%s(%s, %s)"):format(tick(3, "%f"), tick(1, "%x"), tick(2, "%x")))
  end)

  it("has the callee of a callee behind all arguments", function()
    comes(1234, ("%s(%s)(%s)"):format(
      tick(4, "fn (%p: float32) { fn (%q: float32) { add(%p, %q) } }"), tick(3, "%x"),
      tick(1, tick(2, "%x"))))
  end)

  it("has the arguments of constructors left to right", function()
    comes(12, ("Both(%s, %s)"):format(tick(1, "%x"), tick(2, "%x")))
  end)

  it("has a condition before the branch that is taken", function()
    comes(12, ("if (%s) { %s } else { %s }"):format(tick(1, "True"), tick(2, "%x"), tick(3, "%x")))
    comes(13, ("if (%s) { %s } else { %s }"):format(tick(1, "False"), tick(2, "%x"),
      tick(3, "%x")))
  end)

  it("has a value before the arm that takes it", function()
    comes(123, ("match (%s) { Both(%%a, %%b) => { %s } }"):format(
      tick(1, ("Both(%s, %%x)"):format(tick(2, "%x"))), tick(3, "%a")))
  end)

  it("has a reference before what is written to it", function()
    comes(12, ("ref_write(%s, %s)"):format(tick(1, "ref(%x)"), tick(2, "%x")))
  end)

  it("has a let's value before what follows", function()
    comes(12, ("(let %%z = %s; %s)"):format(tick(1, "%x"), tick(2, "%z")))
  end)

  it("has a body where the function is called, not where it stands", function()
    comes(21, ("(let %%h = fn (%%a: float32) -> float32 { %s }; %%h(%s))"):format(
      tick(1, "%a"), tick(2, "%x")))
  end)

  it("has an argument where its function was called, though one branch alone uses it", function()
    local mod = assert(pl.parse [[
      #[version = "0.0.5"]
      def @main(%x: float32) -> float32 {
        let %r: ref(float32) = ref(0f);
        let %v: float32 = (fn (%p: float32) -> float32 {
          if (less(%x, 0f)) { %p } else { %x }
        })(negative(@count(%r)));
        ref_read(%r)
      }
      def @count(%r: ref(float32)) -> float32 {
        let %u: () = ref_write(%r, 1f);
        2f
      }]])
    local out = pl.passes.DefuseOps()(mod)
    for _, m in ipairs { mod, out, assert(pl.parse(out:text())) } do
      assert.equal(1, pl.eval(m, pl.tensor(3.0, "float32")):to_table())
    end
    pl.assert_equal(out, assert(pl.parse(out:text())))
  end)
end)
