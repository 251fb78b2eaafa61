"""DSPy: a program of one step. Its form is checked by DSPy."""

import dspy

dspy.configure(lm=dspy.LM("openai/auto"))
answer = dspy.Predict("question -> answer")(question="What is 2 + 3?")
print(answer.answer)
