--- Writes the shipped rules (lua/perilune/rules) as a table in C. Run when the
-- engine is built:
--
--     lua5.4 table.lua FOLDER OUT.c

local folder = arg[1]
local out = assert(io.open(arg[2], "w"))

local function load_file(name)
  return dofile(folder .. "/" .. name .. ".lua")
end

local proofs = { exact = "PLN_PROOF_EXACT", reassociates = "PLN_PROOF_REASSOCIATES",
  approximates = "PLN_PROOF_APPROXIMATES" }
local keys = { reason = true, source = true, proof = true, grows = true, native = true,
  relay = true, example = true }

local function quoted(text)
  return text and ("%q"):format(text):gsub("\\\n", "\\n") or "NULL"
end

local function check(rule, where)
  assert(type(rule[1]) == "string", where .. ": a rule begins with its text")
  assert(rule.reason, where .. ": every rule has a reason: " .. rule[1])
  for key in pairs(rule) do
    assert(key == 1 or keys[key], where .. ": unknown key " .. tostring(key))
  end
  return assert(proofs[rule.proof or "exact"], where .. ": unknown proof " .. tostring(rule.proof))
end

-- The operators that a pattern is a call of, and the rule's name, if the text says so plainly
-- ("name: ?r@op(...)" or "name: ?f{a|b}(...)"): such a rule is read when it is needed.
local function plain_heads(text)
  local name, rest = text:match "^%s*([%a_][%w_]*)%s*:%s*(.*)$"
  local pattern = rest and (rest:match "^(.-)%s=>" or rest:match "^(.-)%swhere%s" or rest)
  if not pattern then return end
  local call = pattern:gsub("^%?[%w_]+@", ""):gsub("^%?[%w_]+@", "")
  local head = call:match "^([%a_][%w_.]*)%b()%s*$" or call:match "^{([%w_.|]+)}%b()%s*$"
  if head then return (head:gsub("|", " ")), name end
end

local function write_rule(pass, file, rule)
  local proof = check(rule, file)
  local heads, name = plain_heads(rule[1])
  local row = "    {%s, %s, %s, {.name = %s, .text = %s, .reason = %s, .source = %s, .proof = %s, "
    .. ".grows = %s, .relay = %s, .native = %s}},\n"
  out:write(row:format(quoted(pass), quoted(file), quoted(heads), quoted(name), quoted(rule[1]),
    quoted(rule.reason), quoted(rule.source), proof, tostring(rule.grows or false),
    tostring(rule.relay or false), quoted(rule.native)))
end

out:write("/* Generated from lua/perilune/rules by engine/rule/table.lua. */\n\n",
  '#include "rule/library.h"\n\n', "const pln_library_rule pln_library[] = {\n")
local n = 0
for _, set in ipairs(load_file "init") do
  for _, file in ipairs(set.files) do
    for _, rule in ipairs(load_file(file)) do
      write_rule(set.pass, file, rule)
      n = n + 1
    end
  end
end
out:write("};\n\nconst uint32_t pln_library_count = ", n, ";\n")
