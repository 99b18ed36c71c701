// Points of one's own: a file that is chosen or dropped, or lines that are pasted.

import { find } from "./dom.js";

export function offerPoints({ take, refuse }) {
  const dialog = find("points-dialog");
  const read = async (file) => {
    let bytes;
    try {
      bytes = await file.arrayBuffer();
    } catch {
      refuse(`${file.name} cannot be read. Try to open it again.`);
      return null;
    }
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      refuse(`${file.name} is not UTF-8 text. Save it as UTF-8: names would be mixed up otherwise.`);
      return null;
    }
  };
  find("open").addEventListener("click", () => {
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
  find("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    dialog.close("cancel");  // what is wrong with the file is said on the page
    const text = await read(file);
    if (text !== null) take(text);
  });
  dialog.addEventListener("close", () => {
    const text = find("pasted").value;
    if (dialog.returnValue !== "send") return;
    if (text.trim() === "") refuse("No points were given. Choose a file, or paste a header and some lines.");
    else take(text);
  });
  acceptDrops(async (file) => {
    const text = await read(file);
    if (text !== null) take(text);
  });
}

function acceptDrops(take) {
  const cover = find("drop");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  window.addEventListener("dragenter", (event) => {
    if (hasFiles(event)) cover.hidden = false;
  });
  window.addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) cover.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    cover.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) take(file);
  });
}
