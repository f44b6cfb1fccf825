-- The rules of arith/rules.def: both sides have the same value, and each rule decreases a measure.

local pl = require "perilune"

local rules = pl.arith.rules()

-- ------------------------------------------------------------------- values

local environment = {
  min = math.min, max = math.max,
  div = function(x, y) return (x - math.fmod(x, y)) // y end,
  mod = math.fmod,
  select = function(p, x, y) if p then return x end return y end,
  bc = function(x) return x end,
  nonneg = function(x) return x >= 0 end,
  zero = function(x) return x == 0 end,
  extremum = function() return false end,
  constant = function() return false end,
  any = function() return false end,
}

local function alternatives(text)
  local out = {}
  for part in (text .. " | "):gmatch "(.-) | " do out[#out + 1] = part end
  return out
end

local function names_in(text)
  local seen, numbers, conditions, constants = {}, {}, {}, {}
  for name in text:gmatch "%f[%w_]([%a][%w]*)%f[^%w_]" do
    if not seen[name] then
      seen[name] = true
      if name:find "^[xyzwv]$" then numbers[#numbers + 1] = name end
      if name:find "^[pqr]$" then conditions[#conditions + 1] = name end
      if name:find "^c%d$" then constants[#constants + 1] = name end
    end
  end
  return numbers, conditions, constants
end

-- A function that loops over all values, and returns the number of points and the first at which
-- the sides differ. The index of the lane of a vector is `lane`.
local function checker(lhs, rule)
  local numbers, conditions, constants = names_in(lhs .. " " .. rule.rhs .. " " .. rule.guard)
  local span = #numbers <= 1 and 128 or #numbers == 2 and 6 or #numbers == 3 and 4 or 2
  local width = #constants <= 1 and 9 or #constants == 2 and 5 or #constants == 3 and 4 or 3
  if #numbers >= 3 and #constants >= 2 then span, width = 3, 3 end
  local code, all = { "local points = 0\n" }, {}
  local function loop(name, low, high)
    code[#code + 1] = ("for %s = %d, %d do\n"):format(name, low, high)
    all[#all + 1] = name
  end
  for _, name in ipairs(constants) do loop(name, -width, width) end
  for _, name in ipairs(numbers) do
    loop(name, -span, math.min(span, 127))
  end
  for _, name in ipairs(conditions) do
    code[#code + 1] = ("for %s_ = 0, 1 do local %s = %s_ == 1\n"):format(name, name, name)
    all[#all + 1] = name
  end
  local lanes = lhs:find "ramp" or lhs:find "bc"
  code[#code + 1] = ("for lane = 0, %d do\n"):format(lanes and 3 or 0)
  code[#code + 1] = "local function ramp(a, b) return a + lane * b end\n"
  code[#code + 1] = ("local ok, l = pcall(function() return %s end)\n"):format(lhs)
  code[#code + 1] = ("local good, g = pcall(function() return %s end)\n"):format(
    rule.guard ~= "" and rule.guard or "true")
  code[#code + 1] = "if ok and good and g then points = points + 1\n"
  code[#code + 1] = ("local fine, r = pcall(function() return %s end)\n"):format(rule.rhs)
  code[#code + 1] = "if not fine or l ~= r then return points, { "
  for _, name in ipairs(all) do
    code[#code + 1] = ("'%s = ' .. tostring(%s), "):format(name, name)
  end
  code[#code + 1] = "tostring(l), tostring(r) } end end\nend\n" .. ("end "):rep(#all)
  code[#code + 1] = "\nreturn points"
  local text = table.concat(code)
  -- Without calls in the loop where nothing can fail.
  if not (lhs .. rule.rhs .. rule.guard):find "//" and not text:find "%% " and not
    text:find "div%(" and not text:find "mod%(" then
    text = text:gsub("local (%w+), (%w) = pcall%(function%(%) return (.-) end%)\n",
      "local %1, %2 = true, %3\n")
  end
  return assert(load(text, rule.lhs, "t", setmetatable({ pcall = pcall, tostring = tostring },
    { __index = environment })))
end

-- ------------------------------------------------------------------ measure

-- The text as a tree { op, operands }; names and numbers are strings.
local levels = { ["or"] = 1, ["and"] = 2, ["<"] = 3, ["<="] = 3, [">"] = 3, [">="] = 3, ["=="] = 3,
  ["~="] = 3, ["+"] = 4, ["-"] = 4, ["*"] = 5, ["//"] = 5, ["%"] = 5 }

local function parse(text)
  local tokens, at = {}, 1
  local i = 1
  while i <= #text do
    local found = text:match("^%s+", i) and "" or text:match("^%w+", i) or text:match("^//", i)
      or text:match("^[<>=~]=", i) or text:sub(i, i)
    if found == "" then i = i + #text:match("^%s+", i) else
      tokens[#tokens + 1] = found
      i = i + #found
    end
  end
  local expr
  local function primary()
    local token = tokens[at]
    at = at + 1
    if token == "not" then return { "not", primary() } end
    if token == "-" then return { "-", "0", primary() } end
    if token == "(" then
      local inner = expr(1)
      at = at + 1
      return inner
    end
    if tokens[at] ~= "(" then return token end
    local call = { token }
    repeat
      at = at + 1
      call[#call + 1] = expr(1)
    until tokens[at] ~= ","
    at = at + 1
    return call
  end
  function expr(level)
    if level > 5 then return primary() end
    local left = expr(level + 1)
    while levels[tokens[at]] == level do
      local op = tokens[at]
      at = at + 1
      left = { op, left, expr(level + 1) }
    end
    return left
  end
  return expr(1)
end

local function is_constant(tree)
  if type(tree) == "string" then return tree:find "^c%d" ~= nil or tree:find "^%d" ~= nil
    or tree == "true" or tree == "false" end
  for k = 2, #tree do if not is_constant(tree[k]) then return false end end
  return true
end

local ranks = { [">"] = 9, [">="] = 9, ["~="] = 5, ["<="] = 4, ["<"] = 4, ["=="] = 3, ["-"] = 2,
  ["not"] = 6, ["*"] = 1, ["+"] = 1, ["or"] = 3, ["and"] = 3, select = 3 }

-- What distributes over what is below it.
local distributes = { ["<"] = true, ["not"] = true, ["//"] = true, div = true, ["*"] = true,
  ["%"] = true, mod = true, min = true, max = true, ["-"] = true, ["+"] = true, ["=="] = true }

local function walk(tree, of, depth)
  if is_constant(tree) then
    of.size = of.size + 1
    of.place = of.place + depth
    return 1
  end
  if type(tree) == "string" then
    of.size = of.size + 1
    of.vars[tree] = (of.vars[tree] or 0) + 1
    of.names = of.names + 1
    return 1
  end
  of.size = of.size + 1
  of.rank = of.rank + (ranks[tree[1]] or 2)
  local below = 0
  for k = 2, #tree do
    local n = walk(tree[k], of, depth + 1)
    local child = type(tree[k]) == "table" and not is_constant(tree[k]) and tree[k][1]
    if k == 3 and (is_constant(tree[2]) or child == "min" or child == "max") then
      of.place = of.place + 1
    end
    if k == 3 and child == tree[1] then of.place = of.place + n end
    below = below + n
  end
  if distributes[tree[1]] then of.spread[#of.spread + 1] = below end
  return below + 1
end

local function measure(tree)
  local of = { size = 0, rank = 0, place = 0, names = 0, vars = {}, spread = {} }
  walk(tree, of, 0)
  table.sort(of.spread, function(a, b) return a > b end)
  return of
end

local function no_more_variables(l, r)
  for name, n in pairs(r.vars) do if n > (l.vars[name] or 0) then return false end end
  return true
end

-- Fewer operators of a kind.
local function count_of(tree, ops)
  if type(tree) == "string" or is_constant(tree) then return 0 end
  local n = ops[tree[1]] and 1 or 0
  for k = 2, #tree do n = n + count_of(tree[k], ops) end
  return n
end

-- Remainders on the left of a sum.
local function left_remainders(tree)
  if type(tree) == "string" then return 0 end
  local left = tree[1] == "+" and type(tree[2]) == "table" and tree[2][1]
  local n = (left == "%" or left == "mod") and 1 or 0
  for k = 2, #tree do n = n + left_remainders(tree[k]) end
  return n
end

-- The sizes of what lies below the operators of a set, the greatest first.
local function sizes_below(tree, ops, out)
  if type(tree) == "string" or is_constant(tree) then return 1 end
  local below = 0
  for k = 2, #tree do below = below + sizes_below(tree[k], ops, out) end
  if ops[tree[1]] then out[#out + 1] = below end
  return below + 1
end

-- -1, 0 or 1: how the multiset of sizes changes from l to r.
local function compare_scopes(l, r, ops)
  local x, y = {}, {}
  sizes_below(l, ops, x)
  sizes_below(r, ops, y)
  for _, list in ipairs { x, y } do table.sort(list, function(p, q) return p > q end) end
  for k = 1, math.max(#x, #y) do
    if (x[k] or 0) ~= (y[k] or 0) then return (y[k] or 0) < (x[k] or 0) and -1 or 1 end
  end
  return 0
end

local scopes = { { min = true, max = true },
  { ["//"] = true, ["%"] = true, div = true, mod = true }, { ["*"] = true } }

-- Less below extrema; with as much there, less below divisions; then below products.
local function has_narrower_scopes(l, r)
  for _, ops in ipairs(scopes) do
    local change = compare_scopes(l, r, ops)
    if change ~= 0 then return change < 0 end
  end
  return false
end

-- The constants of the right side, where it has the form of the left one: c1 -> a tree. Variables
-- may change places. nil: it has another form.
local function constants_of(l, r, out)
  if type(l) == "string" and l:find "^c%d" then
    if not is_constant(r) then return nil end
    out[l] = r
    return out
  end
  if type(l) == "string" then return type(r) == "string" and not is_constant(r) and out or nil end
  if type(r) == "string" or r[1] ~= l[1] or #r ~= #l then return nil end
  for k = 2, #l do if not constants_of(l[k], r[k], out) then return nil end end
  return out
end

local function text_of(tree)
  if type(tree) == "string" then return tree end
  if #tree == 2 then return ("(%s %s)"):format(tree[1], text_of(tree[2])) end
  return ("(%s %s %s)"):format(text_of(tree[2]), tree[1], text_of(tree[3]))
end

-- True if the guard is false for the constants of the right side, for all small constants for which
-- it is true: so the rule is not applied to its own result.
local function stops(rule, l, r)
  local new = constants_of(l, r, {})
  if not new then return false end
  local values = {}
  for k = 1, 4 do values[k] = new["c" .. k] and text_of(new["c" .. k]) or "0" end
  local text = ("local c1, c2, c3, c4 = ... return (%s), %s"):format(rule.guard,
    table.concat(values, ", "))
  local f, points = assert(load(text)), 0
  for i = 0, 11 ^ 3 - 1 do
    local c1, c2, c3 = i % 11 - 5, i // 11 % 11 - 5, i // 121 - 5
    local ok, guard, d1, d2, d3 = pcall(f, c1, c2, c3, 0)
    if ok and guard then
      points = points + 1
      local fine, again = pcall(f, d1, d2, d3, 0)
      if fine and again then return false end
    end
  end
  return points > 0
end

local closed, quotients = { ["<="] = true }, { ["//"] = true, div = true }

-- The orders: fewer variables; fewer nodes; operators of a lower rank; constants and extrema
-- further to the right and up; smaller operands of what distributes; then those above.
local function order_of(rule, left, right)
  local l, r = measure(left), measure(right)
  local plain = no_more_variables(l, r)
  if plain and r.names < l.names then return "vars" end
  if plain and r.size < l.size then return "size" end
  if plain and r.size == l.size and r.rank < l.rank then return "rank" end
  if plain and r.size == l.size and r.rank == l.rank and r.place < l.place then return "place" end
  for k = 1, math.max(#l.spread, #r.spread) do
    local a, b = l.spread[k] or 0, r.spread[k] or 0
    if b < a then return "spread" end
    if b > a then break end
  end
  if plain and r.place < l.place then return "place" end
  if count_of(right, quotients) < count_of(left, quotients) then return "quotients" end
  if left_remainders(right) < left_remainders(left) then return "remainders" end
  if has_narrower_scopes(left, right) then return "scope" end
  if count_of(right, closed) < count_of(left, closed) then return "closed" end
  if rule.guard ~= "" and stops(rule, left, right) then return "range" end
  return "none"
end

describe("the rules of rewrite_simplify", function()
  it("are many", function() assert.is_true(#rules > 300) end)

  it("keep the value of every small operand and constant", function()
    for _, rule in ipairs(rules) do
      for _, lhs in ipairs(alternatives(rule.lhs)) do
        local points, counterexample = checker(lhs, rule)()
        if counterexample then
          error(("%s -> %s where %s: %s"):format(lhs, rule.rhs, rule.guard,
            table.concat(counterexample, ", ")))
        end
        assert.is_true(points > 0, lhs .. " is never used")
      end
    end
  end)

  it("each decrease what the table says", function()
    for _, rule in ipairs(rules) do
      for _, lhs in ipairs(alternatives(rule.lhs)) do
        local found = order_of(rule, parse(lhs), parse(rule.rhs))
        assert.are_not.equal("none", found, lhs)
        if lhs == alternatives(rule.lhs)[1] then
          assert.are.equal(rule.order, found, rule.lhs)
        end
      end
    end
  end)
end)
