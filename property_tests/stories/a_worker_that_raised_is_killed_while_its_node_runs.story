# Where workers restart alone, one that raised and does not end is killed after its grace while its node runs (G6).
world seed=1 grace=1 alone=1 echoes=1
start a
start b
start c
pause-heart b 5
pass 1
fail c
