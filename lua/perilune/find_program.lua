-- find_program(name): the path of a program, as a shell finds it: a name with a slash is a path,
-- others are looked up in $PATH. nil where it is not there.

require "perilune.core".internal()

local file_exists = require "perilune.file_exists"

return function(name)
  if name:find "/" then return file_exists(name) and name or nil end
  for folder in (os.getenv "PATH" or ""):gmatch "[^:]+" do
    if file_exists(folder .. "/" .. name) then return folder .. "/" .. name end
  end
end
