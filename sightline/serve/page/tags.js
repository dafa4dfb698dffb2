// Tags: markup carried over to a translation, both sides rendered without anything that could act.

import { make } from "./figure.js";
import { post } from "./api.js";
import { Progress, copyMenu, textBox } from "./parts.js";
import { tagsAsCommand, tagsAsPython } from "./sharing.js";

const EXAMPLE = "We saw <b>a white dog</b> in the <i>garden</i>.";
const RENDERED = new Set(["b", "i", "u", "em", "strong", "s", "sub", "sup", "code", "mark", "small", "q", "span"]);
const COLOURS = 5;

export function tagsView(place, context) {
  const { values, model } = context;
  const progress = new Progress();
  let source = values.text ?? EXAMPLE;
  const box = textBox({ label: "Text with markup", value: source, big: true, onPause: (text) => { source = text.trim(); translate(); } });
  const answer = make("div", { class: "tags-answer" });

  function translate() {
    context.save({ text: source === EXAMPLE ? "" : source });
    if (!source) return;
    progress.run(async (signal, isLatest) => {
      const found = await post("/api/tags", { source, model: model.name }, signal);
      if (!isLatest()) return;
      const [before, after] = [render(source), render(found.markup)];
      answer.replaceChildren(
        make("div", { class: "two" },
          make("section", { "aria-label": "Source" }, before.element),
          make("section", { "aria-label": "Translation" }, after.element)),
        moved(before.elements, after.elements),
        make("pre", { class: "markup", tabindex: 0 }, found.markup));
    });
  }

  const described = () => ({ source, model: model.name });
  place.append(make("section", { class: "entry" }, box.element), progress.element, answer,
    copyMenu([["Copy as Python", () => tagsAsPython(described())], ["Copy as command", () => tagsAsCommand(described())]]));
  translate();
}

const MARKUP = /<!--.*?-->|<(\/?)([\p{L}][^\s<>/]*)((?:\s(?:"[^"]*"|'[^']*'|[^<>"'])*)?)>/gsu;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&nbsp;": "\u00a0", "&amp;": "&" };
const plain = (text) => text.replace(/&(?:lt|gt|quot|apos|nbsp|amp);/g, (name) => ENTITIES[name]);

/** Render markup: known elements without their attributes, all others as what they are called. Nothing of it is parsed as HTML. */
function render(markup) {
  const root = make("div", { class: "rendered", dir: "auto" });
  const elements = [];
  const open = [{ name: "", shown: root }];
  const chip = (text) => make("span", { class: "mark" }, text);
  const append = (...parts) => open.at(-1).shown.append(...parts);
  let end = 0;
  for (const match of markup.matchAll(MARKUP)) {
    append(plain(markup.slice(end, match.index)));
    end = match.index + match[0].length;
    const [whole, closing, given, attributes] = match;
    const name = given?.toLowerCase();
    const place = closing ? open.findLastIndex((one) => one.name === name) : -1;
    const hasEnd = name && !closing && !attributes.endsWith("/") && new RegExp(`</${RegExp.escape?.(given) ?? given.replace(/[^\p{L}\p{N}]/gu, "\\$&")}\\s*>`, "iu").test(markup.slice(end));
    if (hasEnd) {
      const shown = make(RENDERED.has(name) ? name : "span", { "data-tag": name, title: `<${name}>` });
      append(shown);
      const one = { name, number: elements.filter((other) => other.name === name).length, shown };
      elements.push(one);
      open.push(one);
    } else if (place > 0) {
      open.length = place;
    } else {
      append(chip(whole.length > 30 ? `${whole.slice(0, 29)}…` : whole));
    }
  }
  append(plain(markup.slice(end)));
  for (const one of elements) one.text = one.shown.textContent.trim();
  return { element: root, elements };
}

/** Say where each element went, and colour the two alike. */
function moved(before, after) {
  const list = make("ul", { class: "moved" });
  const order = after.map(({ name, number }) => `${name} ${number}`);
  before.forEach((one, index) => {
    const place = order.indexOf(`${one.name} ${one.number}`);
    const other = after[place];
    const colour = `hsl(${(index % COLOURS) * 72 + 210} 65% 50%)`;
    for (const part of [one, other]) part?.shown.style.setProperty("--tag", colour);
    const earlier = before.slice(0, index).filter((two) => order.indexOf(`${two.name} ${two.number}`) > place).length;
    list.append(make("li", {}, make("code", {}, `<${one.name}>`), " ", make("bdi", {}, `“${one.text}”`), " → ", make("bdi", {}, other ? `“${other.text}”` : "nothing"),
      earlier ? make("span", { class: "hint" }, " changed its place among the tags") : null));
  });
  return list;
}
