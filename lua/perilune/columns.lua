--- columns(rows) -> text with the cells of `rows` (lists of strings) set in
-- columns two spaces apart. Cells that look like numbers stand to the right.

require "perilune.core".internal() -- errors name the scripts of others

local function is_number(cell) return cell:find "^[%d.,%-+%%]+ ?[%a%%]*$" ~= nil end

local function widths(rows)
  local result = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      result[i] = math.max(result[i] or 0, utf8.len(cell) or #cell)
    end
  end
  return result
end

return function(rows)
  local width, lines = widths(rows), {}
  for n, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local space = (" "):rep(width[i] - (utf8.len(cell) or #cell))
      cells[i] = is_number(cell) and space .. cell or cell .. space
    end
    lines[n] = table.concat(cells, "  "):gsub(" +$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end
