/* execute.c: the interpreter of loop programs: one loop over the instructions.
 *
 * Called by run.c. Nothing allocates but ALLOCATE and the first store to a
 * parameter; nothing recurses. Every access is checked against the memory that
 * it goes to; a fault ends the run and leaves its instruction in it. */

#include <math.h>

#include "eval/loop/number.h"
#include "eval/loop/program.h"

/* Loops over lanes; `k` is the lane. */
#define LANES for (uint32_t k = 0; k < in->lanes; k++)

static bool stop_at(pln_loop_run *run, pln_loop_fault fault) {
  run->fault = fault;
  return false;
}

static bool stop_with(pln_loop_run *run, pln_status status) {
  run->status = status;
  return stop_at(run, PLN_LOOP_FAULT_STATUS);
}

/* ------------------------------------------------------------------ memory */

static inline int64_t element_index(const pln_loop_cell *c,
                                    const pln_loop_instr *in, uint32_t k) {
  return in->c == PLN_LOOP_GATHER
             ? c[in->b + (int32_t)k].i
             : (int64_t)((uint64_t)c[in->b].i +
                         k * (uint64_t)(k ? c[in->c].i : 0));
}

/* The storage of a handle; null for one that no program made. */
static inline pln_loop_storage *storage_of(const pln_loop_run *run,
                                           int64_t handle) {
  uint64_t id = (uint64_t)handle >> PLN_LOOP_OFFSET_BITS;
  return &run->storages[id < run->program->n_storages ? id : 0];
}

/* The offset of an element in its storage, which must hold it whole. */
static inline bool find_element(pln_loop_run *run, int64_t handle,
                                int64_t index, size_t size, size_t *offset) {
  const pln_loop_storage *s = storage_of(run, handle);
  uint64_t at = (uint64_t)(handle & PLN_LOOP_OFFSET_MASK) +
                (uint64_t)index * (uint64_t)size;
  *offset = (size_t)at;
  if (at < s->bytes && s->bytes - at >= size)
    return true;
  run->value = index;
  run->bound = (int64_t)s->bytes;
  return stop_at(run, PLN_LOOP_FAULT_MEMORY);
}

static inline bool was_written(pln_loop_run *run, const pln_loop_storage *s,
                               size_t offset, size_t size) {
  if (!s->written)
    return true;
  for (size_t i = 0; i < size; i++)
    if (!s->written[offset + i])
      return stop_at(run, PLN_LOOP_FAULT_UNSET);
  return true;
}

/* The storage of a store, writable. */
static inline pln_loop_storage *store_to(pln_loop_run *run, int64_t handle) {
  pln_loop_storage *s = storage_of(run, handle);
  uint32_t id = (uint32_t)(s - run->storages);
  if (s->writable || s->bytes == 0)
    return s;
  pln_status status = pln_loop_make_writable(run, id);
  if (status == PLN_OK)
    return s;
  (void)stop_with(run, status);
  return NULL;
}

/* Where an element of any dtype lies: its byte, and its first bit there. */
static bool find_any(pln_loop_run *run, const pln_loop_instr *in, uint32_t k,
                     size_t *offset, uint32_t *shift) {
  const pln_loop_cell *c = run->cells;
  uint32_t bits = pln_dtype_bits((pln_dtype)in->aux);
  int64_t index = element_index(c, in, k);
  *shift = 0;
  if (bits >= 8)
    return find_element(run, c[in->a].i, index, bits / 8, offset);
  int64_t per_byte = 8 / bits;
  *shift = (uint32_t)(index & (per_byte - 1)) * bits;
  return find_element(run, c[in->a].i,
                      (index - (index & (per_byte - 1))) / per_byte, 1, offset);
}

static bool load_any(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  const pln_loop_storage *s = storage_of(run, c[in->a].i);
  uint32_t bits = pln_dtype_bits((pln_dtype)in->aux);
  size_t size = bits < 8 ? 1 : bits / 8, offset;
  LANES {
    uint64_t raw = 0;
    uint32_t shift;
    if (!find_any(run, in, k, &offset, &shift) ||
        !was_written(run, s, offset, size))
      return false;
    memcpy(&raw, s->data + offset, size);
    raw = raw >> shift & (~UINT64_C(0) >> (64 - bits));
    c[in->to + (int32_t)k].i = pln_loop_unpack((pln_dtype)in->aux, raw);
  }
  return true;
}

static bool store_any(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  pln_loop_storage *s = store_to(run, c[in->a].i);
  uint32_t bits = pln_dtype_bits((pln_dtype)in->aux);
  size_t size = bits < 8 ? 1 : bits / 8, offset;
  if (!s)
    return false;
  LANES {
    uint64_t raw = pln_loop_pack((pln_dtype)in->aux, c[in->to + (int32_t)k].i);
    uint32_t shift;
    if (!find_any(run, in, k, &offset, &shift))
      return false;
    if (bits < 8) {
      uint64_t mask = (UINT64_C(1) << bits) - 1;
      uint64_t old = (uint8_t)s->data[offset];
      raw = (old & ~(mask << shift)) | (raw & mask) << shift;
    }
    memcpy(s->data + offset, &raw, size);
    if (s->written)
      memset(s->written + offset, 1, size);
  }
  return true;
}

static bool allocate(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  uint64_t bits = (uint64_t)pln_dtype_bits((pln_dtype)in->aux) * in->lanes;
  uint64_t count = (uint64_t)c[in->a].i;
  run->value = c[in->a].i;
  if (c[in->a].i < 0 || count > (uint64_t)PLN_LOOP_OFFSET_MASK / (bits / 8 + 1))
    return stop_at(run, PLN_LOOP_FAULT_SIZE);
  pln_status status =
      pln_loop_allocate(run, (uint32_t)in->b, (size_t)((count * bits + 7) / 8));
  if (status != PLN_OK)
    return stop_with(run, status);
  c[in->to].i = (int64_t)in->b << PLN_LOOP_OFFSET_BITS;
  return true;
}

/* The product of sizes; a negative one counts as 0, an overflow as -1. */
static int64_t extent_product(int64_t x, int64_t y) {
  int64_t product;
  if (x < 0)
    return -1;
  return __builtin_mul_overflow(x, y < 0 ? 0 : y, &product) ? -1 : product;
}

static bool address(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  uint32_t bits = pln_dtype_bits((pln_dtype)in->aux);
  uint64_t index = (uint64_t)c[in->b].i * in->lanes;
  uint64_t bytes = bits < 8 ? index / (8 / bits) : index * (bits / 8);
  int64_t handle = c[in->a].i;
  c[in->to].i =
      (handle & ~PLN_LOOP_OFFSET_MASK) |
      (int64_t)(((uint64_t)handle + bytes) & (uint64_t)PLN_LOOP_OFFSET_MASK);
  return true;
}

/* ------------------------------------------------------------------ others */

static bool check_index(pln_loop_run *run, int64_t index, int64_t extent) {
  if ((uint64_t)index < (uint64_t)extent && extent > 0)
    return true;
  run->value = index;
  run->bound = extent;
  return stop_at(run, PLN_LOOP_FAULT_INDEX);
}

static bool check_lanes(pln_loop_run *run, const pln_loop_instr *in) {
  const pln_loop_cell *c = run->cells;
  LANES if (!check_index(run, c[in->b + (int32_t)k].i,
                         c[in->c].i)) return false;
  return true;
}

/* The offset of one more dimension: a * extent + index. */
static bool index_next(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  uint64_t base = (uint64_t)c[in->a].i * (uint64_t)c[in->c].i;
  if (!check_lanes(run, in))
    return false;
  LANES c[in->to + (int32_t)k].i =
      (int64_t)(base + (uint64_t)c[in->b + (int32_t)k].i);
  return true;
}

static void select_lanes(pln_loop_cell *c, const pln_loop_instr *in) {
  int32_t step = in->aux ? 1 : 0; /* 0: one condition for all lanes */
  LANES {
    int32_t lane = (int32_t)k;
    c[in->to + lane] =
        c[in->a + lane * step].i ? c[in->b + lane] : c[in->c + lane];
  }
}

static bool take_lane(pln_loop_run *run, const pln_loop_instr *in) {
  pln_loop_cell *c = run->cells;
  run->value = c[in->b].i;
  run->bound = in->lanes;
  if ((uint64_t)run->value >= in->lanes)
    return stop_at(run, PLN_LOOP_FAULT_LANE);
  c[in->to] = c[in->a + (int32_t)run->value];
  return true;
}

static void expand(pln_loop_cell *c, const pln_loop_instr *in) {
  LANES for (uint32_t j = 0; j < in->aux; j++)
      c[in->to + (int32_t)(k * in->aux + j)]
          .i = (int64_t)((uint64_t)c[in->b + (int32_t)k].i * in->aux + j);
}

static bool check_equal(pln_loop_run *run, const pln_loop_instr *in) {
  run->value = run->cells[in->a].i;
  run->bound = run->cells[in->b].i;
  return run->value == run->bound || stop_at(run, PLN_LOOP_FAULT_EQUAL);
}

static bool check_stride(pln_loop_run *run, const pln_loop_instr *in) {
  run->value = run->cells[in->a].i;
  run->bound = run->cells[in->b].i;
  return run->value == run->bound || run->cells[in->c].i <= 1 ||
         stop_at(run, PLN_LOOP_FAULT_STRIDE);
}

/* Calls a function of the host with the cells from `a` on. */
static bool call_host(pln_loop_run *run, const pln_loop_instr *in) {
  const pln_loop_program *p = run->program;
  const pln_loop_call *call = &p->calls[in->b];
  pln_loop_cell *c = run->cells;
  pln_loop_scalar args[PLN_LOOP_MAX_ARGS], result = {call->result, {0}};
  for (uint32_t i = 0; i < call->n; i++) {
    args[i].dtype = p->call_dtypes[call->first + i];
    const pln_loop_cell *cell = &c[in->a + (int32_t)i];
    if (args[i].dtype == PLN_FLOAT64)
      args[i].of.number = cell->d;
    else if (pln_loop_is_float(args[i].dtype))
      args[i].of.number = (double)cell->f;
    else
      args[i].of.integer = cell->i;
  }
  pln_status status = run->options->call(
      run->options->call_ud, pln_symbol_text(run->engine, call->name), call->n,
      args, &result);
  if (status != PLN_OK)
    return stop_with(run, status);
  if (call->result == PLN_FLOAT64)
    c[in->to].d = result.of.number;
  else if (pln_loop_is_float(call->result))
    c[in->to].f = (float)result.of.number;
  else
    c[in->to].i = pln_loop_wrap(call->result, (uint64_t)result.of.integer);
  return true;
}

/* Counts iterations and polls for a stop, now and then. */
static bool count_steps(pln_loop_run *run) {
  run->n_steps += PLN_LOOP_POLL;
  uint64_t most = run->engine->most_steps;
  if (most && run->n_steps > most)
    return stop_at(run, PLN_LOOP_FAULT_STEPS);
  pln_status status = pln_poll(run->engine);
  return status == PLN_OK || stop_with(run, status);
}

static inline void set_lane(pln_loop_cell *cell, pln_loop_cell value) {
  *cell = value;
}

/* Where an instruction fails, the run ends. */
#define MUST(condition) \
  do {                  \
    if (!(condition))   \
      goto stopped;     \
  } while (0)

/* Cases of pln_loop_execute, by the rows of opcodes.def. */
#define UNARY(name, result, operand, expr)                            \
  case PLN_LOOP_##name:                                               \
    LANES {                                                           \
      const __typeof__(c->operand) x = c[in->a + (int32_t)k].operand; \
      c[in->to + (int32_t)k].result = (expr);                         \
    }                                                                 \
    break;
#define BINARY(name, result, operand, expr)                           \
  case PLN_LOOP_##name:                                               \
    LANES {                                                           \
      const __typeof__(c->operand) x = c[in->a + (int32_t)k].operand; \
      const __typeof__(c->operand) y = c[in->b + (int32_t)k].operand; \
      c[in->to + (int32_t)k].result = (expr);                         \
    }                                                                 \
    break;
#define DIVIDE(name, expr)                           \
  case PLN_LOOP_##name:                              \
    LANES {                                          \
      const int64_t x = c[in->a + (int32_t)k].i;     \
      const int64_t y = c[in->b + (int32_t)k].i;     \
      if (y == 0) {                                  \
        (void)stop_at(run, PLN_LOOP_FAULT_DIVISION); \
        goto stopped;                                \
      }                                              \
      c[in->to + (int32_t)k].i = (expr);             \
    }                                                \
    break;
#define LOAD(name, type, field)                                   \
  case PLN_LOOP_##name: {                                         \
    const pln_loop_storage *s = storage_of(run, c[in->a].i);      \
    LANES {                                                       \
      size_t at;                                                  \
      type value;                                                 \
      MUST(find_element(run, c[in->a].i, element_index(c, in, k), \
                        sizeof value, &at));                      \
      MUST(was_written(run, s, at, sizeof value));                \
      memcpy(&value, s->data + at, sizeof value);                 \
      c[in->to + (int32_t)k].field = value;                       \
    }                                                             \
    break;                                                        \
  }
#define STORE(name, type, field)                                  \
  case PLN_LOOP_##name: {                                         \
    pln_loop_storage *s = store_to(run, c[in->a].i);              \
    MUST(s);                                                      \
    LANES {                                                       \
      size_t at;                                                  \
      const type value = (type)c[in->to + (int32_t)k].field;      \
      MUST(find_element(run, c[in->a].i, element_index(c, in, k), \
                        sizeof value, &at));                      \
      memcpy(s->data + at, &value, sizeof value);                 \
      if (s->written)                                             \
        memset(s->written + at, 1, sizeof value);                 \
    }                                                             \
    break;                                                        \
  }

void pln_loop_execute(pln_loop_run *run) {
  pln_loop_cell *const c = run->cells;
  const pln_loop_instr *const code = run->program->code;
  const pln_loop_instr *in = code;
  uint32_t left = PLN_LOOP_POLL; /* iterations until the next poll */
  for (;; in++) {
    switch ((pln_loop_op)in->op) {
#define OTHER(name)
#include "eval/loop/opcodes.def"
    case PLN_LOOP_LOAD_ANY: MUST(load_any(run, in)); break;
    case PLN_LOOP_STORE_ANY: MUST(store_any(run, in)); break;
    case PLN_LOOP_FMA_F32:
      LANES c[in->to + (int32_t)k].f =
          fmaf(c[in->a + (int32_t)k].f, c[in->b + (int32_t)k].f,
               c[in->c + (int32_t)k].f);
      break;
    case PLN_LOOP_FMA_F64:
      LANES c[in->to + (int32_t)k].d =
          fma(c[in->a + (int32_t)k].d, c[in->b + (int32_t)k].d,
              c[in->c + (int32_t)k].d);
      break;
    case PLN_LOOP_Q_MULTIPLY_SHIFT: /* a: x, b: y, c: q and s, lane by lane */
      LANES c[in->to + (int32_t)k].i = pln_loop_q_multiply_shift(
          c[in->a + (int32_t)k].i, c[in->b + (int32_t)k].i,
          c[in->c + (int32_t)k].i, c[in->c + (int32_t)(in->lanes + k)].i);
      break;
    case PLN_LOOP_SELECT: select_lanes(c, in); break;
    case PLN_LOOP_BROADCAST:
      LANES set_lane(&c[in->to + (int32_t)k], c[in->a]);
      break;
    case PLN_LOOP_RAMP:
      LANES c[in->to + (int32_t)k].i =
          (int64_t)((uint64_t)c[in->a].i + k * (uint64_t)c[in->b].i);
      break;
    case PLN_LOOP_LANE: MUST(take_lane(run, in)); break;
    case PLN_LOOP_EXPAND: expand(c, in); break;
    case PLN_LOOP_INDEX:
      MUST(check_index(run, c[in->b].i, c[in->c].i));
      c[in->to].i = (int64_t)((uint64_t)c[in->a].i * (uint64_t)c[in->c].i +
                              (uint64_t)c[in->b].i);
      break;
    case PLN_LOOP_INDEX_NEXT: MUST(index_next(run, in)); break;
    case PLN_LOOP_CHECK_INDEX: MUST(check_lanes(run, in)); break;
    case PLN_LOOP_MULTIPLY_ADD: /* a + b * c; a and c are scalars */
      LANES c[in->to + (int32_t)k].i =
          (int64_t)((uint64_t)c[in->a].i +
                    (uint64_t)c[in->b + (int32_t)k].i * (uint64_t)c[in->c].i);
      break;
    case PLN_LOOP_ADDRESS: MUST(address(run, in)); break;
    case PLN_LOOP_EXTENT:
      c[in->to].i = extent_product(c[in->a].i, c[in->b].i);
      break;
    case PLN_LOOP_ALLOCATE: MUST(allocate(run, in)); break;
    case PLN_LOOP_CHECK_EQUAL: MUST(check_equal(run, in)); break;
    case PLN_LOOP_CHECK_STRIDE: MUST(check_stride(run, in)); break;
    case PLN_LOOP_CALL: MUST(call_host(run, in)); break;
    case PLN_LOOP_JUMP: in = code + in->b - 1; break;
    case PLN_LOOP_JUMP_IF_FALSE:
      if (!c[in->a].i)
        in = code + in->b - 1;
      break;
    case PLN_LOOP_JUMP_IF_TRUE:
      if (c[in->a].i)
        in = code + in->b - 1;
      break;
    case PLN_LOOP_LOOP_BEGIN: /* to: iterations left; a: their number */
      c[in->to].i = c[in->a].i;
      if (c[in->a].i <= 0)
        in = code + in->b - 1;
      break;
    case PLN_LOOP_LOOP_NEXT: /* to: the index; a: iterations left */
      if (--left == 0) {
        left = PLN_LOOP_POLL;
        MUST(count_steps(run));
      }
      if (--c[in->a].i > 0) {
        c[in->to].i = pln_loop_next(in->aux, c[in->to].i);
        in = code + in->b - 1;
      }
      break;
    case PLN_LOOP_LOOP_AGAIN:
      if (--left == 0) {
        left = PLN_LOOP_POLL;
        MUST(count_steps(run));
      }
      in = code + in->b - 1;
      break;
    case PLN_LOOP_FAIL:
      (void)stop_at(run, (pln_loop_fault)in->aux);
      goto stopped;
    case PLN_LOOP_END:
    case PLN_LOOP_N_OPS: return;
    }
  }
stopped:
  run->at = (uint32_t)(in - code);
}
