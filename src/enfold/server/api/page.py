"""The page at /docs: the API's description for people, without anything from elsewhere."""

from __future__ import annotations

from starlette.responses import HTMLResponse

_POLICY = "default-src 'self' 'unsafe-inline'"
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>enfold API</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 2rem 0 .5rem; text-transform: capitalize }
details { border-bottom: 1px solid #8884; padding: .4rem 0 }
summary { cursor: pointer }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { overflow: auto; background: #8881; padding: .6rem; border-radius: .3rem }
b { display: inline-block; min-width: 4.5rem; font: bold 13px ui-monospace, monospace }
th, td { text-align: left; padding-right: 1rem; vertical-align: top; font-weight: normal }
</style>
<h1>enfold API</h1>
<p>The same as JSON: <a href="openapi.json">openapi.json</a>. An access token, where one is needed,
goes into the header <code>Authorization: Bearer …</code> or <code>x-enfold-token</code>.</p>
<main>Loading…</main>
<script>
const make = (name, text, ...children) => {
  const element = document.createElement(name)
  if (text) element.textContent = text
  element.append(...children)
  return element
}
const resolve = (api, schema) =>
  schema && schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema
const shown = (api, media) => {
  const content = media && media.content && Object.values(media.content)[0]
  const schema = content && resolve(api, content.schema)
  if (!schema) return []
  const value = (schema.examples && schema.examples[0]) || schema
  return [make("pre", JSON.stringify(value, null, 2))]
}
const operation = (api, path, method, about) => {
  const rows = (about.parameters || []).map(each => make("tr", "",
    make("td", "", make("code", each.name)),
    make("td", each.in + (each.required ? ", required" : "")),
    make("td", each.description || "")))
  const good = Object.entries(about.responses).find(([status]) => status.startsWith("2"))
  return make("details", "",
    make("summary", "", make("b", method.toUpperCase()), make("code", path), " " + about.summary),
    make("p", about.description || ""),
    ...(rows.length ? [make("table", "", ...rows)] : []),
    ...(about.requestBody ? [make("p", "Body"), ...shown(api, about.requestBody)] : []),
    make("p", "Answers " + good[0]), ...shown(api, good[1]))
}
fetch("openapi.json").then(answer => answer.json()).then(api => {
  const nouns = {}
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, about] of Object.entries(methods))
      (nouns[about.tags ? about.tags[0] : "api"] ||= []).push(operation(api, path, method, about))
  document.querySelector("main").replaceChildren(
    ...Object.entries(nouns).flatMap(([noun, all]) => [make("h2", noun), ...all]))
})
</script>
</html>
"""


async def docs_page() -> HTMLResponse:
    """The page, which reads the description and lists every operation."""
    return HTMLResponse(
        _PAGE, headers={"content-security-policy": "default-src 'self' 'unsafe-inline'"}
    )
