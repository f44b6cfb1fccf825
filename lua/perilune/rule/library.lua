--- The rules that perilune ships with (lua/perilune/rules), as lists for scripts and
-- commands. Sets are named by the pass that runs them or by their file.

local core = require "perilune.core"
core.internal()

local library = {}

--- Rows { pass, file, name, text, reason, source, proof, grows, relay, native } in the
-- order in which the rules are tried.
function library.rules() return core.rule_library() end

--- The rules of a pass or a file; nil and a hint when there is none of that name.
function library.set(name)
  local list, names, seen = {}, {}, {}
  for _, row in ipairs(library.rules()) do
    for _, set in ipairs { row.pass, row.file } do
      if not seen[set] then seen[set], names[#names + 1] = true, set end
    end
    if row.pass == name or row.file == name then list[#list + 1] = row end
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
