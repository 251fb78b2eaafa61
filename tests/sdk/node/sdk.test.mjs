// The unmodified OpenAI Node SDK through bursar's door.
// Why: it differs from the Python one where it hurts: it shows another part of an error body, announces
// its patience under another name, and uploads 31 MB again when the refusal comes as a closed
// connection. Promise: an app changes its base URL and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { withDoor } from "./harness.mjs";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "Name three rivers of Europe." }];
const weather = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
      required: ["city", "unit"],
      additionalProperties: false,
    },
  },
};

const door = (name, use) => test(name, { timeout: 120_000 }, () => withDoor(use));

door("a chat is answered", async (door) => {
  const answer = await door.client().chat.completions.create({ model: "auto", messages });

  assert.equal(answer.model, "auto");
  assert.ok(answer.choices[0].message.content);
});

door("a stream is read to its end and settled by its comments", async (door) => {
  const stream = await door.client().chat.completions.create({ model: "auto", messages, stream: true });
  let text = "";
  let chunks = 0;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    chunks++;
  }

  assert.ok(chunks > 2);
  assert.ok(text);
  const [entry] = door.entries();
  assert.equal(entry.state, "settled");
  assert.equal(entry.stream, true);
});

door("a tool loop runs on the agent lane", async (door) => {
  const client = door.client({}, "/agent/v1");
  const question = [{ role: "user", content: "What is the weather in Oslo in celsius?" }];
  const first = await client.chat.completions.create({
    model: "auto",
    messages: question,
    tools: [weather],
    tool_choice: "required",
  });
  const { message } = first.choices[0];
  const [call] = message.tool_calls;
  assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)).sort(), ["city", "unit"]);

  const second = await client.chat.completions.create({
    model: "auto",
    messages: [...question, message, { role: "tool", tool_call_id: call.id, content: '{"celsius": -3}' }],
    tools: [weather],
  });

  assert.ok(second.choices[0].message.content);
});

door("the receipt is in reach of the app", async (door) => {
  const { data, response } = await door.client().chat.completions.create({ model: "auto", messages }).withResponse();

  assert.ok(data.choices[0].message.content);
  const [entry] = door.entries();
  assert.equal(response.headers.get("x-bursar-entry"), entry.id);
  assert.equal(Number(response.headers.get("x-service-billed")), entry.billed_micro_usd);
});

door("the text of a refusal reaches the app", async (door) => {
  const refused = door.client().chat.completions.create({ model: "gpt-none", messages });

  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    // The text itself, not the JSON of the body or "no body", as it is without the added `error` object.
    assert.match(error.message, /^404 [^{]*auto/);
    return true;
  });
});

door("an impatient app gets the answer already under way, billed once", async (door) => {
  await door.fault({ match: { path: CHAT }, times: 0, fault: { delay_ms: 5000 } });
  const client = door.client({ timeout: 2000, maxRetries: 2 });

  const answer = await client.chat.completions.create({ model: "auto", messages });

  assert.ok(answer.choices[0].message.content);
  assert.ok(door.sent >= 2);
  const books = await door.books();
  assert.equal(books.debits.length, 1);
  assert.equal(books.requests_by_route[`POST ${CHAT}`], 1);
});

door("31 MB is refused once", async (door) => {
  const large = [{ role: "user", content: "river ".repeat((31 * 1024 * 1024) / 6) }];
  const refused = door.client().chat.completions.create({ model: "auto", messages: large });

  await assert.rejects(refused, (error) => {
    assert.equal(error.status, 413);
    assert.match(error.message, /30/);
    return true;
  });
  assert.equal(door.sent, 1);
  assert.deepEqual(door.entries(), []);
});
