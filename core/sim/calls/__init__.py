"""A simulation of ranks whose function is restarted inside their processes, step by step and under faults: each rank's
threads, the gate between them, its monitor process, and the register that the ranks share.

All decisions are the core's own: `inprocess.transition`, `rendezvous.turn`, `agenda` and `caller`. The simulation models
the rest: the main thread with the places where a signal may interrupt it (`main_thread_steps`), the gate's words
(`gate_words`), the driver and the abort thread (`driver_steps`), the monitor process (`monitor_steps`), and faults
(`call_faults`). Time moves when nothing else can, and sometimes earlier. The store answers at once; a thread that gets no
turn stands for a late answer. `moves` lists the moves that are possible, `effects` maps each move to its effect, `laws`
judges each step and the end, and `walk` takes moves at random.
"""
