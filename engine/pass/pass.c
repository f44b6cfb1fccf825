/* pass.c: makes, shares and reads pass objects.
 *
 * Called by the registry, by the executor and by users. Invariants: a pass
 * object never changes; all passes made from a definition share it. The `ud` of
 * a specification is owned by the callee even when making the pass fails. */

#include "ir/analysis/features.h"
#include "pass/cache/cache.h"

/* ------------------------------------------------------------- definitions */

static void release_def(pln_engine *engine, pln_pass_def *def) {
  if (!def || --def->refs)
    return;
  pln_cache_forget(engine, def);
  /* Recursion is bounded: elements nest at most PLN_PASS_MAX_DEPTH deep. */
  for (uint32_t i = 0; i < def->n_elements; i++)
    pln_pass_release(def->elements[i]);
  if (def->release)
    def->release(def->ud);
  pln_mem_free(engine, def->required, def->n_required * sizeof *def->required);
  pln_options_free(engine, def->n_options, def->options);
  pln_mem_free(engine, def->options, def->n_options * sizeof *def->options);
  pln_mem_free(engine, def->elements, def->n_elements * sizeof *def->elements);
  pln_mem_free(engine, def, sizeof *def);
}

static pln_status copy_text(pln_engine *engine, const char *text,
                            const char **out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, pln_text(text), &symbol));
  *out = pln_symbol_text(engine, symbol).data;
  return PLN_OK;
}

static pln_status copy_required(pln_engine *engine, pln_pass_def *def,
                                uint32_t n, const char *const *names) {
  if (!n)
    return PLN_OK;
  def->required = pln_mem_zeroed(engine, n * sizeof *def->required);
  if (!def->required)
    return pln_nomem(engine);
  def->n_required = n;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_symbol_intern(engine, pln_text(names[i]), &def->required[i]));
  return PLN_OK;
}

static pln_status copy_options(pln_engine *engine, pln_pass_def *def,
                               uint32_t n, const pln_option *rows) {
  if (!n)
    return PLN_OK;
  def->options = pln_mem_zeroed(engine, n * sizeof *def->options);
  if (!def->options)
    return pln_nomem(engine);
  def->n_options = n;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_option_copy(engine, &rows[i], &def->options[i]));
    if (pln_option_find(rows, i, pln_text(rows[i].name)))
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "option '%s' is listed twice", rows[i].name);
  }
  return pln_option_defaults(engine, def->options, n, &def->defaults);
}

static pln_status read_features(pln_engine *engine, pln_pass_def *def,
                                const pln_pass_spec *spec) {
  uint32_t handled = 0, bit;
  if (!spec->handles)
    return PLN_OK;
  for (uint32_t i = 0; i < spec->n_handles; i++) {
    PLN_TRY(pln_feature_find(engine, spec->handles[i], &bit));
    handled |= bit;
  }
  def->unhandled = PLN_ALL_FEATURES & ~handled;
  def->skips_unhandled = spec->skips_unhandled;
  return PLN_OK;
}

static pln_status fill_def(pln_engine *engine, pln_pass_def *def,
                           const pln_pass_spec *spec) {
  PLN_TRY(copy_text(engine, spec->doc, &def->doc));
  if (spec->source)
    PLN_TRY(copy_text(engine, spec->source, &def->source));
  if (spec->identity)
    PLN_TRY(
        pln_symbol_intern(engine, pln_text(spec->identity), &def->identity));
  PLN_TRY(read_features(engine, def, spec));
  PLN_TRY(copy_required(engine, def, spec->n_required, spec->required));
  return copy_options(engine, def, spec->n_options, spec->options);
}

static pln_status check_spec(pln_engine *engine, const pln_pass_spec *spec) {
  if (!spec->name || !*spec->name)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "a pass needs a name");
  if (spec->kind >= PLN_PASS_SEQUENTIAL || !spec->run)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "pass '%s' needs a body and a kind: module, function "
                          "or prim_func",
                          spec->name);
  return PLN_OK;
}

/* Makes a definition with one reference. The caller still owns spec->ud. */
static pln_status new_def(pln_engine *engine, const pln_pass_spec *spec,
                          pln_pass_def **out) {
  pln_pass_def *def = pln_mem_zeroed(engine, sizeof *def);
  if (!def)
    return pln_nomem(engine);
  def->refs = 1;
  def->kind = spec->kind;
  def->opt_level = spec->opt_level;
  def->traceable = spec->traceable;
  def->parallel = spec->parallel && spec->kind != PLN_PASS_MODULE;
  def->light = spec->light;
  def->cloner = spec->cloner;
  def->cacheable = spec->cacheable;
  def->changes_spans = spec->changes_spans;
  pln_status status = fill_def(engine, def, spec);
  if (status != PLN_OK) {
    release_def(engine, def);
    return status;
  }
  def->run = spec->run;
  def->ud = spec->ud;
  def->release = spec->release;
  *out = def;
  return PLN_OK;
}

/* ------------------------------------------------------------------ objects */

pln_status pln_pass_of(pln_engine *engine, pln_symbol name, pln_pass_def *def,
                       pln_attrs options, pln_pass **out) {
  PLN_TRY(pln_idmap_set(engine->passes->seen, name, 1));
  pln_pass *pass = pln_mem_new(engine, sizeof *pass);
  if (!pass)
    return pln_nomem(engine);
  *pass = (pln_pass){.engine = engine,
                     .refs = 1,
                     .name = name,
                     .def = def,
                     .options = options};
  def->refs++;
  *out = pass;
  return PLN_OK;
}

pln_status pln_pass_like(pln_engine *engine, pln_symbol name,
                         const pln_pass *pass, pln_attrs options,
                         pln_pass **out) {
  PLN_TRY(pln_pass_of(engine, name, pass->def, options, out));
  (*out)->predicates = pln_predicates_retain(pass->predicates);
  return PLN_OK;
}

/* Makes a pass that is the only user of `def`; takes ownership of `def`. */
static pln_status wrap_def(pln_engine *engine, const char *name,
                           pln_pass_def *def, pln_pass **out) {
  pln_symbol symbol;
  pln_status status = pln_symbol_intern(engine, pln_text(name), &symbol);
  if (status == PLN_OK)
    status = pln_pass_of(engine, symbol, def, 0, out);
  release_def(engine, def);
  return status;
}

pln_status pln_pass_new(pln_engine *engine, const pln_pass_spec *spec,
                        pln_pass **out) {
  pln_pass_def *def = NULL;
  pln_status status = check_spec(engine, spec);
  if (status == PLN_OK)
    status = new_def(engine, spec, &def);
  if (status == PLN_OK)
    return wrap_def(engine, spec->name, def, out);
  if (spec->release)
    spec->release(spec->ud);
  return status;
}

/* True if the attributes, options of a pass or a config, name a log. */
static bool has_log(const pln_engine *engine, pln_attrs attrs,
                    const char *name) {
  const pln_attr *log = attrs ? pln_attrs_find(engine, attrs, name) : NULL;
  return log && log->kind == PLN_ATTR_STRING && log->v.s.size > 0;
}

bool pln_pass_writes_log(const pln_pass *pass, const pln_context *context) {
  return pass->def->logs || has_log(pass->engine, pass->options, "log") ||
         has_log(pass->engine, context->config, "FoldConstant.log");
}

static pln_status copy_elements(pln_engine *engine, pln_pass_def *def,
                                uint32_t n, pln_pass *const *passes) {
  if (!n)
    return PLN_OK;
  def->elements = pln_mem_zeroed(engine, n * sizeof *def->elements);
  if (!def->elements)
    return pln_nomem(engine);
  def->n_elements = n;
  def->parallel = def->light = true;
  for (uint32_t i = 0; i < n; i++) {
    def->elements[i] = pln_pass_retain(passes[i]);
    def->parallel &=
        pln_pass_is_parallel(passes[i]) && !passes[i]->def->n_required;
    def->light &= passes[i]->def->light;
    def->logs |=
        passes[i]->def->logs || has_log(engine, passes[i]->options, "log");
    if (passes[i]->def->depth >= def->depth)
      def->depth = passes[i]->def->depth + 1;
  }
  return PLN_OK;
}

static pln_status fill_sequential(pln_engine *engine, pln_pass_def *def,
                                  uint32_t n_required,
                                  const char *const *required, uint32_t n,
                                  pln_pass *const *passes) {
  PLN_TRY(copy_text(engine, "", &def->doc));
  PLN_TRY(copy_required(engine, def, n_required, required));
  PLN_TRY(copy_elements(engine, def, n, passes));
  if (def->depth > PLN_PASS_MAX_DEPTH)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "sequentials are nested more than %d deep",
                          PLN_PASS_MAX_DEPTH);
  return PLN_OK;
}

pln_status pln_sequential_new(pln_engine *engine, const char *name,
                              int opt_level, uint32_t n_required,
                              const char *const *required, uint32_t n,
                              pln_pass *const *passes, pln_pass **out) {
  pln_pass_def *def = pln_mem_zeroed(engine, sizeof *def);
  if (!def)
    return pln_nomem(engine);
  def->refs = 1;
  def->kind = PLN_PASS_SEQUENTIAL;
  def->form = PLN_COMBINATOR_SEQUENTIAL;
  def->n_body = n;
  def->opt_level = opt_level;
  def->depth = 1;
  pln_status status =
      fill_sequential(engine, def, n_required, required, n, passes);
  if (status == PLN_OK)
    return wrap_def(engine, name && *name ? name : "sequential", def, out);
  release_def(engine, def);
  return status;
}

/* --------------------------------------------------------------- combinators
 */

static const char *const form_names[] = {
    [PLN_COMBINATOR_NONE] = "",
    [PLN_COMBINATOR_SEQUENTIAL] = "sequential",
    [PLN_COMBINATOR_FIXPOINT] = "fixpoint",
    [PLN_COMBINATOR_TRY] = "try",
    [PLN_COMBINATOR_IF_CHANGED] = "if changed",
    [PLN_COMBINATOR_PER_FUNCTION] = "functions"};

/* Returns a module pass among the elements, or NULL. One level is enough: a
 * nested functions{..} was checked when it was made, and nesting is at most
 * PLN_PASS_MAX_DEPTH. */
static const pln_pass *module_pass_in(const pln_pass *pass) {
  if (!pln_pass_is_sequential(pass))
    return pass->def->kind == PLN_PASS_MODULE ? pass : NULL;
  for (uint32_t i = 0; i < pass->def->n_elements; i++) {
    const pln_pass *found = module_pass_in(pass->def->elements[i]);
    if (found)
      return found;
  }
  return NULL;
}

static pln_status check_form(pln_engine *engine, pln_combinator form,
                             uint32_t iterations, uint32_t n,
                             pln_pass *const *passes) {
  if (form == PLN_COMBINATOR_NONE || form > PLN_COMBINATOR_PER_FUNCTION)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no pass made of passes has form %d", (int)form);
  if (form == PLN_COMBINATOR_FIXPOINT &&
      (iterations < 1 || iterations > PLN_FIXPOINT_MAX))
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "'fixpoint' takes a count from 1 to %d",
                          PLN_FIXPOINT_MAX);
  for (uint32_t i = 0; form == PLN_COMBINATOR_PER_FUNCTION && i < n; i++) {
    const pln_pass *found = module_pass_in(passes[i]);
    if (found)
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "pass '%s' is a module pass; functions{...} takes "
                            "passes over functions",
                            pln_pass_name(found));
  }
  return PLN_OK;
}

pln_status pln_combinator_new(pln_engine *engine, pln_combinator form,
                              uint32_t iterations, uint32_t n_otherwise,
                              uint32_t n, pln_pass *const *passes,
                              pln_pass **out) {
  PLN_TRY(check_form(engine, form, iterations, n, passes));
  PLN_TRY(
      pln_sequential_new(engine, form_names[form], 0, 0, NULL, n, passes, out));
  pln_pass_def *def = (*out)->def;
  def->form = form;
  def->iterations = form == PLN_COMBINATOR_FIXPOINT ? iterations : 0;
  def->n_body = n - (n_otherwise < n ? n_otherwise : n);
  return PLN_OK;
}

pln_pass *pln_pass_retain(const pln_pass *pass) {
  pln_pass *mine = (pln_pass *)pass;
  mine->refs++;
  return mine;
}

void pln_pass_release(pln_pass *pass) {
  if (!pass || --pass->refs)
    return;
  release_def(pass->engine, pass->def);
  pln_predicates_release(pass->engine, pass->predicates);
  pln_mem_free(pass->engine, pass, sizeof *pass);
}

/* ------------------------------------------------------------------ reading */

const char *pln_pass_name(const pln_pass *pass) {
  return pln_symbol_text(pass->engine, pass->name).data;
}

const char *pln_pass_doc(const pln_pass *pass) {
  return pass->def->doc;
}

pln_pass_kind pln_pass_get_kind(const pln_pass *pass) {
  return (pln_pass_kind)pass->def->kind;
}

pln_combinator pln_pass_get_combinator(const pln_pass *pass) {
  return (pln_combinator)pass->def->form;
}

uint32_t pln_pass_max_iterations(const pln_pass *pass) {
  return pass->def->iterations;
}

uint32_t pln_pass_n_try(const pln_pass *pass) {
  return pass->def->n_body;
}

int pln_pass_opt_level(const pln_pass *pass) {
  return pass->def->opt_level;
}

const char *pln_pass_source(const pln_pass *pass) {
  return pass->def->source;
}

bool pln_pass_cacheable(const pln_pass *pass) {
  return pass->def->cacheable && !pass->predicates;
}

uint32_t pln_pass_unhandled(const pln_pass *pass) {
  return pass->def->unhandled;
}
bool pln_pass_skips_unhandled(const pln_pass *pass) {
  return pass->def->skips_unhandled;
}
bool pln_pass_changes_spans(const pln_pass *pass) {
  return pass->def->changes_spans;
}

bool pln_pass_traceable(const pln_pass *pass) {
  return pass->def->traceable;
}

bool pln_pass_parallel(const pln_pass *pass) {
  return pln_pass_is_parallel(pass);
}

uint32_t pln_pass_n_required(const pln_pass *pass) {
  return pass->def->n_required;
}

const char *pln_pass_required_at(const pln_pass *pass, uint32_t index) {
  if (index >= pass->def->n_required)
    return NULL;
  return pln_symbol_text(pass->engine, pass->def->required[index]).data;
}

pln_attrs pln_pass_options(const pln_pass *pass) {
  return pass->options;
}

uint32_t pln_pass_n_options(const pln_pass *pass) {
  return pass->def->n_options;
}

const pln_option *pln_pass_option_at(const pln_pass *pass, uint32_t index) {
  return index < pass->def->n_options ? &pass->def->options[index] : NULL;
}

uint32_t pln_pass_n_elements(const pln_pass *pass) {
  return pass->def->n_elements;
}

pln_pass *pln_pass_element_at(const pln_pass *pass, uint32_t index) {
  return index < pass->def->n_elements ? pass->def->elements[index] : NULL;
}
