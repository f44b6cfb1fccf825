--- Files that appear complete or not at all: replace_file(path, content) writes beside `path` and
-- renames. `content` is a text, or a function that gets write(text) and returns true, or nil
-- and a reason. Returns true, or nil and a reason, which names the file. A file that was
-- there stays until all is written.

require "perilune.core".internal() -- errors name the scripts of others

local function fill(file, content)
  local function write(text) return file:write(text) end
  if type(content) == "function" then return content(write) end
  return write(content)
end

return function(path, content)
  local beside = path .. ".part"
  local file, reason = io.open(beside, "wb")
  if not file then return nil, reason end
  local called, ok, why = pcall(fill, file, content)
  local closed, late = file:close()
  local done = called and ok and closed
  if done then done, why = os.rename(beside, path) end
  if done then return true end
  os.remove(beside)
  if not called then error(ok, 0) end
  return nil, ("%s: %s"):format(path, why or late)
end
