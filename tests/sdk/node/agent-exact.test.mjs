// Streamed agent turns with `[streams] agent_receipts = "exact"`, by the unmodified OpenAI Node SDK.
// Why: it puts chunks together by other rules than the Python one: unknown members replace each other,
// and its runner calls tools by itself. Promise: what it puts together is a whole turn's message, and
// the ledger holds the amount of the sandbox's books.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withDoor } from "./harness.mjs";

const messages = [{ role: "user", content: "What is the weather in Oslo in celsius?" }];
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
const tools = { tools: [weather], tool_choice: "required" };

const EXACT = '[streams]\nagent_receipts = "exact"\n';
const door = (name, use) => test(name, { timeout: 120_000 }, () => withDoor(use, EXACT));

/** The entries are settled, each with its debit. */
async function settled(door, count) {
  const entries = door.entries();
  const { debits } = await door.books();
  assert.equal(entries.length, count);
  for (const entry of entries) {
    assert.equal(entry.state, "settled");
    const debit = debits.find((debit) => debit.key === entry.key);
    assert.ok(entry.billed_micro_usd > 0);
    assert.equal(entry.billed_micro_usd, debit.amount_micro_usd);
  }
}

door("chunks come in their order and end with the usage", async (door) => {
  const client = door.client({}, "/agent/v1");
  const stream = await client.chat.completions.create({
    model: "auto",
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await Array.fromAsync(stream);

  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.ok(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""));
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.ok(chunks.at(-1).usage.completion_tokens > 0);
  await settled(door, 1);
});

door("the stream helper puts text and tool calls together", async (door) => {
  const client = door.client({}, "/agent/v1");
  for (const wish of [{}, tools]) {
    const helper = client.chat.completions.stream({ model: "auto", messages, ...wish });
    const { choices, usage } = await helper.finalChatCompletion();
    const [{ message, finish_reason }] = choices;

    assert.equal(message.role, "assistant");
    assert.ok(usage.total_tokens > 0);
    if (wish === tools) {
      assert.equal(finish_reason, "tool_calls");
      const [call] = message.tool_calls;
      assert.equal(call.type, "function");
      assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)).sort(), ["city", "unit"]);
    } else {
      assert.equal(finish_reason, "stop");
      assert.equal(message.content, await helper.finalContent());
    }
  }
  await settled(door, 2);
});

door("the runner calls the tool and goes on in streams", async (door) => {
  const client = door.client({}, "/agent/v1");
  const asked = [];
  const answer = (given) => (asked.push(given), JSON.stringify({ celsius: -3 }));
  const { name, description, parameters } = weather.function;
  const runner = client.chat.completions.runTools({
    model: "auto",
    messages,
    stream: true,
    tools: [{ type: "function", function: { name, description, parameters, function: answer, parse: JSON.parse } }],
  });

  assert.ok(await runner.finalContent());
  assert.equal(asked.length, 1);
  assert.deepEqual(Object.keys(asked[0]).sort(), ["city", "unit"]);
  await settled(door, 2);
});
