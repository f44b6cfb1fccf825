--- Archives of models beside the project, unpacked once in the build's folder.

local archive = {}

archive.shared = os.getenv "PERILUNE_SHARED" or "../shared"
archive.folder = (os.getenv "PERILUNE_BUILD" or "build") .. "/conformance"

local function exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

--- Unpacks the file, or `members` of it, into the folder `name` and gives its
-- path; nil when there is no such file. The folder is made under another name
-- first, for specs run side by side.
function archive.unpack(file, name, members)
  local folder = archive.folder .. "/" .. name
  local path = archive.shared .. "/" .. file
  if not exists(path) then return nil end
  if exists(folder .. "/.") then return folder end
  local unique = os.tmpname()
  os.remove(unique)
  local fresh = folder .. unique:gsub(".*/", ".")
  local ok = os.execute(("mkdir -p %s && tar -xJf %s -C %s %s"):format(fresh, path, fresh,
    members or ""))
  assert(ok, "tar could not unpack " .. file)
  os.execute(("mv -T %s %s 2>/dev/null || rm -rf %s"):format(fresh, folder, fresh))
  return folder
end

return archive
