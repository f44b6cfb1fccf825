--- What `opt --history` writes: each node of the result, what passes and rules
-- made it, newest first, and where it came from; as text or as JSON.

require "perilune.core".internal() -- diagnostics point at the scripts of others

local history = {}

-- Of a call the operator, else the kind.
local function title(node)
  local op = node.kind == "Call" and node.op
  return op and op.name or node.kind
end

local function change_text(row)
  local parts = { row.pass or "a rewrite outside of passes" }
  if row.rule then parts[1] = parts[1] .. ": " .. row.rule end
  if row.run then parts[#parts + 1] = ("run %d"):format(row.run) end
  if row.application then parts[#parts + 1] = ("application %d"):format(row.application) end
  local text = table.concat(parts, ", ")
  return #row.from > 0 and text .. ", from " .. table.concat(row.from, " and ") or text
end

local function row_text(row) return row.source or change_text(row) end

--- A function a paragraph, a node a line, what is known of it on lines below.
function history.text(module)
  local lines = {}
  for name, fn in pairs(module) do
    lines[#lines + 1] = "@" .. name
    local n = 0
    for node in fn:nodes() do
      n = n + 1
      lines[#lines + 1] = ("  %d %s"):format(n, title(node))
      for _, row in ipairs(node:history()) do lines[#lines + 1] = "    " .. row_text(row) end
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

local fields = { "pass", "rule", "run", "application", "source", "name", "node", "op", "file",
  "line", "column" }

local function json_row(json, row)
  local pairs_of = {}
  for _, field in ipairs(fields) do
    if row[field] then pairs_of[#pairs_of + 1] = { field, row[field] } end
  end
  if row.from then pairs_of[#pairs_of + 1] = { "from", json.list(row.from) } end
  return json.object(pairs_of)
end

local function json_node(json, n, node)
  local rows = node:history()
  for i, row in ipairs(rows) do rows[i] = json_row(json, row) end
  return json.object { { "number", n }, { "what", title(node) }, { "history", json.list(rows) } }
end

--- A list of { name, nodes }, a node { number, what, history }.
function history.json(module)
  local json = require "perilune.json"
  local functions = {}
  for name, fn in pairs(module) do
    local nodes = {}
    for node in fn:nodes() do
      nodes[#nodes + 1] = json_node(json, #nodes + 1, node)
    end
    functions[#functions + 1] = json.object { { "name", name }, { "nodes", json.list(nodes) } }
  end
  return json.encode(json.list(functions)) .. "\n"
end

--- Writes to the file `path`, JSON when it is called NAME.json; "-" stands for
-- `out`. True, or nil and the reason.
function history.write(module, path, out)
  if path == "-" then return out:write(history.text(module)) end
  local text = path:find "%.json$" and history.json(module) or history.text(module)
  local file, reason = io.open(path, "w")
  if not file then return nil, reason end
  local written, why = file:write(text)
  local closed, late = file:close()
  if written and closed then return true end
  return nil, why or late
end

return history
