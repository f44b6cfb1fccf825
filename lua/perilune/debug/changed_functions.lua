--- The names of the functions in which two modules differ, in order: changed, made
-- and removed ones. Two of one name are the same when same(a, b) says so, else
-- when they are the same object.
require "perilune.core".internal()

return function(before, after, same)
  local names, former, now = {}, before.functions, after.functions
  for name, fn in pairs(after) do
    local old = former[name]
    if old ~= fn and not (old and same and same(old, fn)) then names[#names + 1] = name end
  end
  for name in pairs(before) do
    if not now[name] then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end
