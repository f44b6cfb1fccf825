--- The arguments of `perilune tune` that measure on another machine what the options measure here.

require "perilune.core".internal() -- diagnostics point at the scripts of others

-- Options with a value, and those that may be repeated.
local single = { space = "--space", measure = "--measure", timing = "--timing",
  run_seconds = "--run-seconds", difference = "--difference", run_memory = "--run-memory",
  seed = "--seed",
  opt_level = "--opt-level", opset = "--opset", threads = "--threads" }
local several = { metric = "--metric", set = "--set", disable = "--disable", only = "--only",
  dim = "--dim", shape = "--shape" }
local files = { rules = "--rules", script = "--script" }

local function sent(path) return { input = path, cached = true } end

-- For argparse a value may begin with a dash.
local function add(words, option, value)
  words[#words + 1] = ("%s=%s"):format(option, value)
end

local function add_file(words, option, path)
  words[#words + 1], words[#words + 2] = option, sent(path)
end

--- A list for a queue (tune/queue); files are sent.
return function(options)
  local sorted_keys = require "perilune.sorted_keys"
  local words = { "tune", sent(options.input) }
  for _, name in ipairs(sorted_keys(single)) do
    if options[name] ~= nil then add(words, single[name], options[name]) end
  end
  for _, name in ipairs(sorted_keys(several)) do
    for _, value in ipairs(options[name]) do add(words, several[name], value) end
  end
  for _, name in ipairs(sorted_keys(files)) do
    for _, path in ipairs(options[name]) do add_file(words, files[name], path) end
  end
  if options.exact then words[#words + 1] = "--exact" end
  if options.pipeline and options.pipeline:find "%.lua$" then
    add_file(words, "--pipeline", options.pipeline)
  elseif options.pipeline then
    add(words, "--pipeline", options.pipeline)
  end
  return words
end
