# workers are started as stopped
# G10: runs workers that were stopped at 6.006: HELD + Beaten(sent_at=6.010000003000001, at=6.012000003000002) -> RUNNING: (Start(world=World(id=WorldId(life=Life(nonce='b@0', epoch=1), round=1), nodes=(Node(slot='b', incarnation=1), Node(slot='a', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='b', port=3), local_world_size=1, role='default', host='b', labels=(), program='', content='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None)), failures=0, policy='', generation=Generation(job='b@0', round=0))),)
world nodes=2 max=2
start b
pass 5
start a
