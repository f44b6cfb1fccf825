-- Dataflow patterns: what is refused, callbacks that misbehave, and large programs.

local pl = require "perilune"
local df = pl.dataflow_pattern
local op = pl.op

local wildcard, is_op, is_var = df.wildcard, df.is_op, df.is_var

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("misuse of dataflow patterns", function()
  it("is refused where it is written", function()
    assert.matches("dataflow_hostile_spec.lua:%d+: is_let: a dataflow pattern expected, got nil",
      message(function() df.is_let(wildcard()) end))
    assert.matches("CallPattern: a dataflow pattern expected, got number",
      message(function() wildcard()(1) end))
    assert.matches("did you mean 'nn.relu'", message(is_op, "nn.rellu"))
    assert.matches("is_var: name: a string expected", message(is_var, 1))
    assert.matches("no dtype is called 'flaot32'", message(df.has_dtype, "flaot32"))
    assert.matches("has_shape: shape: a table expected", message(df.has_shape, 3))
    assert.matches("the name of an attribute: a string expected", message(df.has_attr, { 1 }))
    assert.matches("optional: f: a function expected", message(function()
      wildcard():optional(1)
    end))
    assert.matches("index: an integer from 0 expected",
      message(df.is_tuple_get_item, wildcard(), 1.5))
    assert.matches("match: expr: a node expected, got table", message(function()
      wildcard():match {}
    end))
    assert.matches("rewrite: callbacks: a table expected", message(df.rewrite, 1, pl.var "x"))
    assert.matches("there is no option 'calback'", message(df.DFPatternCallback,
      { pattern = wildcard(), calback = print }))
    assert.matches("a function expected, got nil", message(df.DFPatternCallback,
      { pattern = wildcard() }))
    assert.matches("a CallPattern cannot be redirected", message(function()
      wildcard()(nil):redirect_to(wildcard())
    end))
  end)

  it("does not change a pattern", function()
    local pattern = is_op "tanh"(wildcard())
    assert.matches("immutable", message(function() pattern.args = {} end))
    local args = { wildcard() }
    local call = df.CallPattern(is_op "tanh", args)
    args[1] = is_var "nobody"
    assert.is_true(call:match(op.tanh(pl.var "x")))
  end)
end)

describe("cycles in patterns", function()
  it("of wildcards alone match nothing", function()
    local a, b = wildcard(), wildcard()
    a:redirect_to(b)
    b:redirect_to(a)
    assert.matches("steps", message(function() a:match(pl.var "x") end))
    local own = wildcard()
    own:redirect_to(own | is_var "x")
    assert.matches("steps", message(function() own:match(pl.var "y") end))
  end)

  it("are taken back with a second redirection", function()
    local rest = wildcard()
    local pattern = is_op "tanh"(rest)
    local x = pl.var "x"
    assert.is_true(pattern:match(op.tanh(x)))
    rest:redirect_to(pattern)
    assert.is_false(pattern:match(op.tanh(x)))
    rest:redirect_to(is_var())
    assert.is_true(pattern:match(op.tanh(x)))
  end)

  it("through several wildcards match as deep as the program goes", function()
    local a, b = wildcard(), wildcard()
    local pattern = is_op "tanh"(a)
    a:redirect_to(is_op "exp"(b) | is_var())
    b:redirect_to(pattern | is_var())
    local x = pl.var "x"
    assert.is_true(pattern:match(op.tanh(op.exp(op.tanh(op.exp(x))))))
    assert.is_false(pattern:match(op.tanh(op.exp(op.exp(x)))))
  end)
end)

describe("a callback of a rewrite", function()
  local x = pl.var("x", "Tensor[(2), float32]")
  local fn = pl.func({ x }, op.tanh(op.exp(x)))
  local function rewrite(f, name)
    return df.rewrite({ pattern = is_op "tanh"(wildcard()), callback = f, name = name }, fn)
  end

  it("may raise", function()
    local err = { "mine" }
    local ok, caught = pcall(rewrite, function() error(err) end)
    assert.is_false(ok)
    assert.equal(err, caught)
    assert.equal(fn, rewrite(function() end))
  end)

  it("is named with its place when it fails or never ends", function()
    local function forever() while true do end end
    local context = pl.context { config = { ["limit.seconds"] = 0.05 } }
    for _, f in ipairs { function() error "boom" end, function() return "x" end,
      coroutine.yield, forever } do
      local callback = { pattern = is_op "nn.relu" (wildcard()), callback = f, name = "mine" }
      local ok, err = pcall(pl.with, context, df.rewrite, callback, pl.op.nn.relu(pl.var "x"))
      assert.is_false(ok)
      assert.matches("note: in callback 'mine'", tostring(err), 1, true)
      if f ~= coroutine.yield then
        assert.matches("dataflow_hostile_spec.lua:%d+: note: in callback", tostring(err))
      end
    end
  end)

  it("may not bring variables of other functions into a module", function()
    local T = "Tensor[(2), float32]"
    local mod = assert(pl.parse('#[version = "0.0.5"]\ndef @f(%x: ' .. T .. ") { nn.relu(%x) }"))
    local text = tostring(mod)
    local ok, err = pcall(df.rewrite, { pattern = is_op "nn.relu" (wildcard()), name = "mine",
      callback = function() return pl.op.tanh(pl.var("q", T)) end }, mod)
    assert.is_false(ok)
    assert.matches("in function @f: what callbacks made has the variable 'q', which the function "
      .. "does not have; callbacks that rewrote it: 'mine'", tostring(err), 1, true)
    assert.equal(text, tostring(mod))
  end)

  it("may not answer garbage", function()
    assert.matches("callback 'mine': a node, a number, a tensor or nil expected as its answer, got "
      .. "table", message(rewrite, function() return {} end, "mine"))
    assert.matches("got string", message(rewrite, function() return "x" end))
    assert.matches("got perilune.Op", message(rewrite, function() return op.tanh end))
    assert.matches("got boolean", message(rewrite, function() return false end))
  end)

  it("may not answer a node that is gone", function()
    local kept
    df.rewrite({ pattern = is_op "tanh"(wildcard()), rewrite_once = true,
      callback = function(_, post) kept = op.exp(post) return kept end }, fn)
    assert.has_error(function() rewrite(function() return kept end) end)
  end)

  it("may not make an ill-typed program", function()
    local y = pl.var("y", "Tensor[(3), float32]")
    local sum = pl.func({ x }, op.tanh(x) + x)
    assert.has_error(function()
      df.rewrite({ pattern = is_op "tanh"(wildcard()), callback = function() return y end }, sum)
    end)
    assert.has_error(function()
      df.rewrite({ pattern = df.is_function(nil, wildcard()), callback = function() return 1 end },
        pl.module { main = fn })
    end)
  end)

  it("may match and rewrite other programs, and its own", function()
    local inner = { pattern = is_op "exp"(wildcard()),
      callback = function(_, post) return op.sqrt(post.args[1]) end }
    local out = rewrite(function(pre, post)
      assert.is_true(is_op "exp"(is_var "x"):match(pre.args[1]))
      assert.is_true(is_op "tanh"(is_op "exp"(wildcard())):match(post))
      return df.rewrite(inner, pre.args[1])
    end)
    assert.equal("sqrt", out.body.op.name)
  end)

  it("is stopped when it never ends, and named", function()
    local flips = { pattern = is_op "tanh"(wildcard()), name = "flip",
      callback = function(_, post) return op.exp(post.args[1]) end }
    local back = { pattern = is_op "exp"(wildcard()),
      callback = function(_, post) return op.tanh(post.args[1]) end }
    local other = { pattern = is_op "sqrt"(wildcard()), name = "other", callback = function() end }
    local grows = { pattern = is_op "nn.relu"(wildcard()), name = "grows",
      callback = function(_, post) return op.nn.relu(post) end }
    local start = pl.func({ x }, op.tanh(op.sqrt(x)))
    local count = 0
    local alternate = { pattern = wildcard()(wildcard()), name = "alternate" }
    function alternate.callback(_, post)
      count = count + 1
      if post.op.name == "tanh" then return op.exp(post.args[1]) end
      if post.op.name == "exp" then return op.tanh(post.args[1]) end
    end
    assert.equal(start, df.rewrite({ flips, back, other }, start))
    local text = message(df.rewrite, { alternate, other }, start)
    assert.matches("it did not end after 100 rounds; callbacks that still rewrite: 'alternate'$",
      text)
    assert.equal(200, count)
    assert.matches("the program grew by half in each of 14 rounds; callbacks that still "
      .. "rewrite: 'grows'$",
      message(df.rewrite, grows, pl.func({ x }, op.nn.relu(x))))
  end)

  it("counts rounds, however many callbacks there are", function()
    local callbacks = {}
    for i = 1, 24 do
      callbacks[i] = { pattern = is_op "nn.leaky_relu"(wildcard()), callback = function(_, post)
        local alpha = post.attrs.alpha
        if alpha * 8 == i then return op.nn.leaky_relu(post.args[1], { alpha = (i - 1) / 8 }) end
      end }
    end
    local out = df.rewrite(callbacks, op.nn.leaky_relu(x, { alpha = 2.5 }))
    assert.equal(0, out.attrs.alpha)
  end)
end)

describe("the check of a partition", function()
  local x = pl.var("x", "Tensor[(2), float32]")
  local fn = pl.func({ x }, op.tanh(op.exp(x)))

  it("may raise, and build", function()
    local pattern = is_op "tanh"(wildcard())
    local err = { "mine" }
    local ok, caught = pcall(pattern.partition, pattern, fn, nil, function() error(err) end)
    assert.is_false(ok)
    assert.equal(err, caught)
    local out = pattern:partition(fn, nil, function(root) return op.exp(root) ~= nil end)
    assert.equal("tanh", out.body.callee.body.op.name)
    assert.equal(fn, pattern:partition(fn, nil, function(root) return op.exp(root) == nil end))
  end)
end)

describe("dataflow patterns of large programs", function()
  local N = 100000

  local function chain(f, n)
    local x = pl.var("x", "Tensor[(2), float32]")
    local y = x
    for _ = 1, n or N do y = f(y) end
    return pl.func({ x }, y)
  end

  -- Time may grow four times as fast as the program.
  local function is_linear(f)
    local function seconds(n)
      local fn = chain(op.nn.relu, n)
      f(fn)
      collectgarbage()
      local began = os.clock()
      f(fn)
      return os.clock() - began
    end
    local small, large = seconds(N // 10), seconds(N)
    assert(large < 40 * small + 0.5, ("%.3f s, then %.3f s"):format(small, large))
  end

  it("match a chain to its end", function()
    local rest = wildcard()
    local pattern = is_op "nn.relu"(rest)
    rest:redirect_to(pattern | is_var "x")
    is_linear(function(fn) assert.is_true(pattern:match(fn.body)) end)
    local dominator = df.dominates(is_op "nn.relu"(is_var()), is_op "nn.relu"(wildcard()),
      is_op "nn.relu"(wildcard()))
    is_linear(function(fn) assert.is_true(dominator:match(fn.body)) end)
  end)

  it("fail on a chain without trying each part again and again", function()
    local rest = wildcard()
    local pattern = is_op "nn.relu"(rest)
    rest:redirect_to(pattern | is_var "nobody")
    is_linear(function(fn) assert.equal(fn, pattern:partition(fn)) end)
    local dominator = df.dominates(is_op "tanh"(wildcard()), is_op "nn.relu"(wildcard()),
      is_op "nn.relu"(wildcard()))
    is_linear(function(fn) assert.equal(fn, dominator:partition(fn)) end)
  end)

  it("are rewritten and partitioned in linear time", function()
    local pair = is_op "nn.relu"(is_op "nn.relu"(wildcard()))
    is_linear(function(fn) pair:partition(fn) end)
    is_linear(function(fn)
      local out = df.rewrite({ pattern = pair,
        callback = function(_, post) return post.args[1] end }, fn)
      assert.equal("Var", out.body.args[1].kind)
    end)
  end)

  it("may have long lets and deep branches", function()
    local lines = { '#[version = "0.0.5"]\ndef @main(%v0: Tensor[(2), float32]) {' }
    for i = 1, N do lines[#lines + 1] = ("let %%v%d = nn.relu(%%v%d);"):format(i, i - 1) end
    lines[#lines + 1] = ("%%v%d }"):format(N)
    local mod = assert(pl.parse(table.concat(lines, "\n")))
    local rest = wildcard()
    local lets = df.is_let(is_var(), is_op "nn.relu"(is_var()), rest)
    rest:redirect_to(lets | is_var())
    assert.is_true(lets:match(mod.main.body))
    local out = df.rewrite({ pattern = is_op "nn.relu"(wildcard()),
      callback = function(_, post) return op.tanh(post.args[1]) end }, mod)
    assert.equal("tanh", out.main.body.value.op.name)
    local c, e = pl.var("c", "bool"), pl.var("x", "Tensor[(2), float32]")
    local deep = e
    for _ = 1, 2000 do deep = pl.if_(c, op.tanh(deep), e) end
    local inner = wildcard()
    local ifs = df.is_if(is_var "c", is_op "tanh"(inner), wildcard())
    inner:redirect_to(ifs | is_var())
    assert.is_true(ifs:match(deep))
    assert.equal(3, #ifs:partition(deep).callee.params + 1)
  end)

  it("are given up when alternatives multiply", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local function sum(depth, f)
      if depth == 0 then return f() end
      return sum(depth - 1, f) + sum(depth - 1, f)
    end
    local pattern = sum(5, function() return is_op "tanh"(wildcard()) | is_var "nobody" end)
    local expr = op.exp(x)
    for _ = 1, 5 do expr = op.tanh(x) + expr end
    assert.is_false(pattern:match(expr))
    local bad = sum(7, function() return wildcard() end) - is_var "nobody"
    local full = sum(7, function() return op.tanh(x) end)
    assert.matches("was not decided in %d+ steps", message(function() bad:match(full - x) end))
  end)
end)
