-- An attribute has one name: in a script, in Relay text and in `node.attrs`. The
-- exceptions are attributes that ONNX's and Relay's form of an operator both have but
-- with different meanings: there the name tells which form a script means.

local pl = require "perilune"
local core = require "perilune.core"

local reductions = "ONNX keeps reduced axes by default, Relay drops them"
local exceptions = {
  ["sum.axes"] = reductions, ["mean.axes"] = reductions, ["max.axes"] = reductions,
  ["min.axes"] = reductions, ["prod.axes"] = reductions, ["logsumexp.axes"] = reductions,
  ["squeeze.axes"] = "its rules read the axes of expand_dims and reductions too",
  ["expand_dims.axes"] = "Relay's axis is one integer, the first of num_newaxis",
  ["strided_slice.starts"] = "the counterpart of ends",
  ["strided_slice.ends"] = "`end` is a reserved word of Lua",
  ["cast.to"] = "ONNX gives a number, Relay the name of a dtype",
  ["nn.dropout.ratio"] = "Relay's form always has two results",
  ["reverse_sequence.time_axis"] = "the defaults differ",
  ["scatter_nd.reduction"] = "the modes differ; Relay's indices are transposed",
}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- The names of a schema such as "axis:int=1 axes:ints".
local function names_of(schema)
  local names = {}
  for name in (schema or ""):gmatch "([%w_]+):" do names[name] = true end
  return names
end

-- Each attribute of relay.def: operator, name in text, name in the core.
local function each_attribute(visit)
  local text = read("engine/op/relay/relay.def"):gsub("/%*.-%*/", "")
  for operator, rest in text:gmatch 'RELAY[_%u]*%([%w_]+,%s*"([^"]+)"([^\n]*)' do
    for word in (rest:match '"([^"]*)"' or ""):gmatch "%S+" do
      local printed, name = word:match "^([%w_]+)>([%w_]+):"
      printed = printed or word:match "^([%w_]+):"
      if printed then visit(operator, printed, name or printed) end
    end
  end
end

describe("an attribute", function()
  it("has the same name in a script and in Relay text", function()
    local differing, count = {}, 0
    each_attribute(function(operator, printed, name)
      count = count + 1
      if printed ~= name then differing[operator .. "." .. name] = true end
    end)
    assert.is_true(count > 300, count)
    for key in pairs(differing) do assert.is_string(exceptions[key], key) end
    for key in pairs(exceptions) do assert.is_true(differing[key], key .. " is no exception") end
  end)

  it("that text has is in the operator's schema", function()
    each_attribute(function(operator, _, name)
      local schema = names_of(core.op(operator).attrs)
      assert.is_true(schema[name], ("%s of %s"):format(name, operator))
    end)
  end)

  it("has that name in node.attrs too", function()
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local call = pl.op.transpose(x, { axes = { 1, 0 } })
    assert.same({ 1, 0 }, call.attrs.axes)
    assert.truthy(tostring(pl.func({ x }, call)):find("transpose(%x, axes=[1, 0])", 1, true))
  end)

  it("has ONNX's name in a file", function()
    local rows, count = read "engine/onnx/attr_names.def", 0
    for id, onnx, name in rows:gmatch '\nATTR_NAME%(([%w_]+),%s*"([^"]+)",%s*"([^"]+)"%)' do
      local operator = read("engine/op/ops.def"):match("\nOP%(" .. id .. ',%s*"([^"]+)"')
      local schema = names_of(core.op(operator).attrs)
      assert.is_true(schema[name] and not schema[onnx], operator .. ": " .. name)
      count = count + 1
    end
    assert.is_true(count >= 7, count)
  end)
end)
