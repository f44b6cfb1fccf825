-- A function for each builtin of TIR, by TVM's names without "tir.":
-- tir.exp(x), tir.call_extern("int32", "f", x), tir.tvm_struct_get(a, 0, 1, "int32").
--
-- perilune.tir takes them over, but for those that compute constants, which are
-- in perilune.tir.math.

local core = require "perilune.core"
core.internal()

local operand = require "perilune.tir.operand"

local function set(words)
  local out = {}
  for word in words:gmatch "%S+" do out[word] = true end
  return out
end

-- Builtins whose dtype comes first among the arguments.
local dtype_first = set [[reinterpret vectorhigh vectorlow vectorcombine type_annotation
  call_pure_extern call_llvm_pure_intrin call_llvm_intrin call_spirv_pure_glsl450 dp4a call_extern
  ptx_mma ptx_mma_sp ptx_ldmatrix mma_store mma_fill ptx_cp_async ptx_cp_async_bulk]]

-- Builtins that give one dtype, whatever they are called with; some give nothing.
local result = {
  bool = set "isnullptr assume",
  uint32 = set "tvm_warp_activemask",
  int32 = set [[tvm_call_packed tvm_call_cpacked tvm_call_trace_packed tvm_call_packed_lowered
    tvm_call_cpacked_lowered tvm_call_trace_packed_lowered tvm_check_return tvm_struct_set
    TVMBackendFreeWorkspace tvm_storage_sync dma_copy dma_wait dma_start_group dma_end_group undef
    clz q_multiply_shift q_multiply_shift_per_axis tvm_throw_last_error]],
  handle = set [[address_of tvm_access_ptr tvm_tuple tvm_stack_alloca tvm_stack_make_shape
    tvm_stack_make_array TVMBackendAllocWorkspace tvm_context_id lookup_param tvm_static_handle
    tvm_thread_allreduce tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment
    tvm_store_matrix_sync start_profile_intrinsic end_profile_intrinsic anylist_getitem]],
  void = set [[ptx_commit_group ptx_wait_group ptx_cp_async_barrier ptx_init_barrier_thread_count
    ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_wait_barrier create_barriers]],
}
-- The argument whose dtype is that of the result, where it is not the first.
local dtype_of = set [[if_then_else tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down]]

-- The dtype of what a builtin gives when its call does not say.
local function result_dtype(name, args)
  for dtype, names in pairs(result) do
    if names[name] then return dtype end
  end
  if #args == 0 then return "handle" end
  return operand.value(args[dtype_of[name] and 2 or 1]).dtype
end

local builtin = {}

for _, name in ipairs(core.builtins()) do
  builtin[name] = function(...)
    local args = { ... }
    if dtype_first[name] then
      return operand.call(args[1], name, table.move(args, 2, #args, 1, {}))
    end
    if name == "tvm_struct_get" then return operand.call(table.remove(args), name, args) end
    return operand.call(result_dtype(name, args), name, args)
  end
end

return builtin
