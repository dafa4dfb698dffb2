// Parts that several views share.

import { make } from "./figure.js";
import { Refusal, get } from "./api.js";

const LOOK_AGAIN = 1000; // milliseconds

/** A place that shows that something is under way, or the one sentence that says why it is not. */
export class Progress {
  constructor() {
    this.element = make("div", { class: "progress", role: "status" });
    this.count = 0;
  }

  /** Run something; only the latest run may write, and a refusal is told where the reader looks. */
  async run(task) {
    const number = ++this.count;
    this.controller?.abort();
    this.controller = new AbortController();
    this.element.replaceChildren();
    this.element.classList.add("busy");
    try {
      return await task(this.controller.signal, () => number === this.count);
    } catch (error) {
      if (error.name === "AbortError" || number !== this.count) return undefined;
      if (!(error instanceof Refusal)) console.error(error);
      const sentence = error instanceof Refusal ? error.message : "Something went wrong on this page.";
      this.element.replaceChildren(make("p", { class: "problem", role: "alert" }, sentence));
      return undefined;
    } finally {
      if (number === this.count) this.element.classList.remove("busy");
    }
  }
}

/** A box to type into, which tells when the reader pauses. */
export function textBox({ label, value, rows = 2, big = false, placeholder = "", onPause, drop = false }) {
  let pause;
  const box = make("textarea", { rows, placeholder, spellcheck: "false", class: big ? "big" : "", dir: "auto" });
  box.value = value;
  const grow = () => { box.style.height = "auto"; box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * 0.4)}px`; };
  box.addEventListener("input", () => {
    grow();
    clearTimeout(pause);
    pause = setTimeout(() => onPause?.(box.value), 450);
  });
  if (drop) {
    box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
    box.addEventListener("dragleave", () => box.classList.remove("over"));
    box.addEventListener("drop", async (event) => {
      box.classList.remove("over");
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      box.value = (await file.text()).replace(/\n$/, "");
      grow();
      onPause?.(box.value);
    });
  }
  requestAnimationFrame(grow);
  return { box, element: make("label", { class: "text-box" }, make("span", {}, label), box) };
}

/** A menu that copies code. */
export function copyMenu(entries) {
  const told = make("span", { class: "hint", role: "status" });
  const button = ([name, write]) => make("button", { type: "button", onclick: async () => {
    const text = write();
    try {
      await navigator.clipboard.writeText(text);
      told.textContent = "Copied.";
    } catch {
      shown.textContent = text; // where the browser forbids copying, it can be copied by hand
      shown.hidden = false;
    }
    setTimeout(() => { told.textContent = ""; }, 2000);
  } }, name);
  const shown = make("pre", { hidden: true, tabindex: 0 });
  return make("div", { class: "copy" }, ...entries.map(button), told, shown);
}

export const choice = (label, entries, chosen, change) => make("label", { class: "choice" }, make("span", {}, label),
  make("select", { onchange: (event) => change(event.target.value) },
    ...entries.map(([value, text]) => make("option", { value, selected: value === chosen }, text))));

/** List the methods that a model has, and those still to come: a server tries them one by one while it is idle. */
export async function offerMethods({ methods, model }, chosen, list, makeItem) {
  const listed = new Set();
  let known = model;
  while (known) {
    const offered = methods.filter(({ name }) => known.methods.includes(name) || chosen.includes(name));
    offered.forEach((method, index) => {
      if (listed.has(method.name)) return;
      listed.add(method.name);
      list.insertBefore(makeItem(method), list.children[index] ?? null);
    });
    if (known.knows_its_methods) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
    if (!list.isConnected) return;
    known = (await get("/api/models").catch(() => [])).find(({ name }) => name === model.name);
  }
}

export const words = (text) => text.split(/\s+/).filter(Boolean);
export const side = (list) => ({ tokens: list, words: list, word_ids: list.map((_, index) => index) });

/** Mark the words of a text that another text does not have in this order: the longest common sequence stays plain. */
export function changedWords(before, after) {
  const [a, b] = [words(before), words(after)];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const marked = [];
  for (let i = 0, j = 0; j < b.length;) {
    if (i < a.length && a[i] === b[j]) { marked.push([b[j], false]); i++; j++; }
    else if (i < a.length && table[i + 1][j] >= table[i][j + 1]) i++;
    else marked.push([b[j++], true]);
  }
  return marked;
}
