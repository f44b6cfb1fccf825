-- Identifiers and file names are the field's words. This spec looks for words that once
-- stood for things that have a standard name; words of prose are not looked at.

-- A word, what it stood for, and the identifiers in which it means something else.
local words = {
  { "twin", "isomorphic graph" },
  { "lent", "borrowed" },
  { "lend", "borrow" },
  { "kin", "workers" },
  { "crew", "thread pool" },
  { "mover", "pass cloner" },
  { "subject", "pass target", { subject = "what PCRE2 matches (pcre2.h)" } },
  { "leaf", "primitive pass", { leaf_iter_vars = "TVM's name" } },
  { "judge", "check result" },
  { "attempt", "try" },
  { "held", "memory accounting" },
  { "datum", "runtime value" },
  { "maker", "constructor" },
  { "cycle", "loop", { free_cycle_search = "cycles of the call graph" } },
  { "meeting", "work item" },
  { "told", "reported, given", { told = "scripts: what was printed already" } },
  { "blame", "annotate" },
  { "site", "rewrite context" },
  { "graft", "clone" },
  { "renew", "alpha-renaming", { renew_defs = "TVM's name", core_renew_defs = "TVM's name" } },
  { "regroup", "factor reshape" },
  { "melt", "fold shape arithmetic" },
  { "latent", "call effect" },
  { "trail", "run record" },
  { "noise", "random" },
  { "draw", "random number" },
  { "home", "owner, scope of a node" },
  { "loose", "unaligned, open type", { loose = "a partly known tensor type" } },
  { "turned", "transposed, rotated" },
  { "grafter", "clone callbacks" },
  { "lender", "the tensor that a view shows" },
  { "patience", "grace period" },
  { "parked", "saved" },
  { "misfit", "mismatch" },
  { "partner", "image under a bijection" },
  { "drawn", "sampled" },
  { "dying", "freed" },
  { "interim", "temporary" },
  { "blamed", "refused" },
  { "doubtful", "error recovery" },
  { "survey", "scan" },
  { "nobody", "none" },
}

local function lines(command)
  local pipe = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function text_of(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- The code alone: comments and strings are blanks.
local function code_of(path)
  local text = text_of(path)
  if path:find "%.lua$" then
    return (text:gsub("%-%-[^\n]*", " "):gsub('"[^"\n]*"', " "):gsub("%[%[.-%]%]", " "))
  end
  return (text:gsub("/%*.-%*/", " "):gsub('"[^"\n]*"', " "))
end

local function parts_of(identifier)
  local parts = {}
  for part in identifier:lower():gmatch "[^_]+" do parts[part:gsub("s$", "")] = true end
  return parts
end

local found = {} -- word -> identifiers, each with a file

local function note(identifier, path)
  local parts = parts_of(identifier)
  for _, row in ipairs(words) do
    if parts[row[1]] and not (row[3] and row[3][identifier]) then
      found[row[1]] = found[row[1]] or {}
      table.insert(found[row[1]], identifier .. " in " .. path)
    end
  end
end

describe("standard names", function()
  local paths = lines "find engine lua -name '*.[ch]' -o -name '*.def' -o -name '*.lua'"
  local identifiers = 0
  for _, path in ipairs(paths) do
    note(path:match "([^/]+)%.%w+$", path)
    local seen = {}
    for identifier in code_of(path):gmatch "[%a_][%w_]*" do
      if not seen[identifier] then
        seen[identifier], identifiers = true, identifiers + 1
        note(identifier, path)
      end
    end
  end

  it("are looked for in all of the code", function()
    assert.is_true(#paths > 500 and identifiers > 20000)
  end)

  for _, row in ipairs(words) do
    it(("do not say '%s' for %s"):format(row[1], row[2]), function()
      assert.same({}, found[row[1]] or {})
    end)
  end
end)
