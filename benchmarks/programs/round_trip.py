"""A worker of a job that breaks once. In the first attempt rank 0 waits for the word, a FIFO, and kills itself; in the next
one all say so, wait for the word again, and end.
"""

import os
import sys
import time

SIGKILL = 9  # `import signal` would be a third of what this program takes to start


def say(text: str) -> None:
    sys.stdout.write(f"{text} {time.monotonic()}\n")
    sys.stdout.flush()


def wait_for_the_word(name: str) -> None:
    with open(os.path.join(os.environ["BENCHMARK_STAGE"], name)) as fifo:
        fifo.read()


broken = os.path.join(os.environ["BENCHMARK_STAGE"], "broken")
again = os.path.exists(broken)
say("runs")
if not again and os.environ["RANK"] == "0":
    wait_for_the_word("break")
    open(broken, "w").close()
    say("dies")
    os.kill(os.getpid(), SIGKILL)
if not again:
    time.sleep(600)
if os.environ["RANK"] == "0":
    wait_for_the_word("end")
    open(os.path.join(os.environ["BENCHMARK_STAGE"], "ending"), "w").close()
while not os.path.exists(os.path.join(os.environ["BENCHMARK_STAGE"], "ending")):
    time.sleep(0.05)
say("ends")
