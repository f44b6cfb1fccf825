-- What made a node: node:history(), and what opt --history writes of it; the
-- golden files are spec/golden/history.txt and history.json.

local command = require "spec.cli.command"
local pl = require "perilune"
local random_graph = require "spec.random.graph"

local folder
setup(function() folder = command.folder() end)
teardown(function() os.execute("rm -rf " .. folder) end)

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %0 = add(%x, 0f);
  %1 = reshape(%0, newshape=[6]);
  %2 = reshape(%1, newshape=[3, 2]);
  %3 = transpose(%2, axes=[1, 0]);
  %4 = tanh(%3);
  %5 = tanh(%3);
  add(%4, %5)
}
]]

local function parsed(source) return assert(pl.parse(source or text, "net.relay")) end

-- The first call of an operator in a module's main.
local function find(mod, op)
  for node in mod.functions.main:nodes() do
    if node.kind == "Call" and node.op and node.op.name == op then return node end
  end
end

local function apply(passes, mod)
  return pl.with(pl.context { opt_level = 3 }, pl.pipeline(passes), mod)
end

describe("node:history()", function()
  it("ends in the place of a text", function()
    local rows = find(parsed(), "transpose"):history()
    assert.same({ { source = "net.relay:6:8", file = "net.relay", line = 6, column = 8 } }, rows)
  end)

  it("tells of the rule that made a node, and of what", function()
    local rows = find(apply("SimplifyExpr", parsed()), "reshape"):history()
    assert.equal(2, #rows)
    assert.same({ "SimplifyExpr", "merge_reshape", 1, { "net.relay:5:8" } },
      { rows[1].pass, rows[1].rule, rows[1].run, rows[1].from })
    assert.equal("integer", math.type(rows[1].application))
    assert.equal("net.relay:5:8", rows[2].source)
  end)

  it("has both parents of a merged node", function()
    local row = find(apply("EliminateCommonSubexpr", parsed()), "tanh"):history()[1]
    assert.same({ "EliminateCommonSubexpr", "merge", { "net.relay:7:8", "net.relay:8:8" } },
      { row.pass, row.rule, row.from })
  end)

  it("has what was folded together", function()
    local made = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32], %b: Tensor[(4), float32]) {
  %0 = nn.matmul(%x, %w);
  add(%0, %b)
}
]])
    local gemm = find(apply("MatMulAddToGemm", made), "nn.gemm")
    if not gemm then return pending "nn.matmul has another name in this text" end
    assert.equal("fold", gemm:history()[1].rule)
  end)

  it("goes on from pass to pass, newest first", function()
    local out = apply("SimplifyExpr,EliminateCommonSubexpr", parsed())
    out = apply("ToANormalForm,ToGraphNormalForm", out)
    local rows = find(out, "tanh"):history()
    assert.equal("EliminateCommonSubexpr", rows[1].pass)
    assert.equal(2, rows[1].run)
    assert.equal("net.relay:7:8", rows[#rows].source)
  end)

  it("tells of steps in one visit, in order", function()
    local source = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = reshape(%x, newshape=[6]);
  %1 = reshape(%0, newshape=[3, 2]);
  %2 = reshape(%1, newshape=[6]);
  reshape(%2, newshape=[3, 2, 1])
}
]]
    local rows = find(apply("SimplifyExpr", parsed(source)), "reshape"):history()
    assert.is_true(#rows >= 2)
    for i = 1, #rows - 1 do assert.equal("merge_reshape", rows[i].rule) end
    for i = 1, #rows - 2 do
      assert.is_true(rows[i].application > rows[i + 1].application)
    end
  end)

  it("ends in the line of a script", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local y = pl.op.tanh(x)
    local line = debug.getinfo(1, "l").currentline - 1
    local fn = pl.func({ x }, y)
    local rows = fn.body:history()
    assert.equal(1, #rows)
    assert.equal(line, rows[1].line)
    assert.matches("history_spec.lua$", rows[1].file)
    assert.equal(rows[1].file .. ":" .. line, rows[1].source)
    assert.equal(line + 2, fn:history()[1].line)
  end)

  it("tells the pass of what a body builds", function()
    local function body(fn) return pl.func(fn.params, pl.op.exp(fn.body)) end
    local out = pl.function_pass { name = "Exp", run = body }(parsed())
    local rows = find(out, "exp"):history()
    assert.equal("Exp", rows[1].pass)
    assert.is_nil(rows[1].rule)
    assert.matches("history_spec.lua:%d+$", rows[2].source)
    assert.equal("net.relay:7:8", find(out, "tanh"):history()[1].source)
  end)

  it("tells the name of a mutator, outside of passes too", function()
    local drop = pl.mutator { name = "to_exp", Call = function(call)
      if call.op.name == "tanh" then return pl.op.exp(call.args[1]) end
    end }
    local rows = find(drop(parsed()), "exp"):history()
    assert.equal("to_exp", rows[1].rule)
    assert.is_nil(rows[1].pass)
    assert.equal("net.relay:7:8", rows[2].source)
    pl.passes.ToExp = { kind = "function", run = drop }
    rows = find(apply("ToExp", parsed()), "exp"):history()
    assert.same({ "ToExp", "to_exp", 1, 1 },
      { rows[1].pass, rows[1].rule, rows[1].run, rows[1].application })
    pl.passes.ToExp = nil
  end)

  it("is kept when a function is inlined", function()
    local out = apply("Inline", parsed [[
#[version = "0.0.5"]
def @f(%y: Tensor[(2), float32], Inline=1) { tanh(%y) }
def @main(%x: Tensor[(2), float32]) { @f(@f(%x)) }
]])
    local rows = find(out, "tanh"):history()
    assert.same({ "Inline", "inline", "net.relay:2:46" },
      { rows[1].pass, rows[1].rule, rows[2].source })
  end)

  it("is empty when nothing is known", function()
    assert.same({}, pl.var("x", "float32"):history()[2] or {})
    assert.has_error(function() pl.module {}:history() end)
  end)
end)

describe("histories of what changes again and again", function()
  it("keep the newest changes and the source, in bounded memory", function()
    local other = { tanh = "exp", exp = "tanh" }
    local flip = pl.function_pass { name = "Flip", run = pl.mutator { Call = function(call)
      return pl.op[other[call.op.name]](call.args[1])
    end } }
    local x = pl.var("x", "Tensor[(2), float32]")
    local y = x
    for _ = 1, 2000 do y = pl.op.tanh(y) end
    local mod, seen = pl.module { main = pl.func({ x }, y) }, {}
    for i = 1, 240 do
      mod = flip(mod)
      if i % 80 == 0 then
        collectgarbage()
        seen[#seen + 1] = pl.memory()
      end
    end
    assert.is_true(seen[3] < 1.5 * seen[1])
    local rows = mod.functions.main.body:history()
    assert.is_true(#rows >= 8 and #rows < 100)
    assert.equal("Flip", rows[#rows - 1].pass)
    assert.matches("history_spec.lua:%d+$", rows[#rows].source)
  end)
end)

describe("histories of many functions", function()
  local lines = { '#[version = "0.0.5"]' }
  for i = 1, 12 do
    lines[#lines + 1] = (text:gsub("#[^\n]*\n", ""):gsub("@main", "@f" .. i))
  end
  local many = table.concat(lines, "\n")

  local function shown(passes, threads)
    local context = pl.context { opt_level = 3, config = { threads = threads } }
    local out = pl.with(context, pl.pipeline(passes), assert(pl.parse(many, "many.relay")))
    return require "perilune.cli.history".json(out)
  end

  it("are the same in any number of threads", function()
    for _, passes in ipairs { "SimplifyExpr,EliminateCommonSubexpr,DeadCodeElimination",
      "SimplifyExpr,functions{EliminateCommonSubexpr,fixpoint(3){SimplifyExpr}},FuseOps" } do
      local one = shown(passes, 1)
      assert.matches('"rule":"merge","run":2,"application":1,', one, 1, true)
      assert.equal(one, shown(passes, 3))
    end
  end)
end)

-- Rows of each node of a module: what holds of all of them.
local function check_all(mod, ran)
  local changes = 0
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      local rows = node:history()
      assert(#rows > 0 and rows[#rows].source and rows[#rows].source ~= "",
        ("a %s has no source"):format(node.kind))
      for i = 1, #rows - 1 do
        local row = rows[i]
        assert(ran[row.pass .. "." .. (row.rule or "")],
          ("%s: %s made a node"):format(row.pass, tostring(row.rule)))
        assert(row.run >= 1 and (row.application or 1) >= 1)
        changes = changes + 1
      end
    end
  end
  return changes
end

-- The rules that the last call applied.
local function applied()
  local set = {}
  for _, row in ipairs(pl.rule_report()) do
    if row.applied > 0 then set[row.pass .. "." .. row.rule] = true end
  end
  return set
end

describe("every node's history", function()
  local default = require "perilune.pipelines.default"

  it("ends in a source, on graphs made at random", function()
    local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
    local changes = 0
    for seed = 1, 150 do
      local mod = random_graph(seed)
      local out = default(mod)
      changes = changes + check_all(out, applied())
    end
    assert.is_true(changes > 0)
  end)

  it("ends in a source in every form of graphs", function()
    for seed = 1, 40 do
      local mod = random_graph(seed)
      for _, passes in ipairs { "ToANormalForm", "ToBasicBlockNormalForm",
        "FuseOps,InferType,DefuseOps", "ToANormalForm,DeadCodeElimination,ToGraphNormalForm" } do
        local out = apply(passes, mod)
        check_all(out, applied())
      end
    end
  end)

  it("ends in a node, a value or the file of a model", function()
    local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
    local seen = 0
    for _, name in ipairs { "light_squeezenet", "light_resnet50", "light_shufflenet" } do
      local path = ("../shared/models/%s/model.onnx"):format(name)
      local file = io.open(path)
      if file then
        file:close()
        seen = seen + check_all(default(assert(pl.load(path))), applied())
      end
    end
    if seen == 0 then pending "no models beside the project" end
  end)
end)

describe("perilune opt --history", function()
  local function run(arguments) return command.run(folder, arguments) end

  local function check_golden(name, shown)
    local path = "spec/golden/" .. name
    if os.getenv "PERILUNE_GOLDEN" == "write" then command.write(path, shown) end
    assert.equal(command.read(path), shown)
  end

  local function opt(file)
    local input = command.write(folder .. "/net.relay", text)
    local arguments = "opt -q %s -o %s -p SimplifyExpr,EliminateCommonSubexpr --history %s"
    return run(arguments:format(input, folder .. "/out.relay", file))
  end

  local function plain(shown) return (shown:gsub(folder:gsub("%p", "%%%0") .. "/", "")) end

  it("writes text", function()
    local status, out = opt "-"
    assert.equal(0, status)
    check_golden("history.txt", plain(out))
    opt(folder .. "/history.txt")
    assert.equal(out, command.read(folder .. "/history.txt"))
  end)

  it("writes JSON", function()
    local status = opt(folder .. "/history.json")
    assert.equal(0, status)
    check_golden("history.json", plain(command.read(folder .. "/history.json")))
  end)

  it("says when it cannot write", function()
    local status, _, err = opt(folder .. "/none/history.txt")
    assert.equal(1, status)
    assert.matches("%-%-history: .*/none/history.txt: No such file or directory", err)
  end)

  it("changes neither text nor model", function()
    local input = command.write(folder .. "/net.relay", text)
    local function opt_to(file, more)
      local status = run(("opt -q %s -o %s/%s %s"):format(input, folder, file, more or ""))
      assert.equal(0, status)
      return command.read(folder .. "/" .. file)
    end
    assert.equal(opt_to "a.relay", opt_to("b.relay", "--history " .. folder .. "/h"))
    assert.equal(opt_to "a.onnx", opt_to("b.onnx", "--history " .. folder .. "/h"))
  end)
end)
