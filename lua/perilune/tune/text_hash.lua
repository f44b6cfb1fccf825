--- A hash of a text that is the same in every process: 16 digits. FNV-1a, 64 bits (Fowler, Noll,
-- Vo).

require "perilune.core".internal() -- errors name the scripts of others

return function(text)
  local prime <const> = 0x100000001b3
  local sum = 0xcbf29ce484222325
  for i = 1, #text do sum = (sum ~ text:byte(i)) * prime end
  return ("%016x"):format(sum)
end
