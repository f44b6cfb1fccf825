--- programs: modules whose size is a number: rows { name, function(n) -> Module },
-- each of them about n of what its name says. doubling.lua measures everything on
-- them; text because a program of a hundred thousand lines is soon read.

local pl = require "perilune"

local rows = {}

local function add(name, make) rows[#rows + 1] = { name = name, make = make } end

local function repeated(n, f)
  local lines = {}
  for i = 1, n do lines[i] = f(i) end
  return table.concat(lines)
end

-- A program of text: make(n) gives what stands in the braces of @main, and what
-- stands before @main.
local function text(name, params, ret, make)
  add(name, function(n)
    local body, before = make(n)
    return assert(pl.parse(('#[version = "0.0.5"]\n%sdef @main(%s) -> %s {\n%s}\n'):format(
      before or "", params, ret, body)))
  end)
end

local scalar = "%x: float32"

-- --------------------------------------------------------------- functions

local function calls(n)
  return "  %0 = @f1(%x);\n" .. repeated(n - 2, function(i)
    return ("  %%%d = @f%d(%%%d);\n"):format(i, i + 1, i - 1)
  end) .. ("  @f%d(%%%d)\n"):format(n, n - 2)
end

local function functions(n, attrs, body)
  return repeated(n, function(i)
    return ("def @f%d(%%x: float32%s) -> float32 { %s }\n"):format(i, attrs, body(i))
  end)
end

text("functions that nothing calls", scalar, "float32", function(n)
  return "  %x\n", functions(n, "", function() return "add(%x, 0f)" end)
end)
text("functions that main calls", scalar, "float32", function(n)
  return calls(n), functions(n, "", function() return "add(%x, 0f)" end)
end)
text("functions, Inline", scalar, "float32", function(n)
  return calls(n), functions(n, ", Inline=1", function() return "add(%x, 0f)" end)
end)
text("functions in a chain of calls", scalar, "float32", function(n)
  return ("  @f%d(%%x)\n"):format(n), functions(n, "", function(i)
    return i == 1 and "add(%x, 0f)" or ("@f%d(%%x)"):format(i - 1)
  end)
end)
text("functions in a chain, Inline", scalar, "float32", function(n)
  return ("  @f%d(%%x)\n"):format(n), functions(n, ", Inline=1", function(i)
    return i == 1 and "add(%x, 0f)" or ("tanh(@f%d(%%x))"):format(i - 1)
  end)
end)
text("functions in a chain, last first", scalar, "float32", function(n)
  return "  @f1(%x)\n", functions(n, "", function(i)
    return i == n and "add(%x, 0f)" or ("@f%d(%%x)"):format(i + 1)
  end)
end)
-- Types of unknown extents, which follow what is called.
add("functions in a chain, untyped", function(n)
  local lines = { '#[version = "0.0.5"]\n' }
  for i = 1, n do
    lines[#lines + 1] = ("def @f%d(%%x: Tensor[(?), float32]) { %s }\n"):format(i,
      i == 1 and "tanh(%x)" or ("@f%d(%%x)"):format(i - 1))
  end
  lines[#lines + 1] = ("def @main(%%x: Tensor[(?), float32]) { @f%d(%%x) }\n"):format(n)
  return assert(pl.parse(table.concat(lines)))
end)
text("functions in a cycle", scalar, "float32", function(n)
  return "  @f1(%x)\n", functions(n, "", function(i)
    return ("@f%d(tanh(%%x))"):format(i % n + 1)
  end)
end)
text("functions with a closure", scalar, "float32", function(n)
  return calls(n), functions(n, "", function()
    return "let %g = fn (%y: float32) -> float32 { add(%x, %y) };\n  %g(1f)"
  end)
end)
text("functions used as values", scalar, "float32", function(n)
  return repeated(n, function(i)
    return ("  let %%v%d = @f%d;\n"):format(i, i)
  end) .. "  %x\n", functions(n, "", function() return "add(%x, 0f)" end)
end)
text("functions that are primitive", scalar, "float32", function(n)
  return repeated(n, function(i)
    local f, v = 2 * i - 2, 2 * i - 1
    return ("  %%%d = fn (%%p: float32, Primitive=1) -> float32 { tanh(%%p) };\n"
      .. "  %%%d = %%%d(%s);\n"):format(f, v, f, i == 1 and "%x" or "%" .. v - 2)
  end) .. ("  exp(%%%d)\n"):format(2 * n - 1)
end)

-- -------------------------------------------------------------------- lets

text("lets", scalar, "float32", function(n)
  return "  let %v0 = tanh(%x);\n" .. repeated(n, function(i)
    return ("  let %%v%d = add(%%v%d, 0f);\n"):format(i, i - 1)
  end) .. ("  %%v%d\n"):format(n)
end)
text("lets without types", scalar, "float32", function(n)
  return "  let %f = fn (%a) {\n    let %v0 = %a;\n" .. repeated(n, function(i)
    return ("    let %%v%d = tanh(%%v%d);\n"):format(i, i - 1)
  end) .. ("    %%v%d\n  };\n  %%f(%%x)\n"):format(n)
end)
text("lets of variables", scalar, "float32", function(n)
  return "  let %v0 = tanh(%x);\n" .. repeated(n, function(i)
    return ("  let %%v%d = %%v%d;\n"):format(i, i - 1)
  end) .. ("  %%v%d\n"):format(n)
end)
add("lets inside of values", function(n)
  local x = pl.var("x", "float32")
  local body = x
  for _ = 1, n do
    local v = pl.var("v", "float32")
    body = pl.op.tanh(pl.let(v, pl.op.add(body, x), pl.op.add(v, v)))
  end
  return pl.module { main = pl.func({ x }, body) }
end)
text("lets of functions", scalar, "float32", function(n)
  return repeated(n, function(i)
    return ("  let %%v%d = fn (%%a: float32) -> float32 { %s(%%a) };\n"):format(i,
      i == 1 and "tanh" or "%v" .. i - 1)
  end) .. ("  %%v%d(%%x)\n"):format(n)
end)
text("references", scalar, "float32", function(n)
  return "  let %r = ref(%x);\n" .. repeated(n, function(i)
    return ("  let %%u%d = ref_write(%%r, add(ref_read(%%r), %%x));\n"):format(i)
  end) .. "  ref_read(%r)\n"
end)

-- ------------------------------------------------------------------- scopes

local branch = "%p: bool, %x: float32"

text("branches in a row", branch, "float32", function(n)
  return repeated(n, function(i)
    local last = i == 1 and "%x" or "%v" .. i - 1
    return ("  let %%v%d = if (%%p) { tanh(%s) } else { exp(%s) };\n"):format(i, last, last)
  end) .. ("  %%v%d\n"):format(n)
end)
add("branches in branches", function(n)
  local p, x = pl.var("p", "bool"), pl.var("x", "float32")
  local body = x
  for _ = 1, n do body = pl.if_(p, pl.op.tanh(body), x) end
  return pl.module { main = pl.func({ p, x }, body) }
end)
add("branches that share", function(n)
  local p, x = pl.var("p", "bool"), pl.var("x", "float32")
  local body = x
  for _ = 1, n do
    local shared = pl.op.tanh(body)
    body = pl.if_(p, pl.op.exp(shared), shared)
  end
  return pl.module { main = pl.func({ p, x }, body) }
end)
text("branches that are known", scalar, "float32", function(n)
  return repeated(n, function(i)
    local last = i == 1 and "%x" or "%v" .. i - 1
    return ("  let %%v%d = if (True) { tanh(%s) } else { exp(%s) };\n"):format(i, last, last)
  end) .. ("  %%v%d\n"):format(n)
end)
add("functions in functions", function(n)
  local x = pl.var("x", "float32")
  local body = x
  for _ = 1, n do
    local a = pl.var("a", "float32")
    body = pl.func({ a }, pl.op.add(a, body))(x)
  end
  return pl.module { main = pl.func({ x }, body) }
end)
add("functions in a row", function(n)
  local x = pl.var("x", "float32")
  local body = x
  for _ = 1, n do
    local a = pl.var("a", "float32")
    body = pl.func({ a }, pl.op.multiply(a, x))(body)
  end
  return pl.module { main = pl.func({ x }, body) }
end)
add("matches in matches", function(n)
  local x = pl.var("x", "float32")
  local body = x
  for _ = 1, n do
    local a, b = pl.var("a", "float32"), pl.var("b", "float32")
    body = pl.match(pl.tuple { x, body }, { { { a, b }, pl.op.add(a, b) } })
  end
  return pl.module { main = pl.func({ x }, body) }
end)
text("matches in a row", "%x: float32, %q: T", "float32", function(n)
  return repeated(n, function(i)
    return ("  let %%v%d = match (%%q) { C(%%a) => add(%%a, %s), D => %%x };\n"):format(i,
      i == 1 and "%x" or "%v" .. i - 1)
  end) .. ("  %%v%d\n"):format(n), "type T {\n  C(float32),\n  D,\n}\n"
end)

-- --------------------------------------------------------- type definitions

text("types", scalar, "float32", function(n)
  return "  %x\n", repeated(n, function(i)
    return ("type T%d {\n  C%d(float32),\n  D%d,\n}\n"):format(i, i, i)
  end)
end)
text("types of types", scalar, "float32", function(n)
  return "  %x\n", "type T0 { D0, }\n" .. repeated(n, function(i)
    return ("type T%d {\n  C%d(T%d),\n  D%d,\n}\n"):format(i, i, i - 1, i)
  end)
end)
text("types that are used", scalar, "float32", function(n)
  return repeated(n, function(i)
    return ("  let %%v%d = match (C%d(%s)) { C%d(%%a%d) => add(%%a%d, 0f), D%d => %%x };\n")
      :format(i, i, i == 1 and "%x" or "%v" .. i - 1, i, i, i, i)
  end) .. ("  %%v%d\n"):format(n), repeated(n, function(i)
    return ("type T%d {\n  C%d(float32),\n  D%d,\n}\n"):format(i, i, i)
  end)
end)
text("types of functions", scalar, "float32", function(n)
  return "  %x\n", repeated(n, function(i)
    return ("type T%d {\n  C%d(float32),\n  D%d,\n}\n"):format(i, i, i)
  end) .. repeated(n, function(i)
    return ("def @f%d(%%a: T%d) -> float32 { match (%%a) { C%d(%%b) => %%b, D%d => 0f } }\n")
      :format(i, i, i, i)
  end)
end)
text("constructors", "%q: T, %x: float32", "float32", function(n)
  return "  match (%q) {\n" .. repeated(n, function(i)
    return ("    C%d(%%a%d) => add(%%a%d, %%x),\n"):format(i, i, i)
  end) .. "  }\n", "type T {\n" .. repeated(n, function(i)
    return ("  C%d(float32),\n"):format(i)
  end) .. "}\n"
end)
text("constructor values", scalar, "T", function(n)
  return repeated(n, function(i) return ("  let %%v%d = C%d(%%x);\n"):format(i, i) end)
    .. "  %v1\n", "type T {\n" .. repeated(n, function(i)
      return ("  C%d(float32),\n"):format(i)
    end) .. "}\n"
end)

-- ---------------------------------------------------------------- constants

text("constants, scalars", scalar, "float32", function(n)
  return repeated(n, function(i)
    return ("  %%%d = multiply(%s, %d.5f);\n"):format(i - 1, i == 1 and "%x" or "%" .. i - 2, i)
  end) .. ("  tanh(%%%d)\n"):format(n - 1)
end)
add("constants, tensors", function(n)
  local x = pl.var("x", "Tensor[(4), float32]")
  local body = x
  for i = 1, n do
    body = pl.op.tanh(pl.op.add(body, pl.const(pl.tensor { i + 0.5, 1, 2, 3 })))
  end
  return pl.module { main = pl.func({ x }, body) }
end)
add("constants of 2 KiB", function(n)
  local x = pl.var("x", "Tensor[(512), float32]")
  local body, zeros = x, {}
  for i = 1, 512 do zeros[i] = i end
  for i = 1, n // 16 do
    zeros[1] = i + 0.5
    body = pl.op.tanh(pl.op.add(body, pl.const(pl.tensor(zeros))))
  end
  return pl.module { main = pl.func({ x }, body) }
end)
add("constants that fold", function(n)
  local x = pl.var("x", "Tensor[(4), float32]")
  local sum = pl.const(pl.tensor { 0.5, 1, 2, 3 })
  for i = 1, n do sum = pl.op.add(sum, pl.const(pl.tensor { 1 / i, 1, 2, 3 })) end
  return pl.module { main = pl.func({ x }, pl.op.add(x, sum)) }
end)
add("constants that are kept", function(n)
  local fields = {}
  for i = 1, n do fields[i] = pl.const(pl.tensor { i + 0.5, 1, 2, 3 }) end
  return pl.module { main = pl.func({}, pl.tuple(fields)) }
end)

-- --------------------------------------------------------- nodes of one scope

local function graph(name, make)
  add(name, function(n)
    local x = pl.var("x", "Tensor[(4), float32]")
    return pl.module { main = pl.func({ x }, make(n, x)) }
  end)
end

graph("calls", function(n, x)
  for i = 1, n do x = i % 2 == 0 and pl.op.tanh(x) or pl.op.add(x, 1) end
  return x
end)
graph("calls that do nothing", function(n, x)
  for _ = 1, n do x = pl.op.reshape(x, { newshape = { 4 } }) end
  return x
end)
graph("calls that are the same", function(n, x)
  local sum = x
  for _ = 1, n do sum = pl.op.add(sum, pl.op.tanh(x)) end
  return sum
end)
graph("calls of one value", function(n, x)
  local fields, y = {}, pl.op.exp(x)
  for i = 1, n do fields[i] = pl.op.add(y, i) end
  return pl.tuple(fields)
end)
graph("ladders", function(n, x)
  local a, b = pl.op.tanh(x), pl.op.exp(x)
  for _ = 1, n do a, b = pl.op.add(a, b), pl.op.multiply(a, b) end
  return pl.op.add(a, b)
end)
-- Layers of three operators of one value, which CombineParallel... passes look for.
local function layers(name, shape, weight, combine)
  add(name, function(n)
    local x = pl.var("x", shape)
    local params, body = { x }, x
    for _ = 1, n // 4 do
      local parts = {}
      for i = 1, 3 do
        local w = pl.var("w", weight)
        params[#params + 1], parts[i] = w, combine(body, w)
      end
      body = pl.op.add(pl.op.add(parts[1], parts[2]), parts[3])
    end
    return pl.module { main = pl.func(params, body) }
  end)
end

layers("layers of dense", "Tensor[(2, 4), float32]", "Tensor[(4, 4), float32]",
  function(x, w) return pl.op.nn.dense(x, w) end)
layers("layers of batch_matmul", "Tensor[(1, 4, 4), float32]", "Tensor[(1, 4, 4), float32]",
  function(x, w) return pl.op.nn.batch_matmul(x, w) end)
layers("layers of conv2d", "Tensor[(1, 4, 2, 2), float32]", "Tensor[(4, 4, 1, 1), float32]",
  function(x, w) return pl.op.nn.conv2d(x, w, { kernel_size = { 1, 1 }, channels = 4 }) end)
graph("transposes", function(n)
  local x = pl.var("y", "Tensor[(2, 3), float32]")
  local body = x
  for _ = 1, n do body = pl.op.tanh(pl.op.transpose(body, { axes = { 1, 0 } })) end
  return pl.func({ x }, body)
end)
add("parameters", function(n)
  local params, sum = {}, nil
  for i = 1, n do
    params[i] = pl.var("x" .. i, "float32")
    sum = sum and pl.op.add(sum, params[i]) or params[i]
  end
  return pl.module { main = pl.func(params, sum) }
end)
graph("tuples in tuples", function(n, x)
  for _ = 1, n do x = pl.tuple({ x }):get(0) end
  return x
end)
add("symbolic dims", function(n)
  local params, fields = {}, {}
  for i = 1, n do
    params[i] = pl.var("x" .. i, ("Tensor[(D%d), float32]"):format(i))
    fields[i] = pl.op.tanh(params[i])
  end
  return pl.module { main = pl.func(params, pl.tuple(fields)) }
end)
add("variables of one name", function(n)
  local x = pl.var("x", "float32")
  local vars = { [0] = x }
  for i = 1, n do vars[i] = pl.var("v", "float32") end
  local body = vars[n]
  for i = n, 1, -1 do body = pl.let(vars[i], pl.op.tanh(vars[i - 1]), body) end
  return pl.module { main = pl.func({ x }, body) }
end)

for _, row in ipairs(require "loop_programs") do rows[#rows + 1] = row end

-- What @main can be run on: a list, or nil when it takes
-- something else.
function rows.arguments(mod)
  if mod.functions.main.kind ~= "Function" then return nil end
  local args, number, vector = {}, pl.type "float32", pl.type "Tensor[(4), float32]"
  for i, param in ipairs(mod.functions.main.params) do
    local type = param.type
    if type == number then args[i] = 0.5
    elseif type == pl.type "bool" then args[i] = pl.tensor(true, "bool")
    elseif type == vector then args[i] = pl.tensor { 0.5, 1.5, 2.5, 3.5 }
    else return nil end
  end
  return args
end

return rows
