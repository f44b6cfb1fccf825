-- What ONNX's own cases and real models expect is computed, as they are and
-- optimised: the archives beside the project ($PERILUNE_SHARED). Prints how many
-- of ONNX's cases are held to that, and why not the others.

local pl = require "perilune"

local archive = require "spec.onnx.archive"
local perilune = require("spec.cli.command").program
local shared, folder = archive.shared, archive.folder

local NEWEST_OPSET = 28

-- Draws that no two implementations share.
local random = { "^bernoulli", "^training_dropout" }

-- What is expected is the rounding of another computation around zero.
local noise = { dft_inverse = "rounding noise expected beyond atol 1e-7" }

local function lines(command)
  local pipe = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function exists(path)
  local file = io.open(path)
  return file and file:close()
end

-- Runs `perilune test` on the folders: its lines, and the last one.
local function test(dirs, options)
  local list = os.tmpname()
  local file = assert(io.open(list, "w"))
  file:write(table.concat(dirs, "\n"), "\n")
  file:close()
  local said = lines(("%s test --from %s %s"):format(perilune, list, options or ""))
  os.remove(list)
  return said, table.remove(said)
end

local function passes(dirs, options)
  local said, last = test(dirs, options)
  assert.equal(("%d passed, 0 failed, 0 skipped"):format(#dirs), last, table.concat(said, "\n"))
end

-- ------------------------------------------------------------------- ONNX's cases

local function is_random(case)
  if case:find "zero_ratio" then return false end
  for _, pattern in ipairs(random) do if case:find(pattern) then return true end end
  return false
end

local function opset_of(dir)
  local mod = assert(pl.onnx.load(dir .. "/model.onnx"))
  return mod.attrs.opset_import["ai.onnx"] or 0
end

-- What the tool cannot decode: by folder, why.
local function skipped(dirs)
  local reasons = {}
  for _, line in ipairs((test(dirs))) do
    -- Images in formats whose library is not there, or that are not decoded.
    local image, why = line:match "^FAIL (.-): .*'image_decoder': (.-) %(given"
    if image and (why:find "cannot be opened" or why:find "are not decoded") then
      reasons[image] = why
    end
  end
  return reasons
end

local function sort_out(dirs)
  local held, rest, reasons = {}, {}, skipped(dirs)
  for _, dir in ipairs(dirs) do
    local name = dir:match "test_([^/]*)$"
    local reason = is_random(name) and "random draws" or noise[name] or reasons[dir]
    if not reason and opset_of(dir) > NEWEST_OPSET then
      reason = ("opset above %d"):format(NEWEST_OPSET)
    end
    if reason then
      rest[reason] = (rest[reason] or 0) + 1
    else
      held[#held + 1] = dir
    end
  end
  return held, rest
end

-- --------------------------------------------------------------- inferred types

-- What the inferred type says that the tensor is not; nil: nothing.
local function contradiction(tensor, type_)
  if type_.kind ~= "tensor" or type(tensor) ~= "userdata" then return nil end
  local shape = type_.shape
  local same = not type_.dtype or type_.dtype == tensor.dtype
  if shape then
    same = same and #shape == #tensor.shape
    for i, dim in ipairs(shape) do
      same = same and (math.type(dim) ~= "integer" or dim == tensor.shape[i])
    end
  end
  if same then return nil end
  return ("%s was inferred of (%s), %s"):format(tostring(type_), table.concat(tensor.shape, ", "),
    tensor.dtype)
end

-- The results of the model on its first data, beside their inferred types.
local function check_types(dir)
  local mod = assert(pl.onnx.load(dir .. "/model.onnx"))
  local main, operands = mod.main, {}
  for i, param in ipairs(main.params) do
    local path = ("%s/test_data_set_0/input_%d.pb"):format(dir, i - 1)
    if exists(path) then operands[i] = pl.onnx.load_value(path, param.type) end
  end
  local type_ = main.body.type
  local types = type_.kind == "tuple" and type_.parts or { type_ }
  local results = table.pack(pl.eval(mod, table.unpack(operands, 1, #main.params)))
  for i, one in ipairs(types) do
    local wrong = contradiction(results[i], one)
    assert(not wrong, wrong and ("%s, result %d: %s"):format(dir, i, wrong))
  end
end

describe("conformance:", function()
  local held

  it("ONNX's cases of operators", function()
    local unpacked = archive.unpack("conformance/onnx-node.tar.xz", "node")
    if not unpacked then pending "no archive" return end
    local dirs = lines(("ls -d %s/node/test_*"):format(folder))
    local rest
    held, rest = sort_out(dirs)
    print(("%d of %d cases are held to ONNX's results; not:"):format(#held, #dirs))
    for reason, count in pairs(rest) do print(("  %4d %s"):format(count, reason)) end
    assert.is_true(#held > 1000)
    passes(held)
  end)

  it("the same, optimised", function()
    if not held then pending "no archive" return end
    passes(held, "--opt")
  end)

  it("results are of the types inferred for them", function()
    if not held then pending "no archive" return end
    for _, dir in ipairs(held) do check_types(dir) end
  end)

  it("graphs on which other optimisers go wrong", function()
    local dirs = {}
    for _, path in ipairs(lines(("ls -d %s/conformance/incumbent-defects/*/test_data_set_0"):format(
      shared))) do dirs[#dirs + 1] = path:match "^(.*)/" end
    if #dirs == 0 then pending "no graphs" return end
    passes(dirs)
    passes(dirs, "--opt")
  end)

  it("real models", function()
    local names = exists(shared .. "/models/first.txt")
      and lines(("cat %s/models/first.txt"):format(shared)) or {}
    local members = {}
    for i, name in ipairs(names) do members[i] = "torch/" .. name end
    if not archive.unpack("models/torch.tar.xz", "real", table.concat(members, " ")) then
      pending "no archive"
      return
    end
    local dirs = lines(("ls -d %s/models/light_*"):format(shared))
    for _, name in ipairs(members) do dirs[#dirs + 1] = ("%s/real/%s"):format(folder, name) end
    local tolerance = "--rtol 1e-3 --atol 1e-4 --scaled"
    passes(dirs, tolerance)
    passes(dirs, tolerance .. " --opt")
  end)
end)
