/* file_parts.h: the fields of pln_file; for file.c and output.c, which copies
 * between files. */

#ifndef PLN_BASE_FILE_PARTS_H
#define PLN_BASE_FILE_PARTS_H

#include <sys/types.h>
#include <time.h>

#include "base/file/file.h"

struct pln_file {
  pln_engine *engine;
  atomic_uint refs; /* atomic: children's threads hold references too */
  bool mapped;
  /* The identity of a mapped file; its path may lead elsewhere by now. */
  dev_t device;
  ino_t inode;
  struct timespec changed;
  pln_file *next; /* next in its chain of the engine's open mappings */
  const uint8_t *data;
  uint64_t size;
  char path[];
};

#endif
