"""`elastic launch` for programs: settings -> the same launch as the command's -> values, or an exception."""
