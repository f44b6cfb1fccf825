-- file_exists(path): whether a file or folder is there that can be opened.

require "perilune.core".internal()

return function(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end
