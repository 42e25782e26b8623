# a target of a later round limits who enters
# O16: a#1 writes Arrive(profile=Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None)) alone, which it may propose or has proposed
world min=2 helping=1
start a
pass 1
pause a 10
