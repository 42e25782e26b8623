# The round is over before the workers have started: there is nothing to stop.
ready 0
over 0
----
0  HELD: Beat
0  JOINING: Join
