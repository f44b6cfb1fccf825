-- Gradient, FirstOrderGradient, LazyGradientInit: their form on small programs, and
-- gradients of operators against finite differences.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local first_order = pl.passes.FirstOrderGradient()
local higher_order = pl.passes.Gradient()
local lazy = pl.passes.LazyGradientInit()

local function assert_becomes(pass, before, after)
  local out = pass(parse(before))
  assert(pl.verify(out))
  local expected = parse(after)
  assert(pl.equal(out, expected), pl.mismatch(out, expected))
end

-- ------------------------------------------------------------ finite differences

local function flat(t, into)
  into = into or {}
  if type(t) ~= "table" then
    into[#into + 1] = type(t) == "boolean" and (t and 1 or 0) or t
    return into
  end
  for _, x in ipairs(t) do flat(x, into) end
  return into
end

local function shaped(list, shape)
  local at = 0
  local function fill(depth)
    if depth > #shape then at = at + 1 return list[at] end
    local row = {}
    for i = 1, shape[depth] do row[i] = fill(depth + 1) end
    return row
  end
  return fill(1)
end

local function shape_of(param)
  local shape = {}
  for i, d in ipairs(param.type.shape) do shape[i] = math.tointeger(tonumber(tostring(d))) end
  return shape
end

local function size_of(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

local function sum(values)
  local s = 0
  for i = 1, values.n do
    for _, x in ipairs(flat(values[i]:to_table())) do s = s + x end
  end
  return s
end

-- Values between `low` and `high`, no two of them near each other.
local function ordinary(n, low, high, seed)
  local list = {}
  for i = 1, n do
    local k = (i * 7 + seed * 3) % n
    list[i] = low + (high - low) * (k + 0.37) / n
  end
  return list
end

local function arguments(params, lists)
  local args = {}
  for i, param in ipairs(params) do
    args[i] = pl.tensor(shaped(lists[i], shape_of(param)), tostring(param.type.dtype))
  end
  return args
end

local STEP = 1e-5

local function numeric(mod, params, lists, i, k)
  local function at(delta)
    local old = lists[i][k]
    lists[i][k] = old + delta
    local s = sum(table.pack(pl.eval(mod, table.unpack(arguments(params, lists)))))
    lists[i][k] = old
    return s
  end
  return (at(STEP) - at(-STEP)) / (2 * STEP)
end

-- The gradients of all parameters of floats; results before them are `n`.
local function check_gradients(mod, grad, n, params, lists)
  local got = table.pack(pl.eval(grad, table.unpack(arguments(params, lists))))
  assert.equal(n + 1, got.n)
  for i, param in ipairs(params) do
    local values = flat(got[n + 1][i]:to_table())
    for k = 1, size_of(shape_of(param)) do
      if tostring(param.type.dtype):find "float" then
        local expected = numeric(mod, params, lists, i, k)
        local difference = math.abs(expected - values[k])
        assert(difference <= 1e-4 * math.max(1, math.abs(expected)),
          ("parameter %d, element %d: %g, and %g by finite differences")
          :format(i, k, values[k], expected))
      end
    end
  end
end

-- Parameters, body, bounds of the values; 64 bits.
local operators = {
  { "log", "%x: A", "log(%x)", 0.5, 3 }, { "log2", "%x: A", "log2(%x)", 0.5, 3 },
  { "log10", "%x: A", "log10(%x)", 0.5, 3 }, { "tan", "%x: A", "tan(%x)", -1, 1 },
  { "cos", "%x: A", "cos(%x)" }, { "cosh", "%x: A", "cosh(%x)" }, { "sin", "%x: A", "sin(%x)" },
  { "sinh", "%x: A", "sinh(%x)" }, { "acos", "%x: A", "acos(%x)", -0.8, 0.8 },
  { "acosh", "%x: A", "acosh(%x)", 1.5, 3 }, { "asin", "%x: A", "asin(%x)", -0.8, 0.8 },
  { "asinh", "%x: A", "asinh(%x)" }, { "atan", "%x: A", "atan(%x)" },
  { "atanh", "%x: A", "atanh(%x)", -0.8, 0.8 }, { "exp", "%x: A", "exp(%x)" },
  { "sqrt", "%x: A", "sqrt(%x)", 0.5, 3 }, { "sigmoid", "%x: A", "sigmoid(%x)" },
  { "tanh", "%x: A", "tanh(%x)" }, { "nn.relu", "%x: A", "nn.relu(%x)" },
  { "abs", "%x: A", "abs(%x)" }, { "erf", "%x: A", "erf(%x)" },
  { "clip", "%x: A", "clip(%x, a_min=-0.55f, a_max=0.5f)" },
  { "negative", "%x: A", "negative(%x)" }, { "copy", "%x: A", "copy(%x)" },
  { "add", "%x: A, %y: B", "add(%x, %y)" }, { "subtract", "%x: A, %y: B", "subtract(%x, %y)" },
  { "multiply", "%x: A, %y: B", "multiply(%x, %y)" },
  { "divide", "%x: A, %y: B", "divide(%x, %y)", 0.5, 3 },
  { "where", "%x: A, %y: B", "where(not_equal(%x, %x), %x, %y)" },
  { "less_equal", "%x: A, %y: A", "where(less_equal(%x, %y), exp(%x), %y)" },
  { "cast", "%x: A", 'cast(exp(%x), dtype="float64")' },
  { "cast_like", "%x: A, %y: B", "cast_like(exp(%x), %y)" },
  { "zeros_like", "%x: A", "add(exp(%x), zeros_like(%x))" },
  { "ones_like", "%x: A", "multiply(exp(%x), ones_like(%x))" },
  { "zeros", "%x: A", 'add(exp(%x), zeros(shape=[3], dtype="float64"))' },
  { "ones", "%x: A", 'multiply(exp(%x), ones(shape=[3], dtype="float64"))' },
  { "collapse_sum_like", "%x: A, %y: B", "exp(collapse_sum_like(%x, %y))" },
  { "reshape", "%x: A", "exp(reshape(%x, newshape=[3, 2]))" },
  { "nn.batch_flatten", "%x: C", "exp(nn.batch_flatten(%x))" },
  { "squeeze", "%x: D", "exp(squeeze(%x))" },
  { "reshape_like", "%x: A, %y: E", "exp(reshape_like(%x, %y))" },
  { "transpose", "%x: C", "exp(transpose(%x, axes=[1, 2, 0]))" },
  { "transpose of a matrix", "%x: A, %y: E", "multiply(transpose(%x), %y)" },
  { "expand_dims", "%x: A", "exp(expand_dims(%x, axis=1, num_newaxis=2))" },
  { "concatenate", "%x: A, %y: D", "exp(concatenate((%x, reshape(%y, newshape=[1, 3]))))" },
  { "stack", "%x: A, %y: A", "exp(stack((%x, %y), axis=1))" },
  { "strided_slice", "%x: C",
    "exp(strided_slice(%x, begin=[0, 0, 1], end=[2, 1, 3], strides=[1, 1, 1]))" },
  { "sizes of strided_slice", "%x: A",
    'exp(strided_slice(%x, begin=[0, 1], end=[1, -1], strides=[1], slice_mode="size"))' },
  { "take of a row", "%x: A", "exp(take(%x, 1, axis=0))" },
  { "take of columns", "%x: A, %i: I", 'exp(take(%x, cast(%i, dtype="int32"), axis=1))', 0, 1.9 },
  { "flat take", "%x: A, %i: I", 'exp(take(%x, cast(%i, dtype="int32"), axis=None))', 0, 1.9 },
  { "sum", "%x: C", "exp(sum(%x, axis=[-1]))" }, { "sum of all", "%x: A", "exp(sum(%x))" },
  { "sum over others", "%x: C", "exp(sum(%x, axis=[1], keepdims=True, exclude=True))" },
  { "mean", "%x: C", "exp(mean(%x, axis=[0, 2]))" },
  { "max", "%x: C", "exp(max(%x, axis=[1]))" }, { "max of all", "%x: A", "exp(max(%x))" },
  { "nn.softmax", "%x: A", "multiply(nn.softmax(%x), %x)" },
  { "nn.log_softmax", "%x: A", "multiply(nn.log_softmax(%x), %x)" },
  { "nn.bias_add", "%x: A, %y: B", "exp(nn.bias_add(%x, %y, axis=1))" },
  { "nn.dense", "%x: A, %y: A", "exp(nn.dense(%x, %y, units=2))" },
  { "nn.batch_matmul", "%x: C, %y: C", "exp(nn.batch_matmul(%x, %y, transpose_b=True))" },
  { "nn.batch_matmul, plain", "%x: C, %y: F",
    "exp(nn.batch_matmul(%x, %y, transpose_a=False, transpose_b=False))" },
  { "nn.batch_matmul of transposed", "%x: F, %y: C",
    "exp(nn.batch_matmul(%x, %y, transpose_a=True, transpose_b=True))" },
  { "nn.batch_matmul of the first transposed", "%x: C, %y: C",
    "exp(nn.batch_matmul(%x, %y, transpose_a=True, transpose_b=False))" },
  { "arange", "%x: A", 'add(exp(%x), arange(0f64, 3f64, 1f64, dtype="float64"))' },
}

-- In 32 bits, with less exact differences.
local images = {
  { "nn.conv2d", "%x: Tensor[(1, 2, 5, 5), T], %w: Tensor[(3, 2, 3, 3), T]",
    "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2], channels=3, kernel_size=[3, 3])" },
  { "nn.max_pool2d", "%x: Tensor[(1, 2, 4, 4), T]",
    "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])" },
  { "nn.avg_pool2d", "%x: Tensor[(1, 2, 4, 4), T]",
    "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 1, 1])" },
  { "nn.global_avg_pool2d", "%x: Tensor[(1, 2, 4, 4), T]", "nn.global_avg_pool2d(%x)" },
}

local types = { A = "Tensor[(2, 3), T]", B = "Tensor[(3), T]", C = "Tensor[(2, 2, 3), T]",
  D = "Tensor[(1, 3), T]", E = "Tensor[(3, 2), T]", F = "Tensor[(2, 3, 2), T]",
  I = "Tensor[(4), T]" }

local function program(case, dtype)
  local params = case[2]:gsub(": (%u)%f[%W]", function(name)
    return ": " .. (types[name] or name)
  end)
  local text = ("def @main(%s) { %s }"):format(params, case[3]):gsub("%f[%w]T%f[%W]", dtype)
  local mod = parse(text)
  local fn = mod.functions.main
  local lists = {}
  for i, param in ipairs(fn.params) do
    lists[i] = ordinary(size_of(shape_of(param)), case[4] or -1.1, case[5] or 1.3, i)
  end
  return mod, fn.params, lists
end

describe("The gradient of", function()
  for _, case in ipairs(operators) do
    it(case[1] .. " agrees with finite differences", function()
      local mod, params, lists = program(case, "float64")
      check_gradients(mod, first_order(mod), 1, params, lists)
    end)
  end

  for _, case in ipairs(images) do
    it(case[1] .. " is what the operator is linear in", function()
      local mod, params, lists = program(case, "float32")
      local got = table.pack(pl.eval(first_order(mod), table.unpack(arguments(params, lists))))
      for i, param in ipairs(params) do
        local values = flat(got[2][i]:to_table())
        for k = 1, size_of(shape_of(param)), 5 do
          local function at(delta)
            local old = lists[i][k]
            lists[i][k] = old + delta
            local s = sum(table.pack(pl.eval(mod, table.unpack(arguments(params, lists)))))
            lists[i][k] = old
            return s
          end
          local expected = (at(0.01) - at(-0.01)) / 0.02
          assert(math.abs(expected - values[k]) < 5e-3 * math.max(1, math.abs(expected)),
            ("parameter %d, element %d: %g versus %g"):format(i, k, values[k], expected))
        end
      end
    end)
  end
end)

describe("FirstOrderGradient", function()
  it("binds each value and zeros, and computes gradients backwards", function()
    assert_becomes(first_order, [[
      def @main(%x: float32) -> float32 { tanh(exp(%x)) }
    ]], [[
      def @main(%x: float32) -> (float32, (float32,)) {
        let %a = %x; let %da = zeros_like(%a);
        let %b = exp(%a); let %db = zeros_like(%b);
        %0 = tanh(%b);
        let %c = %0; let %dc = zeros_like(%c);
        %1 = (
          let %g = add(%db, multiply(ones_like(%c), subtract(ones_like(%0), multiply(%0, %0))));
          let %h = add(%da, multiply(%g, exp(%a)));
          (%h,)
        );
        (%c, %1)
      }
    ]])
  end)

  it("differentiates shared values, tuples and calls of literal functions", function()
    local mod = parse [[
      def @main(%x: Tensor[(2), float64], %y: Tensor[(2), float64]) -> Tensor[(2), float64] {
        %0 = exp(%x);
        %1 = (%0, (%y, %0));
        %2 = %1.1;
        %3 = fn (%a: Tensor[(2), float64]) -> Tensor[(2), float64] { multiply(%a, %a) };
        add(%3(%2.1), multiply(%2.0, %1.0))
      }
    ]]
    check_gradients(mod, first_order(mod), 1, mod.functions.main.params,
      { { 0.3, -0.7 }, { 1.1, 0.4 } })
  end)

  it("differentiates each call of a function that is called twice", function()
    local mod = parse [[
      def @main(%x: Tensor[(2), float64]) -> Tensor[(2), float64] {
        %0 = fn (%a: Tensor[(2), float64]) -> Tensor[(2), float64] { exp(%a) };
        add(%0(%x), %0(tanh(%x)))
      }
    ]]
    check_gradients(mod, first_order(mod), 1, mod.functions.main.params, { { 0.3, -0.7 } })
  end)

  it("refuses what is not dataflow, and operators without gradients", function()
    assert.error_matches(function()
      first_order(parse "def @main(%x: float32) -> float32 { let %a = exp(%x); %a }")
    end, "FirstOrderGradient.*only variables, constants")
    assert.error_matches(function()
      first_order(parse "def @main(%x: float32) -> float32 { round(%x) }")
    end, "'round' has no gradient")
    assert.error_matches(function()
      first_order(parse [[def @main(%x: Tensor[(?), float32]) -> float32 { sum(%x) }]])
    end, "gradient of 'sum': the shape")
    assert.error_matches(function()
      first_order(parse [[def @main(%x: Tensor[(2, 3, 4, 5), float32]) {
        strided_slice(%x, begin=[1, 0, 0, 0], end=[2, 1, 1, 1], strides=[1, 1, 1, 1],
          axes=[0, 1, 2, 3])
      }]])
    end, "gradient of 'strided_slice': begin and end must be given for all axes")
  end)

  it("does not recurse on deep programs", function()
    local lines = {}
    for i = 1, 5000 do lines[i] = ("%%%d = tanh(%%%d);"):format(i, i - 1) end
    local out = first_order(parse("def @main(%x: float32) -> float32 { %0 = exp(%x);"
      .. table.concat(lines, "\n") .. "%5000 }"))
    assert(pl.verify(out))
  end)
end)

describe("Gradient", function()
  it("makes pairs of tensors and the references of their gradients", function()
    assert_becomes(higher_order, [[
      def @main(%x: float32) -> float32 { exp(%x) }
    ]], [[
      def @main(%x: float32) -> (float32, (float32,)) {
        let %bp = ref(fn () -> () { () });
        let %p = (%x, ref(zeros_like(%x)));
        %0 = fn (%y: (float32, ref(float32)), %b: ref(fn () -> ())) -> (float32, ref(float32)) {
          let %a = %y;
          let %v = %a.0;
          let %z = exp(%v);
          let %q = (%z, ref(zeros_like(%z)));
          let %r = %q;
          let %f = ref_read(%b);
          %1 = fn () -> () {
            let %s = %r.1;
            let %g = ref_read(%s);
            let %t = %a.1;
            let %u = %a.1;
            let %h = ref_read(%u);
            let %e = exp(%v);
            let %m = multiply(%g, %e);
            let %n = add(%h, %m);
            let %w = ref_write(%t, %n);
            let %c = %f();
            let %i = %c;
            let %j = %i;
            %j
          };
          let %k = ref_write(%b, %1);
          %r
        };
        let %c = %0(%p, %bp);
        let %w = ref_write(%c.1, ones_like(%c.0));
        %2 = ref_read(%bp);
        let %e = %2();
        (%c.0, (ref_read(%p.1),))
      }
    ]])
  end)

  for _, row in ipairs {
    { "operators in operators", "%x: V, %y: V", "multiply(exp(%x), tanh(add(%x, %y)))" },
    { "lets and functions", "%x: V, %y: V",
      [[let %f = fn (%a: V) { multiply(%a, %y) }; let %b = %f(%x); add(%f(%b), exp(%b))]] },
    { "branches", "%x: V, %y: V",
      [[let %c = if (True) { multiply(%x, %y) } else { %x }; exp(%c)]] },
    { "tuples", "%x: V, %y: V",
      [[let %t = (exp(%x), multiply(%x, %y)); concatenate((%t.1, (concatenate(%t))))]] },
    { "references", "%x: V, %y: V",
      [[let %r = ref(%x); ref_write(%r, multiply(ref_read(%r), %y)); exp(ref_read(%r))]] },
    { "checkpoints", "%x: V, %y: V",
      [[let %a = annotation.checkpoint(exp(multiply(%x, %y))); multiply(%a, %x)]] },
    { "global functions", "%x: V, %y: V", "add(@f(%x), @f(multiply(%x, %y)))",
      "def @f(%a: V) -> V { let %b = tanh(%a); multiply(%b, %a) }" },
  } do
    it("differentiates " .. row[1], function()
      local text = ("%s def @main(%s) { %s }"):format(row[4] or "", row[2], row[3])
      local mod = parse((text:gsub("%f[%w]V%f[%W]", "Tensor[(2), float64]")))
      local grad = higher_order(mod)
      assert(pl.verify(grad))
      check_gradients(mod, grad, 1, mod.functions.main.params, { { 0.3, -0.7 }, { 1.1, 0.4 } })
      local evaluated = pl.passes.PartialEvaluate()(grad)
      check_gradients(mod, evaluated, 1, mod.functions.main.params,
        { { 0.3, -0.7 }, { 1.1, 0.4 } })
    end)
  end

  it("differentiates a loop of the gradient of take in A-normal form", function()
    local mod = parse [[
      def @main(%x: Tensor[(3, 2), float64]) -> Tensor[(2, 2), float64] {
        exp(take(%x, meta[relay.Constant][0], axis=0))
      }
      #[metadata]
      { "root": 1, "nodes": [ { "type_key": "" },
        { "type_key": "Map", "keys": ["relay.Constant"], "data": [2] },
        { "type_key": "Array", "data": [3] },
        { "type_key": "relay.Constant", "attrs": { "data": "0", "span": "0" } } ],
        "b64ndarrays": [
          "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAAgAQACAAAAAAAAAAgAAAAAAAAAAgAAAAAAAAA="],
        "attrs": { "tvm_version": "0.14.0" } }
    ]]
    local grad = higher_order(mod)
    assert(pl.verify(grad))
    check_gradients(mod, grad, 1, mod.functions.main.params,
      { { 0.3, -0.7, 1.1, 0.4, 0.2, -0.5 } })
  end)

  it("uses the gradient that a script set for an operator", function()
    local mod = parse "def @main(%x: Tensor[(2), float64]) -> Tensor[(2), float64] { round(%x) }"
    assert.error_matches(function() higher_order(mod) end, "round.*FPrimalGradient")
    pl.op_attr("round", "FPrimalGradient", function(orig, grad)
      return { pl.op.multiply(grad, orig.args[1]) }
    end)
    local got = table.pack(pl.eval(higher_order(mod), pl.tensor({ 1.5, 3 }, "float64")))
    local other = table.pack(pl.eval(first_order(mod), pl.tensor({ 1.5, 3 }, "float64")))
    pl.op_attr("round", "FPrimalGradient", nil)
    assert.same({ 1.5, 3 }, got[2][1]:to_table())
    assert.same({ 1.5, 3 }, other[2][1]:to_table())
  end)

  it("names the operator when a script's gradient is no list of nodes", function()
    local mod = parse "def @main(%x: float32) -> float32 { round(%x) }"
    pl.op_attr("round", "FPrimalGradient", function() return 1 end)
    local ok, message = pcall(higher_order, mod)
    pl.op_attr("round", "FPrimalGradient", nil)
    assert.is_false(ok)
    assert.matches("FPrimalGradient.*round.*list expected", tostring(message))
  end)

  it("is FirstOrderGradient with mode first_order", function()
    local mod = parse "def @main(%x: float32) -> float32 { exp(%x) }"
    local out = pl.passes.Gradient { mode = "first_order" }(mod)
    assert(pl.equal(out, first_order(mod)))
    assert.error_matches(function() pl.passes.Gradient { mode = "second" } end, "higher_order")
  end)

  it("refuses a shared value, a parameter that is no tensor, a generic function", function()
    for text, message in pairs {
      ["def @main(%x: float32) -> float32 { %0 = exp(%x); add(%0, %0) }"] = "ToANormalForm",
      ["def @main(%x: (float32, float32)) -> float32 { exp(%x.0) }"] = "must be tensors",
      ["def @main[A](%x: float32, %y: A) -> float32 { exp(%x) }"] = "type parameters",
    } do
      assert.error_matches(function() higher_order(parse(text)) end, message)
    end
  end)

  it("does not recurse on deep programs", function()
    local lines = {}
    for i = 1, 2000 do lines[i] = ("%%%d = tanh(%%%d);"):format(i, i - 1) end
    local out = higher_order(parse("def @main(%x: float32) -> float32 { %0 = exp(%x);"
      .. table.concat(lines, "\n") .. "%2000 }"))
    assert(pl.verify(out))
  end)
end)

describe("pl.gradient", function()
  it("gives the gradient of a function, and of one of a module", function()
    local mod = parse [[
      def @square(%x: float32) -> float32 { multiply(%x, %x) }
      def @cube(%x: float32) -> float32 { multiply(%x, @square(%x)) }
    ]]
    local fn, with = pl.gradient(mod.functions.cube, { mod = mod })
    assert.equal("Function", fn.kind)
    local got = table.pack(pl.eval(with, pl.tensor(2, "float32")))
    assert.equal(12, got[2][1]:to_table())
    local plain = pl.gradient(mod.functions.square, { mode = "first_order" })
    got = table.pack(pl.eval(plain, pl.tensor(2, "float32")))
    assert.equal(4, got[2][1]:to_table())
    assert.error_matches(function() pl.gradient(mod) end, "a function expected, got Module")
  end)
end)

describe("LazyGradientInit", function()
  it("computes on cells and keeps the signature", function()
    local mod = parse [[
      def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { add(exp(%x), zeros_like(%x)) }
    ]]
    local out = lazy(mod)
    assert(pl.verify(out))
    local expected = parse [=[
      type GradCell[T] { Raw(T), One(fn () -> T), Zero(fn () -> T), }
      def @FromGradCell[T](%g: GradCell[T]) -> T {
        match (%g) { Raw(%x) => { %x }, One(%x) => { %x() }, Zero(%x) => { %x() }, }
      }
      def @AddGradCell[T](%add: fn (T, T) -> T, %l: GradCell[T], %r: GradCell[T]) -> GradCell[T] {
        match ((%l, %r)) {
          (Zero(_), _) => { %r }, (_, Zero(_)) => { %l },
          _ => { Raw(%add(@FromGradCell(%l), @FromGradCell(%r))) },
        }
      }
      def @MultiplyGradCell[T](%multiply: fn (T, T) -> T, %l: GradCell[T],
                               %r: GradCell[T]) -> GradCell[T] {
        match ((%l, %r)) {
          (Zero(_), _) => { %l }, (_, Zero(_)) => { %r },
          (One(_), _) => { %r }, (_, One(_)) => { %l },
          _ => { Raw(%multiply(@FromGradCell(%l), @FromGradCell(%r))) },
        }
      }
      def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
        %0 = fn (%y: GradCell[Tensor[(2), float32]]) -> GradCell[Tensor[(2), float32]] {
          @AddGradCell(
            fn (%l: Tensor[(2), float32], %r: Tensor[(2), float32]) -> Tensor[(2), float32] {
              add(%l, %r) },
            Raw(exp(@FromGradCell(%y))),
            Zero(fn () -> Tensor[(2), float32] { zeros_like(@FromGradCell(%y)) }))
        };
        let %c = %0(Raw(%x));
        @FromGradCell(%c)
      }
    ]=]
    assert(pl.equal(out, expected), pl.mismatch(out, expected))
    assert(pl.check(mod, out))
  end)

  it("computes the same on tuples, lets, branches and gradients", function()
    for _, text in ipairs {
      [[def @main(%x: float32, %y: float32) -> (float32, (float32, float32)) {
          let %t = (%x, %y);
          let %a = multiply(%t.0, ones_like(%t.1)); (%a, (%t.1, exp(%a))) }]],
      [[def @main(%c: bool, %x: float32) -> float32 {
          if (%c) { add(%x, 1f) } else { let %f = fn (%y: float32) { exp(%y) }; %f(%x) } }]],
      [[def @f(%x: float32) -> float32 { tanh(%x) }
        def @main(%x: float32) -> float32 { add(@f(%x), zeros(shape=[], dtype="float32")) }]],
      [[def @main(%x: Tensor[(2, 4), float32]) -> Tensor[(2, 4), float32] {
          let %s = split(%x, indices_or_sections=2, axis=1); concatenate((%s.1, %s.0), axis=1) }]],
    } do
      local mod = parse(text)
      local out = lazy(mod)
      assert(pl.verify(out))
      assert(pl.check(mod, out))
    end
    local mod = parse "def @main(%x: float32) -> float32 { multiply(exp(%x), %x) }"
    local grad = higher_order(mod)
    assert(pl.check(grad, lazy(grad)))
  end)

  it("leaves functions without tensors alone", function()
    local mod = parse "def @main[A](%x: A) -> A { %x }"
    assert.equal(mod.functions.main, lazy(mod).functions.main)
  end)
end)
