"""Ranks that call a function, restarted inside their processes: the threads of each, the gate between them, its monitor
process and the register, step by step, under faults.

Whatever decides is the core's own: `inprocess.transition`, `rendezvous.turn`, `agenda` and `caller`. Modelled are the main
thread with the places where a signal may meet it, the gate's words, the abort thread, the monitor process (`ranks`, `gate`,
`main_thread`, `monitor_thread`, `monitor_process`), what goes wrong (`faults`), and time: it moves when all else rests, and
now and then. A store answers at once; a late answer is a thread that gets no turn. `moves` says what may happen next,
`steps` what becomes of it; `laws` judges each step and the end; `walk` goes at random.
"""
