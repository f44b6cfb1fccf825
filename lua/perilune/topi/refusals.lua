-- Why calls of a module cannot become loops, each reason once with the places of its calls. Made by
-- LowerTE and pl.build, which go on to the end of a module, so that one message tells all.

local core = require "perilune.core"
core.internal()

local refusals = {}

-- Further places of a reason are counted.
local MOST_PLACES = 4

--- An empty list.
function refusals.new() return { rows = {}, by_reason = {} } end

-- Where a node comes from: "net.relay:3:5", "node 'a' (Conv), model.onnx"; nil: nobody knows.
local function source_of(node)
  local history = node and node:history() or {}
  local last = history[#history]
  return last and last.source
end

--- Adds a reason and the node that it stands at, if there is one.
function refusals.add(list, reason, node)
  local row = list.by_reason[reason]
  if not row then
    row = { reason = reason, places = {}, seen = {}, count = 0 }
    list.by_reason[reason] = row
    list.rows[#list.rows + 1] = row
  end
  local place = source_of(node)
  if not place or row.seen[place] then return end
  row.seen[place], row.count = true, row.count + 1
  if row.count <= MOST_PLACES then row.places[row.count] = place end
end

local function row_text(row)
  if row.count == 0 then return row.reason end
  local more = row.count - #row.places
  return ("%s\n  at %s%s"):format(row.reason, table.concat(row.places, "\n  at "),
    more > 0 and ("\n  and %d more"):format(more) or "")
end

--- All reasons in the order in which they were added.
function refusals.text(list)
  local lines = {}
  for i, row in ipairs(list.rows) do lines[i] = row_text(row) end
  return table.concat(lines, "\n")
end

return refusals
