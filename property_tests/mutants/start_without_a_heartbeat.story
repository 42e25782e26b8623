# start without a heartbeat
# G1: not in the table: JOINING + Ready(world=World(id=WorldId(life=Life(nonce='a@0'), round=0), members=(Member(node=Node(slot='a', incarnation=1), profile=Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=())),), failures=0), at=0.004) -> RUNNING: (Start(world=World(id=WorldId(life=Life(nonce='a@0'), round=0), members=(Member(node=Node(slot='a', incarnation=1), profile=Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=())),), failures=0)),)
world nodes=1 max=1
