"""A wrapped function that says when it is entered and when it is interrupted. It stays until then."""

import sys
import time

from elastic.inprocess import CallWrapper, Wrapper


def say(word: str) -> None:
    sys.stdout.write(f"{word} {time.monotonic()}\n")
    sys.stdout.flush()


@Wrapper()
def train(call: CallWrapper) -> None:
    say("in")
    try:
        with call.disable_hang_protection():
            while True:
                time.sleep(0.01)
    finally:
        say("out")


train()
