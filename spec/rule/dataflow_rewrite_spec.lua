-- Dataflow patterns: rewriting by callbacks. The names of the first group are those of TVM's
-- tests.

local pl = require "perilune"
local df = pl.dataflow_pattern
local op = pl.op

local wildcard, is_op = df.wildcard, df.is_op
local ELEMENTWISE = 0

local function vars(names)
  local list = {}
  for name in names:gmatch "%S+" do list[#list + 1] = pl.var(name) end
  return table.unpack(list)
end

local function same(expected, actual)
  if not pl.equal(expected, actual) then assert.equal(tostring(expected), tostring(actual)) end
  assert.is_true(pl.equal(expected, actual))
end

local function leaky(x) return op.nn.leaky_relu(x, { alpha = 0 }) end

-- add becomes subtract.
local function to_subtract()
  return { pattern = is_op "add"(wildcard(), wildcard()),
    callback = function(_, post) return post.args[1] - post.args[2] end }
end

local function batch_norm(x, gamma, beta, mean, var)
  return op.nn.batch_norm(x, gamma, beta, mean, var,
    { epsilon = 1e-5, relay = 1, n_results = 3 }):get(0)
end

-- A callback that makes nn.batch_norm of its definition.
local function batch_norm_callback()
  local x, var, mean, beta, gamma = wildcard(), wildcard(), wildcard(), wildcard(), wildcard()
  local eps = df.is_constant()
  return df.DFPatternCallback {
    pattern = gamma * (x - mean) / is_op "sqrt"(var + eps) + beta,
    callback = function(_, _, map)
      assert(math.abs(map[eps][1].data:get() - 1e-5) < 1e-10)
      return batch_norm(map[x][1], map[gamma][1], map[beta][1], map[mean][1], map[var][1])
    end,
  }
end

describe("rewriting by dataflow patterns:", function()
  it("test_rewrite", function()
    local x, y = vars "x y"
    same(x - y, df.rewrite(to_subtract(), x + y))
  end)

  it("test_rewrite_func", function()
    local x, w, y, input, weight = vars "x w y input weight"
    local f = pl.func({ input, weight }, op.nn.relu(op.nn.conv2d(input, weight)))
    local out = df.rewrite(to_subtract(), f(x, w) + y)
    assert.is_true(is_op "subtract"(wildcard()(nil), df.is_var "y"):match(out))
  end)

  it("test_rewrite_func_with_attr", function()
    local x, y, a, b = vars "x y a b"
    local f = pl.func({ x, y }, x + y, { Composite = "add" })
    local out = df.rewrite({
      pattern = wildcard():has_attr { Composite = "add" } (wildcard(), wildcard()),
      callback = function(_, post) return post.args[1] + post.args[2] end,
    }, op.abs(f(a, b)))
    same(op.abs(a + b), out)
  end)

  it("test_nested_rewrite", function()
    local x, y = vars "x y"
    local n0 = x + (y + y)
    local whole = (x + n0) + n0
    local a, b = wildcard(), wildcard()
    local p0 = is_op "add"(a, b)
    local pattern = is_op "add"(p0, is_op "add"(p0, a))
    local calls = 0
    assert.equal(whole, df.rewrite({ pattern = pattern, callback = function(_, post)
      calls = calls + 1
      return post
    end }, whole))
    assert.equal(1, calls)
  end)

  it("test_fuse_batchnorm", function()
    local x, var, mean, beta, gamma = vars "x var mean beta gamma"
    local BN = gamma * (x - mean) / op.sqrt(var + pl.const(1e-5)) + beta
    same(batch_norm(x, gamma, beta, mean, var), df.rewrite(batch_norm_callback(), BN))
  end)

  it("test_no_fuse_batchnorm", function()
    local x, var, mean, beta, gamma = vars "x var mean beta gamma"
    local fake = gamma * (x - mean) / op.sqrt(var + pl.const(1e-5)) - beta
    assert.equal(fake, df.rewrite(batch_norm_callback(), fake))
  end)

  it("test_fuse_double_batchnorm", function()
    local x, var, mean, beta, gamma = vars "x var mean beta gamma"
    local BN = gamma * (x - mean) / op.sqrt(var + pl.const(1e-5)) + beta
    local BN2 = gamma * (BN - mean) / op.sqrt(var + pl.const(1e-5)) + beta
    same(batch_norm(batch_norm(x, gamma, beta, mean, var), gamma, beta, mean, var),
      batch_norm_callback():rewrite(BN2))
  end)

  it("test_partial_fuse_double_batchnorm", function()
    local x, var, mean, beta, gamma = vars "x var mean beta gamma"
    local BN = gamma * (x - mean) / op.sqrt(var + pl.const(1e-5)) - beta
    local BN2 = gamma * (BN - mean) / op.sqrt(var + pl.const(1e-5)) + beta
    same(batch_norm(BN, gamma, beta, mean, var), batch_norm_callback():rewrite(BN2))
  end)

  it("test_fuse_batchnorm_commutation", function()
    local x, var, mean, beta, gamma = vars "x var mean beta gamma"
    local function root() return op.sqrt(var + pl.const(1e-5)) end
    for _, form in ipairs {
      beta + gamma * (x - mean) / root(),
      (gamma * (x - mean)) / root() + beta,
      gamma * ((x - mean) / root()) + beta,
    } do
      same(batch_norm(x, gamma, beta, mean, var), batch_norm_callback():rewrite(form))
    end
  end)

  it("test_quadruple_rewrite_dominator", function()
    local input, weight = vars "input weight"
    local x, w = wildcard(), wildcard()
    local elementwise = wildcard():has_attr { TOpPattern = ELEMENTWISE } (wildcard())
      | is_op "add"(wildcard(), wildcard())
    local callback = {
      pattern = df.dominates(is_op "nn.conv2d"(x, w), elementwise,
        is_op "add"(wildcard(), wildcard())),
      callback = function(_, _, map) return op.nn.conv2d(map[x][1], map[w][1]) end,
    }
    local conv = op.nn.conv2d(input, weight)
    local out = op.nn.relu(op.nn.relu(conv)) + leaky(conv) -- classic
    conv = op.nn.conv2d(out, weight)
    out = op.tanh(op.nn.relu(op.nn.relu(conv))) + leaky(conv) -- deeper branch
    conv = op.nn.conv2d(out, weight)
    local relu = op.nn.relu(op.nn.relu(conv))
    out = relu + op.tanh(relu) -- single branch
    conv = op.nn.conv2d(out, weight)
    relu = op.nn.relu(conv)
    out = op.tanh(relu + relu) + leaky(conv) -- nested
    local four = input
    for _ = 1, 4 do four = op.nn.conv2d(four, weight) end
    same(four, df.rewrite(callback, out))
  end)

  local function algebraic_simplify(expr)
    local zero = df.is_expr(pl.const(pl.tensor(0, "int32"))) | df.is_expr(pl.const(0.0))
    local one = df.is_expr(pl.const(pl.tensor(1, "int32"))) | df.is_expr(pl.const(1.0))
    local callbacks = {}
    local function add(x, pattern)
      callbacks[#callbacks + 1] = { pattern = pattern,
        callback = function(_, _, map) return map[x][1] end }
    end
    local x = wildcard()
    add(x, x + zero)
    add(x, x - zero)
    add(x, x * one)
    add(x, x / one)
    add(zero, zero * wildcard())
    add(zero, zero / wildcard())
    return df.rewrite(callbacks, expr)
  end

  it("test_algebraic_simplify", function()
    local x, y = vars "x y"
    for _, make in ipairs {
      function(n) return pl.const(pl.tensor(n, "int32")) end,
      function(n) return pl.const(n + 0.0) end,
    } do
      local zero, one = make(0), make(1)
      for _, expr in ipairs { x + zero, zero + x, x - zero, x * one, one * x, x / one } do
        assert.equal(x, algebraic_simplify(expr))
      end
      for _, expr in ipairs { x * zero, zero * x, zero / x } do
        same(zero, algebraic_simplify(expr))
      end
      same(x + y, algebraic_simplify((x + zero * y) / one + (y * one) - zero / x))
    end
  end)

  it("test_rewrite_function_with_fuzzy_body", function()
    local x, w, b, x1, w1 = vars "x w b x1 w1"
    local a1, a2 = wildcard(), wildcard()
    local pattern = df.FunctionPattern({ a1, a2 }, wildcard())(wildcard(), wildcard()) + wildcard()
    local f = pl.func({ x1, w1 }, op.nn.conv2d(x1, w1))
    same(x + w + b, df.rewrite({ pattern = pattern, callback = function() return x + w end },
      f(x, w) + b + b))
  end)

  it("test_match_match", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%l: List[int32]) -> int32 {
  match (%l) { Cons(%h, %t) => multiply(%h, 2), Nil => 0 }
}
]])
    assert.equal(mod, df.rewrite(to_subtract(), mod))
    local changed = assert(pl.parse(tostring(mod):gsub("multiply", "add")))
    assert.matches("subtract", tostring(df.rewrite(to_subtract(), changed)))
  end)

  it("test_rewrite_once", function()
    local x, y, z = vars "x y z"
    local function concatenate(...) return op.concatenate(pl.tuple { ... }, { axis = 0 }) end
    local function shorten(once)
      return df.DFPatternCallback { rewrite_once = once, pattern = is_op "concatenate"(nil),
        callback = function(_, post)
          local fields = post.args[1].fields
          fields[#fields] = nil
          return #fields > 0 and concatenate(table.unpack(fields)) or post.args[1].fields[1]
        end }
    end
    local function one_more_relu(once)
      return df.DFPatternCallback { rewrite_once = once, pattern = is_op "nn.softmax"(nil),
        callback = function(_, post) return op.nn.relu(post) end }
    end
    local concat = concatenate(x, y, z)
    same(x, df.rewrite(shorten(false), concat))
    same(concatenate(x, y), df.rewrite(shorten(true), concat))
    local softmax = op.nn.softmax(concat)
    same(op.nn.relu(op.nn.softmax(concatenate(x, y))),
      df.rewrite({ one_more_relu(true), shorten(true) }, softmax))
    same(op.nn.relu(op.nn.softmax(x)), df.rewrite({ one_more_relu(true), shorten(false) }, softmax))
  end)

  it("test_rewrite_with_pattern_recursion", function()
    local data = pl.var("data", "Tensor[(2, 8), float32]")
    local expr = op.nn.dense(data, pl.const(pl.tensor.full(0, { 4, 8 }, "float32")))
    for _ = 1, 6 do expr = op.cast(expr, { dtype = "float32" }) end
    local function relu_once(pattern)
      return df.rewrite({ pattern = pattern, rewrite_once = true,
        callback = function(_, post) return op.nn.relu(post) end }, expr)
    end
    local function dense() return is_op "nn.dense"(wildcard(), wildcard()) end
    local rest = wildcard() -- the argument of a call
    local cast = is_op "cast"(rest)
    rest:redirect_to(cast | dense())
    same(op.nn.relu(expr), relu_once(cast))
    rest = wildcard() -- the left side of an alternative
    cast = is_op "cast"(rest | dense())
    rest:redirect_to(cast)
    same(op.nn.relu(expr), relu_once(cast))
    rest = wildcard() -- the right side
    cast = is_op "cast"(dense() | rest)
    rest:redirect_to(cast)
    same(op.nn.relu(expr), relu_once(cast))
  end)
end)

describe("a rewrite", function()
  it("gives functions and modules with their types", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { @f(add(%x, %x)) }
def @f(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { add(%x, 1f) }
def @g(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { tanh(%x) }
]])
    local out = df.rewrite(to_subtract(), mod, mod)
    assert.equal("subtract", out.main.body.args[1].op.name)
    assert.equal(pl.type "Tensor[(2, 3), float32]", out.f.body.type)
    assert.equal(mod.functions.g, out.functions.g)
    assert.is_true(out.main:verify())
  end)

  it("gives the very same program when a callback answers nothing or the node", function()
    local x, y = vars "x y"
    local expr = x + y
    for _, f in ipairs { function() end, function(_, post) return post end,
      function(pre) return pre end, function(_, post) return post.args[1] + post.args[2] end } do
      assert.equal(expr, df.rewrite({ pattern = wildcard() + wildcard(), callback = f }, expr))
    end
  end)

  it("gives callbacks the old node and images of what matched", function()
    local x, y = vars "x y"
    local a = wildcard()
    local seen = {}
    df.rewrite({ pattern = is_op "tanh"(a), callback = function(pre, post, map)
      seen[#seen + 1] = { pre.args[1].kind, post.args[1].kind, map[a][1] == post.args[1] }
      return op.exp(map[a][1])
    end }, op.tanh(op.tanh(x) + y))
    assert.same({ { "Var", "Var", true }, { "Call", "Call", true } }, seen)
  end)

  it("takes numbers and tensors for constants of the node's dtype", function()
    local x = pl.var("x", "Tensor[(2), int32]")
    local out = df.rewrite({ pattern = is_op "multiply"(wildcard(), wildcard()),
      callback = function() return 7 end }, op.exp(x * 2) + 1)
    assert.equal("int32", out.args[1].args[1].type.dtype)
  end)

  it("replaces free variables and parameters by variables", function()
    local x, y = vars "x y"
    same(y + y, df.rewrite({ pattern = df.is_var "x", callback = function() return y end }, x + x))
    local a, b = pl.var("a", "Tensor[(2), float32]"), pl.var("b", "Tensor[(3), float32]")
    local out = df.rewrite({ pattern = df.is_var "a", callback = function() return b end },
      pl.func({ a }, op.tanh(a)))
    assert.equal("b", out.params[1].name)
    same(pl.func({ b }, op.tanh(b)), out)
  end)

  it("hands branches to whoever dissolves an If", function()
    local c, x = pl.var("c", "bool"), pl.var("x", "Tensor[(2), float32]")
    local fn = pl.func({ c, x }, op.nn.relu(pl.if_(c, op.tanh(op.exp(x)), op.exp(x))))
    local t = wildcard()
    local out = df.rewrite({ pattern = df.is_if(wildcard(), t, wildcard()),
      callback = function(_, _, map) return map[t][1] end }, fn)
    same(pl.func({ c, x }, op.nn.relu(op.tanh(op.exp(x)))), out)
    assert.is_true(out:verify())
  end)

  it("replaces a block of lets inside an expression", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { let %v = (let %w = tanh(%x); exp(%w)); add(%v, %x) }
]])
    local value = wildcard()
    local out = df.rewrite({ pattern = df.is_let(df.is_var "w", value, is_op "exp"(df.is_var())),
      callback = function(_, _, map) return op.exp(map[value][1]) end }, mod)
    assert.equal("tanh", out.main.body.value.args[1].op.name)
    assert.is_true(out.main:verify())
    assert.equal(mod, df.rewrite({ pattern = df.is_let(df.is_var "v", wildcard(), wildcard()),
      callback = error }, mod)) -- the tail of its block
  end)

  it("hands the body to whoever dissolves a call of a function", function()
    local x, y = vars "x y"
    local body = wildcard()
    local f = pl.func({ y }, op.tanh(pl.const(1.0)))
    local out = df.rewrite({ pattern = df.FunctionPattern(nil, body)(nil),
      callback = function(_, _, map) return map[body][1] end }, op.exp(f(x)))
    same(op.exp(op.tanh(pl.const(1.0))), out)
  end)

  it("keeps groups apart, from the root downwards", function()
    local x = vars "x"
    local chain = x
    for _ = 1, 5 do chain = op.tanh(chain) end
    local calls = 0
    df.rewrite({ pattern = is_op "tanh"(is_op "tanh"(wildcard())), rewrite_once = true,
      callback = function(pre)
        calls = calls + 1
        return op.exp(pre.args[1].args[1])
      end }, chain)
    assert.equal(2, calls)
  end)

  it("leaves a match alone whose inner nodes are used elsewhere", function()
    local x = vars "x"
    local y = op.tanh(x)
    local expr = pl.tuple { op.exp(y), y }
    assert.equal(expr, df.rewrite({ pattern = is_op "exp"(is_op "tanh"(wildcard())),
      callback = function() return x end }, expr))
  end)

  it("counts as a rule in reports, histories and limits", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local mod = pl.module { main = pl.func({ x }, x + x) }
    local pass = pl.function_pass { name = "ToSubtract", run = function(fn)
      local callback = to_subtract()
      callback.name = "to_subtract"
      return df.rewrite(callback, fn)
    end }
    local out = pass(mod)
    assert.equal("subtract", out.main.body.op.name)
    assert.equal("to_subtract", out.main.body:history()[1].rule)
  end)

  it("infers types first where that is required", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @f(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { tanh(%x) }
]])
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local expr = op.exp(pl.call(pl.global "f", { x }))
    local callback = { pattern = wildcard()(nil):has_shape { 2, 3 },
      callback = function(pre) return pre.callee and x or nil end }
    assert.equal(expr, df.rewrite(callback, expr, mod))
    callback.require_type = true
    same(op.exp(x), df.rewrite(callback, expr, mod))
  end)
end)
