--- What `opt` tells about its work: a table for people, a line of JSON for
-- programs.

local columns = require "perilune.columns"
local core = require "perilune.core"
local host = require "perilune.cli.host"
local units = require "perilune.cli.units"
core.internal() -- diagnostics point at the scripts of others

local summary = {}

-- Where the external data of a model may lie.
local function directory(path) return path:match "^(.*/)[^/]*$" or "" end

--- What the model file `path` holds, which is that of `module`: nodes,
-- compute_nodes, operators by name, and the bytes of it and its data files.
-- What came from a device, a pipe or "-" is in `read`; what went there is counted as
-- it was written.
function summary.measure(path, module, read)
  local what, bytes = host.stat(path)
  local written = read or (path == "-" or what == "other")
    and assert(require "perilune.onnx".tostring(module)) or nil
  if written then bytes = #written end
  local counts = require "perilune.cli.counts"(path, module, written)
  for _, name in ipairs(counts.files) do
    local kind, size = host.stat(directory(path) .. name)
    if kind then bytes = bytes + size end
  end
  counts.bytes = bytes
  return counts
end

--- Shows the warnings of the call before: a few, or all.
function summary.warnings(all)
  local diags = core.diags()
  local shown = all and #diags or math.min(#diags, 3)
  for i = 1, shown do io.stderr:write(tostring(diags[i]), "\n") end
  if shown < #diags then
    io.stderr:write(("%d more warnings (-v shows them)\n"):format(#diags - shown))
  end
end

local function operator_rows(work)
  local before, after = work.before, work.after
  local names = {}
  for name in pairs(before.operators) do names[#names + 1] = name end
  for name in pairs(after.operators) do
    if not before.operators[name] then names[#names + 1] = name end
  end
  table.sort(names)
  local rows = { { "", "before", "after" } }
  local function row(name, a, b) rows[#rows + 1] = { name, tostring(a), tostring(b) } end
  for _, name in ipairs(names) do
    row(name, before.operators[name] or 0, after.operators[name] or 0)
  end
  row("nodes", before.nodes, after.nodes)
  row("file", units.bytes(before.bytes), units.bytes(after.bytes))
  row("time", "", units.seconds(work.seconds))
  row("memory", "", units.bytes(work.peak))
  return rows
end

local function count_text(counts)
  local parts = {}
  for key, n in pairs(counts) do parts[#parts + 1] = ("%s %d"):format(key, n) end
  table.sort(parts)
  return table.concat(parts, ", ")
end

local function pass_rows(report, verbose)
  local rows = { { "pass", "changed", "time", "nodes", verbose and "counts" or "" } }
  for _, row in ipairs(report) do
    rows[#rows + 1] = {
      ("  "):rep((row.depth or 1) - 1) .. row.name, row.changed and "yes" or "no",
      units.seconds(row.seconds), tostring(row.nodes), verbose and count_text(row.counts) or "",
    }
  end
  return rows
end

local function stats_line(work)
  local json = require "perilune.json"
  local passes, rules = {}, {}
  for i, row in ipairs(work.report) do
    passes[i] = json.object {
      { "name", row.name }, { "changed", row.changed },
      { "seconds", row.seconds }, { "nodes", row.nodes },
      { "applications", row.applications },
    }
  end
  for i, row in ipairs(work.statistics.rules) do
    rules[i] = json.object {
      { "pass", row.pass }, { "rule", row.rule }, { "tried", row.tried },
      { "applied", row.applied }, { "refused", row.refused }, { "seconds", row.seconds },
    }
  end
  return json.encode(json.object {
    { "nodes_before", work.before.nodes }, { "nodes_after", work.after.nodes },
    { "compute_nodes_before", work.before.compute_nodes },
    { "compute_nodes_after", work.after.compute_nodes },
    { "bytes_before", work.before.bytes }, { "bytes_after", work.after.bytes },
    { "seconds", work.seconds }, { "peak_rss_bytes", work.peak },
    { "passes", json.list(passes) }, { "rules", json.list(rules) },
  })
end

--- Prints what the options ask for. `work`: before, after, report, seconds,
-- peak, checked (what the comparison says), statistics (an instrument, when they are asked for),
-- out (where the tables go). The JSON line is the last one of standard output.
function summary.show(options, work)
  if not options.quiet then
    local out = work.out
    if options.stats ~= "json" then
      out:write(columns(operator_rows(work)))
      if work.checked then out:write(work.checked, "\n") end
    end
    if options.time or options.verbose then
      out:write("\n", columns(pass_rows(work.report, options.verbose)))
    end
  end
  if options.stats == "text" then work.out:write("\n", tostring(work.statistics), "\n") end
  if options.stats == "json" then
    local out = options.output == "-" and io.stderr or io.stdout
    out:write(stats_line(work), "\n")
  end
end

return summary
