-- RemoveUnusedFunctions: what no entry function reaches.

local pl = require "perilune"

local module = pl.parse [[
#[version = "0.0.5"]
type Box { Full(float32), Empty, }
def @used(%x: float32) -> float32 { @deep(%x) }
def @deep(%x: float32) -> float32 { tanh(%x) }
def @loop(%x: float32) -> float32 { @pool(%x) }
def @pool(%x: float32) -> float32 { @loop(%x) }
def @value(%x: float32) -> float32 { exp(%x) }
def @caller(%x: float32) -> float32 { @main(%x) }
def @main(%x: float32) -> float32 {
  let %f: fn (float32) -> float32 = @value;
  add(@used(%x), %f(%x))
}
]]

local function names(mod)
  local list = {}
  for name in pairs(mod) do list[#list + 1] = name end
  table.sort(list)
  return list
end

describe("RemoveUnusedFunctions", function()
  it("keeps what main reaches, by calls and as values", function()
    local before = tostring(module)
    local out = pl.passes.RemoveUnusedFunctions()(module)
    assert(pl.verify(out))
    assert.same({ "deep", "main", "used", "value" }, names(out))
    assert.equal(out, pl.passes.RemoveUnusedFunctions()(out))
    assert.equal(before, tostring(module))
    assert.truthy(tostring(out):find("type Box", 1, true))
    assert.equal(module.functions.main, out.functions.main)
  end)

  it("takes other entry functions", function()
    local run = pl.passes.RemoveUnusedFunctions { entry_functions = { "pool", "deep" } }
    assert.same({ "deep", "loop", "pool" }, names(run(module)))
    run = pl.pipeline 'RemoveUnusedFunctions{entry_functions=["caller"]}'
    assert.same({ "caller", "deep", "main", "used", "value" }, names(run(module)))
  end)

  it("removes everything without an entry function", function()
    assert.same({}, names(pl.passes.RemoveUnusedFunctions { entry_functions = {} }(module)))
  end)

  it("refuses an entry function that is missing, and the module stays", function()
    local run = pl.passes.RemoveUnusedFunctions { entry_functions = { "main", "nowhere" } }
    local ok, diag = pcall(run, module)
    assert.is_false(ok)
    assert.truthy(tostring(diag):find("'entry_functions': the module has no function 'nowhere'",
      1, true))
    assert.equal(7, #names(module))
  end)

  it("refuses options of another kind", function()
    assert.has_error(function() pl.passes.RemoveUnusedFunctions { entry_functions = 3 } end)
    assert.has_error(function() pl.passes.RemoveUnusedFunctions { entry_functions = { 3 } } end)
    assert.has_error(function() pl.passes.RemoveUnusedFunctions { entries = {} } end)
  end)

  it("walks a chain of 20,000 functions", function()
    local text = { '#[version = "0.0.5"]', "def @main(%x: float32) -> float32 { @f1(%x) }" }
    local n = 20000
    for i = 1, n do
      text[#text + 1] = ("def @f%d(%%x: float32) -> float32 { @f%d(%%x) }"):format(i, i + 1)
    end
    text[#text + 1] = ("def @f%d(%%x: float32) -> float32 { %%x }"):format(n + 1)
    text[#text + 1] = "def @dead(%x: float32) -> float32 { @f7(%x) }"
    local out = pl.passes.RemoveUnusedFunctions()(pl.parse(table.concat(text, "\n")))
    assert.equal(n + 2, #names(out))
  end)
end)
