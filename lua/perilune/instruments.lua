--- Instruments that come with the library. An instrument is a table with any
-- of name, enter(ctx), exit(ctx), should_run(mod, info), before(mod, info) and
-- after(mod, info); pass it in pl.context { instruments = { ... } }.

local core = require "perilune.core"
core.internal()

local instruments = {}

local timing_class = {
  __index = {},
  __name = "timing",
  __tostring = function(self)
    local lines = {}
    for i, row in ipairs(self.rows) do
      lines[i] = ("%s%s: %.3f ms"):format(("  "):rep(row.depth), row.name,
        1000 * (row.seconds or 0))
    end
    return table.concat(lines, "\n")
  end,
}

--- Measures how long each pass takes: `rows` of { name, depth, seconds } in
-- the order they began; tostring shows them as a tree.
function instruments.timing()
  local self = setmetatable({ name = "timing", rows = {} }, timing_class)
  local open = {}
  function self.enter() self.rows, open = {}, {} end
  function self.before(_, info)
    local row = { name = info.name, depth = #open, started = core.clock() }
    self.rows[#self.rows + 1] = row
    open[#open + 1] = row
  end
  function self.after()
    local row = table.remove(open)
    if row then row.seconds, row.started = core.clock() - row.started, nil end
  end
  return self
end

-- Whether the pass is one of the names; all are when there is no list.
local function wanted(names, info)
  if not names then return true end
  for _, name in ipairs(names) do
    if name == info.name then return true end
  end
  return false
end

local function printer(hook, names, write)
  write = write or print
  return { name = "print_" .. hook, [hook] = function(mod, info)
    if wanted(names, info) then
      write(("-- %s %s\n%s"):format(hook, info.name, tostring(mod)))
    end
  end }
end

--- Prints the module before each pass, or before those in `names`.
function instruments.print_before(names, write) return printer("before", names, write) end

--- Prints the module after each pass, or after those in `names`.
function instruments.print_after(names, write) return printer("after", names, write) end

--- Counts the nodes before and after each pass: `rows` of { name, before, after }.
function instruments.nodes()
  local self = { name = "nodes", rows = {} }
  local open = {}
  function self.before(mod, info)
    local row = { name = info.name, before = core.module_nodes(mod) }
    self.rows[#self.rows + 1] = row
    open[#open + 1] = row
  end
  function self.after(mod)
    local row = table.remove(open)
    if row then row.after = core.module_nodes(mod) end
  end
  return self
end

--- Runs only the passes in `names` (and sequentials), whatever the context
-- says: for finding out which pass does what.
function instruments.only(names)
  return { name = "only", should_run = function(_, info)
    local registered = core.registered(info.name)
    return wanted(names, info) or not registered
  end }
end

return instruments
