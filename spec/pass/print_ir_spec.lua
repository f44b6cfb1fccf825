-- PrintIR: the module as text, in the midst of a pipeline, on the standard error.

local command = require "spec.cli.command"
local pl = require "perilune"

local folder = command.folder()
local input = folder .. "/in.relay"

local module = pl.module { main = (function()
  local x = pl.var("x", pl.type { shape = { 2 }, dtype = "float32" })
  local sum = pl.op.add(x, pl.const({ 1.5, 2.5 }, "float32"))
  return pl.func({ x }, pl.op.add(sum, pl.const(0.0, "float32")))
end)() }
assert(pl.save(module, input))

local function opt(pipeline)
  return command.run(folder, ("opt %s -o %s/out.relay -p '%s'"):format(input, folder, pipeline))
end

teardown(function() os.execute("rm -rf " .. folder) end)

describe("PrintIR", function()
  it("is a module pass of level 0 with a header and a switch", function()
    local row = pl.passes.PrintIR
    assert.equal("module", row.kind)
    assert.equal(0, row.opt_level)
    assert.same({ "header", "show_meta_data" }, { row.options[1].name, row.options[2].name })
    assert.same({ "", false }, { row.options[1].default, row.options[2].default })
    local text = 'PrintIR{header="a",show_meta_data=true}'
    assert.equal(text, tostring(pl.pipeline(text)))
  end)

  it("shows the module where it stands, and leaves it as it is", function()
    local status, _, err = opt 'PrintIR{header="first"},SimplifyExpr,PrintIR{header="last"}'
    assert.equal(0, status)
    local first, last = err:match "^PrintIR%(first%):\n(.-)\nPrintIR%(last%):\n(.*)$"
    assert.matches('#[version = "0.0.5"]', first, 1, true)
    local _, adds = first:gsub("add%(", "")
    assert.equal(2, adds)
    local _, left = last:gsub("add%(", "")
    assert.equal(1, left)
    assert.is_true(pl.equal(assert(pl.load(folder .. "/out.relay")),
      assert(pl.pipeline "SimplifyExpr"(module))))
  end)

  it("leaves the metadata section out unless it is asked for", function()
    local _, _, err = opt "PrintIR"
    assert.matches("^PrintIR%(%):\n", err)
    assert.matches("meta[relay.Constant][0]", err, 1, true)
    assert.matches("/* the metadata section is left out */", err, 1, true)
    assert.not_matches("#[metadata]", err, 1, true)
    local _, _, whole = opt "PrintIR{show_meta_data=true}"
    local text = assert(whole:match "^PrintIR%(%):\n(.*)\n$")
    assert.is_true(pl.equal(module, assert(pl.parse(text))))
  end)

  it("prints each time, also where results are kept", function()
    local arguments = ("opt %s -o %s/out.relay -p PrintIR,PrintIR --set cache=1000000"):format(
      input, folder)
    local status, _, err = command.run(folder, arguments)
    assert.equal(0, status)
    assert.equal(2, (select(2, err:gsub("PrintIR%(%)", ""))))
  end)

  it("says what its options are", function()
    local status, _, err = opt "PrintIR{headr=1}"
    assert.equal(2, status)
    assert.matches("pass 'PrintIR' has no option 'headr'; did you mean 'header'?", err, 1, true)
    local _, _, wrong = opt "PrintIR{show_meta_data=2}"
    assert.matches("option 'show_meta_data' expects true or false, got '2'", wrong, 1, true)
  end)

  it("is listed", function()
    local _, out = command.run(folder, "passes")
    assert.matches("PrintIR", out, 1, true)
  end)
end)
