// Apps that give up and ask again by themselves: one purchase, one debit. The Python twin
// (tests/sdk/python/test_impatient.py) explains the table. Promise: however the first answer was lost,
// the app gets an answer and the books hold one debit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withDoor } from "./harness.mjs";

const messages = [{ role: "user", content: "Name three rivers of Europe." }];
const lanes = ["/v1", "/agent/v1"].flatMap((lane) => [false, true].map((stream) => ({ lane, stream })));
const title = ({ lane, stream }) => `${lane}${stream ? ", streamed" : ""}`;

async function ask(door, { lane, stream }) {
  const client = door.client({ timeout: 700, maxRetries: 8 }, lane);
  const answer = await client.chat.completions.create({ model: "auto", messages, stream });
  if (!stream) return answer.choices[0].message.content;
  let text = "";
  for await (const chunk of answer) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

for (const row of lanes) {
  const path = `${row.lane}/chat/completions`;

  test(`a slow answer is bought once: ${title(row)}`, { timeout: 120_000 }, () =>
    withDoor(async (door) => {
      await door.fault({ match: { path }, fault: { hold: "until the app has asked again" } });
      door.beforeSecond = () => door.release("until the app has asked again");

      assert.ok(await ask(door, row));

      assert.ok(door.sent >= 2);
      const books = await door.books();
      assert.equal(books.debits.length, 1);
      assert.equal(books.requests_by_route[`POST ${path}`], 1);
    }));

  test(`a purchase outlives a kill of bursar: ${title(row)}`, { timeout: 120_000 }, () =>
    withDoor(async (door) => {
      door.doubtAllowed = true;
      await door.fault({ match: { path }, fault: { hold: "until bursar is back" } });
      door.beforeSecond = async () => {
        await door.killAndStart();
        await door.release("until bursar is back");
      };

      assert.ok(await ask(door, row));

      assert.equal((await door.books()).debits.length, 1);
    }));
}
