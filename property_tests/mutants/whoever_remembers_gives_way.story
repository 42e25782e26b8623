# whoever remembers gives way
# L19: a#1 is fed Pushed, and remembers otherwise: state: None, not RendezvousState(life=Life(nonce='a@0', epoch=1), limits=Limits(min_nodes=1, max_nodes=1, max_restarts=3, agreed='', give_up_after=0, counts_failures=False, node_unit=1, segment=''), version=1, round=0, complete=True, closed=None, seats=mappingproxy({Node(slot='a', incarnation=1): Seat(status=<Status.IN: 'in'>, order=0, profile=Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None), notice=None, failing=None)}), next_order=1, target=0, quorum_at=1, failures=0, ended=None, stale_before=0, job='a@0', base=(), completed_in=Life(nonce='a@0', epoch=1), generation=0, policy='', progressed=False, fruitless=(), lost_starts=()), held_at: 1.001, not 0.004
world nodes=1 max=1
start a
pass 1
empty
