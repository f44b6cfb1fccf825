--- The names of rules that contexts may ask for: those of the shipped rules and of every
-- set that scripts have made (pl.rules) and that is still in use.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local names = {}

local sets = setmetatable({}, { __mode = "k" })

--- Lets a set's rules be asked for by name.
function names.add(set) sets[set] = true end

local function known()
  local seen, list = {}, {}
  local function note(rows)
    for _, row in ipairs(rows) do
      if not seen[row.name] then seen[row.name], list[#list + 1] = true, row.name end
    end
  end
  note(core.rule_library())
  for set in pairs(sets) do note(set.rules) end
  table.sort(list)
  return seen, list
end

--- Raises unless each of the names is one of a rule; `where` says what asks for them.
function names.check(wanted, where)
  if type(wanted) ~= "table" or #wanted == 0 then return end
  local seen, list = known()
  for _, name in ipairs(wanted) do
    if not seen[name] then
      argument.fail(("%s: no rule is called '%s'%s"):format(where, tostring(name),
        core.suggest(tostring(name), list)))
    end
  end
end

return names
