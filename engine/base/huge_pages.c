/* huge_pages.c: large blocks of memory in huge pages where the system has them:
 * they save page faults and misses of the translation buffer.
 *
 * Called by base.c for large tensors and graphs, and by codegen/library.c for
 * the memory of models. */

#include <stdlib.h>
#include <sys/mman.h>

#include "base/huge_pages.h"

void *pln_huge_alloc(size_t size) {
  void *block;
  if (posix_memalign(&block, PLN_HUGE_PAGE, size))
    return NULL;
#ifdef MADV_HUGEPAGE
  madvise(block, size & ~(size_t)(PLN_HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
  return block;
}
