# an arrival beside an enter
# O16: c#1 writes Arrive(profile=Profile(endpoint=Endpoint(address='c', port=3), local_world_size=1, role='default', host='c', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None)) alone, which it may propose or has proposed
world nodes=4 max=4 seed=1 attempts=3 last_call=0.5 helping=1 links=1 hang=9
start a
start b
start c
pass 2
pause a 2.5
pause c 7
pass 1
cut-in b 10
pass 10
