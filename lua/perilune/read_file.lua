--- read_file(path): the bytes of a file, or nil and a reason, which names the file.

require "perilune.core".internal() -- errors name the scripts of others

return function(path)
  local file, reason = io.open(path, "rb")
  if not file then return nil, reason end
  local bytes, why = file:read "a"
  file:close()
  if bytes then return bytes end
  return nil, ("%s: %s"):format(path, why)
end
