-- Loops of compiled models: loop and scan of the main function compute what the evaluator does.

local pl = require "perilune"

local function relay(body) return assert(pl.parse("#[version = \"0.0.5\"]\n" .. body)) end

local V = "Tensor[(3), float32]"

-- The text with V for the type of three numbers.
local function program(text) return relay((text:gsub("%f[%w]V%f[%W]", V))) end

local function tensor(seed) return pl.tensor.random({ 3 }, "float32", { seed = seed }) end

local function count(n) return pl.tensor(n, "int64") end

local function equal(mod, ...)
  local expected = table.pack(pl.eval(mod, ...))
  local got = pl.build(mod).main(...)
  if type(got) ~= "table" then got = { got } end
  assert.equal(#expected, #got)
  for i, value in ipairs(got) do
    local same, why = value:compare(expected[i], { rtol = 1e-5, atol = 1e-5 })
    assert.is_true(same, tostring(why))
  end
  return expected
end

-- A loop over a, b, c whose body ends with these results.
local function over_three(lets, results)
  return program(([[
def @main(%%n: int64, %%a: V, %%b: V, %%c: V) {
  %%90 = fn (%%i: int64, %%go: bool, %%p: V, %%q: V, %%r: V) {
    %s
    (%%go, %s)
  };
  loop(%%n, True, %%a, %%b, %%c, %%90, body=5, n_results=3)
}]]):format(lets, results))
end

describe("loops of built models", function()
  for name, row in pairs {
    ["carry values on"] = { "%0 = add(%p, %q); %1 = multiply(%q, %r);", "%0, %1, %r" },
    ["exchange values"] = { "", "%q, %r, %p" },
    ["exchange two and compute the third"] = { "%0 = add(%p, %q);", "%q, %p, %0" },
    ["carry one result on twice"] = { "%0 = add(%p, %r);", "%0, %0, %q" },
    ["carry constants and values of outside on"] = { "%0 = add(%p, %c);", "%a, %0, 2f * %c" },
    ["use the number of the round"] = {
      "%0 = cast(%i, dtype=\"float32\"); %1 = add(%p, %0); %2 = subtract(%q, %p);", "%1, %2, %r" },
    ["use an old value behind the new one"] = {
      "%0 = add(%p, %q); %1 = multiply(%p, %0); %2 = exp(%1);", "%0, %1, %2" },
  } do
    it(name, function()
      local mod = over_three(row[1], row[2])
      for n = 0, 4 do equal(mod, count(n), tensor(1), tensor(2), tensor(3)) end
    end)
  end

  it("end by a condition", function()
    local mod = program [[
def @main(%start: bool, %a: V, %limit: float32) {
  %90 = fn (%i: int64, %go: bool, %p: V) {
    %0 = add(%p, %p);
    (less(max(%0), %limit), %0)
  };
  loop(absent, %start, %a, %90, body=3)
}]]
    local a = pl.tensor { 0.5, 0.25, 1 }
    for _, start in ipairs { true, false } do
      for _, limit in ipairs { 0.1, 3.0, 100.0 } do
        equal(mod, pl.tensor(start, "bool"), a, pl.tensor(limit, "float32"))
      end
    end
  end)

  it("stand in each other, in branches and around them", function()
    local mod = program [[
def @main(%n: int64, %c: bool, %a: V, %b: V) {
  %0 = exp(%b);
  %5 = if (%c) {
    %1 = fn (%i: int64, %go: bool, %p: V) {
      %2 = fn (%j: int64, %go2: bool, %q: V, %r: V) {
        %6 = if (equal(%j, %i)) { add(%q, %0) } else { subtract(%q, %p) };
        (%go2, %6, %q)
      };
      %3 = loop(%i, absent, %p, %b, %2, body=4, n_results=2);
      (%go, add(%3.0, %3.1))
    };
    loop(%n, absent, %a, %1, body=3)
  } else { tanh(%0) };
  (add(%5, %0), %5)
}]]
    for n = 0, 5 do
      equal(mod, count(n), pl.tensor(n ~= 3, "bool"), tensor(4), tensor(5))
    end
  end)

  it("stack results of a constant number of rounds", function()
    local function stacked(n, result)
      return program(([[
def @main(%%a: V, %%c: bool) {
  %%90 = fn (%%i: int64, %%go: bool, %%p: V) {
    %%0 = multiply(%%p, %%a);
    (%%go, %%0, %s, cast(%%i, dtype="float32"))
  };
  %%1 = loop(%di64, True, %%a, %%90, body=3, n_results=3);
  (%%1.0, exp(%%1.1), %%1.2)
}]]):format(result, n))
    end
    for _, n in ipairs { 0, 1, 6 } do
      local values = equal(stacked(n, "%p"), tensor(6), pl.tensor(true, "bool"))
      assert.same({ n, 3 }, values[2].shape)
    end
  end)

  it("stack as many results as the type says, or fail", function()
    local mod = program [[
def @main(%n: int64, %a: V) -> (V, Tensor[(4, 3), float32]) {
  %90 = fn (%i: int64, %go: bool, %p: V) { %0 = add(%p, %a); (%go, %0, %0) };
  %1: (V, Tensor[(4, 3), float32]) = loop(%n, absent, %a, %90, body=3, n_results=2);
  (%1.0, %1.1)
}]]
    equal(mod, count(4), tensor(7))
    local built = pl.build(mod)
    for _, n in ipairs { 0, 3, 5, 1000000 } do
      assert.has_error(function() built.main(count(n), tensor(7)) end)
    end
  end)

  it("scan along axes, in both directions", function()
    for _, attributes in ipairs { "", ", scan_input_directions=[1, 0]",
      ", scan_output_directions=[1]", ", scan_output_axes=[1]" } do
      equal(program(([[
def @main(%%s: V, %%x: Tensor[(5, 3), float32], %%y: Tensor[(5, 3), float32]) {
  %%90 = fn (%%p: V, %%u: V, %%v: V) {
    %%0 = add(%%p, %%u);
    (%%0, multiply(%%0, %%v))
  };
  %%1 = scan(%%s, %%x, %%y, %%90, body=3, num_scan_inputs=2, n_results=2%s);
  (%%1.0, %%1.1)
}]]):format(attributes)), tensor(8), pl.tensor.random({ 5, 3 }, "float32", { seed = 9 }),
        pl.tensor.random({ 5, 3 }, "float32", { seed = 10 }))
    end
    equal(program [[
def @main(%s: V, %x: Tensor[(2, 3, 5), float32]) {
  %90 = fn (%p: V, %u: Tensor[(2, 3), float32]) { (sum(%u, axis=[0]), add(%u, %p)) };
  scan(%s, %x, %90, body=2, num_scan_inputs=1, n_results=2, scan_input_axes=[-1],
    scan_output_axes=[1])
}]], tensor(11), pl.tensor.random({ 2, 3, 5 }, "float32", { seed = 12 }))
  end)

  it("work with symbolic sizes", function()
    local mod = relay [[
def @main(%s: Tensor[(N, 3), float32], %x: Tensor[(T, N, 3), float32], %n: int64) {
  %90 = fn (%p: Tensor[(N, 3), float32], %u: Tensor[(N, 3), float32]) {
    %0 = add(%p, %u);
    (%0, tanh(%0))
  };
  %1 = scan(%s, %x, %90, body=2, num_scan_inputs=1, n_results=2);
  %91 = fn (%i: int64, %go: bool, %p: Tensor[(N, 3), float32]) { (%go, add(%p, %1.0)) };
  %2 = loop(%n, absent, %s, %91, body=3);
  (%1.0, %1.1, %2)
}]]
    for n = 0, 3 do
      equal(mod, pl.tensor.random({ n + 1, 3 }, "float32", { seed = n }),
        pl.tensor.random({ n + 2, n + 1, 3 }, "float32", { seed = n + 20 }), count(n))
    end
  end)

  it("refuse results whose number depends on data", function()
    local mod = program [[
def @main(%n: int64, %a: V) {
  %90 = fn (%i: int64, %go: bool, %p: V) { (%go, add(%p, %a), %p) };
  %1 = loop(%n, absent, %a, %90, body=3, n_results=2);
  (%1.0, %1.1)
}]]
    local ok, err = pcall(pl.build, mod)
    assert.is_false(ok)
    assert.matches("shape of Tensor[(?, 3), float32] is not known", tostring(err), 1, true)
  end)
end)
