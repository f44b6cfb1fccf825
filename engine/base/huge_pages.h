/* huge_pages.h: large blocks of memory, see huge_pages.c. */

#ifndef PLN_BASE_HUGE_PAGES_H
#define PLN_BASE_HUGE_PAGES_H

#include <stddef.h>

enum { PLN_HUGE_PAGE = 2 << 20, PLN_HUGE_BLOCK = 4 << 20 };

/* A block aligned to PLN_HUGE_PAGE, which free() frees; NULL: no memory. It is
 * worth it for PLN_HUGE_BLOCK bytes or more. */
void *pln_huge_alloc(size_t size);

#endif
