--- shaped(list, shape): the numbers of a list as nested tables of that shape, in row-major order;
-- the number itself for rank 0.

local function rows_of(list, shape, level, state)
  local rows = {}
  for i = 1, shape[level] do
    if level < #shape then
      rows[i] = rows_of(list, shape, level + 1, state)
    else
      state.at = state.at + 1
      rows[i] = list[state.at]
    end
  end
  return rows
end

return function(list, shape)
  if #shape == 0 then return list[1] end
  return rows_of(list, shape, 1, { at = 0 })
end
