--- Operations of the library, each run once undisturbed and then with finalisers
-- that run at every allocation and call the library themselves. Run by the
-- command, as a script: prints what differs, then "done". An argument names the
-- operations to run, as a pattern.

local pl = require "perilune"

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  let %y = nn.relu(%x);
  let %z = add(%y, 1f);
  multiply(%z, 1f)
}
]]

-- ------------------------------------------------------------ what finalisers do

local victims = {} -- what an operation is at: finalisers close it when `closing`
local closing = false

local function raising(message)
  return pl.function_pass { name = "Raising", run = function() error(message) end }
end

local own = {
  module = assert(pl.parse(text)),
  pass = pl.sequential { "SimplifyExpr", "FoldConstant", "InferType" },
  fails = raising "in a finaliser",
  x = pl.var("x", "Tensor[(2), float32]"),
  n = 0,
}

local disturbances = {
  function() pl.parse "x" end,
  function() pl.parse "def @main(%a: Tensor[(2), float32]) { nn.relu(%b) }" end,
  function() own.pass(own.module) end,
  function() pcall(own.fails, own.module) end,
  function() pl.load "/there is no such file.onnx" end,
  function() pl.onnx.parse "\8\7\7\7" end,
  function()
    local y = own.x
    for _ = 1, 40 do y = pl.op.nn.relu(y) end
    return pl.func({ own.x }, y)
  end,
  function()
    own.n = own.n + 1
    local name = "Own" .. own.n
    pl.passes[name] = { kind = "function", run = function(fn) return fn end }
    pl.passes[name] = nil
  end,
  function()
    local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore
    own.pass(own.module)
  end,
  function() return tostring(own.module), pl.report(), pl.diagnostics and pl.diagnostics() end,
  function() pcall(pl.op.add, own.x) end,
  function() return pl.eval(own.module, pl.tensor { { 1.0, 2, 3 }, { 4, 5, 6 } }):to_table() end,
}

local turn = 0
local function disturb()
  turn = turn % #disturbances + 1
  pcall(disturbances[turn])
  if closing then
    for i, object in ipairs(victims) do
      if (turn + i) % 3 == 0 then pcall(object.close, object) end
    end
  end
end

local armed = false
local function arm()
  setmetatable({}, { __gc = function()
    if not armed then return end
    disturb()
    arm()
  end })
end

-- From here on each allocation is a whole cycle of the collector.
local function start()
  collectgarbage("incremental", 1, 1000, 20)
  collectgarbage()
  armed = true
  arm()
end

local function stop()
  armed = false
  collectgarbage("incremental", 200, 100, 13)
  collectgarbage()
end

-- ------------------------------------------------------------------- operations

local function victim(object)
  victims[#victims + 1] = object
  return object
end

-- A failure as text: its message and those of its notes.
local function failure(_, diag)
  if type(diag) ~= "table" then return tostring(diag) end
  local lines = { diag.message }
  for _, note in ipairs(diag.notes) do lines[#lines + 1] = note.message end
  return table.concat(lines, "\n")
end

-- A report is of the last run, which may be a finaliser's: each row is whole.
local function rows_of(list, first, second)
  for _, row in ipairs(list) do
    assert(#row[first] > 0 and math.type(row[second]) == "integer")
  end
  return "rows are whole"
end

local function names(list)
  local lines = {}
  for i, row in ipairs(list) do lines[i] = row.name end
  return table.concat(lines, " ")
end

local operations = {
  parse_fails = function()
    return failure(pl.parse "def @main(%x: Tensor[(2), float32]) { nn.relu(%y) + %z }")
  end,
  load_fails = function() return failure(pl.load "/no folder/model.onnx") end,
  pass_fails = function()
    return failure(pcall(raising "outer", victim(assert(pl.parse(text)))))
  end,
  operator_fails = function() return failure(pcall(pl.op.add, own.x)) end,
  option_fails = function() return failure(pcall(pl.passes.FoldConstant, { fold = "some" })) end,
  raised = function()
    local pass = pl.function_pass { name = "Nested", run = function(fn, mod)
      local ok, err = pcall(raising "inner", mod)
      assert(not ok)
      error(failure(ok, err), 0)
      return fn
    end }
    return failure(pcall(pass, victim(assert(pl.parse(text)))))
  end,
  applied = function()
    local pass = victim(pl.sequential { "SimplifyExpr", "FoldConstant", "DeadCodeElimination" })
    return tostring(pass(victim(assert(pl.parse(text)))))
  end,
  reported = function()
    victim(pl.sequential { "SimplifyExpr", "FoldConstant", "InferType" })(assert(pl.parse(text)))
    return rows_of(pl.report(), "name", "nodes")
  end,
  built = function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local y = pl.op.nn.relu(x) * 2 + pl.const { { 1.0, 2, 3 }, { 4, 5, 6 } }
    return tostring(victim(pl.module { main = pl.func({ x }, y) }))
  end,
  builder = function()
    local b = pl.builder()
    local scope = b:open()
    local x = b:param("x", "Tensor[(2), float32]")
    b:finish(scope, b:run(function() return pl.op.tanh(x) end))
    return tostring(b:seal(b:func(scope)))
  end,
  mutated = function()
    local m = pl.mutator { Call = function(call)
      if call.op and call.op.name == "nn.relu" then return pl.op.tanh(call.args[1]) end
    end }
    return tostring(m(assert(pl.parse(text)).main))
  end,
  walked = function()
    local kinds = {}
    for node in assert(pl.parse(text)).main:nodes() do kinds[#kinds + 1] = node.kind end
    return table.concat(kinds, " ")
  end,
  module_read = function()
    local module = victim(assert(pl.parse(text)))
    local list = {}
    for name, fn in pairs(module) do list[#list + 1] = name .. " " .. tostring(fn.ret_type) end
    list[#list + 1] = tostring(module.functions.main) .. table.concat(module.names)
    local with = victim(module:with { other = module.functions.main })
    return table.concat(list, "\n") .. tostring(with:without "main")
  end,
  tensors = function()
    local t = victim(pl.tensor { { 1, 2, 3 }, { 4, 5, 6 } })
    local u = victim(pl.tensor { 7, 8 })
    return ("%s %d %d %s %s"):format(t, #t.shape, #t:to_table(), tostring(t:equal(u)),
      #u:to_bytes())
  end,
  evaluated = function()
    local module = victim(assert(pl.parse(text)))
    return pl.eval(module, victim(pl.tensor { { 1.5, 2, -3 }, { 4, 5, 6 } })):to_table()[1][1]
  end,
  saved = function()
    local module = victim(assert(pl.parse(text)))
    return #assert(pl.onnx.tostring(module)) .. tostring(pl.onnx.parse(pl.onnx.tostring(module)))
  end,
  contexts = function()
    local context = victim(pl.context { opt_level = 1, disabled = { "FoldConstant" },
      instruments = { { name = "n", before = function() end } } })
    return tostring(context) .. context.opt_level .. #context.instruments
      .. tostring(pl.with(context, pl.passes.InferType(), victim(assert(pl.parse(text)))))
  end,
  registry = function()
    local pass = victim(pl.passes.FoldConstant { fold = "all" })
    return tostring(pass) .. pass.info.name .. names(pass.option_rows)
  end,
  rules = function()
    pl.with(pl.context { instruments = { pl.instruments.statistics() } },
      pl.passes.SimplifyExpr(), victim(assert(pl.parse(text))))
    return rows_of(pl.rule_report(), "rule", "applied")
  end,
  settings = function()
    local fields = {}
    for name, row in pairs(pl.config) do
      local value = row.default
      fields[#fields + 1] = name
        .. (type(value) == "table" and table.concat(value, " ") or tostring(value))
    end
    table.sort(fields)
    return table.concat(fields, "\n")
  end,
  variables = function()
    local fn = assert(pl.parse(text)).main
    local x = pl.var("x", "Tensor[(2), float32]")
    local free = pl.free_vars(pl.op.nn.relu(x))
    return #pl.all_vars(fn) .. free[1].name .. tostring(pl.bind(pl.op.nn.relu(x), { [x] = 2 }))
  end,
  compared = function()
    local module = victim(assert(pl.parse(text)))
    local other = victim(assert(pl.parse((text:gsub("relu", "softmax")))))
    return tostring(pl.equal(module, other)) .. tostring(pl.mismatch(module, other))
      .. tostring(pl.hash(module) == pl.hash(module))
  end,
  checked = function()
    local module = victim(assert(pl.parse(text)))
    return tostring(pl.check(module, pl.passes.SimplifyExpr()(module), { seed = 1 }))
  end,
  history = function()
    local module = victim(assert(pl.parse(text)))
    local lines = {}
    for node in pl.passes.SimplifyExpr()(module).main:nodes() do
      for _, row in ipairs(node:history()) do
        lines[#lines + 1] = tostring(row.pass) .. tostring(row.source)
      end
    end
    return table.concat(lines, "\n")
  end,
  pictures = function()
    local module = victim(assert(pl.parse(text)))
    return module:dot() .. module:json() .. module.main:dot()
  end,
  loops = function()
    local tir = pl.tir
    local i = tir.Var("i", "int32")
    local a = tir.decl_buffer({ 8 }, "float32", "a")
    local loop = tir.For(i, 0, 8, "serial", tir.BufferStore(a, tir.FloatImm("float32", 1), { i }))
    return tostring(loop) .. tostring(loop.body) .. tostring(loop.loop_var)
  end,
  inside_of_a_pass = function()
    local lines = {}
    local pass = pl.function_pass { name = "Inside", run = function(fn, mod, ctx)
      lines[#lines + 1] = failure(pl.parse "def @main(")
      lines[#lines + 1] = tostring(pl.passes.SimplifyExpr()(mod)) .. tostring(ctx.opt_level)
      lines[#lines + 1] = failure(pcall(raising "nested", mod))
      return fn
    end }
    pass(assert(pl.parse(text)))
    return table.concat(lines, "\n")
  end,
  inferred = function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    return tostring(pl.infer_type and pl.infer_type(pl.func({ x }, pl.op.nn.relu(x))))
  end,
}

-- ------------------------------------------------------------------------- runs

local function run(operation)
  victims = {}
  local ok, result = pcall(operation)
  return ok and tostring(result) or "raised: " .. failure(false, result)
end

local function disturbed(operation)
  start()
  local result = run(operation)
  stop()
  return result
end

local function say_difference(name, expected, got)
  print(("%s: expected\n%s\ngot\n%s"):format(name, expected, got))
end

local order = {}
for name in pairs(operations) do
  if name:find(arg[1] or "") then order[#order + 1] = name end
end
table.sort(order)

for _, name in ipairs(order) do
  local operation = operations[name]
  local expected = run(operation)
  if expected:find "^raised" then print(name, expected) end
  for _ = 1, tonumber(arg[2] or 1) do
    closing = false
    local got = disturbed(operation)
    if got ~= expected then say_difference(name, expected, got) end
    closing = true -- then it may fail, with a message
    got = disturbed(operation)
    if got ~= expected and not got:find "closed" then say_difference(name, expected, got) end
  end
end
print "done"
