# start on an old heartbeat
# F1: started at 71902, to be fenced at 71903: HELD + Beaten(sent_at=71900.0016, at=71902.01) -> RUNNING: (Start(world=World(id=WorldId(life=Life(nonce='b@2'), round=0), members=(Member(node=Node(slot='b', incarnation=1), profile=Profile(endpoint=Endpoint(address='b', port=2), local_world_size=1, role='default', host='b', labels=())),), failures=0)),)
world nodes=2 max=1 seed=4 fence=3
start a
start b
pass 0.01
pause b 2
pass 1
