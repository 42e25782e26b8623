# who answers stays a suspect
# L15: a link to b#1 tells [] of Answered(incarnation=1), not Says.ANSWERS
world nodes=2 max=2 links=1
start a
start b
pass 1
unlink b
