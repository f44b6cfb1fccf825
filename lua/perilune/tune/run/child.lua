--- Child processes: functions and commands that may crash, hang or print anything.

local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
core.internal()

local child = {}

local function explain(result, limits)
  if result.timed_out then
    return failure.new("timeout", "it was stopped after %g seconds", limits.seconds)
  end
  if result.too_long then
    return failure.new("output", "it was stopped because it wrote more than %d bytes",
      limits.output)
  end
  if result.signal ~= 0 then
    return failure.new("crash", "it crashed: signal %d (%s)", result.signal, result.signal_name)
  end
end

local function limits_of(limits)
  return { seconds = limits.seconds, memory = limits.memory or 0, output = limits.output or 1 << 20,
    pinned = limits.pinned }
end

--- What `f` returns in a fork of this process, as a string; nil and a failure. `limits`:
-- seconds, memory (bytes beyond what this process has), output (bytes), pinned.
function child.call(f, limits)
  limits = limits_of(limits)
  local result = core.child_call(f, limits)
  local why = explain(result, limits)
  if why then return nil, why end
  local mark, text = result.output:match "^([+-])(.*)$"
  if not mark then mark, text = result.output:sub(1, 1), result.output:sub(2) end
  if mark == "+" then return text end
  if mark == "-" then return nil, failure.new("error", "%s", text) end
  return nil, failure.new("crash", "its process ended with the status %d and no result",
    result.code)
end

--- Runs a program: { output =, seconds =, resident = }; nil and a failure.
function child.run(words, limits)
  limits = limits_of(limits)
  local result = core.child_run(words, limits)
  local why = explain(result, limits)
  if why then return nil, why end
  if result.code == 127 then
    return nil, failure.new("status", "there is no such program: %s", table.concat(words, " "))
  elseif result.code ~= 0 then
    return nil, failure.new("status", "its status is %d", result.code)
  end
  return result
end

return child
