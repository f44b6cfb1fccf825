/* file.h: files that are read through a mapping, and files that are written
 * beside their target and renamed into its place. */

#ifndef PLN_BASE_FILE_H
#define PLN_BASE_FILE_H

#include "base/base.h"

struct stat;

/* Bytes of a mapped file, or a copy of given bytes; reference counted. */
typedef struct pln_file pln_file;
/* PLN_ERR_IO names the path and the reason. Directories and devices are
 * refused. An empty file maps to no bytes. */
pln_status pln_file_map(pln_engine *engine, const char *path,
                        pln_file **out) PLN_CHECKED;
pln_status pln_file_copy(pln_engine *engine, pln_slice bytes, const char *name,
                         pln_file **out) PLN_CHECKED;
pln_file *pln_file_retain(const pln_file *file);
void pln_file_release(pln_file *file);
/* What a child opened becomes its parent's; of another engine it stays. */
void pln_file_adopt(pln_engine *parent, pln_engine *child, pln_file *file);
const uint8_t *pln_file_data(const pln_file *file);
uint64_t pln_file_size(const pln_file *file);
const char *pln_file_path(const pln_file *file);
/* True for a mapping (its bytes can be copied from file to file). */
bool pln_file_is_mapped(const pln_file *file);

/* What bytes look like that begin no ONNX model, for a message: "text", "gzip
 * data; ...", PLN_FILE_RELAY; NULL when that cannot be told. */
#define PLN_FILE_RELAY "Relay text"
const char *pln_file_kind(pln_slice bytes);

/* Opens `name`, which a model file gave, inside `directory`. PLN_ERR_FORMAT
 * when it is absolute, has a part "..", or leads outside through a link. */
pln_status pln_file_map_confined(pln_engine *engine, const char *directory,
                                 pln_slice name, pln_file **out) PLN_CHECKED;

/* A file being written in the folder of PATH, without a name where the system
 * has such files, else as "PATH.perilune-tmp-N", of which stale ones are
 * removed; nothing is seen under PATH before the commit, which is written to
 * the disk first, and an abort leaves no trace. The mode is that of the file it
 * replaces, else as open(2) with 0666 makes it. Buffered. */
typedef struct pln_output pln_output;
pln_status pln_output_open(pln_engine *engine, const char *path,
                           pln_output **out) PLN_CHECKED;
pln_status pln_output_write(pln_output *output, const void *data,
                            size_t size) PLN_CHECKED;
/* Copies a slice of a file, inside the kernel and with holes kept where the
 * systems offer it. */
pln_status pln_output_copy(pln_output *output, const pln_file *file,
                           uint64_t offset, uint64_t size) PLN_CHECKED;
/* Zero bytes up to a position, as a hole. */
pln_status pln_output_pad(pln_output *output, uint64_t position) PLN_CHECKED;
uint64_t pln_output_position(const pln_output *output);
/* Writes to the disk what is still to be written: nothing may be added. A
 * commit does it by itself. */
pln_status pln_output_finish(pln_output *output) PLN_CHECKED;
/* Gives the finished file a further name, in the same folder, under which
 * nothing is there; false when the system does not. */
bool pln_output_link(pln_output *output, const char *path);
/* What the file is that will be at the target; a struct stat. */
bool pln_output_stat(const pln_output *output, struct stat *out);
/* The file that will be replaced: links have been followed. */
const char *pln_output_target(const pln_output *output);
/* From here to the other, no other process is between the two as to the folder
 * of the target. -1, of which unlock does nothing: the system has no locks. */
int pln_output_lock(const pln_output *output);
void pln_output_unlock(int lock);
/* Renames into place, or removes what was written; both free `output`. */
pln_status pln_output_commit(pln_output *output) PLN_CHECKED;
void pln_output_abort(pln_output *output);

#endif
