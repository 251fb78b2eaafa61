// Apps and tokens as openai-node sees them. Promise: the token is the API key; a wrong one is an
// AuthenticationError with the text of what to do, after one request.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { withDoor } from "./harness.mjs";

const CHAT = { model: "auto", messages: [{ role: "user", content: "What is 2 + 3?" }] };

test("the token is the API key", async () => {
  await withDoor(async (door) => {
    const { token } = JSON.parse(door.ask("app", "add", "nightly"));

    const answer = await door.client({ apiKey: token }).chat.completions.create(CHAT);

    assert.ok(answer.choices[0].message.content);
    assert.deepEqual(door.entries().map((entry) => entry.app), ["nightly"]);
  });
});

test("a wrong token is an AuthenticationError at once", async () => {
  await withDoor(async (door) => {
    door.ask("app", "add", "nightly");

    const asked = door.client({ apiKey: "unused" }).chat.completions.create(CHAT);

    await assert.rejects(asked, (error) => {
      assert.ok(error instanceof OpenAI.AuthenticationError, String(error));
      assert.equal(error.code, "token_refused");
      assert.match(error.message, /bursar app add NAME/);
      return true;
    });
    assert.equal(door.sent, 1, "the SDK tried again");
    assert.deepEqual((await door.books()).debits, []);
  });
});
