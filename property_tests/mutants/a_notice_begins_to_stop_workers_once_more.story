# a notice begins to stop workers once more
# G6: begins to stop its workers once more: STOPPING + Noticed(notice=Notice(deadline_s=1.0, source='a test'), at=78301.0018, known=True) -> LEAVING: (Leave(), Signal(signum=15, spared=None, children=None))
world nodes=2 max=1 workers=2 seed=2 unlike=2 standbys=0.3
start a
start b
pass 1
kill-worker b
notice b 1
