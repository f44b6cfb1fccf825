--- Random modules of PrimFuncs, made of nodes, the same for the same seed: every kind of node that
-- TVMScript has, immediates of every dtype, names that clash and names that are no identifiers.

local pl = require "perilune"
local tir = pl.tir

-- A generator: math.random with the variables, buffers and pointers in scope.
local Module = {}
Module.__index = Module

local function pick(list) return list[math.random(#list)] end
local function chance(p) return math.random() < p end

local ints = { "int32", "int32", "int32", "int64", "int8", "uint8", "int16", "uint32", "uint64" }
local floats = { "float32", "float32", "float16", "float64", "bfloat16" }
local scopes = { "global", "global", "shared", "local", "global.vtcm" }
local names = { "A", "A", "B", "i", "i_1", "x", "x.y", "T", "I", "v", "for", "in", "A_1", "None",
  "1st", "", "data", "main", "Module", "metadata", "range", "tvm", "True", "a b", "π" }

local function name() return pick(names) end

local function lanes_of(dtype) return tonumber(dtype:match "x(%d+)$" or 1) end
local function element_of(dtype) return (dtype:gsub("x%d+$", "")) end
local function is_float(dtype) return dtype:find "float" ~= nil end
local function is_int(dtype) return dtype:find "int" ~= nil end

local function random_int(dtype)
  if chance(0.15) and not dtype:find "^uint64" then
    return pick { tir.max_value(dtype), tir.min_value(dtype) }
  end
  local least = dtype:find "^u" and 0 or -3
  return tir.IntImm(dtype, math.random(least, chance(0.2) and 100 or 4))
end

local function random_float(dtype)
  local value = pick { 0, 1, -1, 0.5, -2.5, 1e-3, 3e4, 1 / 3, math.huge, -math.huge, -(0 / 0), -0.0,
    2 ^ -14, 65504 }
  return tir.FloatImm(dtype, value)
end

-- ---------------------------------------------------------------- expressions

function Module:terminal(dtype)
  local found = {}
  for _, var in ipairs(self.vars) do
    if var.dtype == dtype then found[#found + 1] = var end
  end
  if #found > 0 and chance(0.7) then return pick(found) end
  if dtype == "bool" then return tir.IntImm("bool", math.random(0, 1)) end
  if is_float(dtype) then return random_float(dtype) end
  if chance(0.1) then
    local var = (chance(0.5) and tir.Var or tir.SizeVar)(name(), dtype)
    self.free[#self.free + 1] = var
    return var
  end
  return random_int(dtype)
end

function Module:load(dtype, depth)
  local found = {}
  for _, buffer in ipairs(self.buffers) do
    if buffer.dtype == dtype then found[#found + 1] = buffer end
  end
  if #found == 0 then return nil end
  local buffer = pick(found)
  return tir.BufferLoad(buffer, self:indices(buffer, depth))
end

function Module:index(depth) return self:expr(chance(0.8) and "int32" or "int64", depth) end

function Module:indices(buffer, depth)
  local list = {}
  for i = 1, #buffer.shape do list[i] = self:index(depth) end
  return list
end

function Module:vector(dtype, depth)
  local element, lanes = element_of(dtype), lanes_of(dtype)
  if is_int(dtype) and chance(0.4) then
    return tir.Ramp(self:expr(element, depth), self:expr(element, 0), lanes)
  end
  if chance(0.1) then
    local indices = {}
    for i = 1, lanes do indices[i] = math.random(0, 2 * lanes - 1) end
    return tir.Shuffle({ self:expr(dtype, 0), self:expr(dtype, 0) }, indices)
  end
  return tir.Broadcast(self:expr(element, depth), lanes)
end

local compared = { "EQ", "NE", "LT", "LE", "GT", "GE" }

function Module:condition(dtype, depth)
  local kind = math.random(6)
  if kind <= 3 then
    local lanes = dtype:match "x%d+$" or ""
    local other = (chance(0.8) and pick(ints) or pick(floats)) .. lanes
    return tir[pick(compared)](self:expr(other, depth), self:expr(other, depth))
  end
  if kind == 4 then return tir.Not(self:expr(dtype, depth)) end
  return tir[pick { "And", "Or" }](self:expr(dtype, depth), self:expr(dtype, depth))
end

local int_operators = { "Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Div", "Mod", "Min", "Max" }
local float_operators = { "Add", "Sub", "Mul", "Div", "Min", "Max" }

function Module:call(dtype, depth)
  if is_float(dtype) then
    return pick {
      function() return tir.Call(dtype, pick { "exp", "sqrt", "fabs", "floor" },
        { self:expr(dtype, depth) }) end,
      function()
        local callee = tir.StringImm(pick { "f", 'a"b\\n\n' })
        return tir.Call(dtype, "call_pure_extern", { callee, self:expr(dtype, depth) })
      end,
      function()
        return tir.Call(dtype, "pow", { self:expr(dtype, depth), self:expr(dtype, 0) })
      end,
    }()
  end
  return pick {
    function() return tir.Call(dtype, pick { "bitwise_and", "bitwise_or", "shift_left" },
      { self:expr(dtype, depth), self:expr(dtype, 0) }) end,
    function() return tir.Call(dtype, "if_then_else",
      { self:expr("bool", depth), self:expr(dtype, 0), self:expr(dtype, depth) }) end,
    function() return tir.Call(dtype, "reinterpret", { self:expr(dtype, depth) }) end,
    function() return tir.Call(dtype, "bitwise_not", { self:expr(dtype, depth) }) end,
  }()
end

function Module:binary(dtype, depth)
  local operators = is_float(dtype) and float_operators or int_operators
  return tir[pick(operators)](self:expr(dtype, depth), self:expr(dtype, depth))
end

function Module:let(dtype, depth)
  local var = tir.Var(name(), pick(ints))
  local value = self:expr(var.dtype, depth)
  table.insert(self.vars, var)
  local body = self:expr(dtype, depth)
  table.remove(self.vars)
  return tir.Let(var, value, body)
end

--- A PrimExpr of that dtype.
function Module:expr(dtype, depth)
  local scalar = lanes_of(dtype) == 1
  if depth <= 0 and scalar then return self:terminal(dtype) end
  if depth <= 0 or (not scalar and chance(0.3)) then return self:vector(dtype, 0) end
  local d, kind = depth - 1, math.random(10)
  if kind == 1 and scalar then
    local load = self:load(dtype, d)
    if load then return load end
  end
  if kind == 2 then
    local lanes = dtype:match "x%d+$" or ""
    local from = pick { pick(ints), pick(floats), "bool" } .. lanes
    if from ~= dtype then return tir.Cast(dtype, self:expr(from, d)) end
  end
  if kind == 3 then
    return tir.Select(self:expr("bool", d), self:expr(dtype, d), self:expr(dtype, d))
  end
  if kind == 4 and chance(0.5) then return self:let(dtype, d) end
  if element_of(dtype) == "bool" then return self:condition(dtype, d) end
  if kind <= 6 and scalar then return self:call(dtype, d) end
  return self:binary(dtype, d)
end

-- ----------------------------------------------------------------- attributes

function Module:attr_value(depth)
  local kind = math.random(depth > 0 and 9 or 6)
  if kind == 1 then return math.random(-5, 5) end
  if kind == 2 then return chance(0.5) end
  if kind == 3 then return pick { 0.5, -1.25, 3.0, 1e20 } end
  if kind <= 6 then return pick { "text", "", 'quo"te', "back\\slash", "line\nend", "tab\t" } end
  if kind == 7 then return { math.random(9), math.random(9) } end
  if kind == 8 then return { "a", "b" } end
  return self:attrs(depth - 1)
end

function Module:attrs(depth)
  local attrs = {}
  for _ = 1, math.random(3) do
    local key = pick { "pragma_unroll", "key", "a.b", 'q"', "software_pipeline" }
    attrs[key] = self:attr_value(depth)
  end
  return attrs
end

-- ------------------------------------------------------------------- buffers

function Module:extent()
  if #self.vars > 0 and chance(0.3) then
    local var = pick(self.vars)
    if var.dtype == "int32" then return chance(0.5) and var or var * 2 + 1 end
  end
  return tir.IntImm(chance(0.85) and "int32" or "int64", math.random(1, 16))
end

function Module:shape()
  local shape = {}
  for i = 1, pick { 0, 1, 1, 1, 2, 2, 3 } do shape[i] = self:extent() end
  return shape
end

-- Strides and offsets have the dtype of the first extent.
local function rank_options(options, shape)
  local rank, dtype = #shape, shape[1] and shape[1].dtype or "int32"
  if chance(0.2) then
    options.elem_offset = chance(0.5) and tir.Var("o", dtype) or tir.IntImm(dtype, 8)
  end
  if rank > 0 and chance(0.2) then
    options.strides = {}
    for i = 1, rank do
      options.strides[i] = chance(0.5) and tir.Var("s", dtype) or tir.IntImm(dtype, math.random(9))
    end
  end
  if rank > 1 and chance(0.1) then options.axis_separators = { 1 } end
end

function Module:buffer(data)
  local shape, options = self:shape(), { data = data }
  local dtype = chance(0.15) and pick { "float32x4", "int8x4", "bool" }
    or pick { pick(ints), pick(floats) }
  rank_options(options, shape)
  if not data then options.scope = pick(scopes) end
  if chance(0.2) then options.data_alignment = pick { 16, 64, 128 } end
  if chance(0.2) then options.offset_factor = pick { 1, 4, 16 } end
  if chance(0.1) then options.buffer_type = "auto" end
  return tir.decl_buffer(shape, dtype, name(), options)
end

function Module:known_buffer() return #self.buffers > 0 and pick(self.buffers) or nil end

function Module:range(depth)
  return tir.range_from(self:expr("int32", depth), self:expr("int32", depth))
end

function Module:region(buffer)
  local dims = {}
  for i = 1, #buffer.shape do
    dims[i] = chance(0.5) and self:range(1) or self:expr("int32", 1)
  end
  return tir.BufferRegion(buffer, dims)
end

-- ---------------------------------------------------------------- statements

local function inside(self, vars, buffers, make)
  local n, k = #self.vars, #self.buffers
  table.move(vars, 1, #vars, n + 1, self.vars)
  table.move(buffers, 1, #buffers, k + 1, self.buffers)
  local result = make()
  for i = #self.vars, n + 1, -1 do self.vars[i] = nil end
  for i = #self.buffers, k + 1, -1 do self.buffers[i] = nil end
  return result
end

function Module:body(depth, vars, buffers)
  return inside(self, vars or {}, buffers or {}, function() return self:statements(depth - 1) end)
end

local make = {}

function make.store(self)
  local buffer = self:known_buffer()
  if not buffer then return make.evaluate(self) end
  return tir.BufferStore(buffer, self:expr(buffer.dtype, 2), self:indices(buffer, 2))
end

function make.evaluate(self)
  if chance(0.5) then
    local args = { tir.StringImm "f", self:expr("int32", 2) }
    return tir.Evaluate(tir.Call("int32", "call_extern", args))
  end
  return tir.Evaluate(self:expr(pick { "int32", "bool", "float32", "int64" }, 3))
end

function make.let(self, depth)
  local var = tir.Var(name(), pick { pick(ints), pick(floats), "bool" })
  local value = self:expr(var.dtype, 2)
  return tir.LetStmt(var, value, self:body(depth, { var }))
end

function make.pointer(self, depth)
  local var = tir.Var(name(), tir.PointerType("float32", "global"))
  local value = tir.Call("handle", "tvm_static_handle", {})
  local buffer = tir.decl_buffer({ 4 }, "float32", name(), { data = var })
  return tir.LetStmt(var, value, self:body(depth, {}, { buffer }))
end

make["if"] = function(self, depth)
  return tir.IfThenElse(self:expr("bool", 2), self:body(depth),
    chance(0.4) and self:body(depth) or nil)
end

make["while"] = function(self, depth) return tir.While(self:expr("bool", 2), self:body(depth)) end

make["assert"] = function(self, depth)
  return tir.AssertStmt(self:expr("bool", 2), tir.StringImm "message", self:body(depth))
end

make["for"] = function(self, depth)
  local var = tir.Var(name(), chance(0.8) and "int32" or "int64")
  local kind, thread = pick { "serial", "serial", "parallel", "vectorized", "unrolled",
    "thread_binding" }, nil
  if kind == "thread_binding" then
    thread = tir.IterVar(nil, tir.Var("iter", var.dtype), "ThreadIndex",
      pick { "threadIdx.x", "blockIdx.x" })
  end
  local min = chance(0.7) and 0 or self:expr(var.dtype, 1)
  return tir.For(var, min, self:expr(var.dtype, chance(0.7) and 0 or 2), kind,
    self:body(depth, { var }), thread, chance(0.2) and self:attrs(1) or nil)
end

function make.grid(self, depth)
  local vars = {}
  for i = 1, math.random(2, 3) do vars[i] = tir.Var(name(), "int32") end
  local extents = {}
  for i = 1, #vars do extents[i] = self:expr("int32", 1) end
  local body = self:body(depth, vars)
  for i = #vars, 1, -1 do body = tir.For(vars[i], 0, extents[i], "serial", body) end
  return body
end

function make.allocate(self, depth)
  local dtype = pick { "float32", "int8", "float32x4", "bool", "float16" }
  local var = tir.Var(name(), tir.PointerType(dtype, pick(scopes)))
  local extents = { self:extent(), chance(0.3) and tir.IntImm("int32", 4) or nil }
  local buffer = tir.decl_buffer(extents, dtype, chance(0.5) and var.name or name(), { data = var })
  local condition = chance(0.8) and tir.IntImm("bool", 1) or self:expr("bool", 1)
  local inner = self:body(depth, {}, { buffer })
  if chance(0.5) then inner = tir.DeclBuffer(buffer, inner) end
  return tir.Allocate(var, dtype, extents, condition, inner, chance(0.2) and self:attrs(1) or nil)
end

function make.constant(self, depth)
  local var = tir.Var(name(), tir.PointerType("int16", ""))
  local buffer = tir.decl_buffer({ 3 }, "int16", name(), { data = var })
  return tir.AllocateConst(var, "int16", { 3 }, pl.tensor({ 1, -2, 300 }, "int16"),
    self:body(depth, {}, { buffer }))
end

function make.declare(self, depth)
  local known = self:known_buffer()
  if not known then return make.evaluate(self) end
  local buffer = self:buffer(known.data)
  return tir.DeclBuffer(buffer, self:body(depth, {}, { buffer }))
end

function make.attr(self, depth)
  local buffer = self:known_buffer()
  local what = pick { self:expr("int32", 1), tir.StringImm "s", buffer or 0,
    buffer and buffer.data or 0 }
  return tir.AttrStmt(what, pick { "pragma_x", "key" }, self:expr("int32", 1), self:body(depth))
end

function make.thread(self, depth)
  local var = tir.Var(name(), "int32")
  local iter = tir.IterVar(nil, var, "ThreadIndex", pick { "threadIdx.x", "blockIdx.y" })
  return tir.AttrStmt(iter, "thread_extent", self:expr("int32", 1), self:body(depth, { var }))
end

function make.prefetch(self)
  local buffer = self:known_buffer()
  if not buffer then return make.evaluate(self) end
  local dims = {}
  for i = 1, #buffer.shape do dims[i] = self:range(1) end
  return tir.Prefetch(buffer, dims)
end

function make.realize(self, depth)
  local buffer = self:buffer()
  local dims = {}
  for i = 1, #buffer.shape do dims[i] = self:range(1) end
  local stmt = tir.BufferRealize(buffer, dims,
    chance(0.7) and tir.IntImm("bool", 1) or self:expr("bool", 1), self:body(depth, {}, { buffer }))
  if chance(0.5) then return stmt end
  return tir.AttrStmt(buffer, "realize_scope", tir.StringImm(pick(scopes)), stmt)
end

local function regions(self)
  local list = {}
  for i = 1, math.random(0, 2) do
    local buffer = self:known_buffer()
    if buffer then list[i] = self:region(buffer) end
  end
  return list
end

function make.block(self, depth)
  local iters, vars, values = {}, {}, {}
  for i = 1, math.random(0, 3) do
    vars[i] = tir.Var(name(), "int32")
    iters[i] = tir.IterVar(tir.range_from(chance(0.8) and tir.IntImm("int32", 0)
      or self:expr("int32", 1), self:expr("int32", chance(0.8) and 0 or 1)), vars[i],
      pick { "DataPar", "CommReduce", "Ordered", "Opaque" })
    values[i] = self:expr("int32", chance(0.7) and 0 or 2)
  end
  local condition = chance(0.7) and tir.IntImm("bool", 1) or self:expr("bool", 2)
  local block = inside(self, vars, {}, function()
    local allocs, views, matches = {}, {}, {}
    if chance(0.4) then allocs[1] = self:buffer() end
    local known = self:known_buffer()
    local reads, writes = regions(self), regions(self)
    if known and chance(0.3) then
      views[1] = tir.decl_buffer({ 4 }, known.dtype, name(),
        { scope = "global", offset_factor = chance(0.5) and 16 or nil })
      matches[1] = tir.MatchBufferRegion(views[1], self:region(known))
    end
    for _, view in ipairs(views) do table.insert(self.buffers, view) end
    for _, own in ipairs(allocs) do table.insert(self.buffers, own) end
    local init = chance(0.3) and self:body(1) or nil
    return tir.Block(iters, reads, writes, name(), self:body(depth), init, allocs, matches,
      chance(0.2) and self:attrs(1) or nil)
  end)
  self.has_blocks = true
  return tir.BlockRealize(values, condition, block)
end

local kinds = { "store", "store", "store", "evaluate", "let", "pointer", "if", "while", "assert",
  "for", "for", "grid", "allocate", "constant", "declare", "attr", "thread", "prefetch", "realize",
  "block", "block" }

function Module:statements(depth)
  local list = {}
  for i = 1, math.random(3) do
    local kind = depth <= 0 and pick { "store", "store", "evaluate", "prefetch" } or pick(kinds)
    list[i] = make[kind](self, depth)
  end
  return #list == 1 and list[1] or tir.SeqStmt(list)
end

-- ----------------------------------------------------------------- functions

function Module:prim_func()
  self.vars, self.buffers, self.free, self.has_blocks = {}, {}, {}, false
  local params, map = {}, {}
  for i = 1, math.random(0, 4) do
    if chance(0.6) then
      local buffer = self:buffer()
      params[i] = tir.Var(name(), "handle")
      map[params[i]] = buffer
      table.insert(self.buffers, buffer)
    else
      params[i] = (chance(0.8) and tir.Var or tir.SizeVar)(name(),
        pick { pick(ints), pick(floats), "bool" })
      table.insert(self.vars, params[i])
    end
  end
  local attrs = chance(0.5) and self:attrs(2) or {}
  if chance(0.5) then attrs.global_symbol = pick { "main", "f" } end
  if chance(0.3) then attrs["tir.noalias"] = true end
  local body = self:statements(3)
  for _, var in ipairs(self.free) do body = tir.LetStmt(var, tir.IntImm(var.dtype, 1), body) end
  -- TVMScript has no blocks outside of a function's own one.
  if self.has_blocks then
    body = tir.BlockRealize({}, tir.IntImm("bool", 1), tir.Block({}, {}, {}, "root", body))
  end
  return tir.PrimFunc(params, body, chance(0.2) and pick { "int32", "float32" } or nil, map, attrs)
end

local random = {}

function random.module(seed)
  math.randomseed(seed)
  local self = setmetatable({}, Module)
  local functions = {}
  for i = 1, pick { 1, 1, 2 } do functions[i == 1 and "main" or "f" .. i] = self:prim_func() end
  return pl.module(functions)
end

return random
