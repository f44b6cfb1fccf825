-- Calls of functions fit what they call: when a signature changes, when passes
-- give programs, in text and at the command line.

local pl = require "perilune"
local command = require "spec.cli.command"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local mod = parse [[
def @f(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%x, %x) }
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @f(%x) }
]]

local function var(name, type_) return pl.var(name, type_ or "Tensor[(2), float32]") end

-- A function that gives its first parameter, of parameters of these types.
local function first(...)
  local params = {}
  for i, type_ in ipairs { ... } do params[i] = var("p" .. i, type_) end
  return pl.func(params, params[1])
end

-- The work fails with the message, whose place is here.
local function refuses(message, work, ...)
  local ok, err = pcall(work, ...)
  assert.is_false(ok)
  assert.equal("type", err.code)
  assert.matches(message, tostring(err), 1, true)
  return tostring(err)
end

-- The same of a program that breaks a rule of the IR.
local function refuses_invalid(message, work, ...)
  local ok, err = pcall(work, ...)
  assert.is_false(ok)
  assert.equal("invalid", err.code)
  assert.matches(message, tostring(err), 1, true)
end

local function with(changes) return mod:with(changes) end

describe("a function of another signature is refused when a caller does not fit it:", function()
  it("the number of arguments", function()
    local text = refuses("the function takes 2 arguments, got 1: in @f(%x: Tensor[(2), float32])"
      .. " of @main", with, { f = first("Tensor[(2), float32]", "float32") })
    assert.matches("^[^:]*call_spec.lua:%d+: ", text)
    assert.not_matches("\n", text)
    refuses("the function takes 0 arguments, got 1", with, { f = pl.func({}, pl.const(1)) })
  end)

  it("shape, rank and dtype", function()
    refuses("argument 1 must be Tensor[(3), float32], got Tensor[(2), float32]: in @f(", with,
      { f = first "Tensor[(3), float32]" })
    refuses("argument 1 must be Tensor[(2, 1), float32], got Tensor[(2), float32]: in @f(", with,
      { f = first "Tensor[(2, 1), float32]" })
    refuses("argument 1 must be Tensor[(2), int32], got Tensor[(2), float32]: in @f(", with,
      { f = first "Tensor[(2), int32]" })
  end)

  it("a tuple for a tensor, and a tensor for a function", function()
    refuses("argument 1 must be (Tensor[(2), float32],), got Tensor[(2), float32]: in @f(", with,
      { f = first "(Tensor[(2), float32],)" })
    refuses("argument 1 must be fn (float32) -> float32, got Tensor[(2), float32]: in @f(", with,
      { f = first "fn (float32) -> float32" })
  end)

  it("what becomes of its result", function()
    local sums = parse [[
      def @f(%x: Tensor[(2), float32]) { add(%x, %x) }
      def @g(%x: Tensor[(2), float32]) { @f(%x) }
      def @main(%x: Tensor[(2), float32]) { add(@g(%x), %x) }
    ]]
    local x = var "x"
    refuses("extents 3 and 2 do not broadcast: in add(", function()
      return sums:with { f = pl.func({ x }, pl.const({ 1, 2, 3 }, "float32")) }
    end)
    local longer = sums:with { f = pl.func({ x }, pl.const({ { 1, 2 }, { 3, 4 } }, "float32")) }
    assert.equal(pl.type "Tensor[(2, 2), float32]", longer.main.body.type)
    assert.is_true(pl.verify(longer))
  end)

  it("and nothing has changed", function()
    pcall(with, { f = first "Tensor[(3), float32]" })
    assert.equal(pl.type "Tensor[(2), float32]", mod.f.params[1].type)
    assert.is_true(pl.verify(mod))
  end)
end)

describe("callers change along", function()
  local three = pl.type "Tensor[(3), float32]"

  local function both(changed)
    local x = var("x", three)
    assert.is_true(pl.verify(changed))
    assert.is_true(pl.well_formed(changed))
    assert.equal(changed, pl.passes.InferType()(changed))
    assert.equal(three, changed.main.body.type)
    assert.equal(three, x.type)
  end

  it("whatever the names are", function()
    local x = var("x", three)
    both(mod:with { f = first(three), main = pl.func({ x }, pl.global("f", first(three).type)(x)) })
    local other = parse [[
      def @z(%x: Tensor[(2), float32]) { add(%x, %x) }
      def @main(%x: Tensor[(2), float32]) { @z(%x) }
    ]]
    local z = first(three)
    both(other:with { z = z, main = pl.func({ x }, pl.global("z", z.type)(x)) })
  end)

  it("when they still call what the module had", function()
    local x = var("x", three)
    local untyped = pl.func({ x }, pl.global "f"(x))
    both(pl.passes.InferType()(mod:with { f = first(three), main = untyped }))
    refuses("argument 1 must be Tensor[(3), float32], got Tensor[(2), float32]", with,
      { f = first(three), main = mod.main:with { attrs = { Inline = 1 } } })
  end)

  it("in a module that is made of them", function()
    local x = var("x", three)
    local call = pl.global("f", first(three).type)(x)
    both(pl.module { f = first(three), main = pl.func({ x }, call) })
    refuses("the function takes 2 arguments, got 1: in @f(%x: Tensor[(3), float32]) of @main",
      pl.module, { f = first(three, three), main = pl.func({ x }, call) })
  end)

  it("when they are as general as before", function()
    local open = mod:with { f = first "Tensor[(?), float32]" }
    assert.is_true(pl.verify(open))
    assert.is_true(pl.verify(mod:with { f = first "Tensor[*, float32]" }))
    assert.is_true(pl.verify(mod:with { f = first "Tensor[(N), float32]" }))
    assert.is_true(pl.verify(mod:with { f = pl.func({ pl.var "x" }, pl.const(1)) }))
  end)
end)

describe("a call of a generic function", function()
  local lists = parse [[
    type List[A] { Cons(A, List[A]), Nil, }
    def @id[A](%x: A) -> A { %x }
    def @pair[A](%x: A, %y: A) -> (A, A) { (%x, %y) }
    def @main(%x: int32) { (@id(%x), @pair(%x, %x), Cons(%x, Cons(1, Nil))) }
  ]]

  it("fits for any type", function()
    assert.is_true(pl.verify(lists))
    assert.is_true(pl.verify(pl.passes.InferType()(lists)))
  end)

  it("has one type for each of its parameters", function()
    local a = pl.ir.TypeVar "A"
    local y = pl.var("y", "float32")
    local x = pl.var("x", a)
    refuses("argument 2 must be int32, got float32: in @pair(", function()
      local z, of = pl.var("z", "int32"), lists.pair.type
      return lists:with { main = pl.func({ z, y }, pl.global("pair", of)(z, y)) }
    end)
    refuses("the function takes 1 argument, got 2: in @pair(", function()
      return lists:with { pair = pl.ir.Function({ x }, x, nil, nil, { a }) }
    end)
  end)
end)

describe("a variable that is bound to a function", function()
  it("is called as that is", function()
    local f, x = pl.var "f", var "x"
    refuses("the function takes 2 arguments, got 1: in %f(%x: Tensor[(2), float32])", function()
      return pl.verify(pl.func({ x }, pl.let(f, first("float32", "float32"), f(x))))
    end)
  end)
end)

describe("a pass that changes a signature", function()
  local x = var "x"
  local marked = mod:with { main = mod.main:with { attrs = { caller = 1 } } }

  -- A pass that puts `fn` in the place of the callee.
  local function puts(fn)
    return pl.function_pass { name = "Put", run = function(f)
      return f.attrs.caller and f or fn
    end }
  end

  it("of one function that its caller does not fit is refused, and nothing has changed", function()
    refuses("pass 'Put': the function takes 2 arguments, got 1: in @f(%x: Tensor[(2), float32])"
      .. " of @main", puts(first("Tensor[(2), float32]", "float32")), marked)
    refuses("argument 1 must be Tensor[(3), float32], got Tensor[(2), float32]: in @f(",
      puts(first "Tensor[(3), float32]"), marked)
    assert.equal(mod.f, marked.f)
    assert.is_true(pl.verify(marked))
  end)

  it("of one function has its callers typed again, and theirs", function()
    local chain = parse [[
      def @f(%x: Tensor[(2), float32]) { add(%x, %x) }
      def @g(%x: Tensor[(2), float32]) { nn.relu(@f(%x)) }
      def @main(%x: Tensor[(2), float32]) { @g(%x) }
    ]]
    local widen = pl.function_pass { name = "Widen", run = function(fn)
      local call = fn.body
      if call.op and call.op.name == "add" then
        return pl.func(fn.params, pl.op.expand_dims(call, { axis = 0 }))
      end
    end }
    local matrix = pl.type "Tensor[(1, 2), float32]"
    local wide = widen(chain)
    assert.is_true(pl.verify(wide))
    assert.equal(matrix, wide.f.body.type)
    assert.equal(matrix, wide.g.body.type)
    assert.equal(matrix, wide.main.body.type)
    assert.same({ 1, 2 }, pl.eval(wide, pl.tensor({ 1, 2 }, "float32")).shape)
    assert.equal(wide, pl.passes.InferType()(wide))
  end)

  it("in a way that callers fit as well leaves their own signatures", function()
    local open = puts(first "Tensor[(?), float32]")(marked)
    assert.is_true(pl.verify(open))
    assert.equal(mod.f.type, marked.f.type)
    assert.equal(pl.type "fn (Tensor[(?), float32]) -> Tensor[(?), float32]", open.f.type)
  end)

  it("may not call what the module has not", function()
    refuses_invalid("the module has no function '@none'",
      puts(pl.func({ x }, pl.global("none", mod.f.type)(x))), marked)
  end)

  it("of a module is told of the caller", function()
    local pass = pl.module_pass { name = "Widen", run = function(m)
      return m:with { f = first("Tensor[(2), float32]", "float32") }
    end }
    refuses("the function takes 2 arguments, got 1: in @f(", pass, mod)
  end)

  it("changes the callers, too", function()
    local pass = pl.module_pass { name = "Widen", run = function(m)
      local f = first("Tensor[(2), float32]", "float32")
      local call = pl.global("f", f.type)(x, pl.const(1, "float32"))
      return m:with { f = f, main = pl.func({ x }, call) }
    end }
    local wide = pass(mod)
    assert.is_true(pl.verify(wide))
    assert.equal(2, #wide.main.body.args)
  end)
end)

describe("text", function()
  it("is refused where a call does not fit a function that follows", function()
    local _, diag = pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) { @z(%x, %x) }
def @z(%y: Tensor[(2), float32]) { %y }
]]
    assert.matches("the function takes 1 argument, got 2: in @z(", tostring(diag), 1, true)
    _, diag = pl.parse [[
#[version = "0.0.5"]
def @z(%y: Tensor[(3), float32]) { %y }
def @main(%x: Tensor[(2), float32]) { @z(%x) }
]]
    assert.matches("argument 1 must be Tensor[(3), float32], got Tensor[(2), float32]",
      tostring(diag), 1, true)
  end)
end)

describe("perilune opt", function()
  local folder = command.folder()
  teardown(function() os.execute("rm -r " .. folder) end)

  it("names the call that a pass has broken, and writes nothing", function()
    local program = command.write(folder .. "/in.relay", tostring(mod))
    local pass = command.write(folder .. "/widen.lua", [[
      local pl = require "perilune"
      return pl.module_pass { name = "Widen", run = function(m)
        local x, y = pl.var("x", "Tensor[(2), float32]"), pl.var("y", "float32")
        return m:with { f = pl.func({ x, y }, x) }
      end }]])
    local out = folder .. "/out.relay"
    local status, _, err = command.run(folder, ("opt %s -p %s -o %s"):format(program, pass, out))
    assert.equal(1, status)
    assert.matches("the function takes 2 arguments, got 1: in @f(%x1: Tensor[(2), float32]) "
      .. "of @main", err, 1, true)
    assert.is_nil(io.open(out))
  end)
end)

describe("the effect of a function", function()
  local cells = parse [[
    def @f(%r: ref(int32)) -> () { () }
    def @g(%r: ref(int32)) -> () { @f(%r) }
    def @main(%r: ref(int32)) -> int32 { let %u = @g(%r); ref_read(%r) }
  ]]
  local writes = parse "def @f(%r: ref(int32)) -> () { ref_write(%r, 5) }"
  local clean = pl.passes.DeadCodeElimination()

  local function calls(m) return tostring(m.main):find("@g(", 1, true) ~= nil end

  it("is known to all who call it", function()
    assert.is_false(calls(clean(cells)))
    local changed = cells:with { f = writes.f }
    assert.is_true(calls(clean(changed)))
    assert.is_true(pl.verify(changed))
    assert.is_false(calls(clean(changed:with { f = cells.f })))
  end)

  it("is the same however the module was made", function()
    local changed = cells:with { f = writes.f }
    assert.is_true(pl.equal(changed, pl.parse(changed:text())))
    local built = pl.module(cells.functions)
    assert.is_true(pl.equal(built, cells))
    local x = var "x"
    local global = pl.module { main = pl.func({ x }, pl.global "z"(x)), z = first(x.type) }
    global = pl.passes.InferType()(global)
    assert.is_true(pl.equal(global, pl.parse(global:text())))
  end)

  it("is told when a pass gives it another one", function()
    local pass = pl.function_pass { name = "Write", run = function(fn)
      local r = fn.params[1]
      return fn.ret_type == pl.type "()" and not tostring(fn):find("@f", 1, true)
        and pl.func({ r }, pl.ir.RefWrite(r, pl.const(5, "int32"))) or fn
    end }
    assert.is_true(calls(clean(pass(cells))))
    assert.is_true(pl.verify(pass(cells)))
  end)

  it("of functions that call each other is what they do besides, as in TVM", function()
    local loop = parse [[
      def @a(%x: int32) -> int32 { @b(%x) }
      def @b(%x: int32) -> int32 { @a(%x) }
      def @main(%x: int32) -> int32 { let %y = @a(%x); %x }
    ]]
    assert.not_matches("@a(", tostring(clean(loop).main), 1, true)
    local writing = parse [[
      def @a(%x: ref(int32)) -> int32 { @b(%x) }
      def @b(%x: ref(int32)) -> int32 { let %y = ref_write(%x, 1); @a(%x) }
      def @main(%x: ref(int32)) -> int32 { let %y = @a(%x); 2 }
    ]]
    assert.matches("@a(", tostring(clean(writing).main), 1, true)
    assert.is_true(pl.equal(loop, pl.module(loop.functions)))
  end)
end)
