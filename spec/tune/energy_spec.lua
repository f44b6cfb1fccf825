-- Energy as a metric: the counters of RAPL, and what is said where they cannot be read.

local command = require "spec.cli.command"
local energy = require "perilune.tune.run.energy"
local pl = require "perilune"

local folder

before_each(function() folder = command.folder() end)
after_each(function() os.execute("rm -rf " .. folder) end)

-- A zone of a package with that many microjoules.
local function zone(number, microjoules, range)
  local path = ("%s/intel-rapl:%d"):format(folder, number)
  os.execute(("mkdir -p '%s'"):format(path))
  command.write(path .. "/energy_uj", microjoules .. "\n")
  if range then command.write(path .. "/max_energy_range_uj", range .. "\n") end
end

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
end

describe("the meter", function()
  it("sums the packages, and knows that counters begin at 0 again", function()
    zone(0, 900, 999)
    zone(1, 5000000, 262143328850)
    local meter = assert(energy.meter(folder))
    zone(0, 100)
    zone(1, 7000000)
    assert.near(2.0002, meter(), 1e-9)
  end)

  it("says why there is none", function()
    local meter, reason = energy.meter(folder)
    assert.is_nil(meter)
    assert.equal(("there is no zone %s/intel-rapl:0"):format(folder), reason)
    zone(0, "garbage", 1000)
    meter, reason = energy.meter(folder)
    assert.is_nil(meter)
    assert.matches("energy_uj: it has no number", reason)
    os.remove(folder .. "/intel-rapl:0/energy_uj")
    meter, reason = energy.meter(folder)
    assert.is_nil(meter)
    assert.matches("energy_uj: No such file", reason)
  end)
end)

describe("pl.tune.measure.energy", function()
  it("is the energy of a run", function()
    zone(0, 1000, 262143328850)
    local measure = pl.tune.measure.energy { folder = folder, seconds = 0.02 }
    assert.equal(0, measure(program())) -- the counter stands still
    assert.equal(0, measure(program(), 0.5))
  end)

  it("refuses options and machines that do not fit", function()
    local function fails(pattern, options)
      local ok, err = pcall(pl.tune.measure.energy, options)
      assert.is_false(ok)
      assert.matches(pattern, tostring(err))
    end
    fails("the energy of this machine cannot be read: there is no zone", { folder = folder })
    fails("seconds: a number", { folder = folder, seconds = 0 })
    fails("builder: one of 'evaluator' or 'c'", { builder = pl.tune.builder { kind = "command",
      command = "true" } })
  end)

  it("is a metric of the command", function()
    if energy.meter() then return pending "energy can be read here" end
    command.write(folder .. "/in.relay", tostring(program()))
    local status, _, err = command.run(folder, ("tune %s/in.relay --metric energy"):format(folder))
    assert.equal(1, status)
    assert.matches("the energy of this machine cannot be read: ", err)
    assert.not_matches("traceback", err)
  end)
end)
