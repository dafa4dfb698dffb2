// The page: picks the view that the address names, and the model.

import { make } from "./figure.js";
import { get } from "./api.js";
import { choice } from "./parts.js";
import { readState, writeState } from "./state.js";
import { explainView } from "./explain.js";
import { alignView } from "./align.js";
import { tagsView } from "./tags.js";
import { classifyView, continueView } from "./outputs.js";
import { runsView } from "./runs.js";

const VIEWS = {
  explain: { name: "Explain", task: "translate", show: explainView },
  align: { name: "Align", task: "translate", show: alignView },
  tags: { name: "Tags", task: "translate", show: tagsView },
  classify: { name: "Classify", task: "classify", show: classifyView },
  continue: { name: "Continue", task: "continue", show: continueView },
  runs: { name: "Runs", task: null, show: runsView },
};

const main = document.querySelector("main");
const nav = document.querySelector("header nav");
const modelPlace = document.querySelector("header .model");
let close = null;

async function readyModels() {
  while (true) {
    const models = await get("/api/models");
    const failed = models.find(({ problem }) => problem);
    if (failed) throw new Error(failed.problem);
    if (models.every(({ ready }) => ready)) return models;
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

function open(server) {
  const asked = readState();
  const offered = Object.entries(VIEWS).filter(([id, view]) => (view.task
    ? server.models.some(({ task }) => task === view.task) : id !== "runs" || server.runs.length));
  const [id, view] = offered.find(([name]) => name === asked.view) ?? offered[0] ?? [null, null];
  nav.replaceChildren(...offered.map(([name, { name: text }]) => make("a", { href: `#${name}`, "aria-current": name === id ? "page" : null }, text)));
  const current = nav.querySelector("[aria-current]");
  nav.scrollLeft = current ? current.offsetLeft - nav.offsetLeft - 40 : 0; // a phone shows a part of the row
  close?.();
  close = null;
  modelPlace.replaceChildren();
  if (!view) {
    main.replaceChildren(make("p", {}, "None of this server's models translates, classifies or continues a text."));
    return;
  }
  const models = server.models.filter(({ task }) => task === view.task);
  const model = models.find(({ name }) => name === asked.values.model) ?? models[0];
  const context = {
    ...server, model, models, values: asked.values,
    save: (values) => writeState(id, { ...values, model: models.length > 1 ? model.name : "" }),
  };
  if (models.length > 1) {
    modelPlace.append(choice("Model", models.map(({ name }) => [name, name]), model.name, (name) => {
      writeState(id, { ...readState().values, model: name });
      open(server);
    }));
  } else if (model) {
    modelPlace.append(make("span", { class: "hint" }, model.name));
  }
  document.title = `${view.name} · Sightline`;
  main.replaceChildren();
  close = view.show(main, context) ?? null;
}

async function start() {
  try {
    const [models, methods, runs] = await Promise.all([readyModels(), get("/api/methods"), get("/api/runs")]);
    const server = { models, methods, runs };
    window.addEventListener("hashchange", () => open(server));
    open(server);
  } catch (error) {
    main.replaceChildren(make("p", { class: "problem", role: "alert" }, error.message));
  }
}

start();
