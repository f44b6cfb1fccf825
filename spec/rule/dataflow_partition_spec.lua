-- Dataflow patterns: partitioning. The names of the first group are those of TVM's tests.

local pl = require "perilune"
local df = pl.dataflow_pattern
local op = pl.op

local wildcard, is_op, is_var, is_constant = df.wildcard, df.is_op, df.is_var, df.is_constant
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

-- A call with the arguments of a function that has parameters of their types, the body
-- f(parameters), and the attributes.
local function partitioned(name, args, f, attrs)
  local params, all = {}, { PartitionedFromPattern = name }
  for i, arg in ipairs(args) do params[i] = pl.var("p" .. i, arg.type) end
  for key, value in pairs(attrs or {}) do all[key] = value end
  return pl.call(pl.func(params, f(table.unpack(params)), { attrs = all }), args)
end

local function elementwise()
  return wildcard():has_attr { TOpPattern = ELEMENTWISE } (wildcard())
end

local function dominator_pattern(path)
  return df.dominates(is_op "nn.conv2d"(wildcard(), wildcard()), path or elementwise(),
    is_op "add"(wildcard(), wildcard()))
end

local function batch_norm_pattern()
  local x, var, mean, beta, gamma = wildcard(), wildcard(), wildcard(), wildcard(), wildcard()
  return gamma * (x - mean) / is_op "sqrt"(var + is_constant()) + beta
end

local function conv_bias_relu(x, w, b)
  return op.nn.relu(op.nn.bias_add(op.nn.conv2d(x, w), b))
end

local function conv_bias_relu_pattern(weight)
  return is_op "nn.relu"(is_op "nn.bias_add"(is_op "nn.conv2d"(wildcard(), weight), wildcard()))
end

local CONV_BIAS_RELU = "nn.conv2d_nn.bias_add_nn.relu_"

describe("partitioning by dataflow patterns:", function()
  it("test_double_partition", function()
    local conv = is_op "nn.conv2d"(wildcard(), wildcard())
    local bias = is_op "nn.bias_add"(conv, wildcard())
    local relu = is_op "nn.relu"(bias)
    local x, w, b, w2, b2 = vars "input weight bias weight bias"
    local expr = op.nn.bias_add(op.nn.conv2d(conv_bias_relu(x, w, b), w2), b2)
    expr = relu:partition(expr, { Composite = "conv_bias_relu" })
    expr = bias:partition(expr, { Composite = "conv_bias" })
    local inner = partitioned(CONV_BIAS_RELU, { x, w, b }, conv_bias_relu,
      { Composite = "conv_bias_relu" })
    same(partitioned("nn.conv2d_nn.bias_add_", { inner, w2, b2 }, function(a, c, d)
      return op.nn.bias_add(op.nn.conv2d(a, c), d)
    end, { Composite = "conv_bias" }), expr)
  end)

  it("test_partition_dominator", function()
    local x, w = vars "input weight"
    local function diamond(a, b)
      local conv = op.nn.conv2d(a, b)
      return op.nn.relu(op.nn.relu(conv)) + leaky(conv)
    end
    same(partitioned("nn.conv2d_nn.relu_nn.relu_nn.leaky_relu_add_", { x * x, w * w }, diamond),
      dominator_pattern():partition(diamond(x * x, w * w)))
  end)

  it("test_quadruple_partition_dominator", function()
    local x, w = vars "input weight"
    local function classic(a, b)
      local conv = op.nn.conv2d(a, b)
      return op.nn.relu(op.nn.relu(conv)) + leaky(conv)
    end
    local function deeper(a, b)
      local conv = op.nn.conv2d(a, b)
      return op.tanh(op.nn.relu(op.nn.relu(conv))) + leaky(conv)
    end
    local function single(a, b)
      local relu = op.nn.relu(op.nn.relu(op.nn.conv2d(a, b)))
      return relu + op.tanh(relu)
    end
    local function nested(a, b)
      local conv = op.nn.conv2d(a, b)
      local relu = op.nn.relu(conv)
      return op.tanh(relu + relu) + leaky(conv)
    end
    local pattern = dominator_pattern(elementwise() | is_op "add"(wildcard(), wildcard()))
    local actual = pattern:partition(nested(single(deeper(classic(x, w), w), w), w))
    local expected = x
    for _, part in ipairs {
      { "nn.conv2d_nn.relu_nn.relu_nn.leaky_relu_add_", classic },
      { "nn.conv2d_nn.relu_nn.relu_tanh_nn.leaky_relu_add_", deeper },
      { "nn.conv2d_nn.relu_nn.relu_tanh_add_", single },
      { "nn.conv2d_nn.relu_add_tanh_nn.leaky_relu_add_", nested },
    } do
      expected = partitioned(part[1], { expected, w }, part[2])
    end
    same(expected, actual)
  end)

  local eps = pl.const(1e-5)
  local function BN(gamma, x, mean, var, beta)
    return gamma * (x - mean) / op.sqrt(var + eps) + beta
  end
  local NAME = "subtract_multiply_add_sqrt_divide_add_"

  it("test_partition_batchnorm", function()
    local gamma, x, mean, var, beta = vars "gamma x mean var beta"
    same(partitioned(NAME, { gamma, x, mean, var, beta }, BN),
      batch_norm_pattern():partition(BN(gamma, x, mean, var, beta)))
  end)

  it("test_partition_double_batchnorm", function()
    local gamma, x, mean, var, beta = vars "gamma x mean var beta"
    local inner = partitioned(NAME, { gamma, x, mean, var, beta }, BN)
    same(partitioned(NAME, { gamma, inner, mean, var, beta }, BN),
      batch_norm_pattern():partition(BN(gamma, BN(gamma, x, mean, var, beta), mean, var, beta)))
  end)

  it("test_overlappting_partitions", function()
    local pattern = df.TupleGetItemPattern(is_op "nn.batch_norm"(wildcard(), wildcard(),
      wildcard(), wildcard(), wildcard()), 0)
    local x, gamma, beta, mean, var = vars "x gamma beta mean var"
    local bn = op.nn.batch_norm(x, gamma, beta, mean, var, { relay = 1, n_results = 3 })
    local sum = bn:get(0) + bn:get(0)
    assert.equal(sum, pattern:partition(sum))
  end)

  it("test_partition_overused", function()
    local pattern = is_op "nn.relu"(is_op "nn.conv2d"(wildcard(), wildcard()))
    local x, w = vars "input weight"
    local conv = op.nn.conv2d(x, w)
    local out = op.nn.relu(conv) + conv
    assert.equal(out, pattern:partition(out))
  end)

  it("test_partition_fuzzy_tuple", function()
    local x, y = vars "x y"
    local pattern = is_op "concatenate"(df.is_tuple(nil))
    local function concatenate(...) return op.concatenate(pl.tuple { ... }, { axis = 0 }) end
    for _, args in ipairs { { x }, { x, y }, { x, y, x + y } } do
      same(partitioned("Tuple_concatenate_", args, concatenate),
        pattern:partition(concatenate(table.unpack(args))))
    end
  end)

  it("test_partition_fuzzy_function_args", function()
    local pattern = df.FunctionPattern(nil, wildcard() + wildcard())(nil) + wildcard()
    local x, y, z, b = vars "x y z b"
    local bodies = { function(p) return p + p end, function(p, q) return p + q end,
      function(p, q, r) return p + q + r end }
    for n, body in ipairs(bodies) do
      local params, args = { vars "a1 a2 a3" }, { x, y, z }
      params, args = table.move(params, 1, n, 1, {}), table.move(args, 1, n, 1, {})
      local f = pl.func(params, body(table.unpack(params)))
      local expr = pl.call(f, args) + b
      local name = (n == 3 and "add_" or "") .. "add_FunctionCall_add_"
      args[n + 1] = b
      same(partitioned(name, args, function(...)
        local all = { ... }
        return pl.call(f, table.move(all, 1, n, 1, {})) + all[n + 1]
      end), pattern:partition(expr))
    end
  end)

  it("test_partition_check", function()
    local pattern = is_op "nn.relu"(is_op "nn.conv2d"(is_var "input", wildcard()))
    local function check(pre) return (pre.args[1].attrs.data_layout or "NCHW") == "NCHW" end
    local x, w = vars "input weight"
    same(partitioned("nn.conv2d_nn.relu_", { x, w }, function(a, b)
      return op.nn.relu(op.nn.conv2d(a, b))
    end), pattern:partition(op.nn.relu(op.nn.conv2d(x, w)), nil, check))
    local nhwc = op.nn.relu(op.nn.conv2d(x, w, { data_layout = "NHWC" }))
    assert.equal(nhwc, pattern:partition(nhwc, nil, check))
  end)

  it("test_partition_check_types", function()
    local pattern = is_op "nn.relu"(is_op "nn.conv2d"(wildcard(), wildcard()))
    local function check(pre)
      local conv = pre.args[1]
      return (conv.attrs.data_layout or "NCHW") == "NCHW" and conv.type.shape[1] == 1
    end
    local function relu(n, attrs)
      local w = pl.var("weight", ("Tensor[(10, %s), float32]"):format(attrs and "3, 3, 10"
        or "10, 3, 3"))
      local x = pl.var("input", ("Tensor[(%d, 10, 10, 10), float32]"):format(n))
      return op.nn.relu(op.nn.conv2d(x, w, attrs))
    end
    local out = pattern:partition(relu(1), nil, check)
    assert.equal("nn.conv2d_nn.relu_", out.callee.attrs.PartitionedFromPattern)
    local nhwc = relu(1, { data_layout = "NHWC", kernel_layout = "OHWI" })
    assert.equal(nhwc, pattern:partition(nhwc, nil, check))
    local two = relu(2)
    assert.equal(two, pattern:partition(two, nil, check))
  end)

  it("test_partition_option", function()
    local x, w, b = vars "x w b"
    local function with_bias(conv) return is_op "nn.bias_add"(conv, wildcard()) end
    local function conv() return is_op "nn.conv2d"(wildcard(), wildcard()) end
    local relu = conv_bias_relu(x, w, b)
    for _, pattern in ipairs { is_op "nn.relu"(conv():optional(with_bias)),
      with_bias(conv()):optional(function(y) return is_op "nn.relu"(y) end) } do
      assert.is_true(pattern:match(relu))
      same(partitioned(CONV_BIAS_RELU, { x, w, b }, conv_bias_relu), pattern:partition(relu))
    end
  end)

  -- (f(x, w) + b) + b where f is one convolution; the pattern has the inner sum.
  local function check_function(body)
    local x, w, b, x1, w1 = vars "x w b x1 w1"
    local a1, a2 = wildcard(), wildcard()
    local called = df.FunctionPattern({ a1, a2 }, body(a1, a2))(wildcard(), wildcard())
    local pattern = called + wildcard()
    local f = pl.func({ x1, w1 }, op.nn.conv2d(x1, w1))
    local outer = partitioned("nn.conv2d_FunctionCall_add_", { x, w, b }, function(p, q, r)
      return f(p, q) + r
    end)
    same(outer + b, pattern:partition(f(x, w) + b + b))
  end

  it("test_partition_function", function()
    check_function(function(a1, a2) return is_op "nn.conv2d"(a1, a2) end)
  end)

  it("test_partition_function_with_fuzzy_body", function()
    check_function(function() return wildcard() end)
  end)

  it("test_partition_optional_function", function()
    local x, w, b, x1, w1 = vars "x w b x1 w1"
    local y, v, a1, a2 = wildcard(), wildcard(), wildcard(), wildcard()
    local conv = is_op "nn.conv2d"(a1, a2)
    local pattern = df.FunctionPattern({ a1, a2 }, is_op "sigmoid"(conv))(y, v)
      | df.FunctionPattern({ a1, a2 }, is_op "nn.relu"(conv))(y, v)
    local f = pl.func({ x1, w1 }, op.nn.relu(op.nn.conv2d(x1, w1)))
    local outer = partitioned("nn.conv2d_nn.relu_FunctionCall_", { x, w }, function(p, q)
      return f(p, q)
    end)
    same(outer + b, pattern:partition(f(x, w) + b))
  end)

  it("test_partition_constant_embedding", function()
    local x, w, b = vars "x w b"
    local wc = pl.const(pl.tensor.full(1, { 1, 1, 3, 3 }, "float32"))
    local function embedded()
      return partitioned(CONV_BIAS_RELU, { x, b }, function(p, q)
        return conv_bias_relu(p, wc, q)
      end)
    end
    local function lifted(...) return partitioned(CONV_BIAS_RELU, { ... }, conv_bias_relu) end
    local relu, reluc = conv_bias_relu(x, w, b), conv_bias_relu(x, wc, b)
    local pattern = conv_bias_relu_pattern(wildcard())
    same(lifted(x, w, b), pattern:partition(relu))
    same(lifted(x, wc, b), pattern:partition(reluc))
    pattern = conv_bias_relu_pattern(is_var())
    same(lifted(x, w, b), pattern:partition(relu))
    assert.equal(reluc, pattern:partition(reluc))
    for _, weight in ipairs { is_constant(), df.is_expr(wc) } do
      pattern = conv_bias_relu_pattern(weight)
      assert.equal(relu, pattern:partition(relu))
      same(embedded(), pattern:partition(reluc))
    end
    for _, weight in ipairs { is_var() | is_constant(), is_constant() | is_var() } do
      pattern = conv_bias_relu_pattern(weight)
      same(lifted(x, w, b), pattern:partition(relu))
      same(embedded(), pattern:partition(reluc))
    end
  end)

  it("test_matched_outside_but_dominated", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%data: Tensor[(16, 32, 32, 16), float32], %weight: Tensor[(32, 3, 3, 16), float32],
          %bias: Tensor[(1, 1, 1, 32), float32]) {
  %0 = nn.conv2d(%data, %weight, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3],
                 data_layout="NHWC", kernel_layout="OHWI");
  %1 = add(%0, %bias);
  %2 = sigmoid(%1);
  %3 = multiply(%1, %2);
  nn.relu(%3)
}
]])
    local expected = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%data: Tensor[(16, 32, 32, 16), float32], %weight: Tensor[(32, 3, 3, 16), float32],
          %bias: Tensor[(1, 1, 1, 32), float32]) {
  %0 = nn.conv2d(%data, %weight, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3],
                 data_layout="NHWC", kernel_layout="OHWI");
  %1 = add(%0, %bias);
  %2 = sigmoid(%1);
  %10 = fn (%p0: Tensor[(16, 32, 32, 16), float32], %p1: Tensor[(32, 3, 3, 16), float32],
            %p2: Tensor[(1, 1, 1, 32), float32], %p3: Tensor[(16, 32, 32, 32), float32],
            PartitionedFromPattern="nn.conv2d_add_multiply_")
            -> Tensor[(16, 32, 32, 32), float32] {
    %5 = nn.conv2d(%p0, %p1, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3],
                   data_layout="NHWC", kernel_layout="OHWI");
    %6 = add(%5, %p2);
    multiply(%6, %p3)
  };
  %11 = %10(%data, %weight, %bias, %2);
  nn.relu(%11)
}
]])
    local pattern = is_op "multiply"(is_op "add"(is_op "nn.conv2d"(wildcard(), wildcard()),
      wildcard()), wildcard())
    local out = pattern:partition(mod)
    same(expected.main, out.main)
    assert.is_true(out.main:verify())
    assert.is_true(pl.check(mod, out))
  end)

  it("test_partition_parallel_branch_with_same_input", function()
    local pattern = is_op "add"(is_op "multiply"(wildcard(), wildcard()),
      is_op "add"(wildcard(), wildcard()))
    local i, w, l, r = vars "input weight left right"
    local conv = op.nn.conv2d(i, w)
    same(partitioned("multiply_add_add_", { l, conv, r }, function(a, m, b)
      return (a * m) + (m + b)
    end), pattern:partition((l * conv) + (conv + r)))
  end)
end)

describe("a partition", function()
  it("keeps types, verifies, and computes the same", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  %0 = tanh(%x);
  %1 = multiply(%0, %y);
  (add(%1, 1f), exp(add(%1, 2f)))
}
]])
    local pattern = is_op "add"(wildcard(), is_constant())
    local out = pattern:partition(mod, { Composite = "shift" })
    assert.is_true(out.main:verify())
    assert.is_true(pl.check(mod, out))
    local call = out.main.body[1]
    assert.equal("shift", call.callee.attrs.Composite)
    assert.equal("add_", call.callee.attrs.PartitionedFromPattern)
    assert.matches("^FunctionVar_%d+_0$", call.callee.params[1].name)
    assert.equal(pl.type "Tensor[(2, 3), float32]", call.type)
  end)

  it("sees through lets when asked, and refuses other options", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) {
  let %m = multiply(%x, %w);
  let %a = add(%m, %w);
  let %r = nn.relu(%a);
  tanh(%r)
}]])
    local p = is_op "nn.relu" (is_op "add" (is_op "multiply" (wildcard(), wildcard()), wildcard()))
    assert.equal(mod, p:partition(mod))
    local out = p:partition(mod, {}, nil, { lets = true })
    assert.matches('PartitionedFromPattern="multiply_add_nn.relu_"', tostring(out), 1, true)
    assert.matches("let %%r[^\n]* = %%%d%(%%x, %%w%)", tostring(out))
    assert(pl.verify(out))
    assert(pl.check(mod, out))
    local ok, err = pcall(p.partition, p, mod, {}, nil, { let = true })
    assert.is_false(ok)
    assert.matches("did you mean 'lets'", tostring(err))
  end)

  it("leaves functions that were partitioned before", function()
    local x, y = vars "x y"
    local pattern = is_op "tanh"(wildcard())
    local once = pattern:partition(op.tanh(x) + y)
    assert.equal(once, pattern:partition(once))
  end)

  it("says that a bare function pattern makes no sense", function()
    local x = vars "x"
    local fn = pl.func({ x }, op.tanh(x))
    assert.equal(fn, df.FunctionPattern(nil, wildcard()):partition(fn))
  end)

  it("passes what a branch or a function captures as arguments", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%c: bool, %x: Tensor[(2, 3), float32]) {
  %0 = exp(%x);
  %1 = if (%c) { let %v = tanh(%0); add(%v, %x) } else { %0 };
  nn.relu(%1)
}
]])
    local pattern = is_op "nn.relu"(df.is_if(is_var "c", wildcard(), wildcard()))
    local out = pattern:partition(mod)
    local call = out.main.body
    assert.equal("tanh_add_Let_If_nn.relu_", call.callee.attrs.PartitionedFromPattern)
    assert.equal(3, #call.args)
    assert.is_true(out.main:verify())
    assert.is_true(pl.check(mod, out))
  end)

  it("lies in the branch of its match", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%c: bool, %x: Tensor[(2, 3), float32]) {
  %0 = tanh(%x);
  if (%c) { nn.relu(%0) } else { exp(%x) }
}
]])
    local out = is_op "nn.relu"(is_op "tanh"(wildcard())):partition(mod)
    assert.equal("nn.relu", out.main.body.true_branch.callee.body.op.name)
    assert.is_true(out.main:verify())
    assert.is_true(pl.check(mod, out))
  end)

  it("takes no effect into a function", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  let %r = ref(%x);
  add(ref_read(%r), %x)
}
]])
    local pattern = is_op "add"(wildcard(), wildcard())
    local out = pattern:partition(mod)
    assert.is_true(out.main:verify())
    assert.equal(1, #out.main.body.body.callee.params - 1)
  end)

  it("makes the calls of MergeComposite, one pattern after another", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 3, 3), float32],
          %b: Tensor[(3), float32]) {
  %0 = nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b));
  nn.bias_add(nn.conv2d(%0, %w), %b)
}
]])
    local conv = is_op "nn.conv2d"(wildcard(), wildcard())
    local bias = is_op "nn.bias_add"(conv, wildcard())
    local out = mod
    for _, entry in ipairs { { "dnn.relu", is_op "nn.relu"(bias) }, { "dnn.bias", bias } } do
      out = entry[2]:partition(out, { Composite = entry[1] })
    end
    assert.equal("dnn.bias", out.main.body.callee.attrs.Composite)
    assert.equal("dnn.relu", out.main.body.args[1].callee.attrs.Composite)
    assert.is_true(pl.check(mod, out))
  end)
end)
