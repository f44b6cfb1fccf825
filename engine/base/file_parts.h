/* file_parts.h: what a pln_file is made of; for file.c and output.c, which
 * copies from file to file. */

#ifndef PLN_BASE_FILE_PARTS_H
#define PLN_BASE_FILE_PARTS_H

#include <sys/types.h>
#include <time.h>

#include "base/file.h"

struct pln_file {
  pln_engine *engine;
  atomic_uint refs; /* children's threads count too */
  bool mapped;
  /* Of a mapping: what file it is, whatever its path leads to by now. */
  dev_t device;
  ino_t inode;
  struct timespec changed;
  pln_file *next; /* in its chain of the engine's living mappings */
  const uint8_t *data;
  uint64_t size;
  char path[];
};

#endif
