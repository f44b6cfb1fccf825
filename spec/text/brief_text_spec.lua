-- Text without weights: tostring(mod), the instruments and `fmt` of ONNX models leave the
-- elements of large constants out; mod:text() and `fmt --full` do not.

local pl = require "perilune"
local command = require "spec.cli.command"

local function model(value)
  local weights = {}
  for i = 1, 65 do weights[i] = value * i end
  local x = pl.var("x", "Tensor[(65), float32]")
  local small = pl.const(pl.tensor({ 1, 2, 3 }, "float32"))
  local first = pl.op.multiply(x, pl.const(pl.tensor(weights, "float32")))
  return pl.module { main = pl.func({ x }, pl.op.concatenate(pl.tuple { first, small },
    { axis = 0 })) }
end

describe("brief text", function()
  it("has dtype, shape and a hash in place of more than 64 elements", function()
    local text = tostring(model(1))
    assert.matches('{"dtype": "float32", "shape": %[65%], "omitted": "%x+"}', text)
    assert.matches("meta[relay.Constant][1]", text, 1, true)
    assert.equal(text, tostring(model(1)))
    assert.are_not.equal(text, tostring(model(2)))
  end)

  it("has the elements of constants of 64 elements", function()
    local elements = {}
    for i = 1, 64 do elements[i] = i end
    local x = pl.var("x", "Tensor[(64), float32]")
    local mod = pl.module { main = pl.func({ x },
      pl.op.add(x, pl.const(pl.tensor(elements, "float32")))) }
    assert.equal(mod:text(), tostring(mod))
    assert.is_true(pl.equal(mod, assert(pl.parse(tostring(mod)))))
  end)

  it("is refused by the parser, which says once how to get all of it", function()
    local mod, diag = pl.parse(tostring(model(1)), "brief.relay")
    assert.is_nil(mod)
    assert.equal("format", diag.code)
    assert.matches("mod:text%(%) and 'perilune fmt %-%-full' give the complete text", diag.message)
    assert.same({ "brief.relay", 0 }, { diag.span.source, #diag.notes })
    assert.matches('"dtype": "float32", "shape": [65]', diag.span.line, 1, true)
  end)

  it("shows a splat by its one element, which reads back", function()
    local x = pl.var("x", "Tensor[(1000), float32]")
    local mod = pl.module { main = pl.func({ x },
      pl.op.add(x, pl.const(pl.tensor.full(7, { 1000 }, "float32")))) }
    assert.matches('"shape": [1000], "splat": ', tostring(mod), 1, true)
    assert.is_true(pl.equal(mod, assert(pl.parse(tostring(mod))), { contents = true }))
  end)

  it("is what instruments print", function()
    local mod, told, dumped = model(1), {}, command.folder()
    local function say(text) told[#told + 1] = text end
    pl.passes.Change = { kind = "module", run = function() return model(2) end }
    local watch = { pl.instruments.print_before(nil, say), pl.instruments.print_after(nil, say),
      pl.instruments.print_after(nil, say, { full = true }), pl.instruments.diff { write = say },
      pl.instruments.dump(dumped) }
    pl.with(pl.context { instruments = watch }, pl.passes.Change(), mod)
    assert.equal("-- before Change\n" .. tostring(mod), told[1])
    assert.equal("-- after Change\n" .. tostring(model(2)), told[2])
    assert.equal("-- after Change\n" .. model(2):text(), told[3])
    assert.equal(tostring(mod) .. "\n", command.read(dumped .. "/000_input.relay"))
    os.execute("rm -r " .. dumped)
    pl.passes.Change = nil -- another spec may run all passes
  end)

  it("shows in a diff which constants are others, not how they are numbered", function()
    local diff = require "perilune.text_diff"
    local before, after = model(1), model(2)
    local text = diff(before, after)
    local _, gone = text:gsub("\n%-", "")
    local _, come = text:gsub("\n%+", "")
    assert.same({ 1, 1 }, { gone, come })
    assert.matches("%-.-meta%[relay.Constant%]%[%x+%]", text)
    local x = pl.var("x", "Tensor[(65), float32]")
    local function const(value) return pl.const(pl.tensor({ value }, "float32")) end
    local two = pl.func({ x }, pl.tuple { x + const(5), x * const(6) })
    local one = pl.func({ x }, pl.tuple { x, x * const(6) })
    text = diff(pl.module { main = two }, pl.module { main = one })
    _, gone = text:gsub("\n%-", "")
    assert.equal(2, gone) -- the sum and the result, not the product
  end)
end)

describe("complete text", function()
  it("reads back equal: modules, functions and expressions", function()
    local mod = model(1)
    pl.assert_equal(mod, assert(pl.parse(mod:text())), { contents = true })
    local fn = mod.functions.main
    local again = assert(pl.parse_expr(fn:text()))
    assert.equal(fn:text(), again:text())
    assert.is_true(pl.equal(fn, again))
    local sum = pl.op.add(pl.const(pl.tensor({ 1, 2 }, "int64")), pl.const(pl.tensor({ 3, 4 },
      "int64")))
    assert.is_true(pl.equal(sum, assert(pl.parse_expr(sum:text()))))
  end)

  it("takes options, and says which there are none of", function()
    local mod = model(1)
    assert.equal(tostring(mod), mod:text { constants = "brief" })
    assert.equal(tostring(mod.functions.main), mod.functions.main:text { constants = "brief" })
    local sum = pl.op.add(pl.const(pl.tensor({ 1, 2 }, "int64")), pl.const(pl.tensor({ 3, 4 },
      "int64")))
    assert.is_true(pl.equal(sum, assert(pl.parse_expr(tostring(sum)))))
    assert.is_nil(sum:text { metadata = false }:find("#[metadata]", 1, true))
    assert.equal(mod:text():sub(1, 20) .. "...", mod:text { limit = 20 })
    assert.error_matches(function() mod:text { constant = "brief" } end,
      "text has no option 'constant'; did you mean 'constants'?", 1, true)
    assert.error_matches(function() mod:text { constants = "breif" } end,
      "not 'breif'; did you mean 'brief'?", 1, true)
    assert.error_matches(function() mod:text { limit = "far" } end,
      "option 'limit' is a number, got a string", 1, true)
    assert.error_matches(function() mod:text(7) end, "a table of options expected, got number", 1,
      true)
  end)
end)

describe("text of models in files", function()
  local zoo = require "perilune.zoo.model"
  local folder = command.folder()
  local function path(name) return folder .. "/" .. name end
  teardown(function() os.execute("rm -r " .. folder) end)

  local function save(name, size)
    local m = zoo.new { name = "weights" }
    local x = m:input("x", "float32", { size })
    local w = m:initializer("w", "float32", { size }, zoo.random(size, 1))
    m:output(m:node("Add", { x, w }, nil, "y"), "float32", { size })
    assert(m:save(path(name)))
    return path(name)
  end

  it("has a hash of what lies in a model's file, whatever the path", function()
    local mod = assert(pl.load(save("small.onnx", 100)))
    os.execute(("cp %s %s"):format(path "small.onnx", path "copy.onnx"))
    assert.matches('"omitted": "%x+"', tostring(mod))
    assert.equal(tostring(mod), tostring(assert(pl.load(path "copy.onnx"))))
  end)

  it("has the place of more than 1 MiB, which is not read for it", function()
    local mod = assert(pl.load(save("large.onnx", 300000)))
    assert.matches('"shape": %[300000%], "omitted": true, "file": "large.onnx", "offset": %d+, '
      .. '"length": 1200000}', tostring(mod))
    assert.is_nil((pl.parse(tostring(mod))))
    pl.assert_equal(mod, assert(pl.parse(mod:text())))
  end)

  it("has the place of external data, which need not be there", function()
    local mod = assert(pl.load(save("whole.onnx", 100)))
    assert(pl.save(mod, path "external.onnx", { external_data = true, external_threshold = 1 }))
    mod = assert(pl.load(path "external.onnx"))
    local text = tostring(mod)
    assert.matches('"omitted": true, "file": "external.onnx.data", "offset": 0, "length": 400}',
      text)
    os.remove(path "external.onnx.data")
    assert.equal(text, tostring(assert(pl.load(path "external.onnx"))))
  end)

  it("is brief in `fmt` of ONNX, complete with --full and of Relay text", function()
    local input = save("fmt.onnx", 100)
    local mod = assert(pl.load(input))
    local status, brief = command.run(folder, "fmt " .. input)
    assert.same({ 0, tostring(mod) }, { status, brief })
    local _, full = command.run(folder, "fmt --full " .. input)
    assert.equal(mod:text(), full)
    local text = command.write(path "full.relay", full)
    local _, again = command.run(folder, "fmt " .. text)
    assert.equal(full, again)
    local wrong, _, err = command.run(folder, "fmt " .. command.write(path "b.relay", brief))
    assert.equal(1, wrong)
    assert.matches("b.relay:%d+:%d+: .*'perilune fmt %-%-full'", err)
    status = command.run(folder, ("opt %s -o %s -p SimplifyExpr"):format(input, path "o.relay"))
    assert.equal(0, status)
    assert(pl.load(path "o.relay"))
  end)
end)

describe("a constant inside of an object of TVM", function()
  it("is left out of brief text as well", function()
    local array = model(1):text():match '"b64ndarrays": %[\n    ("[^"]+")'
    local text = [[
#[version = "0.0.5"]
def @main(%x: int32, kept=meta[Array][0]) { %x }

#[metadata]
{
  "root": 1,
  "nodes": [
    { "type_key": "" },
    { "type_key": "Map", "keys": ["Array"], "data": [2] },
    { "type_key": "Array", "data": [3] },
    { "type_key": "Array", "data": [4] },
    { "type_key": "relay.Constant", "attrs": { "_checked_type_": "0", "data": "0", "span": "0",
      "virtual_device_": "0" } }
  ],
  "b64ndarrays": [ARRAY],
  "attrs": {"tvm_version": "0.14.0"}
}]]
    local mod = assert(pl.parse((text:gsub("ARRAY", array))))
    assert.matches(array, mod:text(), 1, true)
    assert.matches('"b64ndarrays": %[\n    {"dtype": "float32", "shape": %[65%], "omitted": "%x+"}',
      tostring(mod))
  end)
end)
