-- The space of kernels: what is decided for fused functions of generated C, how it is searched,
-- kept in an ONNX file and taken by pl.build.

local command = require "spec.cli.command"
local decision = require "perilune.topi.decision"
local pl = require "perilune"

local folder

setup(function() folder = command.folder() end)
teardown(function() os.execute("rm -rf " .. folder) end)

-- Convolutions, one of which Winograd's transforms suit, and a product of matrices.
local function program()
  local x = pl.var("x", "Tensor[(1, 32, 16, 16), float32]")
  local function weights(shape, seed)
    return pl.const(pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 }))
  end
  local y = x
  for i = 1, 2 do -- the second one reads blocks of channels
    y = pl.op.nn.relu(pl.op.nn.conv(y, weights({ 32, 32, 3, 3 }, i), { pads = { 1, 1, 1, 1 } }))
  end
  local rows = pl.op.reshape(y, { newshape = { 32, 256 } })
  local z = pl.op.nn.matmul(rows, weights({ 256, 64 }, 3))
  return pl.module { main = pl.func({ x }, z) }
end

local function kernels_of(mod)
  local fused, list = require "perilune.codegen.model".fused(mod), {}
  require "perilune.topi.lower_te"(fused, { layout = "NCHWc", winograd = "on", only = true,
    on_kernel = function(kernel) list[#list + 1] = kernel end })
  return list
end

local function decision_of(kernels, name)
  for _, kernel in ipairs(kernels) do
    for _, row in ipairs(kernel.decisions) do
      if row.name == name then return kernel, row end
    end
  end
end

local function search(mod, more)
  local options = { mod = mod, space = "kernels", strategy = "separate", trials = 24,
    base = "FoldConstant", builder = pl.tune.builder "c",
    runner = pl.tune.runner { pairs = 10, rounds = 1 } }
  for name, value in pairs(more or {}) do options[name] = value end
  return pl.tune.search(options)
end

local function fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(err))
end

describe("decisions for kernels", function()
  it("are the first candidate of each where nothing is said", function()
    local kernels = kernels_of(program())
    local _, winograd = decision_of(kernels, "winograd")
    assert.same({ "4", "4x2", "2x4", "2", "off" }, winograd.candidates)
    assert.equal("4", winograd.chosen)
    assert(decision_of(kernels, "panel"))
    assert(decision_of(kernels, "tile"))
  end)

  it("are read and written as text", function()
    local text = "fused_a_1: tile=7x2 winograd=off; fused_b_2: panel=64"
    local schedules = decision.parse(text)
    assert.same({ fused_a_1 = { tile = "7x2", winograd = "off" }, fused_b_2 = { panel = "64" } },
      schedules)
    assert.equal(text, decision.text(schedules))
    assert.same(schedules, decision.parse(text:gsub("; ", "\n")))
    assert.equal("", decision.text {})
  end)

  it("that are no text of that kind are refused", function()
    fails("function 1: 'KEY: NAME=VALUE ...' expected, got 'tile=7'", decision.parse, "tile=7")
    fails("function 2: NAME=VALUE expected, got 'b'", decision.parse, "k: a=1; l: b")
    fails("KEY", pl.build, program(), { schedules = "?" })
    fails("schedules", pl.build, program(), { schedules = 1 })
  end)

  it("keep what a model computes", function()
    local mod = program()
    local x = pl.tensor.random({ 1, 32, 16, 16 }, "float32", { seed = 3, low = -1, high = 1 })
    local want = pl.eval(mod, x)
    for _, kernel in ipairs(kernels_of(mod)) do
      for _, row in ipairs(kernel.decisions) do
        local last = row.candidates[#row.candidates]
        local text = ("%s: %s=%s"):format(kernel.key, row.name, last)
        local built = pl.build(mod, { schedules = text })
        local got = built.main(x)[1]
        local how = require "perilune.check.tensor_difference"(got, want, { rtol = 1e-3,
          atol = 1e-3, scaled = true })
        assert.is_nil(how)
      end
    end
  end)

  it("say which compiler makes the C of one function, and its level", function()
    local mod = program()
    local kernel, row = decision_of(kernels_of(mod), "compiler")
    assert.same({ "default", "O2" }, { row.candidates[1], row.candidates[2] })
    local plain, text = pl.build(mod), kernel.key .. ": compiler="
    local other = pl.build(mod, { schedules = text .. "O2" })
    assert.is_true(plain:source() == other:source())
    local x = pl.tensor.random({ 1, 32, 16, 16 }, "float32", { seed = 3 })
    assert.is_nil(require "perilune.check.tensor_difference"(other.main(x)[1], plain.main(x)[1],
      { rtol = 1e-4, atol = 1e-4, scaled = true }))
    -- What no machine has is the default: a file names no commands.
    assert(pl.build(mod, { schedules = text .. "no_such_compiler" }).main(x))
  end)

  it("that are no candidates, or for other functions, change nothing", function()
    local mod = program()
    local kernel = decision_of(kernels_of(mod), "winograd")
    local function source(text) return pl.build(mod, { schedules = text }):source() end
    local plain = pl.build(mod):source()
    assert.is_true(plain == source(kernel.key .. ": winograd=7 other=1"))
    assert.is_true(plain == source "fused_x_0: winograd=off")
    assert.is_true(plain ~= source(kernel.key .. ": winograd=off"))
  end)

  it("are an attribute of the module, which an ONNX file keeps", function()
    local mod = program()
    local kernel = decision_of(kernels_of(mod), "winograd")
    local text = kernel.key .. ": winograd=off"
    local noted = pl.passes.AnnotateSchedules { decisions = text }(mod)
    assert.equal(text, noted.attrs.schedules)
    assert.equal(noted, pl.passes.AnnotateSchedules { decisions = text }(noted))
    assert(pl.save(noted, folder .. "/noted.onnx"))
    local again = pl.load(folder .. "/noted.onnx")
    assert.equal(text, again.attrs.schedules)
    assert.equal(8, again.attrs.ir_version)
    -- Saved again, with other schedules, and with none.
    local other = pl.passes.AnnotateSchedules { decisions = kernel.key .. ": winograd=2" }(again)
    assert(pl.save(other, folder .. "/other.onnx"))
    assert.equal(kernel.key .. ": winograd=2", pl.load(folder .. "/other.onnx").attrs.schedules)
    assert(pl.save(again, folder .. "/same.onnx"))
    assert.equal(command.read(folder .. "/noted.onnx"), command.read(folder .. "/same.onnx"))
    assert(pl.save(decision.annotate(again, ""), folder .. "/none.onnx"))
    assert.is_nil(pl.load(folder .. "/none.onnx").attrs.schedules)
  end)
end)

describe("the search of kernels", function()
  it("tries each decision, and replays from its records", function()
    local db <close> = pl.tune.database { path = folder .. "/kernels.db" }
    local first = search(program(), { database = db })
    assert.equal(0, first.failed)
    local parts = 0
    for _, trial in ipairs(first.list) do parts = parts + (trial.part and 1 or 0) end
    -- What a kernel takes alone says which come first: a few blocks are enough.
    assert.equal(8, first.list[1].seconds.n)
    assert(parts >= 10)
    local again = search(program(), { database = db, replay = true })
    assert.equal(0, again.measured)
    assert.equal(first.text, again.text)
    assert.equal(first.ratio, again.ratio)
    assert.equal(tostring(first.mod), tostring(again.mod))
    assert.equal(first.mod.attrs.schedules, again.mod.attrs.schedules)
  end)

  it("begins with the kernels that lose the most", function()
    local loss = require "perilune.tune.search.kernel_loss"
    local rows = { { seconds = 4, calls = 2, operations = 400 },
      { seconds = 3, calls = 1, operations = 100 },
      { seconds = 1, calls = 3, operations = 10, free = true },
      { seconds = 0, calls = 1, operations = 10 } }
    loss.set(rows)
    assert.same({ 0.0, 2.0, 3, 0 }, { rows[1].loss, rows[2].loss, rows[3].loss, rows[4].loss })
    local kernels = kernels_of(program())
    for _, kernel in ipairs(kernels) do
      local n = loss.operations(pl.module { [kernel.name] = kernel.fn })
      local is_product = kernel.name:find("matmul", 1, true) ~= nil
      if is_product then assert.is_true(math.abs(n / (2 * 32 * 256 * 64) - 1) < 0.1, n) end
      assert.equal(decision_of({ kernel }, "winograd") ~= nil, loss.is_free(kernel.decisions))
    end
  end)

  it("ends with the budget", function()
    local result = search(program(), { trials = 3 })
    assert(result.trials <= 4)
  end)

  it("mutates, mixes and enumerates points for the other strategies", function()
    for _, strategy in ipairs { "random", "evolutionary", "exhaustive", "bandit" } do
      local result = search(program(), { strategy = strategy, trials = 2 })
      assert.equal(0, result.failed)
    end
  end)

  it("works behind the space of pipelines", function()
    local result = search(program(), { space = "pipeline+kernels", trials = 8 })
    assert.equal(0, result.failed)
  end)

  it("decides how a kernel without tiles is compiled", function()
    local x = pl.var("x", "Tensor[(4), float32]")
    local result = search(pl.module { main = pl.func({ x }, x + 1) }, { trials = 2 })
    assert.equal(0, result.failed)
    assert.matches("compiler=O2", result.list[2].text)
  end)

  it("refuses other builders and spaces", function()
    fails("kernels are those of generated C; the builder is 'evaluator'", search, program(),
      { builder = pl.tune.builder() })
    fails("strategy 'separate' needs a space whose last part is kernels, not pipeline", search,
      program(), { space = "pipeline" })
  end)
end)

describe("Ctrl-C in the search of kernels", function()
  it("measures together what was found so far", function()
    assert(pl.save(program(), folder .. "/in.relay"))
    command.write(folder .. "/interrupted.lua", ([[
local pl = require "perilune"
local host = require "perilune.cli.host"
host.catch_interrupt()
host.grace_period(60)
local tools = getmetatable(pl.tune.runner()).__index
function tools.compare()
  return { verdict = "faster", ratio = 0.9, confidence = 1, candidate = { min = 0.9 },
    incumbent = { min = 1 } }
end
local db <close> = pl.tune.database { path = "%s/interrupted.db" }
local n = 0
local function search(replay)
  return pl.tune.search { mod = pl.load "%s/in.relay", space = "kernels", strategy = "separate",
    base = "FoldConstant", builder = pl.tune.builder "c", database = db, replay = replay,
    seconds = 300, on_trial = function(_, trial)
      n = n + (trial.part and 1 or 0)
      if trial.part and n == 5 then
        os.execute "(sleep 0.1; kill -INT $PPID) &" -- system() itself ignores the signal
        io.popen "sleep 0.2":close()
      end
    end }
end
for _, replay in ipairs { false, true } do
  local result = search(replay)
  local list = result.list
  print(result.state, result.verdict, list[#list].part, list[#list].text == result.text,
    #result.mod.attrs.schedules > 0)
end
]]):format(folder, folder))
    local status, out, err = command.run(folder, folder .. "/interrupted.lua")
    assert.equal(0, status, err)
    local expected = "interrupted\tfaster\tnil\ttrue\ttrue\n"
    assert.equal(expected .. expected:gsub("interrupted", "exhausted"), out)
  end)
end)

describe("perilune tune --measure c", function()
  local function run(arguments) return command.run(folder, arguments) end

  it("writes a model that perilune build makes the same C of, byte for byte in a replay", function()
    local mod = program()
    assert(pl.save(mod, folder .. "/in.onnx"))
    local arguments = ("tune %s/in.onnx --measure c --trials 24 --seconds 100 --db %s/cli.db ")
      :format(folder, folder)
    local status, out, err = run(("%s -o %s/a.onnx"):format(arguments, folder))
    assert.equal(0, status, err)
    assert.matches("%d+ trials %(%d+ measured, 0 from records, 0 failed%)", out)
    assert.equal(0, (run(("%s -o %s/b.onnx --replay"):format(arguments, folder))))
    assert.equal(command.read(folder .. "/a.onnx"), command.read(folder .. "/b.onnx"))
    assert.equal(0, (run(("%s -o %s/b.c --replay"):format(arguments, folder))))
    local again = pl.build(pl.pipelines.default(pl.load(folder .. "/a.onnx"))):source()
    assert.is_true(again == command.read(folder .. "/b.c"))
  end)

  it("refuses files that do not have the schedules", function()
    local status, _, err = run(("tune %s/in.onnx --measure c -o %s/a.relay"):format(folder, folder))
    assert.equal(2, status)
    assert.matches("text does not have what is decided for kernels", err)
    status, _, err = run(("tune %s/in.onnx -o %s/a.so"):format(folder, folder))
    assert.equal(2, status)
    assert.matches("C is written with %-%-measure c", err)
    status, _, err = run(("tune %s/in.onnx --space kernels --measure evaluator"):format(folder))
    assert.equal(1, status)
    assert.matches("kernels are those of generated C", err)
  end)
end)
