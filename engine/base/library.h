/* library.h: shared libraries opened at run time. */

#ifndef PLN_BASE_LIBRARY_H
#define PLN_BASE_LIBRARY_H

#include <stdbool.h>

/* Opens a library by its file name, such as "libopenblas.so.0". NULL if there
 * is none, or if the platform cannot open libraries. */
void *pln_library_open(const char *file);
/* Returns true if the process has it open. */
bool pln_library_is_loaded(const char *file);
/* Stores the address of a function in `*function`, a pointer to that function's
 * type; false if the library lacks it. */
bool pln_library_find(void *library, const char *name, void *function);
/* `library` may be NULL. */
void pln_library_close(void *library);

#endif
