-- Node counts of optimised models beside those of other optimisers, and by families of
-- exports of one network.
--
--     lua5.4 spec/bench/rules.lua BUILD [FOLDER]   (from the project's root)
--
-- FOLDER holds a folder a model with model.onnx in it; without it, the models of
-- ../shared/models are unpacked into BUILD/bench. The peers' counts are read from
-- ../shared/models/peers.md. Nodes are counted without Constant, subgraphs included.
-- A family is what comes before the last "-" of the names. Families that differ in size
-- are also converted to the newest opset of their members.

local build = arg[1] or "build"
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath
local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local perilune = build .. "/bin/perilune"
local columns = require "perilune.columns"

local folder = arg[2]
if not folder then
  folder = build .. "/bench/torch"
  os.execute(("mkdir -p %s && tar xf %s/models/torch.tar.xz -C %s --strip-components=1"):format(
    folder, shared, folder))
end

local function lines_of(command)
  local pipe <close> = assert(io.popen(command))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  return lines
end

-- name -> best count of the peers
local function read_peers()
  local best = {}
  local file = io.open(shared .. "/models/peers.md")
  if not file then return best end
  for line in file:lines() do
    local name, _, count = line:match "^| ([%w_%-%.]+) | (%d+) | (%d+) |"
    if name then best[name] = tonumber(count) end
  end
  file:close()
  return best
end

local function optimise(path, options)
  local out = os.tmpname()
  local text = table.concat(lines_of(("%s opt %s %s -o %s --stats json 2>&1"):format(perilune, path,
    options or "", out)), "\n")
  os.remove(out)
  local function field(name)
    return assert(tonumber(text:match('"' .. name .. '":([%d.e+-]+)')), path .. ": " .. text)
  end
  return { before = field "compute_nodes_before", after = field "compute_nodes_after",
    seconds = field "seconds" }
end

local best = read_peers()
local rows = { { "model", "nodes", "ours", "best peer", "", "s" } }
local families, order = {}, {}
local before, ours, peers, over, seconds = 0, 0, 0, 0, 0

for _, path in ipairs(lines_of("ls -d " .. folder .. "/*/model.onnx")) do
  local name = path:match "([^/]+)/model%.onnx$"
  local stats = optimise(path)
  local count, peer = stats.after, best[name]
  rows[#rows + 1] = { name, stats.before, count, peer or "-",
    peer and count > peer and "OVER" or "", ("%.3f"):format(stats.seconds) }
  before, ours, seconds = before + stats.before, ours + count, seconds + stats.seconds
  if peer then peers = peers + peer end
  if peer and count > peer then over = over + 1 end
  local family = name:match "^(.*)%-[^%-]+$" or name
  if not families[family] then
    families[family], order[#order + 1] = {}, family
  end
  table.insert(families[family], { name = name, count = count })
end
rows[#rows + 1] = { "total", before, ours, peers, over .. " over", ("%.3f"):format(seconds) }
for _, row in ipairs(rows) do
  for i, cell in ipairs(row) do row[i] = tostring(cell) end
end
print(columns(rows))

local function opset_of(name)
  local text = table.concat(lines_of(("%s info --json %s/%s/model.onnx"):format(perilune, folder,
    name)))
  local opset = tonumber(text:match '"ai%.onnx":(%d+)')
  return opset or error(text)
end

-- The members in the newest opset of them, because an older one has fewer operators.
local function in_one_opset(list)
  local newest, converted = 0, {}
  for _, model in ipairs(list) do newest = math.max(newest, opset_of(model.name)) end
  for i, model in ipairs(list) do
    local stats = optimise(("%s/%s/model.onnx"):format(folder, model.name), "--opset " .. newest)
    converted[i] = { name = model.name, count = stats.after }
  end
  return converted
end

local function has_one_size(list)
  for _, model in ipairs(list) do if model.count ~= list[1].count then return false end end
  return true
end

local function sizes(family, list)
  local parts = {}
  for i, model in ipairs(list) do parts[i] = model.name:sub(#family + 2) .. " " .. model.count end
  return table.concat(parts, ", ")
end

local several, one, one_in_opset = 0, 0, 0
print "\nfamilies that do not come to one size (in the newest opset of their members):"
for _, family in ipairs(order) do
  local list = families[family]
  if #list > 1 then
    several = several + 1
    if has_one_size(list) then one = one + 1 else
      local converted = in_one_opset(list)
      if has_one_size(converted) then one_in_opset = one_in_opset + 1 end
      print(("  %s: %s (%s)"):format(family, sizes(family, list), sizes(family, converted)))
    end
  end
end
print(("%d of %d families come to one size, %d in one opset"):format(one, several,
  one + one_in_opset))
