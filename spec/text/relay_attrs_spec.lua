-- Attributes and types of Relay's operators as TVM prints them: modules of the
-- corpus beside the project ($PERILUNE_SHARED) that use them come back byte for
-- byte. And every operator of Relay's, printed and read.

local pl = require "perilune"

local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local corpus = shared .. "/conformance/relay-text/"

local folders = { attrs = 12, workload = 11, const = 20 }

local function files(folder)
  local index = io.open(corpus .. "INDEX.tsv")
  local list = {}
  if not index then return list end
  for line in index:lines() do
    local file = line:match("^(" .. folder .. "/%S+)\t%d+\ttyped")
    if file then list[#list + 1] = file end
  end
  index:close()
  return list
end

-- The first line in which the two texts differ, of each.
local function difference(a, b)
  local next_a, next_b = a:gmatch "[^\n]*", b:gmatch "[^\n]*"
  repeat
    local x, y = next_a(), next_b()
    if x ~= y then return tostring(x), tostring(y) end
  until not x
end

describe("Relay's text of operators", function()
  for folder, count in pairs(folders) do
    it("comes back byte for byte: " .. folder, function()
      local list = files(folder)
      if #list == 0 then return pending "the corpus is not there" end
      assert.is_true(#list >= count - 1, #list .. " files in " .. folder)
      for _, name in ipairs(list) do
        local file = assert(io.open(corpus .. name))
        local text = file:read "a"
        file:close()
        local got = assert(pl.parse(text, name)):text()
        if got ~= text then
          local wanted, printed = difference(text, got)
          error(("%s:\n  wanted  %s\n  printed %s"):format(name, wanted, printed))
        end
      end
    end)
  end
end)

-- Reads `call` of operands of unknown type, prints it, and reads that again.
local function round(call)
  local head = "#[version = \"0.0.5\"]\ndef @main("
  local mod, diag = pl.parse(head .. "%a, %b, %c, %d, %e, %f, %g, %h) {\n  " .. call .. "\n}\n")
  if not mod then return nil, tostring(diag) end
  local text = mod:text()
  local again = assert(pl.parse(text))
  return pl.equal(mod, again) and text == again:text(), text
end

describe("an operator of Relay's", function()
  local names = {}
  for name, op in pairs(pl.op) do
    if op.relay then names[#names + 1] = name end
  end

  it("is read, printed and read again without attributes", function()
    assert.is_true(#names > 290, #names .. " operators")
    for _, name in ipairs(names) do
      local op = pl.op[name]
      local operands = {}
      for i = 1, math.max(op.min_args, 0) do operands[i] = "%" .. ("abcdefgh"):sub(i, i) end
      local same, text = round(name .. "(" .. table.concat(operands, ", ") .. ")")
      -- What an operator cannot do without says so.
      if same == nil then
        assert.truthy(text:find "missing" or text:find "expected" or text:find "layout" or
          text:find "dtype" or text:find "defines no type 'Storage'", name .. ": " .. text)
      else
        assert.is_true(same, name .. ": " .. text)
      end
    end
  end)

  it("refuses attributes and values it does not have", function()
    local _, why = round "nn.dense(%a, %b, unit=3)"
    assert.truthy(why:find("'nn.dense' has no attribute 'unit'; did you mean 'units'?", 1, true),
      why)
    _, why = round "sum(%a, keepdims=\"yes\")"
    assert.truthy(why:find("attribute 'keepdims' takes True or False", 1, true), why)
    _, why = round "cast(%a, dtype=\"float31\")"
    assert.truthy(why:find("there is no dtype 'float31'", 1, true), why)
  end)

  it("takes an explicit default for none", function()
    local function equal(a, b)
      local function read(call)
        return assert(pl.parse(
          "#[version = \"0.0.5\"]\ndef @main(%a, %b) {\n  " .. call .. "\n}\n"))
      end
      return pl.equal(read(a), read(b))
    end
    assert.is_true(equal("sum(%a, keepdims=False)", "sum(%a)"))
    assert.is_true(equal("nn.conv2d(%a, %b, groups=1)", "nn.conv2d(%a, %b)"))
    assert.is_true(equal("take(%a, %b, mode=\"clip\")", "take(%a, %b)"))
    assert.is_false(equal("take(%a, %b, axis=0)", "take(%a, %b)"))
    assert.is_true(equal("squeeze(%a, axis=None)", "squeeze(%a)"))
  end)
end)
