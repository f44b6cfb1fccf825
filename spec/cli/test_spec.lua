-- perilune test: what it says of models and the data beside them.

local command = require "spec.cli.command"
local protobuf = require "spec.onnx.protobuf"
local model = require "perilune.zoo.model"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local write = command.write

local function run(arguments) return command.run(folder, arguments) end

local function field(number, value)
  return protobuf.varint(number << 3) .. protobuf.varint(value)
end

-- TensorProto's number of a dtype, and the bytes of an element.
local elements = {
  float32 = { 1, function(v) return string.pack("<f", v) end },
  int64 = { 7, function(v) return string.pack("<i8", v) end },
  bfloat16 = { 16, function(v) return string.pack("<f", v):sub(3) end },
}

local function tensor(values, dtype, dims)
  local parts, element = {}, elements[dtype or "float32"]
  for _, d in ipairs(dims or { #values }) do parts[#parts + 1] = field(1, d) end
  parts[#parts + 1] = field(2, element[1])
  local bytes = {}
  for i, v in ipairs(values) do bytes[i] = element[2](v) end
  parts[#parts + 1] = protobuf.field(9, table.concat(bytes))
  return table.concat(parts)
end

local function add_model()
  local m = model.new { name = "sum" }
  local x, y = m:input("x", "float32", { "N" }), m:input("y", "float32", { "N" })
  m:output(m:node("Add", { x, y }, nil, "z"), "float32", { "N" })
  return m
end

-- Makes folder/NAME with a model and one set of files; returns its path.
local function case(name, m, files)
  local path = folder .. "/" .. name
  os.execute("mkdir -p " .. path .. "/test_data_set_0")
  if m then assert(m:save(path .. "/model.onnx")) end
  for file, bytes in pairs(files) do write(path .. "/test_data_set_0/" .. file .. ".pb", bytes) end
  return path
end

local good = case("good", add_model(), {
  input_0 = tensor { 1, 2, 3 }, input_1 = tensor { 10, 20, 0 / 0 },
  output_0 = tensor { 11, 22, 0 / 0 },
})
local bad = case("bad", add_model(), {
  input_0 = tensor { 1, 2, 3 }, input_1 = tensor { 1, 1, 1 }, output_0 = tensor { 2, 3.5, 5 },
})

-- The one problem of a folder that fails.
local function problem(path, options)
  local status, out, err = run("test " .. (options or "") .. " " .. path)
  assert.equal(1, status, err)
  local line, last = out:match "^([^\n]*)\n([^\n]*)\n$"
  assert.equal("0 passed, 1 failed, 0 skipped", last, out)
  return line
end

describe("perilune test", function()
  it("says how many passed, and nothing else when all did", function()
    local status, out = run("test " .. good .. "/")
    assert.equal(0, status)
    assert.equal("1 passed, 0 failed, 0 skipped\n", out)
  end)

  it("tells where a result differs first", function()
    assert.equal("FAIL " .. bad .. ": test_data_set_0: output 0 'z' at [1]: got 3, expected 3.5; "
      .. "2 of 3 elements differ, by up to 1", problem(bad))
  end)

  it("takes tolerances", function()
    assert.equal(0, (run("test --rtol 0.5 " .. bad)))
    assert.equal(0, (run("test --rtol 0 --atol 1 " .. bad)))
    assert.equal(1, (run("test --rtol 0 --atol 0.9 " .. bad)))
    assert.equal(0, (run("test --rtol 0 --atol 0.2 --scaled " .. bad)))
    local status, _, err = run("test --rtol=-1 " .. bad)
    assert.equal(2, status)
    assert.matches("'-1' is not a number of at least 0", err, 1, true)
  end)

  it("shares the work among processes and keeps the order", function()
    local list, expected = {}, {}
    for i = 1, 7 do
      list[i] = i % 2 == 0 and good or bad
    end
    for _, jobs in ipairs { 1, 3 } do
      local status, out = run(("test -j %d %s"):format(jobs, table.concat(list, " ")))
      assert.equal(1, status)
      assert.matches("3 passed, 4 failed, 0 skipped\n$", out)
      expected[#expected + 1] = out
    end
    assert.equal(expected[1], expected[2])
  end)

  it("reads folders from a file", function()
    write(folder .. "/list", good .. "\n\n" .. good .. "\n")
    local _, out = run("test --from " .. folder .. "/list")
    assert.equal("2 passed, 0 failed, 0 skipped\n", out)
  end)

  -- 256 + 1 is 256 in bfloat16: a sum that is rounded at each element ends there.
  it("rounds bfloat16 step by step, as ONNX's reference does, unless told otherwise", function()
    local m = model.new { name = "sum" }
    local x = m:input("x", "bfloat16", { 300 })
    m:output(m:node("ReduceSum", { x }, nil, "z"), "bfloat16", { 1 })
    local ones = {}
    for i = 1, 300 do ones[i] = 1 end
    local path = case("bfloat16", m, { input_0 = tensor(ones, "bfloat16"),
      output_0 = tensor({ 256 }, "bfloat16") })
    assert.same({ 0, "1 passed, 0 failed, 0 skipped\n", "" }, { run("test " .. path) })
    assert.matches("got 3e%+02, expected 256", problem(path, "--bfloat16 exact"))
  end)

  it("optimises first when told so", function()
    assert.equal(0, (run("test --opt " .. good)))
    assert.equal(0, (run("test --opt=SimplifyExpr " .. good)))
    assert.equal(0, (run("test -p 'FoldConstant' --set FoldConstant.fold=all " .. good)))
    local status, _, err = run("test --opt=SimplfyExpr " .. good)
    assert.equal(2, status)
    assert.matches("did you mean 'SimplifyExpr'", err, 1, true)
    assert.equal(2, (run("test --set FoldConstant.fold=all " .. good)))
  end)

  it("skips a model with an operator that nothing computes, and names it", function()
    local m = model.new { name = "odd" }
    local x = m:input("x", "float32", { 1 })
    m:output(m:node("NoSuchOperator", { x }, nil, "z"), "float32", { 1 })
    local path = case("odd", m, { input_0 = tensor { 1 }, output_0 = tensor { 1 } })
    local status, out = run("test " .. path)
    assert.equal(0, status)
    assert.matches("^SKIP .*/odd: no kernel for '[^\n]*NoSuchOperator'\n0 passed, 0 failed, 1 "
      .. "skipped\n$", out)
  end)

  it("compares shapes and dtypes", function()
    assert.matches("got Tensor[(1), float32], expected Tensor[(1, 1), float32]",
      problem(case("shape", add_model(), { input_0 = tensor { 1 }, input_1 = tensor { 1 },
        output_0 = tensor({ 2 }, nil, { 1, 1 }) })), 1, true)
    assert.matches("got Tensor[(1), float32], expected Tensor[(1), int64]",
      problem(case("dtype", add_model(), { input_0 = tensor { 1 }, input_1 = tensor { 1 },
        output_0 = tensor({ 2 }, "int64") })), 1, true)
  end)

  it("tells what is wrong with the inputs", function()
    assert.matches("argument 1 'x': expected Tensor[(N), float32], got Tensor[(1), int64]",
      problem(case("in_dtype", add_model(), { input_0 = tensor({ 1 }, "int64"),
        input_1 = tensor { 1 }, output_0 = tensor { 2 } })), 1, true)
    assert.matches("argument 2 'y': expected Tensor[(1), float32], got Tensor[(2), float32]",
      problem(case("in_shape", add_model(), { input_0 = tensor { 1 },
        input_1 = tensor { 1, 2 }, output_0 = tensor { 2 } })), 1, true)
  end)

  it("tells which file is missing, too many, or no tensor", function()
    local one = tensor { 1 }
    assert.matches("input_1.pb is missing: 'y'",
      problem(case("few", add_model(), { input_0 = one, output_0 = one })), 1, true)
    assert.matches("output_0.pb is missing: 'z'",
      problem(case("none", add_model(), { input_0 = one, input_1 = one })), 1, true)
    assert.matches("input_2.pb: the model has 2 inputs",
      problem(case("many", add_model(), { input_0 = one, input_1 = one, input_2 = one,
        output_0 = one })), 1, true)
    for what, bytes in pairs { empty = "", junk = "\255\255\255", cut = one:sub(1, -2) } do
      assert.matches("/input_0.pb: ", problem(case("file_" .. what, add_model(), {
        input_0 = bytes, input_1 = one, output_0 = one })), 1, true)
    end
  end)

  it("fails for a folder without a model, without data, and for none at all", function()
    assert.matches("/model.onnx is missing", problem(case("empty", nil, {})), 1, true)
    assert.matches("model.onnx is missing", problem(folder .. "/no_such"), 1, true)
    os.execute(("mkdir %s/bare && cp %s/model.onnx %s/bare"):format(folder, good, folder))
    assert.matches("there is no test_data_set_0", problem(folder .. "/bare"), 1, true)
    assert.equal(2, (run "test"))
    assert.equal(1, (run("test --from " .. folder .. "/no_list")))
  end)
end)
