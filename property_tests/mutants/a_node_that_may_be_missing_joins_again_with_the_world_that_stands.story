# a node that may be missing joins again with the world that stands
# G10: remembers (World(id=WorldId(life=Life(nonce='a@0', epoch=1), round=0), nodes=(Node(slot='a', incarnation=1),), profiles=(Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None),), failures=0, policy='', generation=Generation(job='a@0', round=0)), None, None) and workers [] on its way into a world: HELD + Beaten(sent_at=5.572000803000002, at=5.574000803000002) -> JOINING: (Join(alive=None),)
world nodes=1 max=1 fence=3
start a
outage 5
pass 5
