-- Programs for the specs of rules: made of a body in Relay's text, and read back as text
-- without types.

local pl = require "perilune"

local rewriting = {}

--- The module with @main of that body and parameters.
function rewriting.program(body, params)
  return assert(pl.parse(([[
#[version = "0.0.5"]
def @main(%s) {
%s
}
]]):format(params or "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]", body)))
end

--- The body of @main, without types.
function rewriting.body_of(mod)
  local text = tostring(mod.main.body)
  return (text:gsub(" */%*.-%*/", ""):gsub("free_var[^\n]*\n", ""):gsub("%s+$", ""))
end

--- What pl.rules says of rules that it refuses.
function rewriting.message(rules)
  local ok, err = pcall(pl.rules, rules)
  assert(not ok, "the rules are accepted")
  return tostring(err)
end

return rewriting
