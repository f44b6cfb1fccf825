-- What is decided for the kernels of a model: texts by the key of a function and the name of the
-- decision. LowerTE asks for each decision, and takes the first candidate where nothing is said.
--
--     fused_nn_conv_nn_relu_5c1f0a7b3e2d9846: winograd=4 tile=14x2;
--     fused_nn_gemm_0d4be11c7a93f5e2: panel=64
--
-- Functions stand in lines, or have ';' in between. The module's attribute `schedules` has such a
-- text; an ONNX file keeps it as metadata. A key is made of the function's text, so that decisions
-- are found again in another process; those for functions that a model does not have change
-- nothing, and a decision that is no candidate is the default.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local text_hash = require "perilune.tune.text_hash"

local decision = {}

-- Constants stand in the text by their hash.
local brief = { constants = "brief", hash_references = true }

-- Names of operators in a key are cut at that length.
local MOST_NAME = 48

--- The key of a function of operators; `facts`: a text of what is known of its operands.
function decision.key(fn, facts)
  local names = {}
  for node in fn:nodes() do
    if node.kind == "Call" then names[#names + 1] = node.op and node.op.name or "call" end
  end
  local name = table.concat(names, "_"):gsub("%W", "_"):sub(1, MOST_NAME)
  return ("fused_%s_%s"):format(name, text_hash(fn:text(brief) .. facts))
end

--- decide(name, candidates) for one function: what `given` (texts by name) has, if it is a
-- candidate, else the first one. Where there is a choice, list gets { name, candidates, chosen }.
function decision.decider(given, list)
  return function(name, candidates)
    local chosen = candidates[1]
    for _, text in ipairs(candidates) do
      if given and given[name] == text then chosen = text end
    end
    if #candidates > 1 then
      list[#list + 1] = { name = name, candidates = candidates, chosen = chosen }
    end
    return chosen
  end
end

local function parse_function(line, number, out)
  local key, rest = line:match "^%s*([%w_]+)%s*:%s*(.-)%s*$"
  if not key then
    argument.fail(("schedules: function %d: 'KEY: NAME=VALUE ...' expected, got '%s'"):format(
      number, line:sub(1, 60)))
  end
  local own = out[key] or {}
  for word in rest:gmatch "%S+" do
    local name, value = word:match "^([%w_]+)=([%w_]+)$"
    if not name then
      argument.fail(("schedules: function %d: NAME=VALUE expected, got '%s'"):format(number,
        word:sub(1, 60)))
    end
    own[name] = value
  end
  out[key] = own
end

--- Decisions by key and name, of a text.
function decision.parse(text)
  local out, number = {}, 0
  for line in argument.string(text, "schedules", "the text"):gmatch "[^\n;]+" do
    number = number + 1
    if line:find "%S" then parse_function(line, number, out) end
  end
  return out
end

--- The text of decisions by key and name, in the order of keys and names.
function decision.text(schedules)
  local sorted_keys, lines = require "perilune.sorted_keys", {}
  for _, key in ipairs(sorted_keys(schedules)) do
    local words = {}
    for _, name in ipairs(sorted_keys(schedules[key])) do
      words[#words + 1] = ("%s=%s"):format(name, schedules[key][name])
    end
    if #words > 0 then lines[#lines + 1] = ("%s: %s"):format(key, table.concat(words, " ")) end
  end
  return table.concat(lines, "; ")
end

--- A module with the text of its schedules among its attributes.
function decision.annotate(mod, text)
  local attrs = {}
  for name, value in pairs(mod.attrs or {}) do attrs[name] = value end
  attrs.schedules = text ~= "" and text or nil
  return mod:with_attrs(attrs)
end

return decision
