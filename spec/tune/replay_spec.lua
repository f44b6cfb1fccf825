-- A recorded search is repeated byte for byte, by every strategy in every space, without a
-- measurement.

local foldable = require "spec.tune.foldable"
local pl = require "perilune"
local tune = pl.tune

tune.functions["replay_spec.note"] = function(mod, cost) return mod:with_attrs { note = cost } end

-- What the first run measured is decided by the program alone, and is no matter of time.
local function cost(mod) return 1 + #mod:text() % 97 end

local function unmeasured() error "it measured" end

local function parallel_convolutions()
  return assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 8, 8), float32], %v: Tensor[(4, 4, 1, 1), float32],
          %w: Tensor[(4, 4, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1]);
  %1 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1]);
  (%0, %1)
}
]])
end

local function product()
  local a = pl.te.placeholder({ 16, 16 }, "float32", "A")
  local k = pl.te.reduce_axis({ 0, 16 }, "k")
  local b = pl.te.compute({ 16, 16 }, function(i, j)
    return pl.te.sum(a[{ i, k.var }] * a[{ k.var, j }], k)
  end, "B")
  return pl.module { main = pl.te.create_prim_func { a, b } }
end

local function knobs()
  local choices = {}
  for i = 1, 4 do
    choices[i] = tune.choice { transform = "replay_spec.note", args = { i * 10 } }
  end
  return { tune.knob("a", choices), tune.knob("b", choices) }
end

local spaces = {
  { "knobs", mod = foldable(), knobs = knobs() },
  { "pipeline", mod = foldable(), base = "DeadCodeElimination",
    pool = { "FoldConstant", "SimplifyExpr" } },
  { "layout", mod = parallel_convolutions(), base = "DeadCodeElimination" },
  { "combine", mod = parallel_convolutions(), base = "DeadCodeElimination" },
  { "substitution", mod = parallel_convolutions(), base = "DeadCodeElimination",
    substitution = { rules = { "nn.relu(nn.relu(?x)) => nn.relu(?x)" } } },
  { "schedule", mod = product(), schedule = true },
  { "pipeline+layout", mod = parallel_convolutions(), base = "DeadCodeElimination",
    pool = { "SimplifyExpr" } },
  { "knobs+schedule", mod = product(), knobs = knobs(), schedule = true },
}

local strategies = { "exhaustive", "random", "beam", "evolutionary", "annealing", "halving",
  "bandit" }

-- All that a search has found, as text.
local function outcome(result)
  local lines = { result.text, result.verdict, result.ratio, result.state, result.mod:text() }
  for _, trial in ipairs(result.list) do
    lines[#lines + 1] = table.concat({ trial.text, tostring(trial.cost), tostring(trial.verdict),
      tostring(trial.failure) }, " ")
  end
  return table.concat(lines, "\n")
end

local runner = tune.runner { rounds = 1 }

describe("a replay gives the same, byte for byte:", function()
  for _, row in ipairs(spaces) do
    for _, strategy in ipairs(strategies) do
      it(("%s, %s"):format(row[1], strategy), function()
        local path = os.tmpname()
        local function search(metric, replay)
          local db <close> = tune.database { path = path }
          local spec = { space = row[1], strategy = strategy, trials = 8, seed = 11, target = "t",
            database = db, replay = replay, runner = runner,
            metrics = { { metric, name = "cost" } } }
          for name, value in pairs(row) do
            if name ~= 1 then spec[name] = value end
          end
          return tune.search(spec)
        end
        local first, again = search(cost), search(unmeasured, true)
        assert.equal(outcome(first), outcome(again))
        assert.equal(0, again.measured)
        os.execute(("rm -f %s %s-wal %s-shm"):format(path, path, path))
      end)
    end
  end
end)
