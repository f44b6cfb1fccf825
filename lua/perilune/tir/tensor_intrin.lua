--- pl.tir.TensorIntrin: intrinsics of pl.tir.Schedule's tensorize, by name.
--
--     pl.tir.TensorIntrin.register("dot4", desc, impl)
--     sch:tensorize(loop, "dot4")
--
-- `desc` and `impl` are PrimFuncs over the same buffers: what is computed, and how. The body of
-- each is one block that says what it reads and writes.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local ir = require "perilune.ir"

local TensorIntrin = {}
local registered = {}

local function is_prim_func(value)
  return ir.kind_of(value) == "Node" and value.kind == "PrimFunc"
end

-- The Buffers of the parameters, in order.
local function buffers_of(fn, where)
  local by_param, out = {}, {}
  local body
  for _, stmt in ipairs(core.seal(fn).stmts) do
    if stmt.kind == "BufferBind" then by_param[stmt.param] = stmt.buffer else body = stmt end
  end
  for i, param in ipairs(core.seal(fn).params) do
    out[i] = by_param[param]
    if not out[i] then
      argument.fail(("tir.TensorIntrin: parameters of the %s of the tensor intrinsic should be "
        .. "handle only: parameter %d is no buffer"):format(where, i))
    end
  end
  if not body or body.kind ~= "BlockRealize" then
    argument.fail(("tir.TensorIntrin: the body of the %s must be one block"):format(where))
  end
  return out
end

local function check_pair(desc, impl)
  local wanted, given = buffers_of(desc, "description"), buffers_of(impl, "implementation")
  if #wanted ~= #given then
    argument.fail("tir.TensorIntrin: the number of parameters of the description and the "
      .. "implementation of the tensor intrinsic doesn't match")
  end
  for i, buffer in ipairs(wanted) do
    if buffer.dtype ~= given[i].dtype or #buffer.shape ~= #given[i].shape then
      argument.fail(("tir.TensorIntrin: parameter %d differs in dtype or rank between the "
        .. "description and the implementation"):format(i))
    end
  end
end

--- Gives an intrinsic a name; `override`: also one that is taken.
function TensorIntrin.register(name, desc, impl, override)
  argument.string(name, "tir.TensorIntrin.register", "name")
  if not is_prim_func(desc) or not is_prim_func(impl) then
    argument.fail("tir.TensorIntrin.register: desc and impl must be PrimFuncs")
  end
  check_pair(desc, impl)
  if registered[name] and not override then
    argument.fail(("tir.TensorIntrin.register: TensorIntrin '%s' has already been registered")
      :format(name))
  end
  registered[name] = { name = name, desc = desc, impl = impl }
  return registered[name]
end

--- The intrinsic { name, desc, impl } of a name; nil with `allow_missing`.
function TensorIntrin.get(name, allow_missing)
  local found = registered[name]
  if not found and not allow_missing then
    argument.fail(("tir.TensorIntrin: TensorIntrin '%s' is not registered"):format(tostring(name)))
  end
  return found
end

return TensorIntrin
