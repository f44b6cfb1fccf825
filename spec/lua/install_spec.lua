-- What is installed works: the library for C programs (CMake package,
-- pkg-config), the Lua module (cmake --install, luarocks), the command.

local build = os.getenv "PERILUNE_BUILD" or "build"
local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""

local folder = os.tmpname()
os.remove(folder)
local prefix = folder .. "/prefix"

local function sh(command, ...)
  command = command:format(...)
  local pipe = io.popen("{ " .. command .. "; } 2>&1; echo status $?")
  local text = pipe:read "a"
  pipe:close()
  local out, status = text:match "^(.*)status (%d+)\n$"
  assert(status == "0", command .. "\n" .. out)
  return out
end

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
end

local consumer = [[
#include <perilune.h>
#include <stdio.h>

int main(void) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  if (!engine)
    return 1;
  printf("perilune %s, %s\n", pln_version(),
         pln_op_find(engine, pln_text("nn.relu")) ? "relu" : "no relu");
  pln_engine_free(engine);
  return 0;
}
]]

local function have(program) return (os.execute("command -v " .. program .. " >/dev/null")) end

local test = sanitized and pending or it

setup(function()
  sh("mkdir -p %s/consumer", folder)
  write("consumer/main.c", consumer)
  if not sanitized then sh("cmake --install %s --prefix %s", build, prefix) end
end)

teardown(function() sh("rm -rf %s", folder) end)

describe("cmake --install", function()
  test("serves a C program through find_package", function()
    write("consumer/CMakeLists.txt", [[
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C)
find_package(perilune 0.1 REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE perilune::perilune)
]])
    sh("cmake -S %s/consumer -B %s/consumer/build -DCMAKE_PREFIX_PATH=%s", folder, folder, prefix)
    sh("cmake --build %s/consumer/build", folder)
    assert.matches("^perilune %S+, relu\n", sh("%s/consumer/build/consumer", folder))
  end)

  test("serves a C program through pkg-config", function()
    local pc = sh("find %s -name perilune.pc", prefix):match "^(.*)/perilune.pc"
    sh("export PKG_CONFIG_PATH=%s; cc -std=c11 %s/consumer/main.c -o %s/direct "
      .. "$(pkg-config --cflags --libs perilune)", pc, folder, folder)
    assert.matches("^perilune %S+, relu\n", sh("%s/direct", folder))
  end)

  test("serves Lua", function()
    local core = sh("find %s -name core.so", prefix):match "^(.*)/perilune/core.so"
    local out = sh([[LUA_CPATH='%s/?.so' LUA_PATH='%s/share/lua/5.4/?.lua;]]
      .. [[%s/share/lua/5.4/?/init.lua' lua5.4 -e 'print(require "perilune".op.nn.relu)']],
      core, prefix, prefix)
    assert.matches("nn.relu", out, 1, true)
  end)

  test("installs a command that needs nothing beside it", function()
    sh("mkdir -p %s/alone && cp %s/bin/perilune %s/alone/", folder, prefix, folder)
    local out = sh("cd / && env -i %s/alone/perilune ops nn.relu", folder)
    assert.matches("nn.relu", out, 1, true)
  end)
end)

describe("luarocks make", function()
  local rock = (sanitized or not have "luarocks") and pending or it

  rock("installs a module that can be required", function()
    local tree = folder .. "/tree"
    -- In a copy: luarocks builds in the folder of its project.
    sh("mkdir %s/source && cp -R CMakeLists.txt engine lua rocks spec %s/source/", folder, folder)
    -- Not optimised, which takes the compiler a third of the time.
    sh([[sed -i 's/CMAKE_BUILD_TYPE = "Release"/CMAKE_BUILD_TYPE = "Debug"/' ]]
      .. "%s/source/rocks/perilune-scm-1.rockspec", folder)
    sh("cd %s/source && luarocks --lua-version=5.4 --tree=%s make rocks/perilune-scm-1.rockspec",
      folder, tree)
    local core = sh("find %s -name core.so", tree):match "^(.*)/perilune/core.so"
    local out = sh([[LUA_CPATH='%s/?.so' LUA_PATH='%s/share/lua/5.4/?.lua;]]
      .. [[%s/share/lua/5.4/?/init.lua' lua5.4 -e 'print(require "perilune".op.nn.relu)']],
      core, tree, tree)
    assert.matches("nn.relu", out, 1, true)
  end)
end)
