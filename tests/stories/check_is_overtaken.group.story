# A signal comes while this node is checked: the agent leaves, and the answer of the check is not heard.
checks
begin
signal 15
unfit
gone
----
0  CHECKING: Check
0  LEAVING: Leave
0  LEAVING
0  ENDED · stopped by signal 15
