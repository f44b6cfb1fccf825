--- protobuf: the few pieces of the wire format that specs write files with
-- which no library would write: too large, too deep; and read some back with.

local protobuf = {}

function protobuf.varint(n)
  local bytes = {}
  repeat
    bytes[#bytes + 1] = string.char(n > 127 and n & 127 | 128 or n)
    n = n >> 7
  until n == 0
  return table.concat(bytes)
end

-- What stands before the `size` bytes of field `number`.
function protobuf.header(number, size)
  return protobuf.varint(number << 3 | 2) .. protobuf.varint(size)
end

function protobuf.field(number, bytes) return protobuf.header(number, #bytes) .. bytes end

local function read_varint(bytes, at)
  local value, shift = 0, 0
  repeat
    local byte = bytes:byte(at)
    value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
  until byte < 128
  return value, at
end

--- The values of field `number` in a message: bytes, or integers.
function protobuf.values(bytes, number)
  local list, at = {}, 1
  while at <= #bytes do
    local key, value
    key, at = read_varint(bytes, at)
    if key & 7 == 0 then value, at = read_varint(bytes, at)
    elseif key & 7 == 1 then value, at = bytes:sub(at, at + 7), at + 8
    elseif key & 7 == 5 then value, at = bytes:sub(at, at + 3), at + 4
    else
      local size
      size, at = read_varint(bytes, at)
      value, at = bytes:sub(at, at + size - 1), at + size
    end
    if key >> 3 == number then list[#list + 1] = value end
  end
  return list
end

return protobuf
