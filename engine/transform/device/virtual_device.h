/* virtual_device.h: TVM's VirtualDevice (where a value is stored and what
 * compiles its computation), and the devices of a compilation
 * (CompilationConfig); for the files of PlanDevices. */

#ifndef PLN_TRANSFORM_DEVICE_VIRTUAL_DEVICE_H
#define PLN_TRANSFORM_DEVICE_VIRTUAL_DEVICE_H

#include "transform/transform.h"

/* Each part may be open: type and id negative, target and scope 0. */
typedef struct pln_virtual_device {
  int64_t type;    /* DLDeviceType: 1 a processor, 2 CUDA */
  int64_t id;      /* which one of that type */
  uint32_t target; /* 1 + its index in the compilation */
  pln_symbol scope;
} pln_virtual_device;

/* A device in the table of a compilation. 0: all parts open. */
typedef uint32_t pln_device;
#define PLN_NO_DEVICE UINT32_MAX

typedef struct pln_compile_device_target {
  pln_slice text; /* borrowed */
  pln_slice kind;
  int64_t device_type;
  bool is_host; /* it has no host itself */
} pln_compile_device_target;

typedef struct pln_compilation {
  pln_engine *engine;
  uint32_t n_targets, cap_targets; /* the host's is the last one */
  pln_compile_device_target *targets;
  uint32_t n, cap;
  pln_virtual_device *devices;
  pln_device primitive, host; /* the default of operators; the host */
} pln_compilation;

/* The compilation that the pass's option `config` describes, else the context's
 * target, else a processor. PLN_ERR_ARGUMENT when it has no target for its
 * default device. pln_compilation_free follows in any case. */
pln_status pln_compilation_begin(pln_compilation *c,
                                 const pln_pass_run *run) PLN_CHECKED;
void pln_compilation_free(pln_compilation *c);

/* The device that an attribute describes (an OBJECT; NULL, or of another kind:
 * 0). A device type without target gets the compilation's. PLN_ERR_ARGUMENT
 * when there is none. */
pln_status pln_device_read(pln_compilation *c, const pln_attr *attr,
                           pln_device *out) PLN_CHECKED;
/* The device of which only the memory scope is known. */
pln_status pln_device_in_scope(pln_compilation *c, pln_symbol scope,
                               pln_device *out) PLN_CHECKED;
/* The attribute, without name. */
pln_status pln_device_write(const pln_compilation *c, pln_device device,
                            pln_buffer *text, pln_attr *out) PLN_CHECKED;
/* TVM's Join: what both say, PLN_NO_DEVICE if they contradict each other. */
pln_status pln_device_join(pln_compilation *c, pln_device a, pln_device b,
                           pln_device *out) PLN_CHECKED;
/* TVM's Default: `a`, with the open parts of `b`. */
pln_status pln_device_default(pln_compilation *c, pln_device a, pln_device b,
                              pln_device *out) PLN_CHECKED;
/* "device type 2, id 0 (cuda)"; returns `text`. */
const char *pln_device_describe(const pln_compilation *c, pln_device device,
                                char *text, size_t size);

#endif
