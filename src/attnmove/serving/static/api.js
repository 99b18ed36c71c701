// The service, as this page uses it: the same API that programs have.

const KEY = "attnmove-token";

export class TokenNeeded extends Error {}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

export async function call(path, { method = "GET", headers = {}, body, signal } = {}) {
  const token = sessionStorage.getItem(KEY);
  const shown = token === null ? {} : { Authorization: `Bearer ${token}` };
  let response;
  try {
    response = await fetch(path, { method, headers: { ...headers, ...shown }, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Is it still running?");
  }
  if (response.status === 401) throw new TokenNeeded("the service asks for a token");
  if (!response.ok) throw new Error(await reason(response));
  return response;
}

async function reason(response) {
  try {
    return sentence((await response.json()).error.message);
  } catch {
    return `The service answered with status ${response.status}.`;
  }
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;

// A source is {points: [...]} or {csv: "..."}; the options are those of the service.
export function recover(source, options, { accept = "application/json", signal } = {}) {
  const headers = { Accept: accept, "Content-Type": source.csv === undefined ? "application/json" : "text/csv" };
  if (source.csv === undefined) {
    const body = JSON.stringify({ ...options, points: source.points });
    return call("v1/recover", { method: "POST", headers, body, signal });
  }
  const query = new URLSearchParams(options).toString();
  return call(`v1/recover${query ? "?" : ""}${query}`, { method: "POST", headers, body: source.csv, signal });
}
