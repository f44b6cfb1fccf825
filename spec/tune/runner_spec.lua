-- Builders and runners: candidates that run, and candidates that crash, hang, fork, use up memory
-- or print what cannot be read.

local pl = require "perilune"

local function square(n, more)
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(n, n))
  local body = x
  for _ = 1, more do body = pl.op.nn.dense(body, x) end
  return pl.module { main = pl.func({ x }, pl.op.tanh(body)) }
end

-- One that a file of ONNX can have.
local function tanh_program()
  local x = pl.var("x", "Tensor[(8), float32]")
  return pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
end

local tune_functions = pl.tune.functions

local evaluator = pl.tune.builder "evaluator"

local function command(text, options)
  options = options or {}
  options.kind, options.command, options.suffix = "command", text, ".relay"
  return assert(pl.tune.builder(options):build(square(2, 1)))
end

local function failure(kind, pattern, result, why)
  assert.is_nil(result)
  assert.equal(kind, why.kind)
  assert(why.message:find(pattern), why.message)
end

-- No process of that word in its command line is left.
local function is_gone(word)
  for _ = 1, 50 do
    local pipe = assert(io.popen(("env -u LD_PRELOAD ps -eo args | grep -c '[%s]%s'"):format(
      word:sub(1, 1), word:sub(2))))
    local n = pipe:read "n"
    pipe:close()
    if n == 0 then return true end
    os.execute "sleep 0.1"
  end
  return false
end

describe("a runner", function()
  it("leaves a program and itself undecided", function()
    local a, wrong = assert(evaluator:build(square(32, 2))), 0
    for seed = 1, 5 do
      local result = assert(pl.tune.runner { seconds = 10, seed = seed }:compare(a, a))
      if result.verdict ~= "undecided" then wrong = wrong + 1 end
    end
    assert.is_true(wrong <= 1, ("%d of 5"):format(wrong))
  end)

  it("finds that more work takes longer", function()
    local less = assert(evaluator:build(square(64, 2)))
    local more = assert(evaluator:build(square(64, 6)))
    local runner = pl.tune.runner { seconds = 20 }
    assert.equal("faster", assert(runner:compare(less, more)).verdict)
    local result = assert(runner:compare(more, less))
    assert.equal("slower", result.verdict)
    assert.is_true(result.ratio > 1.3)
    local alone = assert(pl.tune.runner { pairs = 5 }:run(less))
    assert.equal(5, alone.n)
    assert.is_true(alone.min > 0 and alone.min <= alone.median)
  end)

  it("tells results that are wrong", function()
    local mod, runner = square(4, 1), pl.tune.runner()
    assert.is_true(runner:check(mod, assert(evaluator:build(pl.passes.SimplifyExpr()(mod)))))
    local x = pl.var("x", "Tensor[(4, 4), float32]")
    local other = pl.module { main = pl.func({ x }, pl.op.tanh(x)) }
    failure("wrong result", "differs", runner:check(mod, assert(evaluator:build(other))))
  end)

  it("runs generated C", function()
    local source = [[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i] %s A[i]
]]
    local function program(operator) return assert(pl.tir.parse(source:format(operator))) end
    local c, runner = pl.tune.builder { kind = "c" }, pl.tune.runner { pairs = 20 }
    local built = assert(c:build(program "+"))
    assert.equal(20, assert(runner:run(built)).n)
    assert.is_true(runner:check(program "+", built))
    failure("wrong result", "buffer 2", runner:check(program "*", built))
    assert.equal("undecided", pl.tune.runner { pairs = 10 }:compare(built, built).verdict)
  end)

  it("compares a program of many steps with its C as it is written", function()
    local function program(last)
      local a = pl.te.placeholder({ 1024, 1024 }, "float32", "A")
      local k = pl.te.reduce_axis({ 0, 1024 }, "k")
      local b = pl.te.compute({ 1024, 1024 }, function(i, j)
        return pl.te.sum(a[{ i, k.var }] * a[{ last(j), k.var }], k)
      end, "B")
      return pl.module { main = pl.te.create_prim_func { a, b } }
    end
    local runner = pl.tune.runner { rounds = 1, seconds = 25 }
    local built = assert(pl.tune.builder "c":build(program(function(j) return j end)))
    assert.is_true(runner:check(program(function(j) return j end), built))
    failure("wrong result", "buffer 2", runner:check(program(function(j) return 1023 - j end),
      built))
  end)

  it("runs whole models as generated C, and compares them with the evaluator", function()
    local x = pl.var("x", "Tensor[(8, 8), float32]")
    local w = pl.const(pl.tensor.random({ 8, 8 }, "float32"))
    local function model(last)
      local y = pl.op.nn.dense(x, w)
      return pl.module { main = pl.func({ x }, pl.tuple { last(y), y }) }
    end
    local c, runner = pl.tune.builder "c", pl.tune.runner { pairs = 10 }
    local mod = model(pl.op.tanh)
    local built = assert(c:build(mod))
    assert.equal(10, assert(runner:run(built)).n)
    assert.is_true(runner:check(mod, built))
    failure("wrong result", "output 1", runner:check(model(pl.op.exp), built))
    local more = assert(c:build(square(128, 3)))
    local result = assert(pl.tune.runner():compare(more, assert(c:build(square(128, 1)))))
    assert.equal("slower", result.verdict)
    local open = pl.var("x", "Tensor[(?, 8), float32]")
    failure("build", "no argument can be made", c:build(pl.module { main = pl.func({ open },
      pl.op.tanh(open)) }))
  end)

  it("runs commands, by their own time or the wall's", function()
    local runner = pl.tune.runner { pairs = 3, seconds = 20 }
    assert.equal(0.125, assert(runner:run(command("cat {} >&2; echo run; echo 0.125",
      { timing = "output" }))).min)
    assert.is_true(assert(runner:run(command "sleep 0.02; test -s {}")).min >= 0.02)
    local slow, fast = command("echo 0.5", { timing = "output" }), command("echo 0.25",
      { timing = "output" })
    assert.equal("slower", assert(runner:compare(slow, fast)).verdict)
    assert.equal(3, assert(runner:run(command({ "test", "-s", "{}" }))).n)
  end)

  it("tells what cannot be measured, and goes on", function()
    local runner = pl.tune.runner { seconds = 0.5, pairs = 3 }
    failure("timeout", "0.5 seconds", runner:run(command "sleep 1000.25"))
    assert.is_true(is_gone "sleep 1000.25")
    failure("timeout", "0.5 seconds", runner:run(command
      "sleep 1000.75 & sleep 1000.75 & sleep 1000.75"))
    assert.is_true(is_gone "sleep 1000.75")
    -- What left its session, with and without an end of the command itself.
    failure("timeout", "0.5 seconds", runner:run(command
      "setsid sh -c '(sleep 1001.25 &) ; sleep 1001.25'"))
    assert.is_true(is_gone "sleep 1001.25")
    local patient = pl.tune.runner { seconds = 20, pairs = 3 }
    assert.equal(3, assert(patient:run(command "(setsid sleep 1001.5 &) >/dev/null")).n)
    assert.is_true(is_gone "sleep 1001.5")
    failure("output", "wrote more than", runner:run(command "yes"))
    failure("output", 'no number of seconds: "hello"', runner:run(command("echo hello",
      { timing = "output" })))
    failure("output", "there is none", runner:run(command("true", { timing = "output" })))
    failure("crash", "signal 11", runner:run(command "kill -SEGV $$"))
    failure("status", "status is 3", runner:run(command "exit 3"))
    failure("status", "no such program", runner:run(command { "/nonexistent/program" }))
    local _, why, blameless = runner:compare(command "true", command "exit 3")
    assert.equal("status", why.kind)
    assert.is_true(blameless)
  end)

  it("tells an evaluation that hangs or needs too much memory", function()
    local long = assert(evaluator:build(square(1500, 40)))
    failure("timeout", "stopped", pl.tune.runner { seconds = 0.3 }:run(long))
    -- Of 512 MiB, where 64 may be added.
    local big = pl.var("x", "Tensor[(1), float32]")
    local mod = pl.module { main = pl.func({ big },
      pl.op.tanh(pl.op.broadcast_to(big, { shape = { 1 << 27 } }))) }
    local result, why = pl.tune.runner { memory = 64 << 20 }:run(assert(evaluator:build(mod)))
    if (os.getenv "PERILUNE_SANITIZE" or "") ~= "" then
      assert.is_nil(result) -- the sanitizer's allocator ends the process
    else
      failure("error", "memory", result, why)
    end
  end)

  it("says what arguments it takes", function()
    assert.error_matches(function() pl.tune.runner { second = 1 } end, "no option 'second'")
    assert.error_matches(function() pl.tune.runner { pairs = 0 } end, "pairs")
    assert.error_matches(function() pl.tune.runner():run(1) end, "builder made")
    assert.error_matches(function() pl.tune.builder "gpu" end, "kind")
    assert.error_matches(function() pl.tune.builder { kind = "command" } end, "command")
    assert.error_matches(function() pl.tune.builder():build(1) end, "module expected")
    local x = pl.var("x", "Tensor[(?), float32]")
    failure("error", "no argument can be made", pl.tune.runner():run(assert(evaluator:build(
      pl.module { main = pl.func({ x }, pl.op.tanh(x)) }))))
  end)
end)

describe("metrics", function()
  it("let tuning passes measure in child processes", function()
    tune_functions.runner_spec_hang = function(mod)
      return mod:with { main = square(1500, 40).functions.main }
    end
    local pass = pl.tune.tuning_pass { name = "Tuned", knobs = { pl.tune.knob("k", {
      pl.tune.choice { transform = "runner_spec_hang" }, pl.tune.choice {} }) },
      measure = pl.tune.measure.run { runner = pl.tune.runner { seconds = 0.5, pairs = 3 } } }
    local mod = square(8, 1)
    assert.equal(mod, pass(mod))
    assert.is_true(pl.tune.measure.run()(mod) > 0)
    assert.error_matches(function() pl.tune.measure.run { builder = {} } end, "make is expected")
    assert.error_matches(function()
      local x = pl.var("x", "Tensor[(?, 8), float32]")
      pl.tune.measure.run { builder = pl.tune.builder "c" }(pl.module { main = pl.func({ x }, x) })
    end, "no argument can be made")
  end)

  it("count bytes of constants and of memory", function()
    local x = pl.var("x", "Tensor[(256, 256), float32]")
    local w = pl.const(pl.tensor { 1, 2, 3, 4 })
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.tanh(x))), other = pl.func({},
      pl.op.tanh(w)) }
    assert.equal(w.data.bytes, pl.tune.measure.bytes(mod))
    local peak = pl.tune.measure.peak_memory()(mod)
    assert.is_true(peak >= 2 * 256 * 256 * 4 and peak < 4 * 256 * 256 * 4, tostring(peak))
  end)

  it("count the memory of a command's process, not of the evaluator", function()
    -- 100 MiB, of which each page is written.
    local text = [[lua5.4 -e 'local s = string.rep("x", 100 << 20)' && true {}]]
    local builder = pl.tune.builder { kind = "command", command = text }
    local peak = pl.tune.measure.peak_memory { builder = builder }(tanh_program())
    assert.is_true(peak > 100 << 20 and peak < 400 << 20, tostring(peak))
    local failing = pl.tune.builder { kind = "command", command = "exit 3 # {}" }
    local ok, why = pcall(pl.tune.search, { mod = tanh_program(), builder = failing,
      metrics = { "peak_memory" } })
    assert.is_false(ok)
    assert.equal("the base cannot be measured: status: its status is 3",
      tostring(why):match "the base[^\n]*")
  end)

  it("count the memory that generated C fills", function()
    local x = pl.var("x", "Tensor[(1024, 1024), float32]")
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.transpose(x,
      { axes = { 1, 0 } }))) }
    local peak = pl.tune.measure.peak_memory { builder = pl.tune.builder "c" }(mod)
    assert.is_true(peak >= 4 << 20 and peak < 64 << 20, tostring(peak))
  end)
end)
