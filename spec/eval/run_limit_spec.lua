-- Limits of runs: pl.eval, pl.check and all commands that run a model end when
-- limit.seconds, limit.memory, limit.steps or limit.depth says so.

local pl = require "perilune"
local archive = require "spec.onnx.archive"
local command = require "spec.cli.command"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end
local function run(arguments) return command.run(folder, arguments) end

local function read(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- Ends when its argument is negative: never.
local endless = read [[
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @again(%x) }
def @again(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = abs(%x);
  %1 = less(max(%0), 0f);
  if (%1) { %0 } else { @again(%0) }
}
]]

-- @f0 calls @f1 twice, and so on: 2^n times the last.
local function doubling(n)
  local lines = { "def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @f0(%x) }" }
  for i = 0, n - 1 do
    lines[#lines + 1] = ("def @f%d(%%x: Tensor[(2), float32]) -> Tensor[(2), float32] "
      .. "{ @f%d(@f%d(%%x)) }"):format(i, i + 1, i + 1)
  end
  lines[#lines + 1] = ("def @f%d(%%x: Tensor[(2), float32]) -> Tensor[(2), float32] { abs(%%x) }")
    :format(n)
  return read(table.concat(lines, "\n"))
end

local function loop()
  local i, c = pl.var("i", "int64"), pl.var("c", "bool")
  local v = pl.var("v", "Tensor[(2), float32]")
  local x = pl.var("x", "Tensor[(2), float32]")
  local body = pl.func({ i, c, v }, pl.tuple { c, -v })
  return pl.module { main = pl.func({ x }, pl.op.loop(pl.const(math.maxinteger), pl.const(true), x,
    body, { n_results = 1 }):get(0)) }
end

local function within(config, f, ...)
  local ok, err = pcall(pl.with, pl.context { config = config }, f, ...)
  assert.is_false(ok)
  assert.equal("limit", err.code)
  return err.message
end

describe("pl.eval", function()
  local x = { 1, 2 }

  it("ends at limit.seconds", function()
    for _, mod in ipairs { loop(), doubling(40) } do
      local started = os.clock()
      assert.equal("it took longer than limit.seconds = 0.05",
        within({ ["limit.seconds"] = 0.05 }, pl.eval, mod, x))
      assert.is_true(os.clock() - started < 2)
    end
  end)

  it("ends at limit.steps, after as many nodes each time", function()
    for _, mod in ipairs { loop(), doubling(40), endless } do
      assert.matches("it computes more nodes than limit.steps = 5000",
        within({ ["limit.steps"] = 5000 }, pl.eval, mod, x), 1, true)
    end
    assert.same({ 1, 2 }, pl.with(pl.context { config = { ["limit.steps"] = 5000 } }, pl.eval,
      doubling(8), x):to_table())
  end)

  it("refuses recursion at limit.depth, which has a default", function()
    local ok, err = pcall(pl.eval, endless, x)
    assert.is_false(ok)
    assert.equal("limit", err.code)
    assert.matches("calls are nested deeper than limit.depth = 100000", err.message, 1, true)
    assert.matches("deeper than limit.depth = 50",
      within({ ["limit.depth"] = 50 }, pl.eval, endless, x), 1, true)
  end)

  it("ends at limit.memory", function()
    local v = pl.var("v", "Tensor[(2), float32]")
    local big = pl.func({ v }, pl.op.tile(v, pl.const(pl.tensor { 4000000 })))
    assert.matches("it needs more memory than limit.memory", within(
      { ["limit.memory"] = pl.memory() + 1000000 }, pl.eval, big, x), 1, true)
    assert.equal(8000000, pl.eval(big, x).size)
  end)

  -- Calls that take long by themselves; spec/c/base/test_stop_latency.c stops
  -- those of all families. Sanitizers make the same work take several times as long.
  local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
  local longest = sanitized and 3 or 0.12
  for call, type in pairs {
    ["sort(%x, axis=0)"] = "Tensor[(4000000), float32]",
    ["cumsum(%x, axis=0)"] = "Tensor[(4000, 8000), float32]",
    ["transpose(%x, axes=[1, 0])"] = "Tensor[(8000, 8000), float32]",
    ["nn.matmul(%x, %x)"] = "Tensor[(1000, 1000), int32]",
    ["nn.max_pool2d(%x, pool_size=[7, 7])"] = "Tensor[(8, 64, 224, 224), float32]",
    ["det(%x)"] = "Tensor[(1500, 1500), float32]",
  } do
    it("ends at limit.seconds within " .. call, function()
      local mod = read(("def @main(%%x: %s) { %s }"):format(type, call))
      local dims, dtype = type:match "%((.-)%), (%w+)"
      local fill = read(("def @main() { cast(random_uniform(shape=[%s]), dtype=%q) }")
        :format(dims, dtype))
      local operand = pl.eval(fill)
      local started = os.clock() -- of the processor
      assert.equal("it took longer than limit.seconds = 0.02",
        within({ ["limit.seconds"] = 0.02 }, pl.eval, mod, operand))
      assert.is_true(os.clock() - started < longest)
    end)
  end

  it("leaves nothing behind: the next run has all its time", function()
    within({ ["limit.seconds"] = 0.02 }, pl.eval, loop(), x)
    assert.same({ 1, 2 }, pl.eval(doubling(3), x):to_table())
  end)
end)

describe("pl.check, the oracle, bisect and reduce", function()
  local function check(config, mod)
    return pl.with(pl.context { config = config }, pl.check, mod, mod)
  end

  it("say that a limit ended them, and never that all is well", function()
    for _, mod in ipairs { loop(), doubling(40) } do
      local started = os.clock()
      local ok, diag = check({ ["limit.seconds"] = 0.05 }, mod)
      assert.is_nil(ok)
      assert.equal("limit", diag.code)
      assert.is_true(os.clock() - started < 2) -- all rounds together
    end
    local ok, diag = check({}, endless)
    assert.is_nil(ok)
    assert.matches("limit.depth", diag.message)
  end)

  it("hold them for predicates too", function()
    local context = pl.context { opt_level = 3, config = { ["limit.steps"] = 1000 } }
    local ok, err = pcall(pl.bisect, "SimplifyExpr", loop(), "oracle", { context = context })
    assert.is_false(ok)
    assert.matches("predicate 'oracle' failed: .*limit.steps = 1000", err.message)
    ok, err = pcall(pl.reduce, loop(), "oracle", { context = context })
    assert.is_false(ok)
    assert.matches("limit.steps = 1000", err.message)
  end)
end)

describe("the commands", function()
  local endless_path = command.write(path "endless.relay", tostring(endless))
  local bomb = command.write(path "bomb.relay", tostring(doubling(40)))
  local models = { endless_path, bomb }
  local shared = archive.shared .. "/conformance/own-defects/limits-not-in-oracle/"
  for _, name in ipairs { "loop_forever.onnx", "fn_bomb.onnx" } do
    local file = io.open(shared .. name)
    if file then
      file:close()
      models[#models + 1] = shared .. name
    end
  end

  local change = command.write(path "change.lua", [[
    local pl = require "perilune"
    return pl.function_pass { name = "Change", run = function(fn)
      return pl.func(fn.params, pl.op.nn.relu(fn.body), fn.ret_type)
    end }]])

  it("end at their limits and write nothing", function()
    local set = "--set limit.seconds=0.1 --set limit.steps=2000"
    for _, model in ipairs(models) do
      local out = path("out" .. model:match "%.%a+$")
      local questions = {
        ("run %s --input random"):format(model),
        ("check %s %s"):format(model, model),
        ("opt %s -o %s -p SimplifyExpr --check"):format(model, out),
        ("opt %s -o %s -p %s --oracle"):format(model, out, change),
        ("bisect %s -p SimplifyExpr --oracle"):format(model),
        ("reduce %s -p SimplifyExpr --oracle -o %s"):format(model, out),
      }
      for _, question in ipairs(questions) do
        local status, shown, err = run(("%s %s"):format(question, set))
        assert.equal(1, status, question)
        assert.matches("limit%.", err, question)
        assert.is_nil(shown:find "equal")
        assert.is_nil(io.open(out))
      end
    end
  end)

  it("take config keys where no pipeline runs, and check them", function()
    assert.equal(2, (run(("run %s --input random --set limit.second=1"):format(bomb))))
    assert.equal(2, (run(("check %s %s --set limit.seconds=soon"):format(bomb, bomb))))
  end)
end)
