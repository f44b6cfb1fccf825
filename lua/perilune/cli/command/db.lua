--- perilune db: files of tuning records.

require "perilune.core".internal() -- diagnostics point at the scripts of others

return {
  description = "Works on files of tuning records. `perilune db COMMAND --help` shows the "
    .. "arguments of a command.",
  commands = {
    list = "list workloads and targets with their records",
    best = "show the best candidate of each workload and target",
    export = "write records as lines of JSON, in TVM's form",
    import = "read such records",
    merge = "put the records of other files into one",
    prune = "keep the best records",
    tasks = "show what became of the tasks of a batch",
  },
}
