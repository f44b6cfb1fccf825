--- protobuf: the few pieces of the wire format that specs write files with
-- which no library would write: too large, too deep.

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

return protobuf
