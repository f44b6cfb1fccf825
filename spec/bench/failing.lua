-- A pipeline whose last pass fails, for what writing a reproducer costs (doubling.lua).

local pl = require "perilune"

return pl.sequential { "DeadCodeElimination",
  pl.module_pass { name = "fails", run = function() error("as it should", 0) end } }
