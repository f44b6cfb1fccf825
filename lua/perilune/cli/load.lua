--- Models as the command line names them: a file, or "-", a pipe or a device, which are
-- read whole and known by their content: text of Relay or ONNX.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local load = {}

local STDIN = "standard input"
-- Nothing is read twice from a pipe: path -> bytes.
local kept = {}

local function is_stdin(path) return path == "-" or path == "/dev/stdin" end

local function read(path)
  local read_file = require "perilune.read_file"
  if not is_stdin(path) then
    local bytes, reason = read_file(path)
    return bytes or stop.failure("%s", reason)
  end
  local bytes, reason = read_file.all(io.stdin)
  return bytes or stop.failure("%s: %s", STDIN, reason)
end

--- The bytes of what is no regular file; nil for regular files.
function load.bytes(path)
  if is_stdin(path) then path = "-" end
  if kept[path] == nil then
    local special = path == "-" or host.stat(path) == "other"
    kept[path] = special and read(path) or false
  end
  return kept[path] or nil
end

--- Whether a path is that of a file of TVMScript.
function load.names_script(path)
  return (path:find "%.tir$" or path:find "%.tvmscript$" or path:find "%.py$") ~= nil
end

--- Whether a path is that of a file of text: Relay's, or TVMScript.
function load.names_text(path)
  return path:find "%.relay$" ~= nil or load.names_script(path)
end

--- Whether the model is text of Relay or TVMScript.
function load.is_text(path)
  local bytes = load.bytes(path)
  if not bytes then return load.names_text(path) end
  return core.file_kind(bytes) ~= nil
end

--- The module in those bytes, or nil and a diagnostic.
function load.parse(bytes, name)
  local kind = core.file_kind(bytes)
  if kind == "Relay text" or kind == "text" then return core.text_parse(bytes, name) end
  if not kind then return core.onnx_parse(bytes) end
  return nil, core.diag("format", ("%s: this is not an ONNX model, but %s"):format(name, kind))
end

--- The module, or nil and a diagnostic. What cannot be there is told before any work.
function load.model(path)
  local bytes = load.bytes(path)
  if not bytes then return require "perilune".load(path) end
  return load.parse(bytes, is_stdin(path) and STDIN or path)
end

--- Ends the command when there is no such file.
function load.check(path)
  if is_stdin(path) then return end
  local kind, reason = host.stat(path)
  if not kind then stop.failure("%s", reason) end
  if kind == "directory" then stop.failure("%s: is a directory", path) end
end

--- The first bytes.
function load.head(path)
  local bytes = load.bytes(path)
  if bytes then return bytes:sub(1, 256) end
  local file = io.open(path, "rb")
  local head = file and file:read(256)
  if file then file:close() end
  return head
end

return load
