-- engine/README.md names functions as `file:function`; each is there.

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

describe("engine/README.md", function()
  local readme = text_of "engine/README.md"

  it("names functions that are defined in the files that it names", function()
    local count, missing = 0, {}
    for path, name in readme:gmatch "`([%w_/]+%.c):([%w_]+)`" do
      count = count + 1
      local text = text_of("engine/" .. path)
      if not text or not text:find("\n[%w_ *]-%f[%w_]" .. name .. "%([^;{]*{") then
        missing[#missing + 1] = path .. ":" .. name
      end
    end
    assert.same({}, missing)
    assert.is_true(count > 30)
  end)

  it("names files that are there", function()
    for path in readme:gmatch "%f[%w_/]([%w_]+/[%w_/]+%.%a+)" do
      if not path:find "^build" then
        assert(text_of(path) or text_of("engine/" .. path), path)
      end
    end
  end)
end)
