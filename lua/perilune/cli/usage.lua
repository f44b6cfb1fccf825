--- What is said of arguments that a command does not take: the parser's message, in the
-- words of the command's help, with what was probably meant.

require "perilune.core".internal() -- errors name the scripts of others

-- "missing argument 'input'": as the usage has it.
local function argument_name(parser, name)
  for _, argument in ipairs(parser._arguments) do
    if argument._name == name then
      local shown = argument._argname
      return type(shown) == "table" and shown[1] or shown or name
    end
  end
  return name
end

local function is_given(arguments, option)
  for _, alias in ipairs(option._aliases) do
    for _, argument in ipairs(arguments) do
      if argument == alias or argument:find(alias .. "=", 1, true) == 1 then return true end
    end
  end
end

-- A command that writes to what -o names was given it as one more argument.
local function missing_output(parser, arguments)
  for _, option in ipairs(parser._options) do
    if option._aliases[1] == "-o" and option._mincount > 0 and not is_given(arguments, option) then
      return ("; where the result goes is named by -o: %s IN -o OUT"):format(parser._name)
    end
  end
  return ""
end

return function(message, parser, arguments)
  message = message:gsub("%s*\nDid you mean ", "; did you mean ")
  local argument = message:match "^missing argument '(.-)'"
  if argument then return ("missing argument %s"):format(argument_name(parser, argument)) end
  if message:find "^too many arguments" or message:find "^missing option '%-o'" then
    return message .. missing_output(parser, arguments)
  end
  return message
end
