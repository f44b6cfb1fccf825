/* test_base.c: memory, arenas, interning, maps, diagnostics, buffers, files. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file/file.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

/* ------------------------------------------------------------------- tables */

static void accounts_for_memory(void) {
  oom memory = {0};
  pln_engine *e = pln_base_new(oom_alloc, &memory);
  REQUIRE(e);
  CHECK_EQ_INT(pln_engine_memory(e, NULL), memory.bytes);
  void *block = pln_mem_new(e, 1000);
  block = pln_mem_resize(e, block, 1000, 3000);
  CHECK_EQ_INT(pln_engine_memory(e, NULL), memory.bytes);
  pln_mem_free(e, block, 3000);
  size_t peak;
  CHECK_EQ_INT(pln_engine_memory(e, &peak), memory.bytes);
  CHECK(peak >= memory.bytes + 3000);
  CHECK(!pln_mem_new(e, 0));
  CHECK(!pln_mem_new(e, SIZE_MAX));
  pln_base_free(e);
  CHECK_EQ_INT(memory.blocks, 0);
}

static void engine_creation_survives_oom(void) {
  oom memory = {0};
  pln_engine *e = NULL;
  for (uint64_t n = 1; !e; n++) {
    memory = (oom){.fail_at = n};
    e = pln_base_new(oom_alloc, &memory);
    if (!e)
      CHECK_EQ_INT(memory.blocks, 0);
  }
  pln_base_free(e);
  CHECK_EQ_INT(memory.blocks, 0);
}

static void arena_blocks_are_aligned_and_apart(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_arena arena;
  pln_arena_init(&arena, e);
  unsigned char *blocks[600];
  for (size_t i = 0; i < PLN_COUNT(blocks); i++) {
    size_t size = i % 50 == 0 ? 100000 : i;
    blocks[i] = pln_arena_new(&arena, size);
    REQUIRE(blocks[i]);
    CHECK_EQ_INT((uintptr_t)blocks[i] % 16, 0);
    memset(blocks[i], (int)(i & 0xff), size);
  }
  for (size_t i = 1; i < PLN_COUNT(blocks); i++)
    CHECK_EQ_INT(blocks[i][i / 2], i & 0xff);
  CHECK(!pln_arena_new(&arena, SIZE_MAX));
  pln_arena_free(&arena);
  pln_base_free(e);
}

static void interns_records(void) {
  enum { N = 20000 };
  pln_engine *e = pln_base_new(NULL, NULL);
  char name[32];
  pln_symbol id;
  bool good = true;
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < N; i++) {
      snprintf(name, sizeof name, "value%u", i);
      good &= pln_symbol_intern(e, pln_text(name), &id) == PLN_OK;
      good &= id == i + 1;
      good &= pln_slice_is(pln_symbol_text(e, id), name);
      good &= (uintptr_t)pln_symbol_text(e, id).data % 8 == 0;
    }
  CHECK(good);
  CHECK_EQ_INT(pln_interner_count(e->symbols), N);
  CHECK_EQ_INT(pln_intern_find(e->symbols, "value7", 6), 8);
  CHECK_EQ_INT(pln_intern_find(e->symbols, "value", 5), 0);
  pln_base_free(e);
}

static void tells_empty_zero_and_longer_records_apart(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_interner *in;
  uint32_t a, b, c, d;
  bool added;
  REQUIRE_OK(pln_interner_new(e, &in));
  CHECK_OK(pln_intern(in, NULL, 0, &a, &added));
  CHECK(added);
  CHECK_OK(pln_intern(in, "\0", 1, &b, NULL));
  CHECK_OK(pln_intern(in, "\0\0", 2, &c, NULL));
  CHECK_OK(pln_intern(in, "", 0, &d, &added));
  CHECK(!added);
  CHECK(a == d && a != b && b != c && a != c);
  pln_interner_free(in);
  pln_base_free(e);
}

static pln_status intern_many(pln_engine *e, void *ud) {
  (void)ud;
  char name[32];
  for (uint32_t i = 0; i < 300; i++) {
    pln_symbol id;
    uint32_t before = pln_interner_count(e->symbols);
    snprintf(name, sizeof name, "%u", i);
    pln_status status = pln_symbol_intern(e, pln_text(name), &id);
    if (status == PLN_OK)
      continue;
    /* Nothing was added, and the table still works. */
    CHECK_EQ_INT(pln_interner_count(e->symbols), before);
    CHECK_EQ_INT(pln_intern_find(e->symbols, name, strlen(name)), 0);
    CHECK(before == 0 || pln_intern_find(e->symbols, "0", 1) == 1);
    return status;
  }
  return PLN_OK;
}

static void interning_survives_oom(void) {
  oom_sweep(intern_many, NULL);
}

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Keys so far apart, or neighbours. */
static void agree_with_an_array(uint64_t stride) {
  enum { KEYS = 500, STEPS = 100000 };
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_idmap *map;
  uint32_t model[KEYS] = {0}, random = 1;
  bool good = true;
  REQUIRE_OK(pln_idmap_new(e, &map));
  for (uint32_t i = 0; i < STEPS; i++) {
    uint32_t k = next_random(&random) % KEYS;
    uint32_t value = next_random(&random) % 3 ? i + 1 : 0; /* 0 removes */
    good &= pln_idmap_set(map, k * stride, value) == PLN_OK;
    model[k] = value;
    k = next_random(&random) % KEYS;
    good &= pln_idmap_get(map, k * stride) == model[k];
  }
  for (uint32_t k = 0; k < KEYS; k++)
    good &= pln_idmap_get(map, k * stride) == model[k];
  CHECK(good);
  pln_idmap_free(map);
  pln_base_free(e);
}

static void idmap_agrees_with_an_array(void) {
  agree_with_an_array(1);
  agree_with_an_array((uint64_t)1 << 30);
}

static pln_status fill_idmap(pln_engine *e, void *ud) {
  (void)ud;
  pln_idmap *map;
  PLN_TRY(pln_idmap_new(e, &map));
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < 100 && status == PLN_OK; i++)
    status = pln_idmap_set(map, i, i + 1);
  CHECK(status != PLN_OK || pln_idmap_get(map, 99) == 100);
  pln_idmap_free(map);
  return status;
}

static void idmap_survives_oom(void) {
  oom_sweep(fill_idmap, NULL);
}

typedef struct entry {
  pln_hash_link link;
  uint32_t number; /* when it was added; 0: it is not in the table */
} entry;

/* The entries of a hash come newest first, and no others. */
static bool holds_what_was_added(const pln_hash_table *t, const entry *all,
                                 uint32_t n, uint64_t hash) {
  uint32_t found = 0, wanted = 0, last = UINT32_MAX;
  for (pln_hash_link *l = pln_hash_first(t, hash); l; l = pln_hash_next(l)) {
    const entry *each = (const entry *)(const void *)l;
    if (l->hash != hash || !each->number || each->number >= last)
      return false;
    last = each->number;
    found++;
  }
  for (uint32_t i = 0; i < n; i++)
    wanted += all[i].number && all[i].link.hash == hash;
  return found == wanted;
}

static void hash_table_agrees_with_an_array(void) {
  enum { ENTRIES = 300, STEPS = 20000 };
  static entry all[ENTRIES];
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_hash_table t = {.engine = e};
  uint32_t random = 1;
  bool good = true;
  for (uint32_t i = 1; i <= STEPS; i++) {
    entry *each = &all[next_random(&random) % ENTRIES];
    uint64_t hash = next_random(&random) % 100 * 16;
    if (each->number)
      pln_hash_remove(&t, &each->link);
    else
      good &= pln_hash_add(&t, hash, &each->link) == PLN_OK;
    each->number = each->number ? 0 : i;
    good &= holds_what_was_added(&t, all, ENTRIES, hash);
  }
  for (uint32_t i = 0; i < ENTRIES; i++)
    if (all[i].number)
      pln_hash_remove(&t, &all[i].link);
  CHECK(good);
  CHECK_EQ_INT(t.n, 0);
  CHECK_EQ_INT(pln_hash_table_bytes(&t), 0);
  pln_base_free(e);
}

/* Twins of one graph have one hash: the oldest of them is not searched for. */
static void records_of_one_hash_come_and_go_quickly(void) {
  enum { ENTRIES = 100000 };
  static entry all[ENTRIES];
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_hash_table t = {.engine = e};
  clock_t begun = clock();
  for (uint32_t i = 0; i < ENTRIES; i++)
    CHECK_OK(pln_hash_add(&t, 7, &all[i].link));
  for (uint32_t i = 0; i < ENTRIES; i++)
    pln_hash_remove(&t, &all[i].link);
  CHECK((double)(clock() - begun) / CLOCKS_PER_SEC < 0.5);
  CHECK_EQ_INT(t.n, 0);
  pln_base_free(e);
}

static void hash_depends_on_every_bit(void) {
  unsigned char bytes[40] = {0};
  uint64_t plain = pln_hash_bytes(bytes, sizeof bytes, 1);
  for (size_t i = 0; i < sizeof bytes * 8; i++) {
    bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    CHECK(pln_hash_bytes(bytes, sizeof bytes, 1) != plain);
    bytes[i / 8] ^= (unsigned char)(1 << i % 8);
  }
  CHECK(pln_hash_bytes(bytes, 39, 1) != plain);
  CHECK(pln_hash_bytes(bytes, 40, 2) != plain);
}

/* -------------------------------------------------------------- diagnostics */

static size_t place(void *ud, char *text, size_t size) {
  return (size_t)snprintf(text, size, "%s", (const char *)ud);
}

static void diagnostics_name_the_place(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  char where[] = "m.onnx: node 'conv1'";
  pln_place old = pln_diag_place(e, (pln_place){place, where});
  CHECK_STATUS(pln_diag_error(e, PLN_ERR_TYPE, NULL, "%d is bad", 7),
               PLN_ERR_TYPE);
  pln_diag_place(e, old);
  pln_diag_warn(e, NULL, "plain");
  CHECK_EQ_INT(pln_diag_count(e), 2);
  CHECK_STR(pln_diag_at(e, 0)->message, "m.onnx: node 'conv1': 7 is bad");
  CHECK_STR(pln_diag_at(e, 1)->message, "plain");
  CHECK_EQ_INT(pln_diag_at(e, 1)->severity, PLN_WARNING);
  CHECK(!pln_diag_at(e, 2));
  pln_diag_demote(e, 0);
  CHECK_EQ_INT(pln_diag_at(e, 0)->severity, PLN_WARNING);
  pln_diag_drop(e, 1);
  CHECK_EQ_INT(pln_diag_count(e), 1);
  pln_base_free(e);
}

static void formats_like_a_compiler(void) {
  pln_diag d = {PLN_ERROR,
                PLN_ERR_FORMAT,
                "no such thing",
                {"a.relay", "\tlet \xc3\xa9 = foo;", 3, 10, 13}};
  char text[200], cut[8];
  size_t n = pln_diag_format(&d, text, sizeof text);
  CHECK_STR(text, "a.relay:3:10: error: no such thing\n"
                  "    \tlet \xc3\xa9 = foo;\n"
                  "    \t       ^~~");
  CHECK_EQ_INT(n, strlen(text));
  CHECK_EQ_INT(pln_diag_format(&d, cut, sizeof cut), n);
  CHECK_STR(cut, "a.relay");
  CHECK_EQ_INT(pln_diag_format(&d, NULL, 0), n);
  d.span = (pln_span){.line = "x", .column = 4000000000u, .end_column = 1};
  d.severity = PLN_WARNING;
  pln_diag_format(&d, text, sizeof text);
  CHECK_STR(text, "warning: no such thing\n    x\n     ^");
}

static void cuts_long_lines_around_the_caret(void) {
  char line[100001], text[1000];
  memset(line, 'a', sizeof line - 1);
  line[sizeof line - 1] = 0;
  line[50000] = 'X';
  pln_diag d = {PLN_ERROR, PLN_ERR_FORMAT, "m", {"s", line, 1, 50001, 0}};
  CHECK(pln_diag_format(&d, text, sizeof text) < 500);
  char *first = strchr(text, '\n') + 1, *second = strchr(first, '\n') + 1;
  CHECK_EQ_INT(strchr(first, 'X') - first, strchr(second, '^') - second);
}

static void keeps_the_newest_error_when_full(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  for (int i = 0; i < 5000; i++) {
    size_t mark = pln_diag_count(e);
    pln_diag_warn(e, NULL, "warning %d", i);
    CHECK_STATUS(pln_diag_error(e, PLN_ERR_TYPE, NULL, "lenient %d", i),
                 PLN_ERR_TYPE);
    pln_diag_demote(e, mark);
  }
  size_t n = pln_diag_count(e);
  CHECK(n <= 1002);
  CHECK(!oom_has_error(e));
  CHECK_STATUS(pln_diag_error(e, PLN_ERR_TYPE, NULL, "last"), PLN_ERR_TYPE);
  CHECK_STR(pln_diag_at(e, pln_diag_count(e) - 1)->message, "last");
  CHECK(oom_has_error(e));
  pln_base_free(e);
}

static void suggested(const char *wanted, const char *answer) {
  static const char *const names[] = {"FoldConstant", "FoldScaleAxis", "add",
                                      "relu", "Relu6"};
  char text[80];
  pln_suggest(wanted, PLN_COUNT(names), names, text, sizeof text);
  CHECK_STR(text, answer);
}

static void suggests_near_names(void) {
  suggested("FoldConstnat", "; did you mean 'FoldConstant'?");
  suggested("FOLDCONSTANT", "; did you mean 'FoldConstant'?");
  suggested("rellu", "; did you mean 'relu'?");
  suggested("ad", "");
  suggested("banana", "");
  suggested("", "");
}

/* ------------------------------------------------------------------- buffers
 */

static void buffer_grows(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_buffer b;
  pln_buffer_init(&b, e);
  CHECK_OK(pln_buffer_add(&b, NULL, 0));
  for (int i = 0; i < 1000; i++)
    CHECK_OK(pln_buffer_printf(&b, "%03d,", i));
  CHECK_OK(pln_buffer_write(&b, "end", 4));
  CHECK_EQ_INT(b.size, 4004);
  CHECK(!memcmp(b.data + 4 * 999, "999,end", 8));
  pln_buffer_free(&b);
  pln_base_free(e);
}

/* --------------------------------------------------------------------- files
 */

typedef struct folder {
  char path[64];
  char file[8][128];
} folder;

static folder new_folder(void) {
  folder f = {"/tmp/perilune-test-XXXXXX", {{0}}};
  if (!mkdtemp(f.path))
    CHECK(false && "mkdtemp");
  return f;
}

static const char *in_folder(folder *f, int i, const char *name) {
  size_t n = strlen(f->path);
  memcpy(f->file[i], f->path, n);
  snprintf(f->file[i] + n, sizeof f->file[i] - n, "/%s", name);
  return f->file[i];
}

static void remove_folder(folder *f) {
  for (size_t i = 0; i < PLN_COUNT(f->file); i++)
    if (f->file[i][0])
      remove(f->file[i]);
  /* Fails when something was left behind. */
  if (rmdir(f->path) != 0)
    check_true(false, __FILE__, __LINE__, strerror(errno));
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  fputs(text, f);
  fclose(f);
}

static void check_file(pln_engine *e, const char *path, const char *text) {
  pln_file *file;
  REQUIRE_OK(pln_file_map(e, path, &file));
  CHECK(pln_slice_is((pln_slice){(const char *)pln_file_data(file),
                                 (size_t)pln_file_size(file)},
                     text));
  pln_file_release(file);
}

static void maps_files(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *a = in_folder(&f, 0, "a"), *empty = in_folder(&f, 1, "empty");
  pln_file *x, *y;
  write_file(a, "hello");
  write_file(empty, "");
  check_file(e, a, "hello");
  check_file(e, empty, "");
  REQUIRE_OK(pln_file_map(e, a, &x));
  REQUIRE_OK(pln_file_map(e, a, &y));
  CHECK(x == y); /* one mapping serves both */
  CHECK(pln_file_is_mapped(x));
  pln_file_release(y);
  pln_file_release(x);
  CHECK_STATUS(pln_file_map(e, f.path, &x), PLN_ERR_IO);
  CHECK_STATUS(pln_file_map(e, "/dev/null", &x), PLN_ERR_IO);
  CHECK_STATUS(pln_file_map(e, in_folder(&f, 2, "none"), &x), PLN_ERR_IO);
  CHECK(strstr(pln_diag_at(e, 2)->message, "No such file"));
  REQUIRE_OK(pln_file_copy(e, pln_text("bytes"), "memory", &x));
  CHECK(!pln_file_is_mapped(x));
  CHECK_STR(pln_file_path(x), "memory");
  CHECK(!memcmp(pln_file_data(x), "bytes", 5));
  pln_file_release(x);
  remove_folder(&f);
  pln_base_free(e);
}

static void confined(pln_engine *e, const char *folder_path, pln_slice name,
                     pln_status wanted) {
  pln_file *file;
  pln_status got = pln_file_map_confined(e, folder_path, name, &file);
  if (!CHECK_STATUS(got, wanted))
    printf("# for '%s'\n", name.data);
  if (got == PLN_OK)
    pln_file_release(file);
}

static void confines_names_from_models(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *link = in_folder(&f, 0, "link"), *out = in_folder(&f, 1, "out");
  const char *data = in_folder(&f, 2, "..data");
  write_file(data, "x");
  CHECK_EQ_INT(symlink("..data", link), 0);
  CHECK_EQ_INT(symlink("/etc/passwd", out), 0);
  confined(e, f.path, pln_text("..data"), PLN_OK);
  confined(e, f.path, pln_text("./..data"), PLN_OK);
  confined(e, f.path, pln_text("link"), PLN_OK);
  confined(e, "/", pln_text("etc/passwd"), PLN_OK);
  confined(e, f.path, pln_text("out"), PLN_ERR_FORMAT);
  confined(e, f.path, pln_text("/etc/passwd"), PLN_ERR_FORMAT);
  confined(e, f.path, pln_text("../x"), PLN_ERR_FORMAT);
  confined(e, f.path, pln_text("a/.."), PLN_ERR_FORMAT);
  confined(e, f.path, pln_text(""), PLN_ERR_FORMAT);
  confined(e, f.path, (pln_slice){"link\0x", 6}, PLN_ERR_FORMAT);
  confined(e, f.path, pln_text("none"), PLN_ERR_IO);
  remove_folder(&f);
  pln_base_free(e);
}

static void writes_beside_and_renames(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *a = in_folder(&f, 0, "a"), *link = in_folder(&f, 1, "link");
  pln_output *o;
  struct stat info;
  write_file(a, "old");
  chmod(a, 0640);
  CHECK_EQ_INT(symlink("a", link), 0);
  REQUIRE_OK(pln_output_open(e, link, &o));
  CHECK_OK(pln_output_write(o, "new", 3));
  CHECK_EQ_INT(pln_output_position(o), 3);
  check_file(e, a, "old");
  CHECK_OK(pln_output_commit(o));
  check_file(e, a, "new");
  CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
  CHECK(stat(a, &info) == 0);
  CHECK_EQ_INT(info.st_mode & 07777, 0640);
  REQUIRE_OK(pln_output_open(e, a, &o));
  CHECK_OK(pln_output_write(o, "gone", 4));
  pln_output_abort(o);
  check_file(e, a, "new");
  remove_folder(&f);
  pln_base_free(e);
}

static void write_and_die(const char *path) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_output *o;
  if (!e || pln_output_open(e, path, &o) != PLN_OK ||
      pln_output_write(o, "half", 4) != PLN_OK)
    _exit(1);
  raise(SIGKILL);
}

static bool has_nameless_files(const char *path) {
#ifdef O_TMPFILE
  int fd = open(path, O_RDWR | O_TMPFILE, 0600);
  return fd >= 0 && close(fd) == 0;
#else
  (void)path;
  return false;
#endif
}

/* The folder is empty but for the old file, else removing it fails. Where each
 * file needs a name, one would be left behind. */
static void a_killed_writer_leaves_the_old_file(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *a = in_folder(&f, 0, "a");
  int status = 0;
  write_file(a, "old");
  if (has_nameless_files(f.path)) {
    pid_t child = fork();
    if (child == 0)
      write_and_die(a);
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
  }
  check_file(e, a, "old");
  remove_folder(&f);
  pln_base_free(e);
}

static void refuses_to_write_what_it_cannot(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  pln_output *o;
  CHECK_STATUS(pln_output_open(e, f.path, &o), PLN_ERR_IO);
  CHECK_STATUS(pln_output_open(e, in_folder(&f, 0, "no/such"), &o), PLN_ERR_IO);
  CHECK_EQ_INT(symlink("loop", in_folder(&f, 1, "loop")), 0);
  CHECK_STATUS(pln_output_open(e, f.file[1], &o), PLN_ERR_IO);
  remove_folder(&f);
  pln_base_free(e);
}

/* What a pipe gives behind a hole is zeros. */
static void writes_a_pipe_as_it_is(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *path = in_folder(&f, 0, "pipe");
  pln_output *o = NULL;
  char got[8] = "";
  CHECK_EQ_INT(mkfifo(path, 0600), 0);
  int fd = open(path, O_RDONLY | O_NONBLOCK);
  CHECK_STATUS(pln_output_open(e, path, &o), PLN_OK);
  CHECK_STATUS(pln_output_write(o, "a", 1), PLN_OK);
  CHECK_STATUS(pln_output_pad(o, 3), PLN_OK);
  CHECK_STATUS(pln_output_write(o, "b", 1), PLN_OK);
  CHECK_STATUS(pln_output_commit(o), PLN_OK);
  CHECK_EQ_INT(read(fd, got, sizeof got), 4);
  CHECK(memcmp(got, "a\0\0b", 4) == 0);
  close(fd);
  remove_folder(&f);
  pln_base_free(e);
}

/* A file of 1 GiB with two bytes of data in it. */
static void copies_holes_as_holes(void) {
  const uint64_t size = (uint64_t)1 << 30;
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *from = in_folder(&f, 0, "from"), *to = in_folder(&f, 1, "to");
  int fd = open(from, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  CHECK(pwrite(fd, "x", 1, 5000000) == 1 && pwrite(fd, "y", 1, 700000001) == 1);
  close(fd);
  pln_file *file;
  pln_output *o;
  struct stat info;
  REQUIRE_OK(pln_file_map(e, from, &file));
  REQUIRE_OK(pln_output_open(e, to, &o));
  CHECK_OK(pln_output_write(o, "head", 4));
  CHECK_OK(pln_output_pad(o, 4096 * 300));
  CHECK_OK(pln_output_copy(o, file, 0, size));
  CHECK_OK(pln_output_copy(o, file, 5000000, 1));
  CHECK_STATUS(pln_output_copy(o, file, size, 1), PLN_ERR_ARGUMENT);
  CHECK_OK(pln_output_commit(o));
  pln_file_release(file);
  CHECK(stat(to, &info) == 0);
  CHECK_EQ_INT(info.st_size, size + 4096 * 300 + 1);
  CHECK(info.st_blocks < 10000);
  REQUIRE_OK(pln_file_map(e, to, &file));
  const uint8_t *bytes = pln_file_data(file);
  CHECK(!memcmp(bytes, "head", 5));
  CHECK_EQ_INT(bytes[4096 * 300 + 5000000], 'x');
  CHECK_EQ_INT(bytes[4096 * 300 + 700000001], 'y');
  CHECK_EQ_INT(bytes[size + 4096 * 300], 'x');
  pln_file_release(file);
  remove_folder(&f);
  pln_base_free(e);
}

static void copies_from_a_replaced_file(void) {
  enum { SIZE = 300000 };
  pln_engine *e = pln_base_new(NULL, NULL);
  folder f = new_folder();
  const char *a = in_folder(&f, 0, "a");
  pln_output *o;
  pln_file *file;
  static char text[SIZE + 1];
  memset(text, 'q', SIZE);
  write_file(a, text);
  REQUIRE_OK(pln_file_map(e, a, &file));
  remove(a);
  write_file(a, "another file of that name");
  REQUIRE_OK(pln_output_open(e, a, &o));
  CHECK_OK(pln_output_copy(o, file, 0, SIZE));
  CHECK_OK(pln_output_commit(o));
  pln_file_release(file);
  check_file(e, a, text);
  remove_folder(&f);
  pln_base_free(e);
}

static pln_status write_a_file(pln_engine *e, void *ud) {
  pln_output *o;
  pln_file *file;
  PLN_TRY(pln_file_copy(e, pln_text("text"), "memory", &file));
  pln_status status = pln_output_open(e, ud, &o);
  if (status == PLN_OK) {
    status = pln_output_copy(o, file, 0, 4);
    if (status == PLN_OK)
      status = pln_output_commit(o);
    else
      pln_output_abort(o);
  }
  pln_file_release(file);
  PLN_TRY(status);
  PLN_TRY(pln_file_map(e, ud, &file));
  pln_file_release(file);
  return PLN_OK;
}

static void files_survive_oom(void) {
  folder f = new_folder();
  oom_sweep(write_a_file, (void *)in_folder(&f, 0, "a"));
  remove_folder(&f);
}

static const check_test tests[] = {
    {"memory is accounted for", accounts_for_memory},
    {"engine creation survives lack of memory", engine_creation_survives_oom},
    {"arena blocks are aligned and apart", arena_blocks_are_aligned_and_apart},
    {"records are interned", interns_records},
    {"empty, zero and longer records differ",
     tells_empty_zero_and_longer_records_apart},
    {"interning survives lack of memory", interning_survives_oom},
    {"idmap agrees with an array", idmap_agrees_with_an_array},
    {"hash table agrees with an array", hash_table_agrees_with_an_array},
    {"records of one hash come and go quickly",
     records_of_one_hash_come_and_go_quickly},
    {"idmap survives lack of memory", idmap_survives_oom},
    {"hash depends on every bit", hash_depends_on_every_bit},
    {"diagnostics name the place", diagnostics_name_the_place},
    {"diagnostics print as a compiler's", formats_like_a_compiler},
    {"long lines are cut around the caret", cuts_long_lines_around_the_caret},
    {"the newest error is kept when full", keeps_the_newest_error_when_full},
    {"near names are suggested", suggests_near_names},
    {"buffers grow", buffer_grows},
    {"files are mapped", maps_files},
    {"names from models are confined", confines_names_from_models},
    {"output is written beside and renamed", writes_beside_and_renames},
    {"a killed writer leaves the old file",
     a_killed_writer_leaves_the_old_file},
    {"impossible targets are refused", refuses_to_write_what_it_cannot},
    {"a pipe is written as it is", writes_a_pipe_as_it_is},
    {"holes are copied as holes", copies_holes_as_holes},
    {"a replaced file is copied from its mapping", copies_from_a_replaced_file},
    {"files survive lack of memory", files_survive_oom},
};
CHECK_MAIN(tests)
