--- pl.instruments.timing: how long each pass takes, as a tree.
--
--     local timing = pl.instruments.timing()
--     pl.with(pl.context { instruments = { timing } }, pipeline, mod)
--     print(timing)                                  -- for people
--     io.open("trace.json", "w"):write(timing:trace())  -- chrome://tracing, Perfetto
--     print(timing:json())                           -- for programs

local core = require "perilune.core"
local json = require "perilune.json"
local nesting = require "perilune.instruments.nesting"
core.internal()

local methods = {}

-- What the outermost passes took.
local function total(rows)
  local sum = 0
  for _, row in ipairs(rows) do
    if row.depth == 0 then sum = sum + (row.seconds or 0) end
  end
  return sum
end

local function text(self)
  local lines, all = {}, total(self.rows)
  for i, row in ipairs(self.rows) do
    local line = ("  "):rep(row.depth) .. row.name
    if row.seconds then
      line = ("%s: %.3f ms [%.3f ms], %.1f %%"):format(line, 1000 * row.seconds,
        1000 * row.own, all > 0 and 100 * row.seconds / all or 0)
      if row.lua >= 1e-6 then line = ("%s, Lua %.3f ms"):format(line, 1000 * row.lua) end
      if row.allocations > 0 then line = ("%s, %d allocations"):format(line, row.allocations) end
    else
      line = line .. ": failed"
    end
    lines[i] = line
  end
  return table.concat(lines, "\n")
end

--- The rows as JSON: a list of { name, depth, seconds, self, lua, allocations }.
function methods.json(self)
  local rows = {}
  for i, row in ipairs(self.rows) do
    rows[i] = json.object { { "name", row.name }, { "depth", row.depth },
      { "seconds", row.seconds }, { "self", row.own }, { "lua", row.lua },
      { "allocations", row.allocations } }
  end
  return json.encode(json.list(rows))
end

--- The rows in the Trace Event Format of Chrome: complete events, microseconds.
function methods.trace(self)
  local events = {}
  for _, row in ipairs(self.rows) do
    if row.seconds then
      events[#events + 1] = json.object { { "name", row.name }, { "cat", "pass" }, { "ph", "X" },
        { "ts", math.floor(1e6 * row.start + 0.5) }, { "dur", math.floor(1e6 * row.seconds + 0.5) },
        { "pid", 1 }, { "tid", 1 },
        { "args", json.object { { "self_us", math.floor(1e6 * row.own + 0.5) },
          { "allocations", row.allocations } } } }
    end
  end
  return json.encode(json.object { { "traceEvents", json.list(events) },
    { "displayTimeUnit", "ms" } })
end

local class = { __index = methods, __name = "timing", __tostring = text }

--- Measures each pass: `rows` of { name, depth, start, seconds, own, lua,
-- allocations } in the order they began. seconds with the passes inside, own
-- without them, lua: in Lua functions that are passes; start counts from the first.
-- A pass that failed has no seconds. tostring shows a tree: total, own, share of all.
return function()
  local self = nesting(setmetatable({ name = "timing", rows = {} }, class))
  local first, inner

  function self.reset() self.rows, first, inner = {}, nil, {} end
  self.reset()

  function self.open(_, info)
    local row = { name = info.name, depth = self.depth }
    self.rows[#self.rows + 1] = row
    inner[row.depth + 1] = 0
    local _, _, allocations = core.memory()
    row.allocations, row.lua = allocations, core.lua_seconds()
    row.clock = core.clock()
    first = first or row.clock
    row.start = row.clock - first
    return row
  end

  function self.close(row)
    row.seconds = core.clock() - row.clock
    local _, _, allocations = core.memory()
    row.allocations, row.lua = allocations - row.allocations, core.lua_seconds() - row.lua
    row.own = math.max(row.seconds - (inner[row.depth + 1] or 0), 0)
    inner[row.depth] = (inner[row.depth] or 0) + row.seconds
    row.clock = nil
  end

  return self
end
