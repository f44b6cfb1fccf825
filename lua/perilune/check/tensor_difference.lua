--- How what was computed differs from what was expected, as a text; nil when it
-- does not. Values are tensors, tables of tensors (sequences) and nil. Indices
-- count from 0, as ONNX and NumPy have them.

require "perilune.core".internal()

local function describe(value)
  if value == nil then return "nothing" end
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

local function sequences(got, expected, tolerance)
  if #got ~= #expected then
    return (": got %s, expected %s"):format(describe(got), describe(expected))
  end
  for i, tensor in ipairs(got) do
    local text = tensors(tensor, expected[i], tolerance)
    if text then return (", element %d"):format(i - 1) .. text end
  end
end

--- `tolerance` is what tensor:compare takes.
return function(got, expected, tolerance)
  if type(got) ~= type(expected) then
    return (": got %s, expected %s"):format(describe(got), describe(expected))
  end
  if got == nil then return nil end
  if type(got) == "table" then return sequences(got, expected, tolerance) end
  return tensors(got, expected, tolerance)
end
