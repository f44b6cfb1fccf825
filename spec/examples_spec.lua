-- The scripts in lua/examples run as they are, with stock Lua.

local function run(name, ...)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(([[
    package.path, package.cpath = %q, %q
    arg = { [0] = %q, ... }
    assert(loadfile(arg[0]))(...)
  ]]):format(package.path, package.cpath, "lua/examples/" .. name .. ".lua"))
  file:close()
  local command = { "lua5.4", path, ... }
  local pipe = assert(io.popen(table.concat(command, " ") .. " 2>&1"))
  local output = pipe:read "a"
  local ok = pipe:close()
  os.remove(path)
  assert.is_true(ok, output)
  return output
end

describe("the example", function()
  it("pipeline_with_instrument shows what each pass did", function()
    local output = run "pipeline_with_instrument"
    assert.is_truthy(output:find "FoldConstant%s+changed the module")
    assert.is_truthy(output:find("def @main", 1, true))
    assert.is_truthy(output:find "deploy: %d+%.%d+ ms")
    assert.is_falsy(output:find("const.*add", 1))
  end)

  it("pass_in_lua fuses x * sigmoid(x) once", function()
    local output = run "pass_in_lua"
    assert.is_truthy(output:find("nn.silu(%x)", 1, true))
    assert.is_truthy(output:find "CountCalls%s+sigmoid%s+1")
    assert.is_falsy(output:find "def @main[^}]*sigmoid")
  end)

  it("embedding goes on after a pass that does not exist", function()
    local output = run "embedding"
    assert.is_truthy(output:find "EliminateCommonSubexpr%s+%d+ %-> %d+")
    assert.is_truthy(output:find "NoSuchPass%s+%d+ %-> %?%s+failed")
  end)

  it("prove_zoo computes the same before and after", function()
    local output = run "prove_zoo"
    for _, family in ipairs(require "perilune.zoo".families) do
      assert.is_truthy(output:find(family.name .. "%s+%d+ %-> +%d+ calls   computes the same"))
    end
  end)

  it("embedding loads as a module", function()
    local path = package.path
    package.path = "./lua/?.lua;" .. path
    local tool = require "examples.embedding"
    package.path = path
    assert.is_function(tool.compare)
  end)
end)
