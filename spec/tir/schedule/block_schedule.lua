-- What the specs of pl.tir.Schedule share: programs, and what schedules make of them.
-- luacheck: no max line length

local assert = require "luassert"
local pl = require "perilune"
local tir = pl.tir

local block_schedule = {}

local header = [[
from tvm.script import tir as T

@T.prim_func
]]

function block_schedule.parse(text) return assert(tir.parse(header .. text)).functions.main end

-- What a schedule makes of a function is the expected one, verified, read back from its text, and
-- computes the same.
function block_schedule.becomes(before, schedule, after)
  local fn = type(before) == "string" and block_schedule.parse(before) or before
  local sch = tir.Schedule(fn)
  schedule(sch)
  local made = sch.mod.functions.main
  assert.is_true(pl.equal(block_schedule.parse(after), made, { map_free_vars = true }), tostring(made))
  assert.is_true(tir.verify_well_formed(made))
  assert(tir.check(fn, made))
  return sch
end

function block_schedule.refuses(before, schedule, message)
  local sch = tir.Schedule(type(before) == "string" and block_schedule.parse(before) or before)
  local blocks, steps = sch.mod, nil
  local ok, err = pcall(function() schedule(sch, function() steps = sch:n_steps() end) end)
  assert.is_false(ok)
  assert.is_truthy(tostring(err):find(message, 1, true), tostring(err))
  assert.is_truthy(tostring(err):find("_spec.lua", 1, true), tostring(err))
  if steps then assert.equal(steps, sch:n_steps()) end
  assert.is_true(pl.equal(blocks, tir.Schedule(blocks).mod))
end

function block_schedule.loops_of(sch, name) return table.unpack(sch:get_loops(sch:get_block(name))) end

block_schedule.elementwise = [[
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    for i, j in T.grid(128, 128):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
]]

block_schedule.chain = [[
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1)
]]

block_schedule.matmul = [[
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vj, vk])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
]]

return block_schedule
