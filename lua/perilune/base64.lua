--- Base64 (RFC 4648, with padding): bytes as text and back.

require "perilune.core".internal() -- errors name the scripts of others

local base64 = {}

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local letters, values = {}, {}
for i = 0, 63 do
  letters[i] = alphabet:sub(i + 1, i + 1)
  values[alphabet:byte(i + 1)] = i
end

local function encode_three(a, b, c)
  local n = a:byte() << 16 | (b:byte() or 0) << 8 | (c:byte() or 0)
  return letters[n >> 18] .. letters[n >> 12 & 63]
    .. (b ~= "" and letters[n >> 6 & 63] or "=") .. (c ~= "" and letters[n & 63] or "=")
end

function base64.encode(bytes)
  return (bytes:gsub("(.)(.?)(.?)", encode_three))
end

local function decode_four(a, b, c, d)
  local n = values[a:byte()] << 18 | values[b:byte()] << 12
    | (values[c:byte()] or 0) << 6 | (values[d:byte()] or 0)
  local bytes = string.char(n >> 16, n >> 8 & 255, n & 255)
  return bytes:sub(1, c == "=" and 1 or d == "=" and 2 or 3)
end

--- The bytes, or nil when the text is no base64. Blanks are passed over.
function base64.decode(text)
  text = text:gsub("%s+", "")
  local body = text:gsub("=?=$", "")
  if #text % 4 ~= 0 or body:find "[^%w+/]" then return nil end
  return (text:gsub("(.)(.)(.)(.)", decode_four))
end

return base64
