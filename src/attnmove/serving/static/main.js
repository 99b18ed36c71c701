// The page: what was loaded, which user, day and slot are chosen, and everything that follows from it.

import { TokenNeeded, call, hasToken, keepToken, recover } from "./api.js";
import { find, options } from "./dom.js";
import { groundOf } from "./ground.js";
import { offerPoints } from "./intake.js";
import { panelOf } from "./panel.js";
import { Path } from "./path.js";
import { Player } from "./player.js";
import { Progress, dismissable, tell } from "./notices.js";
import { Strip } from "./strip.js";
import { STATUS, dayText, percent, plural, shortDay, withClocks } from "./words.js";

const WORTH_SHOWING = 0.01;  // probability from which on an alternative is tinted on the map
const state = { source: null, result: null, day: 0, slot: 0, examples: [] };
const strip = new Strip(find("strip"), { choose: (slot, how) => choose(slot, how), enter: () => find("panel").focus() });
const player = new Player({ step: () => step() });
const progress = new Progress(find("progress"));
let ground = null;
let path = null;
let later = 0;
let wanted = null;  // a source that was asked about and is not shown yet

const days = () => state.result?.days ?? [];
const today = () => days()[state.day];

async function start() {
  const [model, shapes, examples] = await withToken(() =>
    Promise.all(["v1/model", "v1/locations.geojson", "v1/examples"].map(async (address) => (await call(address)).json())),
  );
  describe(model);
  ground = groundOf(find("map"), shapes, { tiles: model.tiles, moved: () => path?.redraw() });
  path = new Path(find("path"), { project: (place) => ground.project(place), choose: (slot) => choose(slot, { focus: true }) });
  if (model.bounds) ground.fit(model.bounds);
  state.examples = examples.examples;
  const entries = state.examples.map((example, i) => [String(i), `${example.name}: ${example.about}`]);
  options(find("example"), [["", "none"], ...entries], "");
  if (state.examples.length > 0) await load({ points: state.examples[0].points }, "0");
  else showNothing();
}

function describe(model) {
  const facts = [model.model, plural(model.locations, "location"), `${model.slot_minutes}-minute slots`, model.timezone];
  find("about").textContent = facts.join(" · ");
  find("about").title = model.summary;
  find("zone").textContent = model.timezone;
}

// Do it, and when the service asks for a token, ask the person and do it again.
async function withToken(action) {
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof TokenNeeded)) throw error;
      await askToken();
    }
  }
}

function askToken() {
  const dialog = find("token-dialog");
  if (hasToken()) find("token-about").textContent = "The token is not, or no longer, the right one. Please give another.";
  find("token").value = "";
  dialog.showModal();
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      const given = find("token").value.trim();
      if (dialog.returnValue === "cancel" || given === "") reject(new Error("Without a token the service answers nothing. Reload the page to give one."));
      else resolve(keepToken(given));
    }, { once: true });
  });
}

function policy() {
  const [sure, gap] = [Number(find("confidence").value) / 100, find("gap").value];
  return { ...(sure > 0 ? { min_confidence: sure } : {}), ...(gap ? { max_gap: gap } : {}) };
}

// Ask about another source; it becomes the page's when there is an answer, and until then the one before stays.
function load(source, example = "") {
  find("example").value = example;
  return ask({ ...source, example }, { fresh: true });
}

// Ask again, with another policy: about the source that is under way, or the one that is shown.
function refresh() {
  if (wanted) ask(wanted, { fresh: true });
  else if (state.source) ask(state.source);
}

async function ask(source, { fresh = false } = {}) {
  const signal = progress.begin("Filling the gaps");
  if (fresh) wanted = source;
  try {
    const result = await withToken(async () => (await recover(source, policy(), { signal })).json());
    tell(null);
    state.source = source;
    wanted = null;
    show(result, fresh);
  } catch (error) {
    if (signal.aborted) tell(signal.reason === "newer" ? null : "Cancelled. The map shows what was there before.");
    else tell(error.message);
    if (signal.reason !== "newer" && wanted === source) {
      wanted = null;
      find("example").value = state.source?.example ?? "";
    }
  } finally {
    progress.end(signal);
  }
}

function show(result, fresh) {
  state.result = { ...result, days: result.days.map(withClocks) };
  if (fresh) Object.assign(state, { day: 0, slot: 0 });
  used(result.points);
  if (result.days.length === 0) return showNothing();
  find("empty").hidden = true;
  document.body.classList.add("filled");
  const users = [...new Set(days().map((day) => day.user))];
  options(find("user"), users.map((user) => [user, user]), today()?.user);
  find("user-field").hidden = users.length < 2;
  return showDay(Math.min(state.day, days().length - 1), { fit: fresh, slot: fresh ? leastSure(days()[0]) : state.slot });
}

// The recovered slot with the most to tell: the one that is least sure.
function leastSure(day) {
  const recovered = day.slots.filter((slot) => slot.status === "recovered");
  return recovered.sort((a, b) => a.probability - b.probability)[0]?.slot ?? 0;
}

function showNothing() {
  document.body.classList.remove("filled");
  find("empty").hidden = false;
  strip.clear();
  path.clear();
  ground.highlight({});
  find("panel").replaceChildren();
  find("counts").textContent = "";
  options(find("date"), [], "");
}

function used({ used: n, refused }) {
  const lost = Object.entries(refused).map(([reason, count]) => `${count.toLocaleString("en")} ${reason.replaceAll("_", " ")}`);
  find("used").textContent = `${plural(n, "point")} used${lost.length ? `; not used: ${lost.join(", ")}` : ""}.`;
}

function showDay(index, { fit = true, slot = null } = {}) {
  state.day = index;
  const day = today();
  const mine = days().map((one, i) => [i, one]).filter(([, one]) => one.user === day.user);
  const oneYear = new Set(mine.map(([, one]) => one.date.slice(0, 4))).size === 1;
  const dateText = oneYear ? shortDay : dayText;
  find("user").value = day.user;
  options(find("date"), mine.map(([i, one]) => [String(i), dateText(one.date)]), String(index));
  find("previous").disabled = mine[0][0] === index;
  find("next").disabled = mine.at(-1)[0] === index;
  const count = (status) => day.slots.filter((one) => one.status === status).length;
  find("counts").textContent = Object.keys(STATUS).map((status) => `${count(status)} ${STATUS[status]}`).join(" · ");
  strip.show(day);
  path.show(day);
  if (fit) fitTo(day);
  choose(slot ?? Math.min(state.slot, day.slots.length - 1));
}

function fitTo(day) {
  const places = day.slots.filter((slot) => slot.lon !== null);
  if (places.length === 0) return;
  const [lon, lat] = [places.map((slot) => slot.lon), places.map((slot) => slot.lat)];
  ground.fit([Math.min(...lon), Math.min(...lat), Math.max(...lon), Math.max(...lat)]);
}

function choose(index, { focus = false } = {}) {
  const slot = today()?.slots[index];
  if (slot === undefined) return;
  state.slot = index;
  strip.select(index, { focus });
  path.select(slot);
  find("panel").replaceChildren(...panelOf(today(), slot, { jump }));
  const places = today().slots.map((one) => [one.location, "visited"]);
  const likely = (slot.alternatives ?? []).filter((other) => other.probability >= WORTH_SHOWING);
  const others = likely.map((other) => [other.location, "alternative"]);
  ground.highlight(Object.fromEntries([...places, ...others, [slot.location, "answer"]].filter(([name]) => name !== null)));
  find("path").setAttribute("aria-label", `Path of ${dayText(today().date)}; ${find("counts").textContent}`);
}

function jump(date, slot) {
  const index = days().findIndex((day) => day.date === date && day.user === today().user);
  if (index < 0) return;
  if (index !== state.day) showDay(index, { slot });
  choose(slot, { focus: true });
}

// One slot on; false at the end of the day.
function step() {
  const last = (today()?.slots.length ?? 0) - 1;
  if (state.slot >= last) return false;
  choose(state.slot + 1);
  return state.slot < last;
}

async function download(form) {
  if (wanted) return tell("The answer is still on its way. Download it when it is there.");
  const endings = { "text/csv": "csv", "application/geo+json": "geojson", "application/json": "json" };
  if (state.result === null) return tell("There is nothing to download yet. Pick an example, or give points.");
  const signal = progress.begin("Preparing the file");
  try {
    const response = await withToken(() => recover(state.source, policy(), { accept: form, signal }));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = `recovery.${endings[form]}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    if (!signal.aborted) tell(error.message);
  } finally {
    progress.end(signal);
  }
  return null;
}

function listen() {
  find("example").addEventListener("change", (event) => {
    const example = state.examples[Number(event.target.value)];
    if (event.target.value !== "" && example) load({ points: example.points }, event.target.value);
  });
  find("user").addEventListener("change", (event) => showDay(days().findIndex((day) => day.user === event.target.value)));
  find("date").addEventListener("change", (event) => showDay(Number(event.target.value)));
  find("previous").addEventListener("click", () => showDay(state.day - 1));
  find("next").addEventListener("click", () => showDay(state.day + 1));
  find("confidence").addEventListener("input", () => {
    find("confidence-shown").textContent = percent(Number(find("confidence").value) / 100);
    clearTimeout(later);
    later = setTimeout(refresh, 250);
  });
  find("gap").addEventListener("change", () => refresh());
  find("panel").addEventListener("keydown", (event) => {
    if (event.key === "Escape") strip.select(state.slot, { focus: true });
  });
  player.listen(() => {
    if (today() && state.slot >= today().slots.length - 1) choose(0);
    return today() !== undefined;
  });
  const menu = find("download");
  menu.addEventListener("click", (event) => {
    const { form } = event.target.dataset;
    if (form) {
      menu.open = false;
      download(form);
    }
  });
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") menu.open = false;
  });
  dismissable();
  offerPoints({ take: (csv) => load({ csv }), refuse: tell });
}

listen();
start().catch((error) => tell(error.message));
