// Embeddings, pictures and endpoints through bursar's door with the unmodified OpenAI Node SDK.
// Why: this SDK asks for embeddings as base64 and unpacks them by itself, and uploads pictures as a form of its own.
// Promise: what it unpacks is what the service computed, and each call is one debit in its books.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toFile } from "openai";
import { withDoor } from "./harness.mjs";

const door = (name, use) => test(name, { timeout: 120_000 }, () => withDoor(use));

const amounts = async (door) => (await door.books()).debits.map((debit) => debit.amount_micro_usd);

door("a synonym is nearer than another word", async (door) => {
  const answer = await door.client().embeddings.create({
    model: "auto",
    input: ["the physician", "a doctor", "a tax"],
    dimensions: 256,
  });

  const [physician, doctor, tax] = answer.data.map((entry) => entry.embedding);
  assert.deepEqual([physician.length, doctor.length, tax.length], [256, 256, 256]);
  const nearness = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0);
  assert.ok(nearness(doctor, physician) > 0.5);
  assert.ok(nearness(doctor, tax) < 0.5);
  assert.equal((await door.books()).debits[0].route, "/v1/embeddings");
});

door("a vector is the same in base64 and in numbers", async (door) => {
  const ask = (encoding_format) => door.client().embeddings.create({ model: "auto", input: "a wide river", encoding_format });
  const [numbers, packed] = [await ask("float"), await ask("base64")];

  const bytes = Buffer.from(packed.data[0].embedding, "base64");
  const unpacked = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  assert.deepEqual([...unpacked], numbers.data[0].embedding.map(Math.fround));
});

door("a picture is made, edited, and billed by its header", async (door) => {
  const client = door.client();
  const made = await client.images
    .generate({ model: "auto", prompt: "a red circle", size: "128x64", response_format: "b64_json" })
    .withResponse();
  const png = Buffer.from(made.data.data[0].b64_json, "base64");
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [128, 64]);

  const image = await toFile(png, "circle.png", { type: "image/png" });
  const edited = await client.images.edit({ image, prompt: "change red to blue" }).withResponse();

  assert.equal(edited.data.data[0].revised_prompt, "change red to blue");
  assert.notEqual(edited.data.data[0].b64_json, made.data.data[0].b64_json);
  const billed = [made, edited].map(({ response }) => Number(response.headers.get("x-service-billed")));
  assert.deepEqual(await amounts(door), billed);
});

door("a stream of an endpoint is read to its end by its id", async (door) => {
  const client = door.client();
  const deployed = await fetch(`${door.url}/v1/endpoints`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ task: "contact-extraction", name: "contacts" }),
  });
  assert.match(await deployed.text(), /event: complete\n/);
  const messages = [{ role: "user", content: "Extract the email: ada@kite.example" }];

  const stream = await client.chat.completions.create({ model: "contacts", messages, stream: true });
  let text = "";
  for await (const chunk of stream) {
    assert.equal(chunk.model, "contacts");
    text += chunk.choices[0]?.delta?.content ?? "";
  }

  assert.match(text, /ada@kite\.example/);
  assert.equal((await amounts(door)).length, 1);
});

door("a text is said as bytes and heard as a form", async (door) => {
  const client = door.client();
  const text = "The river is wide and the water is cold.";
  const said = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: text });
  assert.equal(said.headers.get("content-type"), "audio/wav");
  const bytes = Buffer.from(await said.arrayBuffer());
  assert.equal(bytes.subarray(0, 4).toString(), "RIFF");

  const file = await toFile(bytes, "river.wav", { type: "audio/wav" });
  const heard = await client.audio.transcriptions.create({ model: "whisper-1", file, language: "en" });
  assert.equal(heard.text, text);
  await assert.rejects(
    client.audio.transcriptions.create({ model: "whisper-1", file, response_format: "srt" }),
    (error) => error.status === 400 && error.param === "response_format",
  );

  assert.deepEqual((await door.books()).debits.map((debit) => debit.route), ["/v1/audio/speech", "/v1/audio/transcriptions"]);
});
