--- Instruments that come with the library. An instrument is a table with any
-- of name, enter(ctx), exit(ctx), should_run(mod, info), before(mod, info) and
-- after(mod, info); pass it in pl.context { instruments = { ... } }.
--
--     pl.instruments.mine = function() return { before = ... } end   -- one more
--     for name, make in pairs(pl.instruments) do print(name) end

local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
core.internal()

local instruments = {
  timing = require "perilune.instruments.timing",
  diff = require "perilune.instruments.diff",
  dump = require "perilune.instruments.dump",
  oracle = require "perilune.instruments.oracle",
  statistics = require "perilune.instruments.statistics",
}

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
  local self = nesting { name = "nodes", rows = {} }
  function self.open(mod, info)
    local row = { name = info.name, before = core.module_nodes(mod) }
    self.rows[#self.rows + 1] = row
    return row
  end
  function self.close(row, mod) row.after = core.module_nodes(mod) end
  return self
end

--- Bytes that the engine holds before and after each pass, and the most that it
-- ever held: `rows` of { name, before, after, peak }.
function instruments.memory()
  local self = nesting { name = "memory", rows = {} }
  function self.open(_, info)
    local row = { name = info.name, before = (core.memory()) }
    self.rows[#self.rows + 1] = row
    return row
  end
  function self.close(row) row.after, row.peak = core.memory() end
  return self
end

--- What changed: `rows` of { name, functions }: passes that changed something, in
-- order, each with the names of the functions that it changed, made or removed.
function instruments.changes()
  local self = nesting { name = "changes", rows = {} }
  function self.open(mod, info) return { name = info.name, module = mod } end
  function self.close(row, mod)
    if row.module == mod then return end
    local names, before = {}, row.module.functions
    for name, fn in pairs(mod) do
      if before[name] ~= fn then names[#names + 1] = name end
    end
    for name in pairs(row.module) do
      if not mod.functions[name] then names[#names + 1] = name end
    end
    table.sort(names)
    self.rows[#self.rows + 1] = { name = row.name, functions = names }
  end
  return self
end

--- Verifies the module after each pass, unchanged ones too; a broken one fails
-- the pass.
function instruments.verify()
  return { name = "verify", after = function(mod, info)
    local good, diag = core.verify_module(mod)
    if not good then error(("after pass '%s': %s"):format(info.name, diag.message), 0) end
  end }
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
