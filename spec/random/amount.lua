-- How many random cases a test runs: what the environment variable of that name says, or `default`,
-- of which builds with sanitizers run a quarter. What is computed is checked in the release build;
-- sanitizers look at how, which fewer programs show, and take ten times as long.

local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""

return function(name, default)
  local given = os.getenv(name)
  if given then return assert(tonumber(given), name .. " is no number") end
  return sanitized and default // 4 or default
end
