--- perilune fmt: models as Relay text, in the one form that text has.

local core = require "perilune.core"
local models = require "perilune.cli.load"
local read_file = require "perilune.read_file"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local fmt = {
  description = "Prints canonical Relay text of models (ONNX, NAME.relay, or TVMScript in "
    .. "NAME.tvmscript). Without "
    .. "FILE, or for '-', reads standard input. The text of an ONNX model has dtype, shape and a "
    .. "hash in place of the elements of constants over 64 elements; --full prints the elements. "
    .. "A file that cannot be read does not stop the others.",
}

function fmt.arguments(parser)
  parser:argument("files", "The models to read; '-' is standard input."):args "*":argname "FILE"
  parser:mutex(
    parser:flag("-i --in-place", "Rewrites files that are not canonical."),
    parser:flag("--check", "Lists files that are not canonical; exits with status 1 "
      .. "if there are any."))
  parser:flag("--full", "Prints all elements of the constants of ONNX models, so that "
    .. "the text can be read back. Text of Relay files is always complete.")
  parser:flag("--drop-comments", "With -i: removes comments, which canonical text "
    .. "cannot keep.")
end

-- The module, and the text that it was read from, or nil.
local function load(path)
  local bytes = models.bytes(path)
  local text = bytes
  if not text and models.names_text(path) then
    local read, reason = read_file(path)
    text = read or stop.failure("%s", reason)
  end
  local module, diag
  if bytes then
    module, diag = models.model(path)
    if not models.is_text(path) then text = nil end
  elseif text and core.file_kind(text) then
    module, diag = core.text_parse(text, path)
  else
    module, diag = require "perilune".load(path)
  end
  if not module then error(diag, 0) end
  return module, text or nil
end

-- The metadata have no line feed behind them; that of an editor does no harm.
local function is_formed(text, printed)
  return text == printed or text == printed .. "\n"
end

-- Where a comment ends that begins at `at`; comments nest.
local function comment_end(text, at)
  local depth = 0
  repeat
    local sign
    at, sign = text:match("()([/*][/*])", at)
    if not at then return #text end
    if sign == "/*" or sign == "*/" then
      depth = depth + (sign == "/*" and 1 or -1)
      at = at + 2
    else
      at = at + 1
    end
  until depth == 0
  return at
end

local function string_end(text, at)
  repeat
    local sign
    at, sign = text:match('()(\\?.)', at + 1)
    if not at then return #text end
    at = at + #sign - 1
  until sign == '"'
  return at + 1
end

-- The row of the first comment that no printer writes; nil: there is none.
local function foreign_comment(text)
  local at = 1
  text = text:gsub("\n#%[metadata%].*", "")
  while true do
    local from, sign = text:match('()(["/][/*]?)', at)
    if not from then return nil end
    local written = text:find("^/%* ty=", from) or text:find("^/%* span=", from)
    if sign == "//" or (sign == "/*" and not written) then
      return select(2, text:sub(1, from):gsub("\n", "")) + 1
    elseif sign == "/*" then
      at = comment_end(text, from)
    elseif sign:byte() == 34 then
      at = string_end(text, from)
    else
      at = from + 1
    end
  end
end

local function print_text(printed)
  local ok, reason = io.stdout:write(printed)
  if not ok then stop.failure("standard output: %s", reason) end
end

local function rewrite(path, module, text, drop)
  if not text then stop.failure("%s: only Relay text is written in place", path) end
  local row = not drop and foreign_comment(text)
  if row then
    stop.failure("%s:%d: this comment would be lost; --drop-comments agrees to that", path, row)
  end
  if not is_formed(text, module:text()) then assert(require "perilune".save(module, path)) end
end

local function format(path, options)
  local module, text = load(path)
  if options.in_place then return rewrite(path, module, text, options.drop_comments) end
  if options.check and not text then
    stop.failure("%s: only Relay text has a form to check", path)
  end
  local printed = (text or options.full) and module:text() or tostring(module)
  if not options.check then
    local open = models.names_script(path) and printed:sub(-1) ~= "\n"
    return print_text(open and printed .. "\n" or printed)
  end
  if not is_formed(text, printed) then
    print(path)
    return 1
  end
end

-- What is wrong with one file does not keep the others from being read.
local function try(path, options)
  local ok, status = pcall(format, path, options)
  if ok then return status or 0 end
  if type(status) == "string" then error(status, 0) end
  local before = getmetatable(status) == stop.class and "perilune: " or ""
  io.stderr:write(before, (tostring(status):gsub("\n*$", "\n")))
  return 1
end

function fmt.run(options)
  local files = #options.files > 0 and options.files or { "-" }
  if options.drop_comments and not options.in_place then
    stop.usage "--drop-comments requires -i"
  end
  local worst = 0
  for _, path in ipairs(files) do
    if path == "-" and options.in_place then stop.usage "-i has no file to write to" end
    worst = math.max(worst, try(path, options))
  end
  return worst
end

return fmt
