-- A let's variable that its own value uses: it has no type when that use is
-- built, and the use is held against its type when it has one. Text, InferType
-- and the verifier refuse what does not fit.

local pl = require "perilune"
local core = require "perilune.core"
local ir = pl.ir

local HEAD = '#[version = "0.0.5"]\n'
local function parse(text) return pl.parse(HEAD .. text) end

-- A function bound to %f, whose body is given.
local function text_of(body, params, more)
  return ("%sdef @main() { let %%f = fn (%s) -> int32 { %s }; %%f }"):format(more or "",
    params or "%x: int32", body)
end

local function first_line(err) return (tostring(err):match "[^\n]*") end

local wrong = {
  ["%f"] = "the function's result: expected int32, got fn (int32) -> int32: in Function",
  ["add(%f, %x)"] = "'add', operand 0: expected a tensor, got fn (int32) -> int32: in add("
    .. "%f: fn (int32) -> int32, %x: int32)",
  ["if (%f) { 1 } else { 2 }"] = "the condition of an If must be boolean, not fn (int32) -> int32: "
    .. "in If(%f: fn (int32) -> int32)",
  ["let %g: int32 = %f; %g"] = "the variable of a let: expected int32, got fn (int32) -> int32: "
    .. "in Let(%g: int32, %f: fn (int32) -> int32)",
  ["let %r = ref(%x); let %w = ref_write(%r, %f); 1"] =
    "the reference: expected ref(fn (int32) -> int32), got ref(int32): in RefWrite(%r: ref(int32), "
    .. "%f: fn (int32) -> int32)",
  ["%f(%x, %x)"] = "the function takes 1 argument, got 2: in %f(%x: int32, %x: int32)",
  ["%f.0"] = "TupleGetItem: field 0 of a value that is not a tuple: in TupleGetItem(%f: "
    .. "fn (int32) -> int32)",
  ["match (%f) { L1(%y) => 1 }"] = "the pattern: expected fn (int32) -> int32, got L[]: in "
    .. "L1(PatternVar)",
}

-- The same in scripts: what is bound is made before its variable has a type.
local function of_script(body)
  local f, x = pl.var "f", pl.var("x", "int32")
  return pl.func({}, pl.let(f, pl.func({ x }, body(f, x)), f))
end

describe("a variable in its own value", function()
  it("is held against its type by the reader of text", function()
    for body, message in pairs(wrong) do
      local mod, err = parse(text_of(body, nil, "type L { L1(int32) }\n"))
      assert.is_nil(mod)
      local line = first_line(err)
      assert.equal(message, line:match "error: (.*)$")
      assert.matches("^text:3:%d+: error", line)
      assert.matches("\n *^", tostring(err))
    end
  end)

  it("is told at its place", function()
    local _, err = parse("def @main() { let %f = fn (%x: int32) -> int32 {\n  add(%f, %x) }; %f }")
    assert.matches("text:3:3: error: 'add', operand 0: ", tostring(err), 1, true)
    assert.matches("\n      add(%f, %x) }; %f }\n      ^~~", tostring(err), 1, true)
  end)

  it("may be used as what it is", function()
    for _, body in ipairs { "%f(%x)", "let %g = %f; %g(%x)", "let %r = ref(%f); ref_read(%r)(%x)",
      "(%f, %x).0(%x)", "if (equal(%x, 0)) { 1 } else { %f(%x) }",
      "let %f2 = fn () { %f }; %f2()(%x)" } do
      local mod = assert(parse(text_of(body)))
      assert.is_true(pl.verify(mod))
      assert.equal(mod, pl.infer_type(mod))
    end
  end)

  it("is held against its type in what scripts make", function()
    local fits = of_script(function(f, x) return f(x) end)
    assert.is_true(pl.verify(fits))
    for name, body in pairs {
      add = function(f, x) return pl.op.add(f, x) end,
      If = function(f) return ir.If(f, pl.const(1, "int32"), pl.const(2, "int32")) end,
      RefWrite = function(f, x) return ir.RefWrite(ir.RefCreate(x), f) end,
    } do
      for _, work in ipairs { pl.verify, core.seal, function(e) return pl.module { main = e } end,
        pl.infer_type } do
        local ok, err = pcall(function() return assert(work(of_script(body))) end)
        assert.is_false(ok)
        assert.matches("in " .. name .. "(", tostring(err), 1, true)
      end
    end
  end)
end)

describe("a condition", function()
  it("is a boolean", function()
    for type, got in pairs { ["fn () -> bool"] = "fn () -> bool", ["(bool,)"] = "(bool,)",
      ["ref(bool)"] = "ref(bool)", ["int32"] = "int32" } do
      local c = pl.var("c", type)
      local ok, err = pcall(ir.If, c, pl.const(1), pl.const(2))
      assert.is_false(ok)
      assert.matches("the condition of an If must be boolean, not " .. got .. ": in If(%c",
        tostring(err), 1, true)
    end
  end)
end)

describe("a let's variable without a type, which a script uses before its let", function()
  local i, x = pl.var("i", "int32"), pl.var("x", "Tensor[(2), float32]")

  it("is left to InferType, which asks what uses it again", function()
    local u = pl.var "u"
    local typed = assert(pl.infer_type(pl.func({ x }, pl.let(u, x * 2, u + x))))
    assert.equal("Tensor[(2), float32]", tostring(typed.ret_type))
  end)

  it("is refused when a use does not fit", function()
    local u = pl.var "u"
    local none, diag = pl.infer_type(pl.func({ i, x }, pl.let(u, i, u + x)))
    assert.is_nil(none)
    assert.equal("error: 'add', operand 1: expected int32, got float32: in "
      .. "add(%u: int32, %x: Tensor[(2), float32])", first_line(diag))
  end)

  it("is refused as the result of a function or branch that does not fit", function()
    for _, body in ipairs {
      function(u) return pl.func({}, u, pl.type "Tensor[(3), float32]")() end,
      function(u) return ir.If(pl.const(true), u, pl.tuple { i }) end,
    } do
      local u = pl.var "u"
      assert.is_nil((pl.infer_type(pl.func({ i }, pl.let(u, i, body(u))))))
    end
  end)
end)
