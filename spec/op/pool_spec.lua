-- max_pool, and the indices of the maxima, against their definition: images of
-- one to three axes, small and large, with strides, dilations and pads; and
-- avg_pool of small images against that of images with one more axis.

local pl = require "perilune"

local state = 7
local function draw(low, high)
  state = state * 1103515245 + 12345 & 0x7fffffff
  return low + (state >> 8) % (high - low + 1)
end

-- Calls f with each list of integers from 0 below `extents`.
local function each_place(extents, f, place, k)
  place, k = place or {}, k or 1
  if k > #extents then return f(place) end
  for i = 0, extents[k] - 1 do
    place[k] = i
    each_place(extents, f, place, k + 1)
  end
end

local function offset(extents, place, backwards)
  local at = 0
  for i = 1, #extents do
    local k = backwards and #extents + 1 - i or i
    at = at * extents[k] + place[k]
  end
  return at
end

-- The greatest element of a window, and its offset in the plane.
local function greatest(plane, case, position)
  local most, index
  each_place(case.kernel_shape, function(tap)
    local place = {}
    for i, t in ipairs(tap) do
      place[i] = position[i] * case.strides[i] + t * case.dilations[i] - case.pads[i]
      if place[i] < 0 or place[i] >= case.extents[i] then return end
    end
    local x = plane[offset(case.extents, place) + 1]
    if not most or x > most then
      most, index = x, offset(case.extents, place, case.storage_order == 1)
    end
  end)
  return most, index or 0
end

local function random_case(rank, most)
  local case = { planes = draw(1, 5), extents = {}, kernel_shape = {}, strides = {}, dilations = {},
    pads = {}, storage_order = draw(0, 1), out = {} }
  for i = 1, rank do
    case.extents[i], case.strides[i] = draw(1, most), draw(1, 4) // 2 + (draw(0, 1))
    if case.strides[i] == 0 then case.strides[i] = 1 end
    local window, dilation = draw(1, 5), draw(1, 2)
    local reach = (window - 1) * dilation + 1
    local before, after = draw(0, reach - 1), draw(0, reach - 1)
    if case.extents[i] + before + after < reach then return random_case(rank, most) end
    case.kernel_shape[i], case.dilations[i] = window, dilation
    case.pads[i], case.pads[rank + i] = before, after
    case.out[i] = (case.extents[i] + before + after - reach) // case.strides[i] + 1
  end
  return case
end

local function pool(case, x, results)
  local param = pl.var("x", pl.const(x).type)
  local attrs = { kernel_shape = case.kernel_shape, strides = case.strides, n_results = results,
    dilations = case.dilations, pads = case.pads, storage_order = case.storage_order }
  return pl.eval(pl.func({ param }, pl.ir.Call("nn.max_pool", { param }, attrs)), x)
end

local function flat(tensor)
  local list = {}
  local function add(value)
    if type(value) ~= "table" then list[#list + 1] = value return end
    for _, one in ipairs(value) do add(one) end
  end
  add(tensor:to_table())
  return list
end

local function check(case, dtype)
  local size, values, wanted, indices = 1, {}, {}, {}
  for _, n in ipairs(case.extents) do size = size * n end
  for i = 1, case.planes * size do values[i] = draw(0, 100) end
  for k = 0, case.planes - 1 do
    local plane = table.move(values, k * size + 1, (k + 1) * size, 1, {})
    each_place(case.out, function(position)
      local most, index = greatest(plane, case, position)
      wanted[#wanted + 1] = most or false
      indices[#indices + 1] = most and k * size + index or 0
    end)
  end
  local x = pl.tensor(values, dtype)
  local shape = { 1, case.planes, table.unpack(case.extents) }
  x = pl.eval(pl.op.reshape(pl.const(x), { newshape = shape }))
  local plain = flat(pool(case, x))
  local y, found = pool(case, x, 2)
  found = flat(found)
  assert.same(plain, flat(y))
  for i, most in ipairs(wanted) do
    if most then assert.equal(most, plain[i]) end
    if most then assert.equal(indices[i], found[i]) end
  end
end

describe("max_pool", function()
  for rank = 1, 3 do
    it(("computes its definition over %d axes"):format(rank), function()
      for i = 1, 60 do
        local dtype = ({ "float32", "uint8", "int64" })[i % 3 + 1]
        check(random_case(rank, rank == 3 and 5 or 12), dtype)
      end
    end)
  end

  it("computes its definition on longer rows", function()
    for _ = 1, 10 do check(random_case(2, 50), "float32") end
    for _ = 1, 10 do check(random_case(1, 200), "float32") end
  end)
end)

-- The same images with an axis of extent 1 in front of space are pooled in
-- another way.
local function deepened(case)
  local function with(list, first) return { first, table.unpack(list) } end
  local pads = { 0, case.pads[1], case.pads[2], 0, case.pads[3], case.pads[4] }
  return { kernel_shape = with(case.kernel_shape, 1), strides = with(case.strides, 1),
    dilations = with(case.dilations, 1), pads = pads, count_include_pad = case.count_include_pad }
end

local function mean(case, x)
  local param = pl.var("x", pl.const(x).type)
  return pl.eval(pl.func({ param }, pl.op.nn.avg_pool(param, {
    kernel_shape = case.kernel_shape, strides = case.strides, dilations = case.dilations,
    pads = case.pads, count_include_pad = case.count_include_pad })), x)
end

local function reshaped(x, shape)
  return pl.eval(pl.op.reshape(pl.const(x), { newshape = shape }))
end

describe("avg_pool", function()
  it("gives small images the same bits as any", function()
    for i = 1, 100 do
      local case = random_case(2, 14)
      case.strides, case.count_include_pad = { 1, 1 }, i % 2
      local h, w = case.extents[1], case.extents[2]
      local x = pl.tensor.random({ 2, case.planes, h, w }, i % 3 == 0 and "float64" or "float32")
      local y = mean(case, x)
      local z = mean(deepened(case), reshaped(x, { 2, case.planes, 1, h, w }))
      assert.same(y:to_table(), reshaped(z, y.shape):to_table())
    end
  end)
end)
