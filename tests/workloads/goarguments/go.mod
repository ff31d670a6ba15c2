module goarguments

go 1.16
