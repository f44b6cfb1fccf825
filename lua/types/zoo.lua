---@meta perilune.zoo
--- What editors show: `require "perilune.zoo"`, models that are made.

local zoo = {}

---@class perilune.zoo.Parameter
---@field name string
---@field default integer|number|string a string: a number, or the name of a dim
---@field doc string
---@field choices? integer[]
---@field least? number 1 if not given
---@field most? number a million if not given

---@class perilune.zoo.Family
---@field name string
---@field doc string
---@field parameters perilune.zoo.Parameter[]
---@field presets { [1]: string, [2]: { [string]: integer|number|string } }[]
---@field build fun(model: perilune.zoo.Model, values: { [string]: integer|number|string })
---@field check? fun(values: { [string]: integer|number|string }): string?, string?

---@class perilune.zoo.Model
---@field opset integer
---@field save fun(self: perilune.zoo.Model, path: string): true?, string?
---@field tostring fun(self: perilune.zoo.Model): string
---@field size fun(self: perilune.zoo.Model): integer bytes of the file

---@type perilune.zoo.Family[]
zoo.families = {}
---@type perilune.zoo.Parameter[]
zoo.parameters = {}
---@return string[]
function zoo.names() end
--- The model of a family or preset, or nil and what is wrong with the options.
---@param name string
---@param options? { [string]: integer|number|string }
---@return perilune.zoo.Model? model
---@return string? reason
function zoo.build(name, options) end

return zoo
