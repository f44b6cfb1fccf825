rockspec_format = "3.0"
package = "perilune"
version = "scm-1"
-- `luarocks make` in a checkout builds that checkout.
source = { url = "git+file://." }
description = {
  summary = "A small native engine that optimises tensor programs, scripted in Lua",
  license = "MIT",
}
dependencies = { "lua >= 5.4, < 5.5" }
external_dependencies = { UTHASH = { header = "uthash.h" } }
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    LUA_INCDIR = "$(LUA_INCDIR)",
    LUA_INTERPRETER = "$(LUA)",
    UTHASH_INCLUDE_DIR = "$(UTHASH_INCDIR)",
    PERILUNE_LUA_CDIR = "$(LIBDIR)",
    PERILUNE_LUA_DIR = "$(LUADIR)",
    PERILUNE_INSTALL_LIBRARY = "OFF",
    PERILUNE_COMMAND = "OFF",
    PERILUNE_TESTS = "OFF",
  },
}
test = { type = "command", command = "sh rocks/test" }
