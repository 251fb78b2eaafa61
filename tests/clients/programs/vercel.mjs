// The Vercel AI SDK: a conversation of two turns with its default `store: true`, so that the second refers to what the
// first answered; then a tool and a stream.
import { openai } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import assert from "node:assert/strict";

const messages = [{ role: "user", content: "Remember the number 7." }];
const first = await generateText({ model: openai("auto"), messages });
assert(first.text.length > 0);
messages.push(...first.response.messages, { role: "user", content: "Which number was it?" });
const second = await generateText({ model: openai("auto"), messages });
assert(second.text.length > 0);
assert(second.usage.inputTokens > first.usage.inputTokens, "the second turn holds the first");

const asked = [];
const getWeather = tool({
  description: "Current weather of a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    asked.push(city);
    return `sunny in ${city}`;
  },
});
const third = await generateText({
  model: openai("auto"),
  prompt: "What is the weather in Paris?",
  tools: { get_weather: getWeather },
  stopWhen: isStepCount(3),
});
assert.deepEqual(asked, ["Paris"]);
let words = "";
for await (const part of streamText({ model: openai("auto"), prompt: "Say something." }).textStream) words += part;
assert(words.length > 0);
console.log(third.text);
