--- Numbers that are given on the command line.

require "perilune.core".internal() -- errors name the scripts of others

local stop = require "perilune.cli.stop"

local numbers = {}

--- For argparse's convert: a number of at least 0.
function numbers.tolerance(text)
  local number = tonumber(text)
  if number and number >= 0 then return number end
  return nil, ("'%s' is not a number of at least 0"):format(text)
end

--- An integer of at least 1.
function numbers.count(text)
  local number = math.tointeger(tonumber(text))
  if number and number >= 1 then return number end
  return nil, ("'%s' is not a count"):format(text)
end

--- An integer of at least 0.
function numbers.seed(text)
  local number = math.tointeger(tonumber(text))
  if number and number >= 0 then return number end
  return nil, ("'%s' is not a seed: an integer of at least 0"):format(text)
end

--- An integer from 0 to 64; 0: one for each processor.
function numbers.threads(text)
  local number = math.tointeger(tonumber(text))
  if number and number >= 0 and number <= 64 then return number end
  return nil, ("'%s' is not a number of threads from 0 to 64"):format(text)
end

--- A level of optimisation: passes of higher levels do not run.
function numbers.opt_level(text)
  local number = math.tointeger(tonumber(text))
  if number and number >= 0 and number <= 4 then return number end
  return nil, ("'%s' is not a level from 0 to 4"):format(text)
end

--- An opset of ai.onnx that models are converted to.
function numbers.opset(text)
  local number, known = math.tointeger(tonumber(text)), require "perilune".onnx.opsets
  if number and number >= known.oldest and number <= known.newest then return number end
  return nil, ("'%s' is not an opset from %d to %d"):format(text, known.oldest, known.newest)
end

--- The texts of `--dim NAME=SIZE` as { name, size }.
function numbers.dims(texts)
  local dims = {}
  for i, text in ipairs(texts) do
    local name, size = text:match "^(.-)=(%d+)$"
    if not name or name == "" then
      stop.usage("--dim %s: expected NAME=SIZE, as in --dim batch=1", text)
    end
    size = math.tointeger(size)
    if not size then stop.usage("--dim %s: there is no such size", text) end
    dims[i] = { name = name, size = size }
  end
  return dims
end

return numbers
