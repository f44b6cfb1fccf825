--- pl.instruments.progress: a line on a terminal that tells which pass is at work,
-- when the work takes longer than a second: "12: deploy > FoldConstant", the 12th
-- pass that began. What runs in no context shows texts of its own.

local argument = require "perilune.argument"
local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
core.internal()

local function to_stderr(text) io.stderr:write(text) end

--- options: seconds (1) until the line shows, write(text) (to standard error, if it
-- is a terminal). self.show(text) replaces the line, self.clear() takes it away.
return function(options)
  options = argument.options(options, "instruments.progress", { "seconds", "write" })
  local write = options.write or core.terminal() and to_stderr
  local delay = options.seconds or 1
  local started, shown = core.clock(), false

  local function show(text)
    if not write or core.clock() - started < delay then return end
    write("\r\27[K" .. text)
    shown = true
  end

  local function clear()
    if shown then write "\r\27[K" end
    shown = false
  end

  if not write then
    return { name = "progress", show = show, clear = clear }
  end

  local self = nesting { name = "progress", show = show, clear = clear, exit = clear }
  local names, count = {}, 0

  function self.reset() started, count = core.clock(), 0 end

  function self.open(_, info)
    count = count + 1
    names[self.depth + 1] = info.name
    show(("%d: %s"):format(count, table.concat(names, " > ", 1, self.depth + 1)))
  end

  function self.close() end

  return self
end
