-- Replays recorded calls of TVM's analyzer (conformance/tir-oracle) and compares the results:
-- equal, better (of equal value and no larger, or a tighter bound), different.
--
--     PERILUNE_BUILD=build lua5.4 spec/arith/replay.lua FOLDER [-v] [FILE...]
--
-- FOLDER is the unpacked tir-oracle/arith. Prints a table: function, cases, equal, better,
-- different.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"
local json = dofile "spec/arith/json_decode.lua"
local tir = pl.tir

local replay = {}

-- -------------------------------------------------------------- expressions

-- A reader keeps the Vars of a file by their recorded ids.
local function var_of(self, row)
  local var = self.vars[row.id]
  if not var then
    var = (row.size_var and tir.SizeVar or tir.Var)(row.name, row.dtype)
    self.vars[row.id] = var
  end
  self.latest[row.name] = var
  return var
end

local function plain_name(name) return (name:gsub("[^%w_]", "_")) end

-- The printer appends _1, _2 to names that are taken.
local function names_of(self, record)
  local names = {}
  for _, row in ipairs(record.vars or {}) do
    local name, k = plain_name(row.name), 0
    while names[name] do
      k = k + 1
      name = plain_name(row.name) .. "_" .. k
    end
    names[name] = var_of(self, row)
  end
  -- Variables that only a combiner has are declared in the text but not listed.
  for name in record.expr:gmatch "([%a_][%w_]*) = T%.int32%(%)" do
    names[name] = names[name] or record.expr:find "T%.reduce" and self.latest[name] or nil
  end
  return names
end

-- Buffers that are declared alike in a file are one. Tensors of one dimension, whose elements a
-- reduction reads, are not declared.
local function declare_buffers(self, text, names)
  for name in text:gmatch "([%a_][%w_]*)%[" do
    if not names[name] and text:find "T%.reduce" then
      self.buffers[name] = self.buffers[name] or tir.decl_buffer({ 16 }, "float32", name)
      names[name] = self.buffers[name]
    end
  end
  for name, shape, dtype in text:gmatch "([%w_]+) = T%.Buffer%(%(([^()]*)%),?%s*\"?([%w]*)" do
    local dims = {}
    for dim in shape:gmatch "%d+" do dims[#dims + 1] = math.tointeger(dim) end
    local key = name .. shape
    if shape:find "%a" then goto next end -- its dims are variables of the text
    self.buffers[key] = self.buffers[key]
      or tir.decl_buffer(dims, dtype ~= "" and dtype or "float32", name)
    names[name] = self.buffers[key]
    ::next::
  end
end

--- The node of a recorded expression, or nil and why not.
function replay.expr(self, record)
  if record.py ~= nil then
    if type(record.py) == "table" then return nil, "no scalar" end
    return record.py
  end
  if not record.expr then return nil, "no expression" end
  local names = names_of(self, record)
  declare_buffers(self, record.expr, names)
  local text = record.expr:gsub("%f[%w_]dummy%(", 'T.call_extern("int32", "dummy", ')
  local node, problem = tir.parse_expr(text, "record", names)
  if not node then return nil, tostring(problem) end
  return node
end

-- ------------------------------------------------------------------- values

local infix = { Add = "+", Sub = "-", Mul = "*", FloorDiv = "//", FloorMod = "%", EQ = "==",
  NE = "~=", LT = "<", LE = "<=", GT = ">", GE = ">=", And = "and", Or = "or" }
local prefix = { Div = "div", Mod = "mod", Min = "math.min", Max = "math.max" }

local environment = {
  math = math,
  div = function(x, y) return (x - math.fmod(x, y)) // y end,
  mod = math.fmod,
  select = function(p, x, y) if p then return x end return y end,
}

-- The text of a Lua expression of the value; vectors by the lane `lane`.
local function to_lua(node, vars)
  local kind = node.kind
  if kind == "IntImm" then
    if node.dtype == "bool" then return tostring(node.value ~= 0 and node.value ~= false) end
    return ("(%d)"):format(node.value)
  elseif kind == "FloatImm" then return ("(%.17g)"):format(node.value)
  elseif kind == "Var" then
    for i, var in ipairs(vars) do if var == node then return "v[" .. i .. "]" end end
    vars[#vars + 1] = node
    return "v[" .. #vars .. "]"
  elseif infix[kind] then
    return ("(%s %s %s)"):format(to_lua(node[1], vars), infix[kind], to_lua(node[2], vars))
  elseif prefix[kind] then
    return ("%s(%s, %s)"):format(prefix[kind], to_lua(node[1], vars), to_lua(node[2], vars))
  elseif kind == "Not" then return ("(not %s)"):format(to_lua(node[1], vars))
  elseif kind == "Cast" then return to_lua(node[1], vars)
  elseif kind == "Broadcast" then return to_lua(node[1], vars)
  elseif kind == "Ramp" then
    return ("(%s + lane * %s)"):format(to_lua(node[1], vars), to_lua(node[2], vars))
  elseif kind == "Select" or kind == "PrimCall" and #node == 3 then
    return ("select(%s, %s, %s)"):format(to_lua(node[1], vars), to_lua(node[2], vars),
      to_lua(node[3], vars))
  elseif kind == "PrimCall" and #node == 1 then return to_lua(node[1], vars)
  end
  error("no value of " .. kind)
end

local function compile(node, vars)
  local f = load("local v, lane = ... return " .. to_lua(node, vars), "=value", "t", environment)
  return f or error "too long"
end

--- True if two expressions have the same value at random points where the conditions hold.
function replay.same_value(x, y, conditions, ranges)
  local vars = {}
  local ok, f, g, checks = pcall(function()
    local list = {}
    local p, q = compile(x, vars), compile(y, vars)
    for i, condition in ipairs(conditions or {}) do list[i] = compile(condition, vars) end
    return p, q, list
  end)
  if not ok then return false end
  local points, state = 0, 12345
  local function random(low, high)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return low + (state >> 33) % (high - low + 1)
  end
  for round = 1, 4000 do
    local v, width = {}, round % 3 == 0 and 200 or round % 3 == 1 and 10 or 40
    for i, var in ipairs(vars) do
      local range = ranges and ranges(var)
      local low, high = -width, width
      if range and range[1] > low then low = range[1]; high = math.max(high, low + width) end
      if range and range[2] < high then high = range[2]; low = math.min(low, high) end
      if range and range[1] > low then low = range[1] end
      v[i] = var.dtype == "bool" and random(0, 1) == 1 or random(low, high)
      if var.dtype == "bool" and v[i] ~= true then v[i] = false end
    end
    local holds, lane = true, random(0, 7)
    for _, check in ipairs(checks) do
      local good, value = pcall(check, v, lane)
      holds = holds and good and value
    end
    if holds then
      local good, a = pcall(f, v, lane)
      local fine, b = pcall(g, v, lane)
      if good and fine then
        points = points + 1
        if a ~= b then return false end
      end
      if points >= 600 then return true end
    end
  end
  return points >= 20
end

function replay.size(node)
  local n = 1
  for i = 1, #node do n = n + replay.size(node[i]) end
  return n
end

-- ------------------------------------------------------------------ context

local function range_of(self, record)
  local min, extent = replay.expr(self, record.min), replay.expr(self, record.extent)
  return min and extent and tir.range_from(min, extent)
end

local function apply_state(self, analyzer, state)
  local context = { conditions = {}, bounds = {} }
  for _, step in ipairs(state or {}) do
    local args = step.args
    if step.op == "bind" then
      local var = replay.expr(self, args[1])
      local of = args[2].range and range_of(self, args[2].range) or replay.expr(self, args[2])
      if not of then return nil, "state" end
      analyzer:bind(var, of, true)
      if type(of) ~= "userdata" or of.kind ~= "Range" then
        context.conditions[#context.conditions + 1] = tir.EQ(var, of)
      end
      context.bounds[#context.bounds + 1] = var
    elseif step.op == "update" then
      local var = replay.expr(self, args[1])
      local info = args[2]
      if info.const_int_bound then
        info = { min_value = info.const_int_bound[1], max_value = info.const_int_bound[2] }
      elseif info.modular_set then
        info = info.modular_set
        context.conditions[#context.conditions + 1] =
          tir.EQ(tir.FloorMod(var, info.coeff), info.base)
      else info = replay.expr(self, info) end
      analyzer:update(var, info, true)
      context.bounds[#context.bounds + 1] = var
    elseif step.op == "constraint" then
      local condition = replay.expr(self, args[1])
      if condition == nil then return nil, "state" end
      if type(condition) == "userdata" then
        context.conditions[#context.conditions + 1] = condition
        analyzer:enter(condition)
      end
    end
  end
  return context
end

-- ------------------------------------------------------------------ verdicts

local function compare_exprs(self, analyzer, context, ours, expected)
  local wanted, why = replay.expr(self, expected)
  if wanted == nil then return "different", why end
  if type(wanted) ~= "userdata" then wanted = tir.const(wanted, ours.dtype) end
  if analyzer:term(ours) == analyzer:term(wanted) then return "equal" end
  if tostring(ours) == tostring(wanted) and tostring(ours):find "Any" then return "equal" end
  -- A combiner has variables of its own.
  if ours.kind == "Reduce" and pl.equal(ours, wanted, { map_free_vars = true }) then
    return "equal"
  end
  local function ranges(var)
    local bound = analyzer:const_int_bound(var)
    return { bound.min_value, bound.max_value }
  end
  if replay.size(ours) <= replay.size(wanted)
    and replay.same_value(ours, wanted, context.conditions, ranges) then
    return "better"
  end
  return "different", ("%s, not %s"):format(ours, wanted)
end

local function compare_bounds(min, max, expected)
  local low, high = expected[1], expected[2]
  if min == low and max == high then return "equal" end
  if min >= low and max <= high then return "better" end
  return "different", ("[%d, %d], not [%d, %d]"):format(min, max, low, high)
end

local function compare_sets(ours, expected)
  if ours.coeff == expected.coeff and ours.base == expected.base then return "equal" end
  local finer = ours.coeff == 0 or expected.coeff ~= 0 and ours.coeff % expected.coeff == 0
  if finer and expected.coeff ~= 0 and ours.base % expected.coeff == expected.base then
    return "better"
  end
  return "different", ("%d k + %d, not %d k + %d"):format(ours.coeff, ours.base, expected.coeff,
    expected.base)
end

local function truth(value) return value == true or value == 1 end

local function compare_truth(ours, expected)
  if ours == truth(expected) then return "equal" end
  return ours and "better" or "different", ("%s, not %s"):format(ours, truth(expected))
end

-- ------------------------------------------------------------------ methods

local methods = {}

for _, name in ipairs { "rewrite_simplify", "canonical_simplify", "simplify" } do
  methods[name] = function(self, analyzer, context, record)
    local x, why = replay.expr(self, record.args[1])
    if x == nil then return "different", why end
    if type(x) ~= "userdata" then x = tir.const(x) end
    if record.error_type then
      -- TVM refuses a vector divided by zero; ours leaves it.
      return "better"
    end
    return compare_exprs(self, analyzer, context, analyzer[name](analyzer, x), record.result)
  end
end

function methods.const_int_bound(self, analyzer, _, record)
  local x, why = replay.expr(self, record.args[1])
  if x == nil then return "different", why end
  local bound = analyzer:const_int_bound(x)
  return compare_bounds(bound.min_value, bound.max_value, record.result.const_int_bound)
end

function methods.modular_set(self, analyzer, _, record)
  local x, why = replay.expr(self, record.args[1])
  if x == nil then return "different", why end
  return compare_sets(analyzer:modular_set(x), record.result.modular_set)
end

local compare_check

function methods.can_prove_equal(self, analyzer, _, record)
  if compare_check(self, analyzer, record) then return compare_check(self, analyzer, record) end
  local x, why = replay.expr(self, record.args[1])
  local y, whynot = replay.expr(self, record.args[2])
  if x == nil or y == nil then return "different", why or whynot end
  return compare_truth(analyzer:can_prove_equal(x, y), record.result.py)
end

function methods.can_prove(self, analyzer, _, record)
  local x, why = replay.expr(self, record.args[1])
  if x == nil then return "different", why end
  local strength = record.args[2] and record.args[2].py
    or record.kwargs and record.kwargs.strength and record.kwargs.strength.py or 0
  return compare_truth(analyzer:can_prove(x, strength), record.result.py)
end

-- bind, update and enter_constraint_scope: that they are accepted.
function methods.bind(self, analyzer, _, record)
  local done, why = apply_state(self, analyzer, { { op = "bind", args = record.args } })
  return done and "equal" or "different", why
end

function methods.update(self, analyzer, _, record)
  local done, why = apply_state(self, analyzer, { { op = "update", args = record.args } })
  return done and "equal" or "different", why
end

function methods.enter_constraint_scope(self, analyzer, _, record)
  local done, why = apply_state(self, analyzer, { { op = "constraint", args = record.args } })
  return done and "equal" or "different", why
end

local function end_of(self, record)
  local infinite = record.expr and record.expr:match "(%a+_inf) = T%.handle"
  if infinite then return infinite end
  return replay.expr(self, record)
end

local function set_of(self, record)
  if record.range then
    local min, extent = replay.expr(self, record.range.min), replay.expr(self, record.range.extent)
    return tir.range_from(min, extent)
  end
  local set = record.interval_set
  if not set then return replay.expr(self, record) end
  return { min_value = end_of(self, set[1]), max_value = end_of(self, set[2]) }
end

local function map_of(self, record)
  if not record or not record.map then return nil end
  local out = {}
  for _, row in ipairs(record.map) do out[replay.expr(self, row[1])] = set_of(self, row[2]) end
  return out
end

-- Ends that are proved to be equal are equal; a narrower set is better.
local function compare_ends(self, analyzer, context, ours, record)
  local wanted = end_of(self, record)
  if type(ours) == "string" or type(wanted) == "string" then
    if ours == wanted then return "equal" end
    return "different", ("%s, not %s"):format(ours, wanted)
  end
  local verdict, why = compare_exprs(self, analyzer, context, ours, record)
  if verdict == "different" and analyzer:can_prove_equal(ours, wanted) then return "better" end
  return verdict, why
end

local function compare_intervals(self, analyzer, context, ours, expected)
  local low, why = compare_ends(self, analyzer, context, ours.min_value, expected[1])
  local high, whynot = compare_ends(self, analyzer, context, ours.max_value, expected[2])
  if low == "different" or high == "different" then return "different", why or whynot end
  return low == "equal" and high == "equal" and "equal" or "better"
end

function methods.int_set(self, analyzer, context, record)
  local x = replay.expr(self, record.args[1])
  local ours = analyzer:int_set(x, map_of(self, record.args[2]))
  return compare_intervals(self, analyzer, context, ours, record.result.interval_set)
end

function methods.deduce_bound(self, analyzer, context, record)
  local args = record.args
  local ours = analyzer:deduce_bound(replay.expr(self, args[1]), replay.expr(self, args[2]),
    map_of(self, args[3]), map_of(self, args[4]))
  return compare_intervals(self, analyzer, context, ours, record.result.interval_set)
end

local function exprs_of(self, list)
  local out = {}
  for i, item in ipairs(list) do out[i] = replay.expr(self, item) end
  return out
end

local function compare_lists(self, analyzer, context, ours, expected)
  if #ours ~= #expected then return "different", #ours .. " results, not " .. #expected end
  local all = "equal"
  for i, item in ipairs(expected) do
    local none = item.py == json.null
    local verdict, why = "equal", nil
    if none ~= (ours[i] == false) then return "different", "result " .. i end
    if not none then
      verdict, why = compare_ends(self, analyzer, context, ours[i], item)
    end
    if verdict == "different" then return verdict, why end
    if verdict == "better" then all = "better" end
  end
  return all
end

function methods.detect_linear_equation(self, analyzer, context, record)
  local ours = analyzer:detect_linear_equation(replay.expr(self, record.args[1]),
    exprs_of(self, record.args[2]))
  return compare_lists(self, analyzer, context, ours, record.result)
end

function methods.detect_clip_bound(self, analyzer, context, record)
  local ours = analyzer:detect_clip_bound(replay.expr(self, record.args[1]),
    exprs_of(self, record.args[2]))
  return compare_lists(self, analyzer, context, ours, record.result)
end

-- The condition may differ as long as it is the same after simplification.
function methods.NarrowPredicateExpression(self, analyzer, context, record)
  local ours = analyzer:narrow_predicate_expression(replay.expr(self, record.args[1]),
    map_of(self, record.args[2]))
  local verdict, why = compare_exprs(self, analyzer, context, ours, record.result)
  if verdict ~= "different" then return verdict end
  local wanted = replay.expr(self, record.result)
  local same = analyzer:term(analyzer:simplify(ours)) == analyzer:term(analyzer:simplify(wanted))
  return same and "better" or "different", why
end

local function read_expr(text, names) return assert(tir.parse_expr(text, "record", names)) end

local function last_line(record) return (record.expr or tostring(record.py)):match "[^\n]*$" end

-- The variables of a recorded result: those of the record by their ids, new ones by name.
local function solution_names(self, ours, map)
  local names = {}
  for _, row in ipairs(map) do
    for _, var in ipairs(row[2].vars or {}) do names[var.name] = self.vars[var.id] end
  end
  for _, var in ipairs(ours.variables) do names[var.name] = var end
  return names
end

-- The new variables have the same names; what stands for the old ones is proved to be equal.
local function compare_solutions(self, analyzer, ours, map)
  local names, found, all = solution_names(self, ours, map), {}, "equal"
  for var, node in pairs(ours.src_to_dst) do
    names[var.name] = names[var.name] or var
    found[var.name] = node
  end
  for _, row in ipairs(map) do
    local key = last_line(row[1])
    local ok, wanted = pcall(read_expr, last_line(row[2]), names)
    if not ok or not found[key] then return "different", ("%s: %s"):format(key, wanted) end
    if tostring(wanted) ~= tostring(found[key]) then
      if not analyzer:can_prove_equal(wanted, found[key])
        or replay.size(found[key]) > replay.size(wanted) then
        return "different", ("%s = %s, not %s"):format(key, found[key], wanted)
      end
      all = "better"
    end
  end
  return all
end

function methods.solve_linear_equations(self, analyzer, _, record)
  local result = record.result.IntConstraintsTransform
  local variables = record.args[2] and exprs_of(self, record.args[2]) or {}
  local ours = analyzer:solve_linear_equations(exprs_of(self, record.args[1]), variables,
    map_of(self, record.args[3]))
  local relations = result.dst.IntConstraints.relations
  local none = #relations == 1 and last_line(relations[1]) == "T.bool(False)"
  if not ours or none then return (ours == nil) == none and "equal" or "different", "solvable" end
  return compare_solutions(self, analyzer, ours, result.src_to_dst.map)
end

for _, name in ipairs { "estimate_region_lower_bound", "estimate_region_upper_bound",
  "estimate_region_strict_bound" } do
  methods[name] = function(self, analyzer, context, record)
    local region, kwargs = {}, record.kwargs
    for i, row in ipairs(kwargs.region) do region[i] = range_of(self, row.range) end
    local ours = analyzer[name](analyzer, region, map_of(self, kwargs.var_dom),
      replay.expr(self, kwargs.predicate))
    if record.result.py == json.null then return ours and "better" or "equal" end
    if not ours then return "different", "nothing" end
    for i, row in ipairs(record.result) do
      local verdict, why = compare_intervals(self, analyzer, context, ours[i], row.interval_set)
      if verdict == "different" then return verdict, why end
    end
    return "equal"
  end
end

for _, name in ipairs { "union_lower_bound", "union_upper_bound", "intersect" } do
  methods[name] = function(self, analyzer, context, record)
    local sets = {}
    for i, row in ipairs(record.args[1]) do sets[i] = set_of(self, row) end
    local ours = pl.arith[name == "union_upper_bound" and "union" or name](sets)
    return compare_intervals(self, analyzer, context, ours, record.result.interval_set)
  end
end

-- The statement is recorded with the declarations of its free names inside.
local function statement_of(text)
  local declarations, lines = {}, {}
  for line in text:gmatch "[^\n]+" do
    local declared = line:match "^%s*([%w_]+ = T%.[%w_]+%(.*)$"
    if declared then declarations[#declarations + 1] = "    " .. declared
    else lines[#lines + 1] = "    " .. line end
  end
  local mod = assert(tir.parse("# from tvm.script import tir as T\n@T.prim_func\ndef main():\n"
    .. table.concat(declarations, "\n") .. "\n" .. table.concat(lines, "\n") .. "\n"))
  return mod["main"].body
end

local function touched_buffer(stmt, name)
  local found
  tir.post_order(stmt, function(node)
    local accesses = node.kind == "BufferLoad" or node.kind == "BufferStore"
    if accesses and node.buffer.name == name then found = node.buffer end
  end)
  return found
end

-- Free variables have the same names.
function methods.DomainTouched(self, analyzer, _, record)
  local stmt = statement_of(record.args[1].stmt)
  local buffer = touched_buffer(stmt, record.args[2].str)
  local ours = buffer and pl.arith.domain_touched(stmt, buffer, record.args[3].py,
    record.args[4].py) or {}
  if #ours ~= #record.result then return "different", #ours .. " ranges" end
  for i, row in ipairs(record.result) do
    local min, extent = replay.expr(self, row.range.min), replay.expr(self, row.range.extent)
    local wanted = tir.range_from(analyzer:simplify(min), analyzer:simplify(extent))
    if tostring(ours[i]) ~= tostring(wanted) then
      return "different", ("%s, not %s"):format(ours[i], wanted)
    end
  end
  return "equal"
end

-- The variables are the old ones, or new ones of the same names.
local function compare_constraints(ours, recorded, names)
  local function text_of(record) return tostring(read_expr(last_line(record), names)) end
  for _, row in ipairs(recorded.ranges.map) do
    local key = last_line(row[1])
    local wanted = ("T.Range(%s, %s)"):format(text_of(row[2].range.min),
      text_of(row[2].range.extent))
    local found
    for var, range in pairs(ours.ranges) do
      if tostring(var) == key then found = tostring(range) end
    end
    if found ~= wanted then return "different", ("%s: %s, not %s"):format(key, found, wanted) end
  end
  if #ours.relations ~= #recorded.relations then
    return "different", #ours.relations .. " relations"
  end
  for i, row in ipairs(recorded.relations) do
    if tostring(ours.relations[i]) ~= text_of(row) then
      return "different", ("%s, not %s"):format(ours.relations[i], text_of(row))
    end
  end
  return "equal"
end

function methods.solve_linear_inequalities(self, _, _, record)
  local deskew = record.kwargs and record.kwargs.deskew_range and record.kwargs.deskew_range.py
  local ours = pl.arith.solve_linear_inequalities(exprs_of(self, record.args[1]),
    exprs_of(self, record.args[2]), map_of(self, record.args[3]) or {}, deskew)
  local names = {}
  for _, var in pairs(self.vars) do names[var.name] = var end
  if not deskew then return compare_constraints(ours, record.result.IntConstraints, names) end
  for _, var in ipairs(ours.dst.variables) do names[tostring(var)] = var end
  local transform = record.result.IntConstraintsTransform
  for key, map in pairs { src_to_dst = ours.src_to_dst, dst_to_src = ours.dst_to_src } do
    for _, row in ipairs(transform[key].map) do
      local wanted = tostring(read_expr(last_line(row[2]), names))
      for var, node in pairs(map) do
        if tostring(var) == last_line(row[1]) and tostring(node) ~= wanted then
          return "different", ("%s = %s, not %s"):format(var, node, wanted)
        end
      end
    end
  end
  return compare_constraints(ours.dst, transform.dst.IntConstraints, names)
end

-- The recorded results of detect_iter_map are opaque. But TVM's tests say by the arguments whether
-- they expect one (failures are asked for without simplify_trivial_iterators), and check extent,
-- scale and base of each index by the calls of can_prove_equal that follow.
local function iter_checks(result)
  local checks = {}
  for _, sum in ipairs(result.indices) do
    for _, split in ipairs(sum.args) do
      table.move({ split.extent, split.scale }, 1, 2, #checks + 1, checks)
    end
    checks[#checks + 1] = sum.base
  end
  return checks
end

-- indices, ranges, predicate, check_level, simplify_trivial_iterators of a record.
local function iter_request(self, record)
  local kwargs = record.kwargs or {}
  local predicate = kwargs.predicate and replay.expr(self, kwargs.predicate)
  local level = kwargs.check_level and kwargs.check_level.py
  local trivial = kwargs.simplify_trivial_iterators
  return exprs_of(self, record.args[1]), map_of(self, record.args[2]), predicate, level,
    not trivial or trivial.py
end

local reads_memory = { test_detect_iter_map_with_bufferload_recursion = true }

function methods.detect_iter_map(self, _, _, record)
  local kwargs = record.kwargs or {}
  local fails = kwargs.predicate and not kwargs.simplify_trivial_iterators
    or reads_memory[record.test]
  local result = pl.arith.detect_iter_map(iter_request(self, record))
  self.checks = { n = record.n, test = record.test, values = iter_checks(result),
    indices = result.indices }
  local found = #result.indices > 0
  if found == not fails then return "equal" end
  return "different", found and "found" or table.concat(result.errors, "; ")
end

-- Tests of inverses compare a variable, as a function of output_0, output_1, ...
local function compare_inverse(self, analyzer, record)
  local outputs, wanted = {}, replay.expr(self, record.args[1])
  for i in ipairs(self.checks.indices) do outputs[i] = tir.Var("output_" .. i - 1, "int32") end
  for _, row in ipairs(record.args[1].vars or {}) do
    outputs[tonumber(row.name:match "^output_(%d+)$") + 1] = var_of(self, row)
  end
  for _, ours in pairs(pl.arith.inverse_affine_iter_map(self.checks.indices, outputs)) do
    if analyzer:can_prove_equal(ours, wanted) then return "equal" end
  end
  return "different", "no variable"
end

-- A recorded check of the iterator map that was detected last, or nil if it is none.
function compare_check(self, analyzer, record)
  local checks = self.checks
  if checks and checks.test == record.test and record.test:find "inverse" then
    return compare_inverse(self, analyzer, record)
  end
  local ours = checks and checks.test == record.test and checks.values[record.n - checks.n]
  if not ours then return nil end
  local wanted = replay.expr(self, record.args[1])
  if type(wanted) ~= "userdata" then wanted = tir.const(wanted, ours.dtype) end
  if analyzer:can_prove_equal(ours, wanted) then return "equal" end
  return "different", ("%s, not %s"):format(ours, wanted)
end

function methods.iter_map_simplify(self, analyzer, context, record)
  local ours = pl.arith.iter_map_simplify(iter_request(self, record))
  return compare_lists(self, analyzer, context, ours, record.result)
end

function methods.subspace_divide(self, _, _, record)
  local indices, ranges, predicate, level, trivial = iter_request(self, record)
  local ours = pl.arith.subspace_divide(indices, ranges, exprs_of(self, record.args[3]), predicate,
    level, trivial)
  if #ours == #record.result then return "equal" end
  return "different", #ours .. " pairs, not " .. #record.result
end

replay.methods = methods

local function one(self, record)
  local name = record.method or record["function"]:gsub("^_ffi_api%.", "")
  local method = methods[name]
  if not method then return name, "different", "not there" end
  local analyzer = pl.arith.Analyzer()
  local context, problem = apply_state(self, analyzer, record.state)
  if not context then return name, "different", problem end
  local ok, verdict, why = pcall(method, self, analyzer, context, record)
  if not ok then return name, "different", verdict end
  return name, verdict, why
end

-- The generated index expressions with bound and free variables, and those of programs.
local index_bound = { i = 64, j = 16, k = 32, io = 64, ii = 32, jo = 64, ji = 32 }

local function bind_index_vars(self, analyzer, record)
  for _, row in ipairs(record.expr.vars or {}) do
    if index_bound[row.name] then
      analyzer:bind(var_of(self, row), tir.Range(0, index_bound[row.name]), true)
    end
  end
end

local function index_calls(self, record)
  local out = {}
  local function add(name, key, bound)
    if record[key] == nil or record[key] == json.null then return end
    if type(record[key]) == "table" and record[key].error then return end
    out[#out + 1] = function()
      local analyzer = pl.arith.Analyzer()
      if bound == "index" then bind_index_vars(self, analyzer, record) end
      if bound == "program" then
        local state = {}
        for _, row in ipairs(record.bind) do
          for _, var in ipairs(record.expr.vars or {}) do
            if var.name == row[1] and var.dtype == row[2] then
              state[#state + 1] = { op = "bind", args = {
                { expr = plain_name(var.name), vars = { var } }, row[3] } }
            end
          end
        end
        apply_state(self, analyzer, state)
      end
      local call = { args = { record.expr }, result = record[key] }
      if name == "can_prove" then call.result = { py = record[key] == true or
        type(record[key]) == "table" and record[key].py } end
      return methods[name](self, analyzer, { conditions = {} }, call)
    end
    out[#out] = { name, out[#out] }
  end
  if record.bind then
    for _, name in ipairs { "simplify", "rewrite_simplify", "canonical_simplify", "const_int_bound",
      "modular_set", "can_prove" } do add(name, name, "program") end
  else
    add("simplify", "simplify_bound", "index")
    add("rewrite_simplify", "rewrite_simplify_bound", "index")
    add("canonical_simplify", "canonical_simplify_bound", "index")
    add("simplify", "simplify_unbound", nil)
  end
  return out
end

-- -------------------------------------------------------------------- files

local function count(table_, name, verdict)
  local row = table_[name] or { cases = 0, equal = 0, better = 0, different = 0 }
  table_[name] = row
  row.cases, row[verdict] = row.cases + 1, row[verdict] + 1
end

--- Replays a file; calls report(name, verdict, why, record) for each call.
function replay.file(path, report)
  local self = { vars = {}, buffers = {}, latest = {} }
  for line in io.lines(path) do
    if line:find "%S" then
      local record = json.decode(line)
      if record.method or record["function"] then
        local name, verdict, why = one(self, record)
        report(name, verdict, why, record)
      else
        for _, call in ipairs(index_calls(self, record)) do
          local ok, verdict, why = pcall(call[2])
          if not ok then verdict, why = "different", verdict end
          report(call[1], verdict, why, record)
        end
      end
    end
  end
end

function replay.table(rows)
  local names, lines = {}, {}
  for name in pairs(rows) do names[#names + 1] = name end
  table.sort(names)
  lines[1] = ("%-34s %6s %6s %6s %9s"):format("function", "cases", "equal", "better", "different")
  for _, name in ipairs(names) do
    local r = rows[name]
    lines[#lines + 1] = ("%-34s %6d %6d %6d %9d"):format(name, r.cases, r.equal, r.better,
      r.different)
  end
  return table.concat(lines, "\n")
end

replay.count = count

if arg and arg[0] and arg[0]:find "replay%.lua$" then
  local folder, rows, verbose, files = arg[1], {}, false, {}
  for i = 2, #arg do
    if arg[i] == "-v" then verbose = true else files[#files + 1] = arg[i] end
  end
  if #files == 0 then
    for name in io.popen("ls " .. folder):lines() do files[#files + 1] = name end
  end
  for _, name in ipairs(files) do
    replay.file(folder .. "/" .. name, function(method, verdict, why, record)
      count(rows, name:gsub("%.jsonl$", ""):gsub("^test_arith_", "") .. "." .. method, verdict)
      count(rows, "~ all", verdict)
      if verbose and verdict == "different" then
        local text = (record.args and record.args[1] or record.expr or {}).expr
        print(name:sub(1, 24), record.n, method, text and text:match "[^\n]*$", "->", why)
      end
    end)
  end
  print(replay.table(rows))
end

return replay
