-- The instruments that come with the library.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

local function small()
  local x = pl.var("x", f32(2))
  local one = pl.const(pl.tensor.full(1, {}, "float32"))
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + one),
    other = pl.func({ x }, pl.op.abs(x)) }
end

-- Turns one operator into another, in every function.
local function turn(name, from, to)
  return pl.function_pass { name = name, run = pl.mutator { Call = function(call)
    if call.op.name == from then return pl.op[to](table.unpack(call.args)) end
  end } }
end

local function with(instrument, pipeline, mod)
  return pl.with(pl.context { instruments = { instrument } }, pipeline, mod or small())
end

local plus_to_minus = turn("Minus", "add", "subtract")
local idle = turn("Idle", "exp", "tanh")

describe("timing", function()
  local timing = pl.instruments.timing()
  with(timing, pl.sequential { name = "all", plus_to_minus, { idle, "SimplifyExpr" } })

  it("has a row a pass, in a tree", function()
    local shape = {}
    for i, row in ipairs(timing.rows) do shape[i] = row.depth .. row.name end
    assert.same({ "0all", "1Minus", "1sequential", "2Idle", "2SimplifyExpr" }, shape)
  end)

  it("tells the time of a pass from that of the passes in it", function()
    local all, inner = timing.rows[1], timing.rows[3]
    assert.is_true(all.own >= 0 and all.own < all.seconds)
    assert.is_true(math.abs(inner.seconds - inner.own - timing.rows[4].seconds
      - timing.rows[5].seconds) < 1e-9)
    assert.is_true(timing.rows[2].lua > 0 and timing.rows[2].lua <= timing.rows[2].seconds)
    assert.equal(0, timing.rows[5].lua)
    assert.is_true(timing.rows[2].allocations > 0)
  end)

  it("reads well", function()
    local text = tostring(timing)
    assert.matches("^all: [%d.]+ ms %[[%d.]+ ms%], 100.0 %%", text)
    assert.matches("\n  Minus: [%d.]+ ms %[[%d.]+ ms%], [%d.]+ %%, Lua [%d.]+ ms, %d+ allocations",
      text)
  end)

  it("is JSON, and a trace for Chrome", function()
    assert.matches('^%[{"name":"all","depth":0,"seconds":[%d.e-]+,"self":', timing:json())
    assert.matches('^{"traceEvents":%[{"name":"all","cat":"pass","ph":"X","ts":0,"dur":%d+,'
      .. '"pid":1,"tid":1,"args":', timing:trace())
    assert.matches('"displayTimeUnit":"ms"}$', timing:trace())
  end)

  it("goes on behind a pass that failed", function()
    local again = pl.instruments.timing()
    local failing = pl.module_pass { name = "Failing", run = function() error "no" end }
    with(again, pl.sequential { pl.try { failing }, plus_to_minus })
    local names = {}
    for i, row in ipairs(again.rows) do names[i] = row.depth .. row.name end
    assert.same({ "0sequential", "1try", "2Failing", "1Minus" }, names)
    assert.matches("Failing: failed", tostring(again))
  end)
end)

describe("diff", function()
  local function diff(pipeline, mod, options)
    local text = {}
    options = options or {}
    options.write = function(part) text[#text + 1] = part end
    with(pl.instruments.diff(options), pipeline, mod)
    return table.concat(text, "\n")
  end

  it("shows the lines that changed, of the functions that changed", function()
    assert.equal([[
-- Minus
@main
 fn (%x: Tensor[(2), float32] /* ty=Tensor[(2), float32] */) -> Tensor[(2), float32] {
   %0 = tanh(%x) /* ty=Tensor[(2), float32] */;
-  add(%0, 1f /* ty=float32 */) /* ty=Tensor[(2), float32] */
+  subtract(%0, 1f /* ty=float32 */) /* ty=Tensor[(2), float32] */
 } /* ty=fn (Tensor[(2), float32]) -> Tensor[(2), float32] */]],
      diff(pl.sequential { idle, { plus_to_minus } }))
  end)

  it("is not led astray by numbers of variables", function()
    local x = pl.var("x", f32(2))
    local y = pl.op.abs(pl.op.exp(x))
    for _ = 1, 6 do y = pl.op.tanh(y) + pl.op.exp(y) end
    local text = diff(turn("NoAbs", "abs", "copy"), pl.module { main = pl.func({ x }, y) })
    local changed = 0
    for line in text:gmatch "[^\n]+" do
      if line:find "^[-+] " then changed = changed + 1 end
    end
    assert.equal(2, changed)
  end)

  it("names functions that come and go", function()
    local text = diff(pl.module_pass { name = "Drop", run = function(mod)
      return mod:without "other"
    end })
    assert.matches("^%-%- Drop\n@other\n%-fn", text)
  end)

  it("says so when too much differs", function()
    assert.equal("-- Minus\n@main: more than 0 lines differ",
      diff(plus_to_minus, nil, { most = 0 }))
  end)

  it("has colours on demand", function()
    local text = diff(plus_to_minus, nil, { colour = true })
    assert.matches("\n\27%[31m%-  add", text)
    assert.matches("\n\27%[32m%+  subtract", text)
  end)

  it("finds the shortest edit of random texts", function()
    local seed = os.time()
    print(("# seed %d"):format(seed))
    math.randomseed(seed)
    local names = { "exp", "tanh", "abs", "sqrt" }
    for _ = 1, 40 do
      local x = pl.var("x", f32(2))
      local a, b = x, x
      for _ = 1, math.random(1, 12) do
        local name = names[math.random(#names)]
        if math.random() < 0.7 then a = pl.op[name](a) end
        if math.random() < 0.7 then b = pl.op[name](b) end
      end
      local after = pl.module { main = pl.func({ x }, b) }
      local text = diff(pl.module_pass { name = "Change", run = function() return after end },
        pl.module { main = pl.func({ x }, a) })
      local old, new = 0, 0
      for line in text:gmatch "[^\n]+" do
        if line:find "^%-  " then old = old + 1 elseif line:find "^%+  " then new = new + 1 end
      end
      local function calls(node)
        local n = 0
        while node.kind == "Call" do n, node = n + 1, node.args[1] end
        return math.max(n, 1) -- the result has a line of its own
      end
      assert.equal(calls(b) - calls(a), new - old)
    end
  end)
end)

describe("dump", function()
  it("writes a file for each change, numbered", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute(("mkdir '%s'"):format(folder)))
    local dump = pl.instruments.dump(folder)
    local odd = turn("A b", "tanh", "exp")
    local after = with(dump, pl.sequential { idle, plus_to_minus, { idle, odd } })
    assert.same({ "000_input.relay", "001_Minus.relay", "002_A_b.relay" }, dump.files)
    local file = assert(io.open(folder .. "/002_A_b.relay"))
    assert.equal(tostring(after) .. "\n", file:read "a")
    file:close()
    os.execute(("rm -r '%s'"):format(folder))
  end)

  it("fails no pass when it cannot write", function()
    warn "@off"
    local dump = pl.instruments.dump "/nowhere/at/all"
    assert.is_truthy(with(dump, plus_to_minus))
    assert.same({}, dump.files)
    warn "@on"
  end)
end)

describe("the oracle", function()
  it("names the pass that changes what is computed", function()
    local oracle = pl.instruments.oracle()
    local ok, err = pcall(with, oracle, pl.sequential { "SimplifyExpr", { idle, plus_to_minus } })
    assert.is_false(ok)
    assert.matches("pass 'Minus' changes what is computed: round 1", tostring(err), 1, true)
  end)

  it("lets pass what computes the same, and counts", function()
    local x = pl.var("x", f32(2))
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(x) * 1 + 0) }
    local oracle = pl.instruments.oracle { rounds = 2 }
    with(oracle, pl.sequential { "SimplifyExpr", "DeadCodeElimination" }, mod)
    assert.equal(1, oracle.compared)
    assert.same({}, oracle.skipped)
  end)

  it("fails where it cannot evaluate, and passes over it when asked to", function()
    local mod = small()
    local oracle = pl.instruments.oracle()
    local ok, err = pcall(with, oracle, plus_to_minus,
      mod:without "main":with { side = mod.functions.main })
    assert.is_false(ok)
    assert.matches("pass 'Minus' cannot be checked by the oracle: no @main", tostring(err), 1, true)
    oracle = pl.instruments.oracle { skip = true }
    with(oracle, plus_to_minus, mod:without "main":with { side = mod.functions.main })
    assert.equal(0, oracle.compared)
    assert.same({ { name = "Minus", reason = "no @main" } }, oracle.skipped)
  end)
end)

describe("the other instruments", function()
  it("list what changed", function()
    local changes = pl.instruments.changes()
    with(changes, pl.sequential { idle, plus_to_minus })
    assert.same({ { name = "Minus", functions = { "main" } },
      { name = "sequential", functions = { "main" } } }, changes.rows)
  end)

  it("sum up over runs", function()
    local statistics = pl.instruments.statistics()
    local context = pl.context { instruments = { statistics } }
    local pipeline = pl.sequential { idle, plus_to_minus }
    pl.with(context, function()
      pipeline(pipeline(small()))
    end)
    assert.equal(2, #statistics.passes)
    assert.equal("Minus", statistics.passes[2].name)
    assert.equal(2, statistics.passes[2].runs)
    assert.equal(1, statistics.passes[2].changed)
    assert.matches("^Idle: 2 runs, 0 changed, [%d.]+ ms\nMinus: 2 runs, 1 changed",
      tostring(statistics))
  end)

  it("tell of memory and nodes", function()
    local memory, nodes = pl.instruments.memory(), pl.instruments.nodes()
    with(memory, plus_to_minus)
    with(nodes, pl.sequential { plus_to_minus })
    assert.equal("Minus", memory.rows[1].name)
    assert.is_true(memory.rows[1].peak >= memory.rows[1].after)
    assert.equal(nodes.rows[1].before, nodes.rows[2].after)
  end)

  it("verify what is there", function()
    assert.is_truthy(with(pl.instruments.verify(), plus_to_minus))
  end)
end)
