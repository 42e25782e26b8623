# Found in the soak (S9 strong): b stood still while its world came and went, and started by what it had been told before. Its agent was
# paused, which excuses it; the judge had forgotten that too early.
world max=1 workers=2 backend=lease seed=9 fence=3
start a
start b
pass 30
pause b 7
start a
late-write a 2
pass 2.02
crash a
start c
