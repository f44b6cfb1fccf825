-- Random pipelines of every form, with options of every type and names and
-- strings full of signs: what is printed reads back as an equal pipeline.

local pl = require "perilune"

-- The same numbers on every machine.
local state = 7
local function random(n)
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return state // 65536 % n + 1
end
local function chance(n) return random(n) == 1 end
local function one_of(list) return list[random(#list)] end

local names = { "Plain", "odd name", 'quo"ted', "back\\slash", "if", "try", "fixpoint", "functions",
  "sequential", "else", "new\nline", "tab\t", "a,b{c}=(d)", "\u{e4}\u{f6}", "1", "-", "x:2" }

setup(function()
  local function options()
    return { { name = "n", default = 3, least = -9007199254740993 }, { name = "x", default = 0.5 },
      { name = "loud", default = false }, { name = "s", default = "" },
      { name = "mode", default = "fast", choices = { "fast", "small" } },
      { name = "names", default = {}, type = "strings" }, { name = "axes", default = {} },
      { name = "odd key", default = 1 },
      { name = "loops", fields = { step = 1, ["odd field"] = "", on = true, list = { 1 } } } }
  end
  for _, name in ipairs(names) do
    pl.passes[name] = { options = options(), run = function() end }
  end
  pl.passes.Module = { kind = "module", options = options(), run = function() end }
  pl.passes.Chain = { "Plain", "FoldConstant" }
  pl.passes.Deep = pl.passes.Plain { n = 7, s = "seven" }
end)
teardown(function()
  for _, name in ipairs(names) do pl.passes[name] = nil end
  pl.passes.Module, pl.passes.Chain, pl.passes.Deep = nil, nil, nil
end)

local signs = { "a", "B", "9", " ", '"', "\\", "\n", "\t", "\r", ",", "{", "}", "[", "]", "(", ")",
  "=", "'", "%", "\0", "\1", "\u{fc}", "else", "//", "\\n", "\\\"" }
local function text(most)
  local parts = {}
  for i = 1, random(most) - 1 do parts[i] = one_of(signs) end
  return table.concat(parts)
end

local function integer()
  return one_of { 0, 1, -1, random(1000), -random(1000), math.maxinteger, -9007199254740993,
    random(1 << 15) << 32 }
end

local function number()
  return one_of { 0.0, -0.0, 1.0, 0.1, -1e300, 5e-324, 2 ^ 53, 1 / 3, math.huge, -math.huge,
    random(1000) / 7 }
end

local function list(make, most)
  local values = {}
  for i = 1, random(most) - 1 do values[i] = make() end
  return values
end

local makers = {
  n = integer, x = number, loud = function() return chance(2) end,
  s = function() return text(8) end,
  mode = function() return one_of { "fast", "small" } end,
  names = function() return list(function() return text(4) end, 4) end,
  axes = function() return list(function() return random(100) - 50 end, 4) end,
  ["odd key"] = function() return random(9) end,
  loops = function()
    return { step = random(9), ["odd field"] = chance(2) and text(5) or nil,
      on = chance(2), list = list(function() return random(9) end, 3) }
  end,
}

local function options()
  local given = {}
  for name, make in pairs(makers) do if chance(4) then given[name] = make() end end
  return given
end

local function leaf(only_functions)
  local name = one_of(names)
  if chance(8) then return pl.passes.FoldConstant { fold = one_of { "all", "budget" } } end
  if chance(8) then return pl.passes.Deep(options()) end
  if chance(8) then return chance(2) and pl.passes.Chain() or pl.passes.SimplifyExpr() end
  if not only_functions and chance(6) then name = "Module" end
  return pl.passes[name](options())
end

local build

local function elements(depth, only_functions)
  local passes = {}
  for i = 1, random(4) - 1 do passes[i] = build(depth - 1, only_functions) end
  return passes
end

local function sequential(depth, only_functions)
  local spec = elements(depth, only_functions)
  if chance(2) then
    spec.name = chance(2) and one_of(names) or text(6)
    if spec.name == "" or spec.name:find "\0" then spec.name = nil end
  end
  if chance(3) then spec.opt_level = random(9) - 4 end
  if chance(3) then spec.required = { "FoldConstant", chance(2) and one_of(names) or nil } end
  return pl.sequential(spec)
end

function build(depth, only_functions)
  local form = depth > 0 and random(7) or 7
  if form == 1 or form == 2 then return sequential(depth, only_functions) end
  if form == 3 then
    local spec = elements(depth, only_functions)
    spec.rounds = random(1000)
    return pl.fixpoint(spec)
  end
  if form == 4 then
    local spec = elements(depth, only_functions)
    spec.otherwise = chance(2) and elements(depth, only_functions) or nil
    return pl.try(spec)
  end
  if form == 5 then return pl.if_changed(elements(depth, only_functions)) end
  if form == 6 then return pl.functions(elements(depth, true)) end
  return leaf(only_functions)
end

-- What is to be the same, as nested tables.
local function value_of(value)
  if type(value) ~= "userdata" then
    return math.type(value) == "float" and ("%a"):format(value) or value
  end
  local fields = {}
  for name, field in pairs(value) do fields[name] = value_of(field) end
  return fields
end

local function shape(pass)
  local out = { form = pass.form, name = pass.name, opt_level = pass.opt_level,
    required = pass.required, rounds = pass.rounds, options = value_of(pass.options) }
  if pass.form == "primitive" then return out end
  for _, field in ipairs { "passes", "otherwise" } do
    out[field] = pass[field] and {}
    for i, each in ipairs(pass[field] or {}) do out[field][i] = shape(each) end
  end
  return out
end

describe("a random pipeline", function()
  it("prints as text that reads back as an equal one", function()
    for _ = 1, 1000 do
      local pass = pl.sequential { build(4), build(3) }
      local printed = tostring(pass)
      local again = pl.pipeline(printed)
      assert.same(shape(pass), shape(again), printed)
      assert.equal(printed, tostring(again))
    end
  end)

  it("of one element keeps what is around it", function()
    for _ = 1, 1000 do
      local pass = sequential(3)
      local printed = tostring(pass)
      assert.same(shape(pass), shape(pl.pipeline(printed)), printed)
    end
  end)

  it("keeps its meaning when space is put between its words", function()
    for _ = 1, 300 do
      local printed = tostring(pl.sequential { build(3), build(2) })
      local spaced, quoted, escaped = {}, false, false
      for c in printed:gmatch "." do
        local apart = not quoted and c:find "[,{}()%[%]=]"
        spaced[#spaced + 1] = apart and " " .. c .. "\n" or c
        if not escaped and c == '"' then quoted = not quoted end
        escaped = not escaped and c == "\\"
      end
      assert.equal(printed, tostring(pl.pipeline(table.concat(spaced))))
    end
  end)
end)
