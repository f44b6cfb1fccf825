--- The command as specs run it, and the files that it reads and writes.

local command = {}

-- What the interpreter needs to load a sanitized module is not for the command.
local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
command.program = (sanitized and "env -u LD_PRELOAD -u ASAN_OPTIONS " or "")
  .. (os.getenv "PERILUNE_BUILD" or "build") .. "/bin/perilune"

function command.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

--- Gives the path.
function command.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

--- A new empty folder.
function command.folder()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir -p " .. folder)
  return folder
end

--- Runs it, its output into files of the folder: status, standard output,
-- standard error.
function command.run(folder, arguments)
  local out, err = folder .. "/stdout", folder .. "/stderr"
  local _, _, status = os.execute(("%s %s >%s 2>%s </dev/null"):format(command.program, arguments,
    out, err))
  return status, command.read(out), command.read(err)
end

return command
