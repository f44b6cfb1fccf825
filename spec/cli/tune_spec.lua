-- perilune tune and perilune db.

local command = require "spec.cli.command"
local foldable = require "spec.tune.foldable"
local pl = require "perilune"

describe("perilune tune", function()
  local folder, model

  setup(function()
    folder = command.folder()
    model = folder .. "/in.relay"
    assert(pl.save(foldable(), model))
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function run(arguments) return command.run(folder, arguments) end

  local function ok(arguments)
    local status, out, err = run(arguments)
    assert.equal(0, status, out .. err)
    return out
  end

  local function fails(status, arguments, pattern)
    local got, _, err = run(arguments)
    assert.equal(status, got, err)
    assert(err:find(pattern, 1, true), err)
  end

  it("writes a faster model, replays the search and applies what is recorded", function()
    local base = "-p DeadCodeElimination --pool 'FoldConstant{fold=\"all\"},SimplifyExpr'"
    local db = folder .. "/tune.db"
    local out = ok(("tune %s -o %s/a.relay %s --search exhaustive --trials 8 --seconds 60 --db %s")
      :format(model, folder, base, db))
    assert(out:find "confidence %d+%.%d+ %%", out)
    assert(out:find "pipeline: .*FoldConstant", out)
    local tuned = command.read(folder .. "/a.relay")
    assert.equal(1, pl.tune.measure.nodes(assert(pl.parse(tuned))))

    out = ok(("tune %s -o %s/b.relay %s --search exhaustive --trials 8 --db %s --replay"):format(
      model, folder, base, db))
    assert(out:find "0 measured", out)
    assert.equal(tuned, command.read(folder .. "/b.relay"))

    ok(("tune %s -o %s/c.relay --apply-best %s"):format(model, folder, db))
    assert.equal(tuned, command.read(folder .. "/c.relay"))

    assert(ok("db list " .. db):find "time: evaluator on [^\n]+ cores?: %d+ records")
    fails(1, ("tune %s -o %s/d.relay --apply-best %s --target elsewhere"):format(model, folder, db),
      "and the target 'elsewhere'; it has records for 'time: evaluator on ")
    ok(("tune %s %s --search exhaustive --trials 2 --db %s --target elsewhere --metric nodes")
      :format(model, base, db))
    assert(ok("db list " .. db):find "elsewhere: %d+ record")
    assert(ok("db best " .. db):find "FoldConstant")
    ok(("db export %s %s/lines"):format(db, folder))
    local n = ok(("db import %s/other.db %s/lines"):format(folder, folder)):match "(%d+) new"
    assert.is_true(tonumber(n) >= 8)
    assert(ok(("db merge %s/other.db %s"):format(folder, db)):find ": 0 new records")
    assert.equal(1, (command.run(folder, ("db merge %s/new.db %s/none.db"):format(folder, folder))))
    assert.is_nil(io.open(folder .. "/new.db"))
    assert(ok(("db prune %s/other.db --keep 1"):format(folder)):find "records deleted")
    fails(1, ("db prune %s/none.db"):format(folder), "unable to open database file")
    assert.is_nil(io.open(folder .. "/none.db"))
    fails(1, ("db export %s/none.db %s/empty"):format(folder, folder), "unable to open")
    assert.is_nil(io.open(folder .. "/empty"))
    command.write(folder .. "/damaged.db", ("no database "):rep(400))
    fails(1, ("db export %s/damaged.db %s/empty"):format(folder, folder), "not a database")
    assert.is_nil(io.open(folder .. "/empty"))
  end)

  it("writes to standard output, and says what it did elsewhere", function()
    local here = assert(io.popen "pwd"):read "l"
    local db, onnx = folder .. "/stream.db", folder .. "/stream.onnx"
    local x = pl.var("x", "Tensor[(4), float32]")
    assert(pl.save(pl.module { main = pl.func({ x }, pl.op.nn.relu(pl.op.nn.relu(x))) }, onnx))
    local base = " -p DeadCodeElimination --pool SimplifyExpr"
    for _, arguments in ipairs { "--trials 8 --search exhaustive --metric nodes --db " .. db
      .. base, "--metric nodes --apply-best " .. db, "--placement evaluator" } do
      local status, out, err = run(("tune %s -o - %s"):format(onnx, arguments))
      assert.equal(0, status, err)
      assert.equal("perilune.Module", getmetatable(assert(pl.onnx.parse(out))), arguments)
      assert.is_true(#err > 0)
      assert.is_nil(io.open(here .. "/-"))
    end
  end)

  it("takes other metrics and commands", function()
    local out = ok(("tune %s -p DeadCodeElimination --metric nodes --metric bytes:0.1 --trials 20")
      :format(model))
    assert(out:find "cost 0%.", out)
    assert(out:find "not dominated: bytes", out)
    out = ok(("tune %s -o %s/d.relay --trials 4 --seconds 20 --measure 'command wc -c <{}'"):format(
      model, folder))
    assert(out:find "trials", out)
    out = ok(("tune %s --trials 3 -q"):format(model))
    assert.equal("", out)
  end)

  it("measures whole models as generated C", function()
    local out = ok(("tune %s -o %s/c.relay -p DeadCodeElimination --measure c --trials 3 "
      .. "--pool 'FoldConstant{fold=\"all\"}' --search exhaustive"):format(model, folder))
    assert(out:find "%(%d measured, 0 from records, 0 failed%)", out)
  end)

  it("tunes schedules of a program, and applies what is recorded", function()
    local a = pl.te.placeholder({ 64, 64 }, "float32", "A")
    local k = pl.te.reduce_axis({ 0, 64 }, "k")
    local b = pl.te.compute({ 64, 64 }, function(i, j)
      return pl.te.sum(a[{ i, k.var }] * a[{ k.var, j }], k)
    end, "B")
    local program = folder .. "/product.tir"
    assert(pl.save(pl.module { main = pl.te.create_prim_func { a, b } }, program))
    local db = folder .. "/schedule.db"
    local out = ok(("tune %s --space schedule -o %s/tuned.tir --trials 5 "
      .. "--cost-model trees --db %s"):format(program,
      folder, db))
    assert(out:find("of the program as it is", 1, true), out)
    assert(out:find("sch.sample_perfect_tile", 1, true), out)
    out = ok(("tune %s --space schedule --trials 16 --seconds 300 --cost-model ridge "
      .. "--search random --metric nodes"):format(program))
    assert(out:find "rank correlation %-?%d%.%d+, %d of the %d best among the %d that", out)
    local tuned = command.read(folder .. "/tuned.tir")
    assert(tuned:find("T.vectorized", 1, true) or tuned:find("T.unroll", 1, true), tuned)
    ok(("tune %s --space schedule -o %s/again.tir --apply-best %s"):format(program, folder, db))
    assert.equal(tuned, command.read(folder .. "/again.tir"))
    fails(2, ("tune %s --space schedule -p Simplify"):format(program), "leave -p out")
    ok(("tune %s --space schedule --search bandit --trials 4 --metric nodes"):format(program))
    fails(1, ("tune %s --space schedule"):format(model), "a program of PrimFuncs expected")
  end)

  it("tunes layouts, and what is combined, of a program of Relay", function()
    local network = command.write(folder .. "/network.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 28, 28, 32), float32], %w: Tensor[(1, 1, 32, 64), float32]) {
  nn.conv2d(%x, %w, channels=64, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
}
]])
    local db = folder .. "/layout.db"
    local out = ok(("tune %s --space layout -p DeadCodeElimination -o %s/l.relay --trials 4 "
      .. "--db %s"):format(network, folder, db))
    assert(out:find "%(%d measured, 0 from records, 0 failed%)", out)
    local best = out:match "pipeline: (.*)\n"
    if best then
      assert(best:find "ConvertLayout", out)
      ok(("opt %s -p '%s' -o %s/again.relay"):format(network, best, folder))
      assert.equal(command.read(folder .. "/l.relay"), command.read(folder .. "/again.relay"))
      ok(("tune %s --space layout -o %s/m.relay --apply-best %s"):format(network, folder, db))
      assert.equal(command.read(folder .. "/l.relay"), command.read(folder .. "/m.relay"))
    end
    out = ok(("tune %s --space pipeline+layout -p DeadCodeElimination --trials 5 --metric nodes")
      :format(network))
    assert(out:find "no better one than the base pipeline's result", out)
    fails(1, ("tune %s --space layout"):format(model), "no convolution whose layout can be")
    fails(1, ("tune %s --space combine"):format(network), "no two convolutions")
    fails(2, ("tune %s --space layot"):format(network), "did you mean 'layout'?")
    fails(2, ("tune %s --space layout --pool SimplifyExpr"):format(network), "leave --pool out")
    fails(2, ("tune %s --cost-model tree"):format(network), "trees")
    fails(2, ("tune %s --space knobs"):format(network), "knobs are those of a script")
  end)

  it("refuses what it cannot do", function()
    fails(2, ("tune %s --measure gpu"):format(model), "'evaluator', 'c' or 'command COMMAND'")
    fails(2, ("tune %s --measure command"):format(model), "followed by the command")
    fails(2, ("tune %s --metric speed"):format(model), "--metric speed")
    fails(2, ("tune %s --pool SimplifyExp"):format(model), "did you mean 'SimplifyExpr'?")
    fails(2, ("tune %s --pool SimplifyExpr,"):format(model), "a pass expected between commas")
    fails(2, ("tune %s --difference 1"):format(model), "a share from 0 to less than 1")
    fails(2, ("tune %s --run-seconds 0"):format(model), "--run-seconds")
    fails(2, ("tune %s --replay"):format(model), "--replay needs --db")
    fails(2, ("tune %s --apply-best x.db"):format(model), "needs -o")
    fails(1, ("tune %s -o %s/e.relay --apply-best %s/none.db"):format(model, folder, folder),
      "unable to open")
    fails(1, ("tune %s --db %s"):format(model, model), "not a database")
    local open = command.write(folder .. "/open.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(?, 2), float32]) { tanh(%x) }
]])
    fails(1, ("tune %s --measure c --trials 9 -p DeadCodeElimination"):format(open),
      "the shape of")
    fails(1, ("tune %s -p DeadCodeElimination"):format(open),
      "perilune: " .. open .. ": the base cannot be measured: error: no argument can be made")
    fails(1, ("tune %s -p DeadCodeElimination"):format(open), "--shape INPUT=SIZES")
    local _, _, refused = run(("tune %s --space layout"):format(model))
    assert.is_nil(refused:find("traceback", 1, true), refused)
    fails(1, ("tune %s --measure 'command exit 7' -p DeadCodeElimination"):format(model),
      "its status is 7")
    fails(2, "db lisst x.db", "")
    fails(1, ("db list %s/none.db"):format(folder), "unable to open")
    fails(1, ("db list %s"):format(model), "not a database")
  end)

  -- Runs the command until its database has a record, and then sends it the signal.
  local function stop_after_a_record(signal, arguments, db)
    os.execute(([[%s %s --db %s >%s/log 2>&1 & pid=$!
      n=0
      until %s db list %s 2>/dev/null | grep -q '[1-9][0-9]* record' || [ $n -ge 3000 ]; do
        n=$((n + 1))
      done
      kill -s %s $pid; wait $pid 2>/dev/null]]):format(command.program, arguments, db, folder,
        command.program, db, signal))
  end

  it("goes on after it was killed", function()
    local db = folder .. "/killed.db"
    local arguments = ("tune %s -p DeadCodeElimination --trials 30 --seconds 60 --seed 5")
      :format(model)
    stop_after_a_record("KILL", arguments, db)
    local out = ok(("%s --db %s"):format(arguments, db))
    local cached = tonumber(out:match "(%d+) from records")
    assert(cached and cached >= 1, out)
  end)

  it("writes the best so far when it is interrupted", function()
    stop_after_a_record("INT", ("tune %s -o %s/f.relay -p DeadCodeElimination "
      .. "--trials 100000 --seconds 600 --search random"):format(model, folder),
      folder .. "/interrupted.db")
    assert(pl.load(folder .. "/f.relay"))
    assert(command.read(folder .. "/log"):find "interrupted")
  end)
end)
