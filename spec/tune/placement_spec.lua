-- pl.tune.placement: the backends of the parts of a function, by dynamic programming over measured
-- costs.

local pl = require "perilune"

local dfp = pl.dataflow_pattern

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local text = [[def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.relu(%0);
  %2 = tanh(%1);
  add(%2, %1)
}]]

-- Costs by what a module has: so many seconds for each operator, and a start for each part.
local function measure_of(costs, start)
  return function(mod, backend)
    local sum = start[backend] or 0
    for name, n in pairs(pl.list_op_freqs(mod)) do
      sum = sum + n * (costs[backend] and costs[backend][name] or costs.default)
    end
    return sum
  end
end

local function backends_of(result)
  local list = {}
  for i, part in ipairs(result.parts) do list[i] = part.backend .. #part.nodes end
  return table.concat(list, " ")
end

describe("pl.tune.placement", function()
  it("gives each part to the backend that is cheapest", function()
    local mod = parse(text)
    local fast = { name = "fast", compiler = "fast", group = 3 }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", fast },
      measure = measure_of({ default = 10, fast = { ["nn.dense"] = 1, ["nn.relu"] = 1, tanh = 50,
        add = 50 } }, { fast = 5 }) }
    assert.equal("fast2 evaluator1 evaluator1", backends_of(result))
    assert.equal(5 + 2 + 20, result.cost)
    assert.equal(40, result.base_cost)
    assert.is_true(result.exact)
    assert(pl.verify(result.mod))
    assert(pl.check(mod, result.mod))
    local functions = {}
    for name, fn in pairs(result.mod) do
      if fn.attrs and fn.attrs.Compiler then functions[name] = fn.attrs.Compiler end
    end
    assert.same({ tvmgen_default_fast_main_0 = "fast" }, functions)
  end)

  it("measures equal parts once, and leaves the module where the host is best", function()
    local x = pl.var("x", "Tensor[(8), float32]")
    local out = x
    for _ = 1, 20 do out = pl.op.tanh(out) end
    local mod = pl.module { main = pl.func({ x }, out) }
    local calls = 0
    local result = pl.tune.placement { mod = mod, backends = { "evaluator",
      { name = "other", compiler = "other" } }, measure = function(_, backend)
      calls = calls + 1
      return backend == "other" and 2 or 1
    end }
    assert.equal(2, calls)
    assert.equal(2, result.measured)
    assert.equal(mod, result.mod)
    assert.equal(20, result.cost)
  end)

  it("takes what patterns match, also where they overlap", function()
    local mod = parse [[def @main(%x: Tensor[(8), float32]) { tanh(exp(tanh(exp(%x)))) }]]
    local w = dfp.wildcard
    local pair = { name = "pair", compiler = "pair", patterns = {
      { "exp_tanh", dfp.is_op "tanh" (dfp.is_op "exp" (w())) },
      { "tanh_exp", dfp.is_op "exp" (dfp.is_op "tanh" (w())) } } }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", pair },
      measure = measure_of({ default = 10, pair = { exp = 1, tanh = 1 } }, {}) }
    assert.equal("pair2 pair2", backends_of(result))
    assert.equal(4, result.cost)
    assert.truthy(result.mod.functions.tvmgen_default_pair_main_0)
  end)

  it("replaces parts by what a transform makes of them", function()
    local mod = parse [[def @main(%x: Tensor[(8), float32]) { exp(nn.relu(nn.relu(%x))) }]]
    local result = pl.tune.placement { mod = mod, backends = { "evaluator",
      { name = "simple", transform = "SimplifyExpr", group = 2 } },
      measure = measure_of({ default = 1 }, {}) }
    assert.equal(2, result.cost)
    assert.equal(1, pl.list_op_freqs(result.mod)["nn.relu"])
  end)

  it("is the least cover of all", function()
    -- Against every cover, by exhaustive search.
    local function least(costs, n)
      local best = { [0] = 0 }
      for i = 1, n do
        best[i] = math.huge
        for size = 1, math.min(3, i) do
          best[i] = math.min(best[i], best[i - size] + costs[size])
        end
      end
      return best[n]
    end
    for n = 1, 12 do
      local x = pl.var("x", "Tensor[(8), float32]")
      local out = x
      for _ = 1, n do out = pl.op.tanh(out) end
      local costs = { 10, 15, 19 + n % 3 * 4 }
      local result = pl.tune.placement { mod = pl.module { main = pl.func({ x }, out) },
        backends = { "evaluator", { name = "b", compiler = "b", group = 3 } }, check = false,
        measure = function(mod) return costs[pl.list_op_freqs(mod).tanh] end }
      assert.equal(least(costs, n), result.cost)
    end
  end)

  -- Every assignment of two backends to the calls, with the costs of all boundaries.
  local function least_of_all(mod, costs, move)
    local calls, best = {}, math.huge
    local backends = {}
    for node in mod.main:nodes() do
      if node.kind == "Call" then calls[#calls + 1] = node end
    end
    for bits = 0, (1 << #calls) - 1 do
      local sum = 0
      for i, call in ipairs(calls) do backends[call] = bits >> (i - 1) & 1 end
      for _, call in ipairs(calls) do
        local own, seen = backends[call], {}
        sum = sum + costs[own + 1][call.op.name]
        for _, operand in ipairs(call.args) do
          if not seen[operand] and (backends[operand] or 0) ~= own then sum = sum + move end
          seen[operand] = true
        end
        if call == mod.main.body and own == 1 then sum = sum + move end
      end
      best = math.min(best, sum)
    end
    return best
  end

  it("counts what goes from one backend to another", function()
    local random = require "perilune.tune.random"(5)
    local names = { "exp", "tanh", "nn.relu" }
    for _ = 1, 30 do
      local x = pl.var("x", "Tensor[(8), float32]")
      local values = { x }
      for _ = 1, 7 do
        local a, b = random:element(values), random:element(values)
        local name = random:element(names)
        local one = name == "nn.relu" and pl.op.nn.relu(a) or pl.op[name](a)
        values[#values + 1] = random:chance(0.5) and one or pl.op.add(one, b)
      end
      local mod = pl.module { main = pl.func({ x }, values[#values]) }
      local costs = { {}, {} }
      for _, list in ipairs(costs) do
        for _, name in ipairs { "exp", "tanh", "nn.relu", "add" } do
          list[name] = random:integer(20)
        end
      end
      local result = pl.tune.placement { mod = mod, check = false,
        backends = { "evaluator", { name = "b", compiler = "b" } },
        measure = measure_of({ evaluator = costs[1], b = costs[2] }, {}),
        boundary = { seconds = 3, bandwidth = 16 } } -- 32 bytes: 5
      assert.equal(least_of_all(mod, costs, 5), result.cost)
      assert.equal(0, result.boundary_cost % 5)
    end
  end)

  it("takes the costs of boundaries from a function", function()
    local mod = parse(text)
    local seen = {}
    local function place(boundary)
      return pl.tune.placement { mod = mod, backends = { "evaluator",
        { name = "b", compiler = "b", group = 4 } }, measure = function(_, name)
        return name == "b" and 1 or 10
      end, boundary = boundary }
    end
    local result = place(function(bytes, from, to)
      seen[from .. to] = bytes
      return 100
    end)
    assert.equal(mod, result.mod)
    assert.equal(0, result.boundary_cost)
    assert.equal(128, seen.bevaluator)
    assert.is_true(place(false).cost < 40)
    for message, boundary in pairs {
      ["bandwidth: a positive number"] = { seconds = 1, bandwidth = 0 },
      ["seconds: a positive number"] = { bandwidth = 1 },
      ["the function gave -1"] = function() return -1 end,
    } do
      local ok, err = pcall(place, boundary)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(message, 1, true), tostring(err))
    end
  end)

  it("keeps to a number of states, and says so", function()
    local x = pl.var("x", "Tensor[(8), float32]")
    local out = x
    for _ = 1, 30 do out = pl.op.add(pl.op.tanh(out), pl.op.exp(x)) end
    local result = pl.tune.placement { mod = pl.module { main = pl.func({ x }, out) },
      backends = { "evaluator", { name = "b", compiler = "b", group = 4 } }, max_states = 2,
      measure = measure_of({ default = 1 }, { b = 0.5 }) }
    assert.is_false(result.exact)
    assert.equal(90, result.cost)
  end)

  it("goes on without parts that cannot be measured", function()
    local mod = parse(text)
    local result = pl.tune.placement { mod = mod, backends = { "evaluator",
      { name = "broken", compiler = "broken" } }, measure = function(_, backend)
      if backend == "broken" then return nil, "it is broken" end
      return 1
    end }
    assert.equal(mod, result.mod)
    assert.equal("broken: it is broken", result.reasons[1])
  end)

  it("says why when no part can be measured", function()
    local ok, err = pcall(pl.tune.placement, { backends = { "evaluator" },
      runner = pl.tune.runner { seconds = 1e-9 },
      mod = parse "def @main(%x: Tensor[(8), float32]) { tanh(%x) }" })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("no part can be measured: evaluator", 1, true), tostring(err))
  end)

  it("does not take what a transform gives another type", function()
    local mod = parse "def @main(%x: Tensor[(8), float32]) { exp(tanh(%x)) }"
    local transform = pl.function_pass { name = "Widen", run = function(fn)
      return pl.func(fn.params, pl.op.cast(fn.body, { dtype = "float64" }))
    end }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator",
      { name = "wide", transform = transform } }, measure = measure_of({ default = 1 }, {}) }
    assert.equal(mod, result.mod)
    assert.truthy(result.reasons[1]:find("its result is", 1, true))
  end)

  it("measures with the evaluator in child processes", function()
    local mod = parse(text)
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", "openblas" } }
    assert.is_true(result.cost > 0 and result.cost <= result.base_cost)
    assert(pl.check(mod, result.mod, { rtol = 1e-4, atol = 1e-5 }))
  end)

  it("leaves functions of OpenBLAS that pl.build computes in C", function()
    local mod = parse [[def @main(%x: Tensor[(8, 16), float32], %a: Tensor[(16, 16), float32]) {
      nn.relu(nn.dense(nn.relu(nn.dense(%x, %a, units=None)), %a, units=None)) }]]
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", "openblas" },
      measure = function(_, name) return name == "openblas" and 1 or 10 end }
    local x = pl.tensor.random({ 8, 16 }, "float32", { seed = 1 })
    local a = pl.tensor.random({ 16, 16 }, "float32", { seed = 2 })
    assert.is_true(#result.mod.names > 1)
    local got = pl.build(result.mod).main(x, a)[1]
    assert.is_true((got:compare(pl.eval(mod, x, a), { rtol = 1e-4, atol = 1e-4 })))
  end)

  it("takes a user's C function as a backend", function()
    local path = os.tmpname()
    local function backend(body, symbol)
      local file <close> = assert(io.open(path .. ".c", "w"))
      file:write("#include <stdint.h>\nint twice(const void *const *in, const int64_t *const *s, "
        .. "void *out) {\n  int64_t n = s[0][0] * s[0][1];\n" .. body .. "  return s[1][1] == 64 ? "
        .. "0 : 1;\n}\n")
      return { name = "mine", compiler = "mine", patterns = { { "twice", dfp.is_op "add" (
        dfp.is_op "exp" (dfp.wildcard()), dfp.is_op "exp" (dfp.wildcard())) } },
        builder = pl.tune.builder { kind = "function", source = path .. ".c",
          symbol = symbol or "twice", flags = "-O2" } }
    end
    local function place(...)
      local mod = parse [[def @main(%x: Tensor[(64, 64), float32]) {
        %0 = exp(%x); tanh(add(%0, %0)) }]]
      return pl.tune.placement { mod = mod, backends = { "evaluator", backend(...) } }, mod
    end
    -- The series of exp; inputs are small.
    local right = [[
      const float *x = in[0];
      float *y = out;
      for (int64_t i = 0; i < n; i++) {
        float t = 1, sum = 1;
        for (int k = 1; k < 14; k++) {
          t *= x[i] / k;
          sum += t;
        }
        y[i] = 2 * sum;
      }
]]
    local result = place(right)
    assert.is_nil(result.reasons[1])
    assert.is_true(result.measured >= 4) -- three calls, and what the pattern matches
    local wrong, mod = place "  ((float *)out)[n - 1] = 3;\n"
    assert.equal(mod, wrong.mod)
    assert.matches("mine: wrong result: the function twice", wrong.reasons[1])
    assert.matches("mine: crash: the function twice: it crashed: signal 11",
      place("  *(volatile int *)8 = (int)n;\n").reasons[1])
    assert.matches("mine: build: .*error", place("  not C;\n").reasons[1])
    assert.matches("mine: build: ", place("  (void)n;\n", "thrice").reasons[1])
    assert.matches("gave another result than 0", place("  return 3;\n").reasons[1])
    os.remove(path .. ".c")
    os.remove(path)
    assert.matches("symbol: the name of a C function", select(2, pcall(pl.tune.builder, {
      kind = "function", source = "x.c", symbol = "a b" })))
  end)

  describe("with a user's C function", function()
    local folder, command = nil, require "spec.cli.command"
    setup(function() folder = command.folder() end)
    teardown(function() os.execute("rm -rf " .. folder) end)

    -- Six times log of exp is what it was.
    local before, pattern = "%x", dfp.wildcard()
    for _ = 1, 6 do
      before = ("log(exp(%s))"):format(before)
      pattern = dfp.is_op "log" (dfp.is_op "exp" (pattern))
    end
    local source = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(256, 256), float32]) { tanh("
      .. before .. ") }\n"

    local function backend(last)
      command.write(folder .. "/same.c", "#include <stdint.h>\n#include <string.h>\n"
        .. "static int64_t n_of(const int64_t *s) { return s[0] * s[1]; }\n"
        .. "int same(const void *const *in, const int64_t *const *s, void *out) {\n"
        .. "  memcpy(out, in[0], 4 * n_of(s[1]));\n  return " .. (last or "0") .. ";\n}\n")
      return { name = "mine", compiler = "mine", patterns = { { "same", pattern } },
        builder = pl.tune.builder { kind = "function", source = folder .. "/same.c",
          symbol = "same" } }
    end

    local x = pl.tensor.random({ 256, 256 }, "float32", { seed = 3, low = -1, high = 1 })

    it("links several sources whose static names and macros are the same", function()
      local function write(name, factor)
        return { symbol = name, source = command.write(("%s/%s.c"):format(folder, name), ([[
          #include <stdint.h>
          #define FACTOR %d
          static const float factor = FACTOR; /* static float number(void) */
          static float last, sums[4];
          static inline float scaled(float x) { static int calls; calls++; return factor * x; }
          static int %s(const void *const *in, const int64_t *const *s, void *out) {
            const float *x = in[0];
            for (int64_t i = 0; i < s[0][0]; i++) ((float *)out)[i] = scaled(x[i]);
            last = sums[0] = factor;
            return 0;
          }
        ]]):format(factor, name)) }
      end
      local mod = assert(pl.parse [[#[version = "0.0.5"]
def @by2(%x: Tensor[(4), float32], Compiler="two") -> Tensor[(4), float32] { multiply(%x, 2f) }
def @by3(%x: Tensor[(4), float32], Compiler="three") -> Tensor[(4), float32] { multiply(%x, 3f) }
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { @by2(@by3(%x)) }]])
      local built = pl.build(mod, { external = { two = write("two", 2),
        three = write("three", 3) } })
      assert.same({ 6, 12, 18, 24 }, built.main(pl.tensor({ 1, 2, 3, 4 }, "float32"))[1]:to_table())
    end)

    it("links it to generated C, and compares that as a whole", function()
      local mod, mine = assert(pl.parse(source)), backend()
      local result = pl.tune.placement { mod = mod, backends = { "evaluator", mine } }
      assert.same({}, result.reasons)
      assert.equal("faster", result.verdict)
      assert.is_true(result.ratio < 0.9, tostring(result.ratio))
      local built = pl.build(result.mod, { external = { mine = mine.builder } })
      local how = require "perilune.check.tensor_difference"(built.main(x)[1], pl.eval(mod, x),
        { rtol = 1e-3, atol = 1e-5, scaled = true })
      assert.is_nil(how)
      assert.matches("#line 1 \"[^\n]*same.c\"", built:source())
    end)

    it("builds it from the command line", function()
      backend()
      command.write(folder .. "/in.relay", source)
      command.write(folder .. "/mine.lua", ([[
local pl = require "perilune"
local dfp = require "perilune.dataflow_pattern"
local pattern = dfp.wildcard()
for _ = 1, 6 do pattern = dfp.is_op "log" (dfp.is_op "exp" (pattern)) end
return { name = "mine", compiler = "mine", patterns = { { "same", pattern } },
  builder = pl.tune.builder { kind = "function", source = "%s/same.c", symbol = "same" } }
]]):format(folder))
      local status, out, err = command.run(folder, ("tune %s/in.relay -p DeadCodeElimination "
        .. "--placement evaluator,%s/mine.lua -o %s/out.relay"):format(folder, folder, folder))
      assert.equal(0, status, err)
      assert.matches("mine: 1 parts", out)
      assert.matches("as a whole: cost", out)
      status, out, err = command.run(folder, ("build %s/out.relay --backend %s/mine.lua "
        .. "-o %s/out.so -o %s/out.c"):format(folder, folder, folder, folder))
      assert.equal(0, status, out .. err)
      assert.matches("same%(inputs, shapes, p2%)", command.read(folder .. "/out.c"))
      status, out, err = command.run(folder, ("build %s/out.relay -o %s/b.so")
        :format(folder, folder))
      assert.equal(1, status, out)
      assert.matches("is computed by the compiler 'mine'", err)
      assert.not_matches("stack traceback", err)
    end)

    it("reports what it gives other than 0, and what has no C", function()
      local mod, mine = assert(pl.parse(source)), backend()
      local placed = pl.tune.placement { mod = mod, backends = { "evaluator", mine },
        measure = function(_, name) return name == "mine" and 0.1 or 1 end }.mod
      backend "7"
      local ok, err = pcall(pl.build(placed, { external = { mine = mine.builder } }).main, x)
      assert.is_false(ok)
      assert.matches("same of [^\n]* gave another result than 0", tostring(err))
      ok, err = pcall(pl.build, placed)
      assert.is_false(ok)
      assert.matches("is computed by the compiler 'mine': external.mine says which C",
        tostring(err))
      for pattern_, external in pairs { ["symbol"] = { mine = { source = folder .. "/same.c" } },
        ["none.c"] = { mine = { source = folder .. "/none.c", symbol = "same" } } } do
        ok, err = pcall(pl.build, placed, { external = external })
        assert.is_false(ok)
        assert.matches(pattern_, tostring(err))
      end
    end)

    it("puts functions of generated C into their caller", function()
      local mod = assert(pl.parse(source))
      local placed = pl.tune.placement { mod = mod, backends = { "evaluator", "c" },
        measure = function(_, name) return name == "c" and 0.1 or 1 end }.mod
      assert.not_equal(mod, placed)
      assert.equal(pl.build(mod):source(), pl.build(placed):source())
    end)
  end)

  it("compares the whole with the original", function()
    local mod = parse("def @main(%x: Tensor[(256, 256), float32]) { "
      .. ("tanh("):rep(7) .. "exp(%x)" .. (")"):rep(7) .. " }")
    local function changing(f)
      return pl.function_pass { name = "Changing", run = function(fn)
        return pl.func(fn.params, f(fn.body))
      end }
    end
    -- One call of eight, and what adds nothing but work.
    local less = { name = "less", group = 8, transform = changing(function(body)
      while body.args[1].kind == "Call" do body = body.args[1] end
      return body
    end) }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", less }, check = false }
    assert.equal("faster", result.verdict)
    assert.is_true(result.ratio < 0.9, tostring(result.ratio))
    assert.is_true(result.confidence > 0.98)
    local same = { name = "same", transform = changing(function(body)
      return pl.op.copy(body)
    end) }
    result = pl.tune.placement { mod = mod, backends = { "evaluator", same } }
    assert.equal(mod, result.mod)
    assert.equal(result.base_cost, result.cost)
  end)

  it("says what is wrong with its options", function()
    local mod = parse(text)
    for message, options in pairs {
      ["mod: a module expected"] = {},
      ["there is no backend 'evaluater'"] = { mod = mod, backends = { "evaluater" } },
      ["backends: the list is empty"] = { mod = mod, backends = {} },
      ["is the host"] = { mod = mod, backends = { "c" } },
      ["two backends are called 'evaluator'"] = { mod = mod,
        backends = { "evaluator", "evaluator" } },
      ["row 1 is no name and dataflow pattern"] = { mod = mod,
        backends = { "evaluator", { name = "x", patterns = { 3 } } } },
      ["the module has no function @other"] = { mod = mod, name = "other" },
      ["max_states"] = { mod = mod, max_states = 0 },
    } do
      local ok, err = pcall(pl.tune.placement, options)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(message, 1, true), tostring(err))
    end
  end)
end)
