--- pl.instruments.dump: a file of Relay text for each pass that changed something:
-- 001_SimplifyExpr.relay, 002_FoldConstant.relay, ...; 000_input.relay is what
-- the first pass was given. Files of modules of PrimFuncs end in .tir. Numbers go on while
-- the context is entered.

local core = require "perilune.core"
local argument = require "perilune.argument"
local loops = require "perilune.tir.check"
local nesting = require "perilune.instruments.nesting"
core.internal()

local function write(path, text)
  local file, reason = io.open(path, "w")
  if not file then return reason end
  local ok
  ok, reason = file:write(text, "\n")
  local closed, why = file:close()
  if not ok then return reason end
  return not closed and why or nil
end

--- Writes into `folder`, which must be there. What cannot be written is told by
-- `warn` and fails no pass; `failure` is the first reason. `files` lists the names, in order.
-- With options.full the files have all constants, and can be read.
return function(folder, options)
  if type(folder) ~= "string" then
    argument.fail(("dump: the name of a folder expected, got %s"):format(type(folder)))
  end
  local full = argument.options(options, "instruments.dump", { "folder", "full" }).full
  local self = nesting { name = "dump", files = {} }
  local number

  function self.reset() number = -1 end
  self.reset()

  local function put(name, mod)
    number = number + 1
    local file = ("%03d_%s.%s"):format(number, (name:gsub("[^%w_.-]", "_")),
      loops.is_loop_level(mod) and "tir" or "relay")
    local reason = write(folder .. "/" .. file, full and mod:text() or tostring(mod))
    if reason then
      warn("dump: ", reason)
      self.failure = self.failure or reason
    else
      self.files[#self.files + 1] = file
    end
  end

  function self.open(mod)
    if number < 0 then put("input", mod) end
    return { module = mod, number = number }
  end

  -- A pass made of passes has been told about by those.
  function self.close(kept, mod, info)
    if kept.module ~= mod and kept.number == number then put(info.name, mod) end
  end

  return self
end
