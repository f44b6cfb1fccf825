std = "lua54"
max_line_length = 100
ignore = { "211/scope" } -- local scope <close> = ctx:enter()
exclude_files = { "build", "build-*", "build.luarocks" }
files["spec"] = { std = "+busted" }
-- Editor types: classes are declared as tables that nothing reads.
files["lua/types"] = { unused = false, unused_args = false, max_line_length = 140 }
