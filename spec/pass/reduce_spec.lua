-- A module and a pipeline made small while what is wrong stays wrong: pl.reduce.

local pl = require "perilune"
local random_graph = require "spec.random.graph"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- How often each operator is called, and each other kind of node is there.
local function counts(mod)
  local list = {}
  for node in pl.post_order(mod) do
    local what = node.kind == "Call" and node.op and node.op.name or node.kind
    list[what] = (list[what] or 0) + 1
  end
  return list
end

-- Well is what has no such node.
local function lacks(what)
  return function(mod) return not counts(mod)[what] end
end

-- What is left of a module that has to keep such a node, without its types.
local function left(text, what)
  local small = assert(pl.reduce(parse(text), lacks(what)))
  assert(pl.verify(small.module))
  return (tostring(small.module):gsub(" /%* ty=.- %*/", ""):gsub("^[^\n]*\n", "")
    :gsub("Tensor%[%(4%), float32%]", "T"):gsub("^def ", ""))
end

describe("reduce", function()
  it("keeps what is wrong, and cuts off the rest", function()
    local text = [[
      def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
        %0 = tanh(exp(%x)); %1 = add(%0, sqrt(%y)); (abs(%1), %0, nn.relu(%1))
      }]]
    assert.equal("@main(%p: T, %p1: T) -> T {\n  add(%p, %p1)\n}\n", left(text, "add"))
    assert.equal("@main(%x: T) -> T {\n  exp(%x)\n}\n", left(text, "exp"))
    assert.equal("@main(%p: T) -> T {\n  nn.relu(%p)\n}\n", left(text, "nn.relu"))
  end)

  it("drops lets, branches, arms and functions", function()
    local text = [=[
      type List[A] { Cons(A, List[A]), Nil, }
      def @main(%c: bool, %x: Tensor[(4), float32], %l: List[Tensor[(4), float32]]) {
        let %a = tanh(%x);
        let %b = if (%c) { let %e = exp(%a); add(%e, %a) } else { @other(%x) };
        match (%l) { Cons(%h, Nil) => sqrt(%h), Cons(%h, _) => multiply(%h, %b), Nil => %a }
      }
      def @other(%x: Tensor[(4), float32]) { abs(nn.relu(%x)) }]=]
    assert.matches("%(%%p: T, %%p1: T%) %-> T {\n  add%(%%p1?, %%p1?%)\n}\n$", left(text, "add"))
    assert.matches("%(%%x: T%) %-> T {\n  nn.relu%(%%x%)\n}\n$", left(text, "nn.relu"))
    assert.matches("match%? %(%%l%) {\n    Cons%b() => {\n      %%[%w]+\n    },\n  }\n}\n$",
      left(text, "Match"))
    assert.matches("{\n  if %(%%c%) {\n    %%p\n  } else {\n    %%p1\n  }\n}\n$", left(text, "If"))
    assert.matches("{\n  let %%%w+: T = [^\n]*;\n  %%%w+\n}\n$", left(text, "Let"))
  end)

  it("simplifies weights, attributes and symbolic dims", function()
    local x = pl.var("x", "Tensor[(N, 4), float32]")
    local weights = pl.const { { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 } }
    local main = pl.func({ x }, pl.op.nn.softmax(pl.op.transpose(x, { axes = { 1, 0 } })
      + weights, { axis = 0 }))
    local small = assert(pl.reduce(pl.module { main = main }, function(mod)
      local found = counts(mod)
      return not (found["nn.softmax"] and found.add and found.Constant)
    end))
    assert.matches("def @main%(%%p: Tensor%[%(4, 1%), float32%][^)]*%)", tostring(small.module))
    local softmax = small.module.main.body
    assert.equal(-1, softmax.attrs.axis or -1)
    weights = softmax.args[1].args[2].data
    assert.is_true(weights.splat)
    assert.equal(0.0, weights:get(1, 1))
  end)

  it("gives numbers to dims without a name", function()
    local x = pl.var("x", "Tensor[(?, ?), float32]")
    local mod = pl.module { main = pl.func({ x }, pl.op.nn.softmax(x, { axis = 0 })) }
    local small = assert(pl.reduce(mod, function(module)
      local softmax = counts(module)["nn.softmax"]
      return not (softmax and module.main.params[1].type.shape[1] ~= 1)
    end))
    assert.equal("Tensor[(2, 1), float32]", tostring(small.module.main.params[1].type))
  end)

  it("gives what others call parameters that fit", function()
    local small = assert(pl.reduce(parse [[
      def @main(%x: Tensor[(4), float32]) { add(@f(tanh(%x), exp(%x)), %x) }
      def @f(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { sqrt(abs(%y)) }
    ]], function(mod) return not (counts(mod).sqrt and counts(mod).GlobalVar) end))
    assert.equal(2, #small.module.functions.f.params)
    assert.same({ GlobalVar = 1, Function = 2, Var = 4, Call = 1, sqrt = 1 },
      counts(small.module))
  end)

  -- Twelve passes, of which one mixes up a subtraction.
  local wrong = pl.function_pass { name = "Wrong", run = pl.mutator { Call = function(call)
    local a, b = call.args[1], call.args[2]
    if call.op.name == "subtract" and a.op and a.op.name == "abs" then return b - a end
  end } }

  local function pipeline()
    local passes = { name = "deploy" }
    for i = 1, 11 do
      passes[i] = i % 3 == 0 and "SimplifyExpr" or pl.function_pass { name = "Idle" .. i,
        run = pl.mutator { Call = function(call)
          if call.op.name == "exp" then return pl.op.exp(call.args[1]) end
        end } }
    end
    passes[9] = pl.fixpoint { passes[9], pl.try { "DeadCodeElimination", otherwise = { wrong } },
      wrong }
    return pl.sequential(passes)
  end

  local function large(n)
    local state, values = 1, {}
    local function below(k)
      state = (state * 1103515245 + 12345) % 2147483648
      return state // 65536 % k
    end
    for i = 1, 2 do values[i] = pl.var("x" .. i, "Tensor[(4, 4), float32]") end
    local params = { values[1], values[2] }
    local one = { pl.op.tanh, pl.op.sigmoid, pl.op.abs, pl.op.negative }
    local two = { pl.op.add, pl.op.multiply, pl.op.subtract }
    for _ = 1, n do
      local near = math.min(#values, 20)
      local a, b = values[#values - below(near)], values[#values - below(near)]
      local k = below(7)
      values[#values + 1] = k < 4 and one[k + 1](a) or two[math.max(k - 3, 1)](a, b)
    end
    return pl.module { main = pl.func(params, pl.tuple(table.move(values, #values - 40, #values, 1,
      {}))) }
  end

  it("finds the wrong pass and what it is wrong about in 2,000 nodes", function()
    local mod = large(3600)
    local small = assert(pl.reduce(mod, "oracle", { pipeline = pipeline() }))
    assert.is_true(small.nodes_before > 2000)
    assert.equal("Wrong", tostring(small.pipeline))
    assert.same({ 1, 14 }, { small.passes, small.passes_before })
    assert.is_true(small.nodes <= 5)
    assert.equal("subtract", small.module.main.body.op.name)
    assert.equal("abs", small.module.main.body.args[1].op.name)
    assert.is_false(pl.predicate "oracle":against(small.module)
      :holds(small.pipeline(small.module)))
    assert.matches("^%d of %d+ nodes, 1 of 14 passes, in %d+ tries and [%d.]+ s\nround 1 ",
      tostring(small))
    assert.is_nil(small.stopped)
  end)

  it("gives the same for the same", function()
    local one = assert(pl.reduce(large(200), "oracle", { pipeline = pipeline() }))
    local two = assert(pl.reduce(large(200), "oracle", { pipeline = pipeline() }))
    assert.equal(tostring(one.module), tostring(two.module))
    assert.equal(one.tries, two.tries)
  end)

  it("keeps the failure of a pipeline: its code, and the pass that fails", function()
    local picky = pl.function_pass { name = "Picky", run = pl.mutator { Call = function(call)
      if call.op.name == "negative" then error("negative values", 0) end
    end } }
    local other = pl.function_pass { name = "Other", run = pl.mutator { Call = function(call)
      if call.op.name == "multiply" then error("it multiplies", 0) end
    end } }
    local small = assert(pl.reduce(large(100), nil, {
      pipeline = pl.sequential { "SimplifyExpr", { picky, other } } }))
    assert.equal("Picky", tostring(small.pipeline))
    assert.matches("negative values", small.message)
    assert.same({ Function = 1, Var = 1, negative = 1 }, counts(small.module))
  end)

  it("leaves what is small as it is, at random", function()
    for seed = 1, 20 do
      local mod = random_graph(seed)
      for what in pairs(counts(mod)) do
        local small = assert(pl.reduce(mod, lacks(what)))
        assert.is_truthy(counts(small.module)[what])
        assert(pl.verify(small.module))
        assert.is_true(small.nodes <= small.nodes_before)
        local again = assert(pl.reduce(small.module, lacks(what)))
        assert.equal(small.nodes, again.nodes)
      end
    end
  end)

  it("gives the best so far when time is over", function()
    local small = assert(pl.reduce(large(400), "oracle", { pipeline = pipeline(),
      seconds = 1e-9 }))
    assert.equal("time", small.stopped)
    assert.equal(small.nodes_before, small.nodes)
    assert.matches("; not as small as can be: the time is over\n", tostring(small))
  end)

  it("stops at an interruption, with the best so far", function()
    local asked = 0
    local small = assert(pl.reduce(large(100), function(mod)
      asked = asked + 1
      if asked > 10 then error(setmetatable({ code = "interrupted" }, debug.getmetatable(
        select(2, pl.parse "?")))) end
      return lacks "negative"(mod)
    end))
    assert.equal("interrupted", small.stopped)
    assert.is_truthy(counts(small.module).negative)
  end)

  it("takes a candidate that a predicate cannot tell of for another one", function()
    local small = assert(pl.reduce(large(30), function(mod)
      if not counts(mod).abs then error "no abs" end
      return lacks "negative"(mod)
    end))
    assert.is_truthy(counts(small.module).abs and counts(small.module).negative)
  end)

  it("tells of progress", function()
    local told = {}
    local small = assert(pl.reduce(large(50), lacks "abs", {
      progress = function(job) told[#told + 1] = job.tries end }))
    assert.is_true(#told > 0 and told[#told] <= small.tries)
  end)

  it("refuses what it cannot work with", function()
    local small, diag = pl.reduce(large(5), lacks "LetBlock")
    assert.is_nil(small)
    assert.equal("the predicate does not fail for the module to reduce", diag.message)
    assert.error_matches(function() pl.reduce(1, "verify") end,
      "pl.reduce: a module expected, got number")
    assert.error_matches(function() pl.reduce(large(5), "verify", { time = 1 }) end,
      "pl.reduce: there is no option 'time'")
    assert.error_matches(function() pl.reduce(large(5), "well") end, "got 'well'")
    local ok, err = pcall(pl.reduce, large(5), function() error("broken", 0) end)
    assert.is_false(ok)
    assert.equal("predicate 'function' failed: broken", err.message)
  end)
end)
