# the register is told what it said
# G12: tells the register of the notice that it has told: BARRIER + Noticed(notice=Notice(deadline_s=5.0, source='a test'), at=9801.022, known=True, unfit=None) -> BARRIER: (Drain(node=Node(slot='a', incarnation=1), notice=Notice(deadline_s=5.0, source='a test')), Tell(notice=Notice(deadline_s=5.0, source='a test'), goes_at=9802.022, gone_by=9806.022))
world nodes=1 max=1 seed=8
start a
pass 1
notice a 5
