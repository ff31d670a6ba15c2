module pprofcheck

go 1.19

require github.com/google/pprof v0.0.0-20240424215950-a892ee059fd6
