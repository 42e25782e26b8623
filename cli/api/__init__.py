"""`elastic.launch`, for programs: settings -> the command's launch -> what the workers returned, or an exception."""
