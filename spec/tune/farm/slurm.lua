--- A Slurm of two nodes on this machine, which listens on the loopback address only.

local command = require "spec.cli.command"
local processes = require "spec.tune.processes"

local slurm = {}

local configuration = [[
ClusterName=perilune
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CredType=cred/munge
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
ReturnToService=2
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool%n
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.%n.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd.%n.log
SlurmdTimeout=10
KillWait=3
SlurmdParameters=config_overrides
NodeName=n[1-2] NodeHostname=HOST NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=1 RealMemory=1000
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
]]

local clean = "env -u LD_PRELOAD -u ASAN_OPTIONS PATH=$PATH:/usr/sbin:/sbin "

local function output_of(line)
  local pipe = io.popen(line)
  local text = pipe:read "a"
  pipe:close()
  return text
end

--- Starts it in a folder; `environment` is what commands need to use it. nil and why it does
-- not start.
function slurm.start(folder)
  local self = setmetatable({ folder = folder, all = {} }, { __index = slurm })
  local host = io.open "/proc/sys/kernel/hostname":read "l":match "^[^.]+"
  local text = configuration:gsub("FOLDER", folder):gsub("HOST", host)
  command.write(folder .. "/slurm.conf", text)
  command.write(folder .. "/key", io.open "/dev/urandom":read(128))
  os.execute(("mkdir -p %s/state; chmod 600 %s/key; chmod 755 %s"):format(folder, folder, folder))
  self.environment = ("SLURM_CONF=%s/slurm.conf TMPDIR=%s "):format(folder, folder)
  local function run(line)
    self.all[#self.all + 1] = processes.start(("exec %s%s%s >>%s/daemons.log 2>&1"):format(clean,
      self.environment, line, folder))
  end
  run(("munged --foreground --force --key-file=%s/key --socket=%s/munge.socket "
    .. "--pid-file=%s/munge.pid --log-file=%s/munge.log --seed-file=%s/seed"):gsub("%%s", folder))
  pcall(processes.wait_for, function()
    return os.execute(("test -S %s/munge.socket"):format(folder))
  end, 60)
  run "slurmctld -D"
  run "slurmd -D -N n1"
  run "slurmd -D -N n2"
  local patience = os.time() + 60 -- sinfo waits long for a daemon that is not there
  repeat
    if self:ask "timeout 10 sinfo -h -o %T 2>/dev/null" == "idle\n" then return self end
    processes.sleep(0.2)
  until os.time() > patience
  local log = self:ask(("cat %s/daemons.log; tail -n 5 %s/*.log"):format(folder, folder))
  self:stop()
  return nil, log
end

--- The output of one of its commands.
function slurm.ask(self, line) return output_of(clean .. self.environment .. line) end

function slurm.stop(self)
  os.execute(clean .. self.environment .. "scancel --user root >/dev/null 2>&1")
  processes.sleep(0.5)
  for i = #self.all, 1, -1 do processes.kill(self.all[i], i == 1 and "TERM" or "KILL") end
end

return slurm
