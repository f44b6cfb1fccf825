-- Iterator maps: the objects that TVM has, and their conversion to and from what the core has.
--
-- An IterMark is an iterator, { source =, extent = }, whose source is a PrimExpr or an IterSumExpr.
-- An IterSplitExpr is (source // lower_factor) % extent * scale of a mark, and an IterSumExpr
-- { args =, base = } is the sum of its splits and of the base.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"

local iter_map = {}

local IterMark = { __name = "perilune.IterMark" }
local IterSplitExpr = { __name = "perilune.IterSplitExpr" }
local IterSumExpr = { __name = "perilune.IterSumExpr" }
for _, class in ipairs { IterMark, IterSplitExpr, IterSumExpr } do class.__index = class end

local levels = { surjective = 0, bijective = 1, no_check = 2, nocheck = 2 }

local function is(value, class) return getmetatable(value) == class end

local function expr(value, like)
  return operand.expr(value, like and argument.kind_of(like) == "Node" and like.dtype or nil)
end

--- An iterator whose values are all of [0, extent).
function iter_map.IterMark(source, extent)
  if not is(source, IterSumExpr) then source = expr(source) end
  if not is(source, IterSumExpr) and argument.kind_of(source) ~= "Node" then
    argument.expected("a PrimExpr or IterSumExpr", source)
  end
  return setmetatable({ source = source, extent = expr(extent, source.base or source) }, IterMark)
end

--- (source // lower_factor) % extent * scale; all of the mark by default.
function iter_map.IterSplitExpr(source, lower_factor, extent, scale)
  if not is(source, IterMark) then argument.expected("an IterMark", source) end
  local like = source.extent
  return setmetatable({ source = source, lower_factor = expr(lower_factor or 1, like),
    extent = expr(extent or like, like), scale = expr(scale or 1, like) }, IterSplitExpr)
end

--- The sum of splits and of a base.
function iter_map.IterSumExpr(args, base)
  argument.table(args, "IterSumExpr", "args")
  for _, arg in ipairs(args) do
    if not is(arg, IterSplitExpr) then argument.expected("an IterSplitExpr", arg) end
  end
  return setmetatable({ args = args, base = expr(base, args[1] and args[1].extent) }, IterSumExpr)
end

-- What an object is printed as: texts, nodes and other such objects, in order.
local parts_of = {
  [IterMark] = function(mark)
    return { "IterMark(", mark.source, ", extent=", mark.extent, ")" }
  end,
  [IterSplitExpr] = function(split)
    return { "IterSplit(", split.source, ", lower_factor=", split.lower_factor, ", extent=",
      split.extent, ", scale=", split.scale, ")" }
  end,
  [IterSumExpr] = function(sum)
    local parts = { "IterSum([" }
    for i, arg in ipairs(sum.args) do
      if i > 1 then parts[#parts + 1] = ", " end
      parts[#parts + 1] = arg
    end
    table.move({ "], ", sum.base, ")" }, 1, 3, #parts + 1, parts)
    return parts
  end,
}

-- Objects may be nested deeply, so that a stack has what is still to be printed. They may be
-- shared, too: a text stops with "..." behind this many bytes.
local LONGEST, MOST_ERRORS = 1 << 20, 64

local function text_of(object)
  local out, size, stack = {}, 0, { object }
  while #stack > 0 do
    local part = table.remove(stack)
    local split = type(part) == "table" and parts_of[getmetatable(part)]
    if split then
      local parts = split(part)
      for i = #parts, 1, -1 do stack[#stack + 1] = parts[i] end
    else
      out[#out + 1] = size < LONGEST and tostring(part) or "..."
      size = size + #out[#out]
      if out[#out] == "..." then break end
    end
  end
  return table.concat(out)
end

for class in pairs(parts_of) do class.__tostring = text_of end

-- ------------------------------------------------------------------ from core
--
-- Marks and sums refer to smaller numbers only, in turns; so they are made in the order in which
-- their parts are there, and nothing recurses.

local function make_sum(analyzer, row, marks)
  local args = {}
  for i = 2, #row, 4 do
    args[#args + 1] = setmetatable({ source = marks[row[i]],
      lower_factor = analyzer.core:export(row[i + 1]), extent = analyzer.core:export(row[i + 2]),
      scale = analyzer.core:export(row[i + 3]) }, IterSplitExpr)
  end
  return setmetatable({ args = args, base = analyzer.core:export(row[1]) }, IterSumExpr)
end

local function decode(analyzer, pool)
  local marks, sums = {}, {}
  local function sum(number)
    sums[number] = sums[number] or make_sum(analyzer, pool.sums[number], marks)
    return sums[number]
  end
  for i, row in ipairs(pool.marks) do
    local source = row[1] ~= 0 and analyzer.core:export(row[1]) or sum(row[2])
    marks[i] = setmetatable({ source = source, extent = analyzer.core:export(row[3]) }, IterMark)
  end
  return marks, sum
end

local function error_text(analyzer, row)
  local parts = {}
  for i, part in ipairs(row) do
    if i % 2 == 0 and part then part = tostring(analyzer.core:export(part)) end
    parts[i] = part or ""
  end
  return table.concat(parts)
end

-- Each term of a deep index may be an error whose text has all that is below.
local function error_texts(analyzer, rows)
  local texts, size = {}, 0
  for i, row in ipairs(rows) do
    if i > MOST_ERRORS or size > LONGEST then
      texts[i] = ("... and %d more"):format(#rows - i + 1)
      break
    end
    texts[i] = error_text(analyzer, row)
    size = size + #texts[i]
  end
  return texts
end

-- -------------------------------------------------------------------- to core

-- The parts of objects, each behind what it uses, and their numbers: made with a stack.
local function encode(analyzer, roots)
  local parts, number, stack = {}, {}, {}
  local function term(node) return analyzer:term(node) end
  local function pending(uses)
    local open = false
    for _, use in ipairs(uses) do
      if not number[use] then
        stack[#stack + 1] = use
        open = true
      end
    end
    return open
  end
  local function add(object)
    local uses, row = {}, nil -- luacheck: ignore 311
    if is(object, IterMark) then
      local inner = is(object.source, IterSumExpr)
      if inner then uses[1] = object.source end
      if pending(uses) then return end
      row = { 0, inner and 0 or term(object.source), inner and number[object.source] or 0,
        term(object.extent) }
    else
      for i, arg in ipairs(object.args) do uses[i] = arg.source end
      if pending(uses) then return end
      row = { 1, term(object.base) }
      for _, arg in ipairs(object.args) do
        table.move({ number[arg.source], term(arg.lower_factor), term(arg.extent),
          term(arg.scale) }, 1, 4, #row + 1, row)
      end
    end
    parts[#parts + 1] = row
    number[object] = #parts
    stack[#stack] = nil
  end
  for _, root in ipairs(roots) do
    stack[1] = not number[root] and root or nil
    while #stack > 0 do
      if number[stack[#stack]] then stack[#stack] = nil else add(stack[#stack]) end
    end
  end
  return parts, number
end

-- ------------------------------------------------------------------- methods

-- { [var] = Range or { first, last } } as var, min, extent, ..., in the order of the terms.
local function ranges(analyzer, map)
  local rows, flat = {}, {}
  for var, range in pairs(argument.table(map, "arith", "input_iters")) do
    if type(range) == "table" then
      local first = expr(range[1], var)
      rows[#rows + 1] = { analyzer:term(var), analyzer:term(first),
        analyzer:term(operand.folded("Sub", expr(range[2], var), first)) }
    elseif argument.kind_of(range) ~= "Node" or range.kind ~= "Range" then
      argument.expected("a Range", range)
    else
      rows[#rows + 1] = { analyzer:term(var), analyzer:term(range[1]), analyzer:term(range[2]) }
    end
  end
  table.sort(rows, function(x, y) return x[1] < y[1] end)
  for _, row in ipairs(rows) do table.move(row, 1, 3, #flat + 1, flat) end
  return flat
end
iter_map.ranges = ranges

local function request(analyzer, indices, input_iters, predicate, check_level, trivial)
  local terms, like = {}, nil
  for var in pairs(argument.table(input_iters, "arith", "input_iters")) do like = like or var end
  for i, index in ipairs(argument.table(indices, "arith", "indices")) do
    terms[i] = analyzer:term(index, like)
  end
  local level = levels[check_level == nil and "surjective" or check_level] or check_level
  if level ~= 0 and level ~= 1 and level ~= 2 then
    argument.expected("'surjective', 'bijective' or 'no_check'", check_level)
  end
  if predicate == nil or predicate == true then predicate = false end
  return terms, ranges(analyzer, input_iters), predicate and analyzer:term(predicate) or 0, level,
    trivial ~= false
end

--- Writes indices as sums of at most one split of independent iterators, if they are that:
-- { indices = IterSumExprs or {}, errors = strings, padding_predicate = }.
function iter_map.detect(analyzer, ...)
  local pool, numbers, errors, padding =
    analyzer.core:detect_iter_map(request(analyzer, ...))
  local out = { indices = {}, errors = error_texts(analyzer, errors),
    padding_predicate = analyzer.core:export(padding) }
  if not numbers then return out end
  local _, sum = decode(analyzer, pool)
  for i, number in ipairs(numbers) do out.indices[i] = sum(number) end
  return out
end

function iter_map.simplify(analyzer, ...)
  local out = {}
  for i, term in ipairs(analyzer.core:iter_map_simplify(request(analyzer, ...))) do
    out[i] = analyzer.core:export(term)
  end
  return out
end

function iter_map.normalize_to_sum(analyzer, index, input_iters)
  argument.table(input_iters, "normalize_to_iter_sum", "input_iters")
  local pool, number = analyzer.core:normalize_to_iter_sum(
    analyzer:term(index, (next(input_iters))), ranges(analyzer, input_iters))
  local _, sum = decode(analyzer, pool)
  return sum(number)
end

function iter_map.subspace_divide(analyzer, bindings, input_iters, sub_iters, predicate,
    check_level, trivial)
  local inner = analyzer:var_terms(sub_iters, "subspace_divide", "sub_iters")
  local terms, flat, condition, level, simple =
    request(analyzer, bindings, input_iters, predicate, check_level, trivial)
  local pool, numbers =
    analyzer.core:subspace_divide(terms, flat, condition, level, simple, inner)
  local out = {}
  if not pool then return out end
  local marks = decode(analyzer, pool)
  for i = 1, #numbers, 2 do out[#out + 1] = { marks[numbers[i]], marks[numbers[i + 1]] } end
  return out
end

--- The PrimExpr that an IterSumExpr or IterSplitExpr stands for; others are themselves.
function iter_map.to_expr(analyzer, value)
  if is(value, IterSplitExpr) then
    value = setmetatable({ args = { value }, base = operand.const(0, value.extent.dtype) },
      IterSumExpr)
  end
  if not is(value, IterSumExpr) then return expr(value) end
  local parts, number = encode(analyzer, { value })
  return analyzer.core:export(analyzer.core:iter_map_expr(parts, number[value]))
end

function iter_map.inverse(analyzer, map, outputs)
  local numbers, terms, out = {}, {}, {}
  argument.table(map, "inverse_affine_iter_map", "iter_map")
  for _, sum in ipairs(map) do
    if not is(sum, IterSumExpr) then argument.expected("an IterSumExpr", sum) end
  end
  local parts, number = encode(analyzer, map)
  for i, sum in ipairs(map) do numbers[i] = number[sum] end
  for i, output in ipairs(argument.table(outputs, "inverse_affine_iter_map", "outputs")) do
    argument.node(output, "inverse_affine_iter_map", "an output")
    local wanted = map[i] and map[i].base.dtype or output.dtype
    if output.dtype ~= wanted then
      argument.fail(("inverse_affine_iter_map: output %d is an expression of dtype %s, not %s")
        :format(i, wanted, output.dtype))
    end
    terms[i] = analyzer:term(output)
  end
  if #terms ~= #numbers then argument.fail "inverse_affine_iter_map: one output for each index" end
  local vars, values = analyzer.core:inverse_iter_map(parts, numbers, terms)
  for i, var in ipairs(vars) do out[analyzer.core:export(var)] = analyzer.core:export(values[i]) end
  return out
end

return iter_map
