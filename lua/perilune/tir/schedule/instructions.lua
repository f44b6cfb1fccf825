-- The instructions of a trace: for each its name in TVM, its arguments in order, and what it does.
--
-- An argument is { name, role, default }: roles are block, loop, loop_or_block (variables of
-- the schedule), location (a loop, or what sample_compute_location gave), blocks and loops (lists
-- of them), factors (integers, sampled variables or -1), and, for what is no variable, string,
-- integer, boolean, numbers, integers, value, buffer ({ "read" or "write", number }) and index_map
-- (a pl.tir.IndexMap). `run` gets the state, and statements in the place of variables; it gives the
-- ids or numbers of its results.

local core = require "perilune.core"
core.internal()

local auto_copy = require "perilune.tir.schedule.auto_copy"
local block_layout = require "perilune.tir.schedule.block_layout"
local blockize = require "perilune.tir.schedule.blockize"
local buffers = require "perilune.tir.schedule.buffer"
local cache = require "perilune.tir.schedule.cache"
local cache_index = require "perilune.tir.schedule.cache_index"
local compute_location = require "perilune.tir.schedule.compute_location"
local inline = require "perilune.tir.schedule.inline"
local layout = require "perilune.tir.schedule.layout"
local loops = require "perilune.tir.schedule.loops"
local merge = require "perilune.tir.schedule.merge"
local pad_einsum = require "perilune.tir.schedule.pad_einsum"
local padding = require "perilune.tir.schedule.padding"
local query = require "perilune.tir.schedule.query"
local reduction = require "perilune.tir.schedule.reduction"
local reindex = require "perilune.tir.schedule.reindex"
local rolling_buffer = require "perilune.tir.schedule.rolling_buffer"
local tensorize = require "perilune.tir.schedule.tensorize"

local instructions = {}

-- `results`: "blocks", "loops" (a list), "block", "loop", "value", "values" or nil.
local function row(name, kind, arguments, results, run, more)
  local out = { name = name, kind = kind, arguments = {}, results = results, run = run }
  for i, one in ipairs(arguments) do
    out.arguments[i] = { name = one[1], role = one[2], default = one[3], attr = one.attr }
  end
  for key, value in pairs(more or {}) do out[key] = value end
  instructions[#instructions + 1] = out
  instructions[name], instructions["kind:" .. kind] = out, out
end

local keep_unit = { "preserve_unit_iters", "boolean", true }

row("get_block", "GetBlock", { { "name", "string" }, { "func_name", "string" } }, "block",
  query.get_block)
row("get_loops", "GetLoops", { { "block", "block" } }, "loops", query.get_loops)
row("get_child_blocks", "GetChildBlocks", { { "block_or_loop", "loop_or_block" } }, "blocks",
  query.get_child_blocks, { positional = true })
row("get_producers", "GetProducers", { { "block", "block" } }, "blocks", query.get_producers)
row("get_consumers", "GetConsumers", { { "block", "block" } }, "blocks", query.get_consumers)
row("get_output_blocks", "GetOutputBlocks", { { "scope_block", "block" } }, "blocks",
  query.get_output_blocks)
row("sample_categorical", "SampleCategorical",
  { { "candidates", "integers" }, { "probs", "numbers" } }, "value", query.sample_categorical,
  { samples = true })
row("sample_perfect_tile", "SamplePerfectTile",
  { { "loop", "loop" }, { "n", "integer" }, { "max_innermost_factor", "integer", 16 } }, "values",
  query.sample_perfect_tile, { samples = true })
row("sample_partitioned_tile", "SamplePartitionedTile",
  { { "loop", "loop" }, { "n", "integer" }, { "partition_pos", "integer", 0 },
    { "innerpart_factor", "integer", 1 } }, "values", query.sample_partitioned_tile,
  { samples = true })
row("sample_compute_location", "SampleComputeLocation", { { "block", "block" } }, "loop",
  compute_location.sample, { samples = true })
row("split", "Split", { { "loop", "loop" }, { "factors", "factors" }, keep_unit }, "loops",
  loops.split)
row("fuse", "Fuse", { { "loops", "loops" }, keep_unit }, "loop", loops.fuse,
  { variadic = "loops" })
row("merge", "Merge", { { "loops", "loops" } }, "loop", merge, { variadic = "loops" })
row("reorder", "Reorder", { { "loops", "loops" } }, nil, loops.reorder, { variadic = "loops" })
row("reorder_block_iter_var", "ReorderBlockIterVar",
  { { "block", "block" }, { "new_order", "integers" } }, nil, block_layout.reorder_block_iter_var)
row("add_unit_loop", "AddUnitLoop", { { "block_or_loop", "loop_or_block" } }, "loop",
  loops.add_unit_loop)
row("parallel", "Parallel", { { "loop", "loop" } }, nil, loops.parallel)
row("vectorize", "Vectorize", { { "loop", "loop" } }, nil, loops.vectorize)
row("unroll", "Unroll", { { "loop", "loop" } }, nil, loops.unroll)
row("bind", "Bind", { { "loop", "loop" }, { "thread_axis", "string" } }, nil, loops.bind)
row("cache_read", "CacheRead", { { "block", "block" }, { "read_buffer_index", "integer" },
  { "storage_scope", "string" }, { "consumer_blocks", "blocks", {} } }, "block", cache.cache_read)
row("cache_write", "CacheWrite", { { "block", "block" }, { "write_buffer_index", "integer" },
  { "storage_scope", "string" } }, "block", cache.cache_write)
row("reindex", "ReIndex", { { "block", "block" }, { "buffer", "buffer" } }, "block",
  reindex.reindex)
row("reindex_cache_read", "ReindexCacheRead", { { "block", "block" },
  { "read_buffer_index", "integer" }, { "storage_scope", "string" },
  { "index_map", "index_map" } }, "block", reindex.reindex_cache_read)
row("reindex_cache_write", "ReindexCacheWrite", { { "block", "block" },
  { "write_buffer_index", "integer" }, { "storage_scope", "string" },
  { "index_map", "index_map" } }, "block", reindex.reindex_cache_write)
row("cache_inplace", "CacheInplace", { { "block", "block" }, { "read_buffer_index", "integer" },
  { "storage_scope", "string" } }, "blocks", cache.cache_inplace)
row("cache_index", "CacheIndex", { { "block", "block" }, { "storage_scope", "string" },
  { "cse_thresh", "integer", 0 } }, "blocks", cache_index)
row("read_at", "ReadAt", { { "loop", "loop" }, { "block", "block" },
  { "read_buffer_index", "integer" }, { "storage_scope", "string" } }, "block", auto_copy.read_at)
row("write_at", "WriteAt", { { "loop", "loop" }, { "block", "block" },
  { "write_buffer_index", "integer" }, { "storage_scope", "string" } }, "block",
  auto_copy.write_at)
row("set_scope", "SetScope", { { "block", "block" }, { "buffer_index", "integer" },
  { "storage_scope", "string" } }, nil, cache.set_scope)
row("storage_align", "StorageAlign", { { "block", "block" }, { "buffer_index", "integer" },
  { "axis", "integer" }, { "factor", "integer" }, { "offset", "integer" } }, nil,
  cache.storage_align)
row("compute_at", "ComputeAt", { { "block", "block" }, { "loop", "location" },
  { "preserve_unit_loops", "boolean", false }, { "index", "integer", -1 } }, nil,
  compute_location.compute_at)
row("reverse_compute_at", "ReverseComputeAt", { { "block", "block" }, { "loop", "location" },
  { "preserve_unit_loops", "boolean", false }, { "index", "integer", -1 } }, nil,
  compute_location.reverse_compute_at)
row("compute_inline", "ComputeInline", { { "block", "block" } }, nil, inline.compute_inline)
row("reverse_compute_inline", "ReverseComputeInline", { { "block", "block" } }, nil,
  inline.reverse_compute_inline)
row("decompose_reduction", "DecomposeReduction", { { "block", "block" }, { "loop", "loop" } },
  "block", reduction.decompose_reduction)
row("pad_einsum", "PadEinsum", { { "block", "block" }, { "padding", "integers" } }, nil, pad_einsum)
row("decompose_padding", "DecomposePadding", { { "block", "block" }, { "loop", "loop" } },
  "block", padding.decompose_padding)
row("rfactor", "RFactor", { { "loop", "loop" }, { "factor_axis", "integer" } }, "block",
  reduction.rfactor)
row("annotate", "Annotate", { { "block_or_loop", "loop_or_block" }, { "ann_key", "string" },
  { "ann_val", "value" } }, nil, loops.annotate)
row("unannotate", "Unannotate", { { "block_or_loop", "loop_or_block" }, { "ann_key", "string" } },
  nil, loops.unannotate)
row("blockize", "Blockize", { { "target", "loop" }, keep_unit }, "block", blockize.blockize)
row("tensorize", "Tensorize", { { "block_or_loop", "loop_or_block" },
  { "tensor_intrin", "string" }, keep_unit }, nil, tensorize.tensorize)
row("transform_layout", "TransformLayout", { { "block", "block" }, { "buffer", "buffer" },
  { "index_map", "index_map" } }, nil, layout.transform_layout)
row("transform_block_layout", "TransformBlockLayout",
  { { "block", "block" }, { "index_map", "index_map" } }, nil, block_layout.transform_block_layout)
row("set_axis_separator", "SetAxisSeparator", { { "block", "block" }, { "buffer", "buffer" },
  { "axis_separators", "integers" } }, nil, buffers.set_axis_separator)
row("unsafe_set_dtype", "UnsafeSetDType", { { "block", "block" }, { "buffer_index", "integer" },
  { "dtype", "string" } }, nil, buffers.unsafe_set_dtype)
row("rolling_buffer", "RollingBuffer", { { "block", "block" },
  { "write_buffer_index", "integer" } }, nil, rolling_buffer)
row("unsafe_hide_buffer_access", "UnsafeHideBufferAccess", { { "block", "block" },
  { "buf_type", "string" }, { "buf_index_array", "integers" } }, nil,
  buffers.unsafe_hide_buffer_access)
row("enter_postproc", "EnterPostproc", {}, nil, function() end)

return instructions
