--- How what was computed differs from what was expected, as a text; nil when it
-- does not. Values are tensors, tables of tensors or maps (sequences), maps and
-- nil. A map is a table from its keys to numbers or strings. Indices count from
-- 0, as ONNX and NumPy have them.

require "perilune.core".internal()

local sorted_keys = require "perilune.sorted_keys"

local function is_sequence(value)
  return value[1] == nil and next(value) == nil or type(value[1]) == "userdata"
    or type(value[1]) == "table"
end

local function describe(value)
  if value == nil then return "nothing" end
  if type(value) == "table" and not is_sequence(value) then return "a map" end
  if type(value) == "table" then return ("a sequence of %d"):format(#value) end
  return tostring(value)
end

local function place(index)
  local from_zero = {}
  for i, k in ipairs(index) do from_zero[i] = k - 1 end
  return "[" .. table.concat(from_zero, ", ") .. "]"
end

local function tensors(got, expected, tolerance)
  local same, how = got:compare(expected, tolerance)
  if same then return nil end
  if how.what ~= "elements" then
    return (": got %s, expected %s"):format(got, expected)
  end
  local text = (" at %s: got %s, expected %s"):format(place(how.index), how.got, how.expected)
  if got.size == 1 then return text end
  text = ("%s; %d of %d elements differ"):format(text, how.differing, got.size)
  return how.largest > 0 and ("%s, by up to %.3g"):format(text, how.largest) or text
end

local function is_close(got, expected, tolerance)
  if got == expected or got ~= got and expected ~= expected then return true end
  if type(got) ~= "number" or type(expected) ~= "number" then return false end
  local allowed = (tolerance.atol or 0) + (tolerance.rtol or 0) * math.abs(expected)
  return math.abs(got - expected) <= allowed
end

local function maps(got, expected, tolerance)
  for _, key in ipairs(sorted_keys(expected)) do
    if got[key] == nil then return (": the key %s is missing"):format(key) end
    if not is_close(got[key], expected[key], tolerance or {}) then
      return (" at key %s: got %s, expected %s"):format(key, got[key], expected[key])
    end
  end
  for _, key in ipairs(sorted_keys(got)) do
    if expected[key] == nil then return (": the key %s is not expected"):format(key) end
  end
end

local function sequences(got, expected, tolerance)
  if #got ~= #expected then
    return (": got %s, expected %s"):format(describe(got), describe(expected))
  end
  for i, item in ipairs(got) do
    local differ = type(item) == "table" and type(expected[i]) == "table" and maps or tensors
    local text = differ(item, expected[i], tolerance)
    if text then return (", element %d"):format(i - 1) .. text end
  end
end

--- `tolerance` is what tensor:compare takes.
return function(got, expected, tolerance)
  if type(got) ~= type(expected) then
    return (": got %s, expected %s"):format(describe(got), describe(expected))
  end
  if got == nil then return nil end
  if type(got) == "table" then
    local differ = is_sequence(got) and is_sequence(expected) and sequences or maps
    return differ(got, expected, tolerance)
  end
  return tensors(got, expected, tolerance)
end
