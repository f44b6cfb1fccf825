-- --set on the command line: options of passes, config keys and their fields, of
-- every type, as text; what a pass in a script makes of them.

local pl = require "perilune"
local command = require "spec.cli.command"

describe("--set", function()
  local folder, model, script
  setup(function()
    folder = command.folder()
    model = folder .. "/in.relay"
    local x = pl.var("x", "Tensor[(2), float32]")
    assert(pl.save(pl.module { main = pl.func({ x }, x + 1) }, model))
    script = command.write(folder .. "/show.lua", [[
local pl = require "perilune"
local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  return "[" .. table.concat(value, ";") .. "]"
end
pl.config.level = { default = 1, least = 0, most = 3 }
pl.passes.Show = {
  options = { n = { default = 3, most = 9 }, names = { default = {}, type = "strings" },
    axes = { default = { 0, 1 } }, loud = false, x = 0.5,
    mode = { default = "fast", choices = { "fast", "small" } }, loops = { fields = { step = 1 } } },
  run = function(_, _, ctx)
    local shown = {}
    for _, name in ipairs { "n", "names", "axes", "loud", "x", "mode" } do
      shown[#shown + 1] = name .. "=" .. text(ctx:option(name))
    end
    print(table.concat(shown, " "), ctx:option "loops".step, ctx:get "tir.UnrollLoop".auto_max_step)
  end,
}
return "Show"
]])
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function run(settings, passes)
    return command.run(folder, ("opt %s -o %s/out.relay -q -p %s %s"):format(model, folder,
      passes or script, settings))
  end

  it("sets fields of keys, one by one and as a table", function()
    for settings, wanted in pairs {
      [""] = 0, ["--set tir.UnrollLoop.auto_max_step=8"] = 8,
      ["--set tir.UnrollLoop='{auto_max_step=4}'"] = 4,
      ["--set tir.UnrollLoop=auto_max_step=5"] = 5,
      ["--set tir.UnrollLoop=auto_max_step=5 --set tir.UnrollLoop.auto_max_step=6"] = 6,
    } do
      local status, out = run(settings)
      assert.equal(0, status)
      assert.equal("n=3 names=[] axes=[0;1] loud=false x=0.5 mode=fast\t1\t" .. wanted .. "\n",
        out)
    end
  end)

  it("sets options and keys that the pipeline's script brings along", function()
    local status, out = run("--set Show.n=0x9 --set Show.names='a,\"b c\"' --set Show.axes='[]' "
      .. "--set Show.loud=true --set Show.x=2 --set Show.mode=small --set Show.loops=step=7 "
      .. "--set level=3")
    assert.equal(0, status)
    assert.equal("n=9 names=[a;b c] axes=[] loud=true x=2.0 mode=small\t7\t0\n", out)
    local _, err
    status, _, err = run "--set Show.n=10"
    assert.equal(2, status)
    assert.matches("--set Show.n: config key 'Show.n' expects an integer up to 9, got 10", err, 1,
      true)
    status, _, err = run "--set levle=1"
    assert.equal(2, status)
    assert.matches("did you mean 'level'?", err, 1, true)
  end)

  it("tells what is allowed", function()
    for settings, wanted in pairs {
      ["tir.UnrollLoop.auto_max_step=x"] = "tir.UnrollLoop.auto_max_step: config key "
        .. "'tir.UnrollLoop.auto_max_step' expects an integer from 0 on, got 'x'",
      ["tir.UnrollLoop.auto_max_stp=1"] = "tir.UnrollLoop.auto_max_stp: config key "
        .. "'tir.UnrollLoop' has no field 'auto_max_stp'; "
        .. "did you mean 'tir.UnrollLoop.auto_max_step'?",
      ["fold=half"] = "fold: config key 'fold' expects one of budget|all, got 'half'",
      ["limit.nodes=-1"] = "limit.nodes: config key 'limit.nodes' expects an integer from 0 on, "
        .. "got -1",
      ["FuseOps.fuse_opt_level=-2"] = "FuseOps.fuse_opt_level: config key "
        .. "'FuseOps.fuse_opt_level' expects an integer from -1 on, got -2",
      ["relay.FuseOps.link_params=maybe"] = "relay.FuseOps.link_params: config key "
        .. "'relay.FuseOps.link_params' expects true or false, got 'maybe'",
    } do
      local status, _, err = run("--set " .. settings, "FuseOps")
      assert.equal(2, status)
      assert.matches("--set " .. wanted, err, 1, true)
    end
  end)
end)

describe("the pass that is shown by its name", function()
  it("has type, bounds, default and sentence of each option", function()
    local folder = command.folder()
    local status, out = command.run(folder, "passes FuseOps")
    assert.equal(0, status)
    assert.matches("    fuse_opt_level: integer from -1 on, by default -1\n", out, 1, true)
    status, out = command.run(folder, "passes limit.seconds")
    assert.equal(0, status)
    assert.matches("limit.seconds: number from 0 on, by default 0.0\n", out, 1, true)
    local _, _, err = command.run(folder, "passes FuseOsp")
    assert.matches("no pass is called 'FuseOsp'; did you mean 'FuseOps'?", err, 1, true)
    os.execute("rm -rf " .. folder)
  end)
end)
