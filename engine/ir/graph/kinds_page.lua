-- What is derived from kinds.def: the reference page kinds.md ("page") and the
-- names of kinds for editors, lua/types/kinds.lua ("types"). From the project's
-- root, with the library that is to be described:
--
--     LUA_CPATH='build/lua/?.so' lua5.4 engine/ir/graph/kinds_page.lua page > engine/ir/graph/kinds.md
--     LUA_CPATH='build/lua/?.so' lua5.4 engine/ir/graph/kinds_page.lua types > lua/types/kinds.lua
--
-- spec/ir/kinds_page_spec.lua fails when one of them is stale.

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local kinds = require "perilune".ir.kinds()

local titles = {
  { "expr", "Relay's expressions" }, { "pattern", "Patterns of a Match" },
  { "prim", "TIR: expressions" }, { "stmt", "TIR: statements" },
}

local derived = {}

function derived.page()
  local lines = { "# Kinds of nodes", "",
    "Derived from kinds.def by kinds_page.lua. Fields are operands, then scopes; "
      .. "`xs*` takes the rest.",
  }
  for _, title in ipairs(titles) do
    lines[#lines + 1] = ("\n## %s\n\n| kind | fields | |\n|---|---|---|"):format(title[2])
    for _, kind in ipairs(kinds) do
      if kind.class == title[1] then
        lines[#lines + 1] = ("| %s | %s | %s |"):format(kind.name,
          kind.fields:gsub("%S+", "`%0`"), kind.doc)
      end
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

function derived.types()
  local lines = { "---@meta perilune.kinds", "",
    "--- What Node.kind is. Derived from kinds.def by engine/ir/graph/kinds_page.lua.",
    "---@alias perilune.Kind" }
  for _, kind in ipairs(kinds) do
    lines[#lines + 1] = ('---| "%s" # %s'):format(kind.name, kind.doc)
  end
  return table.concat(lines, "\n") .. "\n"
end

if arg and arg[0] and arg[0]:match "kinds_page%.lua$" then
  io.write(assert(derived[arg[1]], "page or types?")())
end
return derived
