--- Instruments that come with the library. An instrument is a table with any
-- of name, enter(ctx), exit(ctx), should_run(mod, info), before(mod, info) and
-- after(mod, info); pass it in pl.context { instruments = { ... } }.
--
-- registry.lua tells what may be assigned.

local argument = require "perilune.argument"
local changed_functions = require "perilune.debug.changed_functions"
local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
local registry = require "perilune.instruments.registry"
core.internal()

local instruments = {
  timing = require "perilune.instruments.timing",
  diff = require "perilune.instruments.diff",
  dump = require "perilune.instruments.dump",
  oracle = require "perilune.instruments.oracle",
  progress = require "perilune.instruments.progress",
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

local function printer(hook, names, write, options)
  local where = "instruments.print_" .. hook
  if names ~= nil then argument.table(names, where, "names") end
  if write ~= nil then argument.callable(write, where, "write") end
  local full = argument.options(options, where, { "names", "full" }).full
  write = write or print
  return { name = "print_" .. hook, [hook] = function(mod, info)
    if wanted(names, info) then
      write(("-- %s %s\n%s"):format(hook, info.name, full and mod:text() or tostring(mod)))
    end
  end }
end

--- Prints the module before each pass, or before those in `names`: with
-- options.full all its constants.
function instruments.print_before(names, write, options)
  return printer("before", names, write, options)
end

--- Prints the module after each pass, or after those in `names`.
function instruments.print_after(names, write, options)
  return printer("after", names, write, options)
end

-- A line for each row; `text` gives it.
local function shown(name, text)
  return { __name = name, __tostring = function(self)
    local lines = {}
    for i, row in ipairs(self.rows) do lines[i] = text(row) end
    return table.concat(lines, "\n")
  end }
end

local nodes_class = shown("nodes", function(row)
  return ("%s: %d nodes, then %d"):format(row.name, row.before, row.after or row.before)
end)
local memory_class = shown("memory", function(row)
  return ("%s: %d bytes, then %d"):format(row.name, row.before, row.after or row.before)
end)
local changes_class = shown("changes", function(row)
  return ("%s: @%s"):format(row.name, table.concat(row.functions, ", @"))
end)

--- Counts the nodes before and after each pass: `rows` of { name, before, after }.
function instruments.nodes()
  local self = setmetatable(nesting { name = "nodes", rows = {} }, nodes_class)
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
  local self = setmetatable(nesting { name = "memory", rows = {} }, memory_class)
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
  local self = setmetatable(nesting { name = "changes", rows = {} }, changes_class)
  function self.open(mod, info) return { name = info.name, module = mod } end
  function self.close(row, mod)
    if row.module == mod then return end
    self.rows[#self.rows + 1] = { name = row.name, functions = changed_functions(row.module, mod) }
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

-- What they are asked for on a command line.

local names = { name = "names", type = "strings", default = {},
  doc = "The passes; none given: all." }
local full = { name = "full", default = false, doc = "With all constants, however large." }

local function some(list) return list and #list > 0 and list or nil end

return registry.of(instruments, {
  { name = "timing", doc = "How long each pass takes, as a tree." },
  { name = "statistics", doc = "What each pass and its rules did, summed up.",
    options = { unused = { default = false, doc = "Also rules that were never applied." } } },
  { name = "diff", doc = "What each pass changed, line by line.",
    options = { { name = "colour", default = false, doc = "With the colours of a terminal." },
      { name = "most", default = 1000, least = 0,
        doc = "Functions with more differing lines are only named." } } },
  { name = "dump", doc = "A numbered file of text for each pass that changed something.",
    options = { { name = "folder", default = ".", doc = "Where; it must be there." }, full },
    from = function(options) return instruments.dump(options.folder, options) end },
  { name = "oracle", doc = "Evaluates before and after each pass; one that changes what is "
    .. "computed fails.",
    options = { { name = "rounds", default = 6, least = 1, doc = "How many inputs are made." },
      { name = "rtol", default = 1e-5, least = 0, doc = "How far floats may be apart, as a part." },
      { name = "atol", default = 1e-5, least = 0, doc = "The same, beside the largest one." } } },
  { name = "print_before", doc = "Prints the module before passes.",
    options = { names, full },
    from = function(options)
      return instruments.print_before(some(options.names), nil, options)
    end },
  { name = "print_after", doc = "Prints the module after passes.",
    options = { names, full },
    from = function(options)
      return instruments.print_after(some(options.names), nil, options)
    end },
  { name = "nodes", doc = "How many nodes there are before and after each pass." },
  { name = "memory", doc = "How many bytes are held before and after each pass." },
  { name = "changes", doc = "Which functions each pass changed." },
  { name = "verify", doc = "Verifies the module after each pass, unchanged ones too." },
  { name = "progress", doc = "Which pass is at work, on a terminal, when that takes long.",
    options = { seconds = { default = 1.0, least = 0, doc = "How long nothing is shown." } } },
  { name = "only", doc = "Runs only some passes, whatever the context says.",
    options = { names = { type = "strings", default = {}, doc = "The passes." } },
    from = function(options) return instruments.only(options.names) end },
})
