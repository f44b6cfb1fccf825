-- Bodies of functions in Relay's text that are computed on numbers, for specs of
-- kernels: computes("title", body, inputs, result, result, ...) is a test, and
-- refuses("title", body, inputs, message) one of what cannot be computed.

local assert = require "luassert"
local pl = require "perilune"

-- Evaluates the body with each operand of `inputs` as %a, %b, ...; each is
-- { dtype, values }.
local function compute(body, inputs)
  local params, tensors = {}, {}
  for i, input in ipairs(inputs) do
    local tensor = pl.tensor(input[2], input[1])
    local type = tostring(pl.const(tensor).type)
    params[i] = "%" .. string.char(96 + i) .. ": " .. type
    tensors[i] = tensor
  end
  local text = ("#[version = \"0.0.5\"]\ndef @main(%s) { %s }"):format(
    table.concat(params, ", "), body)
  local mod, why = pl.parse(text)
  return pl.eval(mod or error(why), table.unpack(tensors))
end

local function near(want, got)
  if type(want) == "number" and type(got) == "number" then
    return want == got or math.abs(want - got) <= 1e-5 * math.max(1, math.abs(want))
  elseif type(want) == "table" and type(got) == "table" and #want == #got then
    for i = 1, #want do
      if not near(want[i], got[i]) then return false end
    end
    return true
  end
  return want == got
end

--- The two, of busted's `it`.
return function(it)
  local function computes(title, body, inputs, ...)
    local wants = table.pack(...)
    it(title, function()
      local gots = table.pack(compute(body, inputs))
      assert.equal(wants.n, gots.n)
      for i = 1, wants.n do
        local got = gots[i]:to_table()
        if not near(wants[i], got) then assert.same(wants[i], got) end
      end
    end)
  end

  local function refuses(title, body, inputs, message)
    it(title, function()
      local ok, why = pcall(compute, body, inputs)
      assert.is_false(ok)
      assert.truthy(tostring(why):find(message, 1, true), tostring(why))
    end)
  end
  return computes, refuses
end
