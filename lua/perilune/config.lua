--- pl.config: the config keys that contexts take.
--
--     pl.config.verbosity = { default = 1, doc = "How much the pass tells." }
--     print(pl.config.fold.doc)
--     for name, row in pairs(pl.config) do print(name, row.type, row.default) end

local core = require "perilune.core"
core.internal()

return setmetatable({}, {
  __name = "perilune.config",
  __index = function(_, name)
    for _, row in ipairs(core.config_rows()) do
      if row.name == name then return row end
    end
  end,
  __newindex = function(_, name, row)
    if type(row) ~= "table" or row.default == nil then
      error("a config key is { default = ..., doc = ... }", 2)
    end
    core.config_register(name, row.default, row.doc)
  end,
  __pairs = function()
    local rows, i = core.config_rows(), 0
    return function()
      i = i + 1
      if rows[i] then return rows[i].name, rows[i] end
    end
  end,
})
