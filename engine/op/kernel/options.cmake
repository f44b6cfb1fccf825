# Options of single kernels, in engine/CMakeLists.txt. Values are the same unless
# it is said that they are not.

function(perilune_kernel_options options)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/op/kernel/
       OUTPUT_VARIABLE files)
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

# A fused multiply-add is as good as a product and a sum; -std=c11 forbids it.
perilune_kernel_options(-ffp-contract=fast matmul/tile.c)

# Square roots vectorise when nobody asks for errno.
perilune_kernel_options(-fno-math-errno norm/lrn.c norm/axis_norm.c)

# Nobody asks which exceptions floats raised: both sides of a choice may be
# computed, and loops over choices vectorise.
perilune_kernel_options("-fno-math-errno;-fno-trapping-math"
  attention/score.c elementwise/binary.c elementwise/compare.c
  elementwise/convert.c elementwise/elementwise.c elementwise/piecewise.c
  elementwise/where.c
  reduce/arg_reduce.c reduce/reduce.c rnn/gate.c)

# A maximum does not depend on the order.
perilune_kernel_options(
  "-fno-math-errno;-fno-trapping-math;-fopenmp-simd" reduce/loops.c)

# These may contract besides: the last bit of a function is the machine's.
perilune_kernel_options("-fno-math-errno;-fno-trapping-math;-ffp-contract=fast"
  elementwise/activation.c norm/softmax.c)

# Without jumps from a limit to the result at it, a limited argument is one
# maximum and one minimum, not a choice between results.
perilune_kernel_options(
  "-fno-math-errno;-fno-trapping-math;-ffp-contract=fast;$<$<C_COMPILER_ID:GNU>:-fno-thread-jumps>"
  elementwise/unary.c)
