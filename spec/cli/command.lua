--- The command as specs run it, and the files that it reads and writes.

local command = {}

-- What the interpreter needs to load a sanitized module is not for the command.
local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
local wrapper = sanitized and "env -u LD_PRELOAD -u ASAN_OPTIONS " or "env "
local binary = (os.getenv "PERILUNE_BUILD" or "build") .. "/bin/perilune"
command.program = wrapper .. binary

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

-- The file that a run of `opt` writes, or nil.
local function written(arguments)
  if not arguments:find "^%s*opt%s" then return nil end
  local path = arguments:match "%s%-o%s*(%S+)" or arguments:match "%s%-%-output[%s=]+(%S+)"
  path = path and path:gsub("[\"']", "")
  if not path or path == "-" or path:find "^/dev/" then return nil end
  return path
end

--- Reads again what `opt` wrote: nothing is written that reading refuses.
function command.read_again(arguments)
  local path = written(arguments)
  if path then assert(require "perilune".load(path)) end
end

--- Runs it, its output into files of the folder: status, standard output,
-- standard error. What `opt` wrote is read again. `environment`: "NAME=VALUE ".
function command.run(folder, arguments, environment)
  local out, err = folder .. "/stdout", folder .. "/stderr"
  local program = wrapper .. (environment or "") .. binary
  local _, _, status = os.execute(("%s %s >%s 2>%s </dev/null"):format(program,
    arguments, out, err))
  if status == 0 then command.read_again(arguments) end
  return status, command.read(out), command.read(err)
end

return command
