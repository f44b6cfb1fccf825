--- pl.config: the config keys that contexts take.
--
--     pl.config.verbosity = { default = 1, least = 0, doc = "How much the pass tells." }
--     pl.config["tir.LoopPartition"] = { fields = { partition_const_loop = false } }
--     print(pl.config.fold.doc)
--     for name, row in pairs(pl.config) do print(name, row.type, row.default) end
--     pl.config.verbosity = nil
--
-- What indexing gives is a row: name, type, default, doc, and where the key has
-- such: choices, least, most, fields (rows again). A key of a script's may be
-- assigned anew; contexts made before keep what they have.

local core = require "perilune.core"
local argument = require "perilune.argument"
local option = require "perilune.pass.option"
core.internal()

local function find(name)
  for _, row in ipairs(core.config_rows()) do
    if row.name == name then return row end
  end
end

local function assign(_, name, row)
  if type(name) ~= "string" or name == "" then argument.fail("config keys have names") end
  if row == nil then
    if find(name) then core.config_unregister(name) end
    return
  end
  if type(row) ~= "table" or (row.default == nil and row.fields == nil) then
    argument.fail("a config key is { default = ..., doc = ... } or { fields = { ... } }")
  end
  core.config_register(option.row(name, row))
end

return setmetatable({}, {
  __name = "perilune.pass.config",
  __index = function(_, name) return find(name) end,
  __newindex = assign,
  __pairs = function()
    local rows, i = core.config_rows(), 0
    return function()
      i = i + 1
      if rows[i] then return rows[i].name, rows[i] end
    end
  end,
})
