--- Where the result of a command goes: -o OUT, where "-" is standard output, which gets nothing
-- else then.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local save = {}

--- The stream of what a command says about its work.
function save.messages(path) return path == "-" and io.stderr or io.stdout end

--- Writes bytes to standard output.
function save.bytes(bytes)
  local ok, reason = io.stdout:write(bytes)
  if not (ok and io.stdout:flush()) then stop.failure("cannot write: %s", reason or "-") end
end

--- The options of pl.save or pl.onnx.tostring for that path; nil: none. Standard output gets all
-- data of a model. `value_info`: the types of all values, too.
function save.form(path, value_info)
  if path == "-" then return { value_info = value_info, embed_data = true } end
  return value_info and { value_info = true } or nil
end

--- Writes a module; to standard output as ONNX.
function save.module(module, path, value_info)
  local pl, form = require "perilune", save.form(path, value_info)
  if path ~= "-" then assert(pl.save(module, path, form)) return end
  save.bytes(assert(pl.onnx.tostring(module, form)))
end

return save
