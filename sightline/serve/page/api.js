// Asking the server. What it refuses comes back as an Error whose message is its one sentence.

export class Refusal extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer: is it still running?");
  }
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({}));
    throw new Refusal(error ?? `The server answered with ${response.status}.`);
  }
  return response;
}

const asJson = (body, signal, accept = "application/json") => ({
  method: "POST", headers: { "content-type": "application/json", accept }, body: JSON.stringify(body), signal,
});

export const get = async (path) => (await ask(path, {})).json();
export const post = async (path, body, signal) => (await ask(path, asJson(body, signal))).json();
export const postForText = async (path, body) => (await ask(path, asJson(body))).text();

/** Yield the server-sent events of an answer as [kind, data]. */
export async function* stream(path, body, signal) {
  const response = await ask(path, asJson(body, signal, "text/event-stream"));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      const data = JSON.parse(fields.data);
      if (fields.event === "error") throw new Refusal(data.error);
      yield [fields.event, data];
    }
  }
}
