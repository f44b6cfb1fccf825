/* embed.c: a build tool: compiles Lua scripts into a C table.
 *
 *     embed OUT.c MODULE=FILE...
 *
 * It is linked with the same Lua as the command, so that the command can load
 * the bytecode. Line numbers are kept for tracebacks. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

typedef struct sink {
  FILE *out;
  size_t column;
} sink;

static int write_bytes(lua_State *L, const void *bytes, size_t n, void *ud) {
  (void)L;
  sink *s = ud;
  const unsigned char *p = bytes;
  for (size_t i = 0; i < n; i++)
    fprintf(s->out, "%u,%s", p[i], ++s->column % 24 ? "" : "\n");
  return ferror(s->out);
}

static void fail_embed(const char *what, const char *why) {
  fprintf(stderr, "embed: %s: %s\n", what, why);
  exit(1);
}

/* Pushes the text of a file. */
static void push_file(lua_State *L, const char *file) {
  FILE *in = fopen(file, "rb");
  if (!in)
    fail_embed(file, "cannot be read");
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (size_t n = 1; n > 0; luaL_addsize(&text, n))
    n = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, in);
  fclose(in);
  luaL_pushresult(&text);
}

/* The chunk is named after its module's file, so that a traceback says
 * "lua/perilune/cli/command/opt.lua:12:". */
static void compile(lua_State *L, const char *module, const char *file) {
  push_file(L, file);
  size_t size;
  const char *code = lua_tolstring(L, -1, &size);
  luaL_gsub(L, module, ".", "/");
  const char *chunk = lua_pushfstring(L, "@%s.lua", lua_tostring(L, -1));
  if (luaL_loadbufferx(L, code, size, chunk, "t"))
    fail_embed(file, lua_tostring(L, -1));
}

static void dump(lua_State *L, FILE *out, int index, char *argument) {
  char *file = strchr(argument, '=');
  if (!file)
    fail_embed(argument, "expected MODULE=FILE");
  *file++ = '\0';
  compile(L, argument, file);
  fprintf(out, "static const unsigned char code_%d[] = {\n", index);
  sink s = {out, 0};
  if (lua_dump(L, write_bytes, &s, 0))
    fail_embed(argument, "cannot be written");
  fputs("};\n", out);
  lua_settop(L, 0);
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
  if (!L || !out)
    fail_embed(argc > 1 ? argv[1] : "usage", "cannot start");
  fputs("/* Made by the build from the scripts. */\n\n"
        "#include \"cli/script.h\"\n\n",
        out);
  for (int i = 2; i < argc; i++)
    dump(L, out, i, argv[i]);
  fputs("const pln_embedded_script pln_scripts[] = {\n", out);
  for (int i = 2; i < argc; i++)
    fprintf(out, "{\"%s\", code_%d, sizeof code_%d},\n", argv[i], i, i);
  fputs("{NULL, NULL, 0}};\n", out);
  if (fclose(out) != 0)
    fail_embed(argv[1], "cannot be written");
  lua_close(L);
  return 0;
}
