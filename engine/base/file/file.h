/* file.h: memory-mapped input files, and output files that replace their target
 * atomically. */

#ifndef PLN_BASE_FILE_H
#define PLN_BASE_FILE_H

#include "base/base.h"

struct stat;

/* The bytes of a mapped file, or a copy of given bytes; reference counted. */
typedef struct pln_file pln_file;
/* PLN_ERR_IO names the path and the reason. Directories and devices are
 * refused. An empty file is a mapping of size 0. */
pln_status pln_file_map(pln_engine *engine, const char *path,
                        pln_file **out) PLN_CHECKED;
pln_status pln_file_copy(pln_engine *engine, pln_slice bytes, const char *name,
                         pln_file **out) PLN_CHECKED;
pln_file *pln_file_retain(const pln_file *file);
void pln_file_release(pln_file *file);
/* Moves a file that the child opened to its parent. Files of other engines are
 * left alone. */
void pln_file_adopt(pln_engine *parent, pln_engine *child, pln_file *file);
const uint8_t *pln_file_data(const pln_file *file);
uint64_t pln_file_size(const pln_file *file);
const char *pln_file_path(const pln_file *file);
/* True for a mapping (its bytes can be copied by the kernel). */
bool pln_file_is_mapped(const pln_file *file);

/* Identifies a version of a file: its place on the disk, size and time of
 * change. Never 0. */
uint64_t pln_file_stamp(const pln_file *file);
/* The same of the file `name` in `directory`; 0 when it cannot be asked. */
uint64_t pln_file_stamp_at(const char *directory, pln_slice name);
/* True unless the path of a mapped file leads to another version by now. */
bool pln_file_is_current(const pln_file *file);

/* Guesses the format of bytes that are not an ONNX model, for a message:
 * "text", "gzip data; ...", PLN_FILE_RELAY; NULL: unknown. */
#define PLN_FILE_RELAY "Relay text"
const char *pln_file_kind(pln_slice bytes);

/* Opens the file `name`, as named in a model file, inside `directory`.
 * PLN_ERR_FORMAT when it is absolute, contains "..", or leads outside through a
 * link. */
pln_status pln_file_map_confined(pln_engine *engine, const char *directory,
                                 pln_slice name, pln_file **out) PLN_CHECKED;

/* A buffered output file in the folder of PATH. It has no name where the system
 * supports that (O_TMPFILE), else the name "PATH.perilune-tmp-N"; stale ones
 * are removed. PATH is unchanged until the commit, which first syncs the data
 * to disk. An abort leaves no trace. The file gets the mode of the file that it
 * replaces, else that of open(2) with 0666. */
typedef struct pln_output pln_output;
pln_status pln_output_open(pln_engine *engine, const char *path,
                           pln_output **out) PLN_CHECKED;
pln_status pln_output_write(pln_output *output, const void *data,
                            size_t size) PLN_CHECKED;
/* Copies a range of a file, inside the kernel and preserving holes where the
 * system supports that. */
pln_status pln_output_copy(pln_output *output, const pln_file *file,
                           uint64_t offset, uint64_t size) PLN_CHECKED;
/* Zero bytes up to a position, as a hole where possible. */
pln_status pln_output_pad(pln_output *output, uint64_t position) PLN_CHECKED;
uint64_t pln_output_position(const pln_output *output);
/* Flushes and syncs; nothing may be written afterwards. A commit does this
 * itself. */
pln_status pln_output_finish(pln_output *output) PLN_CHECKED;
/* Links the finished file to an additional, unused name in the same folder;
 * false when the system cannot. */
bool pln_output_link(pln_output *output, const char *path);
/* A struct stat of the file that will be at the target. */
bool pln_output_stat(const pln_output *output, struct stat *out);
/* The path that will be replaced, with links resolved. */
const char *pln_output_target(const pln_output *output);
/* Locks the folder of the target against other perilune processes until unlock.
 * Returns -1, which unlock accepts, when the system has no locks. */
int pln_output_lock(const pln_output *output);
void pln_output_unlock(int lock);
/* Commit renames the file to its target; abort removes it. Both free
 * `output`. */
pln_status pln_output_commit(pln_output *output) PLN_CHECKED;
void pln_output_abort(pln_output *output);

#endif
