-- FoldConstant on calls of functions, and on loops, that depend on constants.

local pl = require "perilune"
local op = pl.op

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- Folds, and tells how often each reason to refuse was counted.
local function fold(mod)
  local pass = pl.passes.FoldConstant()
  local refused = {}
  local out = pass(mod)
  for key, n in pairs(pl.report()[1].counts or {}) do
    local why = key:match "^refused: (.*)$"
    if why then refused[why] = n end
  end
  assert(pl.verify(out))
  assert.equal(out, pass(out))
  return out, refused
end

local function value_of(body)
  assert.equal("Constant", body.kind)
  return body.data:to_table()
end

-- The result of a function whose body is one constant in the end.
local function result(text)
  local mod = parse(text)
  local body = fold(mod).main.body
  while body.kind == "Let" do body = body.body end
  local value = value_of(body)
  assert.same(pl.eval(mod):to_table(), value)
  return value
end

local function refusals(text)
  local mod = parse(text)
  local out, refused = fold(mod)
  assert.equal(mod, out)
  return refused
end

describe("A call of a function on constants", function()
  it("becomes its result", function()
    assert.equal(8, result "def @main() { %0 = fn (%x: float32) { %x + 2f * 3f }; %0(2f) }")
    assert.equal(3, result "def @main() { let %f = fn (%x: float32) { %x + 1f }; %f(2f) }")
    assert.same({ 2, 3 }, result [[
def @main() {
  let %a = 1f + 1f;
  %0 = fn (%x: float32) { let %y = stack((%a, %x)); %y };
  %0(3f)
}]])
  end)

  it("may be recursive", function()
    assert.equal(1024, result [[
def @main() {
  let %f = fn (%n: int32, %a: int32) -> int32 {
    if (%n == 0) { %a } else { %f(%n - 1, %a * 2) }
  };
  %f(10, 1)
}]])
  end)

  it("gives tuples", function()
    assert.equal(110, result [[
def @main() { %0 = fn (%n: int32) { (%n, %n + 1) }; %1 = %0(10); %1.0 * %1.1 }]])
  end)

  it("stays in a call that depends on more", function()
    local source = [[
def @main(%%y: int32) { %%0 = fn (%%n: int32) { %s }; %%0(%s) }]]
    assert.same({}, refusals(source:format("%n + %y", "10")))
    assert.same({}, refusals(source:format("%n + 1", "%y")))
  end)

  it("stays a call of a function with attributes, of a parameter", function()
    assert.same({}, refusals "def @main() { %0 = fn (%x: float32, Primitive=1) { %x }; %0(2f) }")
    assert.same({}, refusals "def @main(%f: fn (float32) -> float32) { %f(2f) }")
  end)

  it("is refused where it is undefined, has effects or is too large", function()
    assert.same({ undefined = 1 }, refusals "def @main() { %0 = fn (%n: int32) { 1 / %n }; %0(0) }")
    assert.same({ effect = 1 }, refusals [[
def @main() { %0 = fn (%x: float32) { nn.dropout(%x).0 }; %0(2f) }]])
    assert.same({ over_budget = 1 }, refusals [[
def @main() {
  %0 = fn (%x: float32) { broadcast_to(%x, shape=[300, 300]) };
  %0(2f)
}]])
    assert.same({ over_budget = 1 }, refusals [[
def @main() {
  %0 = fn (%n: int32) { sum(arange(0, %n, 1, dtype="int32")) };
  %0(10)
}]])
  end)

  it("is refused when it takes too many steps, again and again", function()
    local calls = {}
    for i = 1, 40 do calls[i] = ("let %%x%d = %%f(%d);"):format(i, i) end
    local source = [[
def @main() {
  let %%f = fn (%%n: int32) -> int32 { %%f(%%n + 1) };
  %s
  %%x1
}]]
    assert.same({ too_many_steps = 40 }, refusals(source:format(table.concat(calls, "\n"))))
  end)
end)

describe("A call of a function of the module on constants", function()
  local function stays(text) return refusals(text) end

  it("becomes its result, with what that function calls", function()
    assert.equal(45, result [[
def @sum(%i: int32, %a: int32) -> int32 {
  if (%i < 10) { @sum(%i + 1, %a + %i) } else { %a }
}
def @main() -> int32 { @sum(0, 0) }]])
    assert.equal(1, result [[
def @even(%n: int32) -> int32 { if (%n == 0) { 1 } else { @odd(%n - 1) } }
def @odd(%n: int32) -> int32 { if (%n == 0) { 0 } else { @even(%n - 1) } }
def @main() -> int32 { @even(12) }]])
    assert.equal(110, result [[
def @pair(%n: int32) -> (int32, int32) { (%n, %n + 1) }
def @main() -> int32 { let %p = @pair(10); %p.0 * %p.1 }]])
  end)

  it("is the same whatever the number of threads", function()
    local lines = { "def @f(%x: float32) -> float32 { @g(%x) + 1f }",
      "def @g(%x: float32) -> float32 { %x * 3f }" }
    for i = 1, 40 do
      local body = {}
      for k = 1, 200 do body[k] = ("let %%x%d = tanh(%%y);"):format(k) end
      lines[#lines + 1] = ("def @h%d(%%y: float32) { %s %%y * @f(%df) }"):format(i,
        table.concat(body), i)
    end
    local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. table.concat(lines, "\n")))
    local texts = {}
    for _, threads in ipairs { 1, 4 } do
      pl.with(pl.context { config = { threads = threads } }, function()
        texts[#texts + 1] = tostring(pl.passes.FoldConstant()(mod))
      end)
    end
    assert.equal(texts[1], texts[2])
    assert.matches("multiply%(%%y%d*, 121f", texts[1])
    assert.is_nil(texts[1]:match "@f%(%d")
  end)

  it("stays where its body has effects, is refused or not there", function()
    assert.same({ effect = 1 }, stays [[
def @f(%x: float32) { nn.dropout(%x).0 } def @main() -> float32 { @f(2f) }]])
    assert.same({ effect = 1 }, stays [[
def @g(%x: float32) -> float32 { nn.dropout(%x).0 }
def @f(%x: float32) -> float32 { @g(%x) } def @main() -> float32 { @f(2f) }]])
    assert.same({}, stays [[
def @f(%x: float32, Compiler="c") -> float32 { %x + 1f } def @main() -> float32 { @f(2f) }]])
    assert.same({ undefined = 1 }, stays [[
def @f(%n: int32) -> int32 { 1 / %n } def @main() -> int32 { @f(0) }]])
    assert.same({ too_many_steps = 1 }, stays [[
def @f(%n: int32) -> int32 { @f(%n + 1) } def @main() -> int32 { @f(0) }]])
  end)
end)

describe("A loop on constants", function()
  local function scalar(name, dtype) return pl.var(name, pl.type("Tensor[(), " .. dtype .. "]")) end

  -- 1, 2, 4, ...: the last, and all of them.
  local function doubling(n)
    local i, cond, s = scalar("i", "int64"), scalar("cond", "bool"), scalar("s", "int64")
    local body = pl.func({ i, cond, s }, pl.tuple { cond, op.add(s, s), s })
    return pl.module { main = pl.func({}, op.loop(pl.const(pl.tensor(n, "int64")), pl.const(true),
      pl.const(pl.tensor(1, "int64")), body, { n_results = 2 })) }
  end

  it("becomes its results", function()
    local out = fold(doubling(10)).main.body
    assert.equal("Tuple", out.kind)
    assert.equal(1024, value_of(out.fields[1]))
    assert.same({ 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 }, value_of(out.fields[2]))
  end)

  it("stays if it has too many rounds", function()
    local mod = doubling(1000000)
    local out, refused = fold(mod)
    assert.equal(mod, out)
    assert.same({ too_many_steps = 1 }, refused)
  end)
end)
