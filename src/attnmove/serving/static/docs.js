// The OpenAPI description as a page; works without the internet.

import { el, find } from "./dom.js";

const json = (value) => el("pre", { tabindex: "0" }, el("code", {}, JSON.stringify(value, null, 2)));
const folded = (title, value) => el("details", {}, el("summary", {}, title), json(value));

function resolved(schema, components) {
  const name = schema?.$ref?.split("/").at(-1);
  return name ? (components[name] ?? schema) : schema;
}

function typeOf(schema = {}) {
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((type) => type !== "null").join(" or ");
  return schema.type ?? "any";
}

function table(heads, rows) {
  const head = el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text))));
  return el("table", {}, head, el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", {}, text))))));
}

function section(path, method, operation, components) {
  const parameters = (operation.parameters ?? []).map((one) => [one.name, one.in, typeOf(one.schema), one.description ?? one.schema?.description ?? ""]);
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  const responses = Object.entries(operation.responses ?? {});
  return el(
    "section",
    {},
    el("h2", {}, el("span", { class: "method" }, method.toUpperCase()), el("code", {}, path)),
    el("p", {}, operation.summary ?? ""),
    operation.description ? el("p", { class: "soft" }, operation.description) : null,
    parameters.length ? table(["parameter", "in", "type", "what it is"], parameters) : null,
    ...bodies.map(([type, body]) => folded(`body: ${type}`, resolved(body.schema, components))),
    table(["status", "when"], responses.map(([status, response]) => [status, response.description ?? ""])),
    ...responses
      .flatMap(([status, response]) => Object.entries(response.content ?? {}).map(([type, body]) => [status, type, body.schema]))
      .filter(([status, , schema]) => status === "200" && schema?.$ref)
      .map(([, type, schema]) => folded(`answer: ${type}`, resolved(schema, components))),
  );
}

async function show() {
  find("origin").textContent = new URL(".", location.href).href;
  const description = await (await fetch("openapi.json")).json();
  const components = description.components?.schemas ?? {};
  const sections = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(path, method, operation, components)),
  );
  find("operations").replaceChildren(...sections);
}

show().catch(() => find("operations").replaceChildren(el("p", {}, "The description cannot be loaded. Is the service still running?")));
