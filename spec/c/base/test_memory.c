/* test_memory.c: freed blocks that are kept while something computes. */

#include "base/base.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

enum { MB = 1 << 20 };

#ifdef __SANITIZE_ADDRESS__
static const bool keeps = false; /* there every block is fresh */
#else
static const bool keeps = true;
#endif

static oom memory;

static pln_engine *begin(void) {
  memory = (oom){0};
  pln_engine *e = pln_base_new(oom_alloc, &memory);
  pln_mem_reuse_begin(e);
  return e;
}

static void end(pln_engine *e) {
  pln_mem_reuse_end(e);
  CHECK_EQ_INT(pln_engine_memory(e, NULL), memory.bytes);
  pln_base_free(e);
  CHECK_EQ_INT(memory.blocks, 0);
}

static void the_next_of_that_size_gets_it(void) {
  pln_engine *e = begin();
  void *a = pln_mem_new(e, MB);
  void *b = pln_mem_new(e, MB);
  pln_mem_free(e, a, MB);
  pln_mem_free(e, b, MB);
  uint64_t calls = memory.calls;
  CHECK(!keeps || pln_mem_new(e, MB - 100) == b);
  CHECK(!keeps || pln_mem_new(e, MB) == a);
  CHECK_EQ_INT(memory.calls, calls);
  if (keeps) {
    pln_mem_free(e, a, MB);
    pln_mem_free(e, b, MB - 100);
  }
  end(e);
}

static void the_peak_is_not_raised(void) {
  pln_engine *e = begin();
  size_t before = pln_engine_memory(e, NULL), peak;
  for (size_t size = MB; size <= 8 * MB; size += MB)
    pln_mem_free(e, pln_mem_new(e, size), size);
  CHECK_EQ_INT(pln_engine_memory(e, &peak), before);
  CHECK(memory.bytes <= before + 8 * MB);
  CHECK_EQ_INT(peak, before + 8 * MB);
  end(e);
}

static void small_blocks_go_at_once(void) {
  pln_engine *e = begin();
  size_t blocks = memory.blocks;
  pln_mem_free(e, pln_mem_new(e, 1000), 1000);
  CHECK_EQ_INT(memory.blocks, blocks);
  end(e);
}

static void only_so_many_are_kept(void) {
  pln_engine *e = begin();
  void *block[3 * PLN_MOST_KEPT];
  size_t blocks = memory.blocks;
  for (size_t i = 0; i < PLN_COUNT(block); i++)
    block[i] = pln_mem_new(e, MB / 8);
  for (size_t i = 0; i < PLN_COUNT(block); i++)
    pln_mem_free(e, block[i], MB / 8);
  CHECK_EQ_INT(memory.blocks, blocks + (keeps ? PLN_MOST_KEPT : 0));
  end(e);
}

static void what_is_kept_goes_when_memory_is_out(void) {
  pln_engine *e = begin();
  pln_mem_free(e, pln_mem_new(e, 8 * MB), 8 * MB); /* a peak to stay below */
  pln_mem_free(e, pln_mem_new(e, 2 * MB), 2 * MB);
  size_t bytes = memory.bytes;
  memory.fail_at = memory.calls + 1;
  void *block = pln_mem_new(e, MB);
  CHECK(!keeps || block);
  CHECK_EQ_INT(memory.bytes, keeps ? bytes - MB : bytes);
  pln_mem_free(e, block, MB);
  end(e);
}

static void the_outermost_lets_go(void) {
  pln_engine *e = begin();
  size_t blocks = memory.blocks;
  pln_mem_reuse_begin(e);
  pln_mem_free(e, pln_mem_new(e, MB), MB);
  pln_mem_reuse_end(e);
  CHECK_EQ_INT(memory.blocks, blocks + keeps);
  end(e);
}

static void a_pool_keeps_blocks_between_computations(void) {
  pln_engine *e = begin();
  size_t before = pln_engine_memory(e, NULL), blocks = memory.blocks, peak;
  pln_engine_set_pool(e, 4 * MB);
  CHECK_EQ_INT(pln_engine_pool(e), 4 * MB);
  for (size_t size = MB; size <= 3 * MB; size += MB) /* one at a time */
    pln_mem_free(e, pln_mem_new(e, size), size);
  pln_mem_reuse_end(e);
  CHECK_EQ_INT(memory.blocks, blocks + keeps);
  CHECK_EQ_INT(pln_engine_memory(e, &peak), before);
  CHECK_EQ_INT(peak, before + 3 * MB);
  uint64_t calls = memory.calls;
  void *block = pln_mem_new(e, 3 * MB);
  CHECK_EQ_INT(memory.calls, calls + !keeps);
  CHECK_EQ_INT(pln_engine_memory(e, NULL), before + 3 * MB);
  pln_mem_free(e, block, 3 * MB); /* nothing computes: the pool takes it */
  CHECK_EQ_INT(memory.blocks, blocks + keeps);
  pln_mem_free(e, pln_mem_new(e, 2 * MB), 2 * MB); /* instead of it */
  CHECK_EQ_INT(memory.blocks, blocks + keeps);
  pln_engine_set_pool(e, 0);
  CHECK_EQ_INT(memory.blocks, blocks);
  pln_mem_reuse_begin(e);
  end(e);
}

static void blocks_grow_and_shrink(void) {
  pln_engine *e = begin();
  char *block = NULL;
  size_t old = 0;
  for (size_t size = 1; size < 3 * MB; size += size / 3 + 1) {
    block = pln_mem_resize(e, block, old, size);
    REQUIRE(block);
    block[size - 1] = 1;
    old = size;
  }
  block = pln_mem_resize(e, block, old, 10);
  pln_mem_free(e, block, 10);
  end(e);
}

static const check_test tests[] = {
    {"the next of that size gets it", the_next_of_that_size_gets_it},
    {"the peak is not raised", the_peak_is_not_raised},
    {"small blocks go at once", small_blocks_go_at_once},
    {"only so many are kept", only_so_many_are_kept},
    {"what is kept goes when memory is out",
     what_is_kept_goes_when_memory_is_out},
    {"the outermost lets go", the_outermost_lets_go},
    {"a pool keeps blocks between computations",
     a_pool_keeps_blocks_between_computations},
    {"blocks grow and shrink", blocks_grow_and_shrink},
};
CHECK_MAIN(tests)
