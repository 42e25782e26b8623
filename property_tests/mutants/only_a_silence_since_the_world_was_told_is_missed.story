# only a silence since the world was told is missed
# F2: workers start at 5.002, though their node was unheard until 5.002: HELD + Beaten(sent_at=5.0, at=5.002000000000001) -> RUNNING: (Start(world=World(id=WorldId(life=Life(nonce='a@0', epoch=1), round=0), nodes=(Node(slot='a', incarnation=1),), profiles=(Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None),), failures=0, policy='', generation=Generation(job='a@0', round=0))),)
world nodes=1 max=1 fence=3
start a
pause a 5
