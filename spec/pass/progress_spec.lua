-- The line that tells which pass is at work.

local pl = require "perilune"

local function run(options, pass)
  local context = pl.context { instruments = { pl.instruments.progress(options) } }
  local ok, err = pcall(pl.with, context, pass, pl.module {})
  return ok, err
end

local function nothing(name) return pl.module_pass { name = name, run = function() end } end

describe("pl.instruments.progress", function()
  local pipeline = pl.sequential { name = "deploy", nothing "A", { nothing "B" }, nothing "C" }
  local line = "\r\27[K"

  it("tells each pass and what it is in, and goes away", function()
    local told = {}
    run({ seconds = 0, write = function(text) told[#told + 1] = text end }, pipeline)
    assert.same({ line .. "1: deploy", line .. "2: deploy > A", line .. "3: deploy > sequential",
      line .. "4: deploy > sequential > B", line .. "5: deploy > C", line }, told)
  end)

  it("says nothing before its time", function()
    local told = {}
    run({ write = function(text) told[#told + 1] = text end }, pipeline)
    assert.same({}, told)
  end)

  it("goes on behind a pass that failed", function()
    local told = {}
    local failing = pl.module_pass { name = "Fails", run = function() error "no" end }
    run({ seconds = 0, write = function(text) told[#told + 1] = text end },
      pl.sequential { name = "all", pl.try { failing, otherwise = { nothing "Else" } },
        nothing "Last" })
    assert.equal(line .. "5: all > Last", told[#told - 1])
    assert.equal(line, told[#told])
  end)

  it("has a line for texts of others", function()
    local told = {}
    local progress = pl.instruments.progress { seconds = 0,
      write = function(text) told[#told + 1] = text end }
    progress.clear()
    progress.show "1 of 3"
    progress.clear()
    progress.clear()
    assert.same({ line .. "1 of 3", line }, told)
  end)

  it("has no hooks where nobody sees it", function()
    local progress = pl.instruments.progress()
    if not require "perilune.core".terminal() then
      assert.is_nil(progress.before)
      assert.is_nil(progress.after)
    end
    progress.show "nothing"
    progress.clear()
  end)
end)
