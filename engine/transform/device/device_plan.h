/* device_plan.h: the device of each value of a module: what plan_devices.c
 * finds and capture_devices.c writes into the program. */

#ifndef PLN_TRANSFORM_DEVICE_DEVICE_PLAN_H
#define PLN_TRANSFORM_DEVICE_DEVICE_PLAN_H

#include "transform/device/device_domains.h"

/* A function being planned. By node: */
typedef struct pln_planned_function {
  const pln_graph *graph; /* NULL: it is not planned */
  pln_symbol name;
  pln_domain *value;  /* where it is, looking through on_device; 0: it is no
                       * value, or inside of a primitive function */
  pln_domain *use;    /* where its users find it */
  pln_device *noted;  /* it is an annotation that leaves its users free: its
                       * device; else PLN_NO_DEVICE */
  pln_device *placed; /* what annotations above it say */
  pln_device *around; /* of a call: the same for its operands */
  uint8_t *flags;     /* PLN_DEVICE_* */
  uint8_t *scopes;    /* by scope: PLN_SCOPE_* */
} pln_planned_function;

enum {
  PLN_DEVICE_CONFLICT = 1, /* its users want it on several devices */
  PLN_DEVICE_OPERAND = 2,  /* it is used elsewhere than as the value of a let or
                            * the result of a function */
  PLN_DEVICE_LOWERED = 4   /* it is a tuple, the operands of one call_lowered;
                            * its domain is that of the PrimFunc */
};
/* Of a scope: it is inside of a primitive function; its value is a let. */
enum { PLN_SCOPE_PRIMITIVE = 1, PLN_SCOPE_LETS = 2 };

typedef struct pln_device_plan {
  pln_engine *engine;
  const pln_module *module;
  pln_compilation compilation;
  pln_domains domains;
  uint32_t n;
  pln_planned_function *functions;
  pln_domain *globals;     /* by function of the module; 0: a PrimFunc that no
                            * Relay code calls */
  pln_type *lowered_types; /* the same, of PrimFuncs: the type that Relay code
                            * gives them; else 0 */
} pln_device_plan;

/* The device that the operand has to be copied to for this call alone, because
 * its users contradict each other; 0: it is not copied. */
pln_device pln_plan_copy_for(const pln_planned_function *f, pln_ref call,
                             pln_ref operand);
/* The device of a value; the default one if nothing says it. */
pln_device pln_plan_device(const pln_device_plan *plan, pln_domain domain);
/* The domain of operand `index` of a call, as the call wants it. */
pln_domain pln_plan_operand(pln_device_plan *plan, pln_planned_function *f,
                            pln_ref call, uint32_t index);
/* The attributes of on_device. */
typedef struct pln_on_device {
  pln_device device;
  bool body, result; /* what it constrains */
} pln_on_device;
pln_status pln_read_on_device(pln_device_plan *plan, const pln_node *call,
                              pln_on_device *out) PLN_CHECKED;

/* capture_devices.c: the function with copies and annotations where devices
 * change, and with the devices of parameters and result; *out: the function
 * itself, retained, if it has them. */
pln_status pln_capture_devices(pln_device_plan *plan, pln_planned_function *f,
                               pln_graph **out) PLN_CHECKED;

#endif
