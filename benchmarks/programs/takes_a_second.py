"""An import that takes as long as a large one does, on any machine."""

import time

time.sleep(1.0)
