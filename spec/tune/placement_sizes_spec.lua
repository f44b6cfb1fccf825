-- Placement of functions with symbolic sizes and of those whose constants decide about shapes; its
-- budget; what the command refuses before anything is measured.

local pl = require "perilune"

local function program()
  local x = pl.var("x", "Tensor[(N, 8), float32]")
  local w = pl.const(pl.tensor.random({ 8, 8 }, "float32"))
  local y = pl.op.tanh(pl.op.nn.dense(x, w))
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(pl.op.exp(y))) }
end

-- Seconds of a part: the compiler's are less.
local function of_compiler(_, backend) return backend == "c" and 1e-3 or 2e-3 end

local function message_of(options)
  options.mod, options.backends = options.mod or program(), options.backends or { "evaluator" }
  local ok, err = pcall(pl.tune.placement, options)
  assert.is_false(ok)
  return tostring(err)
end

describe("placement of symbolic sizes", function()
  it("needs sizes to measure with, and keeps the symbols", function()
    local message = message_of {}
    assert.truthy(message:find("the size 'N' of the input 'x' is open", 1, true), message)
    assert.truthy(message:find("dims = { N = 1 }", 1, true), message)
    local sizes = {}
    local result = pl.tune.placement { mod = program(), backends = { "evaluator", "c" },
      dims = { N = 3 }, boundary = false, measure = function(part, backend)
        for _, param in ipairs(part.functions.main.params) do
          sizes[tostring(param.type)] = true
        end
        return of_compiler(part, backend)
      end }
    assert.same({ ["Tensor[(3, 8), float32]"] = true }, sizes)
    assert.equal("Tensor[(N, 8), float32]", tostring(result.mod.functions.main.params[1].type))
    local text = result.mod:text()
    assert.truthy(text:find('Compiler="c"', 1, true), text)
    assert(pl.check(program(), result.mod))
  end)

  it("measures them", function()
    local result = pl.tune.placement { mod = program(), backends = { "evaluator" },
      dims = { N = 2 }, runner = pl.tune.runner { pairs = 1, warm_up = 0 } }
    assert.same({}, result.reasons)
    assert.is_true(result.cost > 0)
    assert.is_true(pl.equal(program().functions.main, result.mod.functions.main)
      or result.mod:text() == program():text())
  end)

  it("refuses wrong sizes", function()
    assert.truthy(message_of { dims = { M = 1 } }:find "no dim is called .M.")
    assert.truthy(message_of { dims = { N = 1.5 } }:find "the size of 'N': an integer")
    assert.truthy(message_of { dims = 1 }:find "dims: a table expected")
  end)
end)

describe("placement", function()
  it("leaves constants that decide about shapes in the parts", function()
    local x = pl.var("x", "Tensor[(2, 6), float32]")
    local shape = pl.const(pl.tensor({ 3, 4 }, "int64"))
    local mod = pl.module { main = pl.func({ x }, pl.op.tanh(pl.op.reshape(x, shape))) }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", "c" },
      boundary = false, measure = of_compiler }
    assert.truthy(result.mod:text():find('Compiler="c"', 1, true))
    assert(pl.check(mod, result.mod))
  end)

  it("leaves what is constant to the host", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local ones = pl.op.full(pl.const(pl.tensor(1.0, "float32")), { shape = { 2 } })
    local mod = pl.module { main = pl.func({ x }, pl.op.add(x, ones)) }
    local result = pl.tune.placement { mod = mod, backends = { "evaluator", "c" },
      boundary = false, measure = of_compiler }
    assert.equal("c", result.parts[#result.parts].backend)
    assert(pl.check(mod, result.mod))
  end)

  it("ends in its budget, the parts that take long first", function()
    local asked = {}
    local function slow(part, backend)
      local name
      for node in part.functions.main:nodes() do name = node.op and node.op.name or name end
      if backend == "c" then
        asked[#asked + 1] = name
        os.execute "sleep 0.2"
      end
      return name == "exp" and 5e-3 or 1e-3
    end
    local result = pl.tune.placement { mod = program(), backends = { "evaluator",
      { name = "c", builder = pl.tune.builder "evaluator", compiler = "c", group = 1 } },
      seconds = 0.5, dims = { N = 1 }, boundary = false, measure = slow, check = false }
    assert.equal("exp", asked[1])
    assert.is_true(result.unmeasured > 0)
    assert.equal(4, #asked + result.unmeasured)
    assert.truthy(message_of { seconds = 0 }:find "seconds: a number above 0")
  end)
end)

describe("perilune tune --placement", function()
  local folder
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir " .. folder)
    assert(pl.save(program(), folder .. "/m.relay"))
  end)
  after_each(function() os.execute("rm -rf " .. folder) end)

  local function run(options)
    local pipe = assert(io.popen(("%s/bin/perilune tune %s/m.relay %s 2>&1; echo status $?")
      :format(os.getenv "PERILUNE_BUILD" or "build", folder, (options:gsub("@", folder)))))
    local text = pipe:read "a"
    pipe:close()
    return text
  end

  it("tells before measuring what cannot be", function()
    local text = run "--placement evaluator,c -o @/o.onnx --measure-dim N=1"
    assert.truthy(text:find("the backend 'c' become functions of their own", 1, true), text)
    assert.truthy(text:find "status 2", text)
    text = run "--placement evaluator,c"
    assert.truthy(text:find("--measure-dim N=1 gives a size", 1, true), text)
    assert.truthy(text:find "status 1", text)
    assert.truthy(run "--measure-dim N=1":find "for %-%-placement")
    text = run "--placement evaluator -o @/o.relay --measure-dim N=2"
    assert.truthy(text:find "status 0", text)
    local file = assert(io.open(folder .. "/o.relay"))
    assert.truthy(file:read "a":find("Tensor[(N, 8), float32]", 1, true))
    file:close()
  end)
end)
