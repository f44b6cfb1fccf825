-- The tests of TVM 0.14's te by name, by file of tests/python (nested functions count): 177 of the
-- 179 that TVM's own count gives; and those that have no counterpart, with the reason.

local tests = {
  test_te_tensor = [[test_tensor test_rank_zero test_conv1d test_tensor_slice
    test_tensor_reduce_multi_axis test_tensor_comm_reducer test_tensor_comm_reducer_overload
    test_tensor_reduce test_tensor_reduce_multiout_with_cond test_tensor_compute1
    test_tensor_compute2 test_tensor_scan test_scan_multi_out test_extern test_extern_multi_out
    test_tuple_inputs test_tuple_with_different_deps test_tensor_inputs test_tensor_pool
    test_tensor_scalar_mixed test_tensor_scalar]],
  test_te_tensor_overload = [[test_operator_type_and_tags test_combination test_tensor_scalar_bop
    test_broadcast_bop test_conv2d_scalar_bop]],
  test_te_tag = "test_with test_decorator test_nested",
  test_te_verify_compute = "test_verify_compute",
  test_te_schedule = [[test_schedule_create test_reorder test_split test_tile test_fuse
    test_fuse_with_split test_fuse_with_out_of_order_axis
    test_fuse_with_out_of_order_axis_with_reorder test_singleton test_vectorize
    test_vectorize_commreduce test_pragma test_rfactor test_tensor_intrin
    test_tensor_intrin_scalar_params test_legalize_invalid_attach test_compute_at]],
  test_te_schedule_ops = [[test_const test_schedule0 test_schedule1 test_schedule2
    test_schedule_scan test_inline_multi_reduce test_auto_inline test_schedule_const_bound
    test_inline_mixed test_scan_inline1 test_scan_inline2 test_schedule_cache
    test_schedule_middle_cache test_schedule_cache_relayout1 test_schedule_cache_relayout2
    test_schedule_cache_relayout3 test_schedule_cache_relayout4 test_schedule_tensor_compute1
    test_schedule_tensor_compute2 test_schedule_tensor_compute3 test_loop_dep_reduce
    test_loop_dep_reduce_cache_write test_reduction_and_dummy_fuse_split
    test_schedule_compute_inline test_local_stage_predicate test_local_stage_predicate2
    test_schedule_record_gemm test_schedule_record_misc]],
  test_te_schedule_bound_inference = [[test_bound1 test_bound2 test_bound3
    test_bound_split_ext_less_than_factor test_bound_split_ext_less_than_naprts
    test_bound_split_divisible test_bound_tile_divisible test_bound_fusesplit1
    test_bound_fusesplit2 test_bound_warp test_bound_scan test_bound_conv1d test_bound_blur
    test_bound_rfactor test_bound_group_schedule test_bound_nest_group test_bound_nest_thread
    test_gemm_bound test_bound_tensor_compute_op test_bound_simplification_failure]],
  test_te_schedule_bound_inference_tiling = "test_bound_tile_mod",
  test_te_schedule_graph = [[test_scan test_getbody test_attach_path test_fix_pt
    test_scan_fix_point test_scan0 test_scan1 test_scan3_not_exact_reach test_scan4_reach_other
    test_scan5_multi_output test_create_read_graph]],
  test_te_schedule_lstm = "test_lstm_cell_inline",
  test_te_schedule_tensorize = [[test_tensorize_vadd test_tensorize_matmul test_tensorize_op
    test_tensorize_tensor_compute_op]],
  test_te_schedule_postproc_rewrite_for_tensor_core = [[test_tensor_core_batch_matmal
    test_tensor_core_batch_conv]],
  test_te_group = "test_scan_group test_compute_group test_nest_group",
  test_te_build_lower = [[test_lower_rfactor test_dependent_output_shape
    test_split_uneven_unique_likely]],
  test_te_hybrid_script = [[test_outer_product test_fanout test_looptype test_if test_bind
    test_math_intrin test_non_zero test_allocate test_upstream test_downstream test_const_param
    test_value_index test_func_call test_bool test_const_range test_schedule test_capture
    test_array_inputs]],
  test_te_autodiff = [[test_basic_operation test_topi test_stride_dilation test_reduction_init
    test_stable]],
  test_te_create_primfunc = [[test_unique_name_complete_block test_unique_name_reduction_block
    test_matmul test_matmul_int64 test_element_wise test_conv2d test_multi_output test_extern
    test_arg_order test_error_reporting test_constant test_data_dependent_access
    test_select_simplify test_tensor_attr test_tensor_layout_attr test_argmax_idx_val
    test_argmax_val_idx test_int64_indices test_zero_dim_add test_reshape test_resize2d_symbolic
    test_extern_with_explicit_buffer_access test_with_var_input]],
  test_transform_layout = [[test_external_reshape test_internal_reshape test_2d_physical
    test_tir_loop_order test_te_loop_order test_use_transformed_axes test_lower test_execute
    test_transform_with_reduction test_size_one_buffer
    test_non_divisible_transform_raises_error]],
}

local device = "rewriting loops for tensor cores needs such a GPU"

local without = {
  test_tensor_core_batch_matmal = device, test_tensor_core_batch_conv = device,
}

return { tests = tests, without = without }
