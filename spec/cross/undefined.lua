-- For each folder that is listed, a line each, in the file of the first argument:
-- runs FOLDER/model.onnx into FOLDER/run, folds it into FOLDER/fold. What is
-- refused, or is not folded, leaves no file.

local pl = require "perilune"

local fold = pl.passes.FoldConstant { fold = "all" }

local function save(folder, values)
  for i = 1, values.n do
    assert(pl.onnx.save_value(values[i], ("%s/%d.pb"):format(folder, i - 1)))
  end
end

-- The constants that a function gives, or nil.
local function constants(body)
  local nodes = body.kind == "Tuple" and body.fields or { body }
  local values = { n = #nodes }
  for i, node in ipairs(nodes) do
    if node.kind ~= "Constant" then return nil end
    values[i] = node.data
  end
  return values
end

for folder in io.lines((...)) do
  local mod = assert(pl.onnx.load(folder .. "/model.onnx"))
  local results = table.pack(pcall(pl.eval, mod))
  if results[1] then save(folder .. "/run", table.pack(table.unpack(results, 2, results.n))) end
  local folded = constants(fold(mod).functions.main.body)
  if folded then save(folder .. "/fold", folded) end
end
