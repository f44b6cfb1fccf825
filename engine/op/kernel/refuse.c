/* refuse.c: reports why a call is not computed. Called by all kernels.
 *
 * In a run the message ends with the types of the operands and the elements of
 * small ones. Folding drops such messages, so they are kept short there. */

#include "op/kernel/kernel.h"

#include <stdio.h>

enum { MAX_OPERANDS = 4, MAX_ELEMENTS = 8, MAX_DIMS = 8 };

/* The text being written; it is truncated if too long. */
typedef struct message_line {
  char text[400];
  size_t size;
} message_line;

static void PLN_PRINTF(2, 3) say(message_line *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int n =
      vsnprintf(to->text + to->size, sizeof to->text - to->size, format, list);
  va_end(list);
  size_t rest = sizeof to->text - to->size - 1;
  to->size += n < 0 ? 0 : (size_t)n < rest ? (size_t)n : rest;
}

/* Appends " = 3" or " = [2, -1]" for a few integers. */
static void say_elements(message_line *to, const pln_tensor *t) {
  int64_t element;
  if (t->count == 0 || t->count > MAX_ELEMENTS || t->rank > 1 ||
      !pln_tensor_int(t, 0, &element))
    return;
  say(to, t->rank ? " = [" : " = ");
  for (size_t i = 0; i < t->count && pln_tensor_int(t, i, &element); i++)
    say(to, "%s%lld", i ? ", " : "", (long long)element);
  say(to, t->rank ? "]" : "");
}

static void say_operand(message_line *to, const pln_tensor *t) {
  if (!t) {
    say(to, "nothing");
    return;
  }
  say(to, "Tensor[(");
  for (uint32_t i = 0; i < t->rank && i < MAX_DIMS; i++)
    say(to, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
  say(to, "%s), %s]", t->rank > MAX_DIMS ? ", ..." : "",
      pln_dtype_name((pln_dtype)t->dtype));
  say_elements(to, t);
}

/* Appends " (given Tensor[(2), float32] and Tensor[(), int64] = 7)". */
static void say_operands(message_line *to, const pln_kernel_call *call) {
  if (call->folding || !call->args || call->n_args == 0)
    return;
  say(to, " (given ");
  for (uint32_t i = 0; i < call->n_args && i < MAX_OPERANDS; i++) {
    bool last = i > 0 && i + 1 == call->n_args;
    say(to, "%s", i == 0 ? "" : last ? " and " : ", ");
    say_operand(to, call->args[i]);
  }
  say(to, "%s", call->n_args > MAX_OPERANDS ? ", ...)" : ")");
}

static pln_status report_refused_call(const pln_kernel_call *call,
                                      message_line *what) {
  say_operands(what, call);
  return pln_diag_error(call->engine, PLN_ERR_UNSUPPORTED, NULL, "'%s': %s",
                        pln_op_row(call->engine, call->op)->name, what->text);
}

pln_status pln_kernel_refuse(const pln_kernel_call *call, const char *format,
                             ...) {
  message_line what = {.size = 0};
  va_list list;
  va_start(list, format);
  int n = vsnprintf(what.text, sizeof what.text / 2, format, list);
  va_end(list);
  what.size = n < 0 ? 0 : strlen(what.text);
  return report_refused_call(call, &what);
}

/* What is undefined in operators on integers. */
static const char *undefined(pln_op op) {
  switch (op) {
  case PLN_OP_DIV:
  case PLN_OP_MOD: return "division by zero, or of the least integer by -1";
  case PLN_OP_POW: return "an integer raised to a negative power";
  case PLN_OP_BIT_SHIFT: return "a shift by the number of bits or more";
  case PLN_OP_ARG_MAX:
  case PLN_OP_ARG_MIN: return "there are no elements";
  default: return "an element has no defined result";
  }
}

pln_status pln_kernel_undefined(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "%s", undefined(call->op));
}

pln_status pln_kernel_index_outside(const pln_kernel_call *call,
                                    const pln_tensor *indices, size_t from,
                                    int64_t extent) {
  int64_t index = 0;
  while (from < indices->count && pln_tensor_int(indices, from, &index) &&
         index >= -extent && index < extent)
    from++;
  return pln_kernel_refuse(call, "index %lld is outside of [-%lld, %lld)",
                           (long long)index, (long long)extent,
                           (long long)extent);
}

pln_status pln_kernel_no_dtype(const pln_kernel_call *call, pln_dtype dtype) {
  return pln_diag_error(
      call->engine, PLN_ERR_UNSUPPORTED, NULL, "'%s' is not implemented for %s",
      pln_op_row(call->engine, call->op)->name, pln_dtype_name(dtype));
}
