--- pl.profile: what each call of an operator in a run costs.
--
--     local profile = pl.profile()
--     pl.eval { mod, x, profile = profile }
--     print(profile)                                    -- by operator and by node
--     io.open("trace.json", "w"):write(profile:trace()) -- chrome://tracing, Perfetto
--     for _, row in ipairs(profile.rows) do print(row.node.op.name, row.seconds, row.flops) end

local core = require "perilune.core"
local json = require "perilune.json"
core.internal()

local methods = {}

-- What rows have in common and is added up.
local SUMS = { "seconds", "macs", "flops", "bytes" }

-- { key, name, calls, seconds, macs, flops, bytes } of each key, the longest first.
local function grouped(rows, key_of, name_of)
  local groups, by_key = {}, {}
  for _, row in ipairs(rows) do
    local key = key_of(row)
    local group = by_key[key]
    if not group then
      group = { key = key, name = name_of(row), calls = 0 }
      for _, field in ipairs(SUMS) do group[field] = 0 end
      by_key[key], groups[#groups + 1] = group, group
    end
    group.calls = group.calls + 1
    for _, field in ipairs(SUMS) do group[field] = group[field] + row[field] end
    group.order = group.order or #groups
  end
  table.sort(groups, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.order < b.order
  end)
  return groups
end

local function operator_of(row) return row.node.op.name end

local function node_of(row) return row.node end

-- Where it comes from, else the operator and the type of its result.
local function node_name(row)
  return row.source or ("%s: %s"):format(row.node.op.name, row.node.type or "?")
end

--- By operator: a list of { name, calls, seconds, macs, flops, bytes }, the longest first.
function methods.operators(self) return grouped(self.rows, operator_of, operator_of) end

--- By node, likewise, and with `key`, the node.
function methods.nodes(self)
  return grouped(self.rows, node_of, node_name)
end

--- The seconds of all calls.
function methods.total(self)
  local sum = 0
  for _, row in ipairs(self.rows) do sum = sum + row.seconds end
  return sum
end

local function count(n)
  local names, i = { "", " k", " M", " G", " T" }, 1
  while n >= 1000 and i < #names do n, i = n / 1000, i + 1 end
  return (i == 1 and "%d%s" or n < 10 and "%.2f%s" or "%.1f%s"):format(n, names[i])
end

local function add_table(lines, title, groups, total, most)
  local cells = { { title, "calls", "ms", "%", "FLOP", "GFLOP/s", "bytes" } }
  for i = 1, math.min(#groups, most) do
    local group = groups[i]
    cells[i + 1] = { group.name, tostring(group.calls), ("%.3f"):format(1e3 * group.seconds),
      ("%.1f"):format(total > 0 and 100 * group.seconds / total or 0), count(group.flops),
      group.seconds > 0 and ("%.1f"):format(1e-9 * group.flops / group.seconds) or "-",
      count(group.bytes) }
  end
  lines[#lines + 1] = require "perilune.columns"(cells):gsub("\n$", "")
  if #groups > most then lines[#lines + 1] = ("and %d more"):format(#groups - most) end
end

--- As text: a table by operator, and one of the `most` nodes (20) that take longest.
function methods.text(self, most)
  local lines, total = {}, self:total()
  add_table(lines, "operator", self:operators(), total, math.huge)
  lines[#lines + 1] = ""
  add_table(lines, "node", self:nodes(), total, most or 20)
  lines[#lines + 1] = ""
  lines[#lines + 1] = ("%d calls, %.3f ms"):format(#self.rows, 1e3 * total)
  return table.concat(lines, "\n")
end

-- A row for other programs.
local function object(row)
  return json.object { { "op", row.node.op.name }, { "node", node_name(row) },
    { "begin", row.begin }, { "seconds", row.seconds }, { "macs", row.macs },
    { "flops", row.flops }, { "bytes", row.bytes } }
end

--- As JSON: a list of { op, node, begin, seconds, macs, flops, bytes } in the order of the calls.
function methods.json(self)
  local list = {}
  for i, row in ipairs(self.rows) do list[i] = object(row) end
  return json.encode(json.list(list))
end

--- In the Trace Event Format of Chrome: complete events, microseconds.
function methods.trace(self)
  local events = {}
  for i, row in ipairs(self.rows) do
    events[i] = json.object { { "name", node_name(row) }, { "cat", row.node.op.name },
      { "ph", "X" }, { "ts", 1e6 * row.begin }, { "dur", 1e6 * row.seconds }, { "pid", 1 },
      { "tid", 1 }, { "args", json.object { { "macs", row.macs }, { "flops", row.flops },
        { "bytes", row.bytes } } } }
  end
  return json.encode(json.object { { "traceEvents", json.list(events) },
    { "displayTimeUnit", "ms" } })
end

local class = { __index = methods, __name = "profile", __tostring = methods.text }

local profile = {}

--- An empty profile.
function profile.new() return setmetatable({ rows = {} }, class) end

--- Whether a value is one.
function profile.is(value) return getmetatable(value) == class end

--- Calls f and appends what its runs cost to the profile. A failure appends nothing.
function profile.collect(into, f, ...)
  local function keep(rows, ...)
    table.move(rows, 1, #rows, #into.rows + 1, into.rows)
    return ...
  end
  return keep(core.profiled(f, ...))
end

return profile
