-- Layouts of tensors, by the letters of their axes, and the way from one to
-- another: tir.layout "NCHW16c", tir.bijective_layout("NCHW", "NCHW16c").
--
-- A capital is an axis, a small letter behind a number the part of that axis
-- that has so many elements.

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

local math_of = require "perilune.tir.math"

local layouts = {}

local Layout = {}

-- ------------------------------------------------------------------ reading

local function bad(name, why) argument.fail(("the layout '%s': %s"):format(name, why)) end

-- { axis, factor or nil } of each letter.
local function axes_of(name)
  local axes, at = {}, 1
  while at <= #name do
    local digits, letter = name:match("^(%d*)(%a)", at)
    if not letter then bad(name, "letters are expected, and numbers before small ones") end
    local factor = digits ~= "" and math.tointeger(digits) or nil
    local small = letter:find "%l" ~= nil
    if small and (factor == nil or factor < 1) then
      bad(name, ("'%s' needs a number before it"):format(letter))
    elseif not small and digits ~= "" then
      bad(name, ("'%s' is a whole axis and has no number"):format(letter))
    end
    axes[#axes + 1] = { axis = letter, factor = factor }
    at = at + #digits + 1
  end
  return axes
end

local function places_of(name, axes)
  local places = {}
  for i, row in ipairs(axes) do
    if places[row.axis] then bad(name, ("'%s' stands in it twice"):format(row.axis)) end
    places[row.axis] = i
  end
  for axis in pairs(places) do
    if not places[axis:upper()] then
      bad(name, ("'%s' is a part of '%s', which is not there"):format(axis, axis:upper()))
    end
  end
  return places
end

--- A layout by its name; "__undef__" of none. Its fields: name, dtype, ndim; layout[i] is the
-- i-th axis, from 1.
function layouts.layout(name, dtype)
  if getmetatable(name) == Layout then return name end
  if type(name) ~= "string" or name == "" then argument.fail("a layout is a word") end
  local axes = name == "__undef__" and {} or axes_of(name)
  return setmetatable({
    name = name, dtype = dtype or "float32", ndim = #axes, axes = axes,
    places = places_of(name, axes),
  }, Layout)
end

local methods = {}

--- Where an axis stands, from 1; nil when it does not.
function methods.index_of(layout, axis) return layout.places[axis] end

--- How many elements the part of an axis has; nil when the axis is whole.
function methods.factor_of(layout, axis)
  local at = layout.places[axis:lower()]
  return at and layout.axes[at].factor
end

function Layout.__index(layout, key)
  if math.type(key) == "integer" then
    local row = layout.axes[key < 0 and layout.ndim + 1 + key or key]
    return row and row.axis
  end
  return methods[key]
end

function Layout.__len(layout) return layout.ndim end

function Layout.__eq(a, b) return a.name == b.name and a.dtype == b.dtype end

function Layout.__tostring(layout) return layout.name end

-- --------------------------------------------------------------- conversions

local Bijective = {}
Bijective.__index = Bijective

local function whole_axes(layout)
  local out = {}
  for axis in pairs(layout.places) do out[axis:upper()] = true end
  return out
end

local function same_axes(a, b)
  local x, y = whole_axes(a), whole_axes(b)
  for axis in pairs(x) do if not y[axis] then return false end end
  for axis in pairs(y) do if not x[axis] then return false end end
  return next(x) ~= nil
end

--- The way from one layout to another of the same axes, and back.
function layouts.bijective_layout(source, destination)
  local from, to = layouts.layout(source), layouts.layout(destination)
  if not same_axes(from, to) then
    argument.fail(("cannot convert the layout '%s' to '%s'"):format(from.name, to.name))
  end
  return setmetatable({ src_layout = from, dst_layout = to }, Bijective)
end

local function check_rank(what, list, layout)
  if #list ~= layout.ndim then
    argument.fail(("%s of '%s' has %d numbers, not %d"):format(what, layout.name, layout.ndim,
      #list))
  end
end

-- An index: what it is of the whole axis, then what the other layout has of it.
local function convert_index(list, from, to)
  check_rank("an index", list, from)
  local out = {}
  for i, row in ipairs(to.axes) do
    local axis = row.axis:upper()
    local whole, factor = list[from.places[axis]], from:factor_of(axis)
    if factor then
      whole = math_of.add(math_of.multiply(whole, factor), list[from.places[axis:lower()]])
    end
    local part = to:factor_of(axis)
    if row.factor then out[i] = math_of.floormod(whole, part)
    else out[i] = part and math_of.floordiv(whole, part) or whole end
  end
  return out
end

-- A shape: a last part that is not full counts.
local function convert_shape(list, from, to)
  check_rank("a shape", list, from)
  local out = {}
  for i, row in ipairs(to.axes) do
    local axis = row.axis:upper()
    local whole, factor = list[from.places[axis]], from:factor_of(axis)
    if factor then whole = math_of.multiply(whole, factor) end
    local part = to:factor_of(axis)
    if row.factor then out[i] = row.factor
    else out[i] = part and math_of.ceildiv(whole, part) or whole end
  end
  return out
end

-- Constants come back as Lua's integers.
local function plain(list)
  for i, number in ipairs(list) do
    if type(number) == "userdata" and number.kind == "IntImm" then list[i] = number.value end
  end
  return list
end

--- Indices and shapes of the one in those of the other: lists of integers or PrimExprs.
function Bijective:forward_index(index)
  return plain(convert_index(index, self.src_layout, self.dst_layout))
end

function Bijective:backward_index(index)
  return plain(convert_index(index, self.dst_layout, self.src_layout))
end

function Bijective:forward_shape(shape)
  return plain(convert_shape(shape, self.src_layout, self.dst_layout))
end

function Bijective:backward_shape(shape)
  return plain(convert_shape(shape, self.dst_layout, self.src_layout))
end

function Bijective:__tostring()
  return ("BijectiveLayout(%s, %s)"):format(self.src_layout.name, self.dst_layout.name)
end

return layouts
