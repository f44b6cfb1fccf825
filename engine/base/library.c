/* library.c: opens shared libraries at run time. Called by kernels for
 * OpenBLAS, PCRE2 and decoders of images. */

#include "base/library.h"

#include <string.h>

#if defined(__has_include)
#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#define HAS_DLOPEN 1
#endif
#endif

#ifdef HAS_DLOPEN

void *pln_library_open(const char *file) {
  return dlopen(file, RTLD_LAZY | RTLD_LOCAL);
}

bool pln_library_is_loaded(const char *file) {
#ifdef RTLD_NOLOAD
  void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library)
    dlclose(library);
  return library != NULL;
#else
  (void)file;
  return false;
#endif
}

/* dlsym returns a function's address as an object pointer. */
bool pln_library_find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

void pln_library_close(void *library) {
  if (library)
    dlclose(library);
}

#else

void *pln_library_open(const char *file) {
  (void)file;
  return NULL;
}

bool pln_library_is_loaded(const char *file) {
  (void)file;
  return false;
}

bool pln_library_find(void *library, const char *name, void *function) {
  (void)library;
  (void)name;
  (void)function;
  return false;
}

void pln_library_close(void *library) {
  (void)library;
}

#endif
