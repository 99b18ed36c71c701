// Numbers, times and kinds of evidence in words.

const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

const SHORT = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });

export const shortDay = (date) => SHORT.format(new Date(`${date}T00:00:00Z`));

export const dayText = (date) => DAY.format(new Date(`${date}T00:00:00Z`));

export const clockAt = (index, slotMinutes) => {
  const minutes = index * slotMinutes;
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
};

// Each slot with what the wall clock shows when it begins, also where that time is skipped on this day.
export const withClocks = (day) => ({
  ...day,
  slots: day.slots.map((slot) => ({ ...slot, clock: clockAt(slot.slot, day.slot_minutes) })),
});

export const percent = (share) => {
  if (share > 0 && share < 0.01) return "< 1 %";
  return share > 0.995 && share < 1 ? "> 99 %" : `${Math.round(share * 100)} %`;
};

export const STATUS = { observed: "observed", recovered: "recovered", left_missing: "left missing" };

export const EVIDENCE = {
  day: "this day's other slots",
  past: "the person's earlier days",
  others: "where other people go",
  space: "how far places are",
};

// One of five classes of probability, 0 to 4: the colours of the page.
export const shade = (probability) => Math.min(4, Math.floor(probability * 5));

export function slotLabel(slot) {
  const head = `${slot.clock}, ${STATUS[slot.status]}`;
  if (slot.status === "observed") return `${head}, ${slot.location}`;
  if (slot.status === "recovered") return `${head}, ${slot.location}, ${percent(slot.probability)} sure`;
  return `${head}, ${slot.reason ?? "no answer"}`;
}

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
