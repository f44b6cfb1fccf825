--- Files that appear complete or not at all: replace_file(path, content) writes beside `path` and
-- renames; devices and pipes are written directly. `content` is a text, or a function that gets
-- write(text) and returns true, or nil and a reason. Returns true, or nil and a reason, which
-- names the file. A file that was there stays until all is written.

local core = require "perilune.core"
core.internal() -- errors name the scripts of others

return function(path, content)
  local output, diag = core.output_open(path)
  if not output then return nil, diag.message end
  local function write(text)
    local ok, unwritten = core.output_write(output, text)
    if not ok then return nil, unwritten.message end
    return true
  end
  local called, ok, reason = pcall(type(content) == "function" and content or write,
    type(content) == "function" and write or content)
  if called and ok then
    ok, diag = core.output_commit(output)
    if ok then return true end
    return nil, diag.message
  end
  core.output_abort(output)
  if not called then error(ok, 0) end
  return nil, reason
end
