-- Whole processes: start-up, `opt` on real and synthetic models, with what
-- is promised and, where onnxruntime is installed, what its basic level takes.
--
--     lua5.4 spec/bench/process.lua BUILD     (from the project's root)

package.path = "lua/?.lua;lua/?/init.lua;spec/bench/?.lua;" .. package.path

local build = arg[1] or "build"
local perilune, measure = build .. "/bin/perilune", build .. "/spec/bench/measure"
local python = os.getenv "PERILUNE_PYTHON" or "build/venv/bin/python"
local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local work = build .. "/bench"
os.execute("mkdir -p " .. work)

local graphs = require "graphs"
local columns = require "perilune.columns"

-- Seconds and bytes of a command.
local function cost(count, command)
  local pipe = io.popen(("%s %d %s 2>/dev/null"):format(measure, count, command))
  local seconds, bytes = pipe:read("n", "n")
  pipe:close()
  return seconds, bytes
end

local rows = { { "work", "seconds", "MB", "wanted", "ORT basic s", "MB", "ratio" } }

local has_peer = os.execute(python .. " -c 'import onnxruntime' 2>/dev/null")

local function peer_cost(input)
  if not has_peer then return end
  return cost(1, ("%s spec/bench/peer.py '%s' %s/peer.onnx"):format(python, input, work))
end

local function show(name, wanted, seconds, bytes, peer_seconds, peer_bytes)
  rows[#rows + 1] = {
    name, seconds and ("%.4f"):format(seconds) or "failed",
    bytes and ("%.1f"):format(bytes / 1e6) or "-", wanted,
    peer_seconds and ("%.2f"):format(peer_seconds) or "-",
    peer_bytes and ("%.0f"):format(peer_bytes / 1e6) or "-",
    peer_seconds and seconds and ("%.0f"):format(peer_seconds / seconds) or "-",
  }
end

local function opt(input, count)
  return cost(count or 5, ("%s opt -q '%s' -o %s/out.onnx"):format(perilune, input, work))
end

show("perilune --version", "5 ms, 8 MB", cost(21, perilune .. " --version"))

local resnet = shared .. "/models/light_resnet50/model.onnx"
if io.open(resnet) then
  local seconds, bytes = opt(resnet, 11)
  show("opt light_resnet50", "30 ms, 40 MB", seconds, bytes, peer_cost(resnet))
end

local large = {}
for _, kind in ipairs { "chain", "duplicates", "foldable", "identities" } do
  local path = ("%s/%s.onnx"):format(work, kind)
  graphs[kind](16000, path)
  local seconds, bytes = opt(path, 11)
  show("opt 16,000 " .. kind, "50 ms", seconds, bytes, peer_cost(path))
  graphs[kind](1000000, path)
  local all, all_bytes = opt(path, 5)
  show("opt 1,000,000 " .. kind, "1.3 x a node", all, all_bytes)
  large[#large + 1] = { kind, seconds, all }
  os.remove(path)
end

local data = work .. "/sparse.onnx"
graphs.sparse(28, data)
show("opt 28 GB, sparse external data", "10 s, 512 MB", opt(data, 1))
os.execute(("mkdir -p %s/other"):format(work))
show("... into another folder", "10 s, 512 MB",
  cost(1, ("%s opt -q %s -o %s/other/out.onnx"):format(perilune, data, work)))
os.execute(("rm -rf %s %s.data %s/out.onnx %s/other"):format(data, data, work, work))

io.stdout:write(columns(rows))
for _, row in ipairs(large) do
  local kind, small, all = table.unpack(row)
  if small and all then
    print(("%s: %.2f us a node at 16,000, %.2f us at 1,000,000: %.2f times"):format(kind,
      small / 16000 * 1e6, all, all / 1e6 / (small / 16000)))
  end
end
