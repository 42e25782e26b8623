"""Tell which signals are blocked."""

from __future__ import annotations

import stage


def main() -> None:
    with open("/proc/self/status") as status:
        (blocked,) = [line.split()[1] for line in status if line.startswith("SigBlk")]
    stage.tell(blocked)
    stage.wait_for_signal()


if __name__ == "__main__":
    main()
