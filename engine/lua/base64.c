/* base64.c: bytes as base64 for scripts, as reproducers hold models. */

#include <ctype.h>

#include "base/text/base64.h"
#include "lua/binding.h"

/* base64_encode(bytes) -> text, with padding */
static int core_base64_encode(lua_State *L) {
  size_t size;
  const char *bytes = luaL_checklstring(L, 1, &size);
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (size_t at = 0; at < size; at += 3) {
    char letters[4];
    size_t n = size - at < 3 ? size - at : 3;
    pln_base64_encode((const uint8_t *)bytes + at, (uint32_t)n, letters);
    luaL_addlstring(&text, letters, sizeof letters);
  }
  luaL_pushresult(&text);
  return 1;
}

/* Pushes the string at 1 without blanks.  [-0, +1] */
static pln_slice push_without_blanks(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  luaL_Buffer letters;
  luaL_buffinit(L, &letters);
  for (size_t i = 0; i < size; i++)
    if (!isspace((unsigned char)text[i]))
      luaL_addchar(&letters, text[i]);
  luaL_pushresult(&letters);
  pln_slice s;
  s.data = lua_tolstring(L, -1, &s.size);
  return s;
}

/* Whole groups of four letters, the last with at most two "=". */
static bool is_padded(pln_slice s) {
  const char *padding = s.size ? memchr(s.data, '=', s.size) : NULL;
  size_t n = padding ? (size_t)(s.data + s.size - padding) : 0;
  return s.size % 4 == 0 && n <= 2 && (n < 2 || padding[1] == '=');
}

/* base64_decode(text) -> bytes, or nil when the text is no base64; blanks are
 * passed over */
static int core_base64_decode(lua_State *L) {
  pln_slice text = push_without_blanks(L);
  size_t room = text.size / 4 * 3;
  luaL_Buffer bytes;
  uint8_t *out = (uint8_t *)luaL_buffinitsize(L, &bytes, room + 1);
  size_t size = is_padded(text) ? pln_base64_decode(text, out, room) : SIZE_MAX;
  luaL_pushresultsize(&bytes, size == SIZE_MAX ? 0 : size);
  if (size == SIZE_MAX)
    lua_pushnil(L);
  return 1;
}

static const luaL_Reg functions[] = {{"base64_encode", core_base64_encode},
                                     {"base64_decode", core_base64_decode},
                                     {NULL, NULL}};

void pln_lua_open_base64(lua_State *L) {
  pln_lua_functions(L, functions);
}
