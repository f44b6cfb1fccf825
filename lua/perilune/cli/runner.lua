--- Where the tasks of a command run: --runner and what belongs to it.

local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local runner = {}

function runner.options(parser)
  parser:option("--runner", "Where tasks run: 'local': in processes of this machine; farm:PORT: by "
    .. "workers of Work Queue that connect to this port (work_queue_worker HOST PORT); "
    .. "slurm:PARTITION,N: by N such workers that Slurm starts. Workers are sent all that they "
    .. "need."):argname "WHERE":default "local"
  parser:option("--farm-password", "A file with a password, which workers must have, too (their "
    .. "option -P)."):argname "FILE"
  parser:option("--farm-address", "The address of this machine where workers may connect. It "
    .. "needs a password unless it is 127.0.0.1."):argname "ADDRESS":default "127.0.0.1"
  parser:option("--farm-silence", "The seconds after which a worker that says nothing is given "
    .. "up."):argname "S":default "60":convert(tonumber)
end

local function tell_port(options, queue)
  if not options.quiet and options.runner:find "^farm:" then
    io.stderr:write(("tasks wait for workers: work_queue_worker %s%s %d\n"):format(
      options.farm_password and "-P " .. options.farm_password .. " " or "", options.farm_address,
      queue.port))
  end
end

--- What is wrong with the options is wrong usage.
function runner.check(options)
  if not require "perilune.tune.queue".runner_of(options.runner) then
    stop.usage("--runner %s: local, farm:PORT or slurm:PARTITION,N expected", options.runner)
  elseif not options.farm_silence or options.farm_silence < 2 then
    stop.usage "--farm-silence: a number of seconds from 2 on expected"
  elseif options.farm_address ~= "127.0.0.1" and not options.farm_password then
    stop.usage "--farm-address: others than 127.0.0.1 need --farm-password FILE"
  end
end

--- The queue that the options choose. `jobs`: processes of this machine; `folder`: for what comes
-- back.
function runner.queue(options, jobs, folder)
  local queue = require "perilune.tune.queue".new { runner = options.runner, jobs = jobs,
    program = options.program, address = options.farm_address, silence = options.farm_silence,
    password = options.farm_password, folder = folder }
  tell_port(options, queue)
  return queue
end

return runner
