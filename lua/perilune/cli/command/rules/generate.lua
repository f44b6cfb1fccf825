--- perilune rules generate: rules of graph substitution that are found and proved.

local host = require "perilune.cli.host"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- errors name the scripts of others

local rules_generate = {
  description = "Finds rules of graph substitution: all terms of a few operators are evaluated on "
    .. "integers, those that compute the same are equations, which axioms must prove, and what "
    .. "rules are made of them must pass the check of 'perilune rules check', with the weakest "
    .. "conditions on shapes that do. Writes a file of rules, which 'perilune rules check', 'opt "
    .. "--rules' and 'tune --substitution-rules' read. The rules that perilune has are "
    .. "shown by 'perilune rules substitution'. Exit status: 0 done, 1 failed, 2 wrong usage.",
}

function rules_generate.arguments(parser)
  parser:option("-o --output", "Where the rules are written; - is standard output."):argname "OUT"
    :default "-"
  parser:option("--folder", "A folder in which a file is written for each domain, in place of one "
    .. "for all."):argname "FOLDER"
  parser:option("--operators", "The most operators of a term, from 1 to 3."):argname "N"
    :default "3":convert(numbers.count)
  parser:option("--seed", "The seed of the integers."):argname "N":default "1"
    :convert(numbers.seed)
  parser:option("--domain", "What the terms are about; by default all."):argname "NAME"
  parser:flag("-q --quiet", "Prints nothing but the rules.")
end

local function check(options)
  if options.operators > 3 then stop.usage "--operators: a number from 1 to 3 is expected" end
  local names = {}
  for i, domain in ipairs(require "perilune.rule.generate.operators") do names[i] = domain.name end
  for _, name in ipairs(names) do
    if name == (options.domain or name) then return end
  end
  stop.usage("--domain %s: one of %s is expected", options.domain, table.concat(names, ", "))
end

local function write(text, path)
  if path == "-" then return require "perilune.cli.save".bytes(text) end
  local ok, reason = require "perilune.replace_file"(path, text)
  if not ok then stop.failure("%s", reason) end
end

local function write_all(generate, rules, options)
  if not options.folder then return write(generate.text(rules), options.output) end
  local files = generate.files(rules, options.domain)
  for _, name in ipairs(require "perilune.sorted_keys"(files)) do
    write(files[name], ("%s/%s.lua"):format(options.folder, name))
  end
end

function rules_generate.run(options)
  require "perilune"
  check(options)
  host.catch_interrupt()
  local progress, started = require "perilune.instruments".progress(), host.clock()
  local generate = require "perilune.rule.generate"
  local rules, counts = generate.rules { operators = options.operators, seed = options.seed,
    domain = options.domain, progress = not options.quiet and function(n)
      progress.show(("%d rules"):format(n))
    end or nil }
  progress.clear()
  write_all(generate, rules, options)
  if options.quiet then return end
  require "perilune.cli.save".messages(options.output):write(("%d terms, %d equations, %d proved "
    .. "by axioms, %d of them independent, %d rules; %.1f s\n"):format(counts.terms, counts.equal,
    counts.proved, counts.independent, #rules, host.clock() - started))
end

return rules_generate
