-- Every operator of Relay's with operands and attributes that nobody means:
-- extents of 0, of 2^62, not known, ranks that do not fit, numbers at the ends of
-- their range. It is typed or refused; a type that is told is printed and read.

local pl = require "perilune"

local operands = { "int8", "Tensor[(0), float32]", "Tensor[(?, 4), int64]",
  "Tensor[(4611686018427387904, 1, 4611686018427387904), float32]",
  "Tensor[(1, 8, 0, ?), uint8]", "Tensor[(2, 3, 4, 5, 6), float32]", "(float32, Tensor[(2), int8])",
  "Tensor[(1, 4611686018427387904, 3, 3), float32]" }

local numbers = { "0", "-1", "1", "7", "4611686018427387904i64", "-9223372036854775800i64",
  "2147483648i64", "-9223372036854775808i64", "9223372036854775807i64" }

local texts = { "\"\"", "\"NCHW\"", "\"NHWC4c\"", "\"999999999999999999999c\"", "\"N4294967296n\"",
  "\"NHCWB16\"", "\"int4\"", "\"float32\"", "\"ADD\"" }

-- The next of a list, round and round, other lists at other steps.
local function turner()
  local step = 0
  return function(list)
    step = step + 1
    return list[(step * step + step // 7) % #list + 1]
  end
end

local function value(turn, kind)
  if kind:find "^ints" or kind == "any" then
    local list = {}
    for i = 1, turn { 0, 1, 2, 3, 4, 6 } do list[i] = turn(numbers) end
    return "[" .. table.concat(list, ", ") .. "]"
  elseif kind == "list" then
    return ("[[%s, %s], [%s, %s]]"):format(turn(numbers), turn(numbers), turn(numbers),
      turn(numbers))
  elseif kind == "floats" then
    return "[1e38f, -1f, 0f]"
  elseif kind == "float" or kind == "scalar" then
    return turn { "0f", "-1f", "1e38f", "1e-38f", "65536f" }
  elseif kind:find "^bool" then
    return turn { "True", "False" }
  elseif kind == "string" or kind == "text" or kind == "dtype" then
    return turn(texts)
  elseif kind == "int" or kind == "integer" or kind == "extent" then
    return turn(numbers)
  end
end

local function call(turn, name, op)
  local params, parts = {}, {}
  for i = 1, math.max(op.min_args, 1) do
    params[i] = ("%%a%d: %s"):format(i, turn(operands))
    if i <= op.min_args then parts[i] = "%a" .. i end
  end
  for attr, kind in op.relay:gmatch "([%w_]+)>?[%w_]*:(%a+)" do
    local given = value(turn, kind)
    if given and turn { true, true, false } then parts[#parts + 1] = attr .. "=" .. given end
  end
  return ("#[version = \"0.0.5\"]\ndef @main(%s) { %s(%s) }\n"):format(
    table.concat(params, ", "), name, table.concat(parts, ", "))
end

describe("an operator of Relay's with what nobody means", function()
  local names = {}
  for name, op in pairs(pl.op) do
    if op.relay then names[#names + 1] = name end
  end
  table.sort(names)

  it("is typed or refused", function()
    local turn, typed, refused = turner(), 0, 0
    for _ = 1, 12 do
      for _, name in ipairs(names) do
        local text = call(turn, name, pl.op[name])
        local mod, why = pl.parse(text)
        if mod then
          typed = typed + 1
          assert(pl.parse(mod:text()), text)
        else
          refused = refused + 1
          assert.truthy(#why.message > 0, text)
        end
      end
    end
    assert.is_true(typed > 300 and refused > 300, typed .. " typed, " .. refused .. " refused")
  end)
end)
