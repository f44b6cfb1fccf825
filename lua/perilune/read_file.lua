--- read_file(path): the bytes of a file, or nil and a reason, which names the file.
-- read_file.all(file): those of an open file from where it is, or nil and a reason.

require "perilune.core".internal() -- errors name the scripts of others

-- Pipes and devices may never end; a model of Protocol Buffers has at most 2 GiB.
local MOST, CHUNK = 1 << 31, 1 << 20

local read_file = {}

--- Of standard input, pipes and devices: at most 2 GiB.
function read_file.all(file)
  if (file:seek "end" or 0) > 0 then -- a regular file
    file:seek "set"
    return file:read "a"
  end
  local chunks, size = {}, 0
  repeat
    local chunk, reason = file:read(CHUNK)
    if reason then return nil, reason end
    chunks[#chunks + 1], size = chunk, size + #(chunk or "")
    if size > MOST then return nil, "it does not end within 2 GiB" end
  until not chunk
  return table.concat(chunks)
end

return setmetatable(read_file, { __call = function(_, path)
  local file, reason = io.open(path, "rb")
  if not file then return nil, reason end
  local bytes, why = read_file.all(file)
  file:close()
  if bytes then return bytes end
  return nil, ("%s: %s"):format(path, why)
end })
