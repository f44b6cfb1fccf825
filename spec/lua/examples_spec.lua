-- The scripts in lua/examples run as they are, with stock Lua.

local command = require "spec.cli.command"
local pl = require "perilune"

local function run(name, ...)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(([[
    package.path, package.cpath = %q, %q
    arg = { [0] = %q, ... }
    assert(loadfile(arg[0]))(...)
  ]]):format(package.path, package.cpath, "lua/examples/" .. name .. ".lua"))
  file:close()
  local words = { "lua5.4", path, ... }
  local pipe = assert(io.popen(table.concat(words, " ") .. " 2>&1"))
  local output = pipe:read "a"
  local ok = pipe:close()
  os.remove(path)
  assert.is_true(ok, output)
  return output
end

-- What differs from run to run and from machine to machine.
local function plain(text, folder)
  text = folder and text:gsub(folder:gsub("%p", "%%%0"), "FOLDER") or text
  return (text:gsub("%d+%.%d+ ms", "N ms"):gsub("%d+%.%d %%", "N %%")
    :gsub("%d+ allocations", "N allocations"):gsub("Lua N ms, ", ""))
end

-- The output is that of spec/golden/examples/NAME.txt.
local function check(name, folder, ...)
  local path = "spec/golden/examples/" .. name .. ".txt"
  local output = plain(run(name, ...), folder)
  if os.getenv "PERILUNE_GOLDEN" then command.write(path, output) end
  assert.equal(command.read(path), output)
end

describe("the example", function()
  for _, name in ipairs { "cache", "compile_model", "contexts", "custom_instrument",
    "dataflow_pattern", "find_bug", "history", "limits", "loop_tree", "operator", "pass_class",
    "rules", "search", "tensor_expression", "threads", "tuning_pass", "unroll_loops" } do
    it(name .. " prints what it should", function() check(name) end)
  end

  for _, name in ipairs { "reproducer", "shipped_instruments" } do
    it(name .. " prints what it should", function()
      local folder = command.folder()
      check(name, folder, name == "reproducer" and folder .. "/bug.relay" or folder)
      os.execute("rm -rf " .. folder)
    end)
  end

  it("deploy is a pipeline, and a script for opt -p", function()
    local pipeline = assert(loadfile "lua/examples/deploy.lua")()
    assert.equal('sequential(deploy,opt_level=1){try{FoldBatchNorm,FoldConvBias}else{SimplifyExpr},'
      .. 'fixpoint(10){functions{SimplifyExpr,FoldConstant{fold="budget"}},EliminateCommonSubexpr},'
      .. "if changed{DeadCodeElimination}}", tostring(pipeline))
    assert.equal(tostring(pipeline), tostring(pl.pipeline(tostring(pipeline))))
    local folder = command.folder()
    local input = command.write(folder .. "/in.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) { multiply(exp(%x), exp(add(%x, 0f))) }
]])
    local arguments = ("opt -q %s -o %s/out.relay -p lua/examples/deploy.lua"):format(input, folder)
    assert.equal(0, (command.run(folder, arguments .. " --set rounds=3 --set fold=all")))
    assert.matches("%%0 = exp%(%%x%).*multiply%(%%0, %%0%)", command.read(folder .. "/out.relay"))
    local status, _, err = command.run(folder, arguments .. " --set round=3")
    assert.equal(2, status)
    assert.matches("--set round: no option, config key or script argument has this name; did you "
      .. "mean 'rounds'?", err, 1, true)
    os.execute("rm -rf " .. folder)
  end)

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
