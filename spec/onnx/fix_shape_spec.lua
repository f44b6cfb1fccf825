-- mod:fix_shape and --shape: sizes for the dims of inputs, with names and without.

local pl = require "perilune"
local command = require "spec.cli.command"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end
local function run(arguments) return command.run(folder, arguments) end

local function module_of(...)
  local params = { ... }
  local results = {}
  for i, x in ipairs(params) do results[i] = pl.op.nn.relu(x) end
  return pl.module { main = pl.func(params, pl.tuple(results)) }
end

local function var(name, dims)
  return pl.var(name, ("Tensor[%s, float32]"):format(dims and "(" .. dims .. ")" or "*"))
end

local mod = module_of(var("x", "N, ?, 2*N+1, W"), var("y", "N, 3"), var "z")

local function results(module) return tostring(module.main.ret_type) end

local function refused(text, ...)
  local none, diag = mod:fix_shape(...)
  assert.is_nil(none)
  assert.matches(text, diag.message, 1, true)
  return diag.code
end

describe("mod:fix_shape", function()
  it("gives numbers to dims with names, without, and made of names", function()
    assert.equal("(Tensor[(3, 4, 7, 2), float32], Tensor[(3, 3), float32], Tensor[*, float32])",
      results(assert(mod:fix_shape("x", { 3, 4, 7, 2 }))))
    assert.equal("(Tensor[(3, ?, 7, W), float32], Tensor[(3, 3), float32], Tensor[*, float32])",
      results(assert(mod:fix_shape("x", { "?", "?", 7, "?" }))))
    assert.equal("(Tensor[(0, ?, 1, W), float32], Tensor[(0, 3), float32], Tensor[*, float32])",
      results(assert(mod:fix_shape("y", { 0, 3 }))))
    assert.equal("(Tensor[(N, ?, 2*N+1, W), float32], Tensor[(N, 3), float32], "
      .. "Tensor[(2, 5), float32])", results(assert(mod:fix_shape("z", { 2, 5 }))))
    assert.equal("(Tensor[(N, ?, 2*N+1, W), float32], Tensor[(N, 3), float32], float32)",
      results(assert(mod:fix_shape("z", {}))))
  end)

  it("leaves the module as it was, and gives another that is well-formed", function()
    local before = tostring(mod)
    local fixed = assert(mod:fix_shape("x", { 3, 4, 7, 2 }))
    assert(pl.verify(fixed))
    assert.equal(before, tostring(mod))
    local x = pl.tensor.random({ 3, 4, 7, 2 }, "float32")
    local y = pl.tensor.random({ 3, 3 }, "float32")
    local a, b = pl.eval(fixed, x, y, y), pl.eval(mod, x, y, y)
    assert.is_true(a:equal(b))
  end)

  it("refuses what cannot be", function()
    assert.equal("name", refused("no input is called 'q'", "q", { 1 }))
    assert.equal("type", refused("it has 2 dimensions, not 3", "y", { 1, 2, 3 }))
    refused("input 'y' is Tensor[(2, 3), float32]: dimension 1 cannot be 4", "y", { 2, 4 })
    refused("dimension 2 cannot be 8", "x", { 3, 1, 8, 1 })
    refused("dimension 0 cannot be -2", "y", { -2, 3 })
    refused("dimension 0 cannot be -1", "z", { "?" })
    assert.error_matches(function() mod:fix_shape("x", { "N" }) end, "dims are integers, or '?'")
  end)

  it("reaches calls of other functions", function()
    local program = assert(pl.parse [[
      #[version = "0.0.5"]
      def @main(%x: Tensor[(?, 3), float32]) { @twice(%x) }
      def @twice(%x: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] { add(%x, %x) }
    ]])
    local fixed = assert(program:fix_shape("x", { 2, 3 }))
    assert(pl.verify(fixed))
    assert.equal("Tensor[(2, 3), float32]", tostring(fixed.main.params[1].type))
  end)
end)

-- A valid window of 5 over an image whose dims have no names.
local conv = command.write(path "conv.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(?, ?, ?, ?), float32], %w: Tensor[(4, 3, 5, 5), float32]) {
  nn.relu(nn.relu(nn.conv2d(%x, %w, padding=[0, 0, 0, 0], kernel_size=[5, 5])))
}
]])

-- No size of x fits.
local never = command.write(path "never.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(7), float32]) {
  add(reshape(%x, newshape=[-1]), multiply(%y, 1f))
}
]])

describe("--shape", function()
  it("fixes what is written", function()
    local out = path "out.relay"
    assert.equal(0, (run(("opt %s -o %s --shape x=1,3,9,9"):format(conv, out))))
    assert.matches("%%x: Tensor%[%(1, 3, 9, 9%), float32%]", command.read(out))
    assert.matches("Tensor[(1, 4, 5, 5), float32] {", command.read(out), 1, true)
    assert.equal(0, (run(("opt %s -o %s --shape 'x=[?, 3, 9, ?]'"):format(conv, out))))
    assert.matches("%%x: Tensor%[%(%?, 3, 9, %?%), float32%]", command.read(out))
  end)

  it("tells run and check what to draw", function()
    local status, out, err = run(("run %s --input random --shape x=2,3,6,7"):format(conv))
    assert.equal(0, status, err)
    assert.matches("Tensor[(2, 4, 2, 3), float32]", out, 1, true)
    assert.equal(1, (run(("check %s %s --shape x=2,3,6,7 --rounds 2"):format(conv, never))))
    status, out, err = run(("check %s %s --shape x=2,3,6,7 --rounds 2"):format(conv, conv))
    assert.same({ 0, "equal in 2 of 2 rounds, from seed 1\n" }, { status, out }, err)
  end)

  it("is checked", function()
    for text, message in pairs {
      ["x"] = "--shape x: expected INPUT=SIZES, as in --shape x=1,3,224,224",
      ["x=1,a"] = "--shape x=1,a: 'a' is not a size",
      ["x=1,,2"] = "'' is not a size",
    } do
      local status, _, err = run(("opt %s -o %s --shape %s"):format(conv, path "o.relay", text))
      assert.equal(2, status)
      assert.matches(message, err, 1, true)
    end
    local status, _, err = run(("opt %s -o %s --shape X=1"):format(conv, path "o.relay"))
    assert.equal(1, status)
    assert.matches("--shape X=1: no input is called 'X'; did you mean 'x'?", err, 1, true)
    status, _, err = run(("check %s %s --shape w=4,3,5,6"):format(conv, conv))
    assert.equal(1, status)
    assert.matches("cannot have the shape (4, 3, 5, 6)", err, 1, true)
    status, _, err = run(("run %s --input random --shape q=1"):format(conv))
    assert.equal(1, status)
    assert.matches("no input is called 'q'", err, 1, true)
  end)
end)

describe("inputs that nobody names", function()
  it("have sizes that the operators admit, in run and in check", function()
    local status, out, err = run(("run %s --input random"):format(conv))
    assert.equal(0, status, err)
    assert.matches("Tensor", out)
    status, out, err = run(("check %s %s"):format(conv, conv))
    assert.same({ 0, "equal in 6 of 6 rounds, from seed 1\n" }, { status, out }, err)
    status, out, err = run(("opt %s -o %s --check --oracle"):format(conv, path "o.relay"))
    assert.equal(0, status, err)
    assert.matches("equal in 6 of 6 rounds, from seed 1\n", out)
  end)

  it("are no reason to say equal when none fit", function()
    local out = path "never_out.relay"
    local questions = {
      ("check %s %s"):format(never, never), ("opt %s -o %s --check"):format(never, out),
      ("opt %s -o %s --oracle"):format(never, out), ("bisect %s --oracle"):format(never),
      ("reduce %s --oracle -o %s"):format(never, out),
    }
    for _, question in ipairs(questions) do
      local status, shown, err = run(question)
      assert.equal(1, status, question)
      assert.matches("no round could run: ", err, 1, true)
      assert.matches("no sizes fit: 'add'", err, 1, true)
      assert.matches("--shape INPUT=D0,D1", err, 1, true)
      assert.is_nil(shown:find "equal")
      assert.is_nil(io.open(out))
    end
  end)

  it("are no reason to pass over a model without kernels either", function()
    local opaque = command.write(path "opaque.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {
  multiply(nn.sparse_transpose(%x, %x, %x).0, 1f)
}
]])
    local status, _, err = run(("opt %s -o %s --oracle"):format(opaque, path "o2.relay"))
    assert.equal(1, status)
    assert.matches("pass 'SimplifyExpr' cannot be checked by the oracle: no round could run", err,
      1, true)
    assert.is_nil(io.open(path "o2.relay"))
  end)
end)

describe("--data", function()
  local wrong = command.write(path "wrong.lua", [[
    local pl = require "perilune"
    return pl.function_pass { name = "Clip", run = pl.mutator { Call = function(call)
      if call.op.name == "nn.relu" then return pl.op.minimum(pl.op.nn.relu(call.args[1]), 5000) end
    end } }]])
  local x = var("x", "N, 3")
  local net = pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
  local model, data = path "net.onnx", path "test_data_set_0"
  assert(pl.onnx.save(net, model))
  os.execute(("mkdir -p %s %s/test_data_set_1"):format(data, folder))
  for i, value in ipairs { 1, 9000 } do
    assert(pl.onnx.save_value(pl.tensor({ { value, -1, 2 } }, "float32"),
      ("%s/test_data_set_%d/input_0.pb"):format(folder, i - 1), x.type, "x"))
  end

  it("finds what made-up inputs do not tell, in each command", function()
    local out = path "clipped.onnx"
    assert.equal(0, (run(("opt %s -o %s -p %s --check --oracle"):format(model, out, wrong))))
    for _, each in ipairs { "--check", "--oracle" } do
      local status, _, err = run(("opt %s -o %s.not -p %s %s --data %s"):format(model, out, wrong,
        each, folder))
      assert.equal(1, status)
      assert.matches("round 2 %(data set 2, N=1%): result 1[^:]* differs at %[0, 0%]", err)
    end
    local status, shown, err = run(("check %s %s --data %s"):format(model, out, data))
    assert.same({ 0, "equal in 1 of 1 rounds, on 1 data set\n" }, { status, shown }, err)
    status, shown = run(("check %s %s --data %s --rounds 2"):format(model, out, data))
    assert.same({ 0, "equal in 3 of 3 rounds, on 1 data set and from seed 1\n" },
      { status, shown })
    status = run(("check %s %s --data %s"):format(model, out, folder))
    assert.equal(1, status)
    status, shown, err = run(("bisect %s -p %s --oracle --data %s"):format(model, wrong, folder))
    assert.equal(0, status, err)
    assert.matches("^pass 'Clip' breaks it", shown)
    status, shown, err = run(("reduce %s -p %s --oracle --data %s -o %s"):format(model, wrong,
      folder, path "small.onnx"))
    assert.equal(0, status, err)
    assert.matches("differs at", shown)
  end)

  it("beside a model is where the search for sizes begins", function()
    local v = var("v", "?, ?")
    local folder_of = path "example"
    local function save(name, body)
      assert(pl.onnx.save(pl.module { main = pl.func({ v }, body) }, folder_of .. "/" .. name))
    end
    os.execute(("mkdir -p %s/test_data_set_0"):format(folder_of))
    local flat = pl.op.reshape(v, pl.const(pl.tensor { 21 }))
    save("model.onnx", flat)
    save("other.onnx", flat + 1)
    assert(pl.onnx.save_value(pl.tensor.random({ 7, 3 }, "float32"),
      folder_of .. "/test_data_set_0/input_0.pb", v.type, "v"))
    local status, _, err = run(("check %s/model.onnx %s/other.onnx"):format(folder_of, folder_of))
    assert.equal(1, status)
    assert.matches("v=(7, 3)", err, 1, true)
  end)

  it("is not of another shape than the one that is fixed", function()
    local status, _, err = run(("run %s --data %s --shape x=2,3"):format(model, data))
    assert.equal(1, status)
    assert.matches("x", err, 1, true)
    assert.equal(0, (run(("run %s --data %s --shape x=1,3"):format(model, data))))
    assert.equal(1, (run(("run %s --data %s --dim N=2"):format(model, data))))
  end)

  it("says what is missing", function()
    local status, _, err = run(("check %s %s --data %s/none"):format(model, model, folder))
    assert.equal(1, status)
    assert.matches("--data ", err, 1, true)
    os.execute(("mkdir -p %s/hollow"):format(folder))
    status, _, err = run(("check %s %s --data %s/hollow"):format(model, model, folder))
    assert.equal(1, status)
    assert.matches("hollow: there is neither input_0.pb nor test_data_set_0", err, 1, true)
  end)
end)
