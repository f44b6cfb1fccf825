/* test_analyzer.c: the analyzer of integer expressions through its public
 * header: out-of-memory sweeps over its functions. */

#include "oom.h"

#define TRY(call)                \
  do {                           \
    pln_status status_ = (call); \
    if (status_ != PLN_OK)       \
      return status_;            \
  } while (0)

typedef struct program {
  pln_builder *b;
  pln_analyzer *a;
  pln_type int32;
  pln_term x, y, sum, index, less, equation;
  pln_term quotient, rest, shifted, square, zero, eight, sixteen;
} program;

static pln_status build_var(pln_engine *e, program *p, const char *name,
                            pln_ref *out) {
  pln_symbol symbol;
  TRY(pln_symbol_intern(e, pln_text(name), &symbol));
  return pln_build_var(p->b, symbol, p->int32, 0, out);
}

/* (x * 8 + y) // 8, (x * 8 + y + 3) // 8, x * x, 0 and 16. */
static pln_status build_more(program *p, pln_ref x, pln_ref sum,
                             pln_ref eight) {
  pln_ref quotient, shifted, square, zero, three, sixteen;
  TRY(pln_build_int_imm(p->b, p->int32, 0, &zero));
  TRY(pln_build_int_imm(p->b, p->int32, 3, &three));
  TRY(pln_build_int_imm(p->b, p->int32, 16, &sixteen));
  TRY(pln_build_binary(p->b, PLN_PRIM_FLOORDIV, sum, eight, &quotient));
  TRY(pln_build_binary(p->b, PLN_PRIM_ADD, sum, three, &shifted));
  TRY(pln_build_binary(p->b, PLN_PRIM_FLOORDIV, shifted, eight, &shifted));
  TRY(pln_build_binary(p->b, PLN_PRIM_MUL, x, x, &square));
  TRY(pln_analyzer_import_built(p->a, p->b, quotient, &p->quotient));
  TRY(pln_analyzer_import_built(p->a, p->b, shifted, &p->shifted));
  TRY(pln_analyzer_import_built(p->a, p->b, square, &p->square));
  TRY(pln_analyzer_import_built(p->a, p->b, zero, &p->zero));
  return pln_analyzer_import_built(p->a, p->b, sixteen, &p->sixteen);
}

/* (x * 8 + y) // 8 * 8 + (x * 8 + y) % 8 and x * 8 + y < 128 */
static pln_status build(pln_engine *e, program *p) {
  pln_ref x, y, eight, many, sum, quotient, rest, index, less, equation;
  TRY(pln_type_prim(e, PLN_INT32, 1, &p->int32));
  TRY(build_var(e, p, "x", &x));
  TRY(build_var(e, p, "y", &y));
  TRY(pln_build_int_imm(p->b, p->int32, 8, &eight));
  TRY(pln_build_int_imm(p->b, p->int32, 128, &many));
  TRY(pln_build_binary(p->b, PLN_PRIM_MUL, x, eight, &sum));
  TRY(pln_build_binary(p->b, PLN_PRIM_ADD, sum, y, &sum));
  TRY(pln_build_binary(p->b, PLN_PRIM_FLOORDIV, sum, eight, &quotient));
  TRY(pln_build_binary(p->b, PLN_PRIM_MUL, quotient, eight, &quotient));
  TRY(pln_build_binary(p->b, PLN_PRIM_FLOORMOD, sum, eight, &rest));
  TRY(pln_build_binary(p->b, PLN_PRIM_ADD, quotient, rest, &index));
  TRY(pln_build_binary(p->b, PLN_PRIM_LT, sum, many, &less));
  TRY(pln_build_binary(p->b, PLN_PRIM_EQ, sum, many, &equation));
  TRY(pln_analyzer_import_built(p->a, p->b, x, &p->x));
  TRY(pln_analyzer_import_built(p->a, p->b, y, &p->y));
  TRY(pln_analyzer_import_built(p->a, p->b, sum, &p->sum));
  TRY(pln_analyzer_import_built(p->a, p->b, index, &p->index));
  TRY(pln_analyzer_import_built(p->a, p->b, less, &p->less));
  TRY(pln_analyzer_import_built(p->a, p->b, rest, &p->rest));
  TRY(pln_analyzer_import_built(p->a, p->b, eight, &p->eight));
  TRY(pln_analyzer_import_built(p->a, p->b, equation, &p->equation));
  return build_more(p, x, sum, eight);
}

static pln_status simplify(program *p) {
  pln_term out;
  pln_ref ref;
  int64_t low, high;
  uint32_t mark;
  bool proved;
  TRY(pln_analyzer_update_bound(p->a, p->y, 0, 7, false));
  TRY(pln_analyzer_const_int_bound(p->a, p->index, &low, &high));
  TRY(pln_analyzer_modular_set(p->a, p->index, &low, &high));
  TRY(pln_analyzer_rewrite_simplify(p->a, p->index, &out));
  TRY(pln_analyzer_canonical_simplify(p->a, p->index, &out));
  CHECK(out == p->sum);
  TRY(pln_analyzer_export(p->a, p->b, out, &ref));
  TRY(pln_analyzer_enter(p->a, p->less, &mark));
  pln_status status = pln_analyzer_can_prove(p->a, p->less, 1, &proved);
  pln_analyzer_leave(p->a, mark);
  TRY(status);
  CHECK(proved);
  return PLN_OK;
}

static pln_status deduce(program *p) {
  pln_term low, high, out[3];
  pln_linear_solution solved;
  bool found;
  pln_term_domain domain = {p->y, p->x, p->sum};
  pln_term vars[] = {p->x, p->y};
  TRY(pln_analyzer_int_set(p->a, p->sum, 1, &domain, true, &low, &high));
  TRY(pln_analyzer_deduce_bound(p->a, p->x, p->less, 0, NULL, 0, NULL, &low,
                                &high));
  TRY(pln_analyzer_linear_equation(p->a, p->sum, 2, vars, out, &found));
  CHECK(found);
  TRY(pln_analyzer_narrow_predicate(p->a, p->less, 1, &domain, &low));
  TRY(pln_analyzer_solve_linear_equations(p->a, 1, &p->equation, 2, vars, 0,
                                          NULL, &solved));
  CHECK(solved.solvable);
  pln_linear_solution_free(p->a, &solved);
  return PLN_OK;
}

static pln_status use_map(program *p, pln_iter_map *m,
                          const pln_term_range *ranges) {
  pln_term indices[] = {0, 0}, outputs[] = {p->x, p->y}, vars[8], values[8];
  pln_term inner[] = {p->y}, padded = 0;
  uint32_t sums[2], marks[6], n;
  bool found;
  indices[0] = p->quotient;
  indices[1] = p->rest;
  TRY(pln_iter_map_detect(m, 2, indices, 2, ranges, p->less, PLN_ITER_BIJECTIVE,
                          true, sums, &found));
  CHECK(found && pln_iter_map_error_count(m) == 0);
  TRY(pln_iter_map_inverse(m, 2, sums, outputs, 8, vars, values, &n));
  CHECK(n == 2);
  TRY(pln_iter_map_divide(m, 2, sums, 1, inner, marks, &found));
  CHECK(found);
  TRY(pln_iter_map_simplify(m, 1, &p->shifted, 2, ranges, 0,
                            PLN_ITER_SURJECTIVE, true, &padded));
  TRY(pln_iter_map_normalize(m, p->sum, 2, ranges, sums));
  TRY(pln_iter_map_expr(m, sums[0], &padded));
  TRY(pln_iter_map_detect(m, 1, &p->square, 2, ranges, 0, PLN_ITER_SURJECTIVE,
                          true, sums, &found));
  CHECK(!found && pln_iter_map_error_at(m, 0).x == p->square);
  return PLN_OK;
}

static pln_status map_iterators(program *p) {
  pln_iter_map *m;
  pln_term_range ranges[] = {{p->x, p->zero, p->sixteen},
                             {p->y, p->zero, p->eight}};
  TRY(pln_iter_map_new(p->a, &m));
  pln_status status = use_map(p, m, ranges);
  pln_iter_map_free(m);
  return status;
}

static pln_status bound(program *p) {
  pln_linear_bounds bounds;
  pln_linear_ranges solved;
  pln_term vars[] = {p->x, p->y}, out[4], ends[] = {p->zero, p->x, p->y, p->y};
  uint32_t counts[4], n;
  bool found;
  pln_term_range ranges[] = {{p->x, p->zero, p->sixteen},
                             {p->y, p->zero, p->eight}};
  TRY(pln_analyzer_solve_linear_inequalities(p->a, 1, &p->less, 2, vars, 2,
                                             ranges, &bounds));
  CHECK(bounds.n_groups == 2);
  pln_linear_bounds_free(p->a, &bounds);
  TRY(pln_analyzer_solve_inequalities_to_range(p->a, 1, &p->less, 2, vars, 2,
                                               ranges, true, &solved));
  CHECK(solved.solvable);
  pln_linear_ranges_free(p->a, &solved);
  pln_term_range region = {p->x, p->sum, p->eight};
  TRY(pln_analyzer_estimate_region(p->a, 1, &region, 2, ranges, p->less,
                                   PLN_REGION_UPPER, out, &found));
  CHECK(found);
  TRY(pln_analyzer_combine_sets(p->a, PLN_SET_UNION, 2, ends, &out[0],
                                &out[1]));
  TRY(pln_analyzer_common_subexprs(p->a, p->index, 2, 4, out, counts, &n));
  CHECK(n > 0 && counts[0] == 2);
  return PLN_OK;
}

static pln_status work(pln_engine *e, void *ud) {
  program p = {0};
  (void)ud;
  pln_status status = pln_builder_new(e, &p.b);
  if (status == PLN_OK)
    status = pln_analyzer_new(e, &p.a);
  if (status == PLN_OK)
    status = build(e, &p);
  if (status == PLN_OK)
    status = simplify(&p);
  if (status == PLN_OK)
    status = deduce(&p);
  if (status == PLN_OK)
    status = map_iterators(&p);
  if (status == PLN_OK)
    status = bound(&p);
  pln_analyzer_free(p.a);
  pln_builder_free(p.b);
  return status;
}

static void survives_oom(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
