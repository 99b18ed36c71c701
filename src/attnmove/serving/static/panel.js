// What is known about the chosen slot: the place, how sure, the alternatives, and where the answer came from.

import { el } from "./dom.js";
import { EVIDENCE, STATUS, clockAt, dayText, percent, shade } from "./words.js";

export function panelOf(day, slot, { jump }) {
  const end = clockAt(slot.slot + 1, day.slot_minutes);
  const parts = [
    el("p", { class: "when" }, `${dayText(day.date)}, ${slot.clock}–${end}`),
    el("h2", {}, slot.location ?? "Not known"),
    slot.lon === null ? null : el("p", { class: "when" }, `${slot.lat.toFixed(4)}, ${slot.lon.toFixed(4)}`),
    el("p", { class: `pill ${slot.status}` }, STATUS[slot.status]),
  ];
  if (slot.status === "observed") parts.push(el("p", { class: "soft" }, "The phone reported from here; observed slots are never changed."));
  if (slot.status === "recovered") parts.push(sureness(slot));
  if (slot.status === "left_missing") parts.push(el("p", { class: "soft" }, `Left missing: ${slot.reason ?? "no answer"}.`));
  if (slot.alternatives?.length) parts.push(alternatives(slot));
  if (slot.origin) parts.push(...origin(day, slot, jump));
  return parts.filter((part) => part !== null);
}

function sureness(slot) {
  return el(
    "p",
    { class: `sure p${shade(slot.probability)}` },
    el("b", {}, percent(slot.probability)),
    " sure",
    bar(slot.probability, "meter"),
  );
}

function bar(share, kind) {
  return el("span", { class: `bar ${kind}`, "aria-hidden": "true", "--share": share });
}

function alternatives(slot) {
  const untrusted = slot.status === "left_missing";
  const first = untrusted ? 1 : 2;
  const items = slot.alternatives.map((other, i) =>
    el(
      "li",
      { class: `p${shade(other.probability)}` },
      el("span", { class: "badge", "aria-hidden": "true" }, String(i + first)),
      el("span", { class: "place" }, other.location ?? "?"),
      el("span", { class: "number" }, percent(other.probability)),
      bar(other.probability, "thin"),
    ),
  );
  const title = untrusted ? "Places it might have been" : "Alternatives";
  return el("section", {}, el("h3", {}, title), el("ol", { class: "places", start: first }, ...items));
}

function origin(day, slot, jump) {
  const { origin } = slot;
  const kinds = Object.keys(EVIDENCE).filter((kind) => origin[kind] > 0.005);
  const shares = el(
    "ul",
    { class: "shares" },
    ...kinds.map((kind) =>
      el(
        "li",
        { class: kind },
        el("span", { class: "key", "aria-hidden": "true" }),
        el("span", { class: "place" }, EVIDENCE[kind]),
        el("span", { class: "number" }, percent(origin[kind])),
      ),
    ),
  );
  const whole = el("div", { class: "stack", "aria-hidden": "true" }, ...kinds.map((kind) => el("span", { class: kind, "--share": origin[kind] })));
  return [el("section", {}, el("h3", {}, "Where it comes from"), whole, shares, sighting(day, origin, jump))];
}

function sighting(day, origin, jump) {
  if (origin.date === null || origin.slot === null) return null;
  const when = clockAt(origin.slot, day.slot_minutes);
  const text = origin.date === day.date ? `${when} on this day` : `${when} on ${dayText(origin.date)}`;
  return el(
    "p",
    { class: "soft" },
    "The sighting that counted most: ",
    el("button", { type: "button", class: "link", onclick: () => jump(origin.date, origin.slot) }, text),
  );
}
