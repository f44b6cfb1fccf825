--- The rules that perilune ships with (lua/perilune/rules), as lists for scripts and
-- commands. Sets are named by the pass that runs them or by their file.

local core = require "perilune.core"
core.internal()

local library = {}

--- Rows { pass, file, name, text, reason, source, proof, grows, relay, native } in the
-- order in which the rules are tried.
function library.rules() return core.rule_library() end

-- The names of the sets that a rule is of: its pass, its file, and the folder of that.
local function sets_of(row) return { row.pass, row.file, (row.file:match "^(.*)/") } end

--- The rules of a pass, a file or a folder of files; nil and a hint when none has that name.
function library.set(name)
  local list, names, seen = {}, {}, {}
  for _, row in ipairs(library.rules()) do
    for _, set in ipairs(sets_of(row)) do
      if not seen[set] then seen[set], names[#names + 1] = true, set end
    end
    for _, set in ipairs(sets_of(row)) do
      if set == name then list[#list + 1] = row end
    end
  end
  if #list > 0 then return list end
  return nil, core.suggest(name, names)
end

--- The rule of that name among `list` (by default all); nil and a hint.
function library.find(name, list)
  local names = {}
  for _, row in ipairs(list or library.rules()) do
    if row.name == name then return row end
    names[#names + 1] = row.name
  end
  return nil, core.suggest(name, names)
end

return library
