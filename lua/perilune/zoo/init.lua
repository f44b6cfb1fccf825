--- Models that are made here, to try things on: perilune zoo NAME -o FILE.

local zoo = {}

--- In order: what `perilune zoo` lists.
zoo.models = {
  { name = "resnet50", module = "perilune.zoo.resnet",
    doc = "ResNet-50 as exported from PyTorch, dynamic batch, 102 MB of made-up weights." },
}

--- The model of that name, ready to be saved; nil and the names there are.
function zoo.build(name)
  local names = {}
  for i, entry in ipairs(zoo.models) do
    if entry.name == name then return require(entry.module).build() end
    names[i] = entry.name
  end
  return nil, ("no model '%s' in the zoo; there is: %s"):format(name, table.concat(names, ", "))
end

return zoo
