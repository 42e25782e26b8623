# start over an old gap
# F2: workers start at 15.002, though their node was unheard until 15.002: HELD + Beaten(sent_at=15.0, at=15.001999999999999) -> RUNNING: (Start(world=World(id=WorldId(life=Life(nonce='a@0', epoch=1), round=2), nodes=(Node(slot='b', incarnation=1), Node(slot='a', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='b', port=4), local_world_size=1, role='default', host='b', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None)), failures=0, policy='', generation=Generation(job='a@0', round=0))),)
world nodes=2 min=2 max=2 fence=3
start a
pause-heart a 15
